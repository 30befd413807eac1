//! Softmax and layer normalisation of rows.

use super::ROWS;
use crate::backward::Backward;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Softmax {
    x: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// `y[i, j]` = e^`x[i, j]` / sum over k of e^`x[i, k]`: [n, c] to [n, c]. Minus infinity gives
    /// 0.
    pub fn softmax(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        let x_values = read.matrix(x);
        parallel::rows(result, ROWS, 8 * rows * cols, |first, mut part| {
            for i in 0..part.rows {
                part.row(i).copy_from_slice(x_values.row(first + i));
                vector::softmax(part.row(i));
            }
        });
        self.record(out, &[x], || Softmax { x, out }.into());
        out
    }

    /// y = gain (x - mean) / sqrt(variance + epsilon) + bias, mean and variance those of the row: x
    /// is [n, c], `gain` and `bias` are [1, c]. PyTorch's epsilon is 1e-5.
    pub fn layer_norm(&mut self, x: Var, gain: Var, bias: Var, epsilon: f32) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(self.shape(gain), (1, cols), "a gain for {cols} columns");
        assert_eq!(self.shape(bias), (1, cols), "a bias for {cols} columns");
        let out = self.emit(rows, cols);
        let statistics = self.emit(rows, 2);
        let (read, [result, kept]) = self.forward([out, statistics]);
        let x_values = read.matrix(x);
        let (gain_row, bias_row) = (read.flat(gain), read.flat(bias));
        parallel::rows_beside(result, kept, ROWS, 4 * rows * cols, |first, mut part, mut kept| {
            for i in 0..part.rows {
                let row = x_values.row(first + i);
                let mean = vector::sum(row) / cols as f32;
                let variance = vector::sum_of_squares(row, mean) / cols as f32;
                let inverse = 1.0 / (variance + epsilon).sqrt();
                kept.row(i).copy_from_slice(&[mean, inverse]);
                normalize(part.row(i), row, gain_row, bias_row, mean, inverse);
            }
        });
        self.record(out, &[x, gain, bias], || LayerNorm { x, gain, bias, statistics, out }.into());
        out
    }
}

multiversion! {
    fn normalize(out: &mut [f32], x: &[f32], gain: &[f32], bias: &[f32], mean: f32, inverse: f32) {
        for (((y, &x), &gain), &bias) in out.iter_mut().zip(x).zip(gain).zip(bias) {
            *y = ((x - mean) * inverse).mul_add(gain, bias);
        }
    }
}

impl Softmax {
    /// `dx[i, j]` += `y[i, j]` (`dy[i, j]` - <`dy[i]`, `y[i]`>).
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let y = backward.read.matrix(self.out);
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        parallel::rows(dx, ROWS, 3 * y.rows * y.cols, |first, mut dx| {
            for i in 0..dx.rows {
                softmax_chain(dx.row(i), dy.row(first + i), y.row(first + i), 1.0);
            }
        });
    }
}

