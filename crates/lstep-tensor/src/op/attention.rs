//! Scaled dot-product attention with several heads over blocks of rows, as one operation.

use rayon::prelude::*;

use super::dropout::{Mask, apply_mask};
use super::normalize::softmax_chain;
use crate::backward::Backward;
use crate::kernel::gemm::{Factor, Into, multiply_here};
use crate::kernel::{scratch, vector};
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Indices, Tape, Var};
use crate::workspace::Reader;

/// Which keys of a block take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All of them.
    All,
    /// The first so many; one number per block.
    First(Indices),
    /// Those marked by a number other than 0; one number per key row.
    Marked(Indices),
}

/// The geometry of an attention over b blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heads {
    /// How many heads share the columns.
    pub heads: usize,
    /// Query rows of each block.
    pub query_rows: usize,
    /// Key and value rows of each block.
    pub key_rows: usize,
    /// Which keys take part.
    pub keys: Keys,
    /// Dropout of the attention weights.
    pub dropout: f32,
}

#[derive(Clone, Copy)]
pub(crate) struct Attention {
    q: Var,
    k: Var,
    v: Var,
    heads: Heads,
    mask: Option<Mask>,
    /// The attention weights before dropout, [b heads query_rows, key_rows].
    weights: Var,
    pub out: Var,
}

impl Tape<'_> {
    /// For each block and head, softmax(Q K^T / sqrt(d)) V over the keys that take part: `q` is [b
    /// tq, heads d], `k` is [b tk, heads d], `v` is [b tk, heads e], the result is [b tq, heads e].
    /// A block without any key gives zeros.
    pub fn attention(&mut self, q: Var, k: Var, v: Var, heads: Heads) -> Var {
        let ((q_rows, width), (k_rows, k_width), (v_rows, v_width)) =
            (self.shape(q), self.shape(k), self.shape(v));
        let blocks = q_rows / heads.query_rows.max(1);
        assert_eq!(
            q_rows,
            blocks * heads.query_rows,
            "{q_rows} queries are no blocks of {}",
            heads.query_rows
        );
        assert_eq!(
            (k_rows, v_rows),
            (blocks * heads.key_rows, blocks * heads.key_rows),
            "keys and values of {blocks} blocks"
        );
        assert_eq!(width, k_width, "queries and keys have the same width");
        assert!(
            width % heads.heads == 0 && v_width % heads.heads == 0,
            "{} heads share the columns evenly",
            heads.heads
        );
        let mask = self.mask(heads.dropout);
        let weights = self.emit(blocks * heads.heads * heads.query_rows, heads.key_rows);
        let out = self.emit(q_rows, v_width);
        let op = Attention { q, k, v, heads, mask, weights, out };
        let (read, [weights, result]) = self.forward([weights, out]);
        op.run(&read, weights, result);
        self.record(out, &[q, k, v], || op.into());
        out
    }
}

/// The gradients of one block's queries, keys and values, with its number.
type BlockTargets<'a> = (usize, ((&'a mut [f32], &'a mut [f32]), &'a mut [f32]));

/// One head of one block.
#[derive(Clone, Copy)]
struct Head<'a> {
    q: Matrix<'a>,
    k: Matrix<'a>,
    v: Matrix<'a>,
}

impl Attention {
    fn scale(width: usize) -> f32 {
        1.0 / (width as f32).sqrt()
    }

