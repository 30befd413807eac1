//! What evaluations and trainings report, as data for people and for programs.

mod calibration;
mod evaluation;
mod outcome;
mod ties;
mod training;

pub use calibration::{Calibration, Reliability, ReliabilityGroup};
pub use evaluation::{
    AgainstCounting, EvaluationReport, ResultRow, Summary, Verdict, main_place, main_row,
};
pub use outcome::Outcome;
pub(crate) use ties::MANY_TIES;
pub use ties::TiesReport;
pub use training::{EpochReport, TrainingSummary, ValidationRow};
