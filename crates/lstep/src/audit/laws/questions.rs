//! Which questions the laws are checked with.

use super::Check;
use crate::event::NodeId;
use crate::graph::{EventLog, Seed};
use crate::model::StreamInfo;
use crate::protocol::{Split, StepRule, cut};
use crate::query::Queries;
use crate::rng::KeyedRng;
use crate::stream::info;
use std::collections::BTreeSet;
use std::ops::Range;

/// Lengths of rows: the field's two, and what ranks are computed from.
const LENGTHS: [usize; 4] = [2, 11, 101, 1_000];
/// Most rows of 101 candidates in a call.
const LONG_ROWS: usize = 4;
/// The share of a stream that trains.
const TRAINING: f64 = 0.7;

/// How many questions were asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Questions {
    /// Steps asked about.
    pub steps: usize,
    /// Events asked about.
    pub rows: usize,
    /// Candidates of all of them together.
    pub pairs: usize,
    /// Events whose source or destination has met somebody before the time asked about. Without
    /// history laws are kept easily.
    pub with_history: usize,
    /// Events that are the first of their source or of their destination.
    pub first_appearances: usize,
    /// Events after training that were asked about at least once.
    pub evaluated_asked: usize,
    /// Events after training.
    pub evaluated: usize,
    /// The numbers of the events asked about.
    #[serde(skip)]
    numbers: BTreeSet<u32>,
    /// The number of the first event after training.
    #[serde(skip)]
    training: u32,
}

impl Questions {
    /// Adds the questions of another check of the same stream. An event counts once.
    pub fn add(&mut self, other: &Questions) {
        self.steps += other.steps;
        self.pairs += other.pairs;
        let new = other.numbers.difference(&self.numbers).count();
        // What a new event is like is known for all of the other's together.
        if let Some(share) = (!other.numbers.is_empty()).then(|| new as f64 / other.rows as f64) {
            self.with_history += (other.with_history as f64 * share).round() as usize;
            self.first_appearances += (other.first_appearances as f64 * share).round() as usize;
        }
        self.numbers.extend(&other.numbers);
        self.rows = self.numbers.len();
        self.evaluated_asked = self.numbers.range(self.training..).count();
    }
}

/// One call of questions.
pub(super) struct Call {
    pub ask: Queries,
    /// The first event that may not be seen.
    pub horizon: u32,
}

/// A step that is asked about.
pub(super) struct ProbedStep {
    /// Its place among all steps.
    pub step: usize,
    /// Its events.
    pub numbers: Range<u32>,
    /// Calls with the graph up to each question's time, and last one with the graph up to the step.
    pub calls: Vec<Call>,
}

impl ProbedStep {
    /// The call that sees nothing of the step.
    pub fn before_the_step(&self) -> &Call {
        self.calls.last().expect("every step has one")
    }
}

/// All questions for a stream.
pub(super) struct Probes {
    pub steps: Vec<Range<u32>>,
    pub asked: Vec<ProbedStep>,
    /// The first event after training, where a step begins; that step is asked about.
    pub training: u32,
    pub info: StreamInfo,
}

impl Probes {
    pub fn new(log: &EventLog, check: Check) -> Probes {
        let events = log.events();
        let all = 0..events.len() as u32;
        let steps = cut(events, all, StepRule::Events(check.step), check.visibility);
        let last = steps.len() - 1;
        let after_training = (steps.len() as f64 * TRAINING) as usize;
        let after_training = after_training.clamp(usize::from(last > 0), last);
        let training = steps[after_training].start;
        let mut draw = KeyedRng::new(&[check.seed, 0x1a35]);
        let places = places(steps.len(), after_training, check.steps, &mut draw);
        let asked = places
            .into_iter()
            .map(|step| {
                let numbers = steps[step].clone();
                let longest = if step == last { check.candidates } else { check.candidates / 9 };
                let mut calls: Vec<Call> = LENGTHS
                    .iter()
                    .filter(|&&length| length <= longest.max(2))
                    .map(|&length| Call {
                        ask: ask(log, &numbers, rows_of(length, check.rows), length, &mut draw),
                        horizon: numbers.end,
                    })
                    .collect();
                let two = rows_of(2, check.rows);
                let horizon = numbers.start;
                calls.push(Call { ask: ask(log, &numbers, two, 2, &mut draw), horizon });
                ProbedStep { step, numbers, calls }
            })
            .collect();
        let info = info(log, &Split::at(events, training));
        Probes { steps, asked, training, info }
    }

