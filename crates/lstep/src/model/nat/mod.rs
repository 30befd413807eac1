//! NAT: every node keeps small dictionaries of whom it met, and a pair is scored by joining two.
//!
//! Luo and Li, "Neighborhood-Aware Scalable Temporal Network Representation Learning", LoG 2022,
//! <https://arxiv.org/abs/2209.01084>, in the form of TPNet's authors, whose settings these are and
//! whose figures are compared with. No graph is asked: the caches are the graph. A node u has a self
//! vector s_u [d], and slots that hold a key a, an event of time t with features e, and a vector y
//! [g]: one for itself (hop 0), M_1 for neighbours, M_2 for their neighbours. A key has one slot of
//! a hop, which its hash says. Times count from the start of training. Reading:
//!
//! ```text
//! y' = GRU_g(W_g [s_a | e | f_T(t)], y)                          W_g [g, d + d_E + d_T], no bias
//! s' = GRU_s(W_s [s_p | e | f_T(t)], s_u)                        p, e, t: whom u met last, and when
//! ```
//!
//! with zeros for p and e, and f_T(0), if u has met nobody. For a pair (u, v) all entries of the same
//! node a are joined: their vectors are added up to y_a, and the hops at which a is in u's and in v's
//! caches are six bits, which choose a row Z_a [16] of a table of 64. A node is in its own hop 0 even
//! if it has met nobody. With x_a the features of node a,
//!
//! ```text
//! p = mean over 2 heads of the sum over a of W [x_a | y_a | Z_a] + b      W [2 d, d + g + 16]
//! logit = w relu(F [p | s'_u | s'_v] + c) + c_0                           F [3 d, 3 d]
//! ```
//!
//! The time of the question does not enter. Observing an event of u and v offers the
//! key v its slot in u's first hop, with the new event, and with y' of that slot if v held it already,
//! else zeros. All entries of u's first hop are offered to v's second hop as they were read. u's hop 0
//! gets the new event and its y', and s_u becomes s'. The same for v. A slot that another key holds is taken with
//! probability `replace`. All reading is done before anything of the step is written, and the last
//! offer to a slot wins. What is stored carries no gradient.
//!
//! While scoring, p is linear and only Z couples the two nodes: F and W are folded, each node's part
//! is kept until the next step with its own rows of Z, and for a pair only the nodes that are in both
//! caches are corrected for. That costs about 1,500 multiply-adds, and 1,500 more for each kind of
//! overlap.
//!
//! Where the released code differs: its hash and its draws follow the numbers of nodes and the order
//! of calls, ours the order in which nodes were first observed (slots) and node, key and event
//! (replacement). Among offers of one step to a slot it prefers those of destinations, here the last
//! event wins. An event at time 0 counts as none there. It draws dropout for each joined row and
//! once more for the row's product with W; here it falls on each entry's vector and on each joined
//! row of Z, and not on products, which are never made one by one. Attention is switched off in the
//! released code; its unused weights are left out.

mod caches;
mod config;
mod kind;

pub use caches::Caches;
pub use config::NatConfig;
pub use kind::NatKind;

use super::batch::PairBatch;
use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, ObserveScratch, PairHead};
use super::memory::{Cell, CellKind, NodePlaces, Places};
use super::mlp::added_to;
use super::scratch::FeatureWidths;
use super::{Composite, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed};
use crate::nn::{Linear, TimeEncoder};
use caches::{Kept, Key, Shape};
use lstep_tensor::{
    Activation, Init, Pair, ParameterId, Parameters, Segments, Tape, Var, Weighting, Workspace,
};
use std::ops::Range;
use std::sync::Arc;

/// Rows of Z: three hops of either node.
const PATTERNS: usize = 64;
/// Width of Z.
const PATTERN_WIDTH: usize = 16;
/// How many heads are averaged.
const HEADS: usize = 2;

/// NAT.
pub type Nat = Composite<NoEncoder, NatHead>;

