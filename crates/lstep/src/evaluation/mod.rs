//! Runs models through a protocol's evaluation passes and measures how well they rank.

mod evaluator;
mod job;
mod kept_ranks;
mod paired;
mod score_log;
mod scores;
mod ties;

pub use evaluator::{Watch, evaluate, evaluate_recording, train_observing, unwatched};
pub use job::{EvalProgress, EvaluatedModel, Evaluation};
pub use kept_ranks::KeptRanks;
pub use paired::{PairedDifference, against, metric_interval, paired_difference};
pub use score_log::{Answer, MOST_PAIRS, ScoreLog};
pub(crate) use ties::{OpenSession, ties};
