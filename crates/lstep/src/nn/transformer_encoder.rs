//! A transformer block that normalises behind its parts, whose queries may be other rows than its
//! keys: the block of PyTorch's and DyGLib's encoders.
//!
//! Vaswani et al., "Attention Is All You Need", NeurIPS 2017: y = norm(x + out(attention(x, z))), the
//! result is norm(y + W_2 relu(W_1 y + b_1) + b_2). Dropout falls on attention weights, behind the
//! attention, on the inner values of the net and behind it.

use super::{Linear, Norm};
use lstep_tensor::{Activation, Blocks, Init, Parameters, Tape, Then, Var};

/// A block's weights.
#[derive(Debug, Clone, Copy)]
pub struct TransformerEncoder {
    /// Queries, keys and values in one layer.
    project: Linear,
    out: Linear,
    attention_norm: Norm,
    inner: Linear,
    outer: Linear,
    net_norm: Norm,
    width: usize,
}

impl TransformerEncoder {
    /// Adds all weights under a name; the inner width of the net is four times the width.
    pub fn add(parameters: &mut Parameters, name: &str, width: usize) -> TransformerEncoder {
        // PyTorch's attention draws the projections by all their outputs, and its biases start from
        // zero.
        let mut layer = |part: &str, outputs: usize, init: Init| Linear {
            weight: parameters.add(&format!("{name}.{part}.weight"), outputs, width, init),
            bias: parameters.add(&format!("{name}.{part}.bias"), 1, outputs, Init::Zeros),
        };
        let project = layer("project", 3 * width, Init::XavierUniform);
        let out = layer("out", width, Init::Linear { inputs: width });
        TransformerEncoder {
            project,
            out,
            attention_norm: Norm::add(parameters, &format!("{name}.attention_norm"), width),
            inner: Linear::add(parameters, &format!("{name}.in"), width, 4 * width),
            outer: Linear::add(parameters, &format!("{name}.net_out"), 4 * width, width),
            net_norm: Norm::add(parameters, &format!("{name}.net_norm"), width),
            width,
        }
    }

    /// The block of blocks of rows that look at themselves: [n, width] to [n, width]. The dropout
    /// is that of the blocks.
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, blocks: Blocks) -> Var {
        let projected = self.project.apply(tape, x, Activation::Identity);
        let seen = tape.self_attention(projected, blocks);
        self.apply_to(tape, x, seen, blocks.dropout)
    }

    /// Queries of rows, [n, width].
    pub fn queries(self, tape: &mut Tape<'_>, x: Var) -> Var {
        self.projected(tape, x, 0, self.width)
    }

    /// Keys and values of rows side by side, [n, 2 width].
    pub fn keys_and_values(self, tape: &mut Tape<'_>, x: Var) -> Var {
        self.projected(tape, x, self.width, 3 * self.width)
    }

    fn projected(self, tape: &mut Tape<'_>, x: Var, from: usize, to: usize) -> Var {
        let (weight, bias) =
            (tape.parameter(self.project.weight), tape.parameter(self.project.bias));
        let (weight, bias) = (tape.rows(weight, from..to), tape.columns(bias, from..to));
        tape.linear(x, weight, Some(bias), Activation::Identity)
    }

    /// What follows the attention: of rows that asked, and what their heads have seen, both [n,
    /// width].
    pub fn apply_to(self, tape: &mut Tape<'_>, x: Var, seen: Var, dropout: f32) -> Var {
        let beside = |add: Var| Then { activation: Activation::Identity, dropout, add: Some(add) };
        let y = self.out.apply_then(tape, seen, beside(x));
        let y = self.attention_norm.apply(tape, y);
        let then = Then { activation: Activation::Relu, dropout, add: None };
        let inner = self.inner.apply_then(tape, y, then);
        let outer = self.outer.apply_then(tape, inner, beside(y));
        self.net_norm.apply(tape, outer)
    }
}
