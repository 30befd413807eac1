//! TGAT: two layers of attention over recent events.
//!
//! Xu et al., "Inductive Representation Learning on Temporal Graphs", ICLR 2020,
//! <https://arxiv.org/abs/2002.07962>, in the form and with the hyper-parameters of DyGLib
//! (<https://github.com/yule-BUAA/DyGLib>). With h^0(v, t) = x_v, the features of v, and layer l
//! being a [`TemporalAttention`] of its own for l = 1, 2:
//!
//! ```text
//! q        = [h^{l-1}(v, t) | f_T(0)]                                               272
//! rows     = [h^{l-1}(v_k, t_k) | f_T(t - t_k) | e_k] of v's K newest events        [K, 444]
//! h^l(v,t) = W_2 relu(W_1 [norm(q + W_o attention(q, rows)) | x_v] + b_1) + b_2     172
//! ```
//!
//! The time encoding is trained and serves both layers. It is x_v that is merged in both layers,
//! not h^{l-1}.
//!
//! What is shared, without changing a number. h^1(v_k, t_k) depends on the weights and on what
//! happened before t_k, never on the question: while scoring it is made once for each side of an
//! event and kept until the weights change, so that a question is two attentions a seed and not K +
//! 2. While training it is made once for each distinct (v_k, t_k) of a piece of the batch. Without
//! features of nodes all queries of the first layer are the same row, and the columns of vectors
//! that are zero are left out.
//!
//! Where DyGLib differs: a node without events attends to padding, which tells the absolute time;
//! here it gets zeros. Times of events are rounded to 32 bits there, so that a second hop may see
//! events at or after the question. Uniform draws depend on the seed alone here, and on the order
//! of calls there.

mod config;
mod kind;

pub use config::TgatConfig;
pub use kind::TgatKind;

use super::cache::NodeCache;
use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NodeEncoder, ObserveScratch};
use super::mlp::Mlp;
use super::neighbours::NeighbourBatch;
use super::scratch::FeatureWidths;
use super::{Composite, StreamInfo, feature_rows};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::nn::{AttentionWidths, Seen, TemporalAttention, TimeEncoder};
use lstep_tensor::{Parameters, Tape, Var};
use std::sync::Arc;

/// TGAT.
pub type Tgat = Composite<TgatEncoder, Mlp>;

impl Tgat {
    /// A model with weights drawn from a seed.
    pub fn new(config: TgatConfig, seed: u64) -> Result<Tgat> {
        Composite::build(seed, |parameters| {
            let encoder = TgatEncoder::new(config, parameters)?;
            let head = Mlp::add(parameters, encoder.config.node_width);
            Ok((encoder, head))
        })
    }
}

/// The encoder: settings and weights.
#[derive(Clone)]
pub struct TgatEncoder {
    config: TgatConfig,
    time: TimeEncoder,
    layers: [TemporalAttention; 2],
}

/// First layers of seeds, by node and time. They are the same whatever happens later.
pub type FirstLayers = NodeCache<(u32, u64), Arc<[f32]>>;

/// Numbers kept at most: 256 MB. When there is no room for more, all are forgotten.
const MOST: usize = 64 << 20;

/// Lists of a call.
#[derive(Default)]
pub struct Hops {
    first: NeighbourBatch,
    second: NeighbourBatch,
}

impl TgatEncoder {
    /// The encoder with weights added to the parameters.
    pub fn new(config: TgatConfig, parameters: &mut Parameters) -> Result<TgatEncoder> {
        config.check()?;
        let TgatConfig { time_width, node_width, edge_width, heads, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let widths =
            AttentionWidths { node: node_width, time: time_width, edge: edge_width, heads };
        let layers = [0, 1]
            .map(|layer| TemporalAttention::add(parameters, &format!("attention.{layer}"), widths));
        Ok(TgatEncoder { config, time, layers })
    }

    /// A layer of seeds whose neighbours have been gathered: from their own vectors and those of
    /// their neighbours, where there are any.
    fn layer<'t>(
        &self,
        layer: usize,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        around: &NeighbourBatch,
        (own, merged, partners): (Option<Var>, Option<Var>, Option<Var>),
    ) -> Var {
        let rows = self.config.recent;
        let seen = Seen {
            seeds: around.seeds(),
            own,
            merged,
            partners,
            ages: tape.times(around.in_blocks(rows).map(|(age, _)| age)),
            features: around.event_features_in_blocks(tape, past, rows),
            counts: tape.indices(around.spans().map(|span| span.len() as u32)),
            rows,
        };
        self.layers[layer].apply_to(tape, self.time, seen, self.config.dropout as f32)
    }

