//! A trained model put to use: scoring on what is known now, and checking that it keeps the laws.

use crate::error::{Error, FaultKind, InputFault, Remedy, Result};
use crate::event::NodeSet;
use crate::event::{Clock, Names, NodeId, Side, Time};
use crate::protocol::{StepRule, Visibility, cut};
use crate::query::Queries;
use crate::read::{Dataset, FeatureColumns, ReadOptions, read};
use crate::serving::Live;
use crate::training::RunFolder;
use crate::training::TrainedRun;
use serde::Serialize;
use std::path::Path;

/// A model that has observed everything it was given.
pub struct Scorer {
    live: Live,
    names: Names,
    clock: Clock,
    destinations: Vec<NodeId>,
    /// How the run's files call their columns.
    columns: ReadOptions,
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
    /// Whether events name both; one that none names is scored as a newcomer.
    pub known: bool,
}

impl Scorer {
    /// Opens a run, lets it observe its own events to the end, and then those of another file.
    pub fn open(folder: &RunFolder, more: Option<&Path>) -> Result<Scorer> {
        let trained = TrainedRun::open(folder)?;
        let session = trained.at_the_end()?;
        let (protocol, options) =
            (trained.config().protocol.clone(), trained.config().data.options());
        let stream = trained.into_stream();
        let destinations: NodeSet = stream.log.events().destinations().iter().copied().collect();
        let mut scorer = Scorer {
            live: Live::resume(stream.log, session),
            names: stream.names,
            clock: stream.clock,
            destinations: destinations.iter().collect(),
            columns: ReadOptions { node_features: None, ..options.clone() },
        };
        if let Some(path) = more {
            // What has happened since may come in any order; the log wants it in that of time.
            let more = read_like_the_run(path, &ReadOptions { sort: true, ..options })?;
            scorer.observe(path, &more, protocol.step(), protocol.visibility())?;
        }
        Ok(scorer)
    }

    /// Takes in further events in the steps that the run's own would have been taken in.
    fn observe(
        &mut self,
        path: &Path,
        more: &Dataset,
        rule: StepRule,
        visibility: Visibility,
    ) -> Result<()> {
        let fault = |problem: String, remedy: &str| {
            InputFault::new(path.display().to_string(), problem, remedy)
        };
        let (width, given) =
            (self.live.log().events().features().width(), more.events.features().width());
        if given != width {
            let problem =
                format!("has {given} features for each event, the run's events have {width}");
            return Err(fault(problem, "give the same columns").into());
        }
        let (width, given) = (self.live.log().node_features().width(), more.node_features.width());
        if given != width {
            let problem =
                format!("comes with {given} features for each node, the run's nodes have {width}");
            return Err(fault(problem, "give the same columns").into());
        }
        let mut destinations: NodeSet = self.destinations.iter().copied().collect();
        for step in cut(&more.events, 0..more.events.len() as u32, rule, visibility) {
            for number in step {
                let event = more.events.at(number as usize);
                let source = self.node_of(more, event.source, Side::Source)?;
                let destination = self.node_of(more, event.destination, Side::Destination)?;
                let shown = more.clock.show(event.time);
                let time = self.clock.parse(&shown).ok_or_else(|| {
                    fault("is no time of the run's clock".into(), "write times alike")
                        .column("time")
                        .value(&shown)
                })?;
                if let Some(last) =
                    self.live.log().events().times().last().filter(|last| time < **last)
                {
                    let problem = format!(
                        "is before the last event that is known, at {}",
                        self.clock.show(*last)
                    );
                    let remedy = "give only what has happened since";
                    return Err(fault(problem, remedy).column("time").value(&shown).into());
                }
                self.live.push(
                    source,
                    destination,
                    time,
                    more.events.features().row(number as usize),
                )?;
                destinations.insert(destination);
            }
            self.live.observe()?;
        }
        self.destinations = destinations.iter().collect();
        Ok(())
    }

    /// The node that another file's is here; a new one brings its features.
    fn node_of(&mut self, more: &Dataset, node: NodeId, side: Side) -> Result<NodeId> {
        let known = self.names.len();
        let here = self.names.intern(&more.names.name(node).to_string(), side)?;
        if here.index() == known && self.live.log().node_features().width() > 0 {
            self.live.push_node(more.node_features.row(node.index()))?;
        }
        Ok(here)
    }

