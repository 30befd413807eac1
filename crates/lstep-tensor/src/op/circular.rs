//! A circular convolution along the rows of blocks, with a kernel for each column: what a filter in
//! the frequency domain comes to, for blocks so short that transforms would not pay.

use crate::backward::Backward;
use crate::kernel::vector;
use crate::matrix::MatrixMut;
use crate::parallel;
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Circular {
    x: Var,
    kernel: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// `y[t]` = sum over s of `kernel[t - s mod n]` times `x[s]`, column by column and within each
    /// block of n rows: `kernel` is [n, c], x and y are [b n, c]. Neither may have gaps.
    pub fn circular_convolution(&mut self, x: Var, kernel: Var) -> Var {
        let ((rows, columns), (length, width)) = (self.shape(x), self.shape(kernel));
        assert_eq!(columns, width, "a kernel for each column");
        assert!(length > 0 && rows.is_multiple_of(length), "{rows} rows are no blocks of {length}");
        assert!(
            self.node(x).is_dense() && self.node(kernel).is_dense(),
            "a column slice cannot be convolved: copy it first"
        );
        let out = self.emit(rows, columns);
        let (read, [result]) = self.forward([out]);
        let (x_values, kernel_values) = (read.matrix(x), read.matrix(kernel));
        let size = length * columns;
        let result = MatrixMut::new(result.data, rows / length, size);
        parallel::rows(result, 1, rows * size, |block, mut out| {
            let out = out.row(0);
            out.fill(0.0);
            let x = &x_values.data[block * size..][..size];
            add_products(kernel_values.data, x, columns, false, out);
        });
        self.record(out, &[x, kernel], || Circular { x, kernel, out }.into());
        out
    }
}

impl Circular {
    /// `dx[s]` += sum over t of `kernel[t - s]` `dy[t]`, `dkernel[j]` += sum over t of `x[t - j]`
    /// `dy[t]`, of each block by itself, then added up in order.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let Backward { read, grads, scratch, .. } = backward;
        let (x, kernel) = (read.matrix(self.x), read.matrix(self.kernel));
        let (columns, size) = (x.cols, kernel.rows * x.cols);
        let (blocks, work) = (x.rows / kernel.rows, x.rows * size);
        if grads.wants(self.kernel) {
            let sums = scratch.floats.take(blocks * size);
            let dy = grads.own(self.out);
            let dy = dy.as_ref();
            parallel::chunks(sums, size, work, |block, sums| {
                sums.fill(0.0);
                let span = block * size..(block + 1) * size;
                add_products(&x.data[span.clone()], &dy.data[span], columns, true, sums);
            });
            let mut target = grads.target(self.kernel);
            let target = target.flat().expect("a kernel is dense");
            for sums in scratch.floats.as_slice()[..blocks * size].chunks(size) {
                vector::add(target, sums);
            }
        }
        if grads.wants(self.x) {
            let (dy, dx) = grads.pair(self.out, self.x);
            let dx = MatrixMut::new(dx.data, blocks, size);
            parallel::rows(dx, 1, work, |block, mut dx| {
                let dy = &dy.data[block * size..][..size];
                add_products(kernel.data, dy, columns, true, dx.row(0));
            });
        }
    }
}

multiversion! {
    /// `out[i]` += sum over j of `a[i - j]` `b[j]`, or of `a[j - i]` `b[j]` backwards, all numbers
    /// of rows modulo their count.
    fn add_products(a: &[f32], b: &[f32], columns: usize, backwards: bool, out: &mut [f32]) {
        let rows = out.len() / columns;
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            for (j, b) in b.chunks_exact(columns).enumerate() {
                let from = if backwards { j + rows - i } else { i + rows - j } % rows;
                let a = &a[from * columns..][..columns];
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = a.mul_add(b, *out);
                }
            }
        }
    }
}
