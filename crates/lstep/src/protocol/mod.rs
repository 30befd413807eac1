//! Which questions are asked, and what counts as known.

pub mod dyglib;
pub mod tgb;