multiversion! {
    /// `dx[j]` += factor `y[j]` (`dy[j]` - <dy, y>).
    pub(crate) fn softmax_chain(dx: &mut [f32], dy: &[f32], y: &[f32], factor: f32) {
        let mean = vector::reduce2(dy, y, |dy, y, sum| dy.mul_add(y, sum));
        for ((dx, &dy), &y) in dx.iter_mut().zip(dy).zip(y) {
            *dx = (factor * y).mul_add(dy - mean, *dx);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct LayerNorm {
    x: Var,
    gain: Var,
    bias: Var,
    /// Mean and inverse deviation of each row.
    statistics: Var,
    pub out: Var,
}

/// Rows merged into one partial sum of the gain's and bias's gradients.
const BLOCK: usize = 256;

impl LayerNorm {
    /// With n = (x - mean) / deviation and d = gain dy:
    /// dx += (d - mean(d) - n mean(d n)) / deviation, dgain += sum of dy n, dbias += sum of dy.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let (x, kept, gain) =
            (read.matrix(self.x), read.matrix(self.statistics), read.flat(self.gain));
        let cols = x.cols;
        if cols == 0 {
            return;
        }
        if backward.grads.wants(self.gain) || backward.grads.wants(self.bias) {
            let dy = backward.grads.own(self.out);
            let dy = dy.as_ref();
            let partial = backward.scratch.floats.take(x.rows.div_ceil(BLOCK) * 2 * cols);
            parallel::chunks(partial, 2 * cols, 3 * x.rows * cols, |block, sums| {
                sums.fill(0.0);
                let (gain, bias) = sums.split_at_mut(cols);
                for i in block * BLOCK..((block + 1) * BLOCK).min(x.rows) {
                    add_gain_and_bias(
                        gain,
                        bias,
                        dy.row(i),
                        x.row(i),
                        kept.row(i)[0],
                        kept.row(i)[1],
                    );
                }
            });
            for (var, from) in [(self.gain, 0), (self.bias, cols)] {
                if backward.grads.wants(var) {
                    let mut target = backward.grads.target(var);
                    let partial =
                        &backward.scratch.floats.as_slice()[..x.rows.div_ceil(BLOCK) * 2 * cols];
                    for sums in partial.chunks(2 * cols) {
                        vector::add(target.row(0), &sums[from..from + cols]);
                    }
                }
            }
        }
        if backward.grads.wants(self.x) {
            let (dy, dx) = backward.grads.pair(self.out, self.x);
            parallel::rows(dx, ROWS, 6 * x.rows * cols, |first, mut dx| {
                for i in 0..dx.rows {
                    let [mean, inverse] = kept.row(first + i) else {
                        unreachable!("two statistics")
                    };
                    normalize_chain(
                        dx.row(i),
                        dy.row(first + i),
                        x.row(first + i),
                        gain,
                        *mean,
                        *inverse,
                    );
                }
            });
        }
    }
}

multiversion! {
    fn add_gain_and_bias(dgain: &mut [f32], dbias: &mut [f32], dy: &[f32], x: &[f32], mean: f32, inverse: f32) {
        for (((dgain, dbias), &dy), &x) in dgain.iter_mut().zip(dbias).zip(dy).zip(x) {
            *dgain = dy.mul_add((x - mean) * inverse, *dgain);
            *dbias += dy;
        }
    }
}

multiversion! {
    fn normalize_chain(dx: &mut [f32], dy: &[f32], x: &[f32], gain: &[f32], mean: f32, inverse: f32) {
        let n = dx.len() as f32;
        let mean_d = vector::reduce2(dy, gain, |dy, gain, sum| dy.mul_add(gain, sum)) / n;
        // In blocks of a vector: with a lane found by division the compiler keeps to single
        // numbers.
        let mut lanes = [0.0_f32; vector::LANES];
        let add = |lane: &mut f32, dy: f32, gain: f32, x: f32| {
            *lane = (dy * gain).mul_add((x - mean) * inverse, *lane);
        };
        let (dy_blocks, dy_rest) = dy.as_chunks::<{ vector::LANES }>();
        let (gain_blocks, gain_rest) = gain.as_chunks::<{ vector::LANES }>();
        let (x_blocks, x_rest) = x.as_chunks::<{ vector::LANES }>();
        for ((dy, gain), x) in dy_blocks.iter().zip(gain_blocks).zip(x_blocks) {
            for i in 0..vector::LANES {
                add(&mut lanes[i], dy[i], gain[i], x[i]);
            }
        }
        for (((lane, &dy), &gain), &x) in lanes.iter_mut().zip(dy_rest).zip(gain_rest).zip(x_rest) {
            add(lane, dy, gain, x);
        }
        let mean_dn = lanes.iter().sum::<f32>() / n;
        for (((dx, &dy), &x), &gain) in dx.iter_mut().zip(dy).zip(x).zip(gain) {
            let normal = (x - mean) * inverse;
            *dx = inverse.mul_add((-normal).mul_add(mean_dn, dy.mul_add(gain, -mean_d)), *dx);
        }
    }
}
