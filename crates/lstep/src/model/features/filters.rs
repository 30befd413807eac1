//! Positions as filtered walks: node codes summed along walks at several decay rates, for learned
//! filters.
//!
//! A node u has a code c_u of d signs. In each role r (as source, as destination) and at each rate
//! l_k the state keeps, as of a time t,
//!
//! ```text
//! x_u^{r,k,1}(t) = sum over events e of u in role r before t of exp(-l_k (t - t_e)) c_p(e)
//! x_u^{r,k,2}(t) = sum over the same events of exp(-l_k (t - t_e)) sum_r' x_p(e)^{r',k,1}(t_e)
//! ```
//!
//! where p(e) is the other node of the event. Each is divided by the root of one plus the weight
//! that was summed. A filter m takes y_u^m = sum over (r, k, h) of G^m_{rkh} x_u^{r,k,h} with
//! learned G, one for each role in a pair, and a pair has the products z^m = y_u^m . y_v^m.
//!
//! L-STEP learns a filter over the last steps of a position that its own layers have made. Here the
//! filter is over time: g^m(s) = sum_k G^m_k exp(-l_k s), and a bank of exponentials is a basis of
//! causal filters. The state has no weights in it, so it neither drifts nor feeds on itself. TPNet
//! is the case of one rate, found by a grid search, and all products of hops.
//!
//! The state follows steps. A node's own events since then are read from the past: walks of one
//! event are exact up to the query's time, longer ones but for what its partners did meanwhile.

use super::codes::Codes;
use super::fresh::{direction, since_step};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId, Time};
use crate::graph::{Past, Seed};

/// The width of a code.
pub const CODE: usize = 64;
/// Shares of the training span after which an event counts half.
const HALVES: [f64; RATES] = [1e-3, 1e-2, 1e-1, 1.0];
const RATES: usize = 4;
/// Walks of one and of two events.
const HOPS: usize = 2;
/// Sums of a node: roles, rates, hops.
const SUMS: usize = 2 * RATES * HOPS;
/// What a filter reads of a node: its own code, then its sums.
pub const INPUTS: usize = 1 + SUMS;

/// Where a sum stands among those of a node.
fn place(role: usize, rate: usize, hop: usize) -> usize {
    (role * RATES + rate) * HOPS + hop
}

/// The sums of all nodes.
#[derive(Debug, Clone)]
pub struct Bank {
    /// The number of the first event that no step has brought yet.
    next: u32,
    /// How fast sums halve, for each rate.
    rates: [f64; RATES],
    /// What codes are drawn with, where they are drawn anew in every epoch.
    salt: Option<u64>,
    codes: Codes,
    /// For each node the time of its last change.
    changed: Vec<Time>,
    /// For each node its sums, [SUMS, CODE], as of the last change.
    sums: Vec<f32>,
    /// The weights that were summed.
    masses: Vec<[f32; SUMS]>,
}

/// One node's sums at a time, while they are added up.
#[derive(Clone)]
struct Row {
    sums: [[f32; CODE]; SUMS],
    masses: [f32; SUMS],
}

impl Row {
    const EMPTY: Row = Row { sums: [[0.0; CODE]; SUMS], masses: [0.0; SUMS] };

    /// Walks of one event in either role, at one rate.
    fn met(&self, rate: usize) -> ([f32; CODE], f32) {
        let [source, destination] = [0, 1].map(|role| place(role, rate, 0));
        let mut sum = self.sums[source];
        sum.iter_mut().zip(&self.sums[destination]).for_each(|(sum, more)| *sum += more);
        (sum, self.masses[source] + self.masses[destination])
    }

    /// Adds an event with a node of a code and of sums as of then, `left` of which counts.
    fn add(&mut self, role: usize, left: [f32; RATES], code: &[f32], met: &[([f32; CODE], f32)]) {
        let mut take = |place: usize, left: f32, vector: &[f32], mass: f32| {
            self.sums[place].iter_mut().zip(vector).for_each(|(sum, x)| *sum += left * x);
            self.masses[place] += left * mass;
        };
        for (rate, (&left, (walks, mass))) in left.iter().zip(met).enumerate() {
            take(place(role, rate, 0), left, code, 1.0);
            take(place(role, rate, 1), left, walks, *mass);
        }
    }
}

impl Bank {
    /// Before the first event of a stream whose training takes `span`.
    pub fn new(span: f64, salt: Option<u64>) -> Bank {
        Bank {
            next: 0,
            rates: HALVES.map(|half| 1.0 / (half * span)),
            salt,
            codes: Codes::ByFirstEvent(Vec::new()),
            changed: Vec::new(),
            sums: Vec::new(),
            masses: Vec::new(),
        }
    }

    /// What is left of an event after some time, at each rate.
    fn left(&self, since: f64) -> [f32; RATES] {
        self.rates.map(|rate| (-(since.max(0.0) * rate) as f32).exp2())
    }

