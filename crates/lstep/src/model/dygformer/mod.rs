//! DyGFormer: a transformer over the two joined histories of a pair.
//!
//! Yu et al., "Towards Better Dynamic Graph Learning: New Architecture and Unified Library",
//! NeurIPS 2023, with the hyper-parameters of DyGLib. Each entry of a history has four channels:
//! features of the node, features of the event, time encoding, and the co-occurrence f(c_own) +
//! f(c_other) with f(c) = W_2 relu(w_1 c + b_1) + b_2, where c counts how often the entry's node
//! appears in its own and in the other history. `patch` entries in a row are a patch; a linear
//! layer for each channel makes it [4 channel_width]. Patches of both histories go through the
//! transformer together; a side is the mean of its own.
//!
//! What is shared, without changing a number: node, event and time channels are made once for a
//! distinct seed, however many candidates it is batch against. A count is a small integer, so the
//! co-occurrence channel's layer is applied to every count at every place of a patch, and a patch
//! is a sum of rows of that table. Empty patches are all alike, so they are one row that counts as
//! many; dropout falls on that row as a whole. The last layer of the last transformer is applied to
//! a side's mean, and the dropout behind it differs as [`FeedForward`](crate::nn::FeedForward)
//! says.

mod config;
mod history;
mod kind;
mod released_padding;

pub use config::{DyGFormerConfig, Padding};
pub use history::Histories;
pub use kind::DyGFormerKind;
pub(crate) use released_padding::ReleasedPadding;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, PairHead};
use super::scratch::FeatureWidths;
use super::{Composite, PairBatch, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::graph::Past;
use crate::nn::{Linear, Predictor, TimeEncoder, Transformer};
use lstep_tensor::{Activation, Blocks, Parameters, Segments, Tape, Var, Weighting};

/// The encoder: settings and weights.
#[derive(Clone)]
pub struct DyGFormerHead {
    config: DyGFormerConfig,
    time: TimeEncoder,
    count_in: Linear,
    count_out: Linear,
    node_patch: Linear,
    edge_patch: Linear,
    time_patch: Linear,
    count_patch: Linear,
    transformers: Vec<Transformer>,
    out: Linear,
    predictor: Predictor,
}

/// The patches of a call's pairs: for each pair those of the source, those of the candidate, then
/// the empty one.
#[derive(Default)]
pub struct Patches {
    histories: Histories,
    /// The first patch of each seed; 0 is the empty patch.
    firsts: Vec<u32>,
    /// Where each pair's patches begin, and where the last one's end.
    offsets: Vec<u32>,
    /// The seed's patch that each patch of a pair is made of.
    rows: Vec<u32>,
    /// How many patches each stands for.
    repeats: Vec<u32>,
    /// Counts of all entries of all patches, two an entry.
    counts: Vec<u32>,
    /// For each pair its source's side, then for each its candidate's: patches and their share of
    /// the mean.
    sides: [Side; 2],
}

/// Patches that are averaged, and with which weight.
#[derive(Default)]
struct Side {
    offsets: Vec<u32>,
    rows: Vec<u32>,
    shares: Vec<f32>,
}

impl Patches {
    /// `empty` says how many empty patches fill up the two sides of a pair: from its place in the
    /// call, and the patches they have.
    fn gather(
        &mut self,
        past: Past<'_>,
        batch: &PairBatch,
        config: &DyGFormerConfig,
        empty: impl Fn(usize, [u32; 2]) -> [u32; 2],
    ) {
        let Patches { histories, firsts, offsets, rows, repeats, counts, sides } = self;
        histories.gather(past, batch.seeds(), config.longest);
        let patches = |histories: &Histories, seed: u32| {
            histories.span(seed).len().div_ceil(config.patch) as u32
        };
        firsts.clear();
        let mut next = 1;
        for seed in 0..histories.len() as u32 {
            firsts.push(next);
            next += patches(histories, seed);
        }
        offsets.clear();
        offsets.push(0);
        rows.clear();
        repeats.clear();
        counts.clear();
        sides.iter_mut().for_each(Side::clear);
        for (pair, (&source, &candidate)) in
            batch.sources().iter().zip(batch.candidates()).enumerate()
        {
            let lengths = [source, candidate].map(|seed| patches(histories, seed));
            let empty = empty(pair, lengths);
            let first = rows.len() as u32;
            let begins = [first, first + lengths[0]];
            let last = first + lengths[0] + lengths[1];
            for (side, (seed, other)) in
                [(source, candidate), (candidate, source)].into_iter().enumerate()
            {
                rows.extend(firsts[seed as usize]..firsts[seed as usize] + lengths[side]);
                histories.count_with(seed, other, |own, theirs| counts.extend([own, theirs]));
                counts.resize((rows.len()) * 2 * config.patch, 0);
                sides[side].push(begins[side]..begins[side] + lengths[side], (last, empty[side]));
            }
            repeats.resize(rows.len(), 1);
            if empty != [0, 0] {
                rows.push(0);
                repeats.push(empty[0] + empty[1]);
                counts.resize(rows.len() * 2 * config.patch, 0);
            }
            offsets.push(rows.len() as u32);
        }
    }
}

impl Side {
    fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.rows.clear();
        self.shares.clear();
    }

    /// A pair's patches, and the empty one with how many it stands for.
    fn push(&mut self, patches: std::ops::Range<u32>, (empty, times): (u32, u32)) {
        let share = 1.0 / (patches.len() as u32 + times) as f32;
        self.shares.extend(patches.clone().map(|_| share));
        self.rows.extend(patches);
        if times > 0 {
            self.rows.push(empty);
            self.shares.push(times as f32 * share);
        }
        self.offsets.push(self.rows.len() as u32);
    }
}

