//! TPNet: an MLP-Mixer over both histories of a pair, whose tokens tell how near each met node is
//! to both nodes of the pair.
//!
//! Lu et al., "Improving Temporal Link Prediction via Temporal Walk Matrix Projection", NeurIPS
//! 2024, <https://arxiv.org/abs/2410.04013>, as in its released code
//! (<https://github.com/lxd99/TPNet>). [`Projections`] keeps for each node H^0 .. H^h, h = 3: random
//! projections of how many decayed walks lead where. With n = h + 1 the nearness of nodes a and b is
//!
//! ```text
//! G      = all products of H^0_a .. H^h_a, H^0_b .. H^h_b with one another          [2n, 2n]
//! s(a,b) = W_2 relu(W_1 ln(1 + max(G, 0)) + b_1) + b_2                              64 -> 256 -> 64
//! ```
//!
//! For a pair (u, v) at t, each of the K newest events of u, and each of v, the newest last, is a
//! token; w is the node met, in both histories:
//!
//! ```text
//! x_k    = [x_w | f_T(ln(1 + t - t_k)) | e_k | s(w, u) | s(w, v)]                   572
//! H_k    = V_2 relu(V_1 x_k + c_1) + c_2                                            572 -> 344 -> 172
//! h_u    = mean over k of mixer(mixer(H))_k                                         172
//! y      = w . relu(P [h_u | h_v | s(u, v)] + p) + q                                408 -> 172 -> 1
//! ```
//!
//! `padding = "released"`: a slot without an event is a token of a node that nobody is, met when
//! time began, as in the released code; `"masked"`: its H_k is zero.
//!
//! What is shared, without changing a number. Of G's 64 products 16 depend on a alone and 16 on b
//! alone: they go through W_1 once for each node. 16 tell of both and are there twice, so their
//! columns are added: `pair.in.weight` has its columns in the order [a with a | b with b | a with b
//! | b with a], the last in the order of the third. s(w, u) is made once for distinct nodes, V_1 is
//! applied to the parts of a token apart, and those that depend on one seed are added up once: a
//! pair's token is a sum of two rows. Slots without an event are one token. The last layer of the
//! last mixer is applied to the mean, as [`Mixer`] says, and the dropout behind it differs as
//! [`FeedForward`](crate::nn::FeedForward) says.
//!
//! Where the released code differs: H^0 is a table by node number there. Here it is drawn from the
//! node's first event, so that numbers do not matter; all sources without an event share one
//! vector, and so do all candidates, for nothing tells them apart. Time began at the first event of
//! training, where it is 0 there: published streams begin at 0. H^0 is drawn anew for every epoch,
//! and the best epoch's draw stays in its checkpoint; a trained model that observes a stream from
//! its beginning has the first draw. Weights of time are f64 there too, sums are added event by
//! event.

mod config;
mod kind;
mod projection;
mod tokens;