impl Nat {
    /// A model with weights drawn from a seed.
    pub fn new(config: NatConfig, seed: u64) -> Result<Nat> {
        Composite::build(seed, |parameters| {
            config.check()?;
            Ok((NoEncoder, NatHead::add(parameters, config)))
        })
    }
}

/// The head that joins two nodes' caches.
#[derive(Debug, Clone)]
pub struct NatHead {
    config: NatConfig,
    shape: Shape,
    time: TimeEncoder,
    /// W_g and GRU_g.
    slot: (ParameterId, Cell),
    /// W_s and GRU_s.
    own: (ParameterId, Cell),
    /// W.
    join: ParameterId,
    /// b.
    join_bias: ParameterId,
    /// Z.
    patterns: ParameterId,
    inner: Linear,
    outer: Linear,
}

/// The folded weights of scoring. The hidden layer has 3 d numbers.
#[derive(Debug)]
pub struct FoldedJoin {
    /// F W, [hidden, d + g + 16].
    weight: Vec<f32>,
    /// What a joined node of each pattern brings, [64, hidden].
    patterns: Vec<f32>,
    /// [hidden].
    bias: Vec<f32>,
}

/// A slot that holds a key.
#[derive(Debug, Clone, Copy)]
struct Slot {
    slot: usize,
    key: u32,
    event: u32,
}

/// The nodes of a call, their slots, and the keys and events in them.
#[derive(Debug, Default)]
pub struct Lists {
    nodes: NodePlaces,
    offsets: Vec<u32>,
    slots: Vec<Slot>,
    keys: Places<u32>,
    key_of_slot: Vec<u32>,
    /// Events, or nothing for a node that has met nobody.
    events: Places<Option<u32>>,
    event_of_slot: Vec<u32>,
    event_of_node: Vec<u32>,
    vectors: Vec<f32>,
}

impl Lists {
    /// Reads the slots of the nodes.
    fn fill(&mut self, caches: &Caches) {
        self.offsets.clear();
        self.offsets.push(0);
        self.slots.clear();
        self.keys.clear();
        self.key_of_slot.clear();
        self.events.clear();
        self.event_of_slot.clear();
        self.event_of_node.clear();
        self.vectors.clear();
        for &node in self.nodes.items() {
            let row = caches.row(node);
            for (slot, key, event, vector) in row.into_iter().flat_map(|row| caches.entries(row)) {
                self.slots.push(Slot { slot, key, event });
                self.key_of_slot.push(self.keys.place(key));
                self.event_of_slot.push(self.events.place(Some(event)));
                self.vectors.extend_from_slice(vector);
            }
            self.event_of_node.push(self.events.place(row.map(|row| caches.last(row).1)));
            self.offsets.push(self.slots.len() as u32);
        }
    }

    /// The slots of a node, by its place.
    fn span(&self, node: u32) -> Range<u32> {
        self.offsets[node as usize]..self.offsets[node as usize + 1]
    }
}

/// What the nodes of a call read as.
struct Read {
    /// y', [slots, g].
    vectors: Var,
    /// Their sums over a node's slots, [nodes, g].
    sums: Var,
    /// Sums of the features of the nodes in the slots, [nodes, width]; absent where there are none.
    features: Option<Var>,
    /// s', [nodes, d].
    selves: Var,
}