    /// The likeliest destinations of a source, all known ones being candidates.
    pub fn top(&self, source: &str, at: Option<&str>, count: usize) -> Result<Vec<Scored>> {
        let time = match at {
            Some(text) => {
                let time = self.clock.parse(text);
                let time = time
                    .ok_or_else(|| Error::setting("at", text, "write the time as the events do"))?;
                if let Some(observed) = self.already_observed(time) {
                    let (time, remedy) = (text.to_string(), Remedy::text("ask about a later time"));
                    return Err(Error::TimeInPast { time, observed, remedy });
                }
                time
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
        Ok(ranked
            .into_iter()
            .map(|(score, node)| self.scored(&self.names, source, node, time, score))
            .collect())
    }

    /// The scores of the pairs of a file, in the order of their times, equal ones in the file's
    /// order. Nodes that no event names are newcomers: a service is asked about them before their
    /// first event.
    pub fn score_pairs(&self, path: &Path) -> Result<Vec<Scored>> {
        let options =
            ReadOptions { features: FeatureColumns::None, sort: true, ..self.columns.clone() };
        let pairs = read_like_the_run(path, &options)?;
        let mut names = self.names.clone();
        let mut ask = Queries::new();
        let mut rows = Vec::with_capacity(pairs.events.len());
        for event in pairs.events.iter() {
            let mut node = |node, side| names.intern(&pairs.names.name(node).to_string(), side);
            let (source, destination) =
                (node(event.source, Side::Source)?, node(event.destination, Side::Destination)?);
            let text = pairs.clock.show(event.time);
            let time = self.clock.parse(&text).ok_or_else(|| {
                Error::setting("a time of the pairs", &text, "write times as the run's events do")
            })?;
            if let Some(observed) = self.already_observed(time) {
                let problem =
                    format!("is no time to come, the model has observed events up to {observed}");
                let file = path.display().to_string();
                let fault = InputFault::new(file, problem, "ask about a later time");
                return Err(fault.column("time").value(&text).into());
            }
            ask.push(source, time, [destination]);
            rows.push((source, destination, time));
        }
        let scores = self.live.score(&ask)?;
        let scored = rows.into_iter().zip(scores.values());
        let scored = scored.map(|((source, destination, time), &score)| {
            self.scored(&names, source, destination, time, score)
        });
        Ok(scored.collect())
    }

    fn node(&self, id: &str, side: Side) -> Result<NodeId> {
        self.names.find(id, side).ok_or_else(|| Error::UnknownNode { id: id.to_string() })
    }

    /// The time of the last event, if it is not before the time asked about: a state that has
    /// observed an event cannot answer as if it had not happened.
    fn already_observed(&self, time: Time) -> Option<String> {
        let last = self.live.log().events().times().last().filter(|last| time <= **last);
        last.map(|last| self.clock.show(*last))
    }

    /// The smallest step of the clock after the last event, so that the last event counts as past.
    fn after_the_last(&self) -> Result<Time> {
        let last = self.live.log().events().times().last().map_or(0.0, |time| time.value());
        let next = if matches!(self.clock, Clock::Float) { last.next_up() } else { last + 1.0 };
        Time::new(next).ok_or_else(|| Error::setting("at", next, "name a time"))
    }

    fn scored(
        &self,
        names: &Names,
        source: NodeId,
        destination: NodeId,
        time: Time,
        score: f64,
    ) -> Scored {
        Scored {
            source: names.name(source).to_string(),
            destination: names.name(destination).to_string(),
            time: self.clock.show(time),
            score,
            probability: 1.0 / (1.0 + (-score).exp()),
            known: [source, destination].iter().all(|node| node.index() < self.names.len()),
        }
    }
}

/// Reads a file whose columns are called as those of the run's events. Arguments that would name
/// them otherwise belong to other jobs.
fn read_like_the_run(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    read(path, options).map_err(|error| match error {
        Error::Input(mut fault) if fault.kind == FaultKind::Columns => {
            let name = |given: &Option<String>, usual: &str| match given {
                Some(number) if number.parse::<usize>().is_ok() => format!("column {number}"),
                Some(name) => name.clone(),
                None => usual.to_string(),
            };
            fault.remedy = Remedy::from(format!(
                "it needs the columns of the run's events: {}, {} and {}",
                name(&options.source, "source"),
                name(&options.destination, "destination"),
                name(&options.time, "time")
            ));
            Error::Input(fault)
        }
        other => other,
    })
}
