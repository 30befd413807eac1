//! Random projections of temporal walk matrices.
//!
//! Every node has a random vector H^0 of D numbers, and H^l is the sum of the vectors at the other
//! ends of all walks of length l from it, decayed with time. So <H^k_a, H^l_b> is about how many
//! walks of length k and l lead from a and b to the same node. H^0 is drawn from the node's first
//! event, so that it does not depend on how nodes are numbered.
//!
//! Sums are decayed when they change. Until then the factor of the time gone by is kept apart: it is
//! one number for each node and length.

use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::{Past, Seed};
use crate::rng::KeyedRng;
use lstep_tensor::{row_products, signed_logs};

/// The most sums that a node has: those of walks of length 0 to 7.
pub const MOST: usize = 8;

/// What identifies a node here: twice the number of its first event, and one more where it was the
/// destination; or one of the following.
pub type Born = u64;

/// The node that stands in slots without an event.
pub const NOBODY: Born = u64::MAX;
/// The source of a question that has not interacted yet.
const NEW_SOURCE: Born = u64::MAX - 1;
/// The candidate of a question that has not interacted yet.
const NEW_CANDIDATE: Born = u64::MAX - 2;

const NOWHERE: u32 = u32::MAX;
/// Rows are filled up with zeros to a multiple of it, for [`row_products`].
const LANES: usize = 16;

/// How many sums there are, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Sums of a node, H^0 among them.
    pub sums: usize,
    /// D.
    pub width: usize,
    /// By how much a walk's weight decays in a unit of time, as a logarithm.
    pub rate: f64,
}

impl Shape {
    /// The room of a sum.
    fn room(self) -> usize {
        self.width.next_multiple_of(LANES)
    }

    /// The room of a node's sums.
    fn stride(self) -> usize {
        self.sums * self.room()
    }
}

/// The projections of all nodes that have interacted.
#[derive(Debug, Clone)]
pub struct Projections {
    shape: Shape,
    /// What H^0 is drawn from, beside the node.
    draw: u64,
    /// When time began.
    start: f64,
    /// The last time that was observed.
    now: f64,
    /// The row of each node, or nowhere.
    rows: Vec<u32>,
    nodes: Vec<NodeId>,
    born: Vec<Born>,
    /// For each row the time of its last change.
    changed: Vec<f64>,
    /// For each row H^0, H^1, ... as of its last change.
    sums: Vec<f32>,
}

/// The sums of a node, and what is left of each.
#[derive(Clone, Copy)]
pub struct Sums<'a> {
    /// H^0, H^1, ...; only H^0 of a node that has not interacted.
    rows: &'a [f32],
    left: [f32; MOST],
}

