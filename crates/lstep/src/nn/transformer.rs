//! A transformer block that normalises before its parts, over blocks of rows of any length.
//!
//! Vaswani et al., "Attention Is All You Need", NeurIPS 2017, with the norms in front:
//! x' = x + out(attention(norm(x))), y = x' + W_2 gelu(W_1 norm(x') + b_1) + b_2.

use super::{FeedForward, Linear, Norm};
use lstep_tensor::{Activation, Blocks, Init, Parameters, Segments, Tape, Then, Var, Weighting};

/// A block's weights.
#[derive(Debug, Clone, Copy)]
pub struct Transformer {
    attention_norm: Norm,
    /// Queries, keys and values in one layer.
    project: Linear,
    out: Linear,
    net_norm: Norm,
    net: FeedForward,
}

impl Transformer {
    /// Adds all weights under a name; the inner width of the net is four times the width.
    pub fn add(parameters: &mut Parameters, name: &str, width: usize) -> Transformer {
        // PyTorch's attention draws the projections by all their outputs, and its biases start from
        // zero.
        let mut layer = |part: &str, outputs: usize, init: Init| Linear {
            weight: parameters.add(&format!("{name}.{part}.weight"), outputs, width, init),
            bias: parameters.add(&format!("{name}.{part}.bias"), 1, outputs, Init::Zeros),
        };
        let project = layer("project", 3 * width, Init::XavierUniform);
        let out = layer("out", width, Init::Linear { inputs: width });
        Transformer {
            attention_norm: Norm::add(parameters, &format!("{name}.attention_norm"), width),
            project,
            out,
            net_norm: Norm::add(parameters, &format!("{name}.net_norm"), width),
            net: FeedForward::add(
                parameters,
                [&format!("{name}.in"), &format!("{name}.net_out")],
                width,
                4 * width,
            ),
        }
    }

    /// The block of x: [n, width] to [n, width]. The dropout is that of the blocks.
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, blocks: Blocks) -> Var {
        let x = self.attend(tape, x, blocks);
        let normal = self.net_norm.apply(tape, x);
        self.net.apply(tape, normal, Some(x), blocks.dropout)
    }

    /// Means over sets of rows of the block of x, each [sets, width].
    pub fn apply_to_means<const N: usize>(
        self,
        tape: &mut Tape<'_>,
        x: Var,
        blocks: Blocks,
        means: [(Segments, Weighting); N],
    ) -> [Var; N] {
        let x = self.attend(tape, x, blocks);
        let normal = self.net_norm.apply(tape, x);
        self.net.apply_to_means(tape, normal, x, means, blocks.dropout)
    }

    /// x' of x.
    fn attend(self, tape: &mut Tape<'_>, x: Var, blocks: Blocks) -> Var {
        let normal = self.attention_norm.apply(tape, x);
        let projected = self.project.apply(tape, normal, Activation::Identity);
        let seen = tape.self_attention(projected, blocks);
        let then = Then { activation: Activation::Identity, dropout: blocks.dropout, add: Some(x) };
        self.out.apply_then(tape, seen, then)
    }
}
