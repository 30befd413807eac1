//! Matrix products: the fused linear layer and the plain product.

use super::{add_column_sums, map};
use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::gemm::{Factor, Into, multiply};
use crate::kernel::vector;
use crate::matrix::{Matrix, MatrixMut};
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Linear {
    x: Var,
    weight: Var,
    bias: Option<Var>,
    activation: Activation,
    /// What the slope is computed from: the result, or the argument kept beside it.
    known: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// y = f(x W^T + b): x is [n, in], `weight` W is [out, in], `bias` b is [1, out], y is [n, out].
    ///
    /// Row i of y depends on row i of x alone, bit for bit.
    pub fn linear(&mut self, x: Var, weight: Var, bias: Option<Var>, activation: Activation) -> Var {
        let out = self.emit(self.shape(x).0, self.shape(weight).0);
        self.linear_into(out, x, weight, bias, activation);
        out
    }

    /// [`Tape::linear`], written into `out` [n, out], which may be the [`columns`](Tape::columns) of a wider matrix.
    pub fn linear_into(&mut self, out: Var, x: Var, weight: Var, bias: Option<Var>, activation: Activation) {
        let ((rows, inputs), (outputs, expected)) = (self.shape(x), self.shape(weight));
        assert_eq!(inputs, expected, "a layer of {expected} inputs was given {inputs} columns");
        assert_eq!(self.shape(out), (rows, outputs), "a layer of {outputs} outputs for {rows} rows");
        if let Some(bias) = bias {
            assert_eq!(self.shape(bias), (1, outputs), "a bias for {outputs} outputs");
        }
        let keep = activation.slope_needs_argument() && self.is_training();
        let known = if keep { self.emit(rows, outputs) } else { out };
        let (read, [product]) = self.forward([known]);
        let bias_row = bias.map(|bias| read.flat(bias));
        let finish = |row: &mut [f32]| {
            if let Some(bias) = bias_row {
                vector::add(row, bias);
            }
            if !keep {
                activation.apply(row);
            }
        };
        let (a, b) = (Factor::of(read.matrix(x)), Factor::transposed(read.matrix(weight)));
        multiply(a, b, inputs, product, Into::Overwrite, Some(&finish));
        if keep {
            self.apply_into(out, known, activation);
        }
        let inputs = [x, weight, bias.unwrap_or(weight)];
        self.record(out, &inputs, || Linear { x, weight, bias, activation, known, out }.into());
    }

    /// C = A B: A is [m, k], B is [k, n], C is [m, n].
    pub fn matmul(&mut self, a: Var, b: Var) -> Var {
        let ((rows, depth), (expected, cols)) = (self.shape(a), self.shape(b));
        assert_eq!(depth, expected, "{rows} x {depth} times {expected} x {cols}");
        let out = self.emit(rows, cols);
        let (read, [c]) = self.forward([out]);
        multiply(Factor::of(read.matrix(a)), Factor::of(read.matrix(b)), depth, c, Into::Overwrite, None);
        self.record(out, &[a, b], || Matmul { a, b, out }.into());
        out
    }
}

impl Linear {
    /// With dz = dy f'(.): dx += dz W, dW += dz^T x, db += column sums of dz.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let grads = &mut backward.grads;
        if self.activation != Activation::Identity {
            // In place: nobody reads the gradient of this result again.
            map(grads.own(self.out), [read.matrix(self.known)], 4, |g, [known]| self.activation.chain(known, g));
        }
        if let Some(bias) = self.bias.filter(|&bias| grads.wants(bias)) {
            let (dz, mut db) = grads.pair(self.out, bias);
            add_column_sums(dz, db.row(0), backward.scratch);
        }
        let of_weight = |dz: Matrix<'_>, dw: MatrixMut<'_>| {
            let (a, b) = (Factor::transposed(dz), Factor::of(read.matrix(self.x)));
            multiply(a, b, dz.rows, dw, Into::Add, None);
        };
        let of_x = |dz: Matrix<'_>, dx: MatrixMut<'_>, fresh: bool| {
            let into = if fresh { Into::Overwrite } else { Into::Add };
            multiply(Factor::of(dz), Factor::of(read.matrix(self.weight)), dz.cols, dx, into, None);
        };
        let (weight, x) = (grads.wants(self.weight), grads.wants(self.x));
        if weight && x && grads.is_parameter(self.weight) && !grads.is_parameter(self.x) {
            let (dz, [dw, dx], fresh) = grads.several_or_fresh(self.out, [self.weight, self.x]);
            rayon::join(|| of_weight(dz, dw), || of_x(dz, dx, fresh));
            return;
        }
        if weight {
            let (dz, dw) = grads.pair(self.out, self.weight);
            of_weight(dz, dw);
        }
        if x {
            let (dz, dx, fresh) = grads.pair_or_fresh(self.out, self.x);
            of_x(dz, dx, fresh);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Matmul {
    a: Var,
    b: Var,
    pub out: Var,
}

impl Matmul {
    /// dA += dC B^T, dB += A^T dC.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let grads = &mut backward.grads;
        if grads.wants(self.a) {
            let (dc, da) = grads.pair(self.out, self.a);
            multiply(Factor::of(dc), Factor::transposed(read.matrix(self.b)), dc.cols, da, Into::Add, None);
        }
        if grads.wants(self.b) {
            let (dc, db) = grads.pair(self.out, self.b);
            multiply(Factor::transposed(read.matrix(self.a)), Factor::of(dc), dc.rows, db, Into::Add, None);
        }
    }
}
