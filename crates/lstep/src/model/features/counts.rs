//! Counts of everything observed: of directed pairs, of sources and of destinations, with when each
//! was seen last.
//!
//! Recency is told by the clock and by the number of events since; popularity once and for all, and
//! at three decays that are counted in events and measured by the number of nodes, so that no unit
//! of time has to be guessed.

use super::{LOG_SCALE, Numbers, decay_rate, log_count, recency};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId, Time, pair_key};
use crate::graph::Seed;
use lstep_tensor::signed_logs;
use rustc_hash::FxHashMap;

/// How many numbers a pair has.
pub const WIDTH: usize = 5 + 3 + 2 + 4 * 3 + 2 * DECAYS.len();
/// How many numbers describe a source's recent neighbours.
pub const NEIGHBOUR_WIDTH: usize = 3 + DECAYS.len();
/// After how many events for each node a decayed count is down to a half.
pub(super) const DECAYS: [f64; 3] = [0.25, 2.0, 16.0];

/// How often something was seen, and when last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trace {
    pub count: u32,
    pub event: u32,
    pub time: Time,
}

/// A node in one role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Role {
    pub trace: Option<Trace>,
    /// As of the trace's event.
    pub decayed: [f32; DECAYS.len()],
}

const UNSEEN: Role = Role { trace: None, decayed: [0.0; DECAYS.len()] };

/// The part of the features that depends on the source alone.
pub struct Side {
    source: Seed,
    span: f64,
    count: u32,
    roles: [[f32; 3]; 2],
    decayed: [f32; DECAYS.len()],
}

/// All counts.
#[derive(Debug, Clone)]
pub struct Counts {
    pub(super) events: u32,
    /// What is left of a count after an event, as a logarithm.
    pub(super) rates: [f32; DECAYS.len()],
    pub(super) pairs: FxHashMap<u64, Trace>,
    sources: Vec<Role>,
    destinations: Vec<Role>,
}

impl Counts {
    pub fn new(nodes: usize) -> Counts {
        Counts {
            events: 0,
            rates: DECAYS.map(|decay| decay_rate(decay, nodes)),
            pairs: FxHashMap::default(),
            sources: Vec::new(),
            destinations: Vec::new(),
        }
    }

    /// Takes in an event, and tells whether its pair is new.
    pub fn observe(&mut self, event: &Event) -> bool {
        let (now, rates) = (self.events, self.rates);
        let leave = |trace: Option<Trace>| Trace {
            count: trace.map_or(0, |trace| trace.count).saturating_add(1),
            event: now,
            time: event.time,
        };
        let pair = pair_key(event.source, event.destination);
        let before = self.pairs.get(&pair).copied();
        self.pairs.insert(pair, leave(before));
        for (roles, node) in
            [(&mut self.sources, event.source), (&mut self.destinations, event.destination)]
        {
            if node.index() >= roles.len() {
                roles.resize(node.index() + 1, UNSEEN);
            }
            let role = &mut roles[node.index()];
            let decayed = role.decayed_at(now, rates);
            *role =
                Role { trace: Some(leave(role.trace)), decayed: decayed.map(|count| count + 1.0) };
        }
        self.events = self.events.saturating_add(1);
        before.is_none()
    }

    /// A node as source and as destination.
    pub(super) fn roles(&self, node: NodeId) -> [Role; 2] {
        [role(&self.sources, node), role(&self.destinations, node)]
    }

    /// The features of a source, whoever the candidate is.
    pub fn side(&self, source: Seed, span: f64) -> Side {
        let (out, into) =
            (role(&self.sources, source.node()), role(&self.destinations, source.node()));
        Side {
            source,
            span,
            count: out.count(),
            roles: [out, into].map(|role| self.role_features(&role, source.time(), span)),
            decayed: self.decayed(&out),
        }
    }

