//! A mixer's net over the tokens of a block, as one operation.
//!
//! ```text
//! y = x + m_2 (W_2 m_1 gelu(W_1 norm(x) + b_1) + b_2)                         for each block x, [tokens, channels]
//! ```
//!
//! The norm is over the tokens of a channel, m_1 and m_2 are dropout masks. Channels stay side by
//! side, so nothing is transposed and every loop runs over whole rows of channels; a block and all
//! it needs fit in the first two levels of cache. Steps by themselves would work on rows of a few
//! tokens, shorter than two vectors.

use super::dropout::{Mask, apply_mask, apply_mask_to_both};
use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::gemm::{Factor, Into, multiply_here};
use crate::kernel::{scratch, vector};
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Tape, Var};
use crate::workspace::Reader;

/// The weights of a net over `tokens` tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenNet {
    /// The norm's gain, [1, tokens].
    pub gain: Var,
    /// The norm's bias, [1, tokens].
    pub shift: Var,
    /// W_1, [inner, tokens].
    pub inner: Var,
    /// b_1, [1, inner].
    pub inner_bias: Var,
    /// W_2, [tokens, inner].
    pub outer: Var,
    /// b_2, [1, tokens].
    pub outer_bias: Var,
    /// What the norm adds to variances.
    pub epsilon: f32,
    /// The rate of both dropouts.
    pub dropout: f32,
}

#[derive(Clone, Copy)]
pub(crate) struct MixTokens {
    x: Var,
    net: TokenNet,
    masks: Option<[Mask; 2]>,
    /// Of each block its mean, inverse deviation, inner values and their slopes; without columns
    /// outside training.
    kept: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// The net of every block of rows, [blocks tokens, channels] to the same shape. x must have no
    /// gaps.
    pub fn mix_tokens(&mut self, x: Var, net: TokenNet) -> Var {
        let ((inner, tokens), (rows, channels)) = (self.shape(net.inner), self.shape(x));
        assert!(tokens > 0 && rows.is_multiple_of(tokens), "{rows} rows are no blocks of {tokens}");
        assert!(self.node(x).is_dense(), "blocks of a column slice cannot be mixed: copy it first");
        for (var, shape) in [
            (net.gain, (1, tokens)),
            (net.shift, (1, tokens)),
            (net.inner_bias, (1, inner)),
            (net.outer, (tokens, inner)),
            (net.outer_bias, (1, tokens)),
        ] {
            assert_eq!(
                self.shape(var),
                shape,
                "weights for {tokens} tokens and {inner} inner values"
            );
        }
        let masks = self
            .mask(net.dropout)
            .map(|first| [first, self.mask(net.dropout).expect("as the first")]);
        let out = self.emit(rows, channels);
        let blocks = rows / tokens;
        let kept =
            self.emit(blocks, if self.is_training() { (2 + 2 * inner) * channels } else { 0 });
        let op = MixTokens { x, net, masks, kept, out };
        let (read, [result, kept]) = self.forward([out, kept]);
        op.run(&read, result, kept);
        let inputs = [x, net.gain, net.shift, net.inner, net.inner_bias, net.outer, net.outer_bias];
        self.record(out, &inputs, || op.into());
        out
    }
}

/// The weights, resolved.
struct Weights<'b> {
    gain: &'b [f32],
    shift: &'b [f32],
    inner: Matrix<'b>,
    inner_bias: &'b [f32],
    outer: Matrix<'b>,
    outer_bias: &'b [f32],
}

