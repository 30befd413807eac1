//! Operations on single elements, with a row vector or with a column vector.

use super::{add_column_sums, map};
use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Unary {
    x: Var,
    f: Activation,
    pub out: Var,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $f:ident;)*) => {
        impl Tape<'_> {
            $($(#[$doc])*
            pub fn $name(&mut self, x: Var) -> Var {
                self.apply(x, Activation::$f)
            })*
        }
    };
}

unary! {
    /// max(x, 0), element by element.
    relu = Relu;
    /// tanh(x), element by element.
    tanh = Tanh;
    /// 1 / (1 + e^-x), element by element.
    sigmoid = Sigmoid;
    /// x Phi(x), element by element, with the exact normal distribution function.
    gelu = Gelu;
    /// cos(x), element by element; the argument is reduced in `f64`.
    cos = Cos;
    /// e^x, element by element.
    exp = Exp;
    /// x^2, element by element.
    square = Square;
}

impl Tape<'_> {
    /// f(x), element by element: [n, c] to [n, c].
    pub fn apply(&mut self, x: Var, f: Activation) -> Var {
        let (rows, cols) = self.shape(x);
        let out = self.emit(rows, cols);
        self.apply_into(out, x, f);
        self.record(out, &[x], || Unary { x, f, out }.into());
        out
    }

    /// out = f(x), not recorded.
    pub(crate) fn apply_into(&mut self, out: Var, x: Var, f: Activation) {
        let (read, [result]) = self.forward([out]);
        map(result, [read.matrix(x)], 8, |out, [x]| {
            out.copy_from_slice(x);
            f.apply(out);
        });
    }

    /// a + b, both [n, c].
    pub fn add(&mut self, a: Var, b: Var) -> Var {
        self.binary(a, b, Kind::Add)
    }

    /// a - b, both [n, c].
    pub fn sub(&mut self, a: Var, b: Var) -> Var {
        self.binary(a, b, Kind::Sub)
    }

    /// a b element by element, both [n, c].
    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        self.binary(a, b, Kind::Mul)
    }

    fn binary(&mut self, a: Var, b: Var, kind: Kind) -> Var {
        let (rows, cols) = self.shape(a);
        assert_eq!((rows, cols), self.shape(b), "operands of different shape");
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        map(result, [read.matrix(a), read.matrix(b)], 1, |out, [a, b]| match kind {
            Kind::Add => vector::sum_of_two(out, a, b),
            Kind::Sub => {
                out.copy_from_slice(a);
                vector::add_scaled(out, b, -1.0);
            }
            Kind::Mul => vector::product(out, a, b),
        });
        self.record(out, &[a, b], || Binary { a, b, kind, out }.into());
        out
    }

    /// factor x, [n, c].
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        let (rows, cols) = self.shape(x);
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        map(result, [read.matrix(x)], 1, |out, [x]| {
            out.copy_from_slice(x);
            vector::scale(out, factor);
        });
        self.record(out, &[x], || Scale { x, factor, out }.into());
        out
    }

    /// `y[i, j]` = `x[i, j]` + `row[j]`: x is [n, c], `row` is [1, c].
    pub fn add_row(&mut self, x: Var, row: Var) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(self.shape(row), (1, cols), "a row for {cols} columns");
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        let (x_values, row_values) = (read.matrix(x), read.matrix(row));
        parallel::rows(result, super::ROWS, rows * cols, |first, mut part| {
            for i in 0..part.rows {
                part.row(i).copy_from_slice(x_values.row(first + i));
                vector::add(part.row(i), row_values.row(0));
            }
        });
        self.record(out, &[x, row], || AddRow { x, row, out }.into());
        out
    }

    /// `y[i, j]` = `column[i]` `x[i, j]`: x is [n, c], `column` is [n, 1]. With zeros and ones it
    /// masks rows.
    pub fn scale_rows(&mut self, x: Var, column: Var) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(self.shape(column), (rows, 1), "a factor for each of {rows} rows");
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        let (x_values, factors) = (read.matrix(x), read.matrix(column));
        parallel::rows(result, super::ROWS, rows * cols, |first, mut part| {
            for i in 0..part.rows {
                part.row(i).copy_from_slice(x_values.row(first + i));
                vector::scale(part.row(i), factors.row(first + i)[0]);
            }
        });
        self.record(out, &[x, column], || ScaleRows { x, column, out }.into());
        out
    }
}