    fn head<'b>(&self, read: &Reader<'b>, block: usize, head: usize, keys: usize) -> Head<'b> {
        let part = |var: Var, rows: usize, count: usize| {
            let matrix = read.matrix(var);
            let width = matrix.cols / self.heads.heads;
            matrix.rows_from(block * rows, count).columns_from(head * width, width)
        };
        let Heads { query_rows, key_rows, .. } = self.heads;
        Head {
            q: part(self.q, query_rows, query_rows),
            k: part(self.k, key_rows, keys),
            v: part(self.v, key_rows, keys),
        }
    }

    /// How many leading keys are looked at, and the marks among them.
    fn keys<'b>(&self, read: &Reader<'b>, block: usize) -> (usize, Option<&'b [u32]>) {
        let rows = self.heads.key_rows;
        match self.heads.keys {
            Keys::All => (rows, None),
            Keys::First(counts) => ((read.indices(counts)[block] as usize).min(rows), None),
            Keys::Marked(marks) => {
                let marks = &read.indices(marks)[block * rows..][..rows];
                // A block without a key would be 0 / 0.
                if marks.iter().all(|&mark| mark == 0) { (0, None) } else { (rows, Some(marks)) }
            }
        }
    }

    fn run(&self, read: &Reader<'_>, weights: MatrixMut<'_>, out: MatrixMut<'_>) {
        let Heads { heads, query_rows, key_rows, .. } = self.heads;
        let (out_size, weights_size) = (query_rows * out.cols, heads * query_rows * key_rows);
        if out_size == 0 {
            return;
        }
        let v_width = out.cols / heads;
        let work = out.rows * key_rows * (read.matrix(self.q).cols + out.cols) / 8;
        let task = |block: usize, out: &mut [f32], weights: &mut [f32]| {
            let (keys, marks) = self.keys(read, block);
            for head in 0..heads {
                let part = self.head(read, block, head, keys);
                let columns = MatrixMut::new(out, query_rows, heads * v_width)
                    .columns_from(head * v_width, v_width);
                let from = head * query_rows * key_rows;
                let weights = &mut weights[from..from + query_rows * key_rows];
                let first = ((block * heads + head) * query_rows * key_rows) as u32;
                self.run_head(part, marks, weights, columns, first);
            }
        };
        if weights_size == 0 {
            out.data.fill(0.0);
        } else if parallel::is_worth(work) {
            let weights = weights.data.par_chunks_mut(weights_size);
            out.data
                .par_chunks_mut(out_size)
                .zip(weights)
                .enumerate()
                .with_max_len(1)
                .for_each(|(i, (o, w))| task(i, o, w));
        } else {
            let weights = weights.data.chunks_mut(weights_size);
            out.data
                .chunks_mut(out_size)
                .zip(weights)
                .enumerate()
                .for_each(|(i, (o, w))| task(i, o, w));
        }
    }

    fn run_head(
        &self,
        head: Head<'_>,
        marks: Option<&[u32]>,
        weights: &mut [f32],
        mut out: MatrixMut<'_>,
        first: u32,
    ) {
        let keys = head.k.rows;
        let key_rows = self.heads.key_rows;
        let mut weights = MatrixMut { data: weights, rows: out.rows, cols: keys, stride: key_rows };
        if keys == 0 {
            out.fill(0.0);
            return;
        }
        let depth = head.q.cols;
        multiply_here(
            Factor::of(head.q),
            Factor::transposed(head.k),
            depth,
            weights.reborrow(),
            Into::Overwrite,
        );
        for i in 0..weights.rows {
            let row = weights.row(i);
            vector::scale(row, Self::scale(depth));
            if let Some(marks) = marks {
                for (score, _) in row.iter_mut().zip(marks).filter(|(_, mark)| **mark == 0) {
                    *score = f32::NEG_INFINITY;
                }
            }
            vector::softmax(row);
        }
        self.with_dropped(weights.as_ref(), first, |weights| {
            multiply_here(Factor::of(weights), Factor::of(head.v), keys, out, Into::Overwrite);
        });
    }

    /// Lends the weights after dropout.
    fn with_dropped(&self, weights: Matrix<'_>, first: u32, task: impl FnOnce(Matrix<'_>)) {
        let Some(mask) = self.mask else {
            return task(weights);
        };
        scratch::with(weights.rows * weights.cols, |dropped| {
            for (i, row) in dropped.chunks_mut(weights.cols).enumerate() {
                row.copy_from_slice(weights.row(i));
                apply_mask(row, mask, first.wrapping_add((i * self.heads.key_rows) as u32));
            }
            task(Matrix::new(dropped, weights.rows, weights.cols));
        });
    }

    /// With A the weights, D their dropout mask: dV += (A D)^T dY, dA = (dY V^T) D,
    /// dS = A (dA - row sums of dA A) / sqrt(d), dQ += dS K, dK += dS^T Q.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let vars = [self.q, self.k, self.v];
        let Heads { query_rows, key_rows, .. } = self.heads;
        let blocks = read.matrix(self.out).rows / query_rows.max(1);
        let row_counts = [query_rows, key_rows, key_rows];
        let widths = vars.map(|var| read.matrix(var).cols);
        if blocks == 0 || key_rows == 0 || widths.contains(&0) {
            return;
        }
        let work = blocks * query_rows * key_rows * (widths[0] + widths[2]) / 4;
        let grads = &mut backward.grads;
        if grads.are_disjoint(&vars) && vars.iter().all(|&var| grads.wants(var)) {
            let (dy, [dq, dk, dv]) = grads.several(self.out, vars);
            let strides = [dq.stride, dk.stride, dv.stride];
            let task = |(block, ((dq, dk), dv)): BlockTargets<'_>| {
                let view = |data, i: usize| MatrixMut {
                    data,
                    rows: row_counts[i],
                    cols: widths[i],
                    stride: strides[i],
                };
                self.backward_block(&read, dy, block, [view(dq, 0), view(dk, 1), view(dv, 2)]);
            };
            let size = |i: usize| row_counts[i] * strides[i];
            if parallel::is_worth(work) {
                let (dk, dv) = (dk.data.par_chunks_mut(size(1)), dv.data.par_chunks_mut(size(2)));
                dq.data
                    .par_chunks_mut(size(0))
                    .zip(dk)
                    .zip(dv)
                    .enumerate()
                    .with_max_len(1)
                    .for_each(task);
            } else {
                let (dk, dv) = (dk.data.chunks_mut(size(1)), dv.data.chunks_mut(size(2)));
                dq.data.chunks_mut(size(0)).zip(dk).zip(dv).enumerate().for_each(task);
            }
            return;
        }
        // Some operands share memory (self-attention of one matrix) or are constants: all three
        // gradients are made aside, block by block, and added one after the other.
        let sizes: [usize; 3] = std::array::from_fn(|i| row_counts[i] * widths[i]);
        let size = sizes.iter().sum();
        let aside = backward.scratch.floats.take(blocks * size);
        let dy = grads.own(self.out);
        let dy = dy.as_ref();
        parallel::chunks(aside, size, work, |block, part| {
            part.fill(0.0);
            let (dq, rest) = part.split_at_mut(sizes[0]);
            let (dk, dv) = rest.split_at_mut(sizes[1]);
            let view = |data, i: usize| MatrixMut::new(data, row_counts[i], widths[i]);
            self.backward_block(&read, dy, block, [view(dq, 0), view(dk, 1), view(dv, 2)]);
        });
        for (i, var) in vars.into_iter().enumerate() {
            if !grads.wants(var) {
                continue;
            }
            let from: usize = sizes[..i].iter().sum();
            let target = grads.target(var);
            let aside = &backward.scratch.floats.as_slice()[..blocks * size];
            parallel::rows(target, row_counts[i], blocks * sizes[i], |first, mut target| {
                let part = &aside[first / row_counts[i] * size + from..][..sizes[i]];
                for (row, values) in part.chunks(widths[i]).enumerate() {
                    vector::add(target.row(row), values);
                }
            });
        }
    }

    fn backward_block(
        &self,
        read: &Reader<'_>,
        dy: Matrix<'_>,
        block: usize,
        targets: [MatrixMut<'_>; 3],
    ) {
        let Heads { heads, query_rows, key_rows, .. } = self.heads;
        let [mut dq, mut dk, mut dv] = targets;
        let (keys, _) = self.keys(read, block);
        if keys == 0 {
            return;
        }
        let (width, v_width) = (dq.cols / heads, dv.cols / heads);
        let weights = read.matrix(self.weights);
        for head in 0..heads {
            let part = self.head(read, block, head, keys);
            let first_row = (block * heads + head) * query_rows;
            let first = (first_row * key_rows) as u32;
            let a = weights.rows_from(first_row, query_rows).columns_from(0, keys);
            let dy =
                dy.rows_from(block * query_rows, query_rows).columns_from(head * v_width, v_width);
            let dv = dv.reborrow().columns_from(head * v_width, v_width);
            let dv = MatrixMut { rows: keys, ..dv };
            self.with_dropped(a, first, |a| {
                multiply_here(Factor::transposed(a), Factor::of(dy), query_rows, dv, Into::Add);
            });
            scratch::with(2 * query_rows * keys, |memory| {
                let (da, ds) = memory.split_at_mut(query_rows * keys);
                let product = MatrixMut::new(da, query_rows, keys);
                multiply_here(
                    Factor::of(dy),
                    Factor::transposed(part.v),
                    v_width,
                    product,
                    Into::Overwrite,
                );
                ds.fill(0.0);
                for (i, (da, ds)) in da.chunks_mut(keys).zip(ds.chunks_mut(keys)).enumerate() {
                    if let Some(mask) = self.mask {
                        apply_mask(da, mask, first.wrapping_add((i * key_rows) as u32));
                    }
                    softmax_chain(ds, da, a.row(i), Self::scale(width));
                }
                let ds = Matrix::new(ds, query_rows, keys);
                let dq = dq.reborrow().columns_from(head * width, width);
                multiply_here(Factor::of(ds), Factor::of(part.k), keys, dq, Into::Add);
                let dk = dk.reborrow().columns_from(head * width, width);
                let dk = MatrixMut { rows: keys, ..dk };
                multiply_here(
                    Factor::transposed(ds),
                    Factor::of(part.q),
                    query_rows,
                    dk,
                    Into::Add,
                );
            });
        }
    }
}
