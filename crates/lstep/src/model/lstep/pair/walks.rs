//! Sums of node codes along recent walks, whose products tell how near two nodes are.
//!
//! Every node has a code c of d signs, drawn from its number. w1 of a node is the sum of the codes of those it met, w2 the sum of
//! their w1, both decayed with the number of events since. Codes of different nodes are nearly orthogonal, so c_u . w1_v is about how
//! often u and v met lately, w1_u . w1_v whom both have met, w1_u . w2_v and w2_u . w2_v longer ways. This is the temporal walk matrix
//! of TPNet (Lu et al., "Improving Temporal Link Prediction via Temporal Walk Matrix Projection", NeurIPS 2024) by random projection,
//! with decays that the number of nodes sets. O(d) for an event, and O(d) for a pair.

use super::{Numbers, decay_rate, signed_log};
use crate::checkpoint::Checkpoint;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};

/// How many numbers a pair has.
pub const WIDTH: usize = DECAYS.len() * 11;
/// After how many events for each node a sum is down to a half.
const DECAYS: [f64; 3] = [1.0, 8.0, 64.0];
/// Sums of walks of length one and two, for each decay.
const SUMS: usize = 2 * DECAYS.len();

/// The sums of all nodes.
#[derive(Debug, Clone)]
pub struct Walks {
    width: usize,
    events: u32,
    /// What is left of a sum after an event, as a logarithm.
    rates: [f32; DECAYS.len()],
    /// For each node the event of its last change.
    changed: Vec<u32>,
    /// For each node and decay w1, then w2, as of the last change.
    sums: Vec<f32>,
}

impl Walks {
    pub fn new(width: usize, nodes: usize) -> Walks {
        Walks {
            width,
            events: 0,
            rates: DECAYS.map(|decay| decay_rate(decay, nodes)),
            changed: Vec::new(),
            sums: Vec::new(),
        }
    }

    pub fn observe(&mut self, event: &Event) {
        let (u, v) = (event.source, event.destination);
        self.reach(u.index().max(v.index()));
        self.bring_up(u);
        self.bring_up(v);
        let (width, stride) = (self.width, SUMS * self.width);
        for decay in 0..DECAYS.len() {
            let at = |node: NodeId| node.index() * stride + decay * 2 * width;
            // w2 first: it takes in the other's w1 from before this event.
            for (node, other) in [(u, v), (v, u)] {
                for place in 0..width {
                    let met = self.sums[at(other) + place];
                    self.sums[at(node) + width + place] += met;
                }
            }
            for (node, other) in [(u, v), (v, u)] {
                let w1 = &mut self.sums[at(node)..at(node) + width];
                Code::of(other).signed(w1.iter_mut(), |sign, sum| *sum += sign);
            }
        }
        self.events = self.events.saturating_add(1);
    }

    /// All numbers of a pair.
    pub fn tell<'a>(&'a self, source: NodeId, candidate: NodeId, out: &mut Numbers<'_>) {
        let (u_code, v_code) = (Code::of(source), Code::of(candidate));
        let (u, v) = (self.sums_of(source), self.sums_of(candidate));
        let scale = 1.0 / self.width as f32;
        for (decay, &rate) in self.rates.iter().enumerate() {
            let left = |sums: Option<(u32, &[f32])>| {
                sums.map_or(0.0, |(changed, _)| (rate * (self.events - changed) as f32).exp() * scale)
            };
            let (u_left, v_left) = (left(u), left(v));
            let side = |sums: Option<(u32, &'a [f32])>, length: usize| -> &'a [f32] {
                let from = (2 * decay + length) * self.width;
                sums.map_or(&[], |(_, sums)| &sums[from..from + self.width])
            };
            let (u1, u2, v1, v2) = (side(u, 0), side(u, 1), side(v, 0), side(v, 1));
            let (pairs, long, back, both) = (dot(u1, v1), dot(u1, v2), dot(u2, v1), dot(u2, v2));
            out.put(signed_log(v_code.dot(u1) * u_left));
            out.put(signed_log(u_code.dot(v1) * v_left));
            out.put(signed_log(v_code.dot(u2) * u_left));
            out.put(signed_log(u_code.dot(v2) * v_left));
            // Both factors hold 1 / d, of which the product of two sums needs one.
            let left = u_left * v_left * self.width as f32;
            for product in [pairs, long, back, both] {
                out.put(signed_log(product * left));
            }
            let [u1n, u2n, v1n, v2n] = [u1, u2, v1, v2].map(|sum| dot(sum, sum).sqrt().max(1e-6));
            out.put(pairs / (u1n * v1n));
            out.put((long / (u1n * v2n) + back / (u2n * v1n)) * 0.5);
            out.put(both / (u2n * v2n));
        }
    }