impl MixTokens {
    fn weights<'b>(&self, read: &Reader<'b>) -> Weights<'b> {
        let net = &self.net;
        Weights {
            gain: read.flat(net.gain),
            shift: read.flat(net.shift),
            inner: read.matrix(net.inner),
            inner_bias: read.flat(net.inner_bias),
            outer: read.matrix(net.outer),
            outer_bias: read.flat(net.outer_bias),
        }
    }

    fn run(&self, read: &Reader<'_>, out: MatrixMut<'_>, kept: MatrixMut<'_>) {
        let (x, weights) = (read.matrix(self.x), self.weights(read));
        let (channels, tokens, inner) = (x.cols, weights.gain.len(), weights.inner_bias.len());
        let (size, inside) = (tokens * channels, inner * channels);
        let training = kept.cols > 0;
        let out = MatrixMut::new(out.data, x.rows / tokens, size);
        parallel::rows_beside(
            out,
            kept,
            1,
            x.rows * (x.cols * (2 * inner + 8)),
            |block, mut out, mut kept| {
                let x = &x.data[block * size..][..size];
                let out = out.row(0);
                scratch::with(size + 2 * channels + inside, |memory| {
                    let (normal, memory) = memory.split_at_mut(size);
                    let memory = if training { kept.row(0) } else { memory };
                    let (mean, memory) = memory.split_at_mut(channels);
                    let (inverse, memory) = memory.split_at_mut(channels);
                    let (hidden, slopes) = memory.split_at_mut(inside);
                    statistics(x, self.net.epsilon, mean, inverse);
                    normalize(x, mean, inverse, weights.gain, weights.shift, normal);
                    product_plus(weights.inner, weights.inner_bias, normal, hidden);
                    if training {
                        Activation::Gelu.apply_with_slopes(hidden, slopes);
                    } else {
                        Activation::Gelu.apply(hidden);
                    }
                    if let Some([mask, _]) = self.masks {
                        apply_mask_to_both(hidden, slopes, mask, (block * inside) as u32);
                    }
                    product_plus(weights.outer, weights.outer_bias, hidden, out);
                });
                if let Some([_, mask]) = self.masks {
                    apply_mask(out, mask, (block * size) as u32);
                }
                vector::add(out, x);
            },
        );
    }

    /// With n the normalised block, h the inner values, s their slopes and g = m_2 dy: dW_2 += g
    /// h^T, dz = s (W_2^T g), dW_1 += dz n^T, dn = W_1^T dz, biases by row sums, then the norm's
    /// gradient; dx += dy and that. Each block has its own sums for the weights, which are added up
    /// in order.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let Backward { read, grads, scratch: shared, .. } = backward;
        let (x, kept, weights) = (read.matrix(self.x), read.matrix(self.kept), self.weights(read));
        let (channels, tokens, inner) = (x.cols, weights.gain.len(), weights.inner_bias.len());
        let (size, blocks) = (tokens * channels, x.rows / tokens);
        let net = &self.net;
        let parts = [
            (net.outer, tokens * inner),
            (net.outer_bias, tokens),
            (net.inner, tokens * inner),
            (net.inner_bias, inner),
            (net.gain, tokens),
            (net.shift, tokens),
        ];
        let width: usize = parts.iter().map(|part| part.1).sum();
        let sums = shared.floats.take(blocks * width);
        let task = |dy: Matrix<'_>, block: usize, sums: &mut [f32], dx: &mut [f32]| {
            let place = block * size;
            let of_block = Block {
                number: block,
                x: &x.data[place..][..size],
                dy: &dy.data[place..][..size],
                kept: kept.row(block),
            };
            self.backward_block(&weights, of_block, sums, dx);
        };
        let work = x.rows * channels * (4 * inner + 16);
        let each = MatrixMut::new(sums, blocks, width);
        if grads.wants(self.x) {
            let (dy, dx) = grads.pair(self.out, self.x);
            let dx = MatrixMut::new(dx.data, blocks, size);
            parallel::rows_beside(each, dx, 1, work, |block, mut sums, mut dx| {
                task(dy, block, sums.row(0), dx.row(0));
            });
        } else {
            let dy = grads.own(self.out);
            let dy = dy.as_ref();
            parallel::rows(each, 1, work, |block, mut sums| task(dy, block, sums.row(0), &mut []));
        }
        let mut from = 0;
        for (var, len) in parts {
            if grads.wants(var) {
                let mut target = grads.target(var);
                let target = target.flat().expect("weights are dense");
                for sums in shared.floats.as_slice()[..blocks * width].chunks(width) {
                    vector::add(target, &sums[from..from + len]);
                }
            }
            from += len;
        }
    }

    /// The sums of one block in the order of `backward`, and its gradient added to `dx` unless that
    /// is empty.
    fn backward_block(
        &self,
        weights: &Weights<'_>,
        block: Block<'_>,
        sums: &mut [f32],
        dx: &mut [f32],
    ) {
        let (tokens, inner) = (weights.gain.len(), weights.inner_bias.len());
        let Block { number, x, dy, kept } = block;
        let channels = x.len() / tokens;
        let (mean, kept) = kept.split_at(channels);
        let (inverse, kept) = kept.split_at(channels);
        let (hidden, slopes) = kept.split_at(inner * channels);
        let (outer, sums) = sums.split_at_mut(tokens * inner);
        let (outer_bias, sums) = sums.split_at_mut(tokens);
        let (inner_sums, sums) = sums.split_at_mut(tokens * inner);
        let (inner_bias, sums) = sums.split_at_mut(inner);
        let (gain, shift) = sums.split_at_mut(tokens);
        scratch::with((3 * tokens + inner + 2) * channels, |memory| {
            let (g, memory) = memory.split_at_mut(tokens * channels);
            let (normal, memory) = memory.split_at_mut(tokens * channels);
            let (dn, memory) = memory.split_at_mut(tokens * channels);
            let (dz, means) = memory.split_at_mut(inner * channels);
            g.copy_from_slice(dy);
            if let Some([_, mask]) = self.masks {
                apply_mask(g, mask, (number * x.len()) as u32);
            }
            let g = Matrix::new(g, tokens, channels);
            outer_product(g, Matrix::new(hidden, inner, channels), outer);
            row_sums(g, outer_bias);
            let target = MatrixMut::new(dz, inner, channels);
            multiply_here(
                Factor::transposed(weights.outer),
                Factor::of(g),
                tokens,
                target,
                Into::Overwrite,
            );
            vector::multiply(dz, slopes);
            let dz = Matrix::new(dz, inner, channels);
            normalize(x, mean, inverse, weights.gain, weights.shift, normal);
            outer_product(dz, Matrix::new(normal, tokens, channels), inner_sums);
            row_sums(dz, inner_bias);
            let target = MatrixMut::new(dn, tokens, channels);
            multiply_here(
                Factor::transposed(weights.inner),
                Factor::of(dz),
                inner,
                target,
                Into::Overwrite,
            );
            row_sums(Matrix::new(dn, tokens, channels), shift);
            // From here on the block without gain and bias.
            unit(x, mean, inverse, normal);
            for ((gain, dn), unit) in
                gain.iter_mut().zip(dn.chunks(channels)).zip(normal.chunks(channels))
            {
                *gain = vector::dot(dn, unit);
            }
            if !dx.is_empty() {
                vector::add(dx, dy);
                normalize_chain(dx, dn, normal, weights.gain, inverse, means);
            }
        });
    }
}