impl Unary {
    /// dx += dy f'(x).
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let known = if self.f.slope_needs_argument() { self.x } else { self.out };
        let known = backward.read.matrix(known);
        map(backward.grads.own(self.out), [known], 4, |g, [known]| self.f.chain(known, g));
        let (dy, dx, fresh) = backward.grads.pair_or_fresh(self.out, self.x);
        map(
            dx,
            [dy],
            1,
            |dx, [dy]| if fresh { dx.copy_from_slice(dy) } else { vector::add(dx, dy) },
        );
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Add,
    Sub,
    Mul,
}

#[derive(Clone, Copy)]
pub(crate) struct Binary {
    a: Var,
    b: Var,
    kind: Kind,
    pub out: Var,
}

impl Binary {
    /// Sum: da += dy, db += dy (or -= dy). Product: da += dy b, db += dy a.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        for (x, other, sign) in [
            (self.a, self.b, 1.0),
            (self.b, self.a, if self.kind == Kind::Sub { -1.0 } else { 1.0 }),
        ] {
            if !backward.grads.wants(x) {
                continue;
            }
            let (dy, dx, fresh) = backward.grads.pair_or_fresh(self.out, x);
            if self.kind == Kind::Mul {
                let other = backward.read.matrix(other);
                map(dx, [dy, other], 1, |dx, [dy, other]| {
                    if fresh {
                        vector::product(dx, dy, other);
                    } else {
                        vector::add_product(dx, dy, other);
                    }
                });
            } else {
                map(dx, [dy], 1, |dx, [dy]| {
                    if fresh {
                        vector::scaled(dx, dy, sign);
                    } else {
                        vector::add_scaled(dx, dy, sign);
                    }
                });
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Scale {
    x: Var,
    factor: f32,
    pub out: Var,
}

impl Scale {
    /// dx += factor dy.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        map(dx, [dy], 1, |dx, [dy]| vector::add_scaled(dx, dy, self.factor));
    }
}

#[derive(Clone, Copy)]
pub(crate) struct AddRow {
    x: Var,
    row: Var,
    pub out: Var,
}

impl AddRow {
    /// dx += dy, drow += column sums of dy.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        if backward.grads.wants(self.x) {
            let (dy, dx) = backward.grads.pair(self.out, self.x);
            map(dx, [dy], 1, |dx, [dy]| vector::add(dx, dy));
        }
        if backward.grads.wants(self.row) {
            let (dy, mut drow) = backward.grads.pair(self.out, self.row);
            add_column_sums(dy, drow.row(0), backward.scratch);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct ScaleRows {
    x: Var,
    column: Var,
    pub out: Var,
}

impl ScaleRows {
    /// `dx[i]` += `column[i]` `dy[i]`, `dcolumn[i]` += <`dy[i]`, `x[i]`>.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (x, column) = (backward.read.matrix(self.x), backward.read.matrix(self.column));
        if backward.grads.wants(self.x) {
            let (dy, dx) = backward.grads.pair(self.out, self.x);
            parallel::rows(dx, super::ROWS, dy.rows * dy.cols, |first, mut dx| {
                for i in 0..dx.rows {
                    vector::add_scaled(dx.row(i), dy.row(first + i), column.row(first + i)[0]);
                }
            });
        }
        if backward.grads.wants(self.column) {
            let (dy, mut dcolumn) = backward.grads.pair(self.out, self.column);
            for i in 0..dy.rows {
                dcolumn.row(i)[0] += vector::dot(dy.row(i), x.row(i));
            }
        }
    }
}