impl NatHead {
    fn add(parameters: &mut Parameters, config: NatConfig) -> NatHead {
        let NatConfig { time_width, node_width, edge_width, neighbour_width, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let inputs = node_width + edge_width + time_width;
        let mut reader = |name: &str, width: usize| {
            let weight = format!("{name}.weight");
            let weight = parameters.add(&weight, width, inputs, Init::Linear { inputs });
            (weight, Cell::add(parameters, &format!("{name}.cell"), CellKind::Gru, width, width))
        };
        let (slot, own) = (reader("slot", neighbour_width), reader("self", node_width));
        let joined = node_width + neighbour_width + PATTERN_WIDTH;
        let join = parameters.add("join.weight", HEADS * node_width, joined, Init::XavierUniform);
        let join_bias = parameters.add("join.bias", 1, node_width, Init::Zeros);
        let normal = Init::Normal { mean: 0.0, deviation: 1.0 };
        let patterns = parameters.add("join.patterns", PATTERNS, PATTERN_WIDTH, normal);
        let mut layer = |name: &str, inputs: usize, outputs: usize| Linear {
            weight: parameters.add(&format!("{name}.weight"), outputs, inputs, Init::XavierNormal),
            bias: parameters.add(&format!("{name}.bias"), 1, outputs, Init::Linear { inputs }),
        };
        let inner = layer("predict.in", 3 * node_width, 3 * node_width);
        let outer = layer("predict.out", 3 * node_width, 1);
        let shape = Shape::new(&config);
        NatHead { config, shape, time, slot, own, join, join_bias, patterns, inner, outer }
    }

    /// Reads the caches of the listed nodes.
    fn read<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        caches: &'t Caches,
        lists: &Lists,
        dropout: f32,
    ) -> Read {
        let (width, edge) = (self.shape.width, self.config.edge_width);
        let times = lists.events.items().iter().map(|event| event.map_or(0.0, |e| caches.time(e)));
        let times = tape.times(times);
        let times = self.time.apply(tape, times);
        let feature_width = caches.feature_width();
        let features = (feature_width > 0).then(|| {
            tape.input(lists.events.items().len(), feature_width, |rows| {
                for (row, event) in rows.chunks_mut(feature_width).zip(lists.events.items()) {
                    event.iter().for_each(|&event| row.copy_from_slice(caches.features(event)));
                }
            })
        });
        // What an event brings to the input of a cell, [events, rows of the weight].
        let of_events = |tape: &mut Tape<'t>, weight: Var| {
            let columns = tape.columns(weight, width + edge..width + edge + self.config.time_width);
            let of_times = tape.linear(times, columns, None, Activation::Identity);
            match features {
                None => of_times,
                Some(features) => {
                    let columns = tape.columns(weight, width..width + feature_width);
                    tape.layer(features, columns, None, added_to(of_times))
                }
            }
        };
        // What a self vector brings to it, [vectors, rows of the weight].
        let of_selves = |tape: &mut Tape<'t>, selves: Var, weight: Var| {
            let columns = tape.columns(weight, 0..width);
            tape.linear(selves, columns, None, Activation::Identity)
        };

        let weight = tape.parameter(self.slot.0);
        let table = tape.borrow(caches.selves(), width);
        let keys = tape.indices(lists.keys.items().iter().copied());
        let keys = tape.gather(table, keys);
        let pair = Pair {
            u: of_selves(tape, keys, weight),
            u_rows: tape.indices(lists.key_of_slot.iter().copied()),
            v: of_events(tape, weight),
            v_rows: tape.indices(lists.event_of_slot.iter().copied()),
        };
        let inputs = tape.gather_pair(pair, None, Activation::Identity);
        let before = tape.constant(lists.slots.len(), self.shape.neighbour_width, &lists.vectors);
        let vectors = self.slot.1.apply(tape, inputs, before);
        let offsets = tape.indices(lists.offsets.iter().copied());
        let dropped = tape.dropout(vectors, dropout);
        let sums = tape.segment_sum(dropped, Segments { rows: None, offsets }, Weighting::Sum);

        let weight = tape.parameter(self.own.0);
        let nodes = lists.nodes.items();
        let mut self_rows = |of: &dyn Fn(u32) -> u32| {
            tape.input(nodes.len(), width, |rows| {
                for (row, &node) in rows.chunks_mut(width).zip(nodes) {
                    let Some(known) = caches.row(node) else { continue };
                    row.copy_from_slice(caches.self_vector(of(known)));
                }
            })
        };
        let (own, partners) = (self_rows(&|row| row), self_rows(&|row| caches.last(row).0));
        let same = tape.indices(0..nodes.len() as u32);
        let pair = Pair {
            u: of_selves(tape, partners, weight),
            u_rows: same,
            v: of_events(tape, weight),
            v_rows: tape.indices(lists.event_of_node.iter().copied()),
        };
        let inputs = tape.gather_pair(pair, None, Activation::Identity);
        let selves = self.own.1.apply(tape, inputs, own);
        let features = self.node_features(tape, past, caches, lists);
        Read { vectors, sums, features, selves }
    }

    /// Sums of the features of the nodes in a node's caches.
    fn node_features(
        &self,
        tape: &mut Tape<'_>,
        past: Past<'_>,
        caches: &Caches,
        lists: &Lists,
    ) -> Option<Var> {
        let width = past.node_feature_width();
        (width > 0).then(|| {
            tape.input(lists.nodes.items().len(), width, |rows| {
                for (place, (row, &node)) in
                    rows.chunks_mut(width).zip(lists.nodes.items()).enumerate()
                {
                    let mut add = |node: NodeId| {
                        let features = past.node_features(node);
                        row.iter_mut().zip(features).for_each(|(sum, feature)| *sum += feature);
                    };
                    let span = lists.span(place as u32);
                    if span.is_empty() {
                        add(node);
                    }
                    span.for_each(|slot| add(caches.node(lists.slots[slot as usize].key)));
                }
            })
        })
    }

    /// The mean of W over the heads, [d, d + g + 16].
    fn mean_join(&self, tape: &mut Tape<'_>) -> Var {
        let (weight, width) = (tape.parameter(self.join), self.shape.width);
        let [first, second] = [0..width, width..2 * width].map(|rows| tape.rows(weight, rows));
        let sum = tape.add(first, second);
        tape.scale(sum, 1.0 / HEADS as f32)
    }

    /// The nodes in a node's caches, in order, each with a bit for every hop at which it is.
    fn keys(&self, lists: &Lists, place: u32) -> Vec<(Key, u8)> {
        let mut keys: Vec<(Key, u8)> = lists
            .span(place)
            .map(|slot| {
                let Slot { slot, key, .. } = lists.slots[slot as usize];
                (Key::Row(key), 1 << self.shape.hop_of(slot))
            })
            .collect();
        if keys.is_empty() {
            keys.push((Key::Unseen(lists.nodes.items()[place as usize]), 1));
        }
        keys.sort_unstable();
        keys.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 |= if same { next.1 } else { 0 };
            same
        });
        keys
    }

    /// Logits on a tape, from the caches as they are.
    fn logits_of_caches<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        caches: &'t Caches,
        pairs: &PairBatch,
        lists: &mut Lists,
    ) -> Var {
        let [sources, candidates] = list_nodes(pairs, lists);
        lists.fill(caches);
        let (past, tape) = (context.past, &mut *context.tape);
        let dropout = self.config.dropout as f32;
        let read = self.read(tape, past, caches, lists, dropout);
        let (width, slot_width) = (self.shape.width, self.shape.neighbour_width);
        let join = self.mean_join(tape);
        let columns = tape.columns(join, width..width + slot_width);
        let mut of_nodes = tape.linear(read.sums, columns, None, Activation::Identity);
        if let Some(features) = read.features {
            let columns = tape.columns(join, 0..tape.shape(features).1);
            of_nodes = tape.layer(features, columns, None, added_to(of_nodes));
        }
        let (u_rows, v_rows) =
            (tape.indices(sources.iter().copied()), tape.indices(candidates.iter().copied()));
        let pair = Pair { u: of_nodes, u_rows, v: of_nodes, v_rows };
        let of_pairs = tape.gather_pair(pair, None, Activation::Identity);
        // Z of every joined node, then its sum for a pair.
        let keys: Vec<Vec<(Key, u8)>> =
            (0..lists.nodes.items().len() as u32).map(|place| self.keys(lists, place)).collect();
        let (mut rows, mut offsets) = (Vec::new(), vec![0]);
        for (&u, &v) in sources.iter().zip(&candidates) {
            join_keys(&keys[u as usize], &keys[v as usize], |own, other| {
                rows.push(u32::from(own | other << 3));
            });
            offsets.push(rows.len() as u32);
        }
        let (rows, offsets) = (tape.indices(rows), tape.indices(offsets));
        let patterns = tape.parameter(self.patterns);
        let patterns = tape.gather(patterns, rows);
        let patterns = tape.dropout(patterns, dropout);
        let patterns = tape.segment_sum(patterns, Segments { rows: None, offsets }, Weighting::Sum);
        let columns = tape.columns(join, width + slot_width..width + slot_width + PATTERN_WIDTH);
        let bias = tape.parameter(self.join_bias);
        let joined = tape.layer(patterns, columns, Some(bias), added_to(of_pairs));

        let (weight, bias) = (tape.parameter(self.inner.weight), tape.parameter(self.inner.bias));
        let [u, v] = [1, 2].map(|part| {
            let columns = tape.columns(weight, part * width..(part + 1) * width);
            tape.linear(read.selves, columns, None, Activation::Identity)
        });
        let pair = Pair { u, u_rows, v, v_rows };
        let selves = tape.gather_pair(pair, Some(bias), Activation::Identity);
        let columns = tape.columns(weight, 0..width);
        let inner = tape.layer(joined, columns, None, added_to(selves));
        let inner = tape.apply(inner, Activation::Relu);
        self.outer.apply(tape, inner, Activation::Identity)
    }

    /// What scoring keeps of nodes, made for those that it does not know.
    fn kept<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        caches: &'t Caches,
        folded: &'t FoldedJoin,
        nodes: &[NodeId],
        lists: &mut Lists,
    ) -> Vec<Arc<Kept>> {
        let stamp = (context.parameters.version(), context.past.log_identity());
        caches.kept.get_or_make(stamp, nodes, |unknown| {
            lists.nodes.clear();
            unknown.iter().for_each(|&node| {
                lists.nodes.place(node);
            });
            let made = self.make_kept(context, caches, folded, lists).into_iter();
            let size = |kept: &Kept| kept.hidden.len() + 2 * kept.keys.len();
            made.map(|kept| (Arc::clone(&kept), size(&kept))).collect()
        })
    }

    fn make_kept<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        caches: &'t Caches,
        folded: &'t FoldedJoin,
        lists: &mut Lists,
    ) -> Vec<Arc<Kept>> {
        lists.fill(caches);
        let (past, tape) = (context.past, &mut *context.tape);
        let read = self.read(tape, past, caches, lists, 0.0);
        let (width, slot_width) = (self.shape.width, self.shape.neighbour_width);
        let hidden = folded.bias.len();
        let weight = tape.borrow(&folded.weight, width + slot_width + PATTERN_WIDTH);
        let columns = tape.columns(weight, width..width + slot_width);
        let mut of_caches = tape.linear(read.sums, columns, None, Activation::Identity);
        if let Some(features) = read.features {
            let columns = tape.columns(weight, 0..tape.shape(features).1);
            of_caches = tape.layer(features, columns, None, added_to(of_caches));
        }
        let inner = tape.parameter(self.inner.weight);
        let roles = [1, 2].map(|part| {
            let columns = tape.columns(inner, part * width..(part + 1) * width);
            tape.layer(read.selves, columns, None, added_to(of_caches))
        });
        let [source, candidate] = roles.map(|role| tape.value(role));
        let make = |place: usize| {
            let keys = self.keys(lists, place as u32);
            let mut numbers = Vec::with_capacity(2 * hidden);
            numbers.extend_from_slice(source.row(place));
            numbers.extend_from_slice(candidate.row(place));
            let (source, candidate) = numbers.split_at_mut(hidden);
            source.iter_mut().zip(&folded.bias).for_each(|(sum, bias)| *sum += bias);
            // As if nobody were in both caches; counted, so that no order of keys enters.
            let mut counts = [0i32; 8];
            keys.iter().for_each(|(_, bits)| counts[usize::from(*bits)] += 1);
            for (bits, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                add_pattern(source, folded, bits, count);
                add_pattern(candidate, folded, bits << 3, count);
            }
            Arc::new(Kept { keys, hidden: numbers })
        };
        (0..lists.nodes.items().len()).map(make).collect()
    }

    /// Logits from what is kept of nodes.
    fn logits_of_kept<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        caches: &'t Caches,
        pairs: &PairBatch,
        folded: &'t FoldedJoin,
        lists: &mut Lists,
    ) -> Var {
        let [sources, candidates] = list_nodes(pairs, lists);
        let nodes = lists.nodes.items().to_vec();
        let kept = self.kept(context, caches, folded, &nodes, lists);
        let hidden = folded.bias.len();
        let weights = context.parameters.get(self.outer.weight).values;
        let bias = context.parameters.get(self.outer.bias).values[0];
        let mut inner = vec![0.0; hidden];
        context.tape.input(pairs.len(), 1, |logits| {
            for ((logit, &u), &v) in logits.iter_mut().zip(&sources).zip(&candidates) {
                let (u, v) = (&kept[u as usize], &kept[v as usize]);
                let (own, other) = (&u.hidden[..hidden], &v.hidden[hidden..]);
                let sums = inner.iter_mut().zip(own).zip(other);
                sums.for_each(|((inner, own), other)| *inner = own + other);
                let mut counts = [0i32; PATTERNS];
                let mut overlap = false;
                join_keys(&u.keys, &v.keys, |own, other| {
                    if own != 0 && other != 0 {
                        overlap = true;
                        counts[usize::from(own | other << 3)] += 1;
                        counts[usize::from(own)] -= 1;
                        counts[usize::from(other << 3)] -= 1;
                    }
                });
                if overlap {
                    for (bits, &count) in counts.iter().enumerate().filter(|(_, c)| **c != 0) {
                        add_pattern(&mut inner, folded, bits, count);
                    }
                }
                *logit = rectified_product(&inner, weights) + bias;
            }
        })
    }
}

