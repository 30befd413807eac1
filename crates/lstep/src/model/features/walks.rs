//! Sums of node codes along recent walks, whose products tell how near two nodes are.
//!
//! Every node that was ever met has a code c of d signs, drawn from its first event, so that codes
//! do not depend on how nodes are numbered. w1 of a node is the sum of the codes
//! of those it met, w2 the sum of their w1, both decayed with the number of events since. Codes of
//! different nodes are nearly orthogonal, so c_u . w1_v is about how often u and v met
//! lately, w1_u . w1_v whom both have met, w1_u . w2_v and w2_u . w2_v longer ways. This
//! is the temporal walk matrix of TPNet (Lu et al., "Improving Temporal Link Prediction via
//! Temporal Walk Matrix Projection", NeurIPS 2024) by random projection, with decays that the
//! number of nodes sets. O(d) for an event, and O(d) for a pair.

use super::codes::{Code, Codes};
use super::{LOG_SCALE, Numbers, decay_rate};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use lstep_tensor::{prefetch, row_products, signed_logs};

/// How many numbers a pair has.
pub const WIDTH: usize = DECAYS.len() * 11;
/// After how many events for each node a sum is down to a half.
const DECAYS: [f64; 3] = [1.0, 8.0, 64.0];
/// Sums of walks of length one and two, for each decay.
const SUMS: usize = 2 * DECAYS.len();

/// One node of a pair.
pub struct Side<'a> {
    code: Code,
    /// For each decay w1, then w2, as of the last change; nothing of a node that never was.
    sums: &'a [f32],
    /// What is left of them now, for each decay.
    left: [f32; DECAYS.len()],
    /// Their lengths.
    lengths: [f32; SUMS],
}

/// The sums of all nodes.
#[derive(Debug, Clone)]
pub struct Walks {
    width: usize,
    events: u32,
    /// What is left of a sum after an event, as a logarithm.
    rates: [f32; DECAYS.len()],
    /// For each node the event of its last change.
    changed: Vec<u32>,
    /// What codes are drawn with beside what is the node's own, where they are drawn anew in every
    /// epoch.
    salt: Option<u64>,
    /// What each node's code is drawn from.
    codes: Codes,
    /// For each node and decay w1, then w2, as of the last change.
    sums: Vec<f32>,
    /// The lengths of the sums.
    lengths: Vec<[f32; SUMS]>,
}

impl Walks {
    pub fn new(width: usize, nodes: usize, salt: Option<u64>) -> Walks {
        Walks {
            width,
            salt,
            events: 0,
            rates: DECAYS.map(|decay| decay_rate(decay, nodes)),
            changed: Vec::new(),
            codes: Codes::ByFirstEvent(Vec::new()),
            sums: Vec::new(),
            lengths: Vec::new(),
        }
    }

    pub fn observe(&mut self, event: &Event) {
        let (u, v) = (event.source, event.destination);
        self.reach(u.index().max(v.index()));
        self.codes.meet(u, 2 * u64::from(self.events));
        self.codes.meet(v, 2 * u64::from(self.events) + 1);
        self.bring_up(u);
        self.bring_up(v);
        let (width, stride) = (self.width, SUMS * self.width);
        let codes = [(u, self.code(v)), (v, self.code(u))];
        for decay in 0..DECAYS.len() {
            let at = |node: NodeId| node.index() * stride + decay * 2 * width;
            // w2 first: it takes in the other's w1 from before this event.
            for (node, other) in [(u, v), (v, u)] {
                for place in 0..width {
                    let met = self.sums[at(other) + place];
                    self.sums[at(node) + width + place] += met;
                }
            }
            for (node, code) in &codes {
                let w1 = &mut self.sums[at(*node)..at(*node) + width];
                w1.iter_mut().zip(code.signs()).for_each(|(sum, sign)| *sum += sign);
            }
        }
        self.measure(u);
        self.measure(v);
        self.events = self.events.saturating_add(1);
    }

