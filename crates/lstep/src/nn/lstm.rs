//! Steps of an LSTM on gates that are already summed.
//!
//! Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, as PyTorch has it: with the gates i,
//! f, g, o of W x + U h + a + b, c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').
//! Inputs are often sums of few rows, so whoever calls makes W x once for each of them.

use lstep_tensor::{Activation, Init, ParameterId, Parameters, Tape, Var};
use std::ops::Range;

/// The weights of one direction.
#[derive(Debug, Clone, Copy)]
pub struct Lstm {
    /// W, [4 width, inputs].
    input: ParameterId,
    /// U, [4 width, width].
    hidden: ParameterId,
    /// a and b, [1, 4 width].
    biases: [ParameterId; 2],
    width: usize,
}

impl Lstm {
    /// Adds all weights under a name, drawn as PyTorch does.
    pub fn add(parameters: &mut Parameters, name: &str, inputs: usize, width: usize) -> Lstm {
        let mut add = |part: &str, rows: usize, columns: usize| {
            parameters.add(&format!("{name}.{part}"), rows, columns, Init::Linear { inputs: width })
        };
        Lstm {
            input: add("input.weight", 4 * width, inputs),
            hidden: add("hidden.weight", 4 * width, width),
            biases: [add("input.bias", 1, 4 * width), add("hidden.bias", 1, 4 * width)],
            width,
        }
    }

    /// Some columns of W.
    pub fn input(self, tape: &mut Tape<'_>, columns: Range<usize>) -> Var {
        let weight = tape.parameter(self.input);
        tape.columns(weight, columns)
    }

    /// a + b.
    pub fn bias(self, tape: &mut Tape<'_>) -> Var {
        let [a, b] = self.biases.map(|id| tape.parameter(id));
        tape.add(a, b)
    }

    /// U h, [n, 4 width].
    pub fn of_hidden(self, tape: &mut Tape<'_>, hidden: Var) -> Var {
        let weight = tape.parameter(self.hidden);
        tape.linear(hidden, weight, None, Activation::Identity)
    }

    /// A step: h' and c', [n, width]. Without a cell it begins from zero.
    pub fn step(self, tape: &mut Tape<'_>, gates: Var, cell: Option<Var>) -> (Var, Var) {
        let width = self.width;
        let gate = |tape: &mut Tape<'_>, number: usize, activation| {
            let gate = tape.columns(gates, number * width..(number + 1) * width);
            tape.apply(gate, activation)
        };
        let input = gate(tape, 0, Activation::Sigmoid);
        let new = gate(tape, 2, Activation::Tanh);
        let mut next = tape.mul(input, new);
        if let Some(cell) = cell {
            let forget = gate(tape, 1, Activation::Sigmoid);
            let kept = tape.mul(forget, cell);
            next = tape.add(next, kept);
        }
        let out = gate(tape, 3, Activation::Sigmoid);
        let shown = tape.apply(next, Activation::Tanh);
        (tape.mul(out, shown), next)
    }
}
