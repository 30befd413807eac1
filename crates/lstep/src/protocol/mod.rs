//! Which questions are asked, and what counts as known.
//!
//! A [`Plan`] lays a protocol over a stream: the [`Split`], the steps, who is new. From it come [`Exam`]s: steps to be scored
//! and then revealed, with one [`Sheet`] for each setting and kind of negative. Models see only [`Queries`], which carry no
//! labels. Depends on `event` and `graph`.

pub mod dyglib;
mod exam;
mod negative;
mod query;
mod split;
mod step;
pub mod tgb;

pub use exam::{Exam, Part, Setting, Sheet};
pub use negative::{Negatives, Strategy, StreamSampler};
pub use query::{Queries, Row, Scores};
pub use split::{NodeSet, Split, quantile};
pub use step::{StepRule, Visibility, cut};
