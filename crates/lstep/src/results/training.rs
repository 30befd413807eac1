//! How the training of a run went, from what its folder says of every epoch.

use crate::protocol::Strategy;
use serde::{Deserialize, Serialize};

/// How training went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainingSummary {
    /// Epochs done.
    pub epochs: u32,
    /// The epoch that is evaluated.
    pub best_epoch: u32,
    /// Its average precision on validation.
    pub validation_ap: f64,
    /// Its ROC-AUC on validation.
    pub validation_auc: f64,
    /// Time of all epochs, validation included.
    pub seconds: f64,
    /// Mean time of an epoch's training pass.
    pub seconds_per_epoch: f64,
    /// Mean number of training events in a second.
    pub events_per_second: f64,
    /// Every epoch.
    pub curve: Vec<EpochReport>,
}

impl TrainingSummary {
    /// Sums up the epochs of a run; nothing if there are none.
    pub fn of(curve: Vec<EpochReport>) -> Option<TrainingSummary> {
        let best = curve.iter().rev().find(|epoch| epoch.improved)?.clone();
        let count = curve.len() as f64;
        Some(TrainingSummary {
            epochs: curve.len() as u32,
            best_epoch: best.epoch,
            validation_ap: best.validation_ap,
            validation_auc: best.validation_auc,
            seconds: curve.iter().map(|epoch| epoch.train_seconds + epoch.validation_seconds).sum(),
            seconds_per_epoch: curve.iter().map(|epoch| epoch.train_seconds).sum::<f64>() / count,
            events_per_second: curve.iter().map(|epoch| epoch.train_events_per_second).sum::<f64>()
                / count,
            curve,
        })
    }
}

impl EpochReport {
    /// Average precision on validation against random negatives where it asks about them, else the
    /// mean over what it asks.
    pub fn ap_on_random(&self) -> f64 {
        let random = self.validation.iter().find(|row| row.negatives == Strategy::Random);
        random.map_or(self.validation_ap, |row| row.ap)
    }
}

/// What an epoch did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochReport {
    /// Its number, from 1.
    pub epoch: u32,
    /// Mean loss over its steps.
    pub loss: f64,
    /// Average precision on validation, the mean over steps.
    pub validation_ap: f64,
    /// ROC-AUC on validation, the mean over steps.
    pub validation_auc: f64,
    /// The same for each kind of negatives, where validation asks about several and the numbers
    /// above are means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<ValidationRow>,
    /// Mean reciprocal rank on validation, where an event has more than one negative; under
    /// protocol `tgb` it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_mrr: Option<f64>,
    /// Whether it is the best so far.
    pub improved: bool,
    /// Time for learning.
    pub train_seconds: f64,
    /// Training events in a second.
    pub train_events_per_second: f64,
    /// Time for validation.
    pub validation_seconds: f64,
    /// Candidates scored in a second of validation.
    pub validation_pairs_per_second: f64,
}

/// Validation with one kind of negatives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValidationRow {
    /// Which.
    pub negatives: Strategy,
    /// Average precision, the mean over steps.
    pub ap: f64,
    /// ROC-AUC, the mean over steps.
    pub auc: f64,
}
