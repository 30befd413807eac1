//! What the tests of the workspace share.
//!
//! - [`stream!`] builds events from rows.
//! - [`small`] holds settings of models that train in a moment.
//! - [`command`] runs the real `lstep` binary in a folder of its own.
//! - [`real_data`] finds the public datasets, which are not part of the repository.
//!
//! The kit does not depend on `lstep`. A dependency would give unit tests of `lstep` two versions
//! of every type, and would build the library twice for them. The macro names types by the path
//! `::lstep`, which is the crate under test in unit tests and in integration tests alike.
#![forbid(unsafe_code)]

pub mod command;
pub mod real_data;
pub mod small;
mod stream;

pub use stream::Columns;
