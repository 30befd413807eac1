//! TNCN: memories of nodes, and a predictor that is told the encodings of common neighbours.
//!
//! Zhang, Wang, Wang and Zhang, "Efficient Neural Common Neighbor for Temporal Graph Link
//! Prediction", 2024, <https://arxiv.org/abs/2406.07926>. No graph is asked: every node remembers
//! its K newest events as the last step left them. A node i has a memory m_i [d], last changed at
//! l_i. Its newest event, of time t with features e and other node o, is not yet part of it.
//! Whoever looks at the node sees
//!
//! ```text
//! m'_i = GRU([m_i | m_o | f_T(t - l_i) | e], m_i)             GRU(0, 0) before its first event
//! z_i  = TransformerConv over the events k of i's list        2 heads, with a root term, [d]
//!        of m'_i and [m'_k | f_T(l'_k - t_k) | e_k]           l'_k: k's newest event
//! ```
//!
//! Two nodes are neighbours if either has the other on its list. For a pair (u, v), with c the sum
//! of z_w over common neighbours w,
//!
//! ```text
//! logit = w relu(W [z_u * z_v | c] + b) + b'                        W [256, 2 d]
//! ```
//!
//! or with `mode = "zero-and-one-hop"` of [z_u * z_v | a z_u | a z_v | c], where a is 1 if u and v
//! are neighbours and 0 if not. The time of the question does not enter. An observation makes the
//! newest event part of the memory for each node of the step, and only then puts the step on their
//! lists. What is stored carries no gradient.
//!
//! While scoring, z is kept by node until the next step. Most pairs have no common neighbour, and c
//! and its half of W are for those that have.
//!
//! Where the released code differs:
//!
//! - Its neighbours are those that the nodes of the same call have on their lists, and only nodes
//!   of the call have an encoding over their list (others have the root term alone). So a score
//!   depends on who else is asked about, which the laws forbid. Here all lists count, and every z_w
//!   is over w's own list.
//! - While evaluating, it makes events part of memories at the end of their own step. Here
//!   evaluation sees memories as training does. Nodes without an event then have GRU(0, 0) in both,
//!   too; it writes that into all memories before evaluation.
//! - Its third mode counts walks of two steps within the call. It has no counterpart over all lists
//!   that is affordable, since a node can be on many, and is left out.
//! - A first event is counted from the start of training and not from time 0.
//! - It adds the mean losses of true pairs and of others; here all pairs are averaged. It does not
//!   train f_T on tgbl-review, and its script for other datasets never does.

mod adjacency;
mod config;
mod kind;

pub use config::{TncnConfig, TncnMode};
pub use kind::TncnKind;

use super::batch::PairBatch;
use super::cache::NodeCache;
use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, ObserveScratch, PairHead};
use super::memory::{Cell, CellKind, NodePlaces, Places};
use super::newest::{ListBlocks, NewestLists};
use super::scratch::FeatureWidths;
use super::{Composite, StreamInfo, feature_rows};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed};
use crate::nn::{ConvWidths, Linear, TimeEncoder, TransformerConv};
use adjacency::Adjacency;
use lstep_tensor::{Activation, Pair, Parameters, Segments, Tape, Var, Weighting};
use std::sync::Arc;

/// Numbers that scoring keeps at most: 64 MB.
const MOST: usize = 16 << 20;

/// TNCN.
pub type Tncn = Composite<NoEncoder, TncnHead>;

impl Tncn {
    /// A model with weights drawn from a seed.
    pub fn new(config: TncnConfig, seed: u64) -> Result<Tncn> {
        Composite::build(seed, |parameters| {
            config.check()?;
            Ok((NoEncoder, TncnHead::add(parameters, config)))
        })
    }
}

/// The head that encodes both nodes of a pair and their common neighbours.
#[derive(Debug, Clone)]
pub struct TncnHead {
    config: TncnConfig,
    time: TimeEncoder,
    cell: Cell,
    conv: TransformerConv,
    inner: Linear,
    outer: Linear,
}

/// The row of a node; nothing for a node that has met nobody. All of those are alike.
type Row = Option<u32>;

/// Memories and lists.
#[derive(Debug, Clone)]
pub struct TncnState {
    lists: NewestLists,
    adjacency: Adjacency,
    /// [rows, d].
    memories: Vec<f32>,
    /// When each memory was last changed.
    changed: Vec<f64>,
    /// What takes the place of that before a node's first event.
    start: f64,
    /// z of nodes.
    kept: NodeCache<Row, Arc<[f32]>>,
}

