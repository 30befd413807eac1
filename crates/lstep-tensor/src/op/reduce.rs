//! Sums over everything or over rows, and distances between rows.

use super::map;
use crate::backward::Backward;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Sum {
    x: Var,
    factor: f32,
    pub out: Var,
}

impl Tape<'_> {
    /// The sum of all elements: [n, c] to [1, 1]. Rows are summed in `f32`, their sums in `f64`, in
    /// order.
    pub fn sum(&mut self, x: Var) -> Var {
        self.scaled_sum(x, 1.0)
    }

    /// The mean of all elements: [n, c] to [1, 1].
    pub fn mean(&mut self, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        self.scaled_sum(x, 1.0 / (rows * cols) as f32)
    }

    fn scaled_sum(&mut self, x: Var, factor: f32) -> Var {
        let out = self.emit(1, 1);
        let (read, [mut result]) = self.forward([out]);
        let x_values = read.matrix(x);
        let total: f64 = (0..x_values.rows).map(|i| f64::from(vector::sum(x_values.row(i)))).sum();
        result.row(0)[0] = (total * f64::from(factor)) as f32;
        self.record(out, &[x], || Sum { x, factor, out }.into());
        out
    }

    /// `y[i]` = sum over j of `x[i, j]`: [n, c] to [n, 1].
    pub fn row_sum(&mut self, x: Var) -> Var {
        let rows = self.shape(x).0;
        let out = self.emit(rows, 1);
        let (read, [mut result]) = self.forward([out]);
        let x_values = read.matrix(x);
        for i in 0..rows {
            result.row(i)[0] = vector::sum(x_values.row(i));
        }
        self.record(out, &[x], || RowSum { x, out }.into());
        out
    }

    /// `y[i]` = ||`a[i]` - `b[i]`||_2: two [n, c] to [n, 1]. Where the rows are equal the gradient
    /// is 0.
    pub fn row_distance(&mut self, a: Var, b: Var) -> Var {
        let rows = self.shape(a).0;
        assert_eq!(self.shape(a), self.shape(b), "distances between rows of the same shape");
        let out = self.emit(rows, 1);
        let (read, [mut result]) = self.forward([out]);
        let (a_values, b_values) = (read.matrix(a), read.matrix(b));
        for i in 0..rows {
            result.row(i)[0] = vector::squared_distance(a_values.row(i), b_values.row(i)).sqrt();
        }
        self.record(out, &[a, b], || RowDistance { a, b, out }.into());
        out
    }
}

impl Sum {
    /// `dx[i, j]` += factor dy.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        let step = self.factor * dy.row(0)[0];
        map(dx, [], 1, |dx, []| dx.iter_mut().for_each(|dx| *dx += step));
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RowSum {
    x: Var,
    pub out: Var,
}

impl RowSum {
    /// `dx[i, j]` += `dy[i]`.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, mut dx) = backward.grads.pair(self.out, self.x);
        for i in 0..dy.rows {
            let step = dy.row(i)[0];
            dx.row(i).iter_mut().for_each(|dx| *dx += step);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RowDistance {
    a: Var,
    b: Var,
    pub out: Var,
}

impl RowDistance {
    /// `da[i]` += `dy[i]` (`a[i]` - `b[i]`) / `y[i]`, `db[i]` -= the same; 0 if `y[i]` = 0.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let distance = read.matrix(self.out);
        for (x, other) in [(self.a, self.b), (self.b, self.a)] {
            if !backward.grads.wants(x) {
                continue;
            }
            let (dy, dx) = backward.grads.pair(self.out, x);
            let (x, other) = (read.matrix(x), read.matrix(other));
            parallel::rows(dx, super::ROWS, 2 * x.rows * x.cols, |first, mut dx| {
                for i in 0..dx.rows {
                    let length = distance.row(first + i)[0];
                    if length > 0.0 {
                        let factor = dy.row(first + i)[0] / length;
                        vector::add_scaled(dx.row(i), x.row(first + i), factor);
                        vector::add_scaled(dx.row(i), other.row(first + i), -factor);
                    }
                }
            });
        }
    }
}
