//! Attention of blocks of different lengths with themselves, as one operation.
//!
//! Rows of blocks follow each other without padding, so nothing is computed for rows that are not
//! there. Equal rows can be one row that counts several times. The attention weights are made again
//! in the backward step: storing them would take more memory than all else of a transformer, and
//! their product is a fiftieth of its work.

use super::dropout::{Mask, apply_mask};
use super::normalize::softmax_chain;
use crate::backward::Backward;
use crate::kernel::gemm::{Factor, Into, multiply_here};
use crate::kernel::{scratch, vector};
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Indices, Tape, Var};
use crate::workspace::Reader;

/// The blocks and heads of a self-attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// How many heads share the columns.
    pub heads: usize,
    /// Block i has the rows `offsets[i] .. offsets[i + 1]`; one more number than blocks.
    pub offsets: Indices,
    /// How often each row counts as a key, at least once; without it, once.
    pub repeats: Option<Indices>,
    /// Dropout of the attention weights.
    pub dropout: f32,
}

#[derive(Clone, Copy)]
pub(crate) struct SelfAttention {
    qkv: Var,
    blocks: Blocks,
    mask: Option<Mask>,
    pub out: Var,
}

impl Tape<'_> {
    /// For each block and head, softmax(Q K^T / sqrt(d) + ln repeats) V: `qkv` is [n, 3 heads d]
    /// with queries, keys and values side by side, the result is [n, heads d].
    pub fn self_attention(&mut self, qkv: Var, blocks: Blocks) -> Var {
        let (rows, columns) = self.shape(qkv);
        assert!(
            columns % (3 * blocks.heads) == 0,
            "{} heads share {columns} columns evenly",
            blocks.heads
        );
        let mask = self.mask(blocks.dropout);
        let out = self.emit(rows, columns / 3);
        let op = SelfAttention { qkv, blocks, mask, out };
        let (read, [result]) = self.forward([out]);
        op.run(&read, result);
        self.record(out, &[qkv], || op.into());
        out
    }
}

/// Calls `task(block, rows of the block)` for blocks `first ..`, whose rows are `data`; in parallel
/// if the work is worth it.
fn each_block(
    first: usize,
    offsets: &[u32],
    data: &mut [f32],
    stride: usize,
    cost: usize,
    task: &(impl Fn(usize, &mut [f32]) + Sync),
) {
    let blocks = offsets.len() - 1;
    if blocks <= 1 {
        if blocks == 1 && !data.is_empty() {
            task(first, data);
        }
        return;
    }
    let middle = blocks / 2;
    let (left, right) = data.split_at_mut((offsets[middle] - offsets[0]) as usize * stride);
    let rows = (offsets[blocks] - offsets[0]) as usize;
    let (mut one, mut two) = (
        || each_block(first, &offsets[..=middle], left, stride, cost, task),
        || each_block(first + middle, &offsets[middle..], right, stride, cost, task),
    );
    if parallel::is_worth(rows * cost) {
        rayon::join(one, two);
    } else {
        one();
        two();
    }
}

