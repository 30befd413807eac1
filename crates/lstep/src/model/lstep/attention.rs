//! Attention over a node's recent events, where the paper's equations have a sum and W_P^(1):
//! "L-STEP + Attention".
//!
//! The appendix ("MLPs and Transformers on the proposed LPE") replaces the layers that learn
//! positional encodings and writes no equation. Here the recent events z_j = [f_T(t - t_j) | p~ of
//! the other node] are keys and values, the node's own position asks:
//!
//! h_P = p~ + tanh(W_self p~ + W2 a), a = softmax((W_Q p~ + b_Q) (W_K z_j)^T / sqrt(d_P / heads))
//! (W_V z_j + b_V), head by head.
//!
//! The query has no time part, since f_T(0) is constant and b_Q says the same; the keys have no
//! bias, since softmax takes it out again. A node without events has a = 0. Eq. pe_updated has the
//! same layers, as with the MLP.

use super::config::LstepConfig;
use super::encode::Equations;
use super::gather::Gathered;
use crate::nn::Linear;
use lstep_tensor::{
    Activation, Heads, Init, Keys, Pair, ParameterId, Parameters, Tape, Times, Var,
};

/// The weights of the attention; its output layer is W_P^(2).
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    /// W_Q, [d_P, d_P].
    query: Linear,
    /// W_K, [d_P, d_T + d_P].
    key: ParameterId,
    /// W_V, [d_P, d_T + d_P].
    value: Linear,
}

/// Where the keys of every seed are: blocks of as many rows as the seed with the most events has.
struct Blocks {
    rows: usize,
    counts: Vec<u32>,
    /// For each row its event, as a place among the ages; rows over a seed's count repeat the first
    /// event and take no part.
    events: Vec<u32>,
}

impl Attention {
    /// Adds the weights.
    pub fn add(parameters: &mut Parameters, config: &LstepConfig) -> Attention {
        let (d_p, inputs) = (config.position_width, config.time_width + config.position_width);
        let query = Linear::add(parameters, "position.query", d_p, d_p);
        let key = parameters.add("position.key.weight", d_p, inputs, Init::Linear { inputs });
        let value = Linear::add(parameters, "position.value", inputs, d_p);
        Attention { query, key, value }
    }
}

impl Blocks {
    fn of(gathered: &Gathered) -> Blocks {
        let counts: Vec<u32> = gathered.offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let rows = counts.iter().copied().max().unwrap_or(0);
        let event =
            |seed: usize, row| if row < counts[seed] { gathered.offsets[seed] + row } else { 0 };
        let events = (0..counts.len()).flat_map(|seed| (0..rows).map(move |row| (seed, row)));
        let events = events.map(|(seed, row)| event(seed, row)).collect();
        Blocks { rows: rows as usize, events, counts }
    }
}

