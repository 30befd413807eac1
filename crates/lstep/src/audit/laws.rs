//! What every model has to keep, checked on any stream.
//!
//! A leak shows as a score that changes when something changes that the score may not depend on. So
//! each law changes one such thing and compares scores to the last bit. The checks ask about one
//! step at or after the middle of a stream, for a state that has observed everything before it,
//! under visibility `event`. The stream must have at least two steps.

use crate::error::Result;
use crate::event::{Event, Events, Features, NodeId, Time};
use crate::graph::{EventLog, Seed};
use crate::model::ModelConfig;
use crate::model::{Session, StreamInfo};
use crate::protocol::{StepRule, Visibility, cut};
use crate::query::Queries;
use crate::rng::KeyedRng;
use crate::serving::Live;
use std::fmt;
use std::ops::Range;

/// Something that may not change a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The number of threads.
    Threads,
    /// A candidate's place in its row.
    Place,
    /// How questions are split into calls.
    Split,
    /// Events at or after the question's time.
    Future,
    /// The other rows of the step.
    OtherRows,
    /// That there has been scoring before.
    Scoring,
    /// Saving the model's settings and opening it anew.
    Reopening,
    /// Running live instead of offline.
    Live,
    /// A node nobody has seen.
    Unseen,
}

impl Law {
    /// All laws.
    pub const ALL: [Law; 9] = [
        Law::Threads,
        Law::Place,
        Law::Split,
        Law::Future,
        Law::OtherRows,
        Law::Scoring,
        Law::Reopening,
        Law::Live,
        Law::Unseen,
    ];
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Threads => "threads change no score",
            Law::Place => "a candidate's place in its row changes nothing",
            Law::Split => "splitting queries into calls changes no score",
            Law::Future => "events at or after the question's time change no score",
            Law::OtherRows => "the other rows of the step change no score",
            Law::Scoring => "scoring changes no state",
            Law::Reopening => "a saved and reopened model scores the same",
            Law::Live => "a live session scores as the offline model does",
            Law::Unseen => "unseen nodes get a finite score",
        })
    }
}

/// A law that a model broke, with the question that shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Breach {
    /// Which law.
    pub law: Law,
    /// What was seen.
    pub evidence: String,
}

/// Where and how the laws are checked.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// How many events a step has.
    pub step: u32,
    /// How many rows are asked, at most the step's events.
    pub rows: usize,
    /// How many candidates a row has, at least 2.
    pub candidates: usize,
    /// The seed of the questions and of the changes.
    pub seed: u64,
}

impl Default for Check {
    fn default() -> Check {
        Check { step: 20, rows: 12, candidates: 5, seed: 0 }
    }
}

/// Opens a model before the first event; called several times.
pub type Open<'a> = dyn Fn(&StreamInfo) -> Result<Box<dyn Session>> + 'a;

/// Checks all laws for a model with settings. Empty if all hold.
pub fn check_config(config: &ModelConfig, log: &EventLog, check: Check) -> Result<Vec<Breach>> {
    let saved = serde_json::to_string(config).expect("a config is plain data");
    let reopened: ModelConfig =
        serde_json::from_str(&saved).expect("a config reads back what it wrote");
    check_model(&|info| config.open(info), &|info| reopened.open(info), log, check)
}

/// Checks all laws for a model given as it is opened, and as it is opened after saving. Empty if
/// all hold.
pub fn check_model(
    open: &Open<'_>,
    reopen: &Open<'_>,
    log: &EventLog,
    check: Check,
) -> Result<Vec<Breach>> {
    let mut trial = Trial::new(open, log, check)?;
    trial.threads(open)?;
    trial.places()?;
    trial.calls()?;
    trial.future()?;
    trial.other_rows()?;
    trial.scoring(open)?;
    trial.reopening(reopen)?;
    trial.live(open)?;
    trial.unseen();
    Ok(trial.breaches)
}

/// How many questions a check asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Questions {
    /// Events asked about.
    pub rows: usize,
    /// Candidates of all of them together.
    pub pairs: usize,
    /// Those whose source or destination has met somebody before the time asked about. Without
    /// history laws are kept easily.
    pub with_history: usize,
}

