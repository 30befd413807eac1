//! Time encodings: cosines of time differences, fixed and summed in one pass, or trainable.
//!
//! Differences are `f64` and so are products with frequencies and the reduction to half a turn: at
//! a difference of a year in seconds the fastest frequency has turned five million times, and an
//! `f32` product would be noise.

use super::segment::{Entries, SEGMENTS, Segments, Weighting, add_weight_gradients};
use crate::backward::Backward;
use crate::kernel::{math, scratch, vector};
use crate::parallel;
use crate::tape::{Indices, Tape, Times, Var};

/// Cosines per block: two vectors of `f64`, one of `f32`.
const BLOCK: usize = 16;

#[derive(Clone, Copy)]
pub(crate) struct TimeSum {
    times: Times,
    frequencies: Times,
    offsets: Indices,
    weights: Var,
    slots: Option<Indices>,
    pub out: Var,
}

impl Tape<'_> {
    /// `y[j, k]` = cos(`times[j]` `frequencies[k]`): [n, d], a constant.
    pub fn time_encoding(&mut self, times: Times, frequencies: Times) -> Var {
        let out = self.emit(times.len, frequencies.len);
        let (read, [result]) = self.forward([out]);
        let (times, frequencies) = (read.times(times), read.times(frequencies));
        let work = 8 * result.rows * result.cols;
        parallel::rows(result, 32, work, |first, mut part| {
            for i in 0..part.rows {
                encode(part.row(i), times[first + i], frequencies);
            }
        });
        out
    }

    /// `y[i]` = sum over entries j of segment i of w_j cos(`times[j]` frequencies): [segments, d].
    /// Gradients go to learnable weights only; the encodings themselves are never stored.
    pub fn time_sum(
        &mut self,
        times: Times,
        offsets: Indices,
        frequencies: Times,
        weighting: Weighting,
    ) -> Var {
        let out = self.emit(offsets.len() - 1, frequencies.len);
        self.time_sum_into(out, times, offsets, frequencies, weighting);
        out
    }

    /// [`Tape::time_sum`], written into `out` [segments, d].
    pub fn time_sum_into(
        &mut self,
        out: Var,
        times: Times,
        offsets: Indices,
        frequencies: Times,
        weighting: Weighting,
    ) {
        assert_eq!(self.shape(out), (offsets.len() - 1, frequencies.len), "room for the sums");
        let (read, [result]) = self.forward([out]);
        let entries = Entries::new(&read, Segments { rows: None, offsets }, weighting);
        let (values, frequency) = (read.times(times), read.times(frequencies));
        assert!(entries.len() <= values.len(), "offsets reach past the list of times");
        let work = 8 * entries.len() * frequency.len();
        parallel::rows(result, SEGMENTS, work, |first, mut part| {
            for i in 0..part.rows {
                let range = entries.range(first + i);
                let len = range.len();
                sum_one(part.row(i), &values[range.clone()], frequency, &|j| {
                    entries.weight(range.start + j, len)
                });
            }
        });
        if let Weighting::By { weights, slots } = weighting {
            self.record(out, &[weights], || {
                TimeSum { times, frequencies, offsets, weights, slots, out }.into()
            });
        }
    }

    /// Two sums in one pass over the cosines: `plain` with weights 1 and `weighted` with w_j =
    /// `weights[slots[j]]`, both [segments, d].
    #[allow(clippy::too_many_arguments, reason = "two results of one pass")]
    pub fn time_sums_into(
        &mut self,
        plain: Var,
        weighted: Var,
        times: Times,
        offsets: Indices,
        frequencies: Times,
        weights: Var,
        slots: Option<Indices>,
    ) {
        assert_eq!(
            self.shape(plain),
            (offsets.len() - 1, frequencies.len),
            "room for the plain sums"
        );
        assert_eq!(
            self.shape(weighted),
            (offsets.len() - 1, frequencies.len),
            "room for the weighted sums"
        );
        let segments = offsets.len() - 1;
        let width = frequencies.len;
        // The two results may be columns of wider matrices; pairs of rows are made in a dense one
        // and copied, which costs a hundredth of the cosines.
        let both = self.emit(segments, 2 * width);
        let (read, [result]) = self.forward([both]);
        let weighting = Weighting::By { weights, slots };
        let entries = Entries::new(&read, Segments { rows: None, offsets }, weighting);
        let (values, frequency) = (read.times(times), read.times(frequencies));
        assert!(entries.len() <= values.len(), "offsets reach past the list of times");
        parallel::rows(result, SEGMENTS, 8 * entries.len() * width, |first, mut part| {
            for i in 0..part.rows {
                let range = entries.range(first + i);
                let (a, b) = part.row(i).split_at_mut(width);
                sum_both(a, b, &values[range.clone()], frequency, &|j| {
                    entries.weight(range.start + j, 1)
                });
            }
        });
        for (out, from) in [(plain, 0), (weighted, width)] {
            let half = self.columns(both, from..from + width);
            let (read, [result]) = self.forward([out]);
            super::map(result, [read.matrix(half)], 1, |out, [x]| out.copy_from_slice(x));
        }
        self.record(weighted, &[weights], || {
            TimeSum { times, frequencies, offsets, weights, slots, out: weighted }.into()
        });
    }

    /// `y[j, k]` = cos(`times[j]` `omega[k]` + `phase[k]`) with gradients to both: `omega` and
    /// `phase` are [1, d], y is [n, d].
    pub fn trainable_time_encoding(&mut self, times: Times, omega: Var, phase: Var) -> Var {
        let width = self.shape(omega).1;
        assert_eq!(
            (self.shape(omega), self.shape(phase)),
            ((1, width), (1, width)),
            "frequency and phase are rows"
        );
        let out = self.emit(times.len, width);
        let (read, [result]) = self.forward([out]);
        let (values, frequency, shift) = (read.times(times), read.flat(omega), read.flat(phase));
        let work = 8 * result.rows * result.cols;
        parallel::rows(result, 32, work, |first, mut part| {
            for i in 0..part.rows {
                encode_shifted(part.row(i), values[first + i], frequency, shift);
            }
        });
        self.record(out, &[omega, phase], || TimeEncode { times, omega, phase, out }.into());
        out
    }
}

