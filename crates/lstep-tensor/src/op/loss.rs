//! Cross-entropies of logits: of labels, and of rows of which the first is true.

use crate::backward::Backward;
use crate::kernel::math;
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct CrossEntropy {
    logits: Var,
    labels: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// mean over i of log(1 + e^z_i) - y_i z_i, the cross-entropy of sigmoid(z) and labels y in [0,
    /// 1]: both [n, c] to [1, 1]. It never overflows: the logarithm is max(z, 0) + log(1 + e^-|z|),
    /// summed in `f64`.
    pub fn cross_entropy(&mut self, logits: Var, labels: Var) -> Var {
        let (rows, cols) = self.shape(logits);
        assert_eq!(self.shape(labels), (rows, cols), "a label for every logit");
        let out = self.emit(1, 1);
        let (read, [mut result]) = self.forward([out]);
        let (z, y) = (read.matrix(logits), read.matrix(labels));
        let mut total = 0.0;
        for i in 0..rows {
            for (&z, &y) in z.row(i).iter().zip(y.row(i)) {
                total += math::softplus(f64::from(z)) - f64::from(y) * f64::from(z);
            }
        }
        result.row(0)[0] = (total / (rows * cols) as f64) as f32;
        self.record(out, &[logits], || CrossEntropy { logits, labels, out }.into());
        out
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SoftmaxCrossEntropy {
    logits: Var,
    each: usize,
    pub out: Var,
}

impl Tape<'_> {
    /// The mean over groups of `each` rows of log sum e^z - z_0: the cross-entropy of the softmax
    /// of a group and its first row, [n, 1] to [1, 1]. It never overflows, and is summed in `f64`.
    pub fn softmax_cross_entropy(&mut self, logits: Var, each: usize) -> Var {
        let (rows, cols) = self.shape(logits);
        assert!(cols == 1 && each > 0 && rows % each == 0, "whole groups of one logit a row");
        let out = self.emit(1, 1);
        let (read, [mut result]) = self.forward([out]);
        let z = read.matrix(logits);
        let mut total = 0.0;
        for first in (0..rows).step_by(each) {
            let (largest, sum) = log_sum(first..first + each, |row| z.row(row)[0]);
            total += sum.ln() + f64::from(largest) - f64::from(z.row(first)[0]);
        }
        result.row(0)[0] = (total / (rows / each).max(1) as f64) as f32;
        self.record(out, &[logits], || SoftmaxCrossEntropy { logits, each, out }.into());
        out
    }
}

/// The largest of some logits, and the sum of e^(z - largest).
fn log_sum(rows: std::ops::Range<usize>, z: impl Fn(usize) -> f32) -> (f32, f64) {
    let largest = rows.clone().map(&z).fold(f32::NEG_INFINITY, f32::max);
    (largest, rows.map(|row| f64::from(math::exponential(z(row) - largest))).sum())
}

impl SoftmaxCrossEntropy {
    /// dz_i += dy (softmax(z)_i - [i is the first of its group]) / groups.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let z = backward.read.matrix(self.logits);
        let (dy, mut dz) = backward.grads.pair(self.out, self.logits);
        let factor = f64::from(dy.row(0)[0]) / (z.rows / self.each).max(1) as f64;
        for first in (0..z.rows).step_by(self.each) {
            let group = first..first + self.each;
            let (largest, sum) = log_sum(group.clone(), |row| z.row(row)[0]);
            for row in group {
                let share = f64::from(math::exponential(z.row(row)[0] - largest)) / sum;
                let label = if row == first { 1.0 } else { 0.0 };
                dz.row(row)[0] += (factor * (share - label)) as f32;
            }
        }
    }
}

impl CrossEntropy {
    /// dz_i += dy (sigmoid(z_i) - y_i) / n. Labels are constants.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (z, y) = (backward.read.matrix(self.logits), backward.read.matrix(self.labels));
        let (dy, mut dz) = backward.grads.pair(self.out, self.logits);
        let factor = dy.row(0)[0] / (z.rows * z.cols) as f32;
        for i in 0..z.rows {
            for ((dz, &z), &y) in dz.row(i).iter_mut().zip(z.row(i)).zip(y.row(i)) {
                *dz += factor * (math::logistic(z) - y);
            }
        }
    }
}