impl DyGFormerHead {
    /// The head with weights added to the parameters.
    pub fn new(config: DyGFormerConfig, parameters: &mut Parameters) -> Result<DyGFormerHead> {
        config.check()?;
        let DyGFormerConfig {
            time_width,
            node_width,
            edge_width,
            channel_width,
            patch,
            layers,
            ..
        } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let width = 4 * channel_width;
        let transformers = (0..layers)
            .map(|layer| Transformer::add(parameters, &format!("transformer.{layer}"), width))
            .collect();
        let mut layer = |name: &str, inputs: usize, outputs: usize| {
            Linear::add(parameters, name, inputs, outputs)
        };
        let (count_in, count_out) =
            (layer("count.in", 1, channel_width), layer("count.out", channel_width, channel_width));
        let mut channel = |name: &str, inputs: usize| layer(name, patch * inputs, channel_width);
        let (node_patch, edge_patch) =
            (channel("patch.node", node_width), channel("patch.edge", edge_width));
        let (time_patch, count_patch) =
            (channel("patch.time", time_width), channel("patch.count", channel_width));
        let out = layer("out", width, node_width);
        let predictor = Predictor::add(parameters, node_width);
        Ok(DyGFormerHead {
            config,
            time,
            count_in,
            count_out,
            node_patch,
            edge_patch,
            time_patch,
            count_patch,
            transformers,
            out,
            predictor,
        })
    }