/// Lists of a call.
#[derive(Debug, Default)]
pub struct Lists {
    /// Those whose z is needed.
    asked: Places<Row>,
    /// Those whose m' is needed.
    nodes: Places<Row>,
    blocks: ListBlocks,
    sources: Vec<u32>,
    candidates: Vec<u32>,
    /// The common neighbours of pairs that have some, one pair after the other.
    common: Vec<u32>,
    offsets: Vec<u32>,
    /// For each pair its place among those with common neighbours.
    with_common: Vec<Option<u32>>,
    /// For each pair its place among those that are neighbours.
    linked: Vec<Option<u32>>,
}

impl Lists {
    /// Lists whose encodings the pairs need.
    fn fill(&mut self, state: &TncnState, pairs: &PairBatch) {
        self.asked.clear();
        self.common.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.with_common.clear();
        self.linked.clear();
        let rows: Vec<Row> = pairs.seeds().iter().map(|seed| state.row(seed.node())).collect();
        let places: Vec<u32> = rows.iter().map(|&row| self.asked.place(row)).collect();
        let side = |numbers: &[u32]| numbers.iter().map(|&seed| places[seed as usize]).collect();
        (self.sources, self.candidates) = (side(pairs.sources()), side(pairs.candidates()));
        let mut links = 0;
        for (&u, &v) in pairs.sources().iter().zip(pairs.candidates()) {
            let (mut common, mut linked) = (None, None);
            if let (Some(u), Some(v)) = (rows[u as usize], rows[v as usize]) {
                let before = self.common.len();
                for row in state.adjacency.common(u, v) {
                    self.common.push(self.asked.place(Some(row)));
                }
                if self.common.len() > before {
                    common = Some(self.offsets.len() as u32 - 1);
                    self.offsets.push(self.common.len() as u32);
                }
                if state.adjacency.has(u, v) {
                    linked = Some(links);
                    links += 1;
                }
            }
            self.with_common.push(common);
            self.linked.push(linked);
        }
    }
}

impl TncnState {
    fn new(config: &TncnConfig, info: &StreamInfo) -> TncnState {
        TncnState {
            lists: NewestLists::new(config.recent),
            adjacency: Adjacency::default(),
            memories: Vec::new(),
            changed: Vec::new(),
            start: info.training.0.value(),
            kept: NodeCache::new(MOST),
        }
    }

    fn row(&self, node: NodeId) -> Row {
        self.lists.nodes().row(node)
    }

    fn memory(&self, row: u32, width: usize) -> &[f32] {
        &self.memories[row as usize * width..][..width]
    }
}

impl TncnHead {
    fn add(parameters: &mut Parameters, config: TncnConfig) -> TncnHead {
        let TncnConfig { time_width, node_width: width, edge_width, heads, hidden, mode, .. } =
            config;
        let time = TimeEncoder::add_as_linear(parameters, time_width);
        let message = 2 * width + time_width + edge_width;
        let cell = Cell::add(parameters, "updater", CellKind::Gru, message, width);
        let edge = time_width + edge_width;
        let widths = ConvWidths { node: width, edge, out: width, heads, root: true };
        let conv = TransformerConv::add(parameters, "conv", widths);
        let parts = match mode {
            TncnMode::OneHop => 2,
            TncnMode::ZeroAndOneHop => 4,
        };
        let inner = Linear::add(parameters, "predict.in", parts * width, hidden);
        let outer = Linear::add(parameters, "predict.out", hidden, 1);
        TncnHead { config, time, cell, conv, inner, outer }
    }

