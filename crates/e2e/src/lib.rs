//! Tests on the lab.
