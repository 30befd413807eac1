//! What every model has to keep, checked on any stream.
//!
//! A leak shows as a score that changes when something changes that the score may not depend on. So
//! each law changes one such thing and compares scores to the last bit. Models of other frameworks
//! round by the shape of a batch, so theirs may be compared within a [`Tolerance`].
//!
//! Questions come in the shapes of evaluation: whole steps at places all over the stream and always
//! at its end, rows of 2, 11, 101 and 1,000 candidates, with the graph up to each question's time
//! (visibility `event`) and up to the step (`step`). Everything is drawn by a key, so a finding can
//! be repeated. The stream must have at least two steps.

mod example;
mod questions;
mod tolerance;
mod trial;
mod world;

pub use example::{AskedRow, Context, Example};
pub use questions::Questions;
pub use tolerance::Tolerance;

use crate::error::Result;
use crate::graph::EventLog;
use crate::model::{ModelConfig, Session, StreamInfo};
use crate::protocol::Visibility;
use questions::Probes;
use std::fmt;
use std::time::Duration;
use trial::Trial;

/// Something that may not change a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// A second pass over the same events.
    Again,
    /// Saving the model's settings and opening it anew.
    Reopening,
    /// The number of threads.
    Threads,
    /// A candidate's place in its row.
    Place,
    /// How many candidates a row has.
    RowLength,
    /// How questions are split into calls.
    Split,
    /// The other rows of the call.
    OtherRows,
    /// Events at or after the question's time.
    Future,
    /// Events after training.
    AfterTraining,
    /// The nodes' numbers.
    Names,
    /// Running live, one question at a time, on a log that ends before it.
    Live,
    /// That there has been scoring before.
    Scoring,
    /// What other sessions have observed, and when the question is asked.
    OwnState,
    /// A node nobody has seen.
    Unseen,
}

impl Law {
    /// All laws.
    pub const ALL: [Law; 14] = [
        Law::Again,
        Law::Reopening,
        Law::Threads,
        Law::Place,
        Law::RowLength,
        Law::Split,
        Law::OtherRows,
        Law::Future,
        Law::AfterTraining,
        Law::Names,
        Law::Live,
        Law::Scoring,
        Law::OwnState,
        Law::Unseen,
    ];
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Again => "a second pass over the same events gives the same scores",
            Law::Reopening => "a saved and reopened model scores the same",
            Law::Threads => "threads change no score",
            Law::Place => "a candidate's place in its row changes nothing",
            Law::RowLength => "the number of candidates in a row changes no score",
            Law::Split => "splitting queries into calls changes no score",
            Law::OtherRows => "the other rows of a call change no score",
            Law::Future => "events at or after the question's time change no score",
            Law::AfterTraining => "events after training change nothing that was learned",
            Law::Names => "renaming nodes changes no score",
            Law::Live => "a question asked alone, live, gets the score of a full call",
            Law::Scoring => "scoring changes no state",
            Law::OwnState => "a session knows only what it has observed, whenever it is asked",
            Law::Unseen => "unseen nodes get a finite score",
        })
    }
}

/// A question whose score changed although it may not.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Breach {
    /// Which law.
    pub law: Law,
    /// What was seen.
    pub evidence: String,
}

/// Where and how the laws are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// How many events a step has.
    pub step: u32,
    /// How many steps are asked about, at least 2: the first after training, the last of the
    /// stream, and others between the start and the end.
    pub steps: usize,
    /// How many rows of two candidates are asked in a call, at most the step's events. There are a
    /// tenth as many rows of 11, and a few longer ones.
    pub rows: usize,
    /// The longest row: lengths are those of 2, 11, 101 and 1,000 that are not longer.
    pub candidates: usize,
    /// Whether steps may separate events of one time: not if it is `strict`.
    pub visibility: Visibility,
    /// The seed of the questions and of the changes. Another one asks about other steps and other
    /// candidates.
    pub seed: u64,
}

impl Default for Check {
    fn default() -> Check {
        Check {
            step: 200,
            steps: 5,
            rows: 200,
            candidates: 1_000,
            visibility: Visibility::Event,
            seed: 0,
        }
    }
}

impl Check {
    /// A check for streams of a few hundred events.
    pub fn small() -> Check {
        Check { step: 20, steps: 3, rows: 20, candidates: 11, ..Check::default() }
    }

    /// A check for models that take milliseconds for a candidate: all lengths of rows, but fewer
    /// rows and steps.
    pub fn light() -> Check {
        Check { steps: 3, rows: 40, ..Check::default() }
    }
}

/// The stream that a model is opened for.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The whole stream. A pipeline that takes statistics of its data takes them of this, so that
    /// the audit can see which of the events they depend on.
    pub log: &'a EventLog,
    /// Events with lower numbers may train.
    pub training: u32,
    /// What a model may know before the first event.
    pub info: &'a StreamInfo,
}

