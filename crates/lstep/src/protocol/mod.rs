//! Which questions are asked, and what counts as known.
//!
//! A [`Protocol`] laid over a stream is a [`Plan`]. It holds the [`Split`] and makes [`EvalPass`]es:
//! steps to be scored and then revealed, with one [`QuerySet`] for each part, setting and kind of
//! negatives. Models see only [`Queries`](crate::query::Queries), which carry no labels. [`dyglib`]
//! and [`tgb`] are the field's habits, kept for comparison. Depends on `event` and `graph`.

mod by_name;
mod config;
pub mod dyglib;
mod eval_pass;
mod negative;
mod negative_file;
mod numbered;
mod numbering;
mod plan;
mod split;
mod step;
mod stream;
pub mod tgb;
mod ties;

pub use config::{EvalScope, Protocol, ProtocolOptions, Subject};
pub use eval_pass::{EvalPass, Part, QuerySet, Setting};
pub(crate) use negative::evenly;
pub use negative::{Negatives, Strategy, StreamSampler};
pub use negative_file::{negatives_sha256, read_negatives, write_negatives};
pub use numbering::{Numbering, hashed_order};
pub use plan::Plan;
pub use split::{DEFAULT_SPLIT, Split};
pub use step::{DEFAULT_STEP, StepRule, Visibility, cut, cut_list};
pub use stream::StreamProtocol;
pub use ties::{Ties, shuffle_ties};
