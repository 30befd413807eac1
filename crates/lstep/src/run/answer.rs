//! A trained model put to use: scoring on what is known now, and checking that it keeps the laws.

use super::fit::{RunFolder, Trained};
use crate::error::{Error, InputFault, Result};
use crate::event::{Clock, Events, Names, NodeId, Side, Time};
use crate::graph::EventLog;
use crate::live::Live;
use crate::model::laws::{Breach, Check, Law, check_model};
use crate::protocol::{NodeSet, Queries, StepRule};
use crate::read::read;
use serde::Serialize;
use std::path::Path;

/// A model that has observed everything it was given.
pub struct Answerer {
    live: Live,
    names: Names,
    clock: Clock,
    destinations: Vec<NodeId>,
}

/// A scored pair, as the files name it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scored {
    /// Who would act.
    pub source: String,
    /// With whom.
    pub destination: String,
    /// When.
    pub time: String,
    /// The model's logit.
    pub score: f64,
    /// Its sigmoid.
    pub probability: f64,
}

impl Answerer {
    /// Opens a run, lets it observe its own events to the end, and then those of another file.
    pub fn open(folder: &RunFolder, more: Option<&Path>) -> Result<Answerer> {
        let trained = Trained::open(folder)?;
        let session = trained.at_the_end()?;
        let (step, options) = (trained.config().protocol.step(), trained.config().data.options());
        let stream = trained.into_stream();
        let destinations: NodeSet = stream.log.events().destinations().iter().copied().collect();
        let mut answerer = Answerer {
            live: Live::resume(stream.log, session),
            names: stream.names,
            clock: stream.clock,
            destinations: destinations.iter().collect(),
        };
        if let Some(path) = more {
            let size = if let StepRule::Events(events) = step { events } else { 1 };
            answerer.observe(path, read(path, &options)?, size as usize)?;
        }
        Ok(answerer)
    }

    fn observe(&mut self, path: &Path, more: crate::read::Dataset, step: usize) -> Result<()> {
        let mut destinations: NodeSet = self.destinations.iter().copied().collect();
        for event in more.events.iter() {
            let mut node = |node, side| self.names.intern(&more.names.name(node).to_string(), side);
            let (source, destination) =
                (node(event.source, Side::Source)?, node(event.destination, Side::Destination)?);
            let time = self.clock.parse(&more.clock.show(event.time)).ok_or_else(|| {
                let fault =
                    InputFault::new(path.display().to_string(), "is no time of the run's clock", "write times alike");
                fault.column("time").value(more.clock.show(event.time))
            })?;
            let features = more.events.features().row(event.number as usize);
            self.live.push(source, destination, time, features)?;
            destinations.insert(destination);
            if (event.number as usize + 1).is_multiple_of(step) {
                self.live.observe()?;
            }
        }
        self.live.observe()?;
        self.destinations = destinations.iter().collect();
        Ok(())
    }

    /// The likeliest destinations of a source, all known ones being candidates.
    pub fn top(&self, source: &str, at: Option<&str>, count: usize) -> Result<Vec<Scored>> {
        let time = match at {
            Some(text) => {
                self.clock.parse(text).ok_or_else(|| Error::setting("at", text, "write the time as the events do"))?
            }
            None => self.after_the_last()?,
        };
        let source = self.node(source, Side::Source)?;
        let mut ask = Queries::new();
        ask.push(source, time, self.destinations.iter().copied());
        let scores = self.live.score(&ask)?;
        let mut ranked: Vec<(f64, NodeId)> =
            scores.values().iter().copied().zip(self.destinations.iter().copied()).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(count);
        Ok(ranked.into_iter().map(|(score, node)| self.scored(source, node, time, score)).collect())
    }

    /// The scores of the pairs of a file, in the order of their times, equal ones in the file's order.
    pub fn score_pairs(&self, path: &Path) -> Result<Vec<Scored>> {
        let options = crate::read::ReadOptions { sort: true, ..Default::default() };
        let pairs = read(path, &options)?;
        let mut ask = Queries::new();
        let mut rows = Vec::with_capacity(pairs.events.len());
        for event in pairs.events.iter() {
            let node = |node, side| self.node(&pairs.names.name(node).to_string(), side);
            let (source, destination) =
                (node(event.source, Side::Source)?, node(event.destination, Side::Destination)?);
            let text = pairs.clock.show(event.time);
            let time = self
                .clock
                .parse(&text)
                .ok_or_else(|| Error::setting("a time of the pairs", &text, "write times as the run's events do"))?;
            ask.push(source, time, [destination]);
            rows.push((source, destination, time));
        }
        let scores = self.live.score(&ask)?;
        let scored = rows.into_iter().zip(scores.values());
        Ok(scored.map(|((source, destination, time), &score)| self.scored(source, destination, time, score)).collect())
    }

    fn node(&self, id: &str, side: Side) -> Result<NodeId> {
        self.names.find(id, side).ok_or_else(|| {
            Error::setting("node", id, "no event names it on that side: check the id, or add its events with --events")
        })
    }

    /// The smallest step of the clock after the last event, so that the last event counts as past.
    fn after_the_last(&self) -> Result<Time> {
        let last = self.live.log().events().times().last().map_or(0.0, |time| time.value());
        let next = if matches!(self.clock, Clock::Float) { last.next_up() } else { last + 1.0 };
        Time::new(next).ok_or_else(|| Error::setting("at", next, "name a time"))
    }

    fn scored(&self, source: NodeId, destination: NodeId, time: Time, score: f64) -> Scored {
        Scored {
            source: self.names.name(source).to_string(),
            destination: self.names.name(destination).to_string(),
            time: self.clock.show(time),
            score,
            probability: 1.0 / (1.0 + (-score).exp()),
        }
    }
}

/// What an audit found.
#[derive(Debug, Clone, Serialize)]
pub struct Audited {
    /// The model.
    pub model: String,
    /// How many events it was checked on.
    pub events: usize,
    /// The laws that were checked.
    pub laws: Vec<String>,
    /// Those that were broken, with evidence.
    pub breaches: Vec<Breach>,
}

/// Checks the laws for a trained model on the first events of its own stream.
pub fn audit(folder: &RunFolder, events: usize) -> Result<Audited> {
    let trained = Trained::open(folder)?;
    let all = trained.stream().log.events();
    let first: Events = all.first(events);
    let log = EventLog::new(first).with_node_features(trained.stream().log.node_features().clone());
    let step = match trained.config().protocol.step() {
        StepRule::Events(events) => events,
        StepRule::DistinctTime => Check::default().step,
    };
    if log.len() < 2 * step as usize {
        return Err(Error::setting("events", log.len(), "an audit needs at least two steps of events"));
    }
    let open = || trained.before_the_first_event();
    let reopened = Trained::open(folder)?;
    let reopen = || reopened.before_the_first_event();
    let check = Check { step, ..Check::default() };
    let breaches = check_model(&|_| open(), &|_| reopen(), &log, check)?;
    let model = trained.config().model.to_string();
    Ok(Audited { model, events: log.len(), laws: Law::ALL.iter().map(ToString::to_string).collect(), breaches })
}
