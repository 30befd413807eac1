//! Temporal link prediction that cannot see the future.

pub mod error;
pub mod event;
pub mod metric;
pub mod protocol;

pub use error::{Error, Result};
