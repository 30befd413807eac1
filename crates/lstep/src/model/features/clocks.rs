//! Counts that decay by the clock, at rates from seconds to the whole of training.
//!
//! [`Counts`](super::counts::Counts) decay with events, so they do not see a pause in which nobody
//! acts. These decay with time: each event adds one, which is down to a half after
//! [`HALVES`] of the training span. A bank of exponentials is a basis of the responses that a layer
//! behind it can learn. The pair, the source as source and the candidate as destination each have
//! one. The state follows steps; events since then are read from the past, exact up to the query's
//! time.

use super::fresh::{direction, since_step};
use super::{LOG_SCALE, Numbers};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId, Time, pair_key};
use crate::graph::{Neighbour, Past, Seed};
use lstep_tensor::signed_logs;
use rustc_hash::FxHashMap;

/// How many numbers a pair has.
pub const WIDTH: usize = 3 * HALVES.len();
/// Shares of the training span after which an event counts half.
const HALVES: [f64; 6] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Decayed counts as of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Clocked {
    time: Time,
    counts: [f32; HALVES.len()],
}

const NEVER: Clocked = Clocked { time: Time::ZERO, counts: [0.0; HALVES.len()] };

/// The decayed counts of all pairs and nodes.
#[derive(Debug, Clone)]
pub struct Clocks {
    /// The number of the first event that no step has brought yet.
    next: u32,
    /// How fast counts halve, for each rate.
    rates: [f64; HALVES.len()],
    pairs: FxHashMap<u64, Clocked>,
    sources: Vec<Clocked>,
    destinations: Vec<Clocked>,
}

/// A source at a moment.
pub struct Side<'p> {
    seed: Seed,
    fresh: &'p [Neighbour],
    told: [f32; HALVES.len()],
}

impl Clocks {
    /// Before the first event of a stream whose training takes `span`.
    pub fn new(span: f64) -> Clocks {
        Clocks {
            next: 0,
            rates: HALVES.map(|half| 1.0 / (half * span)),
            pairs: FxHashMap::default(),
            sources: Vec::new(),
            destinations: Vec::new(),
        }
    }

    pub fn observe(&mut self, event: &Event) {
        let rates = self.rates;
        let pair = pair_key(event.source, event.destination);
        self.pairs.entry(pair).or_insert(NEVER).count(event.time, rates);
        for (clocks, node) in
            [(&mut self.sources, event.source), (&mut self.destinations, event.destination)]
        {
            if node.index() >= clocks.len() {
                clocks.resize(node.index() + 1, NEVER);
            }
            clocks[node.index()].count(event.time, rates);
        }
        self.next = event.number + 1;
    }

    /// A source, whoever the candidate is.
    pub fn side<'p>(&self, past: Past<'p>, seed: Seed) -> Side<'p> {
        let fresh = since_step(past, seed, self.next);
        let told = self.role(past, &self.sources, seed, fresh, 0);
        Side { seed, fresh, told }
    }

    /// A node's counts in a role, 0 as source and 1 as destination, at the seed's time.
    fn role(
        &self,
        past: Past<'_>,
        roles: &[Clocked],
        seed: Seed,
        fresh: &[Neighbour],
        role: usize,
    ) -> [f32; HALVES.len()] {
        let mut clocked = roles.get(seed.node().index()).copied().unwrap_or(NEVER);
        for place in 0..fresh.len() {
            if direction(past, seed.node(), fresh, place).0 == role {
                clocked.count(fresh[place].time(), self.rates);
            }
        }
        clocked.told(seed.time(), self.rates)
    }

    /// All numbers of a pair.
    pub fn write_features(
        &self,
        past: Past<'_>,
        side: &Side<'_>,
        candidate: NodeId,
        out: &mut Numbers<'_>,
    ) {
        let seed = side.seed;
        let pair = pair_key(seed.node(), candidate);
        let mut met = self.pairs.get(&pair).copied().unwrap_or(NEVER);
        for place in (0..side.fresh.len()).filter(|&place| side.fresh[place].node() == candidate) {
            if direction(past, seed.node(), side.fresh, place).0 == 0 {
                met.count(side.fresh[place].time(), self.rates);
            }
        }
        let theirs = seed.with_node(candidate);
        let fresh = since_step(past, theirs, self.next);
        let told = self.role(past, &self.destinations, theirs, fresh, 1);
        let met = met.told(seed.time(), self.rates);
        [met, side.told, told].iter().flatten().for_each(|&number| out.put(number));
    }

    /// Writes everything into a checkpoint; pairs by key, so that equal counts are equal bytes.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("clocks.next", vec![self.next]);
        let mut pairs: Vec<(u64, Clocked)> = self.pairs.iter().map(|(&k, &v)| (k, v)).collect();
        pairs.sort_unstable_by_key(|(key, _)| *key);
        let (keys, pairs): (Vec<u64>, Vec<Clocked>) = pairs.into_iter().unzip();
        checkpoint.push_u64("clocks.keys", keys);
        let parts =
            [("pairs", &pairs), ("sources", &self.sources), ("destinations", &self.destinations)];
        for (name, clocked) in parts {
            let times: Vec<u64> = clocked.iter().map(|c| c.time.value().to_bits()).collect();
            checkpoint.push_u64(&format!("clocks.{name}_times"), times);
            let counts: Vec<f32> = clocked.iter().flat_map(|clocked| clocked.counts).collect();
            checkpoint.push_f32(&format!("clocks.{name}"), counts);
        }
    }

    /// Takes over what [`Clocks::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.next = checkpoint.one_u32("clocks.next")?;
        let keys = checkpoint.u64("clocks.keys")?.to_vec();
        let pairs = read("pairs", checkpoint)?;
        if keys.len() != pairs.len() {
            let (left, right) = (keys.len(), pairs.len());
            return Err(Error::LengthMismatch {
                what: "stored pairs and their counts",
                left,
                right,
            });
        }
        self.pairs = keys.into_iter().zip(pairs).collect();
        self.sources = read("sources", checkpoint)?;
        self.destinations = read("destinations", checkpoint)?;
        Ok(())
    }
}