    fn sums_of(&self, node: NodeId) -> Option<(u32, &[f32])> {
        let stride = SUMS * self.width;
        let changed = *self.changed.get(node.index())?;
        Some((changed, &self.sums[node.index() * stride..(node.index() + 1) * stride]))
    }

    fn reach(&mut self, node: usize) {
        if node >= self.changed.len() {
            self.changed.resize(node + 1, self.events);
            self.sums.resize((node + 1) * SUMS * self.width, 0.0);
        }
    }

    /// Decays a node's sums to now.
    fn bring_up(&mut self, node: NodeId) {
        let since = (self.events - self.changed[node.index()]) as f32;
        self.changed[node.index()] = self.events;
        let first = node.index() * SUMS * self.width;
        for (decay, rate) in self.rates.iter().enumerate() {
            let left = (rate * since).exp();
            let from = first + 2 * decay * self.width;
            self.sums[from..from + 2 * self.width].iter_mut().for_each(|sum| *sum *= left);
        }
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("walks.events", vec![self.events]);
        checkpoint.push_u32("walks.changed", &self.changed);
        checkpoint.push_f32("walks.sums", &self.sums);
    }

    /// Takes over what [`Walks::save`] wrote for the same width.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.sums = checkpoint.take_f32("walks.sums")?;
        self.events = checkpoint.u32("walks.events")?.first().copied().unwrap_or(0);
        self.changed = checkpoint.u32("walks.changed")?.to_vec();
        let expected = self.changed.len() * SUMS * self.width;
        if self.sums.len() != expected {
            let (left, right) = (self.sums.len(), expected);
            return Err(Error::LengthMismatch { what: "stored walks and their nodes", left, right });
        }
        Ok(())
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

/// A node's signs: a stream of words of 64, the same whenever it is opened.
struct Code {
    draw: Draw,
}

impl Code {
    fn of(node: NodeId) -> Code {
        Code { draw: Draw::new(&[0xc0de, u64::from(node.0)]) }
    }

    /// Calls `take` with each number and its sign.
    fn signed<T>(&self, numbers: impl Iterator<Item = T>, mut take: impl FnMut(f32, T)) {
        let (mut draw, mut word) = (self.draw.clone(), 0);
        for (place, number) in numbers.enumerate() {
            if place % 64 == 0 {
                word = draw.next();
            }
            take(f32::from_bits(1.0f32.to_bits() | ((word >> (place % 64)) as u32 & 1) << 31), number);
        }
    }

    fn dot(&self, sums: &[f32]) -> f32 {
        let mut total = 0.0;
        self.signed(sums.iter(), |sign, &sum| total += sign * sum);
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn walks(events: &[(u32, u32)]) -> Walks {
        let mut walks = Walks::new(256, 1_000_000);
        for (number, &(source, destination)) in (0..).zip(events) {
            let (source, destination) = (NodeId(source), NodeId(destination));
            walks.observe(&Event { number, source, destination, time: Time::ZERO });
        }
        walks
    }

    fn told(walks: &Walks, source: u32, candidate: u32) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        walks.tell(NodeId(source), NodeId(candidate), &mut Numbers { row: &mut row });
        row
    }

    #[test]
    fn products_of_sums_count_meetings_and_common_partners() {
        // With a million nodes nothing decays here. 1 and 2 met twice; 1 and 4 have both met 3.
        let walks = walks(&[(1, 2), (1, 2), (1, 3), (4, 3)]);
        let counted = |number: f32| ((number * 4.0).abs().exp() - 1.0) * number.signum();
        let close = |number: f32, count: f32| (counted(number) - count).abs() < 0.35 * count.max(1.0);
        let (met, common, apart) = (told(&walks, 1, 2), told(&walks, 1, 4), told(&walks, 1, 9));
        assert!(close(met[0], 2.0) && close(met[1], 2.0), "{met:?}");
        assert!(close(common[0], 0.0) && close(common[4], 1.0), "{common:?}");
        assert!(apart.iter().all(|&number| counted(number).abs() < 0.5), "{apart:?}");
        // The cosine of the partners of 1, {2, 2, 3}, and of 4, {3}.
        assert!((common[8] - 1.0 / 5f32.sqrt()).abs() < 0.2, "{common:?}");
    }

    #[test]
    fn sums_decay_with_the_events_of_others() {
        let mut few = Walks::new(64, 2);
        let meet = |source, destination| Event {
            number: 0,
            source: NodeId(source),
            destination: NodeId(destination),
            time: Time::ZERO,
        };
        few.observe(&meet(0, 1));
        let fresh = told(&few, 0, 1)[0];
        // The first decay halves a sum after as many events as there are nodes: two.
        (0..2).for_each(|_| few.observe(&meet(7, 8)));
        let later = told(&few, 0, 1)[0];
        let counted = |number: f32| (number * 4.0).exp() - 1.0;
        assert!((counted(later) / counted(fresh) - 0.5).abs() < 1e-3, "{fresh} {later}");
    }
}
