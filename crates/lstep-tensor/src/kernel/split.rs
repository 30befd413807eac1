//! Matmul of split numbers: x = h + l + rest, where h is x and l is x - h, each rounded to eight
//! significant bits (bf16).
//!
//! A B is then (A_h + A_l)(B_h + B_l) without A_l B_l, right to about 16 bits. The processor's
//! matrix unit multiplies such numbers, at its best, sixteen times as fast as vectors multiply f32,
//! so three products instead of one still are faster, packing included.
//!
//! The definition, whatever computes it: C begins with zero or what it was. For each 32 steps of
//! depth, the last of which may be filled up with zeros, the products l h, h h and h l (of A and B)
//! are added to C one after the other; each is the sum of two chains of fused multiply-adds from
//! zero, one over the first 16 steps and one over the others. Numbers below the smallest normal one
//! count as zero. `amx.rs` has the unit do that; [`emulate`] is the same in plain code, for other
//! processors.
//!
//! Both factors are packed into tiles of 16 lines (rows of A, columns of B) by 32 steps, a step and
//! the sixteenth after it in one word of 32 bits.

use std::ops::Range;

use super::gemm::{Factor, Kernel};
use super::scratch;
use crate::matrix::MatrixMut;
use crate::parallel;

/// Lines of a tile, and words of a line.
const LINES: usize = 16;
/// Steps of depth in a tile: two in a word.
const STEPS: usize = 2 * LINES;
/// Words of a tile.
const TILE: usize = LINES * LINES;
/// Rows, or columns, of C that are made at once: two tiles.
pub(super) const SIDE: usize = 2 * LINES;
/// Words of a side for 32 steps: the h of both tiles, then their l.
pub(super) const GROUP: usize = 4 * TILE;

/// Whether this processor multiplies split numbers by a unit of its own.
pub fn has_matrix_unit() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return super::amx::is_usable();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

/// [`Matmul::Bf16x2`](super::gemm::Matmul::Bf16x2), by the matrix unit if there is one.
pub(super) struct Split {
    #[cfg_attr(
        not(all(target_arch = "x86_64", target_os = "linux")),
        expect(dead_code, reason = "there is no other way than the plain one")
    )]
    unit: bool,
}

impl Split {
    pub fn new() -> Split {
        Split { unit: has_matrix_unit() }
    }
}

/// 32 x 32 numbers of C and what they are made of.
pub(super) struct Square<'b> {
    /// Both packed sides, as long as each other: a number of [`GROUP`]s.
    pub a: &'b [f32],
    pub b: &'b [f32],
    /// C from its first number on, at least `31 * stride + 32` numbers.
    pub c: &'b mut [f32],
    pub stride: usize,
    pub add: bool,
}

impl Kernel for Split {
    const ROWS_PER_TASK: usize = SIDE;
    const DEPTH_UNIT: usize = STEPS;

    fn packed_len(&self, depth: usize, n: usize) -> usize {
        n.div_ceil(SIDE) * side_len(depth)
    }

    fn pack(
        &self,
        b: Factor<'_>,
        from: usize,
        depth: usize,
        n: usize,
        packed: &mut [f32],
        share: bool,
    ) {
        let packed = &mut packed[..self.packed_len(depth, n)];
        let lines = Lines { data: b.data, line_stride: b.column_stride, step_stride: b.row_stride };
        // Moving a number takes as long as several operations on it.
        let work = if share { 4 * packed.len() } else { 0 };
        parallel::chunks(packed, side_len(depth), work, |index, side| {
            let first = index * SIDE;
            pack_side(
                lines,
                first..n.min(first + SIDE),
                from..from + depth,
                Order::StepsOfLines,
                side,
            );
        });
    }