    /// A node's sums as of now, to be compared with those of others.
    pub fn side(&self, node: NodeId) -> Side<'_> {
        let code = self.code(node);
        let Some(&changed) = self.changed.get(node.index()) else {
            return Side { code, sums: &[], left: [0.0; DECAYS.len()], lengths: [0.0; SUMS] };
        };
        let since = (self.events - changed) as f32;
        let left = self.rates.map(|rate| (rate * since).exp());
        Side { code, sums: self.of(node), left, lengths: self.lengths[node.index()] }
    }

    /// Says that a node's sums will be asked for soon.
    pub fn bring_near(&self, node: NodeId) {
        if node.index() < self.changed.len() {
            prefetch(self.of(node));
        }
    }

    fn code(&self, node: NodeId) -> Code {
        self.codes.of(node, self.width, self.salt.unwrap_or(0))
    }

    fn of(&self, node: NodeId) -> &[f32] {
        let stride = SUMS * self.width;
        &self.sums[node.index() * stride..][..stride]
    }

    /// Takes the lengths of a node's sums.
    fn measure(&mut self, node: NodeId) {
        let mut lengths = [0.0; SUMS];
        for (length, sum) in lengths.iter_mut().zip(self.of(node).chunks_exact(self.width)) {
            row_products(sum, sum, self.width, std::slice::from_mut(length));
            *length = length.sqrt();
        }
        self.lengths[node.index()] = lengths;
    }

    /// All numbers of a pair.
    pub fn write_features<'a>(&self, u: &Side<'a>, v: &Side<'a>, out: &mut Numbers<'_>) {
        let width = self.width;
        let mut v_in_u = [0.0; SUMS];
        row_products(u.sums, v.code.signs(), width, &mut v_in_u);
        let mut u_in_v = [0.0; SUMS];
        row_products(v.sums, u.code.signs(), width, &mut u_in_v);
        let scale = 1.0 / width as f32;
        let mut told = [[0.0; 8]; DECAYS.len()];
        let mut angles = [[0.0; 3]; DECAYS.len()];
        for (decay, (told, angles)) in told.iter_mut().zip(&mut angles).enumerate() {
            let (first, second) = (2 * decay, 2 * decay + 1);
            let of_decay = |side: &Side<'a>| {
                side.sums.get(first * width..(second + 1) * width).unwrap_or_default()
            };
            let mut products = [0.0; 4];
            row_products(of_decay(u), of_decay(v), width, &mut products);
            let (u_left, v_left) = (u.left[decay] * scale, v.left[decay] * scale);
            // Both factors hold 1 / d, of which the product of two sums needs one.
            let left = u_left * v_left * width as f32;
            let [pairs, long, back, both] = products;
            *told = [
                v_in_u[first] * u_left,
                u_in_v[first] * v_left,
                v_in_u[second] * u_left,
                u_in_v[second] * v_left,
                pairs * left,
                long * left,
                back * left,
                both * left,
            ];
            let length = |side: &Side<'_>, sum: usize| side.lengths[sum].max(1e-6);
            let crossed = long / (length(u, first) * length(v, second))
                + back / (length(u, second) * length(v, first));
            *angles = [
                pairs / (length(u, first) * length(v, first)),
                crossed * 0.5,
                both / (length(u, second) * length(v, second)),
            ];
        }
        signed_logs(told.as_flattened_mut());
        for (told, angles) in told.iter().zip(&angles) {
            told.iter().for_each(|&log| out.put(log * LOG_SCALE));
            angles.iter().for_each(|&angle| out.put(angle));
        }
    }

    fn reach(&mut self, node: usize) {
        if node >= self.changed.len() {
            self.changed.resize(node + 1, self.events);
            self.codes.reach(node);
            self.sums.resize((node + 1) * SUMS * self.width, 0.0);
            self.lengths.resize(node + 1, [0.0; SUMS]);
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
        if let Codes::ByFirstEvent(born) = &self.codes {
            checkpoint.push_u64("walks.born", born);
        }
        if let Some(salt) = self.salt {
            checkpoint.push_u64("walks.salt", vec![salt]);
        }
    }

    /// Takes over what [`Walks::save`] wrote for the same width.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.sums = checkpoint.take_f32("walks.sums")?;
        self.events = checkpoint.one_u32("walks.events")?;
        self.changed = checkpoint.u32("walks.changed")?.to_vec();
        let expected = self.changed.len().saturating_mul(SUMS * self.width);
        if self.sums.len() != expected {
            let (left, right) = (self.sums.len(), expected);
            return Err(Error::LengthMismatch {
                what: "stored walks and their nodes",
                left,
                right,
            });
        }
        if let Some(late) = self.changed.iter().find(|changed| **changed > self.events) {
            let remedy = format!("there were {} events", self.events);
            return Err(Error::setting("the event that changed a stored walk", late, remedy));
        }
        if let Some(salt) = &mut self.salt {
            *salt = checkpoint.one_u64("walks.salt")?;
        }
        // Runs of version 0.1 before this table drew codes from nodes' numbers.
        self.codes = if checkpoint.tensor("walks.born").is_ok() {
            let born = checkpoint.u64("walks.born")?.to_vec();
            if born.len() != self.changed.len() {
                let (left, right) = (born.len(), self.changed.len());
                return Err(Error::LengthMismatch {
                    what: "first events of stored walks and their nodes",
                    left,
                    right,
                });
            }
            Codes::ByFirstEvent(born)
        } else {
            Codes::ByNumber
        };
        self.lengths = vec![[0.0; SUMS]; self.changed.len()];
        (0..self.changed.len() as u32).for_each(|node| self.measure(NodeId(node)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn walks(events: &[(u32, u32)]) -> Walks {
        let mut walks = Walks::new(256, 1_000_000, None);
        for (number, &(source, destination)) in (0..).zip(events) {
            let (source, destination) = (NodeId(source), NodeId(destination));
            walks.observe(&Event { number, source, destination, time: Time::ZERO });
        }
        walks
    }

    fn told(walks: &Walks, source: u32, candidate: u32) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        walks.write_features(
            &walks.side(NodeId(source)),
            &walks.side(NodeId(candidate)),
            &mut Numbers { row: &mut row },
        );
        row
    }

    #[test]
    fn products_of_sums_count_meetings_and_common_partners() {
        // With a million nodes nothing decays here. 1 and 2 met twice; 1 and 4 have both met 3.
        let walks = walks(&[(1, 2), (1, 2), (1, 3), (4, 3)]);
        let counted = |number: f32| ((number * 4.0).abs().exp() - 1.0) * number.signum();
        let close =
            |number: f32, count: f32| (counted(number) - count).abs() < 0.35 * count.max(1.0);
        let (met, common, apart) = (told(&walks, 1, 2), told(&walks, 1, 4), told(&walks, 1, 9));
        assert!(close(met[0], 2.0) && close(met[1], 2.0), "{met:?}");
        assert!(close(common[0], 0.0) && close(common[4], 1.0), "{common:?}");
        assert!(apart.iter().all(|&number| counted(number).abs() < 0.5), "{apart:?}");
        // The cosine of the partners of 1, {2, 2, 3}, and of 4, {3}.
        assert!((common[8] - 1.0 / 5f32.sqrt()).abs() < 0.2, "{common:?}");
    }

    #[test]
    fn codes_of_another_epoch_are_others_and_come_back_with_their_walks() {
        let meet = Event { number: 0, source: NodeId(0), destination: NodeId(1), time: Time::ZERO };
        let [first, second] = [1, 2].map(|epoch| {
            let mut walks = Walks::new(64, 2, Some(epoch));
            walks.observe(&meet);
            walks
        });
        assert_ne!(first.sums, second.sums);
        let mut checkpoint = Checkpoint::default();
        second.save(&mut checkpoint);
        let mut back = Walks::new(64, 2, Some(0));
        back.load(&mut checkpoint).expect("just saved");
        assert_eq!(told(&back, 0, 1), told(&second, 0, 1));
    }

    #[test]
    fn sums_decay_with_the_events_of_others() {
        let mut few = Walks::new(64, 2, None);
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
