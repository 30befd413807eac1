//! Concatenation and transposition. Slices and reshapes are views and need no operation.

use super::map;
use crate::backward::Backward;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// out = x; `out` may be columns or rows of a wider matrix.
    pub fn copy_into(&mut self, out: Var, x: Var) {
        let (read, [result]) = self.forward([out]);
        map(result, [read.matrix(x)], 1, |out, [x]| out.copy_from_slice(x));
        self.record(out, &[x], || Copy { x, out }.into());
    }

    /// [a | b | ..]: parts [n, c_k] side by side, [n, sum of c_k]. Results that can be written in
    /// place with an `.._into` operation need no copy.
    pub fn concat_columns(&mut self, parts: &[Var]) -> Var {
        let rows = parts.first().map_or(0, |&part| self.shape(part).0);
        let cols = parts.iter().map(|&part| self.shape(part).1).sum();
        let out = self.emit(rows, cols);
        let mut from = 0;
        for &part in parts {
            let width = self.shape(part).1;
            let view = self.columns(out, from..from + width);
            self.copy_into(view, part);
            from += width;
        }
        out
    }

    /// Parts [n_k, c] below each other, [sum of n_k, c].
    pub fn concat_rows(&mut self, parts: &[Var]) -> Var {
        let rows = parts.iter().map(|&part| self.shape(part).0).sum();
        let cols = parts.first().map_or(0, |&part| self.shape(part).1);
        let out = self.emit(rows, cols);
        let mut from = 0;
        for &part in parts {
            let height = self.shape(part).0;
            let view = self.rows(out, from..from + height);
            self.copy_into(view, part);
            from += height;
        }
        out
    }

    /// Transposes blocks: x is [b t, c], the result [b c, t] with `y[i c + j, k]` = `x[i t + k,
    /// j]`. A [`Tape::linear`] on the result mixes over the t rows (tokens) of each block.
    pub fn transpose_blocks(&mut self, x: Var, block_rows: usize) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(
            block_rows > 0 && rows % block_rows == 0,
            "{rows} rows are no blocks of {block_rows}"
        );
        let out = self.emit(rows / block_rows * cols, block_rows);
        let (read, [result]) = self.forward([out]);
        let x_values = read.matrix(x);
        parallel::rows(result, cols.max(1), 2 * rows * cols, |first, mut part| {
            let from = first / cols * block_rows;
            for j in 0..part.rows {
                for (k, y) in part.row(j).iter_mut().enumerate() {
                    *y = x_values.data[(from + k) * x_values.stride + j];
                }
            }
        });
        self.record(out, &[x], || Transpose { x, block_rows, out }.into());
        out
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Copy {
    x: Var,
    pub out: Var,
}

impl Copy {
    /// dx += dy.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, dx, fresh) = backward.grads.pair_or_fresh(self.out, self.x);
        map(
            dx,
            [dy],
            1,
            |dx, [dy]| if fresh { dx.copy_from_slice(dy) } else { vector::add(dx, dy) },
        );
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Transpose {
    x: Var,
    block_rows: usize,
    pub out: Var,
}

impl Transpose {
    /// `dx[i t + k, j]` += `dy[i c + j, k]`.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        let cols = dx.cols;
        let work = 2 * dx.rows * cols;
        parallel::rows(dx, self.block_rows, work, |first, mut dx| {
            let from = first / self.block_rows * cols;
            for k in 0..dx.rows {
                for (j, dx) in dx.row(k).iter_mut().enumerate() {
                    *dx += dy.data[(from + j) * dy.stride + k];
                }
            }
        });
    }
}