    /// Node, event and time channels of all patches of all seeds, the empty patch first: [1 +
    /// patches, 3 channel_width].
    fn of_seeds<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, patches: &Patches) -> Var {
        let entry_rows = |width: usize, fill: &dyn Fn(usize, &mut [f32])| {
            // Rows of a seed's patches, entry by entry, zeros after its last entry.
            let mut values = Vec::new();
            for seed in 0..patches.histories.len() as u32 {
                let span = patches.histories.span(seed);
                let end = values.len() + span.len().next_multiple_of(self.config.patch) * width;
                for entry in span {
                    let from = values.len();
                    values.resize(from + width, 0.0);
                    fill(entry, &mut values[from..]);
                }
                values.resize(end, 0.0);
            }
            values
        };
        let histories = &patches.histories;
        let (node_width, edge_width, patch) =
            (self.config.node_width, self.config.edge_width, self.config.patch);
        let node = (past.node_feature_width() > 0).then(|| {
            entry_rows(node_width, &|entry, row| {
                let features = past.node_features(histories.nodes(entry..entry + 1)[0]);
                row[..features.len()].copy_from_slice(features);
            })
        });
        let edge = (past.event_feature_width() > 0).then(|| {
            entry_rows(edge_width, &|entry, row| {
                if let Some(neighbour) = histories.neighbour(entry) {
                    let features = past.event_features(&neighbour);
                    row[..features.len()].copy_from_slice(features);
                }
            })
        });
        let time = self.times(tape, patches);
        let count = tape.shape(time).0;
        let mut channels = Vec::with_capacity(3);
        for (values, layer, width) in
            [(node, self.node_patch, node_width), (edge, self.edge_patch, edge_width)]
        {
            let empty = tape.parameter(layer.bias);
            channels.push(match values {
                Some(values) => {
                    let values = tape.constant(count - 1, patch * width, &values);
                    let known = layer.apply(tape, values, Activation::Identity);
                    tape.concat_rows(&[empty, known])
                }
                // Without features a patch's channel is the bias.
                None => {
                    let same = tape.indices(std::iter::repeat_n(0, count));
                    tape.gather(empty, same)
                }
            });
        }
        channels.push(time);
        tape.concat_columns(&channels)
    }

    /// The time channel of all patches of all seeds, the empty patch first: [1 + patches,
    /// channel_width].
    fn times(&self, tape: &mut Tape<'_>, patches: &Patches) -> Var {
        let (mut ages, mut there) = (Vec::new(), Vec::new());
        for seed in 0..patches.histories.len() as u32 {
            let span = patches.histories.span(seed);
            ages.extend_from_slice(patches.histories.ages(span.clone()));
            there.resize(ages.len(), 1.0);
            let end = ages.len() - span.len() + span.len().next_multiple_of(self.config.patch);
            ages.resize(end, 0.0);
            there.resize(end, 0.0);
        }
        let entries = ages.len();
        let ages = tape.times(ages);
        let mut encoded = self.time.apply(tape, ages);
        if self.config.patch > 1 {
            let there = tape.constant(entries, 1, &there);
            encoded = tape.scale_rows(encoded, there);
        }
        let wide = tape.reshape(
            encoded,
            entries / self.config.patch,
            self.config.patch * self.config.time_width,
        );
        let known = self.time_patch.apply(tape, wide, Activation::Identity);
        let empty = tape.parameter(self.time_patch.bias);
        tape.concat_rows(&[empty, known])
    }

    /// The co-occurrence channel of every count at every place of a patch, [patch counts,
    /// channel_width]: row place counts + c. The layer's bias is in the rows of the first place, by
    /// halves, since a patch has two counts there.
    fn count_table(&self, tape: &mut Tape<'_>, counts: usize) -> Var {
        let width = self.config.channel_width;
        let all = tape.input(counts, 1, |values| {
            values.iter_mut().enumerate().for_each(|(c, value)| *value = c as f32);
        });
        let inner = self.count_in.apply(tape, all, Activation::Relu);
        let encoded = self.count_out.apply(tape, inner, Activation::Identity);
        let (weight, bias) =
            (tape.parameter(self.count_patch.weight), tape.parameter(self.count_patch.bias));
        let half = tape.scale(bias, 0.5);
        let places: Vec<Var> = (0..self.config.patch)
            .map(|place| {
                let weight = tape.columns(weight, place * width..(place + 1) * width);
                tape.linear(encoded, weight, (place == 0).then_some(half), Activation::Identity)
            })
            .collect();
        tape.concat_rows(&places)
    }

    /// All patches of all pairs before the transformer, [patches, 4 channel_width].
    fn joined<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, patches: &Patches) -> Var {
        let width = self.config.channel_width;
        let of_seeds = self.of_seeds(tape, past, patches);
        let counts = patches.counts.iter().max().map_or(1, |&most| most as usize + 1);
        let table = self.count_table(tape, counts);
        let joined = tape.zeros(patches.rows.len(), 4 * width);
        let (shared, own) =
            (tape.columns(joined, 0..3 * width), tape.columns(joined, 3 * width..4 * width));
        let rows = tape.indices(patches.rows.iter().copied());
        tape.gather_into(shared, of_seeds, rows);
        let patch = 2 * self.config.patch;
        let entries = patches
            .counts
            .iter()
            .enumerate()
            .map(|(at, &count)| (at % patch / 2 * counts) as u32 + count);
        let entries = tape.indices(entries);
        let ends = tape.indices((0..=patches.rows.len()).map(|row| (row * patch) as u32));
        tape.segment_sum_into(
            own,
            table,
            Segments { rows: Some(entries), offsets: ends },
            Weighting::Sum,
        );
        joined
    }

    /// The logits of pairs whose histories are filled up as `empty` says.
    fn logits_filled<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        batch: &PairBatch,
        patches: &mut Patches,
        empty: impl Fn(usize, [u32; 2]) -> [u32; 2],
    ) -> Var {
        let (past, tape) = (context.past, &mut *context.tape);
        patches.gather(past, batch, &self.config, empty);
        let mut hidden = self.joined(tape, past, patches);
        let blocks = Blocks {
            heads: self.config.heads,
            offsets: tape.indices(patches.offsets.iter().copied()),
            repeats: Some(tape.indices(patches.repeats.iter().copied())),
            dropout: self.config.dropout as f32,
        };
        let (last, before) = self.transformers.split_last().expect("at least one transformer");
        for transformer in before {
            hidden = transformer.apply(tape, hidden, blocks);
        }
        let means = patches.sides.each_ref().map(|side| {
            let segments = Segments {
                rows: Some(tape.indices(side.rows.iter().copied())),
                offsets: tape.indices(side.offsets.iter().copied()),
            };
            let weights = tape.constant(side.shares.len(), 1, &side.shares);
            (segments, Weighting::By { weights, slots: None })
        });
        let means = last.apply_to_means(tape, hidden, blocks, means);
        let [source, candidate] =
            means.map(|mean| self.out.apply(tape, mean, Activation::Identity));
        let pairs = tape.indices(0..batch.len() as u32);
        self.predictor.apply(tape, (source, pairs), (candidate, pairs))
    }
}

/// DyGFormer: its head looks at both nodes together.
pub type DyGFormer = Composite<NoEncoder, DyGFormerHead>;

impl DyGFormer {
    /// A model with weights drawn from a seed.
    pub fn new(config: DyGFormerConfig, seed: u64) -> Result<DyGFormer> {
        Composite::build(seed, |parameters| {
            Ok((NoEncoder, DyGFormerHead::new(config, parameters)?))
        })
    }
}

/// Pairs taken at once.
const CHUNK: Chunk = Chunk { seeds: 4_096, pairs: 32 };

impl PairHead<NoEncoder> for DyGFormerHead {
    type State = ();
    type Scratch = Patches;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn chunk(&self, _: &NoEncoder, _: Mode) -> Chunk {
        CHUNK
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
        patches: &mut Patches,
    ) -> Var {
        let all = (self.config.longest / self.config.patch) as u32;
        let padding = self.config.padding;
        self.logits_filled(context, pairs, patches, |_, lengths| match padding {
            Padding::Full => lengths.map(|length| all - length),
            Padding::None => [0, 0],
        })
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