/// Lists the distinct nodes of pairs; tells the places of their sources and candidates.
fn list_nodes(pairs: &PairBatch, lists: &mut Lists) -> [Vec<u32>; 2] {
    lists.nodes.clear();
    let places: Vec<u32> =
        pairs.seeds().iter().map(|seed| lists.nodes.place(seed.node())).collect();
    [pairs.sources(), pairs.candidates()]
        .map(|numbers| numbers.iter().map(|&seed| places[seed as usize]).collect())
}

/// Every node of two lists in order, with its bits in either; none where it is absent.
fn join_keys(own: &[(Key, u8)], other: &[(Key, u8)], mut each: impl FnMut(u8, u8)) {
    let (mut own, mut other) = (own.iter().peekable(), other.iter().peekable());
    loop {
        match (own.peek(), other.peek()) {
            (None, None) => return,
            (Some((a, bits)), Some((b, others))) if a == b => {
                each(*bits, *others);
                own.next();
                other.next();
            }
            (Some((a, bits)), b) if b.is_none_or(|(b, _)| a.comes_before(*b)) => {
                each(*bits, 0);
                own.next();
            }
            (_, Some((_, others))) => {
                each(0, *others);
                other.next();
            }
            (Some(_), None) => unreachable!("the arm before takes it"),
        }
    }
}