/// What [`check_model`] asks of a stream.
pub fn questions(log: &EventLog, check: Check) -> Questions {
    let Plan { rows, with_history, .. } = Plan::new(log, check);
    Questions { rows: rows.len(), pairs: rows.len() * check.candidates, with_history }
}

/// The step that is asked about, and which of its events.
struct Plan {
    steps: Vec<Range<u32>>,
    asked: usize,
    rows: Vec<u32>,
    with_history: usize,
}

impl Plan {
    /// The step in the middle of the stream, unless hardly anybody in it has a history and more
    /// have in a later one: in a stream with few times the middle may well lie at the first of
    /// them, before which nothing happened.
    fn new(log: &EventLog, check: Check) -> Plan {
        let events = log.events();
        let steps =
            cut(events, 0..events.len() as u32, StepRule::Events(check.step), Visibility::Event);
        let plan = |asked: usize| {
            let step = steps[asked].clone();
            let count = check.rows.min(step.len());
            // Spread over the step, so that its later rows are asked about, too.
            let rows: Vec<u32> =
                (0..count).map(|row| step.start + (row * step.len() / count) as u32).collect();
            let past = log.past(step.end);
            let with_history = rows.iter().filter(|&&number| {
                let event = events.at(number as usize);
                [event.source, event.destination]
                    .iter()
                    .any(|&node| !past.recent(Seed::new(node, event.time), 1).is_empty())
            });
            (asked, with_history.count(), rows)
        };
        let mut best = plan(steps.len() / 2);
        for asked in steps.len() / 2 + 1..steps.len() {
            if 2 * best.1 >= best.2.len() {
                break;
            }
            let other = plan(asked);
            if other.1 > best.1 {
                best = other;
            }
        }
        let (asked, with_history, rows) = best;
        Plan { steps, asked, rows, with_history }
    }
}

/// One stream, one step of it, one set of questions, and their scores as they should be.
struct Trial<'a> {
    log: &'a EventLog,
    info: StreamInfo,
    steps: Vec<Range<u32>>,
    asked: Range<u32>,
    session: Box<dyn Session>,
    ask: Queries,
    scores: Vec<f64>,
    draw: KeyedRng,
    breaches: Vec<Breach>,
}

