//! TCL: a transformer that attends within each history of a pair, then from each to the other.
//!
//! Wang et al., "TCL: Transformer-based Dynamic Graph Modelling via Contrastive Learning", 2021,
//! <https://arxiv.org/abs/2105.07944>, in the form and with the hyper-parameters of DyGLib
//! (<https://github.com/yule-BUAA/DyGLib>), which has the loss of all its models in place of the
//! contrastive one. A history has K + 1 slots: the node itself, then its K events, missing ones
//! first, so that the newest is always in slot K. With a row D_j for each slot,
//!
//! ```text
//! x_j      = W_n x_w + b_n + W_e e_j + b_e + W_t f_T(t - t_j) + b_t + D_j                172
//! s, r     = block(u, u), block(v, v)                                      each [K + 1, 172]
//! u, v     = block(s, r), block(r, s)                       queries first, then keys and values
//! h        = W_o (row 0) + b_o                                                           172
//! ```
//!
//! where the middle two are a layer, there are two of them, and a layer's block, a
//! [`TransformerEncoder`], serves all four. f_T is trained. Missing slots are no keys.
//!
//! What is shared, without changing a number. Missing slots are no keys, and nobody reads what they
//! ask, so they are left out. The first layer's block within a history is made once for a seed,
//! with its queries, keys and values for the block between histories. Of the last layer only row 0
//! asks.
//!
//! Where DyGLib differs: uniform draws depend on the order of calls there, and on the seed alone
//! here; its times of events are rounded to 32 bits.

mod config;
mod kind;