/// Opens a model that has observed nothing. Called several times, for several streams.
pub type Open<'a> = dyn Fn(&Opening<'_>) -> Result<Box<dyn Session>> + 'a;

/// What is audited: the ways in which a model comes to be.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    open: &'a Open<'a>,
    reopen: &'a Open<'a>,
    learn: &'a Open<'a>,
    tolerance: Tolerance,
}

impl<'a> Submission<'a> {
    /// A model as it is opened.
    pub fn new(open: &'a Open<'a>) -> Submission<'a> {
        Submission { open, reopen: open, learn: open, tolerance: Tolerance::EXACT }
    }

    /// How much its scores may change by rounding; not by a bit unless this is said.
    #[must_use]
    pub fn within(self, tolerance: Tolerance) -> Submission<'a> {
        Submission { tolerance, ..self }
    }

    /// How it is opened after it was saved.
    #[must_use]
    pub fn reopened_by(self, reopen: &'a Open<'a>) -> Submission<'a> {
        Submission { reopen, ..self }
    }

    /// How it learns from a stream, if `open` does not do that. The result has observed nothing.
    #[must_use]
    pub fn learned_by(self, learn: &'a Open<'a>) -> Submission<'a> {
        Submission { learn, ..self }
    }
}

/// How one law fared.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LawReport {
    /// Which law.
    pub law: Law,
    /// The law as a sentence.
    pub says: String,
    /// How many scores were compared.
    pub compared: u64,
    /// How many of them had changed.
    pub changed: u64,
    /// How many had other bits, but had changed by no more than the tolerance allows.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounded: u64,
    /// The largest change, as a share of the spread of the scores of its row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_change: Option<f64>,
    /// The first that had.
    pub evidence: Option<String>,
    /// The first that had, as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
    /// How long it took.
    pub seconds: f64,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Findings {
    /// What was asked.
    pub questions: Questions,
    /// Every law, in the order of [`Law::ALL`].
    pub laws: Vec<LawReport>,
}

impl Findings {
    /// The laws that were broken.
    pub fn breaches(&self) -> Vec<Breach> {
        let broken = self.laws.iter().filter(|report| report.changed > 0);
        broken
            .map(|report| Breach {
                law: report.law,
                evidence: report.evidence.clone().unwrap_or_default(),
            })
            .collect()
    }

    /// Adds what another check of the same model and stream found.
    pub fn add(&mut self, other: &Findings) {
        self.questions.add(&other.questions);
        for (mine, other) in self.laws.iter_mut().zip(&other.laws) {
            mine.compared += other.compared;
            mine.changed += other.changed;
            mine.rounded += other.rounded;
            mine.seconds += other.seconds;
            if let Some(change) = other.largest_change {
                mine.changed_by(change);
            }
            if mine.evidence.is_none() {
                mine.evidence.clone_from(&other.evidence);
                mine.example.clone_from(&other.example);
            }
        }
    }
}

/// Checks all laws for a model with settings that has learned nothing.
pub fn check_config(config: &ModelConfig, log: &EventLog, check: Check) -> Result<Findings> {
    let saved = serde_json::to_string(config).expect("a config is plain data");
    let reopened: ModelConfig =
        serde_json::from_str(&saved).expect("a config reads back what it wrote");
    let submission = (
        |opening: &Opening<'_>| config.open(opening.info),
        |opening: &Opening<'_>| reopened.open(opening.info),
    );
    check_model(&Submission::new(&submission.0).reopened_by(&submission.1), log, check)
}

/// Checks all laws for a model.
pub fn check_model(submission: &Submission<'_>, log: &EventLog, check: Check) -> Result<Findings> {
    let probes = Probes::new(log, check);
    let mut trial = Trial::new(*submission, log, &probes, check)?;
    for law in Law::ALL {
        trial.check(law)?;
    }
    Ok(Findings { questions: probes.questions(log), laws: trial.into_reports() })
}

/// What [`check_model`] asks of a stream.
pub fn questions(log: &EventLog, check: Check) -> Questions {
    Probes::new(log, check).questions(log)
}

impl LawReport {
    fn new(law: Law) -> LawReport {
        LawReport {
            law,
            says: law.to_string(),
            compared: 0,
            changed: 0,
            rounded: 0,
            largest_change: None,
            evidence: None,
            example: None,
            seconds: 0.0,
        }
    }

    fn changed_by(&mut self, share: f64) {
        self.largest_change = Some(self.largest_change.map_or(share, |most| most.max(share)));
    }

    fn took(&mut self, time: Duration) {
        self.seconds += time.as_secs_f64();
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
