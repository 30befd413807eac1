//! Temporal link prediction that cannot see the future.

pub mod draw;
pub mod error;
pub mod event;
pub mod graph;
pub mod live;
pub mod metric;
pub mod model;
pub mod protocol;
pub mod read;
pub mod run;

pub use error::{Error, Result};
