//! temporary
mod names;
use super::validate::Validated;
pub use names::Names;
use windlass_api::tidb::Component;
use windlass_core::step::{Action, Manifest, Step};
use windlass_core::views::Children;
pub const KIND: &str = "tc";
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub replicas: u16,
    pub partition: u16,
    pub children: &'a Children,
}
#[derive(Debug)]
pub enum Claims {
    AsAsked,
    Differ,
    Smaller(String),
    Others(String),
}
#[derive(Debug)]
pub struct Objects<A> {
    pub applied: Vec<Manifest>,
    pub removals: Vec<Step<A>>,
    pub claims: Claims,
}
pub fn component<A: Action>(_c: &Validated, _k: Component, _s: &Inputs<'_>) -> Option<Objects<A>> {
    None
}
pub fn discovery(_c: &Validated, _i: &str, _ch: &Children) -> Vec<Manifest> {
    vec![]
}