    /// m' of distinct rows, [rows, d].
    fn read<'s>(&self, tape: &mut Tape<'_>, state: &'s TncnState, rows: &[Row]) -> Var {
        let width = self.config.node_width;
        let known: Vec<u32> = rows.iter().flatten().copied().collect();
        let newest = |row: u32| state.lists.newest(row);
        // The last row is that of a node without events.
        let count = known.len() + 1;
        let rows_of = |tape: &mut Tape<'_>, width: usize, of: &dyn Fn(u32) -> &'s [f32]| {
            let row = |place| known.get(place).map_or(&[][..], |&row| of(row));
            feature_rows::feature_rows(tape, width, (0..count).map(row))
        };
        let memories = rows_of(tape, width, &|row| state.memory(row, width));
        let others = rows_of(tape, width, &|row| state.memory(newest(row).other, width));
        let waited = known.iter().map(|&row| newest(row).time - state.changed[row as usize]);
        let waited = tape.times(waited);
        let times = self.time.apply(tape, waited);
        let nothing = tape.zeros(1, self.config.time_width);
        let times = tape.concat_rows(&[times, nothing]);
        let mut parts = vec![memories, others, times];
        let features = |row: u32| newest(row).features.as_deref();
        if let Some(edge) = known.first().and_then(|&row| features(row)).map(<[f32]>::len) {
            let of_event = |row| features(row).expect("all events have features");
            parts.push(rows_of(tape, edge, &of_event));
        }
        let messages = tape.concat_columns(&parts);
        let updated = self.cell.apply(tape, messages, memories);
        let mut next = 0;
        let order: Vec<u32> = rows
            .iter()
            .map(|row| {
                let place = if row.is_some() { next } else { known.len() as u32 };
                next += u32::from(row.is_some());
                place
            })
            .collect();
        let order = tape.indices(order);
        tape.gather(updated, order)
    }

    /// z of distinct rows, [rows, d].
    fn encode(
        &self,
        tape: &mut Tape<'_>,
        state: &TncnState,
        rows: &[Row],
        nodes: &mut Places<Row>,
        blocks: &mut ListBlocks,
    ) -> Var {
        nodes.clear();
        rows.iter().for_each(|&row| {
            nodes.place(row);
        });
        blocks.fill(&state.lists, rows, |row| nodes.place(Some(row)));
        let vectors = self.read(tape, state, nodes.items());
        let edges = blocks.edges(tape, self.time, |gap| gap);
        let around = blocks.around(tape, vectors, rows.len(), edges);
        self.conv.apply(tape, around, self.config.dropout as f32)
    }

    /// z of those whom the pairs need, from what is kept of them where it is.
    fn kept_encodings<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        state: &TncnState,
        Lists { asked, nodes, blocks, .. }: &mut Lists,
    ) -> Var {
        let stamp = (context.parameters.version(), context.past.log_identity());
        let (tape, width) = (&mut *context.tape, self.config.node_width);
        let kept = state.kept.get_or_make(stamp, asked.items(), |missing| {
            let made = self.encode(tape, state, missing, nodes, blocks);
            tape.value(made).iter_rows().map(|row| (Arc::from(row), width)).collect()
        });
        feature_rows::feature_rows(tape, width, kept.iter().map(|kept| &kept[..]))
    }

    /// Logits from encodings.
    fn predict(&self, tape: &mut Tape<'_>, encodings: Var, lists: &Lists) -> Var {
        let (width, hidden) = (self.config.node_width, self.config.hidden);
        let weight = tape.parameter(self.inner.weight);
        let bias = tape.parameter(self.inner.bias);
        let of = |tape: &mut Tape<'_>, part: usize, x: Var| {
            let weight = tape.columns(weight, part * width..(part + 1) * width);
            tape.linear(x, weight, None, Activation::Identity)
        };
        let gather = |tape: &mut Tape<'_>, rows: &[u32]| {
            let rows = tape.indices(rows.iter().copied());
            tape.gather(encodings, rows)
        };
        let (u, v) = (gather(tape, &lists.sources), gather(tape, &lists.candidates));
        let product = tape.mul(u, v);
        let mut inner = of(tape, 0, product);
        // Adds rows to the pairs that have one, and zeros to the others.
        let pair = |tape: &mut Tape<'_>, to: Var, rows: Var, places: &[Option<u32>]| {
            let none = tape.shape(rows).0 as u32;
            let nothing = tape.zeros(1, hidden);
            let rows = tape.concat_rows(&[rows, nothing]);
            Pair {
                u: to,
                u_rows: tape.indices(0..places.len() as u32),
                v: rows,
                v_rows: tape.indices(places.iter().map(|place| place.unwrap_or(none))),
            }
        };
        if self.config.mode == TncnMode::ZeroAndOneHop {
            let linked = |side: &[u32]| -> Vec<u32> {
                let links = side.iter().zip(&lists.linked).filter(|(_, link)| link.is_some());
                links.map(|(&place, _)| place).collect()
            };
            let sides = [linked(&lists.sources), linked(&lists.candidates)];
            let [u, v] = [0, 1].map(|side| {
                let encodings = gather(tape, &sides[side]);
                of(tape, 1 + side, encodings)
            });
            let links = tape.add(u, v);
            let pair = pair(tape, inner, links, &lists.linked);
            inner = tape.gather_pair(pair, None, Activation::Identity);
        }
        let segments = Segments {
            rows: Some(tape.indices(lists.common.iter().copied())),
            offsets: tape.indices(lists.offsets.iter().copied()),
        };
        let common = tape.segment_sum(encodings, segments, Weighting::Sum);
        let common = of(tape, tape.shape(weight).1 / width - 1, common);
        let pair = pair(tape, inner, common, &lists.with_common);
        let inner = tape.gather_pair(pair, Some(bias), Activation::Relu);
        self.outer.apply(tape, inner, Activation::Identity)
    }
}

