//! Dropout whose masks are a function of seed, step, operation and place: nothing is stored,
//! nothing depends on threads.

use crate::backward::Backward;
use crate::parallel;
use crate::tape::{Tape, Var};

/// A mask: element `i` is kept if its hash is at least the threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    key: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl Mask {
    /// The factor of element `index`: 0, or 1 / (1 - rate).
    #[inline(always)]
    fn factor(self, index: u32) -> f32 {
        let hash = mix(mix(index ^ self.key[0]).wrapping_add(self.key[1]));
        if hash >= self.threshold { self.scale } else { 0.0 }
    }
}

/// A 32-bit integer hash of low bias (Wellons' `lowbias32`); it vectorises.
#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// `SplitMix64`'s output function.
fn mix_wide(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

multiversion! {
    /// `out[i]` += `x[i]` `m[from + i]`.
    pub(crate) fn add_masked(out: &mut [f32], x: &[f32], mask: Mask, from: u32) {
        for (i, (out, &x)) in out.iter_mut().zip(x).enumerate() {
            *out = x.mul_add(mask.factor(from.wrapping_add(i as u32)), *out);
        }
    }
}

multiversion! {
    /// `values[i]` *= `m[from + i]`.
    pub(crate) fn apply_mask(values: &mut [f32], mask: Mask, from: u32) {
        for (i, value) in values.iter_mut().enumerate() {
            *value *= mask.factor(from.wrapping_add(i as u32));
        }
    }
}

multiversion! {
    /// `values[i]` *= `m[from + i]` and `slopes[i]` *= `m[from + i]`.
    pub(crate) fn apply_mask_to_both(values: &mut [f32], slopes: &mut [f32], mask: Mask, from: u32) {
        for (i, (value, slope)) in values.iter_mut().zip(slopes).enumerate() {
            let factor = mask.factor(from.wrapping_add(i as u32));
            *value *= factor;
            *slope *= factor;
        }
    }
}

impl Tape<'_> {
    /// y = x m / (1 - rate), m 0 with probability `rate` and 1 otherwise: [n, c] to [n, c]. Without
    /// training it is x itself.
    ///
    /// # Panics
    /// If `rate` is not in [0, 1).
    pub fn dropout(&mut self, x: Var, rate: f32) -> Var {
        let Some(mask) = self.mask(rate) else {
            return x;
        };
        let (rows, cols) = self.shape(x);
        let out = self.emit(rows, cols);
        let (read, [result]) = self.forward([out]);
        let x_values = read.matrix(x);
        parallel::rows(result, super::ROWS, 8 * rows * cols, |first, mut part| {
            for i in 0..part.rows {
                part.row(i).copy_from_slice(x_values.row(first + i));
                apply_mask(part.row(i), mask, ((first + i) * cols) as u32);
            }
        });
        self.record(out, &[x], || Dropout { x, mask, out }.into());
        out
    }

    /// The mask of the next dropout of this step, or none at inference or rate 0.
    pub(crate) fn mask(&mut self, rate: f32) -> Option<Mask> {
        assert!((0.0..1.0).contains(&rate), "a dropout rate of {rate} is not in [0, 1)");
        let draw = self.draw?;
        if rate == 0.0 {
            return None;
        }
        self.dropouts += 1;
        let key = mix_wide(mix_wide(mix_wide(draw.seed) ^ draw.step) ^ self.dropouts);
        Some(Mask {
            key: [key as u32, (key >> 32) as u32],
            threshold: (f64::from(rate) * f64::from(u32::MAX)) as u32,
            scale: 1.0 / (1.0 - rate),
        })
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Dropout {
    x: Var,
    mask: Mask,
    pub out: Var,
}

impl Dropout {
    /// dx += dy m / (1 - rate).
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let (dy, dx) = backward.grads.pair(self.out, self.x);
        parallel::rows(dx, super::ROWS, 8 * dy.rows * dy.cols, |first, mut dx| {
            for i in 0..dx.rows {
                add_masked(dx.row(i), dy.row(first + i), self.mask, ((first + i) * dy.cols) as u32);
            }
        });
    }
}
