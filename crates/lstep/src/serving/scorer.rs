//! Scores by name: a trained model asked about the sources, pairs and times of files, on what is
//! known now.

use crate::error::{Error, FaultKind, InputFault, Remedy, Result};
use crate::event::{Clock, Event, Features, Name, Names, NodeId, Side, Time};
use crate::protocol::cut;
use crate::query::Queries;
use crate::read::{Dataset, FeatureColumns, MemoryPairs, ReadOptions, read};
use crate::serving::{Bundle, Explanation, TopK};
use crate::training::RunFolder;
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// A trained model that is asked by name and follows new events.
pub struct Scorer {
    bundle: Bundle,
}

/// An event that has happened since the model was trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewEvent<'a> {
    /// Who acts.
    pub source: Name<'a>,
    /// With whom.
    pub destination: Name<'a>,
    /// When, on the model's clock ([`Bundle::clock`]).
    pub time: Time,
    /// The event's features, as many as the model's events have.
    pub features: &'a [f32],
    /// The features of the source and of the destination. They count for a node that is new to a
    /// stream whose nodes have features; otherwise they may be empty.
    pub node_features: [&'a [f32]; 2],
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
    /// The model's score: higher is likelier, and only the order counts.
    pub score: f64,
    /// How likely the source's event at that time is with this destination and no other, if the
    /// model is calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Whether events name both; one that none names is scored as a newcomer.
    pub known: bool,
    /// Why, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Explanation>,
}

impl From<Bundle> for Scorer {
    fn from(bundle: Bundle) -> Scorer {
        Scorer { bundle }
    }
}

impl Scorer {
    /// Opens the folder of a run, which observes its own events to the end, or an exported model,
    /// which has done so.
    pub fn open(path: impl AsRef<Path>) -> Result<Scorer> {
        let path = path.as_ref();
        let bundle = match path.is_file() {
            true => Bundle::read(path)?,
            false => Bundle::of_run(&RunFolder::new(path))?,
        };
        Ok(Scorer::from(bundle))
    }

    /// What it scores with, to be written to a file, for example.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The bundle, with everything that was observed.
    pub fn into_bundle(self) -> Bundle {
        self.bundle
    }

