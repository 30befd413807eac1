//! The learnable filter over past positions: Fourier transform, filter, inverse transform and weighted sum as one kernel,
//! and the kernel applied to runs of equal positions.
//!
//! All four steps are linear in the positions, so they fold into one real kernel g [d, l] per dimension:
//! `p~[d] = sum over j of g[d, j] p_j[d]`, made once per step. A position that stayed the same from slot s up to slot e
//! contributes `p[d] (G[d, e] - G[d, s])` with G the prefix sums of g, however long it stayed.

use crate::backward::Backward;
use crate::kernel::gemm::{Factor, Into, multiply};
use crate::kernel::{scratch, vector};
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Indices, Tape, Var};

/// The transform of length l as a matrix [2 l, l]: cos(2 pi k m / l) above sin(2 pi k m / l).
pub(crate) struct Fourier {
    pub length: usize,
    table: Vec<f32>,
}

impl Fourier {
    pub fn new(length: usize) -> Self {
        let angle = |k: usize, m: usize| std::f64::consts::TAU * ((k * m) % length) as f64 / length as f64;
        let table = (0..2 * length)
            .flat_map(|k| (0..length).map(move |m| (k, m)))
            .map(|(k, m)| if k < length { angle(k, m).cos() as f32 } else { angle(k - length, m).sin() as f32 })
            .collect();
        Self { length, table }
    }

    fn matrix(&self) -> Matrix<'_> {
        Matrix::new(&self.table, 2 * self.length, self.length)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct FoldFilter {
    real: Var,
    imaginary: Var,
    sum: Var,
    /// The conjugate transform of `sum`: [1, 2 l], real parts before imaginary ones.
    spectrum: Var,
    fourier: usize,
    pub out: Var,
}

/// Runs of equal positions of n nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Node i has the runs `offsets[i] .. offsets[i + 1]`; n + 1 numbers.
    pub offsets: Indices,
    /// The row of the position table, per run.
    pub rows: Indices,
    /// The first slot, per run.
    pub starts: Indices,
    /// One past the last slot, per run: slots are half-open and oldest first.
    pub ends: Indices,
}

impl Tape<'_> {
    /// `g[d] = Re(DFT(F[d] conj(DFT(s)))) / l`: `real` and `imaginary` are F, [d, l], `sum` is s, [1, l], g is [d, l].
    pub fn fold_filter(&mut self, real: Var, imaginary: Var, sum: Var) -> Var {
        let (rows, length) = self.shape(real);
        assert_eq!(self.shape(imaginary), (rows, length), "real and imaginary parts of the same filter");
        assert_eq!(self.shape(sum), (1, length), "a weight for each of {length} slots");
        let fourier = self.fourier(length);
        let spectrum = self.emit(1, 2 * length);
        let out = self.emit(rows, length);
        let (read, [mut spectral, result]) = self.forward([spectrum, out]);
        let table = read.fourier[fourier].matrix();
        multiply(
            Factor::of(read.matrix(sum)),
            Factor::transposed(table),
            length,
            spectral.reborrow(),
            Into::Overwrite,
            None,
        );
        let (a, b) = spectral.row(0).split_at(length);
        let (re, im) = (read.matrix(real), read.matrix(imaginary));
        scratch::with(rows * 2 * length, |product| {
            let scale = 1.0 / length as f32;
            for (i, row) in product.chunks_mut(2 * length).enumerate() {
                let (p, q) = row.split_at_mut(length);
                for k in 0..length {
                    let (x, y) = (re.row(i)[k], im.row(i)[k]);
                    p[k] = scale * (x * a[k] - y * b[k]);
                    q[k] = scale * (x * b[k] + y * a[k]);
                }
            }
            let product = Matrix::new(product, rows, 2 * length);
            multiply(Factor::of(product), Factor::of(table), 2 * length, result, Into::Overwrite, None);
        });
        self.record(out, &[real, imaginary, sum], || {
            FoldFilter { real, imaginary, sum, spectrum, fourier, out }.into()
        });
        out
    }

    /// The number of the transform of this length, made on first use and kept by the workspace.
    fn fourier(&mut self, length: usize) -> usize {
        let known = &mut self.workspace.fourier;
        known.iter().position(|fourier| fourier.length == length).unwrap_or_else(|| {
            known.push(Fourier::new(length));
            known.len() - 1
        })
    }

    /// `y[i, d]` = sum over runs r of node i of `positions[rows[r], d]` (`G[d, ends[r]]` - `G[d, starts[r]]`), G the prefix sums of
    /// `kernel` [d, l] over its columns: `positions` is [m, d] and constant, y is [n, d]. Slots without a run count as
    /// zero vectors. The gradient goes to the kernel only.
    pub fn run_kernel(&mut self, kernel: Var, positions: Var, runs: Runs) -> Var {
        let (width, slots) = self.shape(kernel);
        assert_eq!(self.shape(positions).1, width, "positions of {width} dimensions");
        assert!(runs.rows.len() == runs.starts.len() && runs.rows.len() == runs.ends.len(), "three numbers per run");
        let prefix = self.emit(slots + 1, 3 * width);
        let out = self.emit(runs.offsets.len() - 1, width);
        let (read, [mut prefix, result]) = self.forward([prefix, out]);
        prefix_sums(read.matrix(kernel), &mut prefix);
        let prefix = prefix.as_ref();
        let resolved = ResolvedRuns {
            offsets: read.indices(runs.offsets),
            rows: read.indices(runs.rows),
            starts: read.indices(runs.starts),
            ends: read.indices(runs.ends),
            positions: read.matrix(positions),
        };
        let work = 2 * runs.rows.len() * width;
        parallel::rows(result, 16, work, |first, part| apply_runs(part, first, resolved, prefix));
        self.record(out, &[kernel], || RunKernel { kernel, positions, runs, out }.into());
        out
    }
}

