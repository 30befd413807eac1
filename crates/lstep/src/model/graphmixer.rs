//! GraphMixer: an MLP-Mixer over a node's recent events, and a mean over its neighbours.
//!
//! Cong et al., "Do We Really Need Complicated Model Architectures For Temporal Networks?", ICLR
//! 2023, with the hyper-parameters of DyGLib. For a seed (u, t) with its K newest events, the
//! newest last and missing ones before them as zeros:
//!
//! ```text
//! H_k  = W_in [f_T(t - t_k) | e_k] + b_in                                    [K, channels], f_T fixed
//! h_E  = mean over k of mixer(.. mixer(H))_k                                 [channels]
//! h_N  = x_u + mean of x over the `window` newest neighbours                 [d_N]
//! h    = W_out [h_E | h_N] + b_out                                           [d_N]
//! ```
//!
//! The mean over neighbours is a mean: DyGLib's code divides by the window once more, which all but
//! removes them where nodes have features.
//!
//! It has no state. Nothing but time and event features enters a token, so tokens of missing events
//! are all the same row, b_in. The last layer of the last mixer is applied to the mean of the
//! tokens, and the dropout behind it differs as [`FeedForward`](crate::nn::FeedForward) says.

mod kind;

pub use kind::GraphMixerKind;

use super::Composite;
use super::StreamInfo;
use super::checks::{check_dropout, within};
use super::encoder::{
    Chunk, Encoded, ForwardContext, Mode, NodeEncoder, ObserveScratch, edge_features,
};
use super::mlp::Mlp;
use super::neighbours::{NeighbourBatch, Sampling};
use super::scratch::FeatureWidths;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::graph::{Past, Revealed, Seed};
use crate::nn::{Linear, Mixer, MixerWidths, frequencies};
use lstep_tensor::{Activation, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

/// GraphMixer's settings. Defaults are DyGLib's for a stream of unknown kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GraphMixerConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of an encoding; a run on a stream with wider node features
    /// makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Channels of a token, at least 1.
    pub channels: usize,
    /// K, how many events are mixed, at least 2.
    pub recent: usize,
    /// Which events are mixed.
    pub sampling: Sampling,
    /// How many of the newest neighbours the node encoder looks at.
    pub window: usize,
    /// Mixer blocks, at least 1.
    pub layers: usize,
    /// Inner width of the net over tokens, as a multiple of K; above 0, at most 64.
    pub token_expansion: f64,
    /// Inner width of the net over channels, as a multiple of the channels; above 0, at most 64.
    pub channel_expansion: f64,
    /// Dropout within the mixers, in [0, 1).
    pub dropout: f64,
}

impl Default for GraphMixerConfig {
    fn default() -> GraphMixerConfig {
        GraphMixerConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            channels: 172,
            recent: 20,
            sampling: Sampling::Recent,
            window: 2000,
            layers: 2,
            token_expansion: 0.5,
            channel_expansion: 4.0,
            dropout: 0.1,
        }
    }
}

impl GraphMixerConfig {
    fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.channels", self.channels, 1),
            ("model.recent", self.recent, 2),
            ("model.layers", self.layers, 1),
        ])?;
        check_dropout(self.dropout)?;
        for (setting, value) in [
            ("model.token_expansion", self.token_expansion),
            ("model.channel_expansion", self.channel_expansion),
        ] {
            if !(value > 0.0 && value <= 64.0) {
                return Err(Error::setting(setting, value, "it has to be above 0 and at most 64"));
            }
        }
        Ok(())
    }
}

/// GraphMixer.
pub type GraphMixer = Composite<GraphMixerEncoder, Mlp>;

impl GraphMixer {
    /// A model with weights drawn from a seed.
    pub fn new(config: GraphMixerConfig, seed: u64) -> Result<GraphMixer> {
        Composite::build(seed, |parameters| {
            let encoder = GraphMixerEncoder::new(config, parameters)?;
            let head = Mlp::add(parameters, encoder.config.node_width);
            Ok((encoder, head))
        })
    }
}

/// The encoder: settings and weights.
#[derive(Clone)]
pub struct GraphMixerEncoder {
    config: GraphMixerConfig,
    token: Linear,
    mixers: Vec<Mixer>,
    out: Linear,
}

