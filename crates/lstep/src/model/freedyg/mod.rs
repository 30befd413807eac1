//! FreeDyG: an MLP-Mixer over each history of a pair, with a filter in the frequency domain along
//! it, and a channel that counts how often a met node is in both histories.
//!
//! Tian et al., "FreeDyG: Frequency Enhanced Continuous-Time Dynamic Graph Model for Link
//! Prediction", ICLR 2024, <https://openreview.net/forum?id=82Mc5ilInM>, as in its released code
//! (<https://github.com/Tianxzzz/FreeDyG>). A history is the L newest events of a node, without the
//! node itself, the newest last and missing ones before them:
//!
//! ```text
//! n_j   = g(count in its own history) + g(count in the other), g(c) = W_2 relu(w_1 c + b_1) + b_2
//! x_j   = R [W_n x_w | W_e e_j | W_t f_T(t - t_j) | W_c n_j] + r, each with a bias     688 -> 172
//! z     = x + drop(irfft(F rfft(x)))                            along the slots, F [L/2 + 1, 172]
//! x'    = x + tokens(norm(z^T))^T,   y = x' + channels(norm(x'))      two blocks, own F and nets
//! h     = sum over j of (a . y_j + b) y_j                                     no softmax, no mean
//! ```
//!
//! and the predictor on [h_u | h_v]. f_T is fixed. Missing slots have no node, no event and f_T = 0,
//! but they are counted: as often as there are missing slots in both histories. One rule is the
//! released code's own: in u's history, v is in the other history as often as in this one, and the
//! other way round. The residual of the token net is x, not z.
//!
//! What is shared, without changing a number. All four projections and R are linear, so R_i W_i is
//! made once a call; node, event and time parts are made once for a seed's event, and a count is a
//! small integer, so the counting part is a table of which a slot takes two rows. The filter is a
//! circular convolution whose kernel is made once a call.
//!
//! Where the released code differs: its settings by dataset are not released. Presets have L 32 and
//! the released defaults everywhere, which is what the published figures are compared with.

mod config;
mod kind;

