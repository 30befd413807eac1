//! The caches of all nodes: who met whom, each with a small vector, in a fixed number of slots.
//!
//! A key has one slot in a cache, which its hash says. Hashes and draws follow the order in which
//! nodes were first observed, so that they do not depend on how nodes are numbered.

use super::Lists;
use super::config::NatConfig;
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::Revealed;
use crate::model::cache::NodeCache;
use crate::model::rows::NodeRows;
use crate::rng::KeyedRng;
use std::ops::Range;
use std::sync::Arc;

/// In place of a row or an event where there is none.
const NOTHING: u32 = u32::MAX;
/// Numbers that scoring keeps at most: 64 MB.
const MOST: usize = 16 << 20;
/// What slots and replacements are drawn from.
const SLOT: u64 = 0x51;
const REPLACE: u64 = 0x7e;

/// How many slots there are, and how wide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Of a self vector.
    pub width: usize,
    /// Of a slot's vector.
    pub neighbour_width: usize,
    first_hop: usize,
    second_hop: usize,
    replace: f64,
}

impl Shape {
    pub fn new(config: &NatConfig) -> Shape {
        Shape {
            width: config.node_width,
            neighbour_width: config.neighbour_width,
            first_hop: config.first_hop,
            second_hop: config.second_hop,
            replace: config.replace,
        }
    }

    /// Slots of a node: the node itself, then its neighbours, then theirs.
    pub fn slots(&self) -> usize {
        1 + self.first_hop + self.second_hop
    }

    fn hop(&self, hop: usize) -> Range<usize> {
        match hop {
            0 => 0..1,
            1 => 1..1 + self.first_hop,
            _ => 1 + self.first_hop..self.slots(),
        }
    }

    /// The hop that a slot belongs to.
    pub fn hop_of(&self, slot: usize) -> usize {
        usize::from(slot > 0) + usize::from(slot > self.first_hop)
    }

    /// The slot of a key; nothing where the hop has none.
    fn slot(&self, hop: usize, key: u32) -> Option<usize> {
        let slots = self.hop(hop);
        let place = |count| KeyedRng::new(&[SLOT, u64::from(key)]).below(count) as usize;
        (!slots.is_empty()).then(|| slots.start + place(slots.len() as u64))
    }
}

/// Self vectors and caches. A node that has not interacted has none.
#[derive(Debug, Clone)]
pub struct Caches {
    pub shape: Shape,
    start: f64,
    nodes: NodeRows,
    /// [rows, width].
    selves: Vec<f32>,
    /// The row of whom each met last.
    partners: Vec<u32>,
    /// The rows of keys, [rows, slots].
    keys: Vec<u32>,
    /// The places of events among those observed, [rows, slots].
    events: Vec<u32>,
    /// [rows, slots, neighbour width]. The slot's event is not yet part of its vector.
    vectors: Vec<f32>,
    /// When each observed event was, since the start.
    times: Vec<f64>,
    /// Their features.
    features: Vec<f32>,
    pub kept: NodeCache<NodeId, Arc<Kept>>,
}

/// A node as caches are joined by it. The order is that of first observation, so that dropout, which
/// falls on joined nodes one after the other, does not depend on how nodes are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The row of a node that has interacted.
    Row(u32),
    /// A node that has not. It is in no cache but its own.
    Unseen(NodeId),
}

impl Key {
    /// Whether it comes before another when two lists are joined. Of two unseen nodes the own list's
    /// is first.
    pub fn comes_before(self, other: Key) -> bool {
        match (self, other) {
            (Key::Row(own), Key::Row(other)) => own < other,
            (Key::Row(_), Key::Unseen(_)) => true,
            (Key::Unseen(_), Key::Row(_)) => false,
            (Key::Unseen(own), Key::Unseen(other)) => own != other,
        }
    }
}

/// What scoring keeps of a node until the next observation.
#[derive(Debug)]
pub struct Kept {
    /// The nodes in its caches, in order, each with a bit for every hop at which it is.
    pub keys: Vec<(Key, u8)>,
    /// What the node brings to the hidden layer as a source, then as a candidate.
    pub hidden: Vec<f32>,
}

/// An offer that was accepted: the slot, and what it holds from now on. The vector is a row of
/// those read, or zeros.
struct Write {
    place: usize,
    key: u32,
    event: u32,
    vector: Option<u32>,
}