impl GraphMixerEncoder {
    /// The encoder with weights added to the parameters.
    pub fn new(config: GraphMixerConfig, parameters: &mut Parameters) -> Result<GraphMixerEncoder> {
        config.check()?;
        let inner = |expansion: f64, width: usize| ((expansion * width as f64) as usize).max(1);
        let widths = MixerWidths {
            tokens: config.recent,
            channels: config.channels,
            token_inner: inner(config.token_expansion, config.recent),
            channel_inner: inner(config.channel_expansion, config.channels),
        };
        let inputs = config.time_width + config.edge_width;
        let token = Linear::add(parameters, "token", inputs, config.channels);
        let mixers = (0..config.layers)
            .map(|layer| Mixer::add(parameters, &format!("mixer.{layer}"), widths))
            .collect();
        let inputs = config.channels + config.node_width;
        let out = Linear::add(parameters, "out", inputs, config.node_width);
        Ok(GraphMixerEncoder { config, token, mixers, out })
    }

    /// h_E of all seeds, [seeds, channels]. Seeds without events all have the same, so one of them
    /// is mixed for all.
    fn link<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, neighbours: &NeighbourBatch) -> Var {
        let (recent, dropout) = (self.config.recent, self.config.dropout as f32);
        let mut hidden = self.tokens(tape, past, neighbours);
        let (last, before) = self.mixers.split_last().expect("at least one mixer");
        for mixer in before {
            hidden = mixer.apply(tape, hidden, dropout);
        }
        let mixed = last.apply_to_mean(tape, hidden, recent, dropout);
        let mut next = 0;
        let blocks = neighbours.spans().map(|span| {
            if span.is_empty() {
                0
            } else {
                next += 1;
                next
            }
        });
        let blocks = tape.indices(blocks);
        tape.gather(mixed, blocks)
    }

    /// h_N of all seeds, [seeds, width of node features]. A node without a row counts as zeros.
    fn node(&self, tape: &mut Tape<'_>, past: Past<'_>, seeds: &[Seed]) -> Var {
        let width = past.node_feature_width();
        tape.input(seeds.len(), width, |values| {
            for (&seed, sum) in seeds.iter().zip(values.chunks_mut(width)) {
                let recent = past.recent(seed, self.config.window);
                let share = 1.0 / recent.len().max(1) as f32;
                for neighbour in recent {
                    let features = past.node_features(neighbour.node());
                    sum.iter_mut().zip(features).for_each(|(sum, x)| *sum += share * x);
                }
                sum.iter_mut().zip(past.node_features(seed.node())).for_each(|(sum, x)| *sum += x);
            }
        })
    }

    /// H of a seed without events, then of all that have some, [blocks K, channels]. The layer is
    /// applied to events that are there, and each missing one is its bias.
    fn tokens<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, neighbours: &NeighbourBatch) -> Var {
        let (ages, frequencies) = (
            tape.times(neighbours.ages().iter().copied()),
            tape.times(frequencies(self.config.time_width)),
        );
        let mut known = tape.time_encoding(ages, frequencies);
        let edge_width = past.event_feature_width();
        if let Some((table, rows)) = edge_features(tape, past, neighbours.neighbours()) {
            let features = tape.gather(table, rows);
            known = tape.concat_columns(&[known, features]);
        }
        let known = self.token.apply_to(tape, known, 0..self.config.time_width + edge_width);
        let missing = tape.parameter(self.token.bias);
        let both = tape.concat_rows(&[missing, known]);
        let recent = self.config.recent;
        let blocks =
            std::iter::once(0..0).chain(neighbours.spans().filter(|span| !span.is_empty()));
        let rows = blocks.flat_map(|span| {
            let missing = recent - span.len();
            std::iter::repeat_n(0, missing).chain(span.map(|place| place + 1))
        });
        let rows = tape.indices(rows);
        tape.gather(both, rows)
    }
}

impl NodeEncoder for GraphMixerEncoder {
    type State = ();
    type Scratch = NeighbourBatch;
    type Ahead = ();

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: 48, pairs: 65_536 }
    }

    fn init(&self, _: &StreamInfo) {}

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        (): &'t (),
        seeds: &[Seed],
        neighbours: &mut NeighbourBatch,
    ) -> Encoded {
        let (past, tape) = (context.past, &mut *context.tape);
        neighbours.gather(past, seeds, self.config.recent, self.config.sampling);
        let link = self.link(tape, past, neighbours);
        let channels = self.config.channels;
        let mut hidden = self.out.apply_to(tape, link, 0..channels);
        let width = past.node_feature_width();
        if width > 0 {
            let node = self.node(tape, past, seeds);
            let weight = tape.parameter(self.out.weight);
            let weight = tape.columns(weight, channels..channels + width);
            let from_node = tape.linear(node, weight, None, Activation::Identity);
            hidden = tape.add(hidden, from_node);
        }
        Encoded { hidden: Some(hidden), ..Encoded::default() }
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        (): &mut (),
        _: &[Event],
        (): (),
        _: &mut ObserveScratch<NeighbourBatch>,
    ) {
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
