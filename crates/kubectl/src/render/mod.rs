//! How answers look to a person. Pure: the time and the width come in as values.

pub(crate) mod age;
#[cfg(test)]
pub(crate) mod fixtures;
mod list;
mod owner;
pub(crate) mod paint;
mod status;
mod steps;
mod table;
pub(crate) mod work;

pub(crate) use list::list;
pub(crate) use owner::{owner, owners};
pub(crate) use status::{change_line, status};
pub(crate) use steps::{log, plan};
pub(crate) use table::Table;