pub use config::FreeDyGConfig;
pub use kind::FreeDyGKind;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, PairHead};
use super::feature_rows::node_features;
use super::mlp::added_to;
use super::neighbours::{NeighbourBatch, Sampling};
use super::occurrence::Occurrences;
use super::scratch::FeatureWidths;
use super::{Composite, PairBatch, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::NodeId;
use crate::graph::Past;
use crate::nn::{Linear, Mixer, MixerWidths, Predictor, frequencies};
use lstep_tensor::{Activation, Init, ParameterId, Parameters, Segments, Tape, Var, Weighting};
use std::sync::Arc;

/// FreeDyG: its head looks at both nodes together.
pub type FreeDyG = Composite<NoEncoder, FreeDyGHead>;

impl FreeDyG {
    /// A model with weights drawn from a seed.
    pub fn new(config: FreeDyGConfig, seed: u64) -> Result<FreeDyG> {
        Composite::build(seed, |parameters| Ok((NoEncoder, FreeDyGHead::new(config, parameters)?)))
    }
}

/// The head: settings and weights.
#[derive(Clone)]
pub struct FreeDyGHead {
    config: FreeDyGConfig,
    count_in: Linear,
    count_out: Linear,
    /// Of node, event, time and counts, in the order in which they are joined.
    projections: [Linear; 4],
    reduce: Linear,
    /// Real and imaginary part of F.
    filters: Vec<[ParameterId; 2]>,
    mixers: Vec<Mixer>,
    pool: Linear,
    predictor: Predictor,
    /// What makes a kernel of the two parts of F, each [L, L/2 + 1].
    waves: Arc<[Vec<f32>; 2]>,
}

/// The rows of irfft for the real and the imaginary part of a spectrum, each [L, L/2 + 1]. The
/// imaginary parts of the first and the last frequency have no effect.
fn inverse_transform(length: usize) -> [Vec<f32>; 2] {
    let (half, step) = (length / 2, std::f64::consts::TAU / length as f64);
    let row = |slot: usize, wave: fn(f64) -> f64, ends: f64| {
        (0..=half).map(move |frequency| {
            let times = if frequency == 0 || frequency == half { ends } else { 2.0 };
            // The product is reduced first, so that the angle is exact.
            (times * wave((slot * frequency % length) as f64 * step) / length as f64) as f32
        })
    };
    let real = (0..length).flat_map(|slot| row(slot, f64::cos, 1.0)).collect();
    let imaginary = (0..length).flat_map(|slot| row(slot, |angle| -angle.sin(), 0.0)).collect();
    [real, imaginary]
}

/// The slots of a call's histories: first those of sources, then those of candidates.
#[derive(Default)]
pub struct Slots {
    neighbours: NeighbourBatch,
    nodes: Vec<NodeId>,
    /// How often each neighbour is in its own history.
    counts: Vec<u32>,
    occurrences: Occurrences,
    /// For each slot the rows it is the sum of: its event among all, then two of the table of
    /// counts, which come behind the events.
    rows: Vec<u32>,
    ends: Vec<u32>,
}

impl Slots {
    fn gather(&mut self, past: Past<'_>, pairs: &PairBatch, length: usize) {
        let Slots { neighbours, nodes, counts, occurrences, rows, ends } = self;
        neighbours.gather(past, pairs.seeds(), length, Sampling::Recent);
        nodes.clear();
        nodes.extend(neighbours.neighbours().iter().map(|neighbour| neighbour.node()));
        counts.clear();
        let spans: Vec<_> =
            neighbours.spans().map(|span| span.start as usize..span.end as usize).collect();
        for span in &spans {
            occurrences.count_own(&nodes[span.clone()], counts);
        }
        let table = nodes.len() as u32;
        rows.clear();
        ends.clear();
        ends.push(0);
        for (sides, others) in
            [(pairs.sources(), pairs.candidates()), (pairs.candidates(), pairs.sources())]
        {
            for (&seed, &other) in sides.iter().zip(others) {
                let (own, theirs) = (spans[seed as usize].clone(), spans[other as usize].clone());
                let missing = [&own, &theirs].map(|span| table + (length - span.len()) as u32);
                for _ in own.len()..length {
                    rows.extend(missing);
                    ends.push(rows.len() as u32);
                }
                let asked = pairs.seeds()[other as usize].node();
                let first = own.start;
                let theirs = (&nodes[theirs.clone()], &counts[theirs]);
                occurrences.count_in(&nodes[own], theirs, |place, count| {
                    let entry = first + place;
                    // The other node itself is there as often as here.
                    let count = if nodes[entry] == asked { counts[entry] } else { count };
                    rows.extend([entry as u32, table + counts[entry], table + count]);
                    ends.push(rows.len() as u32);
                });
            }
        }
    }
}

impl FreeDyGHead {
    /// The head with weights added to the parameters.
    pub fn new(config: FreeDyGConfig, parameters: &mut Parameters) -> Result<FreeDyGHead> {
        config.check()?;
        let FreeDyGConfig { time_width, node_width, edge_width, count_width, recent, .. } = config;
        let widths = MixerWidths {
            tokens: recent,
            channels: node_width,
            token_inner: recent / 2,
            channel_inner: 4 * node_width,
        };
        let mixers = (0..config.layers)
            .map(|layer| Mixer::add(parameters, &format!("mixer.{layer}"), widths))
            .collect();
        let filters = (0..config.layers)
            .map(|layer| {
                ["real", "imaginary"].map(|part| {
                    let normal = Init::Normal { mean: 0.0, deviation: 1.0 };
                    let name = format!("filter.{layer}.{part}");
                    parameters.add(&name, recent / 2 + 1, node_width, normal)
                })
            })
            .collect();
        let predictor = Predictor::add(parameters, node_width);
        let mut layer = |name: &str, inputs: usize, outputs: usize| {
            Linear::add(parameters, name, inputs, outputs)
        };
        Ok(FreeDyGHead {
            count_in: layer("count.in", 1, count_width),
            count_out: layer("count.out", count_width, count_width),
            projections: [
                layer("project.node", node_width, node_width),
                layer("project.edge", edge_width, node_width),
                layer("project.time", time_width, node_width),
                layer("project.count", count_width, node_width),
            ],
            reduce: layer("reduce", 4 * node_width, node_width),
            filters,
            mixers,
            pool: layer("pool", node_width, 1),
            predictor,
            waves: Arc::new(inverse_transform(recent)),
            config,
        })
    }

    /// R_i times the first columns of W_i, [172, columns].
    fn folded(&self, tape: &mut Tape<'_>, part: usize, columns: usize) -> Var {
        let width = self.config.node_width;
        let reduce = tape.parameter(self.reduce.weight);
        let reduce = tape.columns(reduce, part * width..(part + 1) * width);
        let weight = tape.parameter(self.projections[part].weight);
        let weight = tape.columns(weight, 0..columns);
        tape.matmul(reduce, weight)
    }

    /// What node, event and time bring to the tokens of all events, [events, 172].
    fn of_events<'t>(&self, tape: &mut Tape<'t>, past: Past<'t>, slots: &Slots) -> Var {
        let ages = tape.times(slots.neighbours.ages().iter().copied());
        let waves = tape.times(frequencies(self.config.time_width));
        let times = tape.time_encoding(ages, waves);
        let weight = self.folded(tape, 2, self.config.time_width);
        let mut sum = tape.linear(times, weight, None, Activation::Identity);
        let width = past.node_feature_width();
        if width > 0 {
            let features = node_features(tape, past, width, slots.nodes.iter().copied().map(Some));
            let weight = self.folded(tape, 0, width);
            sum = tape.layer(features, weight, None, added_to(sum));
        }
        let width = past.event_feature_width();
        if width > 0 {
            let table = tape.borrow(past.event_feature_table(), width);
            let rows = tape.indices(slots.neighbours.neighbours().iter().map(|n| n.event()));
            let features = tape.gather(table, rows);
            let weight = self.folded(tape, 1, width);
            sum = tape.layer(features, weight, None, added_to(sum));
        }
        sum
    }

    /// What each count from 0 to L brings to a token, with half of all biases, since a slot has two
    /// counts: [L + 1, 172].
    fn count_table(&self, tape: &mut Tape<'_>) -> Var {
        let all = tape.input(self.config.recent + 1, 1, |values| {
            values.iter_mut().enumerate().for_each(|(count, value)| *value = count as f32);
        });
        let inner = self.count_in.apply(tape, all, Activation::Relu);
        let encoded = self.count_out.apply(tape, inner, Activation::Identity);
        let biases = self.projections.map(|layer| tape.parameter(layer.bias));
        let biases = tape.concat_columns(&biases);
        let bias = self.reduce.apply(tape, biases, Activation::Identity);
        let half = tape.scale(bias, 0.5);
        let weight = self.folded(tape, 3, self.config.count_width);
        tape.linear(encoded, weight, Some(half), Activation::Identity)
    }

    /// The filter of a layer as the kernel of a circular convolution, [L, 172].
    fn kernel<'t>(&'t self, tape: &mut Tape<'t>, layer: usize) -> Var {
        let frequencies = self.config.recent / 2 + 1;
        let [real, imaginary] = [0, 1].map(|part| {
            let waves = tape.borrow(&self.waves[part], frequencies);
            let spectrum = tape.parameter(self.filters[layer][part]);
            tape.matmul(waves, spectrum)
        });
        tape.add(real, imaginary)
    }
}

