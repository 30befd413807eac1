//! The laws, checked for a Python model or one of the library's.

use crate::error::Raised;
use crate::evaluate::{Entry, with_settings};
use crate::foreign::{Abilities, Foreign, Lesson};
use crate::fork::refuse_child;
use crate::stream::Stream;
use crate::watch::Watch;
use lstep::audit::laws::{
    Check, Findings, Law, Opening, Submission, Tolerance, check_config, check_model, questions,
};
use lstep::error::Remedy;
use lstep::graph::EventLog;
use lstep::model::ModelConfig;
use lstep::protocol::{Split, StepRule, Visibility};
use lstep::{Error, Result};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Training that is done again to see what it depends on takes about so many events.
const LEARNING_EVENTS: usize = 1_000;

/// How much an audit asks, as Python says it.
#[derive(FromPyObject)]
pub struct Size {
    #[pyo3(item)]
    events: usize,
    #[pyo3(item)]
    rounds: u64,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    step: u32,
    #[pyo3(item)]
    steps: usize,
    #[pyo3(item)]
    rows: usize,
    #[pyo3(item)]
    candidates: usize,
    #[pyo3(item)]
    tolerance: f64,
}

/// Checks all laws, and gives what was found as JSON.
#[pyfunction]
#[pyo3(signature = (stream, entry, size, on_progress))]
pub fn audit(
    py: Python<'_>,
    stream: &Stream,
    entry: Entry,
    size: Size,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    refuse_child()?;
    let raised = Raised::default();
    let mut watch = Watch::new(on_progress, raised.clone());
    let found = py.detach(|| {
        let all = &stream.inner.log;
        let log = EventLog::new(all.events().first(size.events))
            .with_node_features(all.node_features().clone());
        let step = size.step.max(1);
        if log.len() < 2 * step as usize {
            return Err(Error::TooFew {
                what: "events",
                found: log.len().to_string(),
                remedy: Remedy::text("an audit needs at least two steps: give step= fewer events"),
            });
        }
        let check = Check {
            step,
            steps: size.steps.max(2),
            rows: size.rows.clamp(1, step as usize),
            candidates: size.candidates.max(2),
            visibility: Visibility::Event,
            seed: size.seed,
        };
        if questions(&log, check).with_history == 0 {
            return Err(Error::TooFew {
                what: "events with a history",
                found: "0".into(),
                remedy: Remedy::text(
                    "nobody asked about has met anybody before, so laws would be kept easily: \
                     give more events",
                ),
            });
        }
        let mut findings: Option<Findings> = None;
        let mut notes = Vec::new();
        let rounds = size.rounds.max(1);
        for round in 0..rounds {
            let check = Check { seed: size.seed + round, ..check };
            let found = match &entry {
                Entry::Named(name, settings) => {
                    let model: ModelConfig = name.parse()?;
                    let settings = settings.iter().map(|(key, value)| format!("{key} = {value}"));
                    check_config(&with_settings(&model, settings)?, &log, check)?
                }
                Entry::Object(_, object) => {
                    let given = Python::attach(|py| object.clone_ref(py));
                    let model = Foreign::new(given, raised.clone(), false);
                    let (found, abilities) = examine(&model, &log, check, size.tolerance)?;
                    notes = not_checked(&abilities);
                    found
                }
            };
            match &mut findings {
                None => findings = Some(found),
                Some(findings) => findings.add(&found),
            }
            if watch.tell("laws", round + 1, rounds).is_break() {
                return Err(Error::Interrupted);
            }
        }
        let findings = findings.expect("there was a round");
        let foreign = matches!(entry, Entry::Object(..));
        Ok(report(&findings, &entry, &log, (rounds, size.seed), foreign, size.tolerance, &notes))
    });
    raised.result(py, found)
}

/// Checks a Python model. It is trained once; training again shows what it depends on.
fn examine(
    model: &Foreign,
    log: &EventLog,
    check: Check,
    tolerance: f64,
) -> Result<(Findings, Abilities)> {
    let abilities = model.abilities()?;
    let steps = lstep::protocol::cut(
        log.events(),
        0..log.len() as u32,
        StepRule::Events(check.step),
        check.visibility,
    );
    // The laws ask about the first step after seven tenths; what comes before it trains.
    let first = ((steps.len() as f64 * 0.7) as usize).clamp(1, steps.len() - 1);
    let split = Split::at(log.events(), steps[first].start);
    fn lesson(split: &Split, check: Check) -> Lesson<'_> {
        Lesson {
            split,
            step: StepRule::Events(check.step),
            visibility: check.visibility,
            seed: check.seed,
            events: Some(LEARNING_EVENTS),
        }
    }
    let object = model.object(log, Some(lesson(&split, check)))?;
    let reopened = if abilities.save { Some(model.reopened(&object)?) } else { None };
    let open = |opening: &Opening<'_>| model.open_again(&object, opening.log);
    let reopen =
        |opening: &Opening<'_>| model.open_again(reopened.as_ref().unwrap_or(&object), opening.log);
    let learn = |opening: &Opening<'_>| {
        let split = Split::at(opening.log.events(), opening.training);
        model.open(opening.log, Some(lesson(&split, check)))
    };
    let tolerance =
        Tolerance { of_row: tolerance, of_call: Tolerance::ROUNDING.of_call * tolerance / 1e-3 };
    let submission =
        Submission::new(&open).reopened_by(&reopen).learned_by(&learn).within(tolerance);
    Ok((check_model(&submission, log, check)?, abilities))
}

/// Laws that say nothing of a model that lacks what they are about.
fn not_checked(abilities: &Abilities) -> Vec<(Law, &'static str)> {
    let mut notes = Vec::new();
    if !abilities.save {
        notes.push((Law::Reopening, "it has no save(path) and load(path)"));
    }
    if !abilities.train && !abilities.prepare {
        notes.push((Law::AfterTraining, "it has neither train(past, batches) nor prepare(events)"));
    }
    notes
}

fn report(
    findings: &Findings,
    entry: &Entry,
    log: &EventLog,
    (rounds, seed): (u64, u64),
    foreign: bool,
    tolerance: f64,
    notes: &[(Law, &'static str)],
) -> String {
    let (Entry::Named(name, _) | Entry::Object(name, _)) = entry;
    let laws: Vec<Value> = findings
        .laws
        .iter()
        .map(|law| {
            let mut told = serde_json::to_value(law).expect("a report is plain data");
            if let Some((_, why)) = notes.iter().find(|(noted, _)| *noted == law.law) {
                told["not_checked"] = Value::from(*why);
            }
            told
        })
        .collect();
    json!({
        "model": name,
        "events": log.len(),
        "rounds": rounds,
        "seed": seed,
        "questions": findings.questions,
        "tolerance": if foreign { tolerance } else { 0.0 },
        "laws": laws,
    })
    .to_string()
}