/// Splits rows of `d` values into blocks of 16, the last one padded, and calls the block function
/// on each.
macro_rules! in_blocks {
    ($frequencies:expr, |$block:ident, $from:ident, $width:ident| $body:expr) => {
        let mut $from = 0;
        while $from < $frequencies.len() {
            let $width = ($frequencies.len() - $from).min(BLOCK);
            let mut padded = [0.0_f64; BLOCK];
            padded[..$width].copy_from_slice(&$frequencies[$from..$from + $width]);
            let $block = &padded;
            $body;
            $from += BLOCK;
        }
    };
}

fn encode(out: &mut [f32], time: f64, frequencies: &[f64]) {
    in_blocks!(frequencies, |block, from, width| {
        let mut cosines = [0.0; BLOCK];
        add_block(&mut cosines, &[time], block);
        out[from..from + width].copy_from_slice(&cosines[..width]);
    });
}

/// out = sum over j of weight(j) cos(`times[j]` frequencies).
fn sum_one(
    out: &mut [f32],
    times: &[f64],
    frequencies: &[f64],
    weight: &(dyn Fn(usize) -> f32 + Sync),
) {
    scratch::with(times.len(), |weights| {
        for (j, w) in weights.iter_mut().enumerate() {
            *w = weight(j);
        }
        in_blocks!(frequencies, |block, from, width| {
            let mut sums = [0.0; BLOCK];
            add_weighted_block(&mut sums, times, weights, block);
            out[from..from + width].copy_from_slice(&sums[..width]);
        });
    });
}

fn sum_both(
    plain: &mut [f32],
    weighted: &mut [f32],
    times: &[f64],
    frequencies: &[f64],
    weight: &(dyn Fn(usize) -> f32 + Sync),
) {
    scratch::with(times.len(), |weights| {
        for (j, w) in weights.iter_mut().enumerate() {
            *w = weight(j);
        }
        in_blocks!(frequencies, |block, from, width| {
            let (mut a, mut b) = ([0.0; BLOCK], [0.0; BLOCK]);
            add_both_blocks(&mut a, &mut b, times, weights, block);
            plain[from..from + width].copy_from_slice(&a[..width]);
            weighted[from..from + width].copy_from_slice(&b[..width]);
        });
    });
}

multiversion! {
    fn add_block(sums: &mut [f32; BLOCK], times: &[f64], frequencies: &[f64; BLOCK]) {
        for &time in times {
            for i in 0..BLOCK {
                sums[i] += math::cosine(time * frequencies[i]);
            }
        }
    }
}

multiversion! {
    fn add_weighted_block(sums: &mut [f32; BLOCK], times: &[f64], weights: &[f32], frequencies: &[f64; BLOCK]) {
        for (&time, &weight) in times.iter().zip(weights) {
            for i in 0..BLOCK {
                sums[i] = math::cosine(time * frequencies[i]).mul_add(weight, sums[i]);
            }
        }
    }
}