    /// What those are like whom a source met lately: the means of how often they were destinations,
    /// once and for all and at every decay, and how recently. Compared with the same numbers of a
    /// candidate they tell whether it is of the kind that the source turns to.
    pub fn neighbours(
        &self,
        partners: impl Iterator<Item = NodeId>,
        now: Time,
        span: f64,
    ) -> [f32; NEIGHBOUR_WIDTH] {
        let (mut sums, mut count) = ([0.0; NEIGHBOUR_WIDTH], 0.0f32);
        for partner in partners {
            let role = role(&self.destinations, partner);
            let (told, decayed) = (self.role_features(&role, now, span), self.decayed(&role));
            sums.iter_mut()
                .zip(told.iter().chain(&decayed))
                .for_each(|(sum, number)| *sum += number);
            count += 1.0;
        }
        sums.map(|sum| sum / count.max(1.0))
    }

    /// All numbers of a pair.
    pub fn write_features(&self, side: &Side, candidate: NodeId, out: &mut Numbers<'_>) {
        let &Side { source, span, .. } = side;
        let forth = self.pairs.get(&pair_key(source.node(), candidate));
        let back = self.pairs.get(&pair_key(candidate, source.node()));
        let met = |trace: Option<&Trace>| f32::from(u8::from(trace.is_some()));
        out.put(met(forth));
        out.count(forth.map_or(0, |trace| trace.count));
        out.put(since_events(forth, self.events));
        out.put(since(forth, source.time(), span));
        out.put(met(forth) * met(back));
        out.put(met(back));
        out.count(back.map_or(0, |trace| trace.count));
        out.put(since_events(back, self.events));

        let (v_out, v_in) = (role(&self.sources, candidate), role(&self.destinations, candidate));
        let share = |whole: u32| forth.map_or(0, |trace| trace.count) as f32 / whole.max(1) as f32;
        out.put(share(side.count));
        out.put(share(v_in.count()));
        let theirs = [v_out, v_in].map(|role| self.role_features(&role, source.time(), span));
        side.roles.iter().chain(&theirs).flatten().for_each(|&number| out.put(number));
        side.decayed.iter().chain(&self.decayed(&v_in)).for_each(|&number| out.put(number));
    }

    /// How often a node was seen in a role, and how recently, by events and by the clock.
    fn role_features(&self, role: &Role, now: Time, span: f64) -> [f32; 3] {
        [
            log_count(role.count()),
            since_events(role.trace.as_ref(), self.events),
            since(role.trace.as_ref(), now, span),
        ]
    }

    fn decayed(&self, role: &Role) -> [f32; DECAYS.len()] {
        logs(role.decayed_at(self.events, self.rates))
    }