impl Equations<'_> {
    /// a of all seeds, [seeds, d_P], from p~ of the seeds' own nodes and of all nodes.
    pub(super) fn attend(
        &self,
        tape: &mut Tape<'_>,
        weights: Attention,
        gathered: &Gathered,
        (ages, frequencies): (Times, Times),
        (own, approximate): (Var, Var),
    ) -> Var {
        let d_t = self.config.time_width;
        let blocks = Blocks::of(gathered);
        let u_rows = tape.indices(blocks.events.iter().copied());
        let v_rows =
            tape.indices(blocks.events.iter().map(|&event| gathered.partners[event as usize]));
        let times = tape.time_encoding(ages, frequencies);
        // A layer of [time | position] is a sum of two: the time's made once for an event, the
        // position's once for a node.
        let mut of_events = |weight: ParameterId, bias: Option<ParameterId>| {
            let weight = tape.parameter(weight);
            let bias = bias.map(|bias| tape.parameter(bias));
            let (of_time, of_position) =
                (tape.columns(weight, 0..d_t), tape.columns(weight, d_t..tape.shape(weight).1));
            let u = tape.linear(times, of_time, None, Activation::Identity);
            let v = tape.linear(approximate, of_position, None, Activation::Identity);
            tape.gather_pair(Pair { u, u_rows, v, v_rows }, bias, Activation::Identity)
        };
        let keys = of_events(weights.key, None);
        let values = of_events(weights.value.weight, Some(weights.value.bias));
        let query = weights.query.apply(tape, own, Activation::Identity);
        let heads = Heads {
            heads: self.config.heads,
            query_rows: 1,
            key_rows: blocks.rows,
            keys: Keys::First(tape.indices(blocks.counts)),
            dropout: 0.0,
        };
        tape.attention(query, keys, values, heads)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Aggregation, Lstep};
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::{Neighbour, Seed};
    use crate::model::Learner;
    use lstep_tensor::{DropoutKey, Gradients, Workspace};
    use std::collections::BTreeMap;

    const EVENTS: [&[(u32, f64)]; 3] = [&[(1, 5.0), (2, 2.5), (1, 1.0)], &[], &[(0, 0.5)]];
    const HEADS: usize = 2;
    const WIDTH: usize = 4;

    /// Numbers by the name of their parameter; p~ of three nodes is one of them.
    type Numbers = BTreeMap<String, Vec<f64>>;

    /// W x + b, with the bias where there is one.
    fn layer(numbers: &Numbers, name: &str, x: &[f64]) -> Vec<f64> {
        let bias = numbers.get(&format!("{name}.bias"));
        let rows = numbers[&format!("{name}.weight")].chunks(x.len());
        let product = |row: &[f64]| row.iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>();
        rows.enumerate()
            .map(|(row, weights)| product(weights) + bias.map_or(0.0, |bias| bias[row]))
            .collect()
    }

    /// The module's formula, written out: h_P of the node of each seed.
    fn reference(numbers: &Numbers, config: &LstepConfig) -> Vec<f64> {
        let position = |node: u32| &numbers["p"][node as usize * WIDTH..][..WIDTH];
        let mut all = Vec::new();
        for (node, events) in EVENTS.iter().enumerate() {
            let own = position(node as u32);
            let query = layer(numbers, "position.query", own);
            let z: Vec<Vec<f64>> = events
                .iter()
                .map(|&(other, age)| {
                    config
                        .frequencies()
                        .map(|w| (w * age).cos())
                        .chain(position(other).to_vec())
                        .collect()
                })
                .collect();
            let keys: Vec<Vec<f64>> = z.iter().map(|z| layer(numbers, "position.key", z)).collect();
            let values: Vec<Vec<f64>> =
                z.iter().map(|z| layer(numbers, "position.value", z)).collect();
            let mut a = vec![0.0; WIDTH];
            for columns in (0..WIDTH).collect::<Vec<_>>().chunks(WIDTH / HEADS) {
                let score =
                    |key: &Vec<f64>| columns.iter().map(|&c| query[c] * key[c]).sum::<f64>();
                let weights: Vec<f64> = keys
                    .iter()
                    .map(|key| (score(key) / (columns.len() as f64).sqrt()).exp())
                    .collect();
                let total: f64 = weights.iter().sum();
                for (weight, value) in weights.iter().zip(&values) {
                    columns.iter().for_each(|&c| a[c] += weight / total * value[c]);
                }
            }
            let (from_self, inner) =
                (layer(numbers, "position.self", own), layer(numbers, "position.out", &a));
            all.extend((0..WIDTH).map(|c| own[c] + (from_self[c] + inner[c]).tanh()));
        }
        all
    }

    #[test]
    fn values_and_gradients_are_those_of_the_formula_written_out_in_double_precision() {
        let config = LstepConfig {
            time_width: 3,
            position_width: WIDTH,
            recent: 3,
            aggregation: Aggregation::Attention,
            heads: HEADS,
            ..LstepConfig::default()
        };
        let mut model = Lstep::new(config, 3).expect("settings");
        let p =
            model.parameters_mut().add("p", 3, WIDTH, Init::Normal { mean: 0.0, deviation: 1.0 });
        let mut gathered = Gathered::default();
        gathered.clear();
        let time = |value| Time::new(value).expect("finite");
        for node in 0..3 {
            gathered.seed(Seed::new(NodeId(node), time(9.0)));
        }
        for events in EVENTS {
            let neighbour =
                |&(other, age): &(u32, f64)| Neighbour::new(time(9.0 - age), 0, NodeId(other));
            let recent: Vec<Neighbour> = events.iter().map(neighbour).collect();
            gathered.recent(&recent, 3, |neighbour| 9.0 - neighbour.time().value());
        }

        let mut workspace = Workspace::new();
        let mut gradients = Gradients::of(model.parameters());
        let mut tape = workspace.train(model.parameters(), DropoutKey { seed: 0, step: 0 });
        let p = tape.parameter(p);
        let position =
            model.encoder().equations(model.parameters(), false).updated(&mut tape, &gathered, p);
        let found = tape.value(position).to_vec();
        let squares = tape.square(position);
        let loss = tape.sum(squares);
        tape.backward(loss, &mut gradients);

        let mut numbers: Numbers = model
            .parameters()
            .iter()
            .map(|parameter| {
                (
                    parameter.name.to_string(),
                    parameter.values.iter().copied().map(f64::from).collect(),
                )
            })
            .collect();
        for (found, expected) in found.iter().zip(reference(&numbers, &model.encoder().config)) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} is not {expected}");
        }
        let mut checked = 0;
        for name in [
            "p",
            "position.query.weight",
            "position.query.bias",
            "position.key.weight",
            "position.value.weight",
        ]
        .into_iter()
        .chain([
            "position.value.bias",
            "position.out.weight",
            "position.out.bias",
            "position.self.weight",
        ]) {
            let gradient = gradients.get(model.parameters().find(name).expect("a weight")).to_vec();
            for (place, &gradient) in gradient.iter().enumerate() {
                let mut loss_at = |change: f64| -> f64 {
                    numbers.get_mut(name).expect("a weight")[place] += change;
                    let loss =
                        reference(&numbers, &model.encoder().config).iter().map(|x| x * x).sum();
                    numbers.get_mut(name).expect("a weight")[place] -= change;
                    loss
                };
                let expected = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
                assert!(
                    (f64::from(gradient) - expected).abs() < 1e-4,
                    "{name}[{place}]: {gradient} is not {expected}"
                );
                checked += usize::from(expected.abs() > 1e-3);
            }
        }
        assert!(checked > 50, "most gradients are not zero: {checked}");
    }

    #[test]
    fn attention_without_positions_and_heads_that_do_not_divide_are_refused() {
        let attention =
            LstepConfig { aggregation: Aggregation::Attention, ..LstepConfig::default() };
        assert!(attention.check().is_ok());
        let odd = LstepConfig { heads: 3, ..attention.clone() };
        assert!(odd.check().expect_err("3 heads").to_string().contains("172"));
        let nowhere = LstepConfig { variant: super::super::Variant::NoPosition, ..attention };
        assert!(nowhere.check().expect_err("no positions").to_string().contains("position-only"));
    }
}