fn add_pattern(sums: &mut [f32], folded: &FoldedJoin, bits: usize, count: i32) {
    let row = &folded.patterns[bits * sums.len()..][..sums.len()];
    let count = count as f32;
    sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += count * value);
}

/// The sum over i of max(x_i, 0) w_i, in sixteen parts so that they can be added side by side.
fn rectified_product(x: &[f32], weights: &[f32]) -> f32 {
    const PARTS: usize = 16;
    let mut sums = [0.0; PARTS];
    for (x, weights) in x.chunks(PARTS).zip(weights.chunks(PARTS)) {
        for ((sum, x), weight) in sums.iter_mut().zip(x).zip(weights) {
            *sum += x.max(0.0) * weight;
        }
    }
    sums.iter().sum()
}

impl PairHead<NoEncoder> for NatHead {
    type State = Caches;
    type Scratch = Lists;
    type Prepared = FoldedJoin;

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn chunk(&self, _: &NoEncoder, mode: Mode) -> Chunk {
        let pairs = match mode {
            Mode::Train => 65_536,
            Mode::Score => 4_096,
        };
        Chunk { seeds: usize::MAX, pairs }
    }

    fn init(&self, info: &StreamInfo) -> Caches {
        Caches::new(self.shape, info.training.0.value())
    }