    /// Writes everything into a checkpoint; pairs by key, so that equal counts are equal bytes.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        let mut pairs: Vec<(&u64, &Trace)> = self.pairs.iter().collect();
        pairs.sort_unstable_by_key(|(key, _)| **key);
        checkpoint.push_u32("traces.events", vec![self.events]);
        checkpoint
            .push_u64("traces.pairs", pairs.iter().map(|(key, _)| **key).collect::<Vec<u64>>());
        let traces = || pairs.iter().map(|(_, trace)| **trace);
        checkpoint.push_u32(
            "traces.pair_counts",
            traces().flat_map(|t| [t.count, t.event]).collect::<Vec<u32>>(),
        );
        checkpoint.push_u64("traces.pair_times", traces().map(bits).collect::<Vec<u64>>());
        for (name, roles) in [("sources", &self.sources), ("destinations", &self.destinations)] {
            let traces = || roles.iter().map(|role| role.trace.unwrap_or(NEVER));
            let counts: Vec<u32> = traces().flat_map(|trace| [trace.count, trace.event]).collect();
            checkpoint.push_u32(&format!("traces.{name}"), counts);
            checkpoint.push_u64(
                &format!("traces.{name}_times"),
                traces().map(bits).collect::<Vec<u64>>(),
            );
            let decayed: Vec<f32> = roles.iter().flat_map(|role| role.decayed).collect();
            checkpoint.push_f32(&format!("traces.{name}_decayed"), decayed);
        }
    }

    /// Takes over what [`Counts::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        let events = checkpoint.one_u32("traces.events")?;
        self.events = events;
        let keys = checkpoint.u64("traces.pairs")?;
        let traces = read(
            checkpoint.u32("traces.pair_counts")?,
            checkpoint.u64("traces.pair_times")?,
            events,
        )?;
        if keys.len() != traces.len() {
            let (left, right) = (keys.len(), traces.len());
            return Err(Error::LengthMismatch {
                what: "stored pairs and their counts",
                left,
                right,
            });
        }
        self.pairs = keys.iter().copied().zip(traces).collect();
        for (name, roles) in
            [("sources", &mut self.sources), ("destinations", &mut self.destinations)]
        {
            let counts = checkpoint.u32(&format!("traces.{name}"))?;
            let counts = read(counts, checkpoint.u64(&format!("traces.{name}_times"))?, events)?;
            let (decayed, rest) = checkpoint.f32(&format!("traces.{name}_decayed"))?.as_chunks();
            if decayed.len() != counts.len() || !rest.is_empty() {
                let (left, right) = (decayed.len(), counts.len());
                return Err(Error::LengthMismatch {
                    what: "stored nodes and their counts",
                    left,
                    right,
                });
            }
            *roles = (counts.into_iter().zip(decayed))
                .map(|(trace, &decayed)| Role {
                    trace: Some(trace).filter(|trace| trace.count > 0),
                    decayed,
                })
                .collect();
        }
        Ok(())
    }
}

const NEVER: Trace = Trace { count: 0, event: 0, time: Time::ZERO };

fn bits(trace: Trace) -> u64 {
    trace.time.value().to_bits()
}

/// Traces that were left within the first `events` events.
fn read(counts: &[u32], times: &[u64], events: u32) -> Result<Vec<Trace>> {
    let refused = |what, value: &dyn std::fmt::Display| {
        Error::setting(what, value, "the checkpoint is of another program: train anew")
    };
    let trace = |(&[count, event], &time): (&[u32; 2], &u64)| {
        let time = Time::new(f64::from_bits(time))
            .ok_or_else(|| refused("a stored time", &"not a number"))?;
        // Who was never seen has no event.
        if event > 0 && event >= events || count > 0 && events == 0 {
            return Err(refused("the event of a stored count", &event));
        }
        Ok(Trace { count, event, time })
    };
    let (counts, rest) = counts.as_chunks();
    if counts.len() != times.len() || !rest.is_empty() {
        let (left, right) = (counts.len(), times.len());
        return Err(Error::LengthMismatch { what: "stored counts and their times", left, right });
    }
    counts.iter().zip(times).map(trace).collect()
}

/// Decayed counts as features.
pub(super) fn logs(mut counts: [f32; DECAYS.len()]) -> [f32; DECAYS.len()] {
    signed_logs(&mut counts);
    counts.map(|log| log * LOG_SCALE)
}

fn role(roles: &[Role], node: NodeId) -> Role {
    roles.get(node.index()).copied().unwrap_or(UNSEEN)
}

/// By the clock: one now, zero a training span ago and for what never was.
pub(super) fn since(trace: Option<&Trace>, now: Time, span: f64) -> f32 {
    trace.map_or(0.0, |trace| recency(now, trace.time.min(now), span))
}

/// By events: one for the newest before `now`, zero a million events ago and for what never was.
pub(super) fn since_events(trace: Option<&Trace>, now: u32) -> f32 {
    let since = |trace: &Trace| f64::from(now - trace.event);
    trace.map_or(0.0, |trace| (1.0 - since(trace).ln() / 1e6f64.ln()) as f32)
}

