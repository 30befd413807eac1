//! Matrix products: the fused linear layer and the plain product.

use super::dropout::{Mask, apply_mask, apply_mask_to_both};
use super::{ROWS, add_column_sums, map};
use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::gemm::{Factor, Finish, Into, multiply_and_finish, multiply_as};
use crate::kernel::vector;
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Tape, Var};

/// What a layer does to its product while that is in cache: y = dropout(f(x W^T + b)) + add.
#[derive(Clone, Copy, Debug)]
pub struct Then {
    /// f.
    pub activation: Activation,
    /// The rate of the dropout, in [0, 1); as [`Tape::dropout`], it is nothing outside training.
    pub dropout: f32,
    /// A matrix of the shape of y.
    pub add: Option<Var>,
}

#[derive(Clone, Copy)]
pub(crate) struct Linear {
    x: Var,
    weight: Var,
    bias: Option<Var>,
    activation: Activation,
    mask: Option<Mask>,
    add: Option<Var>,
    /// f' times the mask, where it cannot be had from the result.
    slopes: Option<Var>,
    pub out: Var,
}

impl Tape<'_> {
    /// y = f(x W^T + b): x is [n, in], `weight` W is [out, in], `bias` b is [1, out], y is [n,
    /// out].
    ///
    /// Row i of y depends on row i of x alone, bit for bit.
    pub fn linear(
        &mut self,
        x: Var,
        weight: Var,
        bias: Option<Var>,
        activation: Activation,
    ) -> Var {
        self.layer(x, weight, bias, Then { activation, dropout: 0.0, add: None })
    }

    /// [`Tape::linear`], written into `out` [n, out], which may be the [`columns`](Tape::columns)
    /// of a wider matrix.
    pub fn linear_into(
        &mut self,
        out: Var,
        x: Var,
        weight: Var,
        bias: Option<Var>,
        activation: Activation,
    ) {
        self.layer_into(out, x, weight, bias, Then { activation, dropout: 0.0, add: None });
    }

    /// [`Tape::linear`], [`Tape::dropout`] and [`Tape::add`] in one pass, with the bits of one
    /// after the other.
    pub fn layer(&mut self, x: Var, weight: Var, bias: Option<Var>, then: Then) -> Var {
        let out = self.emit(self.shape(x).0, self.shape(weight).0);
        self.layer_into(out, x, weight, bias, then);
        out
    }

    fn layer_into(&mut self, out: Var, x: Var, weight: Var, bias: Option<Var>, then: Then) {
        let Then { activation, dropout, add } = then;
        let ((rows, inputs), (outputs, expected)) = (self.shape(x), self.shape(weight));
        assert_eq!(inputs, expected, "a layer of {expected} inputs was given {inputs} columns");
        assert_eq!(
            self.shape(out),
            (rows, outputs),
            "a layer of {outputs} outputs for {rows} rows"
        );
        if let Some(bias) = bias {
            assert_eq!(self.shape(bias), (1, outputs), "a bias for {outputs} outputs");
        }
        if let Some(add) = add {
            assert_eq!(self.shape(add), (rows, outputs), "a number to add for each of the results");
        }
        let (mask, products) = (self.mask(dropout), self.products);
        let changed = activation != Activation::Identity && (mask.is_some() || add.is_some());
        let keep = self.is_training() && (activation.slope_needs_argument() || changed);
        let slopes = self.emit(rows, if keep { outputs } else { 0 });
        let (read, [product, beside]) = self.forward([out, slopes]);
        let (bias_row, added) = (bias.map(|bias| read.flat(bias)), add.map(|add| read.matrix(add)));
        let finish = |i: usize, row: &mut [f32], slopes: &mut [f32]| {
            if let Some(bias) = bias_row {
                vector::add(row, bias);
            }
            let place = (i * outputs) as u32;
            if keep {
                activation.apply_with_slopes(row, slopes);
                if let Some(mask) = mask {
                    apply_mask_to_both(row, slopes, mask, place);
                }
            } else {
                activation.apply(row);
                if let Some(mask) = mask {
                    apply_mask(row, mask, place);
                }
            }
            if let Some(added) = added {
                vector::add(row, added.row(i));
            }
        };
        let (a, b) = (Factor::of(read.matrix(x)), Factor::transposed(read.matrix(weight)));
        multiply_and_finish(products, a, b, inputs, product, Finish { beside, run: &finish });
        let slopes = keep.then_some(slopes);
        let inputs = [x, weight, bias.unwrap_or(weight), add.unwrap_or(weight)];
        self.record(out, &inputs, || {
            Linear { x, weight, bias, activation, mask, add, slopes, out }.into()
        });
    }

    /// C = A B: A is [m, k], B is [k, n], C is [m, n].
    pub fn matmul(&mut self, a: Var, b: Var) -> Var {
        let ((rows, depth), (expected, cols)) = (self.shape(a), self.shape(b));
        assert_eq!(depth, expected, "{rows} x {depth} times {expected} x {cols}");
        let (out, products) = (self.emit(rows, cols), self.products);
        let (read, [c]) = self.forward([out]);
        multiply_as(
            products,
            Factor::of(read.matrix(a)),
            Factor::of(read.matrix(b)),
            depth,
            c,
            Into::Overwrite,
        );
        self.record(out, &[a, b], || Matmul { a, b, out }.into());
        out
    }
}