impl PairHead<NoEncoder> for FreeDyGHead {
    type State = ();
    type Scratch = Slots;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// A pair is two blocks of L tokens.
    fn chunk(&self, _: &NoEncoder, _: Mode) -> Chunk {
        Chunk { seeds: 4_096, pairs: (512 / self.config.recent).clamp(1, 64) }
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
        slots: &mut Slots,
    ) -> Var {
        let (past, tape) = (context.past, &mut *context.tape);
        let FreeDyGConfig { recent, dropout, filter_dropout, .. } = self.config;
        slots.gather(past, pairs, recent);
        let (events, table) = (self.of_events(tape, past, slots), self.count_table(tape));
        let parts = tape.concat_rows(&[events, table]);
        let sums = Segments {
            rows: Some(tape.indices(slots.rows.iter().copied())),
            offsets: tape.indices(slots.ends.iter().copied()),
        };
        let mut hidden = tape.segment_sum(parts, sums, Weighting::Sum);
        for (layer, mixer) in self.mixers.iter().enumerate() {
            let kernel = self.kernel(tape, layer);
            let filtered = tape.circular_convolution(hidden, kernel);
            let filtered = tape.dropout(filtered, filter_dropout as f32);
            hidden = mixer.apply_beside(tape, hidden, filtered, dropout as f32);
        }
        let shares = self.pool.apply(tape, hidden, Activation::Identity);
        let histories = (0..=2 * pairs.len()).map(|history| (history * recent) as u32);
        let histories = Segments { rows: None, offsets: tape.indices(histories) };
        let pooled =
            tape.segment_sum(hidden, histories, Weighting::By { weights: shares, slots: None });
        let count = pairs.len() as u32;
        let (sources, candidates) = (tape.indices(0..count), tape.indices(count..2 * count));
        self.predictor.apply(tape, (pooled, sources), (pooled, candidates))
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::graph::{EventLog, Seed};

    #[test]
    fn the_inverse_transform_takes_a_spectrum_back_to_its_wave() {
        // rfft of cos(2 pi (slot - 1) 2 / 8) is 4 exp(-i pi / 2) at frequency 2: an imaginary -4.
        let [_, imaginary] = inverse_transform(8);
        for (slot, row) in imaginary.chunks(5).enumerate() {
            let expected = (std::f32::consts::FRAC_PI_2 * (slot as f32 - 1.0)).cos();
            assert!((-4.0 * row[2] - expected).abs() < 1e-6, "{slot}");
        }
        let [real, _] = inverse_transform(8);
        assert!(real.chunks(5).all(|row| (8.0 * row[0] - 1.0).abs() < 1e-6), "a constant");
    }

    #[test]
    fn missing_slots_are_counted_and_the_other_node_is_there_as_often_as_here() {
        let time = |value: u32| Time::new(f64::from(value)).expect("finite");
        let mut log = EventLog::default();
        for (at, (source, destination)) in
            [(0, 1), (0, 2), (0, 1), (3, 1), (1, 2)].into_iter().enumerate()
        {
            log.push(NodeId(source), NodeId(destination), time(at as u32), &[]).expect("in order");
        }
        let mut pairs = PairBatch::default();
        pairs.push(Seed::new(NodeId(0), time(9)), NodeId(1));
        let mut slots = Slots::default();
        slots.gather(log.past(5), &pairs, 6);
        let table = slots.nodes.len() as u32;
        let counts: Vec<Vec<u32>> = slots
            .ends
            .windows(2)
            .map(|ends| {
                let rows = &slots.rows[ends[0] as usize..ends[1] as usize];
                rows[rows.len() - 2..].iter().map(|row| row - table).collect()
            })
            .collect();
        // 0 has met 1, 2, 1; 1 has met 0, 0, 3, 2.
        let source = [[3, 2], [3, 2], [3, 2], [2, 2], [1, 1], [2, 2]];
        let candidate = [[2, 3], [2, 3], [2, 2], [2, 2], [1, 0], [1, 1]];
        assert_eq!(counts, [source, candidate].concat());
    }
}