    pub fn questions(&self, log: &EventLog) -> Questions {
        let events = log.events();
        let mut told = Questions {
            steps: self.asked.len(),
            training: self.training,
            evaluated: events.len() - self.training as usize,
            ..Questions::default()
        };
        for asked in &self.asked {
            told.pairs += asked.calls.iter().map(|call| call.ask.pairs()).sum::<usize>();
            let rows = asked.before_the_step().ask.len();
            told.numbers.extend(spread(&asked.numbers, rows));
            let past = log.past(asked.numbers.end);
            for number in spread(&asked.numbers, rows) {
                let event = events.at(number as usize);
                let known = [event.source, event.destination]
                    .map(|node| !past.recent(Seed::new(node, event.time), 1).is_empty());
                told.with_history += usize::from(known.contains(&true));
                told.first_appearances += usize::from(known.contains(&false));
            }
        }
        told.rows = told.numbers.len();
        told.evaluated_asked = told.numbers.range(self.training..).count();
        told
    }
}

/// Rows of a length in a call whose short rows are so many.
fn rows_of(length: usize, rows: usize) -> usize {
    match length {
        2 => rows,
        11 => (rows / 10).max(1),
        101 => (rows / 50).clamp(1, LONG_ROWS),
        _ => 1,
    }
}

/// The first step after training, the last, and others drawn from as many equal stretches.
fn places(steps: usize, after_training: usize, count: usize, draw: &mut KeyedRng) -> Vec<usize> {
    let mut places = BTreeSet::from([after_training, steps - 1]);
    let others = count.saturating_sub(2);
    for stretch in 0..others {
        let from = stretch * steps / others;
        let to = ((stretch + 1) * steps / others).max(from + 1);
        places.insert((from as u64 + draw.below((to - from) as u64)) as usize);
    }
    places.into_iter().collect()
}

/// Numbers spread over a step, so that its first, its last and what is between are asked about.
fn spread(step: &Range<u32>, rows: usize) -> impl Iterator<Item = u32> {
    let (start, length) = (step.start, step.len());
    let count = rows.min(length);
    (0..count).map(move |row| start + (row * length / count) as u32)
}

/// Rows as evaluation asks them: the true destination, then others. Half of the others are nodes of
/// the step itself, who are the hardest to tell from the true one.
fn ask(
    log: &EventLog,
    step: &Range<u32>,
    rows: usize,
    length: usize,
    draw: &mut KeyedRng,
) -> Queries {
    let events = log.events();
    let nodes = events.node_bound() as u64;
    let mut ask = Queries::new();
    for number in spread(step, rows) {
        let event = events.at(number as usize);
        let mut candidates = vec![event.destination];
        while candidates.len() < length {
            candidates.push(if draw.below(2) == 0 {
                NodeId(draw.below(nodes) as u32)
            } else {
                let other = step.start + draw.below(step.len() as u64) as u32;
                events.destinations()[other as usize]
            });
        }
        ask.push(event.source, event.time, candidates);
    }
    ask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rows: impl Iterator<Item = (u32, u32, f64)>) -> EventLog {
        EventLog::new(lstep_testkit::stream!(rows))
    }

    #[test]
    fn the_end_of_the_stream_and_the_first_step_after_training_are_asked_about() {
        let log = log((0..1_000).map(|n| (n % 30, 30 + n % 20, f64::from(n))));
        for seed in 0..20 {
            let plan = Probes::new(&log, Check { seed, ..Check::small() });
            let starts: Vec<u32> = plan.asked.iter().map(|asked| asked.numbers.start).collect();
            assert!(starts.contains(&700) && starts.contains(&980), "{starts:?}");
            assert_eq!(plan.training, 700);
            assert!(starts.is_sorted());
        }
    }

    #[test]
    fn rows_have_the_lengths_of_evaluation_and_their_events_are_counted_once() {
        let log = log((0..2_000).map(|n| (n % 300, 300 + n % 200, f64::from(n))));
        let check = Check { step: 100, ..Check::default() };
        let plan = Probes::new(&log, check);
        let last = plan.asked.last().expect("some");
        let lengths: Vec<usize> =
            last.calls.iter().map(|call| call.ask.row(0).candidates.len()).collect();
        assert_eq!(lengths, [2, 11, 101, 1_000, 2]);
        assert_eq!(last.calls[0].ask.len(), 100, "a whole step in one call");
        let mut asked = plan.questions(&log);
        assert_eq!(asked.rows, 100 * plan.asked.len());
        asked.add(&plan.questions(&log));
        assert_eq!(asked.rows, 100 * plan.asked.len());
        assert!(asked.evaluated_asked >= 200 && asked.evaluated == 600);
    }

    #[test]
    fn first_appearances_are_told_from_histories() {
        let new_sources = log((0..400).map(|n| (20 + n, n % 20, f64::from(n))));
        let asked = Probes::new(&new_sources, Check::small()).questions(&new_sources);
        assert_eq!(asked.first_appearances, asked.rows);
        assert!(asked.with_history > 0);
    }
}
