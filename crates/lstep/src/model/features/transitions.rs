//! What sources turn to after what: whom a source is likely to meet next, given whom it met last.
//!
//! Every source is a walk over destinations. Tables count which destination follows which: the next
//! one, the next one after two, and one of the next five. A pair's numbers are the probability of
//! the candidate after the source's latest destinations, as a ratio to how often it is met at all.
//! Long contexts are rare, so each probability backs off to that of the shorter context. The latest
//! destinations are read from the past, exact up to the query's time; the tables follow steps.

use super::{LOG_SCALE, Numbers, log_count};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId, pair_key};
use crate::graph::{Past, Seed};
use rustc_hash::FxHashMap;

/// How many numbers a pair has.
pub const WIDTH: usize = 4 + LAGS + 2;
/// How many of a source's latest destinations are looked at.
const LAGS: usize = 5;
/// How many of a node's newest events are searched for them.
const SEARCHED: usize = 32;
/// How many observations a shorter context is worth.
const PRIOR: f32 = 5.0;

const NOBODY: NodeId = NodeId(u32::MAX);

/// How often contexts were followed by destinations.
#[derive(Debug, Clone, Default)]
struct Table {
    /// By context and destination, hashed to one key.
    followed: FxHashMap<u64, u32>,
    /// By context.
    contexts: FxHashMap<u64, u32>,
}

impl Table {
    fn add(&mut self, context: u64, next: NodeId) {
        let count = self.followed.entry(joined(context, next)).or_default();
        *count = count.saturating_add(1);
        let count = self.contexts.entry(context).or_default();
        *count = count.saturating_add(1);
    }

    fn count(&self, context: u64, next: NodeId) -> u32 {
        self.followed.get(&joined(context, next)).copied().unwrap_or(0)
    }

    fn context(&self, context: u64) -> u32 {
        self.contexts.get(&context).copied().unwrap_or(0)
    }

    fn save<'a>(&'a self, name: &str, checkpoint: &mut Checkpoint<'a>) {
        for (part, counts) in [("followed", &self.followed), ("contexts", &self.contexts)] {
            let mut sorted: Vec<(u64, u32)> = counts.iter().map(|(&k, &v)| (k, v)).collect();
            sorted.sort_unstable();
            let (keys, counts): (Vec<u64>, Vec<u32>) = sorted.into_iter().unzip();
            checkpoint.push_u64(&format!("transitions.{name}.{part}"), keys);
            checkpoint.push_u32(&format!("transitions.{name}.{part}_counts"), counts);
        }
    }

    fn load(&mut self, name: &str, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        for (part, counts) in [("followed", &mut self.followed), ("contexts", &mut self.contexts)] {
            let keys = checkpoint.u64(&format!("transitions.{name}.{part}"))?;
            let values = checkpoint.u32(&format!("transitions.{name}.{part}_counts"))?;
            if keys.len() != values.len() {
                let (left, right) = (keys.len(), values.len());
                let what = "stored transitions and their counts";
                return Err(Error::LengthMismatch { what, left, right });
            }
            *counts = keys.iter().copied().zip(values.iter().copied()).collect();
        }
        Ok(())
    }
}

