//! What happened before a moment.
//!
//! Events live in an append-only [`EventLog`] with each node's own [history](history::Histories)
//! beside it. Nothing above this room reads the log itself: scoring gets a [`Past`], which knows a
//! horizon and answers only for a [`Seed`], strictly before the seed's time; learning from what has
//! been revealed gets a [`Revealed`]. Depends on `event` alone.

pub mod history;
mod log;
mod neighbour;
mod past;

pub use history::Neighbour;
pub(crate) use history::newest;
pub use log::EventLog;
pub(crate) use neighbour::draw_for;
pub use neighbour::{sample_by_acceptance, sample_by_recency, sample_uniformly};
pub use past::{Past, Revealed, Seed};
