//! The report of an evaluation: metrics beside everything that they depend on.

use crate::model::ModelConfig;
use crate::protocol::{Negatives, Protocol};
use crate::results::Outcome;
use crate::results::TrainingSummary;
use crate::settings::RunConfig;
use crate::stream::Stream;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// The report of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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

/// The numbers of one query set beside what they depend on. In JSON its [`Outcome`] is not nested,
/// and in code its fields can be read as if they were the row's own: `row.ap`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResultRow {
    /// The model with its settings.
    pub model: ModelConfig,
    /// The numbers.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// SHA-256 of the negatives as a file.
    pub negatives_sha256: String,
    /// Negatives drawn at random because history had too few pairs.
    pub negatives_filled: usize,
    /// Negatives that meet in their own step after all, because nothing else was left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negatives_meeting: usize,
    /// Events asked in a second.
    #[serde(default)]
    pub events_per_second: f64,
}

impl Deref for ResultRow {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
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
            negatives_sha256,
            negatives_filled: negatives.filled,
            negatives_meeting: negatives.meeting,
            events_per_second: outcome.events as f64 / outcome.seconds.max(1e-9),
            outcome,
        }
    }
}

impl EvaluationReport {
    /// A report on a stream, so far without models and numbers.
    pub(crate) fn about(stream: &Stream, protocol: &Protocol) -> EvaluationReport {
        EvaluationReport {
            dataset: stream.name.clone(),
            nodes: stream.names.len(),
            events: stream.log.len(),
            protocol: protocol.name().to_string(),
            protocol_settings: protocol.clone(),
            model: String::new(),
            results: Vec::new(),
            settings: None,
            training: None,
            threads: rayon::current_num_threads(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_flat_in_json_and_rows_of_earlier_versions_are_read() {
        let earlier = r#"{"model":{"name":"edgebank","memory":"unlimited"},"split":"test",
            "setting":"transductive","negatives":"random","ap":0.1,"auc":0.2,"ap_pooled":0.3,
            "auc_pooled":0.4,"mrr":0.5,"events":6,"steps":7,"pairs":12,"negatives_sha256":"ab",
            "negatives_filled":8,"seconds":9.5}"#;
        let row: ResultRow = serde_json::from_str(earlier).expect("a row of an earlier version");
        assert_eq!((row.ap, row.mrr, row.hits_10, row.events), (0.1, Some(0.5), None, 6));
        assert_eq!((row.negatives_meeting, row.events_per_second), (0, 0.0));
        let written = serde_json::to_value(&row).expect("plain data");
        let keys: Vec<&String> = written.as_object().expect("a row").keys().collect();
        for key in ["part", "setting", "negatives", "ap", "mrr", "pairs", "seconds"] {
            assert!(keys.iter().any(|known| *known == key), "{key} of {keys:?}");
        }
        assert!(!keys.iter().any(|key| ["outcome", "split", "hits_10"].contains(&key.as_str())));
        assert_eq!(serde_json::from_value::<ResultRow>(written).expect("read back"), row);
    }
}
