//! The numbers of one query set.

use crate::protocol::{Part, Setting, Strategy};
use serde::{Deserialize, Serialize};

/// The numbers of one query set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The part asked about.
    #[serde(alias = "split")]
    pub part: Part,
    /// Which of its events were asked.
    pub setting: Setting,
    /// The kind of negatives.
    pub negatives: Strategy,
    /// Average precision, the mean over steps.
    pub ap: f64,
    /// ROC-AUC, the mean over steps.
    pub auc: f64,
    /// Average precision over all scores together.
    pub ap_pooled: f64,
    /// ROC-AUC over all scores together.
    pub auc_pooled: f64,
    /// Mean reciprocal rank, ties in the middle, where an event has more than one negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mrr: Option<f64>,
    /// Share of events whose true destination ranks tenth or better, where every event has more
    /// than ten negatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits_10: Option<f64>,
    /// Share of events whose true destination ranks first, where events are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits_1: Option<f64>,
    /// NDCG of the first ten, where `hits_10` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ndcg_10: Option<f64>,
    /// How many events were asked.
    pub events: usize,
    /// In how many steps.
    pub steps: usize,
    /// How many candidates were scored.
    pub pairs: usize,
    /// How long scoring took, and letting the state follow.
    pub seconds: f64,
}

impl Outcome {
    /// The metric by which models are compared and its value: `mrr` where events are ranked, else
    /// `ap`.
    pub fn headline(&self) -> (&'static str, f64) {
        self.mrr.map_or(("ap", self.ap), |mrr| ("mrr", mrr))
    }
}
