//! The learnable filter over past vectors: Fourier transform, filter, inverse transform and
//! weighted sum as one kernel, and the kernel applied to runs of equal vectors.
//!
//! All four steps are linear in the vectors, so they fold into one real kernel g [l, d]: `p~[d] =
//! sum over j of g[j, d] p_j[d]`, made once per step. A vector that stayed the same from slot s
//! up to slot e contributes `p[d] (G[e, d] - G[s, d])` with G the prefix sums of g, however long it
//! stayed.

use crate::backward::Backward;
use crate::kernel::gemm::{Factor, Into, multiply};
use crate::kernel::simd::prefetch;
use crate::kernel::{scratch, vector};
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::tape::{Indices, Tape, Var};

/// The transform of length l, halved: cos(2 pi k m / l) and sin(2 pi k m / l) for k and m up to l /
/// 2, [h, h] each with h = l / 2 + 1 rounded down. The rest are these again, since the cosine is
/// even and the sine is odd around l / 2. Both are symmetric.
pub(crate) struct Fourier {
    pub length: usize,
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Fourier {
    pub fn new(length: usize) -> Self {
        let half = length / 2 + 1;
        let table = |function: fn(f64) -> f64| {
            let angle = |k: usize, m: usize| {
                std::f64::consts::TAU * ((k * m) % length) as f64 / length as f64
            };
            (0..half).flat_map(|k| (0..half).map(move |m| function(angle(k, m)) as f32)).collect()
        };
        Self { length, cosines: table(f64::cos), sines: table(f64::sin) }
    }

    fn half(&self) -> usize {
        self.length / 2 + 1
    }

    fn cosines(&self) -> Factor<'_> {
        Factor::of(Matrix::new(&self.cosines, self.half(), self.half()))
    }