    fn multiply(
        &self,
        a: Factor<'_>,
        first_row: usize,
        depth: Range<usize>,
        packed: &[f32],
        c: &mut MatrixMut<'_>,
        add: bool,
    ) {
        let side = side_len(depth.len());
        assert!(packed.len() >= self.packed_len(depth.len(), c.cols));
        let lines = Lines { data: a.data, line_stride: a.row_stride, step_stride: a.column_stride };
        let square = |square: Square<'_>| {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if self.unit {
                return super::amx::square(square);
            }
            emulate(square.a, square.b, square.c, square.stride, square.add);
        };
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        let _configured = self.unit.then(super::amx::Configured::new);
        scratch::with(side + SIDE * SIDE, |memory| {
            let (of_a, edge) = memory.split_at_mut(side);
            for row in (0..c.rows).step_by(SIDE) {
                let rows = SIDE.min(c.rows - row);
                let first = first_row + row;
                pack_side(lines, first..first + rows, depth.clone(), Order::LinesOfSteps, of_a);
                for (b, column) in packed.chunks_exact(side).zip((0..c.cols).step_by(SIDE)) {
                    let columns = SIDE.min(c.cols - column);
                    let (stride, a) = (c.stride, &*of_a);
                    if rows == SIDE && columns == SIDE {
                        square(Square {
                            a,
                            b,
                            c: &mut c.data[row * stride + column..],
                            stride,
                            add,
                        });
                        continue;
                    }
                    // A square that reaches over the edge of C is made beside it.
                    if add {
                        edge.fill(0.0);
                        for (i, line) in edge.chunks_exact_mut(SIDE).take(rows).enumerate() {
                            line[..columns]
                                .copy_from_slice(&c.data[(row + i) * stride + column..][..columns]);
                        }
                    }
                    square(Square { a, b, c: edge, stride: SIDE, add });
                    for (i, line) in edge.chunks_exact(SIDE).take(rows).enumerate() {
                        c.data[(row + i) * stride + column..][..columns]
                            .copy_from_slice(&line[..columns]);
                    }
                }
            }
        });
    }
}

/// Words of a packed side.
fn side_len(depth: usize) -> usize {
    depth.div_ceil(STEPS) * GROUP
}

/// A factor as lines: step k of line i is `data[i * line_stride + k * step_stride]`. One of the
/// strides is 1.
#[derive(Clone, Copy)]
struct Lines<'a> {
    data: &'a [f32],
    line_stride: usize,
    step_stride: usize,
}

/// What lies side by side in a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The words of a line, as the unit wants A.
    LinesOfSteps,
    /// The same word of all lines, as the unit wants B.
    StepsOfLines,
}

/// Packs up to 32 lines; what is missing to 32 lines and to a multiple of 32 steps is zero.
fn pack_side(
    lines: Lines<'_>,
    range: Range<usize>,
    depth: Range<usize>,
    order: Order,
    side: &mut [f32],
) {
    for (group, step) in side.chunks_exact_mut(GROUP).zip(depth.clone().step_by(STEPS)) {
        let (high, low) = group.split_at_mut(2 * TILE);
        let steps = step..depth.end.min(step + STEPS);
        for (tile, (high, low)) in
            high.chunks_exact_mut(TILE).zip(low.chunks_exact_mut(TILE)).enumerate()
        {
            let first = range.start + tile * LINES;
            let count = range.end.saturating_sub(first).min(LINES);
            if count < LINES || steps.len() < STEPS {
                high.fill(0.0);
                low.fill(0.0);
            }
            if count == 0 {
                continue;
            }
            let source = &lines.data[first * lines.line_stride + steps.start * lines.step_stride..];
            let natural = if lines.step_stride == 1 {
                split_lines(source, lines.line_stride, count, steps.len(), high, low);
                Order::LinesOfSteps
            } else {
                split_steps(source, lines.step_stride, count, steps.len(), high, low);
                Order::StepsOfLines
            };
            if natural != order {
                transpose(high);
                transpose(low);
            }
        }
    }
}

/// x rounded to eight significant bits, to even.
#[inline(always)]
fn rounded(x: f32) -> u32 {
    let bits = x.to_bits();
    bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000
}

/// h and l of x in their upper halves.
#[inline(always)]
fn parts(x: f32) -> (u32, u32) {
    let high = rounded(x);
    (high, rounded(x - f32::from_bits(high)))
}

/// The words of 16 steps and the 16 after them, or of one step and the sixteenth after it for 16
/// lines.
#[inline(always)]
fn pack_words(earlier: &[f32; LINES], later: &[f32; LINES], high: &mut [f32], low: &mut [f32]) {
    for ((high, low), (&x, &y)) in high.iter_mut().zip(low).zip(earlier.iter().zip(later)) {
        let ((h, l), (later_h, later_l)) = (parts(x), parts(y));
        *high = f32::from_bits(h >> 16 | later_h);
        *low = f32::from_bits(l >> 16 | later_l);
    }
}

