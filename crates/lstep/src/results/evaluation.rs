//! The report of an evaluation: metrics beside everything that they depend on.

use super::{MANY_TIES, TiesReport};
use crate::error::{Error, InputFault, Result};
use crate::fingerprint::Fingerprint;
use crate::model::ModelConfig;
use crate::protocol::{Negatives, Part, Protocol, Setting, Strategy};
use crate::results::TrainingSummary;
use crate::results::{Outcome, Reliability};
use crate::settings::RunConfig;
use crate::stream::{Stream, tied_events};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::path::Path;

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
    /// Events that share their time with another one. Their order in the file means nothing, but a
    /// state that follows in steps reads it.
    #[serde(default)]
    pub tied_events: usize,
    /// The protocol's name.
    pub protocol: String,
    /// The protocol with all its settings.
    pub protocol_settings: Protocol,
    /// The model's name, as asked for.
    pub model: String,
    /// One entry for each model, part, setting and kind of negatives.
    pub results: Vec<ResultRow>,
    /// For each of a run's results the best of all counting models on the same questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against_counting: Vec<AgainstCounting>,
    /// The counting models' answers to a run's questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<ResultRow>,
    /// What to make of a run, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// How far a run's probabilities hold on the test part, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// For each model what the order of events that share a time is worth, where most do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<TiesReport>,
    /// All settings of a run, resolved: events, protocol, model, negatives of training and seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RunConfig>,
    /// How its training went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingSummary>,
    /// The SHA-256 of a run's stream: who met whom when, with which features and names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_sha256: Option<String>,
    /// Threads used. No number above depends on it.
    pub threads: usize,
    /// The version of this library.
    pub version: String,
    /// SHA-256 of all of the above, so that a number that was edited is not taken for a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
}

/// What to make of a run, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// How good it is, with its interval, and whether that is better than counting.
    pub verdict: String,
    /// The best counting model.
    pub counting: String,
    /// The command to go on with; `RUN` is the run's folder, `EVENTS` its file.
    pub next: String,
}

/// A trained model beside the best of all counting models on the same questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgainstCounting {
    /// The part asked about.
    pub part: Part,
    /// Which of its events were asked.
    pub setting: Setting,
    /// The kind of negatives.
    pub negatives: Strategy,
    /// `ap`, the mean over steps, or `mrr`.
    pub metric: String,
    /// The counting model.
    pub model: ModelConfig,
    /// Its number.
    pub value: f64,
    /// The trained model's number minus the counting model's, with the interval that holds 95 % of
    /// what other draws of the same test events give.
    pub difference: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The trained model's own number, as an interval of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<(f64, f64)>,
    /// `better`, `worse`, or `not-told-apart` where the interval holds zero.
    pub verdict: Verdict,
}

/// What a paired interval says about a model and another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is above zero.
    Better,
    /// The whole interval is below zero.
    Worse,
    /// The interval holds zero.
    NotToldApart,
}

impl Verdict {
    /// The verdict of an interval of differences.
    pub fn of(low: f64, high: f64) -> Verdict {
        if low > 0.0 {
            Verdict::Better
        } else if high < 0.0 {
            Verdict::Worse
        } else {
            Verdict::NotToldApart
        }
    }
}

impl fmt::Display for Verdict {
    /// Before the name of the other model.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better than",
            Verdict::Worse => "worse than",
            Verdict::NotToldApart => "not told apart from",
        })
    }
}

/// The numbers of one query set beside what they depend on. In JSON its [`Outcome`] is not nested,
/// and in code its fields can be read as if they were the row's own: `row.ap`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResultRow {
    /// What the command calls the model. Reports of earlier versions have no name here.
    #[serde(default)]
    pub name: String,
    /// The model with its settings.
    pub model: ModelConfig,
    /// The numbers.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// SHA-256 of the negatives as a file.
    pub negatives_sha256: String,
    /// Whether TGB's negatives were made by its rule, because there was no file of them. Their
    /// numbers are not those of the leaderboard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negatives_generated: bool,
    /// Negatives drawn at random because history had too few pairs.
    pub negatives_filled: usize,
    /// Negatives that meet in their own step after all, because nothing else was left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negatives_meeting: usize,
    /// Events asked in a second.
    #[serde(default)]
    pub events_per_second: f64,
}

/// Where the row stands that a report speaks of: the first of the test part, or the first of all.
/// Reports of TGB list validation before test.
pub fn main_place(rows: &[ResultRow]) -> Option<usize> {
    let test = rows.iter().position(|row| row.part == Part::Test);
    test.or((!rows.is_empty()).then_some(0))
}

