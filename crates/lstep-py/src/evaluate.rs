//! Evaluation of the library's models and of Python's under one protocol.

use crate::error::Raised;
use crate::foreign::{Foreign, Lesson, no_model};
use crate::fork::refuse_child;
use crate::protocol::Asked;
use crate::stream::Stream;
use crate::watch::Watch;
use lstep::Result;
use lstep::evaluation::{Evaluation, evaluate as evaluate_pass, train_observing};
use lstep::model::ModelConfig;
use lstep::protocol::{EvalScope, Protocol, Subject, negatives_sha256};
use lstep::results::{EvaluationReport, Outcome};
use lstep::stream::tied_events;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::time::Instant;

/// A model as Python names it: a name with settings, or an object with its name.
#[derive(FromPyObject)]
pub enum Entry {
    Named(String, Vec<(String, String)>),
    Object(String, Py<PyAny>),
}

/// A report as JSON, and what its rows' models are called.
pub type Told = (String, Vec<String>);

/// A report of the library, with its counting models.
pub fn told(report: &EvaluationReport) -> Told {
    let rows = report.results.iter().chain(&report.baselines);
    (report.to_json(), rows.map(|row| row.model.to_string()).collect())
}

/// Evaluates models, and gives the report. Rows come in the order of the models.
#[pyfunction]
#[pyo3(signature = (stream, entries, asked, train_seed, on_progress))]
pub fn evaluate(
    py: Python<'_>,
    stream: &Stream,
    entries: Vec<Entry>,
    asked: Asked,
    train_seed: u64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Told> {
    refuse_child()?;
    let raised = Raised::default();
    let mut watch = Watch::new(on_progress, raised.clone());
    let report = py.detach(|| {
        let protocol = asked.protocol(&stream.inner.name)?;
        let scope = asked.scope(&protocol)?;
        if entries.is_empty() {
            return Err(no_model("missing"));
        }
        let mut report = about(&stream.inner, &protocol);
        let (mut results, mut ties, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut labels = Vec::new();
        for entry in &entries {
            match entry {
                Entry::Named(name, settings) => {
                    let model: ModelConfig = name.parse()?;
                    let plain = settings.is_empty();
                    let settings = settings.iter().map(|(key, value)| format!("{key} = {value}"));
                    let model = with_settings(&model, settings)?;
                    names.push(model.to_string());
                    let found = Evaluation::new(&stream.inner)
                        .models([model])
                        .protocol(protocol.clone())
                        .scope(scope.clone())
                        .on_progress(|now| watch.tell(now.model, now.done, now.of))
                        .run()?;
                    // A model without settings is called as it was asked for: EdgeBank's memory
                    // may follow the negatives.
                    labels.extend(found.results.iter().map(|row| match plain {
                        true => name.clone(),
                        false => row.model.to_string(),
                    }));
                    let found = serde_json::to_value(&found).expect("a report is plain data");
                    append(&mut results, &found["results"]);
                    append(&mut ties, &found["ties"]);
                }
                Entry::Object(name, object) => {
                    names.push(name.clone());
                    let given = Python::attach(|py| object.clone_ref(py));
                    let model = Foreign::new(given, raised.clone(), true);
                    let asked = (&protocol, &scope, train_seed);
                    results.extend(foreign(stream, &model, name, asked, &mut watch)?);
                    labels.resize(results.len(), name.clone());
                }
            }
        }
        report["model"] = Value::from(names.join(", "));
        report["results"] = Value::from(results);
        if !ties.is_empty() {
            report["ties"] = Value::from(ties);
        }
        Ok((report.to_string(), labels))
    });
    raised.result(py, report)
}

fn append(rows: &mut Vec<Value>, found: &Value) {
    rows.extend(found.as_array().into_iter().flatten().cloned());
}

/// A model's settings with others laid over them.
pub fn with_settings(
    model: &ModelConfig,
    settings: impl Iterator<Item = String>,
) -> Result<ModelConfig> {
    let text: Vec<String> = settings.collect();
    if text.is_empty() {
        return Ok(model.clone());
    }
    let table: toml::Table = text.join("\n").parse().map_err(|error: toml::de::Error| {
        lstep::Error::setting("settings", text.join(", "), error.message().to_string())
    })?;
    model.with(table)
}

/// What a report says of a stream and a protocol.
fn about(stream: &lstep::stream::Stream, protocol: &Protocol) -> Value {
    json!({
        "dataset": stream.name,
        "nodes": stream.names.len(),
        "events": stream.log.len(),
        "tied_events": tied_events(stream.log.events()),
        "protocol": protocol.name(),
        "protocol_settings": protocol,
        "threads": rayon::current_num_threads(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Runs a Python model through every pass of the protocol.
fn foreign(
    stream: &Stream,
    model: &Foreign,
    name: &str,
    (protocol, scope, seed): (&Protocol, &EvalScope, u64),
    watch: &mut Watch,
) -> Result<Vec<Value>> {
    let given = stream.inner.under(protocol)?;
    let (log, names) = (&given.log, &given.names);
    let subject = Subject { events: log.events(), names };
    let plan = protocol.plan(subject)?;
    let (step, visibility) = (protocol.step(), protocol.visibility());
    let lesson = Lesson { split: plan.split(), step, visibility, seed, events: None };
    let started = Instant::now();
    let mut trained = model.open(log, Some(lesson))?;
    let training_seconds = started.elapsed().as_secs_f64();
    train_observing(trained.as_mut(), log, plan.split(), step)?;
    let mut rows = Vec::new();
    for pass in plan.passes(subject, scope)? {
        let mut session = trained.fork();
        let outcomes = evaluate_pass(session.as_mut(), log, &pass, &mut |done, of| {
            watch.tell(name, done, of)
        })?;
        for (outcome, query_set) in outcomes.iter().zip(&pass.query_sets) {
            let hash = negatives_sha256(query_set, subject.events, subject.names);
            rows.push(row(name, outcome, hash, query_set.negatives(), training_seconds));
        }
    }
    Ok(rows)
}

/// A row of results with the fields that the library's own rows have.
fn row(
    name: &str,
    outcome: &Outcome,
    hash: String,
    negatives: &lstep::protocol::Negatives,
    training_seconds: f64,
) -> Value {
    let mut row = json!({
        "name": name,
        "model": { "name": name, "language": "python" },
        "negatives_sha256": hash,
        "negatives_filled": negatives.filled,
        "events_per_second": outcome.events as f64 / outcome.seconds.max(1e-9),
        "training_seconds": training_seconds,
    });
    if negatives.generated {
        row["negatives_generated"] = Value::from(true);
    }
    let numbers = serde_json::to_value(outcome).expect("an outcome is plain data");
    if let (Value::Object(row), Value::Object(numbers)) = (&mut row, numbers) {
        row.extend(numbers);
    }
    row
}