multiversion! {
    fn add_both_blocks(
        plain: &mut [f32; BLOCK],
        weighted: &mut [f32; BLOCK],
        times: &[f64],
        weights: &[f32],
        frequencies: &[f64; BLOCK],
    ) {
        for (&time, &weight) in times.iter().zip(weights) {
            for i in 0..BLOCK {
                let cosine = math::cosine(time * frequencies[i]);
                plain[i] += cosine;
                weighted[i] = cosine.mul_add(weight, weighted[i]);
            }
        }
    }
}

multiversion! {
    fn encode_shifted(out: &mut [f32], time: f64, omega: &[f32], phase: &[f32]) {
        for ((out, &omega), &phase) in out.iter_mut().zip(omega).zip(phase) {
            *out = math::cosine(time.mul_add(f64::from(omega), f64::from(phase)));
        }
    }
}

multiversion! {
    /// <gradient, cos(time frequencies)>.
    fn cosine_dot(gradient: &[f32], time: f64, frequencies: &[f64]) -> f32 {
        let mut lanes = [0.0_f32; BLOCK];
        let (g_blocks, g_rest) = gradient.as_chunks::<BLOCK>();
        let (f_blocks, f_rest) = frequencies.as_chunks::<BLOCK>();
        for (g, f) in g_blocks.iter().zip(f_blocks) {
            for i in 0..BLOCK {
                lanes[i] = g[i].mul_add(math::cosine(time * f[i]), lanes[i]);
            }
        }
        // The rest padded with zeros, so that it takes one vector step and not up to fifteen scalar
        // ones.
        let (mut g, mut f) = ([0.0; BLOCK], [0.0; BLOCK]);
        g[..g_rest.len()].copy_from_slice(g_rest);
        f[..f_rest.len()].copy_from_slice(f_rest);
        for i in 0..BLOCK {
            lanes[i] = g[i].mul_add(math::cosine(time * f[i]), lanes[i]);
        }
        lanes.iter().sum()
    }
}

impl TimeSum {
    /// `dweights[slots[j]]` += <`dy[i]`, cos(`times[j]` frequencies)>, i the segment of j; the
    /// cosines are made again.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let weighting = Weighting::By { weights: self.weights, slots: self.slots };
        let entries =
            Entries::new(&read, Segments { rows: None, offsets: self.offsets }, weighting);
        let (times, frequencies) = (read.times(self.times), read.times(self.frequencies));
        let (dy, mut dw) = backward.grads.pair(self.out, self.weights);
        let dw = dw.flat().expect("weights are a dense vector");
        let dot = |i: usize, j: usize| cosine_dot(dy.row(i), times[j], frequencies);
        add_weight_gradients(entries, dw, 8 * frequencies.len(), &mut backward.scratch.floats, dot);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct TimeEncode {
    times: Times,
    omega: Var,
    phase: Var,
    pub out: Var,
}

/// Rows merged into one partial sum of the gradients of frequency and phase.
const ROWS: usize = 64;

impl TimeEncode {
    /// With s = -sin(`times[j]` omega + phase) `dy[j]`: domega += `times[j]` s, dphase += s.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let (times, omega, phase) =
            (read.times(self.times), read.flat(self.omega), read.flat(self.phase));
        let width = omega.len();
        if width == 0 {
            return;
        }
        let dy = backward.grads.own(self.out);
        let dy = dy.as_ref();
        let size = times.len().div_ceil(ROWS) * 2 * width;
        let partial = backward.scratch.floats.take(size);
        parallel::chunks(partial, 2 * width, 10 * times.len() * width, |block, sums| {
            sums.fill(0.0);
            let (domega, dphase) = sums.split_at_mut(width);
            let from = block * ROWS;
            for (j, &time) in times.iter().enumerate().skip(from).take(ROWS) {
                shifted_chain(domega, dphase, dy.row(j), time, omega, phase);
            }
        });
        for (var, from) in [(self.omega, 0), (self.phase, width)] {
            if backward.grads.wants(var) {
                let mut target = backward.grads.target(var);
                for sums in backward.scratch.floats.as_slice()[..size].chunks(2 * width) {
                    vector::add(target.row(0), &sums[from..from + width]);
                }
            }
        }
    }
}

multiversion! {
    fn shifted_chain(domega: &mut [f32], dphase: &mut [f32], dy: &[f32], time: f64, omega: &[f32], phase: &[f32]) {
        let narrow = time as f32;
        for ((((domega, dphase), &dy), &omega), &phase) in domega.iter_mut().zip(dphase).zip(dy).zip(omega).zip(phase) {
            let slope = -math::sine(time.mul_add(f64::from(omega), f64::from(phase))) * dy;
            *domega = slope.mul_add(narrow, *domega);
            *dphase += slope;
        }
    }
}