/// Row j of `prefix` = [high | low | column]: the sum of the first j columns of the kernel, in two `f32` parts, and column j
/// itself. With one part the difference of two neighbours would have the rounding error of the whole sum. A run of one slot,
/// which an active node has many of, needs the column only.
fn prefix_sums(kernel: Matrix<'_>, prefix: &mut MatrixMut<'_>) {
    let width = kernel.rows;
    prefix.row(0).fill(0.0);
    for j in 0..kernel.cols {
        let stride = prefix.stride;
        let (before, after) = prefix.data.split_at_mut((j + 1) * stride);
        let (sums, column) = before[j * stride..].split_at_mut(2 * width);
        let (high, low) = sums.split_at(width);
        let (next_high, rest) = after[..stride].split_at_mut(width);
        let next_low = &mut rest[..width];
        for d in 0..width {
            let g = kernel.data[d * kernel.stride + j];
            let total = f64::from(high[d]) + f64::from(low[d]) + f64::from(g);
            column[d] = g;
            next_high[d] = total as f32;
            next_low[d] = (total - f64::from(next_high[d])) as f32;
        }
    }
    prefix.row(kernel.cols)[2 * width..].fill(0.0);
}

#[derive(Clone, Copy)]
struct ResolvedRuns<'b> {
    offsets: &'b [u32],
    rows: &'b [u32],
    starts: &'b [u32],
    ends: &'b [u32],
    positions: Matrix<'b>,
}

multiversion! {
    fn apply_runs(out: MatrixMut<'_>, first: usize, runs: ResolvedRuns<'_>, prefix: Matrix<'_>) {
        let mut out = out;
        let width = out.cols;
        for i in 0..out.rows {
            let row = out.row(i);
            row.fill(0.0);
            for r in runs.offsets[first + i] as usize..runs.offsets[first + i + 1] as usize {
                let position = runs.positions.row(runs.rows[r] as usize);
                let (start, end) = (runs.starts[r] as usize, runs.ends[r] as usize);
                if end == start + 1 {
                    let column = &prefix.row(start)[2 * width..];
                    for ((y, &p), &g) in row.iter_mut().zip(position).zip(column) {
                        *y = p.mul_add(g, *y);
                    }
                    continue;
                }
                let (start_high, start_low) = prefix.row(start)[..2 * width].split_at(width);
                let (end_high, end_low) = prefix.row(end)[..2 * width].split_at(width);
                for (((((y, &p), &sh), &sl), &eh), &el) in
                    row.iter_mut().zip(position).zip(start_high).zip(start_low).zip(end_high).zip(end_low)
                {
                    *y = p.mul_add((eh - sh) + (el - sl), *y);
                }
            }
        }
    }
}