    fn prepare(&self, _: &NoEncoder, parameters: &Parameters, _: Past<'_>) -> FoldedJoin {
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(parameters);
        let (width, slot_width) = (self.shape.width, self.shape.neighbour_width);
        let join = self.mean_join(&mut tape);
        let inner = tape.parameter(self.inner.weight);
        let of_join = tape.columns(inner, 0..width);
        let weight = tape.matmul(of_join, join);
        let columns = tape.columns(weight, width + slot_width..width + slot_width + PATTERN_WIDTH);
        let patterns = tape.parameter(self.patterns);
        let patterns = tape.linear(patterns, columns, None, Activation::Identity);
        let bias = tape.parameter(self.join_bias);
        let own = tape.parameter(self.inner.bias);
        let bias = tape.linear(bias, of_join, Some(own), Activation::Identity);
        let [weight, patterns, bias] =
            [weight, patterns, bias].map(|values| tape.value(values).to_vec());
        FoldedJoin { weight, patterns, bias }
    }

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        caches: &'t Caches,
        _: &Encoded,
        pairs: &PairBatch,
        prepared: Option<&'t FoldedJoin>,
        lists: &mut Lists,
    ) -> Var {
        match prepared {
            Some(folded) => self.logits_of_kept(context, caches, pairs, folded, lists),
            None => self.logits_of_caches(context, caches, pairs, lists),
        }
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        caches: &mut Caches,
        step: &[Event],
        ObserveScratch { workspace, lists, .. }: &mut ObserveScratch<Lists>,
    ) {
        lists.nodes.fill_from(step);
        lists.fill(caches);
        let mut tape = workspace.infer(parameters);
        let read = self.read(&mut tape, known.past(), caches, lists, 0.0);
        let (vectors, selves) = (tape.value(read.vectors), tape.value(read.selves));
        let (vectors, selves) = (vectors.to_vec(), selves.to_vec());
        caches.observe(known, step, lists, &vectors, &selves);
    }

    fn save_state<'a>(&self, caches: &'a Caches, checkpoint: &mut Checkpoint<'a>) {
        caches.save(checkpoint);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<Caches> {
        let mut caches = <NatHead as PairHead<NoEncoder>>::init(self, info);
        caches.load(checkpoint, self.config.edge_width)?;
        Ok(caches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::composite::scores_as_it_learns;

    #[test]
    fn what_is_kept_of_nodes_scores_as_joined_caches() {
        let config = NatConfig {
            node_width: 12,
            time_width: 5,
            edge_width: 3,
            first_hop: 8,
            second_hop: 4,
            dropout: 0.0,
            ..NatConfig::default()
        };
        let model = Nat::new(config, 5).expect("right settings");
        scores_as_it_learns(&model);
    }

    #[test]
    fn two_lists_join_on_their_nodes() {
        let list = |of: &[(u32, u8)]| of.iter().map(|&(n, b)| (Key::Row(n), b)).collect::<Vec<_>>();
        let (own, other) = (list(&[(1, 1), (4, 2), (7, 6)]), list(&[(2, 1), (4, 3), (9, 4)]));
        let mut joined = Vec::new();
        join_keys(&own, &other, |a, b| joined.push((a, b)));
        assert_eq!(joined, [(1, 0), (0, 1), (2, 3), (6, 0), (0, 4)]);
        // Of two unseen nodes the own one is first, whatever their numbers; one node is one.
        for (own, other, expected) in
            [(3, 8, vec![(1, 0), (0, 1)]), (8, 3, vec![(1, 0), (0, 1)]), (3, 3, vec![(1, 1)])]
        {
            let [own, other] = [own, other].map(|node| [(Key::Unseen(NodeId(node)), 1)]);
            let mut joined = Vec::new();
            join_keys(&own, &other, |a, b| joined.push((a, b)));
            assert_eq!(joined, expected);
        }
    }
}
