//! What a run says about itself: metrics beside everything that they depend on, for people and for
//! programs.

use crate::model::ModelConfig;
use crate::protocol::{Negatives, Part, Protocol, Setting, Strategy};
use crate::results::Outcome;
use crate::results::TrainingSummary;
use crate::settings::RunConfig;
use serde::{Deserialize, Serialize};

/// The answer of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// The dataset's name.
    pub dataset: String,
    /// Its nodes.
    pub nodes: usize,
    /// Its events.
    pub events: usize,
    /// The protocol's name.
    pub protocol: String,
    /// The protocol with all its settings.
    pub protocol_settings: Protocol,
    /// The model's name, as asked for.
    pub model: String,
    /// One entry for each model, part, setting and kind of negatives.
    pub results: Vec<ResultRow>,
    /// All settings of a run, resolved: events, protocol, model, negatives of training and seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RunConfig>,
    /// How its training went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingSummary>,
    /// Threads used. No number above depends on it.
    pub threads: usize,
    /// The version of this library.
    pub version: String,
}

/// The numbers of one query_set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    /// The model with its settings.
    pub model: ModelConfig,
    /// The part asked about.
    #[serde(alias = "split")]
    pub part: Part,
    /// Which of its events.
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
    /// Mean reciprocal rank, where an event has more than one negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mrr: Option<f64>,
    /// Share of true destinations at rank ten or better, where every event has more than ten
    /// negatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits_10: Option<f64>,
    /// Events asked.
    pub events: usize,
    /// Steps they came in.
    pub steps: usize,
    /// Candidates scored.
    pub pairs: usize,
    /// SHA-256 of the negatives as a file.
    pub negatives_sha256: String,
    /// Negatives drawn at random because history had too few pairs.
    pub negatives_filled: usize,
    /// Negatives that meet in their own step after all, because nothing else was left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negatives_meeting: usize,
    /// Time for scoring, and for letting the state follow.
    pub seconds: f64,
    /// Events asked in a second of it.
    #[serde(default)]
    pub events_per_second: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl ResultRow {
    pub(crate) fn new(
        model: ModelConfig,
        outcome: Outcome,
        negatives_sha256: String,
        negatives: &Negatives,
    ) -> ResultRow {
        ResultRow {
            model,
            part: outcome.part,
            setting: outcome.setting,
            negatives: outcome.strategy,
            ap: outcome.ap,
            auc: outcome.auc,
            ap_pooled: outcome.ap_pooled,
            auc_pooled: outcome.auc_pooled,
            mrr: outcome.mrr,
            hits_10: outcome.hits_10,
            events: outcome.events,
            steps: outcome.steps,
            pairs: outcome.pairs,
            negatives_sha256,
            negatives_filled: negatives.filled,
            negatives_meeting: negatives.meeting,
            seconds: outcome.seconds,
            events_per_second: outcome.events as f64 / outcome.seconds.max(1e-9),
        }
    }
}