    /// A node's sums at a time.
    fn at(&self, node: NodeId, now: Time) -> Row {
        let mut row = Row::EMPTY;
        let Some(&changed) = self.changed.get(node.index()) else {
            return row;
        };
        let left = self.left(now.since(changed));
        let (stored, _) = self.sums[node.index() * SUMS * CODE..].as_chunks::<CODE>();
        for (place, sum) in row.sums.iter_mut().enumerate() {
            let left = left[place / HOPS % RATES];
            sum.iter_mut().zip(&stored[place]).for_each(|(sum, x)| *sum = left * x);
            row.masses[place] = left * self.masses[node.index()][place];
        }
        row
    }

    fn put(&mut self, node: NodeId, now: Time, row: &Row) {
        let first = node.index() * SUMS * CODE;
        self.sums[first..first + SUMS * CODE].copy_from_slice(row.sums.as_flattened());
        self.masses[node.index()] = row.masses;
        self.changed[node.index()] = now;
    }

    fn code(&self, node: NodeId) -> super::codes::Code {
        self.codes.of(node, CODE, self.salt.unwrap_or(0))
    }

    pub fn observe(&mut self, event: &Event) {
        let ends = [event.source, event.destination];
        let last = ends[0].index().max(ends[1].index());
        if last >= self.changed.len() {
            self.changed.resize(last + 1, event.time);
            self.codes.reach(last);
            self.sums.resize((last + 1) * SUMS * CODE, 0.0);
            self.masses.resize(last + 1, [0.0; SUMS]);
        }
        for (node, role) in ends.into_iter().zip([0, 1]) {
            self.codes.meet(node, 2 * u64::from(event.number) + role);
        }
        let met = ends.map(|node| {
            let row = self.at(node, event.time);
            (0..RATES).map(|rate| row.met(rate)).collect::<Vec<_>>()
        });
        for (role, node) in ends.into_iter().enumerate() {
            let mut row = self.at(node, event.time);
            row.add(role, [1.0; RATES], self.code(ends[1 - role]).signs(), &met[1 - role]);
            self.put(node, event.time, &row);
        }
        self.next = event.number + 1;
    }

    /// What filters read of a seed's node, [CODE, INPUTS].
    pub fn fill(&self, past: Past<'_>, seed: Seed, out: &mut [f32]) {
        let (node, now) = (seed.node(), seed.time());
        let mut row = self.at(node, now);
        let fresh = since_step(past, seed, self.next);
        for (place, other) in fresh.iter().enumerate() {
            let (role, _) = direction(past, node, fresh, place);
            let then = self.at(other.node(), other.time());
            let met: Vec<_> = (0..RATES).map(|rate| then.met(rate)).collect();
            let left = self.left(now.since(other.time()));
            row.add(role, left, self.code(other.node()).signs(), &met);
        }
        // A product of two such vectors is one where they are the same code.
        let unit = 1.0 / (CODE as f32).sqrt();
        let scales = row.masses.map(|mass| unit / (1.0 + mass).sqrt());
        let code = self.code(node);
        let (out, _) = out.as_chunks_mut::<INPUTS>();
        for (at, (out, sign)) in out.iter_mut().zip(code.signs()).enumerate() {
            out[0] = unit * sign;
            for (place, number) in out[1..].iter_mut().enumerate() {
                *number = row.sums[place][at] * scales[place];
            }
        }
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("filters.next", vec![self.next]);
        let times: Vec<u64> = self.changed.iter().map(|time| time.value().to_bits()).collect();
        checkpoint.push_u64("filters.changed", times);
        checkpoint.push_f32("filters.sums", &self.sums);
        checkpoint.push_f32("filters.masses", self.masses.as_flattened());
        if let Codes::ByFirstEvent(born) = &self.codes {
            checkpoint.push_u64("filters.born", born);
        }
        checkpoint.push_u64("filters.salt", self.salt.into_iter().collect::<Vec<u64>>());
    }

    /// Takes over what [`Bank::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.next = checkpoint.one_u32("filters.next")?;
        let time = |&bits: &u64| {
            Time::new(f64::from_bits(bits)).ok_or_else(|| {
                let remedy = "the checkpoint is of another program: train anew";
                Error::setting("a stored time", "not a number", remedy)
            })
        };
        self.changed =
            checkpoint.u64("filters.changed")?.iter().map(time).collect::<Result<Vec<Time>>>()?;
        self.sums = checkpoint.take_f32("filters.sums")?;
        let (masses, rest) = checkpoint.f32("filters.masses")?.as_chunks();
        self.masses = masses.to_vec();
        let born = checkpoint.u64("filters.born")?.to_vec();
        let nodes = self.changed.len();
        let sums = nodes.saturating_mul(SUMS * CODE);
        let lengths =
            [(self.sums.len(), sums), (self.masses.len() + rest.len(), nodes), (born.len(), nodes)];
        if let Some(&(left, right)) = lengths.iter().find(|(left, right)| left != right) {
            return Err(Error::LengthMismatch {
                what: "stored walks and their nodes",
                left,
                right,
            });
        }
        self.codes = Codes::ByFirstEvent(born);
        self.salt = checkpoint.u64("filters.salt")?.first().copied();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fresh::busy;
    use super::*;
    use crate::graph::EventLog;