impl<'a> Trial<'a> {
    fn new(open: &Open<'_>, log: &'a EventLog, check: Check) -> Result<Trial<'a>> {
        let events = log.events();
        let Plan { mut steps, asked, rows, .. } = Plan::new(log, check);
        let later = steps.split_off(asked);
        let asked = later[0].clone();
        let info = StreamInfo {
            nodes: events.node_bound(),
            training: (events.times()[0], events.times()[asked.start as usize]),
        };
        let mut draw = KeyedRng::new(&[check.seed, 0x1a35]);
        let mut ask = Queries::new();
        for number in rows {
            let event = events.at(number as usize);
            let mut candidates = vec![event.destination];
            candidates.extend(
                (1..check.candidates).map(|_| NodeId(draw.below(info.nodes as u64) as u32)),
            );
            ask.push(event.source, event.time, candidates);
        }
        let mut trial = Trial {
            session: open(&info)?,
            log,
            info,
            steps,
            asked,
            ask,
            scores: Vec::new(),
            draw,
            breaches: Vec::new(),
        };
        trial.session = trial.observed(trial.session.fork())?;
        trial.scores = trial.score(trial.session.as_ref(), trial.log, &trial.ask)?;
        Ok(trial)
    }

    /// A session that has observed every step before the one asked about.
    fn observed(&self, mut session: Box<dyn Session>) -> Result<Box<dyn Session>> {
        for step in &self.steps {
            session.observe(self.log.revealed(step.end), &self.events_of(step.clone()))?;
        }
        Ok(session)
    }

    fn events_of(&self, numbers: Range<u32>) -> Vec<Event> {
        numbers.map(|number| self.log.events().at(number as usize)).collect()
    }

    fn score(&self, session: &dyn Session, log: &EventLog, ask: &Queries) -> Result<Vec<f64>> {
        Ok(session.score(log.past(self.asked.end), ask)?.values().to_vec())
    }

    /// Compares the scores of one row, found under another order of its candidates if `order` says
    /// so.
    fn expect_row(&mut self, law: Law, row: usize, found: &[f64], order: impl Fn(usize) -> usize) {
        let expected = &self.scores[self.ask.span(row)];
        let differs = (0..expected.len())
            .find(|&place| expected[place].to_bits() != found[order(place)].to_bits());
        if let Some(place) = differs {
            let candidate = self.ask.row(row).candidates[place];
            let evidence = format!(
                "row {row}, candidate {place} (node {}): {} became {}",
                candidate.0,
                expected[place],
                found[order(place)]
            );
            self.breaches.push(Breach { law, evidence });
        }
    }

    fn expect_all(&mut self, law: Law, found: &[f64]) {
        for row in 0..self.ask.len() {
            let span = self.ask.span(row);
            self.expect_row(law, row, &found[span], |place| place);
        }
    }

    /// The state, too, is made anew under each number of threads.
    fn threads(&mut self, open: &Open<'_>) -> Result<()> {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a small pool of threads");
            let fresh = open(&self.info)?;
            let found =
                pool.install(|| self.score(self.observed(fresh)?.as_ref(), self.log, &self.ask))?;
            self.expect_all(Law::Threads, &found);
        }
        Ok(())
    }

    fn places(&mut self) -> Result<()> {
        let mut ask = Queries::new();
        for row in self.ask.rows() {
            ask.push(row.source, row.time, row.candidates.iter().rev().copied());
        }
        let found = self.score(self.session.as_ref(), self.log, &ask)?;
        for row in 0..ask.len() {
            let last = ask.span(row).len() - 1;
            self.expect_row(Law::Place, row, &found[ask.span(row)], |place| last - place);
        }
        Ok(())
    }

    fn calls(&mut self) -> Result<()> {
        for row in 0..self.ask.len() {
            let mut found = Vec::new();
            for &candidate in self.ask.row(row).candidates {
                let mut one = Queries::new();
                one.push(self.ask.row(row).source, self.ask.row(row).time, [candidate]);
                found.extend(self.score(self.session.as_ref(), self.log, &one)?);
            }
            self.expect_row(Law::Split, row, &found, |place| place);
        }
        Ok(())
    }

    /// Replaces all events from each question's time on, in its own step and later, by others.
    fn future(&mut self) -> Result<()> {
        for row in 0..self.ask.len() {
            let horizon = self.log.first_at(self.ask.row(row).time).max(self.asked.start);
            let altered = self.altered_from(horizon);
            let found = self.score(self.session.as_ref(), &altered, &self.ask)?;
            let span = self.ask.span(row);
            self.expect_row(Law::Future, row, &found[span], |place| place);
        }
        Ok(())
    }

    fn altered_from(&mut self, horizon: u32) -> EventLog {
        let nodes = self.info.nodes as u64;
        let mut other = |column: &[NodeId]| -> Vec<NodeId> {
            let (kept, lost) = column.split_at(horizon as usize);
            kept.iter()
                .copied()
                .chain(lost.iter().map(|_| NodeId(self.draw.below(nodes) as u32)))
                .collect()
        };
        let (sources, destinations) =
            (other(self.log.events().sources()), other(self.log.events().destinations()));
        let width = self.log.events().features().width();
        let mut values = self.log.events().features().values().to_vec();
        values[horizon as usize * width..].iter_mut().for_each(|value| *value = 1.0 - *value);
        let features = Features::new(width, values).expect("finite as before");
        let times = self.log.events().times().to_vec();
        let events =
            Events::new(sources, destinations, times, features).expect("the times are as before");
        EventLog::new(events).with_node_features(self.log.node_features().clone())
    }

    fn other_rows(&mut self) -> Result<()> {
        for kept in 0..self.ask.len() {
            let mut ask = Queries::new();
            for (row, asked) in self.ask.rows().enumerate() {
                if row == kept {
                    ask.push(asked.source, asked.time, asked.candidates.iter().copied());
                } else {
                    let mut any = || NodeId(self.draw.below(self.info.nodes as u64) as u32);
                    let (source, candidates) =
                        (any(), (0..asked.candidates.len() + 1).map(|_| any()).collect::<Vec<_>>());
                    ask.push(source, asked.time, candidates);
                }
            }
            let found = self.score(self.session.as_ref(), self.log, &ask)?;
            self.expect_row(Law::OtherRows, kept, &found[ask.span(kept)], |place| place);
        }
        Ok(())
    }

    /// A session that also scores before every step ends where one that never scored does.
    fn scoring(&mut self, open: &Open<'_>) -> Result<()> {
        let mut session = open(&self.info)?;
        for step in &self.steps {
            let mut ask = Queries::new();
            for event in self.events_of(step.clone()) {
                ask.push(event.source, event.time, [event.destination, NodeId(0)]);
            }
            session.score(self.log.past(step.end), &ask)?;
            session.observe(self.log.revealed(step.end), &self.events_of(step.clone()))?;
        }
        let found = self.score(session.as_ref(), self.log, &self.ask)?;
        self.expect_all(Law::Scoring, &found);
        Ok(())
    }

    fn reopening(&mut self, reopen: &Open<'_>) -> Result<()> {
        let session = self.observed(reopen(&self.info)?)?;
        let found = self.score(session.as_ref(), self.log, &self.ask)?;
        self.expect_all(Law::Reopening, &found);
        Ok(())
    }

    /// A live session knows no more than the log up to the step; what the step holds before a
    /// question's time is pushed, but not observed, as offline.
    fn live(&mut self, open: &Open<'_>) -> Result<()> {
        let empty = EventLog::new(Events::empty(self.log.events().features().width()))
            .with_node_features(self.log.node_features().clone());
        let mut live = Live::resume(empty, open(&self.info)?);
        for step in self.steps.clone() {
            self.push_all(&mut live, step)?;
            live.observe()?;
        }
        let mut next = self.asked.start;
        for row in 0..self.ask.len() {
            let until = self.log.first_at(self.ask.row(row).time).max(next);
            self.push_all(&mut live, next..until)?;
            next = until;
            let mut one = Queries::new();
            let asked = self.ask.row(row);
            one.push(asked.source, asked.time, asked.candidates.iter().copied());
            let found = live.score(&one)?.values().to_vec();
            self.expect_row(Law::Live, row, &found, |place| place);
        }
        Ok(())
    }

    fn push_all(&self, live: &mut Live, numbers: Range<u32>) -> Result<()> {
        for event in self.events_of(numbers) {
            let features = self.log.events().features().row(event.number as usize);
            live.push(event.source, event.destination, event.time, features)?;
        }
        Ok(())
    }

    fn unseen(&mut self) {
        let stranger = NodeId(self.info.nodes as u32 + 1000);
        let later = Time::new(self.ask.row(0).time.value() + 1.0).expect("finite");
        let known = self.ask.row(0).source;
        let mut ask = Queries::new();
        ask.push(stranger, later, [known, stranger]);
        ask.push(known, later, [stranger]);
        if let Err(error) = self.session.score(self.log.past(self.asked.end), &ask) {
            self.breaches.push(Breach { law: Law::Unseen, evidence: error.to_string() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rows: impl Iterator<Item = (u32, u32, f64)>) -> EventLog {
        EventLog::new(lstep_testkit::stream!(rows))
    }

    #[test]
    fn questions_come_where_somebody_has_a_history() {
        let check = Check::default();
        // More than half of all events are at the first time, before which nothing happened.
        let two_times =
            log((0..400).map(|n| (n % 30, 30 + n % 20, if n < 260 { 0.0 } else { 1.0 })));
        assert_eq!(
            questions(&two_times, check),
            Questions { rows: 12, pairs: 60, with_history: 12 }
        );
        assert!(Plan::new(&two_times, check).rows.iter().all(|&number| number >= 260));
        // Every source is new, but destinations are not.
        let new_sources = log((0..400).map(|n| (20 + n, n % 20, f64::from(n))));
        assert_eq!(questions(&new_sources, check).with_history, 12);
        let one_time = log((0..400).map(|n| (n % 30, 30 + n % 20, 0.0)));
        assert_eq!(questions(&one_time, check).with_history, 0);
    }
}
