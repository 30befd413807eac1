//! Temporal link prediction that cannot see the future.

pub mod error;
pub mod event;
pub mod read;

pub use error::{Error, Result};