    fn bank(log: &EventLog, observed: u32) -> Bank {
        let mut bank = Bank::new(200.0, None);
        log.events().iter().take(observed as usize).for_each(|event| bank.observe(&event));
        bank
    }

    fn told(bank: &Bank, past: Past<'_>, seed: Seed) -> Vec<[f32; INPUTS]> {
        let mut out = vec![0.0; CODE * INPUTS];
        bank.fill(past, seed, &mut out);
        out.as_chunks().0.to_vec()
    }

    fn at(time: f64) -> Time {
        Time::new(time).expect("finite")
    }

    /// The sums by their definition, in double precision: all walks, one by one.
    fn by_definition(log: &EventLog, node: NodeId, now: f64, bank: &Bank) -> Vec<[f64; SUMS]> {
        let events: Vec<Event> = log.events().iter().filter(|e| e.time.value() < now).collect();
        let walks = |node: NodeId, before: u32, now: f64, rate: f64| {
            let mut found = Vec::new();
            for event in events.iter().filter(|event| event.number < before) {
                let ends = [event.source, event.destination];
                for role in (0..2).filter(|&role| ends[role] == node) {
                    let left = (-(now - event.time.value()) * rate).exp2();
                    found.push((role, left, ends[1 - role], *event));
                }
            }
            found
        };
        let mut sums = vec![[0.0; SUMS]; CODE];
        for (rate, &pace) in bank.rates.iter().enumerate() {
            let mut masses = [[0.0; HOPS]; 2];
            let mut add = |role: usize, hop: usize, left: f64, to: NodeId| {
                masses[role][hop] += left;
                for (sum, sign) in sums.iter_mut().zip(bank.code(to).signs()) {
                    sum[place(role, rate, hop)] += left * f64::from(*sign);
                }
            };
            for (role, left, partner, event) in walks(node, u32::MAX, now, pace) {
                add(role, 0, left, partner);
                for (_, more, to, _) in walks(partner, event.number, event.time.value(), pace) {
                    add(role, 1, left * more, to);
                }
            }
            for (role, hop) in (0..2).flat_map(|role| [(role, 0), (role, 1)]) {
                let scale = (CODE as f64 * (1.0 + masses[role][hop])).sqrt();
                sums.iter_mut().for_each(|sum| sum[place(role, rate, hop)] /= scale);
            }
        }
        sums
    }

    #[test]
    fn sums_are_those_of_all_walks() {
        let log = busy(60);
        let bank = bank(&log, 60);
        for node in (0..7).map(NodeId) {
            let seed = Seed::new(node, at(130.0));
            let expected = by_definition(&log, node, 130.0, &bank);
            for (told, expected) in told(&bank, log.past(60), seed).iter().zip(&expected) {
                for (told, expected) in told[1..].iter().zip(expected) {
                    assert!((f64::from(*told) - expected).abs() < 1e-5, "{told} is not {expected}");
                }
            }
        }
    }

    #[test]
    fn walks_of_one_event_are_exact_up_to_the_query() {
        let log = busy(120);
        let (before, now) = (bank(&log, 90), bank(&log, 110));
        let past = log.past(120);
        for node in (0..7).map(NodeId) {
            let seed = Seed::new(node, at(219.0));
            for (stale, exact) in told(&before, past, seed).iter().zip(told(&now, past, seed)) {
                let one = |numbers: &[f32; INPUTS]| {
                    let rates = (0..2 * RATES).map(|sum| numbers[1 + sum * HOPS]);
                    rates.collect::<Vec<f32>>()
                };
                let (stale, exact) = (one(stale), one(&exact));
                let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
                assert!(stale.iter().zip(&exact).all(near), "{stale:?} is not {exact:?}");
            }
        }
    }

    #[test]
    fn a_bank_comes_back_from_a_checkpoint_to_the_bit() {
        let log = busy(50);
        let mut bank = Bank::new(200.0, Some(3));
        log.events().iter().for_each(|event| bank.observe(&event));
        let mut checkpoint = Checkpoint::default();
        bank.save(&mut checkpoint);
        let mut back = Bank::new(200.0, Some(0));
        back.load(&mut checkpoint).expect("just saved");
        let seed = Seed::new(NodeId(3), at(300.0));
        assert_eq!(told(&back, log.past(50), seed), told(&bank, log.past(50), seed));
    }
}