/// What the gradient of a block is made of.
struct Block<'b> {
    number: usize,
    x: &'b [f32],
    dy: &'b [f32],
    kept: &'b [f32],
}

/// out = W x + b, with x and out [.., channels].
fn product_plus(weight: Matrix<'_>, bias: &[f32], x: &[f32], out: &mut [f32]) {
    let channels = x.len() / weight.cols;
    for (row, &bias) in out.chunks_mut(channels).zip(bias) {
        row.fill(bias);
    }
    let (x, out) =
        (Matrix::new(x, weight.cols, channels), MatrixMut::new(out, weight.rows, channels));
    multiply_here(Factor::of(weight), Factor::of(x), weight.cols, out, Into::Add);
}

/// out = a b^T.
fn outer_product(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    let out = MatrixMut::new(out, a.rows, b.rows);
    multiply_here(Factor::of(a), Factor::transposed(b), a.cols, out, Into::Overwrite);
}

fn row_sums(x: Matrix<'_>, out: &mut [f32]) {
    for (i, sum) in out.iter_mut().enumerate() {
        *sum = vector::sum(x.row(i));
    }
}

multiversion! {
    /// Mean and inverse deviation of each channel.
    fn statistics(x: &[f32], epsilon: f32, mean: &mut [f32], inverse: &mut [f32]) {
        let channels = mean.len();
        let share = channels as f32 / x.len() as f32;
        mean.fill(0.0);
        inverse.fill(0.0);
        for row in x.chunks_exact(channels) {
            for (mean, &x) in mean.iter_mut().zip(row) {
                *mean += x;
            }
        }
        for mean in mean.iter_mut() {
            *mean *= share;
        }
        for row in x.chunks_exact(channels) {
            for ((variance, &mean), &x) in inverse.iter_mut().zip(&*mean).zip(row) {
                *variance = (x - mean).mul_add(x - mean, *variance);
            }
        }
        for inverse in inverse {
            *inverse = 1.0 / (*inverse * share + epsilon).sqrt();
        }
    }
}

