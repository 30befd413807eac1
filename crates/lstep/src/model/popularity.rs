//! PopTrack: the popularity of the candidate, decaying step by step.
//!
//! Daniluk and Dabrowski, "Temporal graph models fail to capture global temporal dynamics", 2023. A
//! counter for each destination goes up by one with every event; after every step all counters are
//! multiplied by the decay. The multiplication is done when a counter is next looked at, so a step
//! costs what it holds.

mod kind;

pub use kind::{PopTrackConfig, PopTrackKind};

use super::counting::{Counting, same_length, score_each, within_the_stream};
use super::{Model, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::graph::{Past, Revealed};
use crate::query::{Queries, Scores};

/// Scores a candidate by its decayed popularity.
#[derive(Debug, Clone, Copy)]
pub struct PopTrack {
    decay: f64,
}

impl PopTrack {
    /// Refuses a decay outside (0, 1].
    pub fn new(decay: f64) -> Result<PopTrack> {
        if decay > 0.0 && decay <= 1.0 {
            Ok(PopTrack { decay })
        } else {
            Err(Error::setting("decay", decay, "give a factor in (0, 1]: 1 never forgets"))
        }
    }
}

/// Counters with the step at which each was last brought up to date.
#[derive(Debug, Clone)]
pub struct Popularity {
    counters: Vec<Counter>,
    steps: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    value: f64,
    step: u32,
}

impl PopTrack {
    fn now(&self, counter: Counter, step: u32) -> f64 {
        counter.value * self.decay.powf(f64::from(step - counter.step))
    }
}

impl Model for PopTrack {
    type State = Popularity;

    fn begin(&self, info: &StreamInfo) -> Popularity {
        Popularity { counters: vec![Counter::default(); info.nodes], steps: 0 }
    }

    fn score(&self, _: Past<'_>, state: &Popularity, ask: &Queries) -> Result<Scores> {
        score_each(ask, |_, candidate| {
            state
                .counters
                .get(candidate.index())
                .map_or(0.0, |&counter| self.now(counter, state.steps))
        })
    }

    fn observe(&self, _: Revealed<'_>, state: &mut Popularity, step: &[Event]) -> Result<()> {
        for event in step {
            let node = event.destination.index();
            if node >= state.counters.len() {
                state.counters.resize(node + 1, Counter::default());
            }
            let value = self.now(state.counters[node], state.steps) + 1.0;
            state.counters[node] = Counter { value, step: state.steps };
        }
        state.steps += 1;
        Ok(())
    }
}

impl Counting for PopTrack {
    fn save_state<'a>(&self, state: &'a Popularity, checkpoint: &mut Checkpoint<'a>) {
        let values: Vec<f64> = state.counters.iter().map(|counter| counter.value).collect();
        let steps: Vec<u32> = state.counters.iter().map(|counter| counter.step).collect();
        checkpoint.push_f64("counters", values);
        checkpoint.push_u32("counters.steps", steps);
        checkpoint.push_u32("steps", vec![state.steps]);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &Checkpoint<'_>) -> Result<Popularity> {
        let steps = checkpoint.one_u32("steps")?;
        let (values, at) = (checkpoint.f64("counters")?, checkpoint.u32("counters.steps")?);
        same_length("counters.steps", at.len(), values.len())?;
        within_the_stream("counters", values.len(), info, checkpoint)?;
        let good = |value: &f64| value.is_finite() && *value >= 0.0;
        if !values.iter().all(good) || at.iter().any(|&step| step > steps) || steps > u32::MAX / 2 {
            return Err(impossible("has counters that no events leave"));
        }
        let counters = values.iter().zip(at).map(|(&value, &step)| Counter { value, step });
        Ok(Popularity { counters: counters.collect(), steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::EventLog;
    use crate::model::open;

    #[test]
    fn counters_grow_with_events_and_decay_with_steps() {
        let mut log = EventLog::default();
        for destination in [1, 1, 2, 1] {
            log.push(NodeId(0), NodeId(destination), Time::ZERO, &[]).expect("in order");
        }
        let events: Vec<Event> = log.events().iter().collect();
        let info = StreamInfo::new(1, (Time::ZERO, Time::ZERO));
        let mut session = open(PopTrack::new(0.5).expect("a factor"), &info);
        session.observe(log.revealed(3), &events[..3]).expect("observed");
        session.observe(log.revealed(4), &events[3..]).expect("observed");
        let mut ask = Queries::new();
        ask.push(NodeId(0), Time::ZERO, [NodeId(1), NodeId(2), NodeId(9)]);
        let scores = session.score(log.past(4), &ask).expect("scored");
        assert_eq!(scores.values(), [(2.0 * 0.5 + 1.0) * 0.5, 0.25, 0.0]);
    }

    #[test]
    fn a_decay_that_is_no_factor_is_refused() {
        assert!(
            PopTrack::new(0.0).is_err()
                && PopTrack::new(1.5).is_err()
                && PopTrack::new(f64::NAN).is_err()
        );
    }
}