    /// h^1 of seeds, [seeds, node width].
    fn first_layer<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        seeds: &[Seed],
        around: &NeighbourBatch,
    ) -> Var {
        let own = node_features(tape, past, seeds.iter().map(|seed| Some(seed.node())));
        let met = around.in_blocks(self.config.recent).map(|(_, other)| other.map(|o| o.node()));
        let partners = node_features(tape, past, met);
        self.layer(0, tape, past, around, (own, own, partners))
    }

    /// h^1 of the neighbours of seeds, a row for each of the distinct ones: those that are known,
    /// then the others; and for each its row.
    fn first_layer_of_frontier<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        state: &FirstLayers,
        frontier: &[Seed],
        second: &mut NeighbourBatch,
    ) -> (Var, Vec<u32>) {
        let (past, tape) = (context.past, &mut *context.tape);
        let stamp = (context.parameters.version(), past.log_identity());
        let key = |seed: &Seed| (seed.node().0, seed.time().value().to_bits());
        let known = if tape.is_training() {
            vec![None; frontier.len()]
        } else {
            state.get(stamp, frontier.iter().map(key))
        };
        let (mut places, mut wanted, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let count = known.iter().flatten().count() as u32;
        for (seed, known) in frontier.iter().zip(&known) {
            match known {
                Some(vector) => {
                    places.push(kept.len() as u32);
                    kept.push(vector);
                }
                None => {
                    places.push(count + wanted.len() as u32);
                    wanted.push(*seed);
                }
            }
        }
        let width = self.config.node_width;
        let mut parts = Vec::with_capacity(2);
        if !kept.is_empty() {
            parts.push(tape.input(kept.len(), width, |values| {
                for (row, vector) in values.chunks_exact_mut(width).zip(kept) {
                    row.copy_from_slice(vector);
                }
            }));
        }
        if !wanted.is_empty() {
            second.gather(past, &wanted, self.config.recent, self.config.sampling);
            let made = self.first_layer(tape, past, &wanted, second);
            if !tape.is_training() {
                let values = tape.value(made);
                let vectors = wanted.iter().zip(values.iter_rows());
                state.insert(stamp, vectors.map(|(seed, row)| (key(seed), row.into(), width)));
            }
            parts.push(made);
        }
        let table = match parts[..] {
            [] => tape.zeros(1, width),
            [only] => only,
            _ => tape.concat_rows(&parts),
        };
        (table, places)
    }
}

/// Features of nodes, zeros for nobody and for a node without any; nothing where the stream has
/// none.
fn node_features(
    tape: &mut Tape<'_>,
    past: Past<'_>,
    nodes: impl Iterator<Item = Option<NodeId>>,
) -> Option<Var> {
    let width = past.node_feature_width();
    (width > 0).then(|| {
        let nodes: Vec<Option<NodeId>> = nodes.collect();
        feature_rows::node_features(tape, past, width, nodes.into_iter())
    })
}

impl NodeEncoder for TgatEncoder {
    type State = FirstLayers;
    type Scratch = Hops;
    type Ahead = ();

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// Neighbours are shared within a chunk, so it is large.
    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: 512, pairs: 65_536 }
    }

    /// Fewer than usual, for the same reason.
    fn lanes(&self) -> usize {
        2
    }

    fn init(&self, _: &StreamInfo) -> FirstLayers {
        NodeCache::new(MOST)
    }

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t FirstLayers,
        seeds: &[Seed],
        Hops { first, second }: &mut Hops,
    ) -> Encoded {
        let TgatConfig { recent, sampling, .. } = self.config;
        let past = context.past;
        first.gather(past, seeds, recent, sampling);
        let (frontier, rows) = first.frontier();
        let (table, places) = self.first_layer_of_frontier(context, state, &frontier, second);
        let tape = &mut *context.tape;
        let own = self.first_layer(tape, past, seeds, first);
        // Any row will do where there is no neighbour: it is not looked at.
        let mut next = rows.iter().map(|&place| places[place as usize]);
        let partners = first.in_blocks(recent).map(|(_, neighbour)| {
            neighbour.map_or(0, |_| next.next().expect("a row for each neighbour"))
        });
        let partners = tape.indices(partners);
        let partners = tape.gather(table, partners);
        let merged = node_features(tape, past, seeds.iter().map(|seed| Some(seed.node())));
        let hidden = self.layer(1, tape, past, first, (Some(own), merged, Some(partners)));
        Encoded { hidden: Some(hidden), ..Encoded::default() }
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        _: &mut FirstLayers,
        _: &[Event],
        (): (),
        _: &mut ObserveScratch<Hops>,
    ) {
    }

    fn save_state<'a>(&self, _: &'a FirstLayers, _: &mut Checkpoint<'a>) {}

    fn load_state(&self, info: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<FirstLayers> {
        Ok(self.init(info))
    }
}
