//! The binary cross-entropy of logits.

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