impl SelfAttention {
    /// Rows of a block: queries, keys and values of one head.
    fn head<'b>(&self, qkv: Matrix<'b>, from: usize, rows: usize, head: usize) -> [Matrix<'b>; 3] {
        let width = qkv.cols / 3 / self.blocks.heads;
        let block = qkv.rows_from(from, rows);
        [0, 1, 2].map(|part| block.columns_from((part * self.blocks.heads + head) * width, width))
    }

    /// The attention weights of a head before dropout, [rows, rows].
    fn weigh(&self, [q, k, _]: [Matrix<'_>; 3], repeats: Option<&[u32]>, weights: &mut [f32]) {
        let rows = q.rows;
        let product = MatrixMut::new(weights, rows, rows);
        multiply_here(Factor::of(q), Factor::transposed(k), q.cols, product, Into::Overwrite);
        let scale = 1.0 / (q.cols as f32).sqrt();
        for row in weights.chunks_mut(rows) {
            vector::scale(row, scale);
            if let Some(repeats) = repeats {
                for (score, &times) in row.iter_mut().zip(repeats).filter(|(_, times)| **times != 1)
                {
                    *score += (times as f32).ln();
                }
            }
            vector::softmax(row);
        }
    }

    fn drop(&self, weights: &mut [f32], from: usize, rows: usize, head: usize) {
        if let Some(mask) = self.mask {
            for (i, row) in weights.chunks_mut(rows).enumerate() {
                // Rows are 65,536 places apart, which is as many keys as a block may have; beyond
                // 65,536 rows of all heads, masks repeat.
                let place = ((from + i) * self.blocks.heads + head) << 16;
                apply_mask(row, mask, place as u32 ^ (place >> 32) as u32);
            }
        }
    }

    fn lists<'b>(&self, read: &Reader<'b>) -> (&'b [u32], Option<&'b [u32]>) {
        (
            read.indices(self.blocks.offsets),
            self.blocks.repeats.map(|repeats| read.indices(repeats)),
        )
    }

    fn run(&self, read: &Reader<'_>, out: MatrixMut<'_>) {
        let qkv = read.matrix(self.qkv);
        let (offsets, repeats) = self.lists(read);
        let width = out.cols;
        let cost = mean_length(offsets) * width / 4;
        each_block(0, offsets, out.data, width, cost, &|block, out: &mut [f32]| {
            let (from, rows) = (offsets[block] as usize, out.len() / width);
            let repeats = repeats.map(|repeats| &repeats[from..from + rows]);
            let of_head = width / self.blocks.heads;
            scratch::with(rows * rows, |weights| {
                for head in 0..self.blocks.heads {
                    let parts = self.head(qkv, from, rows, head);
                    self.weigh(parts, repeats, weights);
                    self.drop(weights, from, rows, head);
                    let columns =
                        MatrixMut::new(out, rows, width).columns_from(head * of_head, of_head);
                    let weights = Matrix::new(weights, rows, rows);
                    multiply_here(
                        Factor::of(weights),
                        Factor::of(parts[2]),
                        rows,
                        columns,
                        Into::Overwrite,
                    );
                }
            });
        });
    }

    /// With A the weights, D their dropout mask: dV += (A D)^T dY, dA = (dY V^T) D,
    /// dS = A (dA - row sums of dA A) / sqrt(d), dQ += dS K, dK += dS^T Q.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let qkv = read.matrix(self.qkv);
        let (offsets, repeats) = self.lists(&read);
        let (dy, dqkv) = backward.grads.pair(self.out, self.qkv);
        let stride = dqkv.stride;
        let cost = mean_length(offsets) * dy.cols;
        let end = (dqkv.rows.max(1) - 1) * stride + dqkv.cols;
        each_block(
            0,
            offsets,
            &mut dqkv.data[..end.min(dqkv.rows * stride)],
            stride,
            cost,
            &|block, target: &mut [f32]| {
                let from = offsets[block] as usize;
                let rows = offsets[block + 1] as usize - from;
                let repeats = repeats.map(|repeats| &repeats[from..from + rows]);
                let target = MatrixMut { data: target, rows, cols: qkv.cols, stride };
                self.backward_block(qkv, dy.rows_from(from, rows), from, repeats, target);
            },
        );
    }

    fn backward_block(
        &self,
        qkv: Matrix<'_>,
        dy: Matrix<'_>,
        from: usize,
        repeats: Option<&[u32]>,
        mut target: MatrixMut<'_>,
    ) {
        let (heads, rows) = (self.blocks.heads, dy.rows);
        let width = dy.cols / heads;
        scratch::with(4 * rows * rows, |memory| {
            let (weights, rest) = memory.split_at_mut(rows * rows);
            let (dropped, rest) = rest.split_at_mut(rows * rows);
            let (da, ds) = rest.split_at_mut(rows * rows);
            for head in 0..heads {
                let parts = self.head(qkv, from, rows, head);
                let [q, k, v] = parts;
                self.weigh(parts, repeats, weights);
                dropped.copy_from_slice(weights);
                self.drop(dropped, from, rows, head);
                let dy = dy.columns_from(head * width, width);
                let mut part = |number: usize, a: Factor<'_>, b: Factor<'_>| {
                    let columns =
                        target.reborrow().columns_from((number * heads + head) * width, width);
                    multiply_here(a, b, rows, columns, Into::Add);
                };
                part(2, Factor::transposed(Matrix::new(dropped, rows, rows)), Factor::of(dy));
                let product = MatrixMut::new(da, rows, rows);
                multiply_here(
                    Factor::of(dy),
                    Factor::transposed(v),
                    width,
                    product,
                    Into::Overwrite,
                );
                self.drop(da, from, rows, head);
                ds.fill(0.0);
                let scale = 1.0 / (width as f32).sqrt();
                for ((ds, da), a) in
                    ds.chunks_mut(rows).zip(da.chunks(rows)).zip(weights.chunks(rows))
                {
                    softmax_chain(ds, da, a, scale);
                }
                let ds = Matrix::new(ds, rows, rows);
                part(0, Factor::of(ds), Factor::of(k));
                part(1, Factor::transposed(ds), Factor::of(q));
            }
        });
    }
}

fn mean_length(offsets: &[u32]) -> usize {
    let blocks = (offsets.len() - 1).max(1);
    (offsets[offsets.len() - 1] - offsets[0]) as usize / blocks + 1
}