impl Clocked {
    fn count(&mut self, time: Time, rates: [f64; HALVES.len()]) {
        self.counts = self.at(time, rates).map(|count| count + 1.0);
        self.time = time;
    }

    fn at(&self, now: Time, rates: [f64; HALVES.len()]) -> [f32; HALVES.len()] {
        if self.counts[HALVES.len() - 1] == 0.0 {
            return self.counts;
        }
        let since = now.since(self.time).max(0.0);
        let mut counts = self.counts;
        for (count, rate) in counts.iter_mut().zip(rates) {
            *count *= (-(since * rate) as f32).exp2();
        }
        counts
    }

    /// The counts at a moment, as numbers for a layer.
    fn told(&self, now: Time, rates: [f64; HALVES.len()]) -> [f32; HALVES.len()] {
        let mut counts = self.at(now, rates);
        signed_logs(&mut counts);
        counts.map(|log| log * LOG_SCALE)
    }
}

fn read(name: &str, checkpoint: &mut Checkpoint<'_>) -> Result<Vec<Clocked>> {
    let times = checkpoint.u64(&format!("clocks.{name}_times"))?.to_vec();
    let (counts, rest) = checkpoint.f32(&format!("clocks.{name}"))?.as_chunks();
    if counts.len() != times.len() || !rest.is_empty() {
        let (left, right) = (counts.len(), times.len());
        return Err(Error::LengthMismatch { what: "stored counts and their times", left, right });
    }
    let clocked = |(&counts, &time): (&[f32; HALVES.len()], &u64)| {
        let time = Time::new(f64::from_bits(time)).ok_or_else(|| {
            let remedy = "the checkpoint is of another program: train anew";
            Error::setting("a stored time", "not a number", remedy)
        })?;
        Ok(Clocked { time, counts })
    };
    counts.iter().zip(&times).map(clocked).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fresh::busy;
    use super::*;
    use crate::graph::EventLog;

    fn state(log: &EventLog, observed: u32) -> Clocks {
        let mut clocks = Clocks::new(200.0);
        log.events().iter().take(observed as usize).for_each(|event| clocks.observe(&event));
        clocks
    }

    fn told(clocks: &Clocks, past: Past<'_>, seed: Seed, candidate: NodeId) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        let side = clocks.side(past, seed);
        clocks.write_features(past, &side, candidate, &mut Numbers { row: &mut row });
        row
    }

    #[test]
    fn a_stale_state_and_the_past_tell_what_a_state_of_the_moment_tells() {
        let log = busy(120);
        for (stale, at) in [(100, 100), (90, 120), (40, 75), (0, 9)] {
            let (before, now) = (state(&log, stale), state(&log, at));
            let past = log.past(120);
            let time = Time::new(f64::from(at) * 2.0 - 1.0).expect("finite");
            for (source, candidate) in (0..64).map(|n| (NodeId(n % 8), NodeId(n / 8))) {
                let seed = Seed::new(source, time);
                let (fresh, exact) =
                    (told(&before, past, seed, candidate), told(&now, past, seed, candidate));
                let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
                assert!(fresh.iter().zip(&exact).all(near), "{fresh:?} is not {exact:?}");
            }
        }
    }

    #[test]
    fn a_count_is_down_to_a_half_after_its_share_of_the_span() {
        let mut clocks = Clocks::new(1000.0);
        let event = |number: u32| Event {
            number,
            source: NodeId(0),
            destination: NodeId(1),
            time: Time::ZERO,
        };
        (0..2).for_each(|number| clocks.observe(&event(number)));
        let later = Time::new(100.0).expect("finite");
        let counts = clocks.pairs[&pair_key(NodeId(0), NodeId(1))].at(later, clocks.rates);
        assert!((counts[4] - 1.0).abs() < 1e-6, "a tenth of the span: two events count as one");
        assert!(counts[0] < 1e-6 && counts[5] > 1.8, "{counts:?}");
    }

    #[test]
    fn clocks_come_back_from_a_checkpoint_to_the_bit() {
        let clocks = state(&busy(50), 50);
        let mut checkpoint = Checkpoint::default();
        clocks.save(&mut checkpoint);
        let mut back = Clocks::new(200.0);
        back.load(&mut checkpoint.clone()).expect("just saved");
        assert_eq!((back.next, &back.pairs), (clocks.next, &clocks.pairs));
        assert_eq!((back.sources, back.destinations), (clocks.sources, clocks.destinations));
    }
}
