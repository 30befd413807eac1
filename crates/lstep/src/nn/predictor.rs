//! The link predictor of the field: two linear layers on a pair of encodings.

use super::Linear;
use lstep_tensor::{Activation, Indices, Pair, Parameters, Tape, Var};

/// y = w relu(W [h_u | h_v] + b) + c.
#[derive(Debug, Clone, Copy)]
pub struct Predictor {
    pub(crate) inner: Linear,
    pub(crate) outer: Linear,
    pub(crate) width: usize,
}

impl Predictor {
    /// Adds `predict.in` and `predict.out` for encodings of a width.
    pub fn add(parameters: &mut Parameters, width: usize) -> Predictor {
        Predictor {
            inner: Linear::add(parameters, "predict.in", 2 * width, width),
            outer: Linear::add(parameters, "predict.out", width, 1),
            width,
        }
    }

    /// Logits of pairs of encodings, [pairs, 1]: rows `first` of u, [n, width], with rows `second`
    /// of v, [m, width].
    ///
    /// The layer of a concatenation is a sum of two layers, so each is made once for an encoding
    /// and not once for a pair.
    pub fn apply(
        self,
        tape: &mut Tape<'_>,
        (u, first): (Var, Indices),
        (v, second): (Var, Indices),
    ) -> Var {
        let (weight, bias) = (tape.parameter(self.inner.weight), tape.parameter(self.inner.bias));
        let left = tape.columns(weight, 0..self.width);
        let right = tape.columns(weight, self.width..2 * self.width);
        let u = tape.linear(u, left, None, Activation::Identity);
        let v = tape.linear(v, right, None, Activation::Identity);
        let pair = Pair { u, u_rows: first, v, v_rows: second };
        let inner = tape.gather_pair(pair, Some(bias), Activation::Relu);
        self.outer.apply(tape, inner, Activation::Identity)
    }
}