pub use config::TclConfig;
pub use kind::TclKind;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, PairHead};
use super::feature_rows::{event_features, node_features};
use super::mlp::added_to;
use super::neighbours::NeighbourBatch;
use super::scratch::FeatureWidths;
use super::{Composite, PairBatch, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::NodeId;
use crate::graph::{Neighbour, Past};
use crate::nn::{Linear, Predictor, TimeEncoder, TransformerEncoder};
use lstep_tensor::{Activation, Blocks, Heads, Init, Keys, ParameterId, Parameters, Tape, Var};

/// TCL: its head looks at both nodes together.
pub type Tcl = Composite<NoEncoder, TclHead>;

impl Tcl {
    /// A model with weights drawn from a seed.
    pub fn new(config: TclConfig, seed: u64) -> Result<Tcl> {
        Composite::build(seed, |parameters| Ok((NoEncoder, TclHead::new(config, parameters)?)))
    }
}

/// The head: settings and weights.
#[derive(Clone)]
pub struct TclHead {
    config: TclConfig,
    time: TimeEncoder,
    /// Of node, event and time.
    projections: [Linear; 3],
    depth: ParameterId,
    blocks: Vec<TransformerEncoder>,
    out: Linear,
    predictor: Predictor,
}

/// The entries of a call's histories, and where each history of each pair is.
#[derive(Default)]
pub struct Entries {
    neighbours: NeighbourBatch,
    /// Of all seeds one after the other: the seed's own node, then its events.
    nodes: Vec<NodeId>,
    events: Vec<Option<Neighbour>>,
    ages: Vec<f64>,
    slots: Vec<u32>,
    /// Where the entries of each seed begin, and where the last one's end.
    offsets: Vec<u32>,
    /// The entries of each history, first those of sources, then those of candidates: where they
    /// begin among those of seeds, and how many there are.
    histories: Vec<(u32, u32)>,
}

impl Entries {
    fn gather(&mut self, past: Past<'_>, pairs: &PairBatch, config: &TclConfig) {
        let Entries { neighbours, nodes, events, ages, slots, offsets, histories } = self;
        neighbours.gather(past, pairs.seeds(), config.recent, config.sampling);
        nodes.clear();
        events.clear();
        ages.clear();
        slots.clear();
        offsets.clear();
        for (seed, span) in pairs.seeds().iter().zip(neighbours.spans()) {
            offsets.push(nodes.len() as u32);
            nodes.push(seed.node());
            events.push(None);
            ages.push(0.0);
            slots.push(0);
            let last = config.recent as u32 + 1;
            slots.extend(last - span.len() as u32..last);
            let span = span.start as usize..span.end as usize;
            let met = &neighbours.neighbours()[span.clone()];
            nodes.extend(met.iter().map(|neighbour| neighbour.node()));
            events.extend(met.iter().copied().map(Some));
            ages.extend_from_slice(&neighbours.ages()[span]);
        }
        offsets.push(nodes.len() as u32);
        histories.clear();
        for &seed in pairs.sources().iter().chain(pairs.candidates()) {
            let seed = seed as usize;
            histories.push((offsets[seed], offsets[seed + 1] - offsets[seed]));
        }
    }

    /// The events' features, zeros for the seeds' own nodes: [entries, width].
    fn event_features(&self, tape: &mut Tape<'_>, past: Past<'_>, width: usize) -> Var {
        event_features(tape, past, width, self.events.iter().map(Option::as_ref))
    }

    /// The nodes' features, [entries, width].
    fn node_features(&self, tape: &mut Tape<'_>, past: Past<'_>, width: usize) -> Var {
        node_features(tape, past, width, self.nodes.iter().copied().map(Some))
    }
}

/// Histories among the rows of a matrix.
struct Histories {
    /// Blocks of rows that look at themselves.
    offsets: Vec<u32>,
    /// The first row of each history, and how many it has.
    spans: Vec<(u32, u32)>,
}

impl Histories {
    /// The same histories one after the other.
    fn apart(&self) -> Histories {
        let (mut next, mut offsets) = (0, vec![0]);
        let spans = self.spans.iter().map(|&(_, length)| {
            let begin = next;
            next += length;
            offsets.push(next);
            (begin, length)
        });
        let spans = spans.collect();
        Histories { offsets, spans }
    }

    /// The rows of all histories.
    fn rows(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().flat_map(|&(begin, length)| begin..begin + length)
    }

    /// The rows of histories in blocks of `most`, any row where there is none.
    fn in_blocks<'a>(
        spans: impl Iterator<Item = &'a (u32, u32)>,
        most: usize,
    ) -> impl Iterator<Item = u32> {
        spans.flat_map(move |&(begin, length)| {
            (begin..begin + length).chain(std::iter::repeat_n(begin, most - length as usize))
        })
    }

    /// For each history the other one of its pair.
    fn others(&self) -> impl Iterator<Item = &(u32, u32)> {
        let (sources, candidates) = self.spans.split_at(self.spans.len() / 2);
        candidates.iter().chain(sources)
    }
}

impl TclHead {
    /// The head with weights added to the parameters.
    pub fn new(config: TclConfig, parameters: &mut Parameters) -> Result<TclHead> {
        config.check()?;
        let TclConfig { time_width, node_width, edge_width, recent, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let normal = Init::Normal { mean: 0.0, deviation: 1.0 };
        let depth = parameters.add("depth", recent + 1, node_width, normal);
        let blocks = (0..config.layers)
            .map(|layer| {
                let name = format!("transformer.{layer}");
                TransformerEncoder::add(parameters, &name, node_width)
            })
            .collect();
        let projections = [("node", node_width), ("edge", edge_width), ("time", time_width)].map(
            |(part, inputs)| {
                Linear::add(parameters, &format!("project.{part}"), inputs, node_width)
            },
        );
        let out = Linear::add(parameters, "out", node_width, node_width);
        let predictor = Predictor::add(parameters, node_width);
        Ok(TclHead { config, time, projections, depth, blocks, out, predictor })
    }

    /// x of all entries, [entries, 172].
    fn tokens<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, entries: &Entries) -> Var {
        let mut depth = tape.parameter(self.depth);
        for layer in self.projections {
            let bias = tape.parameter(layer.bias);
            depth = tape.add_row(depth, bias);
        }
        let slots = tape.indices(entries.slots.iter().copied());
        let mut sum = tape.gather(depth, slots);
        let ages = tape.times(entries.ages.iter().copied());
        let mut parts = vec![(self.time.apply(tape, ages), self.projections[2])];
        let width = past.node_feature_width();
        if width > 0 {
            parts.push((entries.node_features(tape, past, width), self.projections[0]));
        }
        let width = past.event_feature_width();
        if width > 0 {
            parts.push((entries.event_features(tape, past, width), self.projections[1]));
        }
        for (part, layer) in parts {
            let width = tape.shape(part).1;
            let weight = tape.parameter(layer.weight);
            let weight = tape.columns(weight, 0..width);
            sum = tape.layer(part, weight, None, added_to(sum));
        }
        sum
    }