/// Up to 16 numbers, and zeros. A copy of known length is no call.
#[inline(always)]
fn sixteen(values: &[f32]) -> [f32; LINES] {
    if let Some(whole) = values.first_chunk() {
        return *whole;
    }
    let mut end = [0.0; LINES];
    end[..values.len()].copy_from_slice(values);
    end
}

multiversion! {
    /// Lines whose steps lie side by side: word w of line i goes to place `16 i + w`.
    fn split_lines(source: &[f32], stride: usize, count: usize, steps: usize, high: &mut [f32], low: &mut [f32]) {
        let lines = high.chunks_exact_mut(LINES).zip(low.chunks_exact_mut(LINES));
        for (i, (high, low)) in lines.take(count).enumerate() {
            let (earlier, later) = source[i * stride..][..steps].split_at(steps.min(LINES));
            pack_words(&sixteen(earlier), &sixteen(later), high, low);
        }
    }
}

multiversion! {
    /// Lines that lie side by side, a step on each: word w of line i goes to place `16 w + i`.
    fn split_steps(source: &[f32], stride: usize, count: usize, steps: usize, high: &mut [f32], low: &mut [f32]) {
        let words = high.chunks_exact_mut(LINES).zip(low.chunks_exact_mut(LINES));
        for (w, (high, low)) in words.take(steps).enumerate() {
            let later = if w + LINES < steps { &source[(w + LINES) * stride..][..count] } else { &[] };
            pack_words(&sixteen(&source[w * stride..][..count]), &sixteen(later), high, low);
        }
    }
}

/// Exchanges lines and words of a tile.
fn transpose(tile: &mut [f32]) {
    let tile: &mut [f32; TILE] = tile.try_into().expect("a tile");
    #[cfg(target_arch = "x86_64")]
    if super::simd::level() == super::simd::Level::Avx512 {
        // SAFETY: `level` has seen AVX-512 on this processor.
        return unsafe { super::gemm_x86::transpose_sixteen(tile) };
    }
    for i in 0..LINES {
        for j in 0..i {
            tile.swap(i * LINES + j, j * LINES + i);
        }
    }
}

/// A number the unit works with: zero below the smallest normal one.
#[inline(always)]
fn flushed(x: f32) -> f32 {
    if x.to_bits() & 0x7f80_0000 == 0 { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

/// Where h and l of a group lie: the products in their order, as places in the group of A and of B.
const PRODUCTS: [[usize; 2]; 3] = [[2 * TILE, 0], [0, 0], [0, 2 * TILE]];

multiversion! {
    /// A square in plain code.
    fn emulate(a: &[f32], b: &[f32], c: &mut [f32], stride: usize, add: bool) {
        for i in 0..SIDE {
            for half in 0..2 {
                let c = &mut c[i * stride + half * LINES..][..LINES];
                let mut sums = [0.0_f32; LINES];
                if add {
                    sums.copy_from_slice(c);
                    sums.iter_mut().for_each(|sum| *sum = flushed(*sum));
                }
                for (a, b) in a.chunks_exact(GROUP).zip(b.chunks_exact(GROUP)) {
                    for [of_a, of_b] in PRODUCTS {
                        let line = &a[of_a + i * LINES..][..LINES];
                        let tile = &b[of_b + half * TILE..][..TILE];
                        let (mut first, mut second) = ([0.0_f32; LINES], [0.0_f32; LINES]);
                        for (word, others) in line.iter().zip(tile.chunks_exact(LINES)) {
                            let [x, y] = halves(*word);
                            for ((first, second), &other) in first.iter_mut().zip(&mut second).zip(others) {
                                let [u, v] = halves(other);
                                *first = flushed(x.mul_add(u, *first));
                                *second = flushed(y.mul_add(v, *second));
                            }
                        }
                        for (sum, (first, second)) in sums.iter_mut().zip(first.iter().zip(&second)) {
                            *sum = flushed(*sum + flushed(first + second));
                        }
                    }
                }
                c.copy_from_slice(&sums);
            }
        }
    }
}

/// The two steps of a word.
#[inline(always)]
fn halves(word: f32) -> [f32; 2] {
    let bits = word.to_bits();
    [flushed(f32::from_bits(bits << 16)), flushed(f32::from_bits(bits & 0xffff_0000))]
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
