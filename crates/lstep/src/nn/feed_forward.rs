//! The net of two layers in mixers and transformers: y = x' + W_2 gelu(W_1 x + b_1) + b_2, dropout
//! after the activation and at the end.
//!
//! Where only means of y over sets of rows are wanted, the second layer, being linear, is applied
//! to the means of its input: a product for each set and not for each row. That is the same number
//! but for rounding, except for the last dropout in training. It would have a mask for each row,
//! and the mean of masked rows is here the masks' mean times the rows' mean: the same expectation,
//! and noise of the same size.

use super::Linear;
use lstep_tensor::{Activation, Parameters, Segments, Tape, Then, Var, Weighting};

/// The weights of both layers.
#[derive(Debug, Clone, Copy)]
pub struct FeedForward {
    pub(super) inner: Linear,
    pub(super) outer: Linear,
}

impl FeedForward {
    /// Adds weights of the layers under their names.
    pub fn add(
        parameters: &mut Parameters,
        names: [&str; 2],
        width: usize,
        inner: usize,
    ) -> FeedForward {
        let [first, second] = names;
        FeedForward {
            inner: Linear::add(parameters, first, width, inner),
            outer: Linear::add(parameters, second, inner, width),
        }
    }

    /// The net of x, plus `add` if there is one: [n, width] to [n, width].
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, add: Option<Var>, dropout: f32) -> Var {
        let inner = self.inside(tape, x, dropout);
        self.outer.apply_then(tape, inner, Then { activation: Activation::Identity, dropout, add })
    }

    /// Means over sets of rows of what [`FeedForward::apply`] gives, each [sets, width]. The
    /// weights of a set have to sum to 1.
    pub fn apply_to_means<const N: usize>(
        self,
        tape: &mut Tape<'_>,
        x: Var,
        add: Var,
        means: [(Segments, Weighting); N],
        dropout: f32,
    ) -> [Var; N] {
        let inner = self.inside(tape, x, dropout);
        let kept = (tape.is_training() && dropout > 0.0).then(|| {
            let (rows, columns) = tape.shape(add);
            let ones = tape.input(rows, columns, |values| values.fill(1.0));
            tape.dropout(ones, dropout)
        });
        means.map(|(sets, weighting)| {
            let inner = tape.segment_sum(inner, sets, weighting);
            let mut outer = self.outer.apply(tape, inner, Activation::Identity);
            if let Some(kept) = kept {
                let kept = tape.segment_sum(kept, sets, weighting);
                outer = tape.mul(outer, kept);
            }
            let added = tape.segment_sum(add, sets, weighting);
            tape.add(outer, added)
        })
    }

    fn inside(self, tape: &mut Tape<'_>, x: Var, dropout: f32) -> Var {
        self.inner.apply_then(tape, x, Then { activation: Activation::Gelu, dropout, add: None })
    }
}
