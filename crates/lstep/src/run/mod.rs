//! The rooms joined: a stream, a protocol and a model become numbers.
//!
//! The command and other front ends know this room and `live`, nothing deeper.

mod evaluate;
mod inspect;
mod job;
mod report;

pub use evaluate::{Outcome, Watch, evaluate, facts, train_observing};
pub use inspect::Portrait;
pub use job::{Contender, Evaluation, Stream, inspect};
pub use report::{EvaluationReport, InspectReport, ResultRow};

// What front ends need to say what they want.
pub use crate::model::{Memory, ModelConfig};
pub use crate::protocol::dyglib::DyglibProtocol;
pub use crate::protocol::tgb::TgbProtocol;
pub use crate::protocol::{Asked, Part, Protocol, Setting, StepRule, Strategy, StreamProtocol, Visibility};
pub use crate::read::synthetic::{SyntheticConfig, generate};
pub use crate::read::{Dataset, FeatureColumns, ReadOptions, read, write_events};