    /// Takes in the events of a file in the steps that the run's own would have been taken in.
    pub fn observe_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let step_ends = self.read_events(path.as_ref())?.observe(self)?;
        debug_assert!(step_ends.last().is_none_or(|&end| end as usize == self.bundle.events()));
        Ok(())
    }

    /// The same for events that are in memory.
    pub fn observe_memory(&mut self, more: Dataset) -> Result<()> {
        let name = more.name.clone();
        self.new_events(Path::new(&name), more)?.observe(self).map(drop)
    }

    /// Takes in events as one step. They are all refused, and nothing changes, if one of them is
    /// before the last event or has other features than the model's events.
    pub fn observe(&mut self, step: &[NewEvent<'_>]) -> Result<()> {
        self.check(step)?;
        for event in step {
            let [source, destination] = [
                (event.source, Side::Source, event.node_features[0]),
                (event.destination, Side::Destination, event.node_features[1]),
            ]
            .map(|(name, side, features)| self.node_or_new(name, side, features));
            let (source, destination) = (source?, destination?);
            self.bundle.live.push(source, destination, event.time, event.features)?;
            self.bundle.destinations.insert(destination);
        }
        self.bundle.live.observe()
    }

    /// Refuses a step that [`Scorer::observe`] could not take in whole.
    pub(super) fn check(&self, step: &[NewEvent<'_>]) -> Result<()> {
        let Bundle { live, names, .. } = &self.bundle;
        let log = live.log();
        let mut last = log.events().times().last().copied();
        let fits = |what, row: &[f32], width| {
            if row.len() != width {
                Err(Error::LengthMismatch { what, left: row.len(), right: width })
            } else if row.iter().all(|value| value.is_finite()) {
                Ok(())
            } else {
                Features::new(width, row.to_vec()).map(drop)
            }
        };
        for (place, event) in step.iter().enumerate() {
            if let Some(last) = last.filter(|last| event.time < *last) {
                return Err(Error::OutOfOrder {
                    event: (log.len() + place) as u64,
                    time: event.time.value(),
                    previous_time: last.value(),
                });
            }
            last = Some(event.time);
            fits("features of a new event", event.features, log.events().features().width())?;
            for (name, side, features) in [
                (event.source, Side::Source, event.node_features[0]),
                (event.destination, Side::Destination, event.node_features[1]),
            ] {
                let width = log.node_features().width();
                if width > 0 && names.find_name(name, side).is_none() {
                    fits("features of a new node", features, width)?;
                }
            }
        }
        Ok(())
    }

    /// Lets the state follow events that have been put into the log.
    pub(super) fn observe_pushed(&mut self, step: &[Event]) -> Result<()> {
        step.iter().for_each(|event| {
            self.bundle.destinations.insert(event.destination);
        });
        self.bundle.live.observe()
    }

    pub(super) fn node_or_new(
        &mut self,
        name: Name<'_>,
        side: Side,
        features: &[f32],
    ) -> Result<NodeId> {
        let Bundle { live, names, .. } = &mut self.bundle;
        let known = names.len();
        let node = names.intern_from(name, side)?;
        if node.index() == known && live.log().node_features().width() > 0 {
            live.push_node(features)?;
        }
        Ok(node)
    }

    /// Takes in what another scorer has observed since the two were equal, in its steps, which are
    /// told by the numbers after their last events.
    pub(super) fn catch_up(&mut self, ahead: &Scorer, step_ends: &[u32]) -> Result<()> {
        let (here, ahead) = (&mut self.bundle, &ahead.bundle);
        for node in (here.names.len()..ahead.names.len()).map(|node| NodeId(node as u32)) {
            let side = ahead.names.side(node).unwrap_or(Side::Source);
            here.names.intern_from(ahead.names.name(node), side)?;
            if here.live.log().node_features().width() > 0 {
                here.live.push_node(ahead.live.log().node_features().row(node.index()))?;
            }
        }
        let events = ahead.live.log().events();
        for &end in step_ends {
            for number in here.live.log().len()..end as usize {
                let event = events.at(number);
                let features = events.features().row(number);
                here.live.push(event.source, event.destination, event.time, features)?;
                here.destinations.insert(event.destination);
            }
            here.live.observe()?;
        }
        Ok(())
    }

    /// Reads events that have happened since, and refuses those that cannot be taken in.
    pub(super) fn read_events(&self, path: &Path) -> Result<NewEvents> {
        let options = self.bundle.about().settings.data.options();
        let options = ReadOptions { more: Vec::new(), ..options };
        // A model that has travelled may have left the table of its nodes behind: only new nodes
        // would need it. What has happened since may come in any order; the log wants that of time.
        let node_features = options.node_features.clone().filter(|table| table.exists());
        let more = read_like_the_run(path, &ReadOptions { sort: true, node_features, ..options })?;
        self.new_events(path, more)
    }

    /// Takes in the events of a file that an update of the run wrote.
    pub(super) fn observe_update(&mut self, path: &Path) -> Result<()> {
        let data = &self.bundle.about().settings.data;
        let node_features = data.node_features.clone().filter(|table| table.exists());
        let (bipartite, sort) = (self.bundle.names.separated(), true);
        let options = ReadOptions { bipartite, sort, node_features, ..ReadOptions::default() };
        let events = read(path, &options)?;
        self.new_events(path, events)?.observe(self).map(drop)
    }

    /// Refuses events that cannot be taken in.
    pub(super) fn new_events(&self, path: &Path, more: Dataset) -> Result<NewEvents> {
        let Bundle { live, names, clock, .. } = &self.bundle;
        let fault = |problem: String, remedy: &str| {
            InputFault::new(path.display().to_string(), problem, remedy)
        };
        let (width, given) =
            (live.log().events().features().width(), more.events.features().width());
        if given != width {
            let problem =
                format!("has {given} features for each event, the run's events have {width}");
            return Err(fault(problem, "give the same columns").into());
        }
        let (width, given) = (live.log().node_features().width(), more.node_features.width());
        let known = |event: Event| {
            names.find_name(more.names.name(event.source), Side::Source).is_some()
                && names.find_name(more.names.name(event.destination), Side::Destination).is_some()
        };
        if given != width && (given > 0 || !more.events.iter().all(known)) {
            let problem =
                format!("comes with {given} features for each node, the run's nodes have {width}");
            return Err(fault(problem, "give the same columns").into());
        }
        let mut times = Vec::with_capacity(more.events.len());
        for &time in more.events.times() {
            times.push(clock.convert(time, &more.clock).ok_or_else(|| {
                fault("is no time of the run's clock".into(), "write times alike")
                    .column("time")
                    .value(more.clock.show(time))
            })?);
        }
        if let (Some(last), Some(&first)) = (live.log().events().times().last(), times.first())
            && first < *last
        {
            let problem =
                format!("is before the last event that is known, at {}", clock.show(*last));
            let remedy = "give only what has happened since";
            let shown = more.clock.show(more.events.times()[0]);
            return Err(fault(problem, remedy).column("time").value(shown).into());
        }
        Ok(NewEvents { events: more, times })
    }

    /// The likeliest destinations of a source, all known ones being candidates. A source that no
    /// event names is refused; [`Scorer::recommender`] answers for it as for a newcomer.
    pub fn top(&self, source: &str, at: Option<&str>, count: usize) -> Result<Vec<Scored>> {
        self.node(source, Side::Source)?;
        let wanted = TopK {
            k: count,
            sources: Some(vec![source.to_string()]),
            at: at.map(String::from),
            ..TopK::default()
        };
        self.top_scored(&wanted)
    }

    /// The answers to a [`TopK`] as one list.
    pub fn top_scored(&self, wanted: &TopK) -> Result<Vec<Scored>> {
        let recommender = self.recommender(wanted)?;
        let (names, time, mut scored) = (recommender.names(), recommender.at(), Vec::new());
        recommender.run(|_, found| {
            scored.extend(found.into_iter().map(|row| Scored {
                source: names.name(row.source).to_string(),
                destination: names.name(row.destination).to_string(),
                time: time.clone(),
                score: row.score,
                probability: row.probability,
                known: row.known,
                why: row.why,
            }));
            Ok(())
        })?;
        Ok(scored)
    }

    /// The time of a question, as a user wrote it; just after the last event if it is not said.
    pub(super) fn time_asked(&self, at: Option<&str>) -> Result<Time> {
        let Some(text) = at else { return self.after_the_last() };
        let time = self.bundle.clock.parse(text);
        let time =
            time.ok_or_else(|| Error::setting("at", text, "write the time as the events do"))?;
        if let Some(observed) = self.already_observed(time) {
            let (time, remedy) = (text.to_string(), Remedy::text("ask about a later time"));
            return Err(Error::TimeInPast { time, observed, remedy });
        }
        Ok(time)
    }

    /// The scores of the pairs of a file, in the order of their times, equal ones in the file's
    /// order. Nodes that no event names are newcomers: a service is asked about them before their
    /// first event.
    pub fn score_pairs(&self, path: &Path) -> Result<Vec<Scored>> {
        // Every question wants an answer, whatever was left out of the events.
        let options = ReadOptions {
            features: FeatureColumns::None,
            sort: true,
            skip_bad: false,
            dedup: false,
            node_features: None,
            more: Vec::new(),
            ..self.bundle.about().settings.data.options()
        };
        let Dataset { events, names, clock, .. } = read_like_the_run(path, &options)?;
        let pairs = events.iter().map(|event| (event.source, event.destination, Some(event.time)));
        let file = path.display().to_string();
        let (ask, names) = self.questions(&file, &names, &clock, pairs)?;
        let scores = self.bundle.live.score(&ask)?;
        let scored = ask.rows().zip(scores.values()).map(|(row, &score)| {
            self.scored(&names, row.source, row.candidates[0], row.time, score)
        });
        Ok(scored.collect())
    }

    /// The scores of pairs in memory, in their order. Without times they are asked about the moment
    /// after the last event.
    pub fn score_memory(&self, pairs: &MemoryPairs) -> Result<Vec<f64>> {
        let clock = pairs.times.as_ref().map_or(self.bundle.clock, |(_, clock)| *clock);
        let time = |row: usize| pairs.times.as_ref().map(|(times, _)| times[row]);
        let rows = (0..pairs.sources.len())
            .map(|row| (pairs.sources[row], pairs.destinations[row], time(row)));
        let (ask, _) = self.questions(&pairs.name, &pairs.names, &clock, rows)?;
        Ok(self.bundle.live.score(&ask)?.values().to_vec())
    }

    /// One row for each pair of another table, and the names of all its nodes: newcomers get
    /// numbers after all others, but only there.
    fn questions(
        &self,
        file: &str,
        theirs: &Names,
        their_clock: &Clock,
        pairs: impl Iterator<Item = (NodeId, NodeId, Option<Time>)>,
    ) -> Result<(Queries, Cow<'_, Names>)> {
        let mut names = Cow::Borrowed(&self.bundle.names);
        let mut ask = Queries::new();
        let next = self.after_the_last()?;
        for (source, destination, time) in pairs {
            let mut node = |node, side| {
                let name = theirs.name(node);
                match names.find_name(name, side) {
                    Some(node) => Ok(node),
                    None => names.to_mut().intern_from(name, side),
                }
            };
            let (source, destination) =
                (node(source, Side::Source)?, node(destination, Side::Destination)?);
            let Some(time) = time else {
                ask.push(source, next, [destination]);
                continue;
            };
            let shown = || their_clock.show(time);
            let time = self.bundle.clock.convert(time, their_clock).ok_or_else(|| {
                let remedy = "write times as the run's events do";
                Error::setting("a time of the pairs", shown(), remedy)
            })?;
            if let Some(observed) = self.already_observed(time) {
                let problem =
                    format!("is no time to come, the model has observed events up to {observed}");
                let fault = InputFault::new(file, problem, "ask about a later time");
                return Err(fault.column("time").value(shown()).into());
            }
            ask.push(source, time, [destination]);
        }
        Ok((ask, names))
    }

    fn node(&self, id: &str, side: Side) -> Result<NodeId> {
        self.bundle.names.find(id, side).ok_or_else(|| Error::UnknownNode { id: id.to_string() })
    }

    /// The time of the last event, if it is not before the time asked about: a state that has
    /// observed an event cannot answer as if it had not happened.
    fn already_observed(&self, time: Time) -> Option<String> {
        let last = self.last().filter(|last| time <= *last);
        last.map(|last| self.bundle.clock.show(last))
    }

    /// The time of the last event that is known.
    fn last(&self) -> Option<Time> {
        self.bundle.live.log().events().times().last().copied()
    }

    /// The smallest step of the clock after the last event, so that the last event counts as past.
    fn after_the_last(&self) -> Result<Time> {
        let last = self.last().map_or(0.0, Time::value);
        let next =
            if matches!(self.bundle.clock, Clock::Float) { last.next_up() } else { last + 1.0 };
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
            time: self.bundle.clock.show(time),
            score,
            probability: self.bundle.about().calibration.as_ref().map(|c| c.probability(score)),
            known: [source, destination].iter().all(|node| node.index() < self.bundle.names.len()),
            why: None,
        }
    }
}

