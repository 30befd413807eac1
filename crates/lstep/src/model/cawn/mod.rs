//! CAWN: walks from both nodes of a pair, whose nodes are known only by how often the walks of both
//! sides pass them.
//!
//! Wang et al., "Inductive Representation Learning in Temporal Networks via Causal Anonymous Walks",
//! ICLR 2021, <https://arxiv.org/abs/2101.05974>, in the form and with the hyper-parameters of DyGLib
//! (<https://github.com/yule-BUAA/DyGLib>), whose walks have one step. K events of each node are
//! drawn with replacement, see [`WalkLaw`]. With c_u(a) = (1 if a is u, share of u's walks that pass
//! a), the position of a node a in the pair (u, v) is
//!
//! ```text
//! P(a)   = g(c_u(a)) + g(c_v(a)), g(c) = V_2 relu(V_1 c + b_1) + b_2                   2 -> 172
//! token  = [x_a | f_T(t - t_a) | e_a | P(a)]                                           616
//! ```
//!
//! A walk is two tokens, that of u itself at t without an event, and that of the node met; without
//! a history only the first. One LSTM in both directions reads the tokens, 616 -> 308 each, another
//! one reads positions alone, 172 -> 86 each. Of both, what they say at the last token is taken: the
//! forward half has read both tokens, the backward half only the last. Then
//!
//! ```text
//! y      = W [308 | 308 | 86 | 86] + b                                      788 -> 312, each walk
//! h      = V mean over the K walks of block(y) + c                                   312 -> 172
//! ```
//!
//! with one [`TransformerEncoder`] of 8 heads over the walks, and the predictor. f_T is trained.
//!
//! What is shared, without changing a number. Equal draws are equal walks, which count as often as
//! they were drawn; dropout falls on them as a whole. A count is a small integer, so g is a table,
//! which goes through the LSTMs' input layers once. What node, time and event bring is made once for
//! a seed's event, and the first step, with what the second takes of it, once for a seed and the
//! position of its own node. The backward half begins from zero, so it needs no recurrent weights,
//! which therefore never learn.
//!
//! Where DyGLib differs: draws depend on the order of calls there, and on the seed alone here.

mod config;
mod kind;
mod walks;

