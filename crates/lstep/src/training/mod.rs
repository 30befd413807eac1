//! Resumable training: the training stream, epoch selection, the run folder, and an opened run.
//!
//! [`Training`] is the short way from a stream to a [`TrainedRun`]; [`TrainingRun`] is the run on
//! the way there.

mod baselines;
mod builder;
mod cluster;
mod context;
mod examples;
mod folder;
mod job;
mod provenance;
mod run;
mod selection;
mod shards;
mod store;
mod stream;

pub use baselines::{EvaluationWithBaselines, ScoredModel};
pub use builder::Training;
pub use cluster::{Network, RankPlan, Worth};
pub(crate) use context::RunContext;
pub use context::SetupTimings;
pub use examples::{Example, Examples};
pub use folder::{KnownStream, RunFolder};
pub use job::{StepCost, TrainEvent, TrainingRun};
pub(crate) use provenance::{Provenance, stream_sha256};
pub use run::TrainedRun;
pub use selection::{Selection, mean_mrr, mean_quality, stopped_while_gaining};
pub use shards::{ShardCost, simulate_shards};
pub(crate) use store::RunStore;
pub use stream::{Progress, TrainingStream};