/// The row at [`main_place`].
pub fn main_row(rows: &[ResultRow]) -> Option<&ResultRow> {
    rows.get(main_place(rows)?)
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
            name: model.name().to_string(),
            model,
            negatives_sha256,
            negatives_generated: negatives.generated,
            negatives_filled: negatives.filled,
            negatives_meeting: negatives.meeting,
            events_per_second: outcome.events as f64 / outcome.seconds.max(1e-9),
            outcome,
        }
    }
}

impl EvaluationReport {
    /// The report as JSON, with its digest.
    pub fn to_json(&self) -> String {
        let sealed = EvaluationReport { digest: Some(self.fingerprint()), ..self.clone() };
        serde_json::to_string_pretty(&sealed).expect("a report is plain data")
    }

    /// Reads what [`EvaluationReport::to_json`] wrote to a file. Refuses a report that does not
    /// have the digest it names; those of earlier versions name none.
    pub fn from_json(path: &Path, text: &str) -> Result<EvaluationReport> {
        let unreadable = |problem: String, remedy: &'static str| {
            Error::from(InputFault::new(path.display().to_string(), problem, remedy))
        };
        let mut report: EvaluationReport = serde_json::from_str(text).map_err(|error| {
            unreadable(error.to_string(), "evaluate again, or remove it and it is made anew")
        })?;
        match report.digest.take() {
            Some(digest) if digest != report.fingerprint() => Err(unreadable(
                "was changed after it was written: its digest is another".to_string(),
                "restore it, or remove it and it is made anew",
            )),
            _ => Ok(report),
        }
    }

    fn fingerprint(&self) -> String {
        let bare = EvaluationReport { digest: None, ..self.clone() };
        let mut hash = Fingerprint::default();
        hash.take(serde_json::to_vec(&bare).expect("a report is plain data"));
        hash.hex()
    }

    /// What to say where most events share their time with another one, and the file decides their
    /// order.
    pub fn tie_warning(&self) -> Option<String> {
        let share = self.tied_events as f64 / self.events.max(1) as f64;
        (share > MANY_TIES && self.protocol_settings.ties().is_file()).then(|| {
            format!(
                "{:.0} % of the events share their time with another, and their order is that of \
                 the file, which nobody could have known: compare with shuffled ties",
                100.0 * share
            )
        })
    }

    /// A report on a stream, so far without models and numbers.
    pub(crate) fn about(stream: &Stream, protocol: &Protocol) -> EvaluationReport {
        EvaluationReport {
            dataset: stream.name.clone(),
            nodes: stream.names.len(),
            events: stream.log.len(),
            tied_events: tied_events(stream.log.events()),
            protocol: protocol.name().to_string(),
            protocol_settings: protocol.clone(),
            model: String::new(),
            results: Vec::new(),
            against_counting: Vec::new(),
            baselines: Vec::new(),
            summary: None,
            reliability: None,
            ties: Vec::new(),
            settings: None,
            training: None,
            stream_sha256: None,
            threads: rayon::current_num_threads(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            digest: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_edited_is_refused() {
        let config = crate::read::synthetic::SyntheticConfig {
            nodes: 60,
            events: 900,
            ..Default::default()
        };
        let stream = Stream::from(crate::read::synthetic::generate(&config).expect("a stream"));
        let report = EvaluationReport::about(&stream, &Protocol::Stream(Default::default()));
        let (path, text) = (Path::new("report.json"), report.to_json());
        assert_eq!(EvaluationReport::from_json(path, &text).expect("as written"), report);
        let edited = text.replace("\"events\": 900", "\"events\": 901");
        let error = EvaluationReport::from_json(path, &edited).expect_err("edited").to_string();
        assert!(error.contains("report.json") && error.contains("changed"), "{error}");
        // Reports of earlier versions have no digest.
        let earlier = serde_json::to_string(&report).expect("plain data");
        assert_eq!(EvaluationReport::from_json(path, &earlier).expect("read"), report);
    }

    #[test]
    fn a_report_speaks_of_the_test_part_wherever_it_stands() {
        let row = |part: &str| -> ResultRow {
            let text = format!(
                r#"{{"model":{{"name":"edgebank","memory":"unlimited"}},"part":"{part}",
                "setting":"transductive","negatives":"random","ap":0.1,"auc":0.2,"ap_pooled":0.3,
                "auc_pooled":0.4,"mrr":0.5,"events":6,"steps":7,"pairs":12,
                "negatives_sha256":"ab","negatives_filled":8,"seconds":9.5}}"#
            );
            serde_json::from_str(&text).expect("a row")
        };
        let rows = [row("validation"), row("test")];
        assert_eq!(main_place(&rows), Some(1));
        assert_eq!(main_row(&rows[..1]).map(|row| row.part), Some(Part::Validation));
        assert_eq!(main_row(&[]), None);
    }

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