pub use config::{CawnConfig, WalkLaw};
pub use kind::CawnKind;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, PairHead};
use super::mlp::added_to;
use super::scratch::FeatureWidths;
use super::{Composite, PairBatch, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::graph::Past;
use crate::nn::{Linear, Lstm, Predictor, TimeEncoder, TransformerEncoder};
use lstep_tensor::{Activation, Blocks, Indices, Pair, Parameters, Segments, Tape, Var, Weighting};
use walks::Walks;

/// CAWN: its head looks at both nodes together.
pub type Cawn = Composite<NoEncoder, CawnHead>;

impl Cawn {
    /// A model with weights drawn from a seed.
    pub fn new(config: CawnConfig, seed: u64) -> Result<Cawn> {
        Composite::build(seed, |parameters| Ok((NoEncoder, CawnHead::new(config, parameters)?)))
    }
}

/// The head: settings and weights.
#[derive(Clone)]
pub struct CawnHead {
    config: CawnConfig,
    time: TimeEncoder,
    position_in: Linear,
    position_out: Linear,
    /// Over tokens and over positions, each forward and backward.
    tokens: [Lstm; 2],
    positions: [Lstm; 2],
    project: Linear,
    block: TransformerEncoder,
    out: Linear,
    predictor: Predictor,
}

impl CawnHead {
    /// The head with weights added to the parameters.
    pub fn new(config: CawnConfig, parameters: &mut Parameters) -> Result<CawnHead> {
        config.check()?;
        let CawnConfig { time_width, node_width, position_width, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let mut both = |name: &str, inputs: usize| {
            ["forward", "backward"].map(|direction| {
                Lstm::add(parameters, &format!("{name}.{direction}"), inputs, inputs / 2)
            })
        };
        let (tokens, positions) =
            (both("lstm.token", config.token_width()), both("lstm.position", position_width));
        let width = config.attention_width();
        let block = TransformerEncoder::add(parameters, "transformer", width);
        let walk = 2 * (config.token_width() / 2) + 2 * (position_width / 2);
        Ok(CawnHead {
            time,
            position_in: Linear::add(parameters, "position.in", 2, position_width),
            position_out: Linear::add(parameters, "position.out", position_width, position_width),
            tokens,
            positions,
            project: Linear::add(parameters, "project", walk, width),
            block,
            out: Linear::add(parameters, "out", width, node_width),
            predictor: Predictor::add(parameters, node_width),
            config,
        })
    }

    /// g of every count: first of nodes that are not where the walks begin, then of those that are,
    /// [2 (K + 1), position width].
    fn codes(&self, tape: &mut Tape<'_>) -> Var {
        let most = self.config.walks;
        let all = tape.input(2 * (most + 1), 2, |values| {
            for (number, row) in values.chunks_exact_mut(2).enumerate() {
                let (is_begin, count) = (number / (most + 1), number % (most + 1));
                row.copy_from_slice(&[is_begin as f32, count as f32 / most as f32]);
            }
        });
        let inner = self.position_in.apply(tape, all, Activation::Relu);
        self.position_out.apply(tape, inner, Activation::Identity)
    }

    /// What node, time and event bring to the gates of a token's LSTM, [entries, gates].
    fn of_entries<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        lstm: Lstm,
        times: Var,
        walks: &Walks,
    ) -> Var {
        let CawnConfig { time_width, node_width, .. } = self.config;
        let weight = lstm.input(tape, node_width..node_width + time_width);
        let mut sum = tape.linear(times, weight, None, Activation::Identity);
        let width = past.node_feature_width();
        if width > 0 {
            let features = walks.node_features(tape, past, width);
            let weight = lstm.input(tape, 0..width);
            sum = tape.layer(features, weight, None, added_to(sum));
        }
        let width = past.event_feature_width();
        if width > 0 {
            let features = walks.event_features(tape, past, width);
            let from = node_width + time_width;
            let weight = lstm.input(tape, from..from + width);
            sum = tape.layer(features, weight, None, added_to(sum));
        }
        sum
    }

    /// What the forward half says at the last token of each walk.
    fn forward(tape: &mut Tape<'_>, lstm: Lstm, gates: Gates, lists: Lists) -> Var {
        let begin = gates.of(tape, lists.begin_entries, lists.begin_codes);
        let (first, cell) = lstm.step(tape, begin, None);
        let before = lstm.of_hidden(tape, first);
        let before = tape.gather(before, lists.begins);
        let cell = tape.gather(cell, lists.begins);
        let last = gates.of(tape, lists.entries, lists.codes);
        let last = tape.add(last, before);
        let (second, _) = lstm.step(tape, last, Some(cell));
        // A walk that does not go on has said its last word with its first token.
        let both = tape.concat_rows(&[second, first]);
        tape.gather(both, lists.said)
    }

    /// What the backward half says at the last token of each walk, with which it begins.
    fn backward(tape: &mut Tape<'_>, lstm: Lstm, gates: Gates, lists: Lists) -> Var {
        let last = gates.of(tape, lists.entries, lists.codes);
        lstm.step(tape, last, None).0
    }

    /// All walks before the attention, [walks, attention width].
    fn encoded<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, walks: &Walks) -> Var {
        let lists = Lists::new(tape, walks);
        let codes = self.codes(tape);
        let ages = tape.times(walks.ages.iter().copied());
        let times = self.time.apply(tape, ages);
        let width = self.config.position_width;
        let before = self.config.token_width() - width;
        let mut said = Vec::with_capacity(4);
        for (lstms, of_tokens) in [(self.tokens, true), (self.positions, false)] {
            for (direction, lstm) in lstms.into_iter().enumerate() {
                let entries = of_tokens.then(|| self.of_entries(tape, past, lstm, times, walks));
                let from = if of_tokens { before } else { 0 };
                let weight = lstm.input(tape, from..from + width);
                let bias = lstm.bias(tape);
                let half = tape.scale(bias, 0.5);
                let codes = tape.linear(codes, weight, Some(half), Activation::Identity);
                let gates = Gates { entries, codes };
                said.push(if direction == 0 {
                    CawnHead::forward(tape, lstm, gates, lists)
                } else {
                    CawnHead::backward(tape, lstm, gates, lists)
                });
            }
        }
        let said = tape.concat_columns(&said);
        self.project.apply(tape, said, Activation::Identity)
    }
}