impl Caches {
    pub fn new(shape: Shape, start: f64) -> Caches {
        Caches {
            shape,
            start,
            nodes: NodeRows::default(),
            selves: Vec::new(),
            partners: Vec::new(),
            keys: Vec::new(),
            events: Vec::new(),
            vectors: Vec::new(),
            times: Vec::new(),
            features: Vec::new(),
            kept: NodeCache::new(MOST),
        }
    }

    pub fn row(&self, node: NodeId) -> Option<u32> {
        self.nodes.row(node)
    }

    /// The node of a row.
    pub fn node(&self, row: u32) -> NodeId {
        self.nodes.node(row)
    }

    /// All self vectors, a row each.
    pub fn selves(&self) -> &[f32] {
        &self.selves
    }

    /// A row's self vector.
    pub fn self_vector(&self, row: u32) -> &[f32] {
        &self.selves[row as usize * self.shape.width..][..self.shape.width]
    }

    /// The row of whom a row met last, and the event.
    pub fn last(&self, row: u32) -> (u32, u32) {
        (self.partners[row as usize], self.events[row as usize * self.shape.slots()])
    }

    /// When an observed event was.
    pub fn time(&self, event: u32) -> f64 {
        self.times[event as usize]
    }

    /// How many features an observed event has.
    pub fn feature_width(&self) -> usize {
        self.features.len().checked_div(self.times.len()).unwrap_or(0)
    }

    /// The features of an observed event.
    pub fn features(&self, event: u32) -> &[f32] {
        let width = self.feature_width();
        &self.features[event as usize * width..][..width]
    }

    /// The slots of a row that hold a key: slot, key's row, event and vector.
    pub fn entries(&self, row: u32) -> impl Iterator<Item = (usize, u32, u32, &[f32])> {
        let (slots, width) = (self.shape.slots(), self.shape.neighbour_width);
        let first = row as usize * slots;
        (0..slots).filter(move |slot| self.keys[first + slot] != NOTHING).map(move |slot| {
            let place = first + slot;
            let vector = &self.vectors[place * width..][..width];
            (slot, self.keys[place], self.events[place], vector)
        })
    }

    fn row_or_new(&mut self, node: NodeId) -> u32 {
        let row = self.nodes.row_or_new(node);
        let (count, slots) = (self.nodes.len(), self.shape.slots());
        if count > self.partners.len() {
            self.selves.resize(count * self.shape.width, 0.0);
            self.partners.push(NOTHING);
            self.keys.resize(count * slots, NOTHING);
            self.events.resize(count * slots, NOTHING);
            self.vectors.resize(count * slots * self.shape.neighbour_width, 0.0);
        }
        row
    }

    /// Whether a key may have a slot: always if it is free or the key's own.
    fn accepts(&self, hop: usize, row: u32, place: usize, key: u32, event: u32) -> bool {
        let held = self.keys[place];
        let draw = || {
            let key = [REPLACE, hop as u64, u64::from(row), u64::from(key), u64::from(event)];
            KeyedRng::new(&key).unit()
        };
        held == NOTHING || held == key || draw() < self.shape.replace
    }

