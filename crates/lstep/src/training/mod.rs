//! Resumable training: the training stream, epoch selection, the run folder, and an opened run.

mod baselines;
mod context;
mod folder;
mod job;
mod provenance;
mod run;
mod selection;
mod stream;

pub use baselines::{EvaluationWithBaselines, ScoredModel};
pub(crate) use context::RunContext;
pub use context::SetupTimings;
pub use folder::RunFolder;
pub use job::{TrainEvent, Training};
pub(crate) use provenance::Provenance;
pub use run::TrainedRun;
pub use selection::{Selection, mean_quality};
pub use stream::{Progress, TrainingStream};