/// Rows that add up to the gates of tokens.
#[derive(Clone, Copy)]
struct Gates {
    /// By entry; absent for positions alone.
    entries: Option<Var>,
    /// By code, with half of the biases, since a token has two codes.
    codes: Var,
}

impl Gates {
    fn of(self, tape: &mut Tape<'_>, entries: Indices, [own, other]: [Indices; 2]) -> Var {
        let codes = self.codes;
        let pair = Pair { u: codes, u_rows: own, v: codes, v_rows: other };
        let sum = tape.gather_pair(pair, None, Activation::Identity);
        let Some(table) = self.entries else { return sum };
        let rows = tape.gather(table, entries);
        tape.add(sum, rows)
    }
}

/// The walks of a call on a tape.
#[derive(Clone, Copy)]
struct Lists {
    begin_entries: Indices,
    begin_codes: [Indices; 2],
    /// For each walk what it begins with, its last token, and its row among the last words of walks
    /// that go on, then of beginnings.
    begins: Indices,
    entries: Indices,
    codes: [Indices; 2],
    said: Indices,
}

impl Lists {
    fn new(tape: &mut Tape<'_>, walks: &Walks) -> Lists {
        let count = walks.walks.len() as u32;
        let said = walks
            .walks
            .iter()
            .enumerate()
            .map(|(place, walk)| if walk.goes_on { place as u32 } else { count + walk.begin });
        Lists {
            said: tape.indices(said),
            begin_entries: tape.indices(walks.begins.iter().map(|begin| begin.entry)),
            begin_codes: [0, 1]
                .map(|side| tape.indices(walks.begins.iter().map(|begin| begin.codes[side]))),
            begins: tape.indices(walks.walks.iter().map(|walk| walk.begin)),
            entries: tape.indices(walks.walks.iter().map(|walk| walk.entry)),
            codes: [0, 1].map(|side| tape.indices(walks.walks.iter().map(|w| w.codes[side]))),
        }
    }
}

impl PairHead<NoEncoder> for CawnHead {
    type State = ();
    type Scratch = Walks;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// A pair is up to 2 K walks.
    fn chunk(&self, _: &NoEncoder, _: Mode) -> Chunk {
        Chunk { seeds: 4_096, pairs: 16 }
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
        walks: &mut Walks,
    ) -> Var {
        let (past, tape) = (context.past, &mut *context.tape);
        walks.gather(past, pairs, &self.config);
        let encoded = self.encoded(tape, past, walks);
        let offsets = tape.indices(walks.offsets.iter().copied());
        let blocks = Blocks {
            heads: self.config.heads,
            offsets,
            repeats: Some(tape.indices(walks.repeats.iter().copied())),
            dropout: self.config.dropout as f32,
        };
        let encoded = self.block.apply(tape, encoded, blocks);
        let most = self.config.walks as f32;
        let shares = tape.input(walks.repeats.len(), 1, |shares| {
            for (share, &repeats) in shares.iter_mut().zip(&walks.repeats) {
                *share = repeats as f32 / most;
            }
        });
        let means = tape.segment_sum(
            encoded,
            Segments { rows: None, offsets },
            Weighting::By { weights: shares, slots: None },
        );
        let hidden = self.out.apply(tape, means, Activation::Identity);
        let count = pairs.len() as u32;
        let (sources, candidates) = (tape.indices(0..count), tape.indices(count..2 * count));
        self.predictor.apply(tape, (hidden, sources), (hidden, candidates))
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
