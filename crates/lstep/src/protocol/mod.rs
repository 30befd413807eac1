//! Which questions are asked, and what counts as known.
//!
//! A [`Protocol`] lays a [`Split`] over a stream and makes [`Exam`]s of it: steps to be scored and then revealed, with one
//! [`Sheet`] for each part, setting and kind of negatives. Models see only [`Queries`], which carry no labels. [`dyglib`] and
//! [`tgb`] are the field's habits, kept for comparison. Depends on `event` and `graph`.

pub mod dyglib;
mod exam;
mod negative;
mod negative_file;
mod numbered;
mod plan;
mod query;
mod split;
mod step;
mod stream;
pub mod tgb;

pub use exam::{Exam, Part, Setting, Sheet};
pub use negative::{Negatives, Strategy, StreamSampler};
pub use negative_file::{negatives_sha256, read_negatives, write_negatives};
pub use plan::{Asked, Protocol, Subject};
pub use query::{Queries, Row, Scores};
pub use split::{NodeSet, Split, quantile};
pub use step::{StepRule, Visibility, cut, cut_list};
pub use stream::StreamProtocol;