pub use config::{MissingSlots, TpnetConfig};
pub use kind::TpnetKind;
pub use projection::Projections;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, ObserveScratch, PairHead};
use super::mlp::added_to;
use super::scratch::FeatureWidths;
use super::{Composite, PairBatch, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::Event;
use crate::graph::{Past, Revealed};
use crate::nn::{Linear, Mixer, MixerWidths, TimeEncoder};
use lstep_tensor::{Activation, Pair, Parameters, Tape, Var};
use projection::Shape;
use tokens::{Nodes, Tokens};

/// TPNet: its head looks at both nodes together.
pub type Tpnet = Composite<NoEncoder, TpnetHead>;

impl Tpnet {
    /// A model with weights drawn from a seed.
    pub fn new(config: TpnetConfig, seed: u64) -> Result<Tpnet> {
        Composite::build(seed, |parameters| {
            Ok((NoEncoder, TpnetHead::new(config, parameters, seed)?))
        })
    }
}

/// The head: settings and weights.
#[derive(Clone)]
pub struct TpnetHead {
    config: TpnetConfig,
    seed: u64,
    time: TimeEncoder,
    pair_in: Linear,
    pair_out: Linear,
    token_in: Linear,
    token_out: Linear,
    mixers: Vec<Mixer>,
    predict_in: Linear,
    predict_out: Linear,
}

impl TpnetHead {
    /// The head with weights added to the parameters. The seed also draws H^0.
    pub fn new(config: TpnetConfig, parameters: &mut Parameters, seed: u64) -> Result<TpnetHead> {
        config.check()?;
        let TpnetConfig { time_width, node_width, edge_width, recent, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let near = 4 * (config.hops + 1).pow(2);
        let widths = MixerWidths {
            tokens: recent,
            channels: node_width,
            token_inner: (recent / 2).max(1),
            channel_inner: 4 * node_width,
        };
        let mixers = (0..config.layers)
            .map(|layer| Mixer::add(parameters, &format!("mixer.{layer}"), widths))
            .collect();
        let mut layer = |name: &str, inputs: usize, outputs: usize| {
            Linear::add(parameters, name, inputs, outputs)
        };
        let token = node_width + time_width + edge_width + 2 * near;
        Ok(TpnetHead {
            seed,
            time,
            pair_in: layer("pair.in", near, 4 * near),
            pair_out: layer("pair.out", 4 * near, near),
            token_in: layer("token.in", token, 2 * node_width),
            token_out: layer("token.out", 2 * node_width, node_width),
            mixers,
            predict_in: layer("predict.in", 2 * node_width + near, node_width),
            predict_out: layer("predict.out", node_width, 1),
            config,
        })
    }

    fn shape(&self) -> Shape {
        Shape {
            sums: self.config.hops + 1,
            width: self.config.projection_width,
            rate: self.config.decay * self.config.time_unit,
        }
    }

    /// s of all pairs of nodes that are asked for, [pairs of nodes, 64].
    fn nearness(&self, tape: &mut Tape<'_>, state: &Projections, tokens: &Tokens) -> Var {
        let near = (self.config.hops + 1).pow(2);
        let weight = tape.parameter(self.pair_in.weight);
        let part = |place: usize| place * near..(place + 1) * near;
        let [first, second, between, back] =
            [0, 1, 2, 3].map(|place| tape.columns(weight, part(place)));
        let alone = |tape: &mut Tape<'_>, nodes: &Nodes, weight: Var| {
            let own = tape.input(nodes.len(), near, |values| {
                for (place, row) in values.chunks_exact_mut(near).enumerate() {
                    let sums = nodes.sums(state, place);
                    state.nearness(sums, sums, row);
                }
            });
            tape.linear(own, weight, None, Activation::Identity)
        };
        let u = alone(tape, &tokens.firsts, first);
        let v = alone(tape, &tokens.seconds, second);
        let (first, second) = tokens.pairs_of_nodes();
        let both = tape.input(first.len(), near, |values| {
            for ((row, &a), &b) in values.chunks_exact_mut(near).zip(&first).zip(&second) {
                let (a, b) = (a as usize, b as usize);
                state.nearness(tokens.firsts.sums(state, a), tokens.seconds.sums(state, b), row);
            }
        });
        let pair = Pair { u, u_rows: tape.indices(first), v, v_rows: tape.indices(second) };
        let bias = tape.parameter(self.pair_in.bias);
        let alone = tape.gather_pair(pair, Some(bias), Activation::Identity);
        let weight = tape.add(between, back);
        let inner = tape.layer(both, weight, None, added_to(alone));
        let inner = tape.apply(inner, Activation::Relu);
        self.pair_out.apply(tape, inner, Activation::Identity)
    }

    /// What node, time and event bring to V_1 x of all entries, [entries, 344].
    fn of_entries<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, tokens: &Tokens) -> Var {
        let TpnetConfig { time_width, node_width, .. } = self.config;
        let weight = tape.parameter(self.token_in.weight);
        let ages = tape.times(tokens.log_ages.iter().copied());
        let times = self.time.apply(tape, ages);
        let columns = tape.columns(weight, node_width..node_width + time_width);
        let mut sum = tape.linear(times, columns, None, Activation::Identity);
        let width = past.node_feature_width();
        if width > 0 {
            let features = tokens.node_features(tape, past);
            let columns = tape.columns(weight, 0..width);
            sum = tape.layer(features, columns, None, added_to(sum));
        }
        let width = past.event_feature_width();
        if width > 0 {
            let features = tokens.event_features(tape, past);
            let from = node_width + time_width;
            let columns = tape.columns(weight, from..from + width);
            sum = tape.layer(features, columns, None, added_to(sum));
        }
        sum
    }

    /// H of all histories, first those of sources, then those of candidates: [2 pairs K, 172].
    fn tokens<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, near: Var, tokens: &Tokens) -> Var {
        let TpnetConfig { time_width, node_width, edge_width, .. } = self.config;
        let weight = tape.parameter(self.token_in.weight);
        let bias = tape.parameter(self.token_in.bias);
        let entries = self.of_entries(tape, past, tokens);
        let mut from = node_width + time_width + edge_width;
        let width = tape.shape(near).1;
        // s(w, u) and s(w, v) through their columns of V_1.
        let to_sides = tokens.to_sides().map(|rows| {
            let near = tape.rows(near, rows);
            let columns = tape.columns(weight, from..from + width);
            from += width;
            tape.linear(near, columns, None, Activation::Identity)
        });
        let empty = tape.zeros(1, node_width);
        let mut parts = vec![empty];
        for (side, places) in tokens.sides.iter().enumerate() {
            let own = Pair {
                u: entries,
                u_rows: tape.indices(places.own_entries.iter().copied()),
                v: to_sides[side],
                v_rows: tape.indices(places.own_near.iter().copied()),
            };
            let own = tape.gather_pair(own, Some(bias), Activation::Identity);
            let token = Pair {
                u: own,
                u_rows: tape.indices(places.own.iter().copied()),
                v: to_sides[1 - side],
                v_rows: tape.indices(places.other.iter().copied()),
            };
            let inner = tape.gather_pair(token, None, Activation::Relu);
            parts.push(self.token_out.apply(tape, inner, Activation::Identity));
        }
        let made = tape.concat_rows(&parts);
        let slots = tape.indices(tokens.slots.iter().copied());
        tape.gather(made, slots)
    }
}

