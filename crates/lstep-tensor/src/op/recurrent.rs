//! Recurrent cells with PyTorch's gate order.

use crate::backward::Backward;
use crate::kernel::activation::Activation;
use crate::kernel::math;
use crate::parallel;
use crate::tape::{Tape, Var};

/// The weights of a recurrent cell: `gates` is 3 for a GRU (reset, update, new), 1 for a plain
/// cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// W_ih, [gates h, in].
    pub input_weight: Var,
    /// W_hh, [gates h, h].
    pub hidden_weight: Var,
    /// b_ih, [1, gates h].
    pub input_bias: Var,
    /// b_hh, [1, gates h].
    pub hidden_bias: Var,
}

#[derive(Clone, Copy)]
pub(crate) struct Gru {
    /// x W_ih^T + b_ih
    from_input: Var,
    /// h W_hh^T + b_hh
    from_hidden: Var,
    hidden: Var,
    /// r, z, n
    gates: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// h' = tanh(x W_ih^T + b_ih + h W_hh^T + b_hh), PyTorch's `RNNCell`: x is [n, in], h and h'
    /// are [n, h].
    pub fn rnn_cell(&mut self, x: Var, hidden: Var, cell: Cell) -> Var {
        let a = self.linear(x, cell.input_weight, Some(cell.input_bias), Activation::Identity);
        let b =
            self.linear(hidden, cell.hidden_weight, Some(cell.hidden_bias), Activation::Identity);
        let sum = self.add(a, b);
        self.tanh(sum)
    }

    /// PyTorch's `GRUCell`: x is [n, in], h and h' are [n, h]; with a = x W_ih^T + b_ih and b = h
    /// W_hh^T + b_hh in three parts, r = sigmoid(a_1 + b_1), z = sigmoid(a_2 + b_2), m = tanh(a_3 +
    /// r b_3), h' = (1 - z) m + z h.
    pub fn gru_cell(&mut self, x: Var, hidden: Var, cell: Cell) -> Var {
        let from_input =
            self.linear(x, cell.input_weight, Some(cell.input_bias), Activation::Identity);
        let from_hidden =
            self.linear(hidden, cell.hidden_weight, Some(cell.hidden_bias), Activation::Identity);
        let (rows, width) = self.shape(hidden);
        assert_eq!(self.shape(from_input), (rows, 3 * width), "a GRU has three gates");
        let gates = self.emit(rows, 3 * width);
        let out = self.emit(rows, width);
        let (read, [mut kept, result]) = self.forward([gates, out]);
        let (a, b, h) = (read.matrix(from_input), read.matrix(from_hidden), read.matrix(hidden));
        parallel::rows(kept.reborrow(), super::ROWS, 30 * rows * width, |first, mut part| {
            for i in 0..part.rows {
                make_gates(part.row(i), a.row(first + i), b.row(first + i));
            }
        });
        let kept = kept.as_ref();
        parallel::rows(result, super::ROWS, 2 * rows * width, |first, mut part| {
            for i in 0..part.rows {
                mix_gates(part.row(i), kept.row(first + i), h.row(first + i));
            }
        });
        self.record(out, &[from_input, from_hidden, hidden], || {
            Gru { from_input, from_hidden, hidden, gates, out }.into()
        });
        out
    }
}

multiversion! {
    fn make_gates(gates: &mut [f32], a: &[f32], b: &[f32]) {
        let width = gates.len() / 3;
        let (reset, rest) = gates.split_at_mut(width);
        let (update, new) = rest.split_at_mut(width);
        for (i, reset) in reset.iter_mut().enumerate() {
            *reset = math::logistic(a[i] + b[i]);
        }
        for ((update, &a), &b) in update.iter_mut().zip(&a[width..]).zip(&b[width..]) {
            *update = math::logistic(a + b);
        }
        for (((new, &a), &b), &reset) in new.iter_mut().zip(&a[2 * width..]).zip(&b[2 * width..]).zip(&*reset) {
            *new = math::hyperbolic_tangent(reset.mul_add(b, a));
        }
    }
}

multiversion! {
    fn mix_gates(out: &mut [f32], gates: &[f32], hidden: &[f32]) {
        let width = out.len();
        let (update, new) = gates[width..].split_at(width);
        for (((out, &z), &m), &h) in out.iter_mut().zip(update).zip(new).zip(hidden) {
            *out = z.mul_add(h - m, m);
        }
    }
}

impl Gru {
    /// With dm = dy (1 - z) (1 - m^2), dz = dy (h - m) z (1 - z), dr = dm b_3 r (1 - r):
    /// da += [dr | dz | dm], db += [dr | dz | dm r], dh += dy z.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let (gates, b, h) =
            (read.matrix(self.gates), read.matrix(self.from_hidden), read.matrix(self.hidden));
        let width = h.cols;
        for (target, is_hidden) in [(self.from_input, false), (self.from_hidden, true)] {
            if !backward.grads.wants(target) {
                continue;
            }
            let (dy, dx) = backward.grads.pair(self.out, target);
            parallel::rows(dx, super::ROWS, 10 * h.rows * width, |first, mut dx| {
                for k in 0..dx.rows {
                    let i = first + k;
                    gates_chain(dx.row(k), dy.row(i), gates.row(i), b.row(i), h.row(i), is_hidden);
                }
            });
        }
        if backward.grads.wants(self.hidden) {
            let (dy, dh) = backward.grads.pair(self.out, self.hidden);
            super::map(dh, [dy, gates.columns_from(width, width)], 1, |dh, [dy, z]| {
                crate::kernel::vector::add_product(dh, dy, z);
            });
        }
    }
}

multiversion! {
    fn gates_chain(dx: &mut [f32], dy: &[f32], gates: &[f32], b: &[f32], h: &[f32], is_hidden: bool) {
        let width = dy.len();
        for i in 0..width {
            let (r, z, m) = (gates[i], gates[width + i], gates[2 * width + i]);
            let dm = dy[i] * (1.0 - z) * (1.0 - m * m);
            dx[i] += dm * b[2 * width + i] * r * (1.0 - r);
            dx[width + i] += dy[i] * (h[i] - m) * z * (1.0 - z);
            dx[2 * width + i] += if is_hidden { dm * r } else { dm };
        }
    }
}