    /// The block between the histories of each pair: a row for each of all rows, or the first ones
    /// alone.
    fn between(
        &self,
        tape: &mut Tape<'_>,
        block: TransformerEncoder,
        x: Var,
        histories: &Histories,
        first_alone: bool,
    ) -> Var {
        let (most, width) = (self.config.recent + 1, self.config.node_width);
        let dropout = self.config.dropout as f32;
        let keys = block.keys_and_values(tape, x);
        let rows = tape.indices(Histories::in_blocks(histories.others(), most));
        let keys = tape.gather(keys, rows);
        let values = tape.columns(keys, width..2 * width);
        let keys = tape.columns(keys, 0..width);
        let counts = tape.indices(histories.others().map(|&(_, length)| length));
        let mut heads = Heads {
            heads: self.config.heads,
            query_rows: 1,
            key_rows: most,
            keys: Keys::First(counts),
            dropout,
        };
        if first_alone {
            let rows = tape.indices(histories.spans.iter().map(|&(begin, _)| begin));
            let asking = tape.gather(x, rows);
            let queries = block.queries(tape, asking);
            let seen = tape.attention(queries, keys, values, heads);
            return block.apply_to(tape, asking, seen, dropout);
        }
        let queries = block.queries(tape, x);
        let rows = tape.indices(Histories::in_blocks(histories.spans.iter(), most));
        let queries = tape.gather(queries, rows);
        heads.query_rows = most;
        let seen = tape.attention(queries, keys, values, heads);
        let there = histories.spans.iter().enumerate().flat_map(|(block, &(_, length))| {
            (block * most) as u32..(block * most) as u32 + length
        });
        let there = tape.indices(there);
        let seen = tape.gather(seen, there);
        let asking = tape.indices(histories.rows());
        let asking = tape.gather(x, asking);
        block.apply_to(tape, asking, seen, dropout)
    }
}

impl PairHead<NoEncoder> for TclHead {
    type State = ();
    type Scratch = Entries;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// A pair is up to 2 (K + 1) rows.
    fn chunk(&self, _: &NoEncoder, _: Mode) -> Chunk {
        Chunk { seeds: 4_096, pairs: 24 }
    }

    fn init(&self, _: &StreamInfo) {}

    fn prepare(&self, _: &NoEncoder, _: &Parameters, _: Past<'_>) {}

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        (): &'t (),
        _: &Encoded,
        pairs: &PairBatch,
        _: Option<&'t ()>,
        entries: &mut Entries,
    ) -> Var {
        let (past, tape) = (context.past, &mut *context.tape);
        entries.gather(past, pairs, &self.config);
        let mut x = self.tokens(tape, past, entries);
        let mut histories =
            Histories { offsets: entries.offsets.clone(), spans: entries.histories.clone() };
        for (layer, &block) in self.blocks.iter().enumerate() {
            let within = Blocks {
                heads: self.config.heads,
                offsets: tape.indices(histories.offsets.iter().copied()),
                repeats: None,
                dropout: self.config.dropout as f32,
            };
            x = block.apply(tape, x, within);
            x = self.between(tape, block, x, &histories, layer + 1 == self.blocks.len());
            histories = histories.apart();
        }
        let hidden = self.out.apply(tape, x, Activation::Identity);
        let count = pairs.len() as u32;
        let (sources, candidates) = (tape.indices(0..count), tape.indices(count..2 * count));
        self.predictor.apply(tape, (hidden, sources), (hidden, candidates))
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
