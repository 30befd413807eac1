//! Picking rows by number, singly or in pairs.

use super::{add_column_sums, map};
use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::scatter::scatter_add;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Indices, Tape, Var};

#[derive(Clone, Copy)]
pub(crate) struct Gather {
    x: Var,
    rows: Indices,
    pub out: Var,
}

/// The two sides of [`Tape::gather_pair`]: rows `u_rows` of `u` and rows `v_rows` of `v`.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// First matrix, [a, c].
    pub u: Var,
    /// Rows of `u`, m numbers.
    pub u_rows: Indices,
    /// Second matrix, [b, c].
    pub v: Var,
    /// Rows of `v`, m numbers.
    pub v_rows: Indices,
}

impl Tape<'_> {
    /// `y[i]` = `x[rows[i]]`: x is [n, c], `rows` has m numbers below n, y is [m, c].
    pub fn gather(&mut self, x: Var, rows: Indices) -> Var {
        let out = self.emit(rows.len(), self.shape(x).1);
        self.gather_into(out, x, rows);
        out
    }

    /// [`Tape::gather`], written into `out` [m, c].
    pub fn gather_into(&mut self, out: Var, x: Var, rows: Indices) {
        assert_eq!(self.shape(out), (rows.len(), self.shape(x).1), "room for the gathered rows");
        let (read, [result]) = self.forward([out]);
        let (x_values, numbers) = (read.matrix(x), read.indices(rows));
        let work = result.rows * result.cols;
        parallel::rows(result, 64, work, |first, mut part| {
            for i in 0..part.rows {
                part.row(i).copy_from_slice(x_values.row(numbers[first + i] as usize));
            }
        });
        self.record(out, &[x], || Gather { x, rows, out }.into());
    }

    /// `y[i]` = f(`u[u_rows[i]]` + `v[v_rows[i]]` + bias), [m, c].
    ///
    /// A linear layer of a concatenated pair, f(W [h_u | h_v] + b), is this with u = h A^T and v =
    /// h B^T, W = [A | B]: the products are made once per row of h, not once per pair.
    pub fn gather_pair(&mut self, pair: Pair, bias: Option<Var>, activation: Activation) -> Var {
        let Pair { u, u_rows, v, v_rows } = pair;
        let cols = self.shape(u).1;
        assert_eq!(self.shape(v).1, cols, "both sides of a pair have the same width");
        assert_eq!(u_rows.len(), v_rows.len(), "as many first as second rows");
        let keep = activation.slope_needs_argument() && self.is_training();
        let known = self.emit(u_rows.len(), cols);
        let (read, [result]) = self.forward([known]);
        let (u_values, v_values) = (read.matrix(u), read.matrix(v));
        let (first_rows, second_rows) = (read.indices(u_rows), read.indices(v_rows));
        let bias_row = bias.map(|bias| read.flat(bias));
        let work = 2 * u_rows.len() * cols;
        parallel::rows(result, 32, work, |first, mut part| {
            for i in 0..part.rows {
                let row = part.row(i);
                row.copy_from_slice(u_values.row(first_rows[first + i] as usize));
                vector::add(row, v_values.row(second_rows[first + i] as usize));
                if let Some(bias) = bias_row {
                    vector::add(row, bias);
                }
                if !keep {
                    activation.apply(row);
                }
            }
        });
        let out = if keep { self.emit(u_rows.len(), cols) } else { known };
        if keep {
            self.apply_into(out, known, activation);
        }
        let inputs = [u, v, bias.unwrap_or(u)];
        self.record(out, &inputs, || GatherPair { pair, bias, activation, known, out }.into());
        out
    }
}

impl Gather {
    /// `dx[rows[i]]` += `dy[i]`, in the order of i.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let rows = backward.read.indices(self.rows);
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        scatter_add(dx, rows, |i| (dy.row(i), 1.0), &mut backward.scratch.integers);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GatherPair {
    pair: Pair,
    bias: Option<Var>,
    activation: Activation,
    known: Var,
    pub out: Var,
}

impl GatherPair {
    /// With dz = dy f'(.): `du[u_rows[i]]` += `dz[i]`, `dv[v_rows[i]]` += `dz[i]`, dbias += column
    /// sums of dz.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let grads = &mut backward.grads;
        map(grads.own(self.out), [read.matrix(self.known)], 4, |g, [known]| {
            self.activation.chain(known, g);
        });
        for (x, rows) in [(self.pair.u, self.pair.u_rows), (self.pair.v, self.pair.v_rows)] {
            if grads.wants(x) {
                let (dz, dx) = grads.pair(self.out, x);
                scatter_add(
                    dx,
                    read.indices(rows),
                    |i| (dz.row(i), 1.0),
                    &mut backward.scratch.integers,
                );
            }
        }
        if let Some(bias) = self.bias.filter(|&bias| grads.wants(bias)) {
            let (dz, mut db) = grads.pair(self.out, bias);
            add_column_sums(dz, db.row(0), backward.scratch);
        }
    }
}