impl Role {
    pub(super) fn count(&self) -> u32 {
        self.trace.map_or(0, |trace| trace.count)
    }

    pub(super) fn decayed_at(&self, now: u32, rates: [f32; DECAYS.len()]) -> [f32; DECAYS.len()] {
        let since = self.trace.map_or(0.0, |trace| (now - trace.event) as f32);
        let mut decayed = self.decayed;
        decayed.iter_mut().zip(rates).for_each(|(count, rate)| *count *= (rate * since).exp());
        decayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u32, source: u32, destination: u32, time: f64) -> Event {
        let (source, destination) = (NodeId(source), NodeId(destination));
        Event { number, source, destination, time: Time::new(time).expect("finite") }
    }

    fn told(counts: &Counts, source: u32, candidate: u32) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        let seed = Seed::new(NodeId(source), Time::new(10.0).expect("finite"));
        counts.write_features(
            &counts.side(seed, 10.0),
            NodeId(candidate),
            &mut Numbers { row: &mut row },
        );
        row
    }

    #[test]
    fn directed_pairs_and_roles_are_counted_apart() {
        let mut counts = Counts::new(4);
        for (number, (source, destination)) in (0..).zip([(0, 1), (0, 1), (0, 2), (1, 0)]) {
            counts.observe(&event(number, source, destination, f64::from(number)));
        }
        let forth = told(&counts, 0, 1);
        let count = super::super::log_count;
        assert_eq!(forth[..2], [1.0, count(2)]);
        assert_eq!(forth[4..7], [1.0, 1.0, count(1)], "they have met both ways, once back");
        assert_eq!(forth[8..10], [2.0 / 3.0, 1.0], "two of three of 0, all of 1");
        let never = told(&counts, 2, 3);
        assert_eq!(never[..8], [0.0; 8]);
        assert_eq!(forth[7], 1.0, "the newest event is a meeting back");
    }

    #[test]
    fn company_is_the_mean_of_what_partners_are_as_destinations() {
        let mut counts = Counts::new(4);
        for (number, (source, destination)) in (0..).zip([(0, 1), (2, 1), (0, 1), (0, 2), (1, 0)]) {
            counts.observe(&event(number, source, destination, f64::from(number)));
        }
        let now = Time::new(10.0).expect("finite");
        let of = |partners: &[u32]| {
            counts.neighbours(partners.iter().map(|&node| NodeId(node)), now, 10.0)
        };
        let [popular, seldom, never] = [of(&[1]), of(&[2]), of(&[3])];
        let count = super::super::log_count;
        assert_eq!((popular[0], seldom[0]), (count(3), count(1)));
        assert_eq!(never, [0.0; NEIGHBOUR_WIDTH], "3 was no destination");
        assert_eq!(of(&[]), [0.0; NEIGHBOUR_WIDTH], "nobody was met");
        for (place, mean) in of(&[1, 1, 2, 3]).into_iter().enumerate() {
            let expected = (2.0 * popular[place] + seldom[place]) / 4.0;
            assert!((mean - expected).abs() < 1e-6, "{place}: {mean} is not {expected}");
        }
    }

    #[test]
    fn counts_come_back_from_a_checkpoint_to_the_bit() {
        let mut counts = Counts::new(3);
        (0..40).for_each(|number| {
            counts.observe(&event(number, number % 3, number % 5, f64::from(number) / 7.0));
        });
        let mut checkpoint = Checkpoint::default();
        counts.save(&mut checkpoint);
        let mut back = Counts::new(3);
        back.load(&mut checkpoint.clone()).expect("just saved");
        for (source, candidate) in [(0, 0), (1, 4), (2, 3), (7, 1)] {
            assert_eq!(told(&counts, source, candidate), told(&back, source, candidate));
        }
        let mut again = Checkpoint::default();
        back.save(&mut again);
        assert_eq!(again, checkpoint, "and are saved as the same bytes");
    }
}
