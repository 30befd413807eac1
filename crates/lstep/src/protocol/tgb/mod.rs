//! The evaluation of the Temporal Graph Benchmark (TGB): its many negatives for each event.
//!
//! TGB ships negatives as Python pickles, one list of destinations for each event. [`pickle`] reads and writes such files
//! without executing anything; [`Generator`] makes the same lists from the rule, draw for draw; [`Negatives`] is what both
//! give. The metric that goes with them is [`crate::metric::Ranks`].

mod exam;
mod negative;
pub mod pickle;

pub use exam::TgbProtocol;
pub use negative::{Columns, Generator, Negatives, Positive};