impl Linear {
    /// With m the mask and dz = dy m f'(.): dadd += dy, dx += dz W, dW += dz^T x, db += column sums
    /// of dz.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (read, products) = (backward.read, backward.products);
        let grads = &mut backward.grads;
        if let Some(add) = self.add.filter(|&add| grads.wants(add)) {
            let (dy, da, fresh) = grads.pair_or_fresh(self.out, add);
            map(
                da,
                [dy],
                1,
                |da, [dy]| if fresh { da.copy_from_slice(dy) } else { vector::add(da, dy) },
            );
        }
        // In place: nobody reads the gradient of this result again.
        let own = grads.own(self.out);
        if let Some(slopes) = self.slopes {
            map(own, [read.matrix(slopes)], 1, |g, [slopes]| vector::multiply(g, slopes));
        } else if let Some(mask) = self.mask {
            let (work, cols) = (8 * own.rows * own.cols, own.cols);
            parallel::rows(own, ROWS, work, |first, mut part| {
                (0..part.rows)
                    .for_each(|i| apply_mask(part.row(i), mask, ((first + i) * cols) as u32));
            });
        } else if self.activation != Activation::Identity {
            map(own, [read.matrix(self.out)], 4, |g, [y]| self.activation.chain(y, g));
        }
        if let Some(bias) = self.bias.filter(|&bias| grads.wants(bias)) {
            let (dz, mut db) = grads.pair(self.out, bias);
            add_column_sums(dz, db.row(0), backward.scratch);
        }
        let of_weight = |dz: Matrix<'_>, dw: MatrixMut<'_>| {
            let (a, b) = (Factor::transposed(dz), Factor::of(read.matrix(self.x)));
            multiply_as(products, a, b, dz.rows, dw, Into::Add);
        };
        let of_x = |dz: Matrix<'_>, dx: MatrixMut<'_>, fresh: bool| {
            let into = if fresh { Into::Overwrite } else { Into::Add };
            multiply_as(
                products,
                Factor::of(dz),
                Factor::of(read.matrix(self.weight)),
                dz.cols,
                dx,
                into,
            );
        };
        let (weight, x) = (grads.wants(self.weight), grads.wants(self.x));
        if weight && x && grads.is_parameter(self.weight) && !grads.is_parameter(self.x) {
            let (dz, [dw, dx], fresh) = grads.several_or_fresh(self.out, [self.weight, self.x]);
            parallel::join(|| of_weight(dz, dw), || of_x(dz, dx, fresh));
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
        let (read, products) = (backward.read, backward.products);
        let grads = &mut backward.grads;
        if grads.wants(self.a) {
            let (dc, da) = grads.pair(self.out, self.a);
            multiply_as(
                products,
                Factor::of(dc),
                Factor::transposed(read.matrix(self.b)),
                dc.cols,
                da,
                Into::Add,
            );
        }
        if grads.wants(self.b) {
            let (dc, db) = grads.pair(self.out, self.b);
            multiply_as(
                products,
                Factor::transposed(read.matrix(self.a)),
                Factor::of(dc),
                dc.rows,
                db,
                Into::Add,
            );
        }
    }
}