    /// Lets a step's events change the caches. `read` has the slots of the step's nodes as they
    /// were before it, `vectors` what they read as, and `selves` the nodes' new self vectors.
    pub fn observe(
        &mut self,
        known: Revealed<'_>,
        step: &[Event],
        read: &Lists,
        vectors: &[f32],
        selves: &[f32],
    ) {
        self.kept.clear();
        let nodes = read.nodes.items();
        let rows: Vec<u32> = nodes.iter().map(|&node| self.row_or_new(node)).collect();
        let (first, slots) = (self.times.len() as u32, self.shape.slots());
        let mut writes: Vec<Write> = Vec::new();
        let mut partners = Vec::new();
        for (event, number) in step.iter().zip(first..) {
            let [source, destination] = [event.source, event.destination]
                .map(|node| read.nodes.find(node).expect("a node of the step"));
            for (node, other) in [(source, destination), (destination, source)] {
                let (row, other_row) = (rows[node as usize], rows[other as usize]);
                let mut offer = |to: u32, hop: usize, key: u32, event: u32, vector: Option<u32>| {
                    let Some(slot) = self.shape.slot(hop, key) else { return };
                    let place = to as usize * slots + slot;
                    if self.accepts(hop, to, place, key, number) {
                        writes.push(Write { place, key, event, vector });
                    }
                };
                let (mut own, mut met) = (None, None);
                for entry in read.span(node) {
                    let slot = read.slots[entry as usize];
                    match self.shape.hop_of(slot.slot) {
                        0 => own = Some(entry),
                        1 => {
                            met = met.or((slot.key == other_row).then_some(entry));
                            offer(other_row, 2, slot.key, slot.event, Some(entry));
                        }
                        _ => {}
                    }
                }
                offer(row, 1, other_row, number, met);
                writes.push(Write {
                    place: row as usize * slots,
                    key: row,
                    event: number,
                    vector: own,
                });
                partners.push((row, other_row));
            }
        }
        let width = self.shape.neighbour_width;
        for Write { place, key, event, vector } in writes {
            self.keys[place] = key;
            self.events[place] = event;
            let slot = &mut self.vectors[place * width..][..width];
            match vector {
                Some(row) => slot.copy_from_slice(&vectors[row as usize * width..][..width]),
                None => slot.fill(0.0),
            }
        }
        partners.into_iter().for_each(|(row, other)| self.partners[row as usize] = other);
        let width = self.shape.width;
        for (&row, vector) in rows.iter().zip(selves.chunks(width)) {
            self.selves[row as usize * width..][..width].copy_from_slice(vector);
        }
        for event in step {
            self.times.push(event.time.value() - self.start);
            self.features.extend_from_slice(known.event_features(event));
        }
    }

    /// Writes everything.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        self.nodes.save(checkpoint);
        checkpoint.push_f32("state.selves", &self.selves);
        checkpoint.push_u32("state.partners", &self.partners);
        checkpoint.push_u32("state.keys", &self.keys);
        checkpoint.push_u32("state.events", &self.events);
        checkpoint.push_f32("state.vectors", &self.vectors);
        checkpoint.push_f64("state.times", &self.times);
        checkpoint.push_f32("state.features", &self.features);
    }

    /// Takes over what [`Caches::save`] wrote, with at most so many features of an event.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>, most: usize) -> Result<()> {
        self.nodes = NodeRows::load(checkpoint)?;
        self.selves = checkpoint.take_f32("state.selves")?;
        self.partners = checkpoint.u32("state.partners")?.to_vec();
        self.keys = checkpoint.u32("state.keys")?.to_vec();
        self.events = checkpoint.u32("state.events")?.to_vec();
        self.vectors = checkpoint.take_f32("state.vectors")?;
        self.times = checkpoint.f64("state.times")?.to_vec();
        self.features = checkpoint.take_f32("state.features")?;
        // A file that somebody made up may say anything.
        let (rows, slots) = (self.nodes.len(), self.nodes.len() * self.shape.slots());
        let features = self.feature_width() * self.times.len();
        for (what, left, right) in [
            ("numbers of stored self vectors", self.selves.len(), rows * self.shape.width),
            ("stored nodes and whom they met last", self.partners.len(), rows),
            ("stored slots and their keys", self.keys.len(), slots),
            ("stored slots and their events", self.events.len(), slots),
            ("numbers of stored slots", self.vectors.len(), slots * self.shape.neighbour_width),
            ("numbers of stored event features", self.features.len(), features),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        let wide = self.feature_width();
        let exact = checkpoint.extent().map(|extent| extent.event_features);
        if wide > most || !self.times.is_empty() && exact.is_some_and(|exact| exact != wide) {
            return Err(impossible(format!("has {wide} features of an event")));
        }
        if !self.times.iter().all(|time| time.is_finite()) {
            return Err(impossible("has events that were at no time"));
        }
        if self.partners.iter().any(|&row| row as usize >= rows) {
            return Err(impossible("has a node that met nobody"));
        }
        for (place, (&key, &event)) in self.keys.iter().zip(&self.events).enumerate() {
            let own = place.is_multiple_of(self.shape.slots());
            let row = (place / self.shape.slots()) as u32;
            let empty = key == NOTHING && event == NOTHING;
            let full = (key as usize) < rows && (event as usize) < self.times.len();
            let possible = if own { full && key == row } else { empty || full };
            if !possible {
                return Err(impossible(format!(
                    "has slot {place} with key {key} of event {event}"
                )));
            }
        }
        Ok(())
    }
}
