//! Label selectors, with kubectl's whole grammar.
//!
//! Decides whether labels are selected. It holds no position on *which* labels matter, and it
//! never asks the API server. The text form is read with a caret under a mistake, and written so
//! that the API server takes it as `labelSelector`.
//!
//! ```text
//! selector    = "" | requirement { "," requirement }
//! requirement = key | "!" key
//!             | key ( "=" | "==" | "!=" ) [ value ]
//!             | key ( ">" | "<" ) number
//!             | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
//! ```
//!
//! Blanks, tabs and line ends may stand between any two words. `in` and `notin` are ordinary words
//! where a key or a value is expected. A value that is left out of a list is the empty value: `()`
//! holds just that, and `(,a)` holds it beside `a`. We are more lenient than kubectl in one corner:
//! it refuses two commas before the closing parenthesis, and `(a,,)` means `(a,)` here.

mod parse;
mod requirement;

#[cfg(test)]
mod tests;

pub use parse::InvalidSelector;
pub use requirement::{Requirement, Selector, Test};