impl Projections {
    /// No node has interacted yet.
    pub fn new(shape: Shape, draw: u64, start: f64) -> Projections {
        Projections {
            shape,
            draw,
            start,
            now: start,
            rows: Vec::new(),
            nodes: Vec::new(),
            born: Vec::new(),
            changed: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// When time began.
    pub fn start(&self) -> f64 {
        self.start
    }

    fn row(&self, node: NodeId) -> Option<usize> {
        self.rows.get(node.index()).filter(|&&row| row != NOWHERE).map(|&row| row as usize)
    }

    /// What identifies the node of a seed, and its row if it has one. A node whose first events
    /// have not been observed yet is who it will be; one without any is new.
    pub fn identify(&self, past: Past<'_>, seed: Seed, is_source: bool) -> (Born, Option<usize>) {
        if let Some(row) = self.row(seed.node()) {
            return (self.born[row], Some(row));
        }
        let born = match past.history(seed).first() {
            Some(first) => {
                let side = u64::from(!past.starts_at(seed.node(), first));
                2 * u64::from(first.event()) + side
            }
            None if is_source => NEW_SOURCE,
            None => NEW_CANDIDATE,
        };
        (born, None)
    }

    /// Appends the H^0 of a node, filled up.
    pub fn draw_into(&self, born: Born, vectors: &mut Vec<f32>) {
        let end = vectors.len() + self.shape.room();
        let mut draw = KeyedRng::new(&[0x7b0, self.draw, born]);
        let deviation = 1.0 / (self.shape.width as f64).sqrt();
        for place in 0..self.shape.width {
            // Box and Muller's two numbers of two; 1 - unit is never zero.
            if place % 2 == 0 {
                let radius = deviation * (-2.0 * (1.0 - draw.unit()).ln()).sqrt();
                let (sine, cosine) = (std::f64::consts::TAU * draw.unit()).sin_cos();
                vectors.extend([(radius * cosine) as f32, (radius * sine) as f32]);
            }
        }
        vectors.truncate(end - self.shape.room() + self.shape.width);
        vectors.resize(end, 0.0);
    }

    /// The room that [`Projections::draw_into`] takes.
    pub fn room(&self) -> usize {
        self.shape.room()
    }

    /// The sums of a row as of now.
    pub fn of(&self, row: usize) -> Sums<'_> {
        let stride = self.shape.stride();
        let left = self.left(self.now - self.changed[row]);
        Sums { rows: &self.sums[row * stride..][..stride], left }
    }

    /// The sums of a node that has only an H^0.
    pub fn of_new<'a>(&self, vector: &'a [f32]) -> Sums<'a> {
        Sums { rows: vector, left: [1.0; MOST] }
    }

    /// What is left of sums after a time.
    fn left(&self, time: f64) -> [f32; MOST] {
        let once = (-self.shape.rate * time.max(0.0)).exp();
        let mut left = 1.0;
        std::array::from_fn(|_| {
            let now = left as f32;
            left *= once;
            now
        })
    }

    /// ln(1 + max(<H^k_a, H^l_b>, 0)) for all lengths k and l, in the order of k.
    pub fn nearness(&self, a: Sums<'_>, b: Sums<'_>, out: &mut [f32]) {
        let (sums, room) = (self.shape.sums, self.shape.room());
        let mut products = [0.0; MOST * MOST];
        row_products(a.rows, b.rows, room, &mut products);
        out.fill(0.0);
        let columns = b.rows.len() / room;
        for k in 0..a.rows.len() / room {
            for l in 0..columns {
                let product = products[k * columns + l] * a.left[k] * b.left[l];
                out[k * sums + l] = product.max(0.0);
            }
        }
        signed_logs(out);
    }

    /// Lets a step's events add their walks. A walk has at most one event of a step.
    pub fn observe(&mut self, step: &[Event]) {
        let Some(last) = step.last() else { return };
        let now = last.time.value();
        for event in step {
            for (node, side) in [(event.source, 0), (event.destination, 1)] {
                let row = self.row_or_new(node, 2 * u64::from(event.number) + side, now);
                self.bring_up(row, now);
            }
        }
        self.now = now;
        // Of the longest walks first: they take in shorter ones as they were before the step.
        for length in (1..self.shape.sums).rev() {
            for event in step {
                let weight = (-self.shape.rate * (now - event.time.value())).exp() as f32;
                let [source, destination] = [event.source, event.destination]
                    .map(|node| self.row(node).expect("rows were made above"));
                self.add(source, destination, length, weight);
                self.add(destination, source, length, weight);
            }
        }
    }

    /// Adds to a row's sum of a length the other's sum of one less.
    fn add(&mut self, row: usize, other: usize, length: usize, weight: f32) {
        let (stride, room) = (self.shape.stride(), self.shape.room());
        let (to, from) = (row * stride + length * room, other * stride + (length - 1) * room);
        // The two never overlap: they are of different rows, or of different lengths.
        let (to, from) = if to < from {
            let (before, after) = self.sums.split_at_mut(from);
            (&mut before[to..to + room], &after[..room])
        } else {
            let (before, after) = self.sums.split_at_mut(to);
            (&mut after[..room], &before[from..from + room])
        };
        to.iter_mut().zip(from).for_each(|(sum, &met)| *sum += weight * met);
    }

    /// Decays a row's sums to a time.
    fn bring_up(&mut self, row: usize, now: f64) {
        let left = self.left(now - self.changed[row]);
        self.changed[row] = now;
        let (stride, room) = (self.shape.stride(), self.shape.room());
        let sums = self.sums[row * stride..][..stride].chunks_exact_mut(room);
        for (sum, left) in sums.zip(left).skip(1) {
            sum.iter_mut().for_each(|value| *value *= left);
        }
    }

    fn row_or_new(&mut self, node: NodeId, born: Born, now: f64) -> usize {
        if let Some(row) = self.row(node) {
            return row;
        }
        if node.index() >= self.rows.len() {
            self.rows.resize(node.index() + 1, NOWHERE);
        }
        let row = self.nodes.len();
        self.rows[node.index()] = row as u32;
        self.nodes.push(node);
        self.born.push(born);
        self.changed.push(now);
        let mut sums = std::mem::take(&mut self.sums);
        self.draw_into(born, &mut sums);
        sums.resize((row + 1) * self.shape.stride(), 0.0);
        self.sums = sums;
        row
    }

    /// Writes everything but H^0, which is drawn again, and the zeros that fill rows up.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        let nodes: Vec<u32> = self.nodes.iter().map(|node| node.0).collect();
        checkpoint.push_u64("projections.draw", vec![self.draw]);
        checkpoint.push_f64("projections.now", vec![self.now]);
        checkpoint.push_u32("projections.nodes", nodes);
        checkpoint.push_u64("projections.born", &self.born);
        checkpoint.push_f64("projections.changed", &self.changed);
        let (room, width) = (self.shape.room(), self.shape.width);
        let rows = self.sums.chunks_exact(self.shape.stride());
        let sums = rows.flat_map(|row| row.chunks_exact(room).skip(1));
        let sums: Vec<f32> = sums.flat_map(|sum| &sum[..width]).copied().collect();
        checkpoint.push_f32("projections.sums", sums);
    }

    /// Takes over what [`Projections::save`] wrote for the same shape.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.draw = checkpoint.one_u64("projections.draw")?;
        let &[now] = checkpoint.f64("projections.now")? else {
            return Err(impossible("has projections of more than one time"));
        };
        let nodes = checkpoint.nodes("projections.nodes")?;
        let born = checkpoint.u64("projections.born")?.to_vec();
        let changed = checkpoint.f64("projections.changed")?.to_vec();
        let sums = checkpoint.take_f32("projections.sums")?;
        // A file that somebody made up may say anything.
        let numbers = nodes.len().saturating_mul((self.shape.sums - 1) * self.shape.width);
        for (what, left, right) in [
            ("stored nodes and their first events", born.len(), nodes.len()),
            ("stored nodes and when they changed", changed.len(), nodes.len()),
            ("numbers of stored projections", sums.len(), numbers),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        let known = |time: &f64| time.is_finite() && *time <= now;
        if !now.is_finite() || !changed.iter().all(known) {
            return Err(impossible("has projections that changed at no time, or later than now"));
        }
        if !sums.iter().all(|sum| sum.is_finite()) {
            return Err(impossible("has projections that are no numbers"));
        }
        if born.iter().any(|&born| born > 2 * u64::from(u32::MAX) + 1) {
            return Err(impossible("has projections of nodes without a first event"));
        }
        self.now = now;
        for (&node, &born) in nodes.iter().zip(&born) {
            self.row_or_new(node, born, now);
        }
        if self.nodes.len() != nodes.len() {
            return Err(impossible("has projections of the same node twice"));
        }
        self.changed = changed;
        let (room, width) = (self.shape.room(), self.shape.width);
        let rows = self.sums.chunks_exact_mut(self.shape.stride());
        let places = rows.flat_map(|row| row.chunks_exact_mut(room).skip(1));
        for (place, sum) in places.zip(sums.chunks_exact(width)) {
            place[..width].copy_from_slice(sum);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use std::collections::BTreeMap;

    const SHAPE: Shape = Shape { sums: 4, width: 5, rate: 0.05 };

    fn events() -> Vec<Event> {
        let rows = [(1, 2, 0.0), (2, 2, 1.0), (1, 3, 1.0), (3, 2, 4.0), (7, 1, 9.0), (1, 2, 9.5)];
        let event = |(number, (source, destination, time)): (u32, (u32, u32, f64))| Event {
            number,
            source: NodeId(source),
            destination: NodeId(destination),
            time: Time::new(time).expect("finite"),
        };
        (0..).zip(rows).map(event).collect()
    }

    /// The definition: all sums of all nodes decay at every step.
    fn plain(projections: &Projections, steps: &[&[Event]]) -> BTreeMap<u32, Vec<Vec<f64>>> {
        let mut all: BTreeMap<u32, Vec<Vec<f64>>> = BTreeMap::new();
        let mut now = 0.0;
        for step in steps {
            for event in *step {
                for (node, side) in [(event.source, 0), (event.destination, 1)] {
                    all.entry(node.0).or_insert_with(|| {
                        let mut first = Vec::new();
                        projections.draw_into(2 * u64::from(event.number) + side, &mut first);
                        let first = first[..5].iter().map(|&x| f64::from(x)).collect();
                        vec![first, vec![0.0; 5], vec![0.0; 5], vec![0.0; 5]]
                    });
                }
            }
            let last = step[step.len() - 1].time.value();
            for sums in all.values_mut() {
                for (length, sum) in sums.iter_mut().enumerate() {
                    let left = (-SHAPE.rate * length as f64 * (last - now)).exp();
                    sum.iter_mut().for_each(|value| *value *= left);
                }
            }
            for length in [3, 2, 1] {
                for event in *step {
                    let weight = (-SHAPE.rate * (last - event.time.value())).exp();
                    for (node, other) in
                        [(event.source, event.destination), (event.destination, event.source)]
                    {
                        let met = all[&other.0][length - 1].clone();
                        let sum = &mut all.get_mut(&node.0).expect("known")[length];
                        sum.iter_mut().zip(met).for_each(|(sum, met)| *sum += weight * met);
                    }
                }
            }
            now = last;
        }
        all
    }

    fn observed(events: &[Event], step: usize) -> Projections {
        let mut projections = Projections::new(SHAPE, 3, 0.0);
        events.chunks(step).for_each(|step| projections.observe(step));
        projections
    }

    #[test]
    fn sums_that_decay_when_they_change_are_those_that_decay_at_every_step() {
        let events = events();
        for step in [1, 2, 4] {
            let projections = observed(&events, step);
            let steps: Vec<&[Event]> = events.chunks(step).collect();
            for (node, sums) in plain(&projections, &steps) {
                let row = projections.row(NodeId(node)).expect("it has interacted");
                let ours = projections.of(row);
                for (length, sum) in sums.iter().enumerate() {
                    for (place, expected) in sum.iter().enumerate() {
                        let found = ours.rows[length * 16 + place] * ours.left[length];
                        assert!((f64::from(found) - expected).abs() < 1e-5, "{node} {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn first_vectors_have_length_one_on_average_and_are_those_of_their_key() {
        let shape = Shape { width: 110, ..SHAPE };
        let projections = Projections::new(shape, 0, 0.0);
        let (mut vectors, mut again) = (Vec::new(), Vec::new());
        (0..500).for_each(|born| projections.draw_into(born, &mut vectors));
        let squares: f32 = vectors.iter().map(|x| x * x).sum();
        assert!((squares / 500.0 - 1.0).abs() < 0.02, "{squares}");
        projections.draw_into(499, &mut again);
        assert_eq!(vectors[499 * 112..], again[..]);
        let other = Projections::new(shape, 1, 0.0);
        other.draw_into(499, &mut again);
        assert_ne!(again[..112], again[112..]);
    }

    #[test]
    fn what_was_saved_is_read_back_and_what_cannot_be_is_refused() {
        let projections = observed(&events(), 2);
        let saved = || {
            let mut checkpoint = Checkpoint::default();
            projections.save(&mut checkpoint);
            checkpoint
        };
        let read = |mut checkpoint: Checkpoint<'_>| {
            let mut fresh = Projections::new(SHAPE, 0, 0.0);
            fresh.load(&mut checkpoint).map(|()| fresh)
        };
        let same = read(saved()).expect("as it was");
        assert_eq!((&same.sums, &same.born), (&projections.sums, &projections.born));
        assert_eq!((same.draw, same.now), (3, projections.now));
        type Spoil<'a> = &'a dyn Fn(&mut Checkpoint<'_>, &str);
        let spoils: [(&str, Spoil<'_>); 10] = [
            ("now", &|c, name| c.push_f64(name, vec![f64::NAN])),
            ("now", &|c, name| c.push_f64(name, vec![0.0])),
            ("now", &|c, name| c.push_f64(name, vec![])),
            ("nodes", &|c, name| c.push_u32(name, vec![1, 2, 2, 7])),
            ("nodes", &|c, name| c.push_u32(name, vec![1, 2, 3])),
            ("born", &|c, name| c.push_u64(name, vec![0; 5])),
            ("born", &|c, name| c.push_u64(name, vec![NOBODY; 4])),
            ("changed", &|c, name| c.push_f64(name, vec![f64::NAN; 4])),
            ("sums", &|c, name| c.push_f32(name, vec![0.0; 61])),
            ("sums", &|c, name| c.push_f32(name, vec![f32::INFINITY; 60])),
        ];
        for (place, (name, spoil)) in spoils.iter().enumerate() {
            let (mut checkpoint, name) = (saved(), format!("projections.{name}"));
            checkpoint.tensors.retain(|tensor| tensor.name != name);
            spoil(&mut checkpoint, &name);
            assert!(read(checkpoint).is_err(), "{place}");
        }
    }
}