impl FoldFilter {
    /// With [dP | dQ] = dg T^T / l and a + i b the spectrum of s: dre += dP a + dQ b, dim += dQ a - dP b,
    /// da = sum over d of dP re + dQ im, db = sum over d of dQ re - dP im, ds += [da | db] T.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let (re, im) = (read.matrix(self.real), read.matrix(self.imaginary));
        let (rows, length) = (re.rows, re.cols);
        let (a, b) = read.flat(self.spectrum).split_at(length);
        let table = read.fourier[self.fourier].matrix();
        let memory = backward.scratch.floats.take((rows + 1) * 2 * length);
        let (product, dspectrum) = memory.split_at_mut(rows * 2 * length);
        let dg = backward.grads.own(self.out);
        let target = MatrixMut::new(product, rows, 2 * length);
        multiply(Factor::of(dg.as_ref()), Factor::transposed(table), length, target, Into::Overwrite, None);
        vector::scale(product, 1.0 / length as f32);
        if backward.grads.wants(self.real) {
            let mut dre = backward.grads.target(self.real);
            for (i, row) in product.chunks(2 * length).enumerate() {
                vector::add_product(dre.row(i), &row[..length], a);
                vector::add_product(dre.row(i), &row[length..], b);
            }
        }
        if backward.grads.wants(self.imaginary) {
            let mut dim = backward.grads.target(self.imaginary);
            for (i, row) in product.chunks(2 * length).enumerate() {
                vector::add_product(dim.row(i), &row[length..], a);
                for ((dim, &p), &b) in dim.row(i).iter_mut().zip(row).zip(b) {
                    *dim -= p * b;
                }
            }
        }
        if backward.grads.wants(self.sum) {
            dspectrum.fill(0.0);
            let (da, db) = dspectrum.split_at_mut(length);
            for (i, row) in product.chunks(2 * length).enumerate() {
                let (p, q) = row.split_at(length);
                vector::add_product(da, p, re.row(i));
                vector::add_product(da, q, im.row(i));
                vector::add_product(db, q, re.row(i));
                for ((db, &p), &im) in db.iter_mut().zip(p).zip(im.row(i)) {
                    *db -= p * im;
                }
            }
            let dspectrum = Matrix::new(dspectrum, 1, 2 * length);
            let ds = backward.grads.target(self.sum);
            multiply(Factor::of(dspectrum), Factor::of(table), 2 * length, ds, Into::Add, None);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RunKernel {
    kernel: Var,
    positions: Var,
    runs: Runs,
    pub out: Var,
}

/// Parts of the nodes whose differences are summed separately. Fixed, so that the order of additions is.
const PARTS: usize = 8;

impl RunKernel {
    /// `dG[d, ends[r]]` += `dy[i, d]` `p[d]` and `dG[d, starts[r]]` -= the same; `dg[d, j]` += sum over t > j of `dG[d, t]`.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let resolved = ResolvedRuns {
            offsets: read.indices(self.runs.offsets),
            rows: read.indices(self.runs.rows),
            starts: read.indices(self.runs.starts),
            ends: read.indices(self.runs.ends),
            positions: read.matrix(self.positions),
        };
        let (dy, mut dg) = backward.grads.pair(self.out, self.kernel);
        let (width, slots) = (dg.rows, dg.cols);
        if width == 0 || slots == 0 || dy.rows == 0 {
            return;
        }
        let nodes = dy.rows.div_ceil(PARTS);
        let size = (slots + 1) * width;
        let partial = backward.scratch.floats.take(dy.rows.div_ceil(nodes) * size);
        parallel::chunks(partial, size, 2 * resolved.rows.len() * width, |part, differences| {
            differences.fill(0.0);
            let from = part * nodes;
            add_differences(differences, dy, resolved, from, (from + nodes).min(dy.rows));
        });
        let (total, others) = partial.split_at_mut(size);
        for part in others.chunks(size) {
            vector::add(total, part);
        }
        for j in (1..slots).rev() {
            let (before, after) = total.split_at_mut((j + 1) * width);
            vector::add(&mut before[j * width..], &after[..width]);
        }
        for d in 0..width {
            for (j, dg) in dg.row(d).iter_mut().enumerate() {
                *dg += total[(j + 1) * width + d];
            }
        }
    }
}

multiversion! {
    fn add_differences(differences: &mut [f32], dy: Matrix<'_>, runs: ResolvedRuns<'_>, from: usize, to: usize) {
        let width = dy.cols;
        for i in from..to {
            let gradient = dy.row(i);
            for r in runs.offsets[i] as usize..runs.offsets[i + 1] as usize {
                let position = runs.positions.row(runs.rows[r] as usize);
                let (start, end) = (runs.starts[r] as usize, runs.ends[r] as usize);
                assert!(start < end, "a run ends after it starts");
                let (before, after) = differences.split_at_mut(end * width);
                let (start, end) = (&mut before[start * width..][..width], &mut after[..width]);
                for (((start, end), &g), &p) in start.iter_mut().zip(end).zip(gradient).zip(position) {
                    let step = g * p;
                    *start -= step;
                    *end += step;
                }
            }
        }
    }
}
