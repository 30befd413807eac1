//! How the training of a run went, from what its folder says of every epoch.

use super::train::EpochReport;
use serde::{Deserialize, Serialize};

/// How training went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
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

impl Training {
    /// Sums up the epochs of a run; nothing if there are none.
    pub fn of(curve: Vec<EpochReport>) -> Option<Training> {
        let best = curve.iter().rev().find(|epoch| epoch.improved)?.clone();
        let count = curve.len() as f64;
        Some(Training {
            epochs: curve.len() as u32,
            best_epoch: best.epoch,
            validation_ap: best.validation_ap,
            validation_auc: best.validation_auc,
            seconds: curve.iter().map(|epoch| epoch.train_seconds + epoch.validation_seconds).sum(),
            seconds_per_epoch: curve.iter().map(|epoch| epoch.train_seconds).sum::<f64>() / count,
            events_per_second: curve.iter().map(|epoch| epoch.train_events_per_second).sum::<f64>() / count,
            curve,
        })
    }
}