impl PairHead<NoEncoder> for TpnetHead {
    type State = Projections;
    type Scratch = Tokens;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// A pair is two blocks of K tokens.
    fn chunk(&self, _: &NoEncoder, _: Mode) -> Chunk {
        Chunk { seeds: 4_096, pairs: 24 }
    }

    fn init(&self, info: &StreamInfo) -> Projections {
        self.init_epoch(info, 0)
    }

    fn init_epoch(&self, info: &StreamInfo, epoch: u32) -> Projections {
        let draw = self.seed.rotate_left(32) ^ u64::from(epoch);
        Projections::new(self.shape(), draw, info.training.0.value())
    }

    fn prepare(&self, _: &NoEncoder, _: &Parameters, _: Past<'_>) {}

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t Projections,
        _: &Encoded,
        pairs: &PairBatch,
        _: Option<&'t ()>,
        tokens: &mut Tokens,
    ) -> Var {
        let (past, tape) = (context.past, &mut *context.tape);
        tokens.gather(past, state, pairs, &self.config);
        let near = self.nearness(tape, state, tokens);
        let mut hidden = self.tokens(tape, past, near, tokens);
        let dropout = self.config.dropout as f32;
        let (last, before) = self.mixers.split_last().expect("at least one mixer");
        for mixer in before {
            hidden = mixer.apply(tape, hidden, dropout);
        }
        let hidden = last.apply_to_mean(tape, hidden, self.config.recent, dropout);
        let (count, width) = (pairs.len(), self.config.node_width);
        let weight = tape.parameter(self.predict_in.weight);
        let bias = tape.parameter(self.predict_in.bias);
        let between = tape.rows(near, tokens.between());
        let parts = [
            (tape.rows(hidden, 0..count), 0..width),
            (tape.rows(hidden, count..2 * count), width..2 * width),
            (between, 2 * width..2 * width + tape.shape(near).1),
        ];
        let [first, rest @ ..] = parts;
        let columns = tape.columns(weight, first.1);
        let mut inner = tape.linear(first.0, columns, Some(bias), Activation::Identity);
        for (part, columns) in rest {
            let columns = tape.columns(weight, columns);
            inner = tape.layer(part, columns, None, added_to(inner));
        }
        let inner = tape.apply(inner, Activation::Relu);
        self.predict_out.apply(tape, inner, Activation::Identity)
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        state: &mut Projections,
        step: &[Event],
        _: &mut ObserveScratch<Self::Scratch>,
    ) {
        state.observe(step);
    }

    fn save_state<'a>(&self, state: &'a Projections, checkpoint: &mut Checkpoint<'a>) {
        state.save(checkpoint);
    }

    fn load_state(
        &self,
        info: &StreamInfo,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Projections> {
        let mut state = self.init(info);
        state.load(checkpoint)?;
        Ok(state)
    }
}