/// A context and what follows it as one key. Two of them share a key with probability 2^-64.
fn joined(context: u64, next: NodeId) -> u64 {
    let mixed = (context ^ u64::from(next.0).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ u64::from(next.0)
}

/// All tables.
#[derive(Debug, Clone)]
pub struct Transitions {
    nodes: f32,
    events: u32,
    /// How often each node was a destination.
    met: Vec<u32>,
    /// Each source's latest destinations, the newest first.
    latest: Vec<[NodeId; LAGS]>,
    /// What follows a destination.
    next: Table,
    /// What follows two destinations.
    after_two: Table,
    /// What is among the next five after a destination.
    soon: Table,
}

/// A source's latest destinations, the newest first.
pub struct Side {
    latest: [NodeId; LAGS],
    contexts: [f32; LAGS],
    next: f32,
    after_two: f32,
}

impl Transitions {
    pub fn new(nodes: usize) -> Transitions {
        Transitions {
            nodes: nodes.max(2) as f32,
            events: 0,
            met: Vec::new(),
            latest: Vec::new(),
            next: Table::default(),
            after_two: Table::default(),
            soon: Table::default(),
        }
    }

    pub fn observe(&mut self, event: &Event) {
        let (source, next) = (event.source.index(), event.destination);
        if source >= self.latest.len() {
            self.latest.resize(source + 1, [NOBODY; LAGS]);
        }
        if next.index() >= self.met.len() {
            self.met.resize(next.index() + 1, 0);
        }
        let latest = &mut self.latest[source];
        for (lag, &before) in latest.iter().enumerate().take_while(|(_, node)| **node != NOBODY) {
            if lag == 0 {
                self.next.add(u64::from(before.0), next);
            }
            if lag == 1 {
                self.after_two.add(pair_key(before, latest[0]), next);
            }
            self.soon.add(u64::from(before.0), next);
        }
        latest.rotate_right(1);
        latest[0] = next;
        self.met[next.index()] = self.met[next.index()].saturating_add(1);
        self.events = self.events.saturating_add(1);
    }

    /// Whom a source met last.
    pub fn side(&self, past: Past<'_>, seed: Seed) -> Side {
        let mut latest = [NOBODY; LAGS];
        let recent = past.recent(seed, SEARCHED).iter().rev();
        let chosen = recent.filter(|met| past.starts_at(seed.node(), met));
        latest.iter_mut().zip(chosen).for_each(|(place, met)| *place = met.node());
        let [newest, before, ..] = latest;
        Side {
            latest,
            contexts: latest.map(|node| self.soon.context(u64::from(node.0)) as f32),
            next: self.next.context(u64::from(newest.0)) as f32,
            after_two: self.after_two.context(pair_key(before, newest)) as f32,
        }
    }

    /// All numbers of a pair.
    pub fn write_features(&self, side: &Side, candidate: NodeId, out: &mut Numbers<'_>) {
        let [newest, before, ..] = side.latest;
        let met = self.met.get(candidate.index()).copied().unwrap_or(0);
        let ever = (met as f32 + 1.0) / (self.events as f32 + self.nodes);
        let backed_off =
            |count: u32, of: f32, shorter: f32| (count as f32 + PRIOR * shorter) / (of + PRIOR);
        let ratio = |share: f32| (share / ever).ln() * LOG_SCALE;
        let follows = self.next.count(u64::from(newest.0), candidate);
        let next = backed_off(follows, side.next, ever);
        let after_two = self.after_two.count(pair_key(before, newest), candidate);
        let after_two = backed_off(after_two, side.after_two, next);
        let precedes = self.next.count(u64::from(candidate.0), newest);
        out.put(log_count(follows));
        out.put(log_count(precedes));
        out.put(ratio(next));
        out.put(ratio(after_two));
        let (mut sum, mut largest) = (0.0, 0.0f32);
        for (&node, &context) in side.latest.iter().zip(&side.contexts) {
            let soon = match node {
                NOBODY => ever,
                node => backed_off(self.soon.count(u64::from(node.0), candidate), context, ever),
            };
            sum += soon;
            largest = largest.max(soon);
            out.put(ratio(soon));
        }
        out.put(ratio(sum / LAGS as f32));
        out.put(ratio(largest));
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("transitions.events", vec![self.events]);
        checkpoint.push_u32("transitions.met", &self.met);
        let latest: Vec<u32> = self.latest.iter().flatten().map(|node| node.0).collect();
        checkpoint.push_u32("transitions.latest", latest);
        for (name, table) in self.tables() {
            table.save(name, checkpoint);
        }
    }

    fn tables(&self) -> [(&'static str, &Table); 3] {
        [("next", &self.next), ("after_two", &self.after_two), ("soon", &self.soon)]
    }

    /// Takes over what [`Transitions::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.events = checkpoint.one_u32("transitions.events")?;
        self.met = checkpoint.u32("transitions.met")?.to_vec();
        let (latest, rest) = checkpoint.u32("transitions.latest")?.as_chunks();
        if !rest.is_empty() {
            let (left, right) = (latest.len() * LAGS + rest.len(), latest.len() * LAGS);
            let what = "stored latest destinations and their sources";
            return Err(Error::LengthMismatch { what, left, right });
        }
        self.latest = latest.iter().map(|latest| latest.map(NodeId)).collect();
        for (name, table) in
            [("next", &mut self.next), ("after_two", &mut self.after_two), ("soon", &mut self.soon)]
        {
            table.load(name, checkpoint)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Events, Features, Time};
    use crate::graph::EventLog;

    /// Sources 0 to 3 go round 10, 11, 12; 4 has only met 10.
    fn rounds() -> EventLog {
        let rows: Vec<(u32, u32)> =
            (0..60).map(|n| (n % 4, 10 + (n / 4) % 3)).chain([(4, 10)]).collect();
        let events = Events::new(
            rows.iter().map(|row| NodeId(row.0)).collect(),
            rows.iter().map(|row| NodeId(row.1)).collect(),
            (0..rows.len()).map(|n| Time::new(n as f64).expect("finite")).collect(),
            Features::none(),
        );
        EventLog::new(events.expect("sorted"))
    }

    fn observed(log: &EventLog) -> Transitions {
        let mut transitions = Transitions::new(13);
        log.events().iter().for_each(|event| transitions.observe(&event));
        transitions
    }

    fn told(transitions: &Transitions, log: &EventLog, source: u32, candidate: u32) -> Vec<f32> {
        let seed = Seed::new(NodeId(source), Time::new(1e3).expect("finite"));
        let side = transitions.side(log.past(log.len() as u32), seed);
        let mut row = vec![0.0; WIDTH];
        transitions.write_features(&side, NodeId(candidate), &mut Numbers { row: &mut row });
        row
    }

    #[test]
    fn what_followed_before_is_likely_to_follow() {
        let log = rounds();
        let transitions = observed(&log);
        // 4 met 10 last; the others went on to 11 after it.
        let [again, next, later] = [10, 11, 12].map(|node| told(&transitions, &log, 4, node));
        assert!(next[2] > 0.0 && again[2] < 0.0 && later[2] < 0.0, "{again:?} {next:?} {later:?}");
        assert_eq!(next[0], log_count(20));
        assert_eq!(later[1], log_count(16), "12 comes before 10");
        // Whoever met nobody is told nothing.
        assert!(told(&transitions, &log, 9, 11)[2..].iter().all(|&number| number.abs() < 1e-6));
    }

    #[test]
    fn transitions_come_back_from_a_checkpoint_to_the_bit() {
        let log = rounds();
        let transitions = observed(&log);
        let mut checkpoint = Checkpoint::default();
        transitions.save(&mut checkpoint);
        let mut back = Transitions::new(13);
        back.load(&mut checkpoint.clone()).expect("just saved");
        assert_eq!(told(&back, &log, 4, 11), told(&transitions, &log, 4, 11));
        let mut again = Checkpoint::default();
        back.save(&mut again);
        assert_eq!(again, checkpoint);
    }
}
