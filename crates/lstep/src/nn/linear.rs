//! A linear layer and a layer normalisation by the names of their weights, starting as PyTorch's
//! do.

use lstep_tensor::{Activation, Init, ParameterId, Parameters, Tape, Then, Var};
use std::ops::Range;

/// y = f(W x + b), W [outputs, inputs].
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    /// W.
    pub weight: ParameterId,
    /// b.
    pub bias: ParameterId,
}

impl Linear {
    /// Adds `NAME.weight` and `NAME.bias`.
    pub fn add(parameters: &mut Parameters, name: &str, inputs: usize, outputs: usize) -> Linear {
        Linear {
            weight: parameters.add(
                &format!("{name}.weight"),
                outputs,
                inputs,
                Init::Linear { inputs },
            ),
            bias: parameters.add(&format!("{name}.bias"), 1, outputs, Init::Linear { inputs }),
        }
    }

    /// The layer of x: [n, inputs] to [n, outputs].
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, activation: Activation) -> Var {
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.bias));
        tape.linear(x, weight, Some(bias), activation)
    }

    /// The layer of x with dropout behind it, and a sum behind that if there is something to add.
    pub fn apply_then(self, tape: &mut Tape<'_>, x: Var, then: Then) -> Var {
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.bias));
        tape.layer(x, weight, Some(bias), then)
    }

    /// The layer of an input of which only some columns are there, all others being zero: x is [n,
    /// length of the range].
    pub fn apply_to(self, tape: &mut Tape<'_>, x: Var, columns: Range<usize>) -> Var {
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.bias));
        let weight = tape.columns(weight, columns);
        tape.linear(x, weight, Some(bias), Activation::Identity)
    }
}

/// PyTorch's addition to the variance.
pub(super) const EPSILON: f32 = 1e-5;

/// Normalisation of rows with a learned gain and bias.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    pub(super) gain: ParameterId,
    pub(super) bias: ParameterId,
}

impl Norm {
    /// Adds `NAME.gain` and `NAME.bias`, ones and zeros.
    pub fn add(parameters: &mut Parameters, name: &str, width: usize) -> Norm {
        Norm {
            gain: parameters.add(&format!("{name}.gain"), 1, width, Init::Ones),
            bias: parameters.add(&format!("{name}.bias"), 1, width, Init::Zeros),
        }
    }

    /// x with rows of mean 0 and variance 1, times gain, plus bias: [n, width] to [n, width].
    pub fn apply(self, tape: &mut Tape<'_>, x: Var) -> Var {
        let (gain, bias) = (tape.parameter(self.gain), tape.parameter(self.bias));
        tape.layer_norm(x, gain, bias, EPSILON)
    }
}