/// Events that have happened since, ready to be taken in.
pub(super) struct NewEvents {
    pub events: Dataset,
    /// Their times on the model's clock.
    pub times: Vec<Time>,
}

impl NewEvents {
    /// Puts the events of a step into the log of a scorer. Its state observes them by
    /// [`Scorer::observe_pushed`].
    pub fn push(&self, scorer: &mut Scorer, step: Range<u32>) -> Result<Vec<Event>> {
        let NewEvents { events: Dataset { events, names, node_features, .. }, times } = self;
        step.map(|number| {
            let event = events.at(number as usize);
            let of_node = |node: NodeId| node_features.row(node.index());
            let (source, destination) = (names.name(event.source), names.name(event.destination));
            let source = scorer.node_or_new(source, Side::Source, of_node(event.source))?;
            let features = of_node(event.destination);
            let destination = scorer.node_or_new(destination, Side::Destination, features)?;
            let features = events.features().row(number as usize);
            scorer.bundle.live.push(source, destination, times[number as usize], features)
        })
        .collect()
    }

    /// The events of each step, by number.
    pub fn steps(&self, scorer: &Scorer) -> Vec<Range<u32>> {
        let protocol = &scorer.bundle.about().settings.protocol;
        let events = &self.events.events;
        cut(events, 0..events.len() as u32, protocol.step(), protocol.visibility())
    }

    /// Lets a scorer take them in; gives the numbers after the last event of each step.
    pub fn observe(&self, scorer: &mut Scorer) -> Result<Vec<u32>> {
        let NewEvents { events: Dataset { events, names, node_features, .. }, times } = self;
        let steps = self.steps(scorer);
        let new_event = |number: u32| {
            let event = events.at(number as usize);
            let of_node = |node: NodeId| node_features.row(node.index());
            NewEvent {
                source: names.name(event.source),
                destination: names.name(event.destination),
                time: times[number as usize],
                features: events.features().row(number as usize),
                node_features: [of_node(event.source), of_node(event.destination)],
            }
        };
        let mut ends = Vec::with_capacity(steps.len());
        for step in steps {
            let step: Vec<NewEvent<'_>> = step.map(new_event).collect();
            scorer.observe(&step)?;
            ends.push(scorer.bundle.events() as u32);
        }
        Ok(ends)
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
