//! A growing buffer of `f32` whose start lies on a cache line.
//!
//! `Vec<f32>` only promises four-byte alignment, and a large one starts 16 bytes after a page:
//! every 64-byte vector load would then touch two cache lines. The buffer never shrinks, so a
//! steady step allocates nothing.

const LANES: usize = 16;

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LANES]);

/// A 64-byte aligned, growing, never shrinking buffer of `f32`.
#[derive(Clone, Default)]
pub(crate) struct Slab {
    lines: Vec<Line>,
}

impl Slab {
    /// The smallest multiple of a cache line that holds `floats` values.
    pub fn round_up(floats: usize) -> usize {
        floats.next_multiple_of(LANES)
    }

    /// Makes room for `floats` values; new room is zero, old values stay.
    pub fn reserve(&mut self, floats: usize) {
        let lines = floats.div_ceil(LANES);
        if lines > self.lines.len() {
            self.lines.resize(lines, Line([0.0; LANES]));
        }
    }

    /// The bytes held, used or not.
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` around an array of 16 `f32` and exactly as large, so the
        // lines are initialised, contiguous `f32`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LANES) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LANES)
        }
    }

    /// The first `floats` values, after making room for them. Their content is whatever was left
    /// there.
    pub fn take(&mut self, floats: usize) -> &mut [f32] {
        self.reserve(floats);
        &mut self.as_mut_slice()[..floats]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_starts_on_a_cache_line_and_keeps_its_values_when_it_grows() {
        let mut slab = Slab::default();
        slab.take(3).copy_from_slice(&[1.0, 2.0, 3.0]);
        slab.reserve(100_000);
        assert_eq!(slab.as_slice().as_ptr() as usize % 64, 0);
        assert_eq!(&slab.as_slice()[..4], &[1.0, 2.0, 3.0, 0.0]);
    }
}
