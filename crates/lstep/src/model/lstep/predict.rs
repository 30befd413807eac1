//! Eq. link_prediction: from two encoded nodes, and for `lstep-pair` from what is known of the
//! pair, to a logit.
//!
//! The predictor's first layer over a concatenation is a sum of two layers, each made once for a
//! seed in that role.

use super::LstepState;
use super::encode::{Encoded, Forward, Hidden};
use super::gather::Gathered;
use super::pairs::{Pairs, Role};
use crate::graph::Past;
use lstep_tensor::{Activation, Indices, Pair, Tape, Then, Var};

/// A sum to go on with: what a product is added to as it is made.
fn added_to(sum: Var) -> Then {
    Then { activation: Activation::Identity, dropout: 0.0, add: Some(sum) }
}

impl Forward<'_> {
    /// Eq. link_prediction before the sigmoid: [pairs, 1]. What is told about the pair joins the
    /// hidden layer as a further summand.
    pub fn predict<'t>(
        &self,
        tape: &mut Tape<'t>,
        (past, gathered, state): (Past<'_>, &Gathered, &LstepState),
        encoded: &Encoded<'t>,
        pairs: &Pairs,
    ) -> Var {
        let (pair, bias) = self.sides(tape, encoded.hidden, gathered.seeds(), pairs);
        let inner = match (self.weights.pair, &self.config.pair, &state.pairs) {
            (Some(weights), Some(config), Some(memory)) => {
                let mut inner = tape.gather_pair(pair, Some(bias), Activation::Identity);
                if let Some(signals) = weights.signals {
                    let told = tape.input(pairs.asked.len(), config.width(), |rows| {
                        memory.fill(past, &pairs.asked, rows)
                    });
                    let read = self.layer(tape, signals.first, told, Activation::Relu);
                    let read = self.layer(tape, signals.second, read, Activation::Relu);
                    let read = tape.dropout(read, config.dropout as f32);
                    let out = tape.parameter(signals.out);
                    inner = tape.layer(read, out, None, added_to(inner));
                }
                if let (Some(weight), Some(approximate)) = (weights.positions, encoded.approximate)
                {
                    let mut side = |role: &Role| {
                        let seeds = role.rows.iter().map(|&row| role.seeds[row as usize]);
                        let own = match encoded.by_seed {
                            true => tape.indices(seeds),
                            false => tape.indices(seeds.map(|seed| gathered.own[seed as usize])),
                        };
                        tape.gather(approximate, own)
                    };
                    let (u, v) = (side(&pairs.sources), side(&pairs.candidates));
                    let product = tape.mul(u, v);
                    let weight = tape.parameter(weight);
                    inner = tape.layer(product, weight, None, added_to(inner));
                }
                tape.apply(inner, Activation::Relu)
            }
            _ => tape.gather_pair(pair, Some(bias), Activation::Relu),
        };
        self.layer(tape, self.weights.predict_out, inner, Activation::Identity)
    }

    /// What sources and candidates bring to the hidden layer, and its bias.
    fn sides<'t>(
        &self,
        tape: &mut Tape<'t>,
        hidden: Hidden<'t>,
        seeds: usize,
        pairs: &Pairs,
    ) -> (Pair, Var) {
        let d_n = self.config.node_width;
        let (hidden, [to_u, to_v], bias) = match hidden {
            Hidden::Whole(hidden) => {
                let layer = self.weights.predict_in;
                let weight = tape.parameter(layer.weight);
                let to = [0..d_n, d_n..2 * d_n].map(|columns| tape.columns(weight, columns));
                (hidden, to, tape.parameter(layer.bias))
            }
            Hidden::Parts(parts, folded) => {
                let to = [&folded.source, &folded.candidate]
                    .map(|weight| tape.borrow(weight, folded.parts.width()));
                (parts, to, tape.borrow(&folded.bias, d_n))
            }
        };
        let (u, u_rows) = side(tape, &pairs.sources, hidden, seeds, to_u);
        let (v, v_rows) = side(tape, &pairs.candidates, hidden, seeds, to_v);
        (Pair { u, u_rows, v, v_rows }, bias)
    }
}

/// A role's products, and for each pair which of them is its own.
fn side(
    tape: &mut Tape<'_>,
    role: &Role,
    hidden: Var,
    seeds: usize,
    weight: Var,
) -> (Var, Indices) {
    // Where nearly all seeds have the role, a few products too many cost less than copying the
    // others out.
    if !tape.is_training() && role.seeds.len() * 8 > seeds * 7 {
        let inner = tape.linear(hidden, weight, None, Activation::Identity);
        return (inner, tape.indices(role.rows.iter().map(|&row| role.seeds[row as usize])));
    }
    let chosen = tape.indices(role.seeds.iter().copied());
    let hidden = tape.gather(hidden, chosen);
    let inner = tape.linear(hidden, weight, None, Activation::Identity);
    (inner, tape.indices(role.rows.iter().copied()))
}