impl PairHead<NoEncoder> for TncnHead {
    type State = TncnState;
    type Scratch = Lists;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: usize::MAX, edge: self.config.edge_width }
    }

    fn chunk(&self, _: &NoEncoder, mode: Mode) -> Chunk {
        let pairs = match mode {
            Mode::Train => 100,
            Mode::Score => 1_024,
        };
        Chunk { seeds: usize::MAX, pairs }
    }

    fn init(&self, info: &StreamInfo) -> TncnState {
        TncnState::new(&self.config, info)
    }

    fn prepare(&self, _: &NoEncoder, _: &Parameters, _: Past<'_>) {}

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t TncnState,
        _: &Encoded,
        pairs: &PairBatch,
        prepared: Option<&'t ()>,
        lists: &mut Lists,
    ) -> Var {
        lists.fill(state, pairs);
        let encodings = match prepared {
            Some(()) => self.kept_encodings(context, state, lists),
            None => {
                let Lists { asked, nodes, blocks, .. } = lists;
                self.encode(context.tape, state, asked.items(), nodes, blocks)
            }
        };
        self.predict(context.tape, encodings, lists)
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &mut TncnState,
        step: &[Event],
        ObserveScratch { workspace, lists, .. }: &mut ObserveScratch<Lists>,
    ) {
        let width = self.config.node_width;
        let mut touched = NodePlaces::default();
        touched.fill_from(step);
        lists.nodes.clear();
        let rows: Vec<Row> = touched.items().iter().map(|&node| state.row(node)).collect();
        let places: Vec<u32> = rows.iter().map(|&row| lists.nodes.place(row)).collect();
        let mut tape = workspace.infer(parameters);
        let updated = self.read(&mut tape, state, lists.nodes.items());
        let updated = tape.value(updated);
        // All were read, and nothing is written before.
        for (&row, &place) in rows.iter().zip(&places) {
            let vector = updated.row(place as usize);
            match row {
                Some(row) => {
                    state.memories[row as usize * width..][..width].copy_from_slice(vector);
                    state.changed[row as usize] = state.lists.newest(row).time;
                }
                // Lists give new nodes the next rows in the same order.
                None => {
                    state.memories.extend_from_slice(vector);
                    state.changed.push(state.start);
                }
            }
        }
        let adjacency = &mut state.adjacency;
        state.lists.observe(known, step, |row, added, dropped| {
            adjacency.add(row, added);
            dropped.into_iter().for_each(|dropped| adjacency.remove(row, dropped));
        });
        state.kept.clear();
    }

    fn save_state<'a>(&self, state: &'a TncnState, checkpoint: &mut Checkpoint<'a>) {
        state.lists.save(checkpoint);
        checkpoint.push_f32("state.memories", &state.memories);
        checkpoint.push_f64("state.changed", &state.changed);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<TncnState> {
        let TncnConfig { node_width, edge_width, recent, .. } = self.config;
        let lists = NewestLists::load(checkpoint, recent, edge_width)?;
        let adjacency = Adjacency::of(&lists);
        let memories = checkpoint.take_f32("state.memories")?;
        let changed = checkpoint.f64("state.changed")?.to_vec();
        let rows = lists.nodes().len();
        for (what, left, right) in [
            ("numbers of stored memories", memories.len(), rows * node_width),
            ("stored memories and when they changed", changed.len(), rows),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        if !changed.iter().all(|time| time.is_finite()) {
            return Err(impossible("has memories that changed at no time"));
        }
        Ok(TncnState { lists, adjacency, memories, changed, ..TncnState::new(&self.config, info) })
    }
}
