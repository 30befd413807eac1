//! The evaluation of the Temporal Graph Benchmark (TGB): its many negatives for each event.
//!
//! TGB ships negatives as Python pickles, one list of destinations for each event.
//! [`pickle`](crate::read::pickle) reads and writes such files without executing anything;
//! [`Generator`] makes the same lists from the rule, draw for draw;
//! [`NegativeLists`](crate::read::pickle::NegativeLists) is what both give. The metric that goes
//! with them is [`crate::metric::Ranks`].

mod negative;
mod protocol;

pub use negative::{Generator, TgbColumns};
pub use protocol::TgbProtocol;
