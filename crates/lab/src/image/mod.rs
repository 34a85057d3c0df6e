//! Container images without a registry: archives that containerd imports.
//!
//! An image has one layer. It is made from a single static program, or from Debian packages and
//! files as a recipe says.

mod archive;
mod binary;
mod recipe;
mod rootfs;
mod sources;
mod unpacked;

pub(crate) use archive::references;
pub use binary::{BinaryImage, from_binary};
pub(crate) use recipe::make as from_text;
pub use recipe::{Also, Directory, Link, Recipe, RecipeFile, from_recipe, from_recipe_with};
pub use unpacked::program;
