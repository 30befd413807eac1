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

use super::StreamInfo;
use super::checks::{check_dropout, within};
use super::encoder::{Encoder, FeatureWidths, PairBatch, Scratch};
use super::neighbours::{Meetings, Sampling};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::graph::{Past, Revealed, Seed};
use crate::nn::{Linear, Mixer, MixerWidths, Predictor, frequencies};
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

/// The encoder: settings and weights.
#[derive(Clone)]
pub struct GraphMixer {
    config: GraphMixerConfig,
    token: Linear,
    mixers: Vec<Mixer>,
    out: Linear,
    predictor: Predictor,
}

impl GraphMixer {
    /// Encodings of seeds, [seeds, d_N].
    fn encode<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        batch: &PairBatch,
        meetings: &mut Meetings,
    ) -> Var {
        meetings.gather(past, &batch.seeds, self.config.recent, self.config.sampling);
        let link = self.link(tape, past, meetings);
        let channels = self.config.channels;
        let from_link = self.out.apply_to(tape, link, 0..channels);
        let width = past.node_feature_width();
        if width == 0 {
            return from_link;
        }
        let node = self.node(tape, past, &batch.seeds);
        let weight = tape.parameter(self.out.weight);
        let weight = tape.columns(weight, channels..channels + width);
        let from_node = tape.linear(node, weight, None, Activation::Identity);
        tape.add(from_link, from_node)
    }

    /// h_E of all seeds, [seeds, channels]. Seeds without events all have the same, so one of them
    /// is mixed for all.
    fn link<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, meetings: &Meetings) -> Var {
        let (recent, dropout) = (self.config.recent, self.config.dropout as f32);
        let mut hidden = self.tokens(tape, past, meetings);
        let (last, before) = self.mixers.split_last().expect("at least one mixer");
        for mixer in before {
            hidden = mixer.apply(tape, hidden, dropout);
        }
        let mixed = last.apply_to_mean(tape, hidden, recent, dropout);
        let mut next = 0;
        let blocks = meetings.spans().map(|span| {
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
                let neighbours = past.recent(seed, self.config.window);
                let share = 1.0 / neighbours.len().max(1) as f32;
                for meeting in neighbours {
                    let features = past.node_features(meeting.neighbour);
                    sum.iter_mut().zip(features).for_each(|(sum, x)| *sum += share * x);
                }
                sum.iter_mut().zip(past.node_features(seed.node)).for_each(|(sum, x)| *sum += x);
            }
        })
    }

    /// H of a seed without events, then of all that have some, [blocks K, channels]. The layer is
    /// applied to events that are there, and each missing one is its bias.
    fn tokens<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, meetings: &Meetings) -> Var {
        let (ages, frequencies) = (
            tape.times(meetings.ages.iter().copied()),
            tape.times(frequencies(self.config.time_width)),
        );
        let mut known = tape.time_encoding(ages, frequencies);
        let edge_width = past.event_feature_width();
        if edge_width > 0 {
            let table = tape.borrow(past.event_feature_table(), edge_width);
            let rows = tape.indices(meetings.events.iter().copied());
            let features = tape.gather(table, rows);
            known = tape.concat_columns(&[known, features]);
        }
        let known = self.token.apply_to(tape, known, 0..self.config.time_width + edge_width);
        let missing = tape.parameter(self.token.bias);
        let both = tape.concat_rows(&[missing, known]);
        let recent = self.config.recent;
        let blocks = std::iter::once(0..0).chain(meetings.spans().filter(|span| !span.is_empty()));
        let rows = blocks.flat_map(|span| {
            let missing = recent - span.len();
            std::iter::repeat_n(0, missing).chain(span.map(|meeting| meeting + 1))
        });
        let rows = tape.indices(rows);
        tape.gather(both, rows)
    }
}

impl Encoder for GraphMixer {
    type Config = GraphMixerConfig;
    type State = ();
    type Lists = Meetings;
    const SEEDS_AT_ONCE: usize = 48;
    const PAIRS_AT_ONCE: usize = 65_536;

    fn new(config: GraphMixerConfig, parameters: &mut Parameters) -> Result<GraphMixer> {
        config.check()?;
        let inner = |expansion: f64, width: usize| ((expansion * width as f64) as usize).max(1);
        let widths = MixerWidths {
            tokens: config.recent,
            channels: config.channels,
            token_inner: inner(config.token_expansion, config.recent),
            channel_inner: inner(config.channel_expansion, config.channels),
        };
        let token = Linear::add(
            parameters,
            "token",
            config.time_width + config.edge_width,
            config.channels,
        );
        let mixers = (0..config.layers)
            .map(|layer| Mixer::add(parameters, &format!("mixer.{layer}"), widths))
            .collect();
        let out =
            Linear::add(parameters, "out", config.channels + config.node_width, config.node_width);
        let predictor = Predictor::add(parameters, config.node_width);
        Ok(GraphMixer { config, token, mixers, out, predictor })
    }

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn begin(&self, _: &StreamInfo) {}

    fn logits<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        (): &'t (),
        batch: &PairBatch,
        meetings: &mut Meetings,
    ) -> Var {
        let hidden = self.encode(tape, past, batch, meetings);
        self.predictor.apply_within(tape, hidden, &batch.sources, &batch.candidates)
    }

    fn observe(
        &self,
        _: &Parameters,
        _: &mut Scratch<Meetings>,
        _: Revealed<'_>,
        (): &mut (),
        _: &[Event],
    ) {
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
