//! The laws checked for a trained run on its own events.

use crate::audit::laws::{Breach, Check, Law, Questions, check_model, questions};
use crate::error::{Error, Remedy, Result};
use crate::event::Events;
use crate::graph::EventLog;
use crate::protocol::StepRule;
use crate::training::RunFolder;
use crate::training::TrainedRun;
use serde::Serialize;

/// What an audit found.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// The model.
    pub model: String,
    /// How many events it was checked on.
    pub events: usize,
    /// What was asked.
    pub questions: Questions,
    /// The laws that were checked.
    pub laws: Vec<String>,
    /// Those that were broken, with evidence.
    pub breaches: Vec<Breach>,
}

/// Checks the laws for a trained model on the first events of its own stream.
pub fn audit(folder: &RunFolder, events: usize) -> Result<AuditReport> {
    let trained = TrainedRun::open(folder)?;
    let all = trained.stream().log.events();
    let first: Events = all.first(events);
    let log = EventLog::new(first).with_node_features(trained.stream().log.node_features().clone());
    let step = match trained.config().protocol.step() {
        StepRule::Events(events) => events,
        StepRule::DistinctTime => Check::default().step,
    };
    let too_few = |remedy: &'static str| Error::TooFew {
        what: "events",
        found: log.len().to_string(),
        remedy: Remedy::text(remedy),
    };
    if log.len() < 2 * step as usize {
        return Err(too_few("an audit needs at least two steps of events"));
    }
    let check = Check { step, ..Check::default() };
    let questions = questions(&log, check);
    if questions.with_history == 0 && log.len() < all.len() {
        return Err(too_few(
            "nobody asked about has met anybody before, so laws would be kept easily: give more \
             events",
        ));
    }
    let open = || trained.before_the_first_event();
    let reopened = TrainedRun::open(folder)?;
    let reopen = || reopened.before_the_first_event();
    let breaches = check_model(&|_| open(), &|_| reopen(), &log, check)?;
    let model = trained.config().model.to_string();
    let laws = Law::ALL.iter().map(ToString::to_string).collect();
    Ok(AuditReport { model, events: log.len(), questions, laws, breaches })
}
