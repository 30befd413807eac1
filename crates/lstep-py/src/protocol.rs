//! Protocols and scopes from the words of Python.

use lstep::protocol::{EvalScope, Protocol, ProtocolOptions, StepRule, Strategy};
use lstep::settings::RunConfig;
use lstep::{Error, Result};
use pyo3::prelude::*;
use std::path::PathBuf;

/// How a stream is evaluated, as Python says it. What is absent is usual.
#[derive(FromPyObject)]
pub struct Asked {
    #[pyo3(item)]
    protocol: String,
    #[pyo3(item)]
    folder: Option<PathBuf>,
    #[pyo3(item)]
    step: Option<StepName>,
    #[pyo3(item)]
    visibility: Option<String>,
    #[pyo3(item)]
    split: Option<(f64, f64)>,
    #[pyo3(item)]
    held_out: Option<f64>,
    #[pyo3(item)]
    per_event: Option<usize>,
    #[pyo3(item)]
    questions: Option<usize>,
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    ties: Option<String>,
    #[pyo3(item)]
    negatives: Option<Vec<String>>,
    #[pyo3(item)]
    parts: Option<Vec<String>>,
    #[pyo3(item)]
    settings: Option<Vec<String>>,
}

/// A number of events, or `time`.
#[derive(FromPyObject)]
enum StepName {
    Events(u32),
    Name(String),
}

impl Asked {
    /// The protocol for a dataset. Options that it does not read are refused.
    pub fn protocol(&self, dataset: &str) -> Result<Protocol> {
        self.over(Protocol::named(&self.protocol, dataset, self.folder.clone())?)
    }

    /// The same over a protocol that has other defaults, where it is that one.
    pub fn protocol_over(&self, usual: Protocol, dataset: &str) -> Result<Protocol> {
        if usual.name() == self.protocol { self.over(usual) } else { self.protocol(dataset) }
    }

    fn over(&self, protocol: Protocol) -> Result<Protocol> {
        let given = [
            ("split", self.split.is_some()),
            ("step", self.step.is_some()),
            ("visibility", self.visibility.is_some()),
            ("held_out", self.held_out.is_some()),
            ("per_event", self.per_event.is_some()),
            ("questions", self.questions.is_some()),
            ("seed", self.seed.is_some()),
            ("ties", self.ties.is_some()),
            ("folder", self.folder.is_some()),
        ];
        let unread = |(name, given): &&(&str, bool)| *given && !protocol.options().contains(name);
        if let Some((name, _)) = given.iter().find(unread) {
            let remedy = format!(
                "leave it out: protocol {} settles it; it belongs to protocol {}",
                protocol.name(),
                Protocol::names_with(name).join(", ")
            );
            return Err(Error::setting("argument", format!("{name}="), remedy));
        }
        let step = match &self.step {
            None => None,
            Some(StepName::Events(0)) => {
                return Err(Error::setting("step", 0, "give at least one event"));
            }
            Some(StepName::Events(events)) => Some(StepRule::Events(*events)),
            Some(StepName::Name(name)) if name == "time" => Some(StepRule::DistinctTime),
            Some(StepName::Name(name)) => {
                return Err(Error::setting("step", name, "give a number of events, or \"time\""));
            }
        };
        protocol.with_options(&ProtocolOptions {
            split: self.split,
            step,
            visibility: self.visibility.as_deref().map(str::parse).transpose()?,
            held_out: self.held_out,
            per_event: self.per_event,
            questions: self.questions,
            seed: self.seed,
            ties: self.ties.as_deref().map(str::parse).transpose()?,
        })
    }

    /// What is asked of a run: its own kinds of negatives where nothing is said.
    pub fn scope_of_run(&self, config: &RunConfig) -> Result<EvalScope> {
        let mut scope = self.scope(&config.protocol)?;
        if self.negatives.is_none() {
            scope.strategies = config.scope().strategies;
        }
        Ok(scope)
    }

    /// What is asked under a protocol: the command's own choice where nothing is said.
    pub fn scope(&self, protocol: &Protocol) -> Result<EvalScope> {
        if let (Some(own), Some(named)) = (protocol.own_negatives(), &self.negatives)
            && named.iter().any(|name| *name != own.to_string())
        {
            let remedy = format!("leave it out: protocol {} has its own", protocol.name());
            return Err(Error::setting("negatives", named.join(", "), remedy));
        }
        let strategies = match &self.negatives {
            _ if protocol.own_negatives().is_some() => {
                protocol.own_negatives().into_iter().collect()
            }
            None => Strategy::DRAWN.to_vec(),
            Some(names) => once("negatives", parsed(names)?)?,
        };
        let usual = EvalScope::default();
        Ok(EvalScope {
            parts: match &self.parts {
                None => usual.parts,
                Some(names) => once("parts", parsed(names)?)?,
            },
            settings: match &self.settings {
                None => usual.settings,
                Some(names) => once("settings", parsed(names)?)?,
            },
            strategies,
        })
    }
}

fn parsed<T: std::str::FromStr<Err = Error>>(names: &[String]) -> Result<Vec<T>> {
    names.iter().map(|name| name.parse()).collect()
}

/// Names that are each there once.
fn once<T: PartialEq + std::fmt::Display>(what: &'static str, names: Vec<T>) -> Result<Vec<T>> {
    if names.is_empty() {
        return Err(Error::setting(what, "[]", "name at least one, or leave it out"));
    }
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return Err(Error::duplicate(what, name, "name it once"));
        }
    }
    Ok(names)
}