multiversion! {
    /// out = gain (x - mean) inverse + shift, gain and shift by token.
    fn normalize(x: &[f32], mean: &[f32], inverse: &[f32], gain: &[f32], shift: &[f32], out: &mut [f32]) {
        let channels = mean.len();
        let rows = out.chunks_exact_mut(channels).zip(x.chunks_exact(channels));
        for ((out, x), (&gain, &shift)) in rows.zip(gain.iter().zip(shift)) {
            for (((out, &x), &mean), &inverse) in out.iter_mut().zip(x).zip(mean).zip(inverse) {
                *out = ((x - mean) * inverse).mul_add(gain, shift);
            }
        }
    }
}

multiversion! {
    /// out = (x - mean) inverse.
    fn unit(x: &[f32], mean: &[f32], inverse: &[f32], out: &mut [f32]) {
        let channels = mean.len();
        for (out, x) in out.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
            for (((out, &x), &mean), &inverse) in out.iter_mut().zip(x).zip(mean).zip(inverse) {
                *out = (x - mean) * inverse;
            }
        }
    }
}

multiversion! {
    /// With d = gain dn: dx += (d - mean of d - u mean of d u) inverse, means over tokens; `means`
    /// is room for both.
    fn normalize_chain(dx: &mut [f32], dn: &[f32], u: &[f32], gain: &[f32], inverse: &[f32], means: &mut [f32]) {
        let channels = inverse.len();
        let share = channels as f32 / dx.len() as f32;
        means.fill(0.0);
        let (of_d, of_du) = means[..2 * channels].split_at_mut(channels);
        for ((dn, u), &gain) in dn.chunks_exact(channels).zip(u.chunks_exact(channels)).zip(gain) {
            let factor = gain * share;
            for (((of_d, of_du), &dn), &u) in of_d.iter_mut().zip(of_du.iter_mut()).zip(dn).zip(u) {
                *of_d = dn.mul_add(factor, *of_d);
                *of_du = (dn * u).mul_add(factor, *of_du);
            }
        }
        let rows = dx.chunks_exact_mut(channels).zip(dn.chunks_exact(channels)).zip(u.chunks_exact(channels));
        for (((dx, dn), u), &gain) in rows.zip(gain) {
            for c in 0..channels {
                let change = (-u[c]).mul_add(of_du[c], dn[c].mul_add(gain, -of_d[c]));
                dx[c] = inverse[c].mul_add(change, dx[c]);
            }
        }
    }
}