    fn sines(&self) -> Factor<'_> {
        Factor::of(Matrix::new(&self.sines, self.half(), self.half()))
    }

    /// The other place that has the cosine of place k, and minus its sine; nothing where that is k
    /// itself.
    fn mirror(&self, k: usize) -> Option<usize> {
        (k != 0 && 2 * k != self.length).then(|| self.length - k)
    }

    /// x\[k\] + x\[l - k\] and x\[k\] - x\[l - k\] for k up to l / 2; x\[k\] twice where k is its
    /// own mirror.
    fn parts(&self, x: &[f32], even: &mut [f32], odd: &mut [f32]) {
        for (k, (even, odd)) in even.iter_mut().zip(odd).enumerate() {
            let mirrored = self.mirror(k).map_or(0.0, |mirror| x[mirror]);
            *even = x[k] + mirrored;
            *odd = x[k] - mirrored;
        }
    }

    /// The even part of a filter's real row and the odd part of its imaginary row, at place k.
    #[inline(always)]
    fn even_and_odd(&self, re: &[f32], im: &[f32], k: usize) -> (f32, f32) {
        let (x, y) = self.mirror(k).map_or((0.0, 0.0), |mirror| (re[mirror], im[mirror]));
        (re[k] + x, im[k] - y)
    }

    /// Adds `value(k)` to place k and `sign` times that to its mirror.
    #[inline(always)]
    fn add_mirrored(&self, dx: &mut [f32], sign: f32, value: impl Fn(usize) -> f32) {
        for k in 0..self.half() {
            let value = value(k);
            dx[k] += value;
            if let Some(mirror) = self.mirror(k) {
                dx[mirror] += sign * value;
            }
        }
    }

    /// The reverse of [`Fourier::parts`] for gradients: what reaches the parts is added to what
    /// they were made from.
    fn add_parts(&self, dx: &mut [f32], even: &[f32], odd: &[f32]) {
        for (k, (even, odd)) in even.iter().zip(odd).enumerate() {
            dx[k] += even + odd;
            if let Some(mirror) = self.mirror(k) {
                dx[mirror] += even - odd;
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct FoldFilter {
    real: Var,
    imaginary: Var,
    sum: Var,
    /// The conjugate transform a + i b of `sum`, first half: [2, h].
    spectrum: Var,
    fourier: usize,
    pub out: Var,
}

/// Runs of equal vectors of n nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Node i has the runs `offsets[i] .. offsets[i + 1]`; n + 1 numbers.
    pub offsets: Indices,
    /// Three numbers per run: the row of the vector table, the first slot, one past the last
    /// slot. Slots are half-open and oldest first.
    pub runs: Indices,
}

impl Tape<'_> {
    /// `g[d] = Re(DFT(F[d] conj(DFT(s)))) / l`: `real` and `imaginary` are F, [d, l], `sum` is s,
    /// [1, l]. The kernel g comes as [l, d], a row for each slot, since runs of slots are what is
    /// done with it.
    ///
    /// With u and v the even part of Re F and the odd part of Im F: the even part of g is the
    /// cosine transform of u a - v b, the odd one the sine transform of u b + v a, so a quarter of
    /// the plain transform's products is left.
    pub fn fold_filter(&mut self, real: Var, imaginary: Var, sum: Var) -> Var {
        let (rows, length) = self.shape(real);
        assert_eq!(
            self.shape(imaginary),
            (rows, length),
            "real and imaginary parts of the same filter"
        );
        assert_eq!(self.shape(sum), (1, length), "a weight for each of {length} slots");
        let fourier = self.fourier(length);
        let half = length / 2 + 1;
        let spectrum = self.emit(2, half);
        let out = self.emit(length, rows);
        let (read, [mut spectral, mut result]) = self.forward([spectrum, out]);
        let fourier_table = &read.fourier[fourier];
        scratch::with(2 * half * (rows + 1).max(2), |room| {
            let (even, odd) = room.split_at_mut(room.len() / 2);
            fourier_table.parts(read.flat(sum), &mut even[..half], &mut odd[..half]);
            let (a, b) = spectral.flat().expect("dense").split_at_mut(half);
            for (part, table, target) in [
                (&*even, fourier_table.cosines(), &mut *a),
                (&*odd, fourier_table.sines(), &mut *b),
            ] {
                let part = Factor::of(Matrix::new(&part[..half], 1, half));
                multiply(part, table, half, MatrixMut::new(target, 1, half), Into::Overwrite);
            }
            let (re, im) = (read.matrix(real), read.matrix(imaginary));
            let (even, odd) = (&mut even[..rows * half], &mut odd[..rows * half]);
            let scale = 1.0 / length as f32;
            for (i, (even, odd)) in even.chunks_mut(half).zip(odd.chunks_mut(half)).enumerate() {
                for k in 0..half {
                    let (u, v) = fourier_table.even_and_odd(re.row(i), im.row(i), k);
                    even[k] = scale * (u * a[k] - v * b[k]);
                    odd[k] = scale * (u * b[k] + v * a[k]);
                }
            }
            scratch::with(2 * half * rows, |halves| {
                let (cosine, sine) = halves.split_at_mut(half * rows);
                for (table, part, target) in [
                    (fourier_table.cosines(), &*even, &mut *cosine),
                    (fourier_table.sines(), &*odd, &mut *sine),
                ] {
                    let part = Factor::transposed(Matrix::new(part, rows, half));
                    multiply(
                        table,
                        part,
                        half,
                        MatrixMut::new(target, half, rows),
                        Into::Overwrite,
                    );
                }
                for (k, (cosine, sine)) in cosine.chunks(rows).zip(sine.chunks(rows)).enumerate() {
                    vector::sum_of_two(result.row(k), cosine, sine);
                    if let Some(mirror) = fourier_table.mirror(k) {
                        vector::difference(result.row(mirror), cosine, sine);
                    }
                }
            });
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

    /// `y[i, d]` = sum over runs r of node i of `vectors[row of r, d]` (`G[end of r, d]` -
    /// `G[start of r, d]`), G the prefix sums of `kernel` [l, d] over its rows: `vectors` is [m,
    /// d] and constant, y is [n, d]. Slots without a run count as zero vectors. The gradient goes
    /// to the kernel only.
    pub fn run_kernel(&mut self, kernel: Var, vectors: Var, runs: Runs) -> Var {
        let (slots, width) = self.shape(kernel);
        assert_eq!(self.shape(vectors).1, width, "vectors of {width} dimensions");
        assert!(runs.runs.len().is_multiple_of(3), "three numbers per run");
        let prefix = self.emit(slots + 1, 2 * width);
        let out = self.emit(runs.offsets.len() - 1, width);
        let (read, [mut prefix, result]) = self.forward([prefix, out]);
        let kernel_values = read.matrix(kernel);
        prefix_sums(kernel_values, &mut prefix);
        let prefix = prefix.as_ref();
        let resolved = ResolvedRuns::new(&read, runs, vectors);
        let work = resolved.runs.len() * width;
        parallel::rows(result, 16, work, |first, part| {
            apply_runs(part, first, resolved, kernel_values, prefix);
        });
        self.record(out, &[kernel], || RunKernel { kernel, vectors, runs, out }.into());
        out
    }
}

/// Row j of `prefix` = [high | low]: the sum of the first j rows of the kernel, in two `f32` parts.
/// With one part the difference of two neighbours would have the rounding error of the whole sum.
fn prefix_sums(kernel: Matrix<'_>, prefix: &mut MatrixMut<'_>) {
    prefix.row(0).fill(0.0);
    for j in 0..kernel.rows {
        let (before, after) = prefix.data.split_at_mut((j + 1) * prefix.stride);
        add_in_two_parts(&mut after[..prefix.stride], &before[j * prefix.stride..], kernel.row(j));
    }
}

multiversion! {
    fn add_in_two_parts(next: &mut [f32], sum: &[f32], g: &[f32]) {
        let ((high, low), (next_high, next_low)) = (sum.split_at(g.len()), next.split_at_mut(g.len()));
        for ((((high, low), next_high), next_low), &g) in high.iter().zip(low).zip(next_high).zip(next_low).zip(g) {
            let total = f64::from(*high) + f64::from(*low) + f64::from(g);
            *next_high = total as f32;
            *next_low = (total - f64::from(*next_high)) as f32;
        }
    }
}

#[derive(Clone, Copy)]
struct ResolvedRuns<'b> {
    offsets: &'b [u32],
    runs: &'b [[u32; 3]],
    vectors: Matrix<'b>,
}

/// So many runs ahead a vector is asked for: they lie anywhere in a table larger than the caches.
const AHEAD: usize = 3;

impl<'b> ResolvedRuns<'b> {
    fn new(read: &crate::workspace::Reader<'b>, runs: Runs, vectors: Var) -> Self {
        let (triples, _) = read.indices(runs.runs).as_chunks();
        Self { offsets: read.indices(runs.offsets), runs: triples, vectors: read.matrix(vectors) }
    }

    /// The numbers of a node's runs.
    #[inline(always)]
    fn of(&self, node: usize) -> std::ops::Range<usize> {
        self.offsets[node] as usize..self.offsets[node + 1] as usize
    }

    /// A run's vector, first slot and end.
    #[inline(always)]
    fn run(&self, r: usize) -> (&'b [f32], usize, usize) {
        if let Some(&[later, ..]) = self.runs.get(r + AHEAD) {
            prefetch(self.vectors.row(later as usize));
        }
        let [row, start, end] = self.runs[r];
        (self.vectors.row(row as usize), start as usize, end as usize)
    }
}

multiversion! {
    fn apply_runs(out: MatrixMut<'_>, first: usize, runs: ResolvedRuns<'_>, kernel: Matrix<'_>, prefix: Matrix<'_>) {
        let mut out = out;
        let width = out.cols;
        for i in 0..out.rows {
            let row = out.row(i);
            row.fill(0.0);
            for r in runs.of(first + i) {
                let (vector, start, end) = runs.run(r);
                // An active node has many runs of one slot, which need no sums.
                if end == start + 1 {
                    for ((y, &p), &g) in row.iter_mut().zip(vector).zip(kernel.row(start)) {
                        *y = p.mul_add(g, *y);
                    }
                    continue;
                }
                let (start_high, start_low) = prefix.row(start).split_at(width);
                let (end_high, end_low) = prefix.row(end).split_at(width);
                for (((((y, &p), &sh), &sl), &eh), &el) in
                    row.iter_mut().zip(vector).zip(start_high).zip(start_low).zip(end_high).zip(end_low)
                {
                    *y = p.mul_add((eh - sh) + (el - sl), *y);
                }
            }
        }
    }
}

impl FoldFilter {
    /// With dE = (cosine transform of dg's even part) / l, dO = (sine transform of its odd part) /
    /// l and u, v, a, b as in [`Tape::fold_filter`]: du = dE a + dO b, dv = dO a - dE b, da = sum
    /// over d of dE u + dO v, db = sum over d of dO u - dE v.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let fourier = &read.fourier[self.fourier];
        let (re, im) = (read.matrix(self.real), read.matrix(self.imaginary));
        let (rows, half) = (re.rows, fourier.half());
        let (a, b) = read.flat(self.spectrum).split_at(half);
        let memory = backward.scratch.floats.take(4 * rows * half + 4 * half);
        let (halves, memory) = memory.split_at_mut(2 * rows * half);
        let (parts, spectra) = memory.split_at_mut(2 * rows * half);
        let (cosine, sine) = halves.split_at_mut(rows * half);
        let (even, odd) = parts.split_at_mut(rows * half);
        let dg = backward.grads.own(self.out);
        let dg = dg.as_ref();
        for (k, (cosine, sine)) in cosine.chunks_mut(rows).zip(sine.chunks_mut(rows)).enumerate() {
            match fourier.mirror(k) {
                Some(mirror) => {
                    vector::sum_of_two(cosine, dg.row(k), dg.row(mirror));
                    vector::difference(sine, dg.row(k), dg.row(mirror));
                }
                None => {
                    cosine.copy_from_slice(dg.row(k));
                    sine.copy_from_slice(dg.row(k));
                }
            }
        }
        for (part, table, target) in
            [(&*cosine, fourier.cosines(), &mut *even), (&*sine, fourier.sines(), &mut *odd)]
        {
            let part = Factor::transposed(Matrix::new(part, half, rows));
            multiply(part, table, half, MatrixMut::new(target, rows, half), Into::Overwrite);
        }
        vector::scale(parts, 1.0 / fourier.length as f32);
        let (even, odd) = parts.split_at(rows * half);
        let parts = || even.chunks(half).zip(odd.chunks(half)).enumerate();
        if backward.grads.wants(self.real) {
            let mut dre = backward.grads.target(self.real);
            for (i, (even, odd)) in parts() {
                fourier.add_mirrored(dre.row(i), 1.0, |k| even[k] * a[k] + odd[k] * b[k]);
            }
        }
        if backward.grads.wants(self.imaginary) {
            let mut dim = backward.grads.target(self.imaginary);
            for (i, (even, odd)) in parts() {
                fourier.add_mirrored(dim.row(i), -1.0, |k| odd[k] * a[k] - even[k] * b[k]);
            }
        }
        if backward.grads.wants(self.sum) {
            spectra.fill(0.0);
            let (dspectrum, dparts) = spectra.split_at_mut(2 * half);
            let (da, db) = dspectrum.split_at_mut(half);
            for (i, (even, odd)) in parts() {
                for k in 0..half {
                    let (u, v) = fourier.even_and_odd(re.row(i), im.row(i), k);
                    da[k] += even[k] * u + odd[k] * v;
                    db[k] += odd[k] * u - even[k] * v;
                }
            }
            let (deven, dodd) = dparts.split_at_mut(half);
            for (part, table, target) in
                [(&*da, fourier.cosines(), &mut *deven), (&*db, fourier.sines(), &mut *dodd)]
            {
                let part = Factor::of(Matrix::new(part, 1, half));
                multiply(part, table, half, MatrixMut::new(target, 1, half), Into::Overwrite);
            }
            fourier.add_parts(backward.grads.target(self.sum).row(0), deven, dodd);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RunKernel {
    kernel: Var,
    vectors: Var,
    runs: Runs,
    pub out: Var,
}

/// Parts of the nodes whose differences are summed separately. Fixed, so that the order of
/// additions is.
const PARTS: usize = 4;

impl RunKernel {
    /// `dG[ends of r]` += `dy[i]` p and `dG[start of r]` -= the same; `dg[j]` += sum over t > j of
    /// `dG[t]`.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let resolved = ResolvedRuns::new(&backward.read, self.runs, self.vectors);
        let (dy, mut dg) = backward.grads.pair(self.out, self.kernel);
        let (slots, width) = (dg.rows, dg.cols);
        if width == 0 || slots == 0 || dy.rows == 0 {
            return;
        }
        // Parts of as many runs each, not as many nodes: a busy node has a hundred times the runs
        // of a quiet one.
        let total_runs = resolved.runs.len();
        let part_start = |part: usize| {
            let before = (total_runs * part / PARTS) as u32;
            resolved.offsets[..dy.rows].partition_point(|&offset| offset < before)
        };
        let size = (slots + 1) * width;
        let partial = backward.scratch.floats.take(PARTS * size);
        parallel::chunks(partial, size, 2 * total_runs * width, |part, differences| {
            differences.fill(0.0);
            let to = if part + 1 == PARTS { dy.rows } else { part_start(part + 1) };
            for node in part_start(part)..to {
                add_differences(differences, dy.row(node), resolved, node);
            }
        });
        let (total, others) = partial.split_at_mut(size);
        for part in others.chunks(size) {
            vector::add(total, part);
        }
        for j in (0..slots).rev() {
            let after = &mut total[(j + 1) * width..];
            if j + 1 < slots {
                let (this, next) = after.split_at_mut(width);
                vector::add(this, &next[..width]);
            }
            vector::add(dg.row(j), &after[..width]);
        }
    }
}

multiversion! {
    /// Where one run ends and the next begins, their two terms are added at once.
    fn add_differences(differences: &mut [f32], gradient: &[f32], runs: ResolvedRuns<'_>, node: usize) {
        let width = gradient.len();
        let mut open: Option<(&[f32], usize)> = None;
        for r in runs.of(node) {
            let (vector, start, end) = runs.run(r);
            assert!(start < end, "a run ends after it starts");
            let target = &mut differences[end * width..][..width];
            match open {
                Some((newer, at)) if at == end => {
                    for (((to, &g), &p), &q) in target.iter_mut().zip(gradient).zip(vector).zip(newer) {
                        *to = g.mul_add(p - q, *to);
                    }
                }
                _ => {
                    for ((to, &g), &p) in target.iter_mut().zip(gradient).zip(vector) {
                        *to = g.mul_add(p, *to);
                    }
                    close(differences, gradient, open);
                }
            }
            open = Some((vector, start));
        }
        close(differences, gradient, open);
    }
}

/// Takes the last run's term away where it starts.
#[inline(always)]
fn close(differences: &mut [f32], gradient: &[f32], open: Option<(&[f32], usize)>) {
    if let Some((vector, start)) = open {
        let target = &mut differences[start * gradient.len()..][..gradient.len()];
        for ((to, &g), &p) in target.iter_mut().zip(gradient).zip(vector) {
            *to = (-g).mul_add(p, *to);
        }
    }
}
