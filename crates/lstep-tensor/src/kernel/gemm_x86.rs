//! Tiles of the matrix product for AVX-512 and for AVX2 with FMA.
//!
//! Eight rows by three vectors of 16 use 24 of 32 registers for sums, six rows by two vectors of 8
//! use 12 of 16; the rest hold the row of B and one element of A, spread by the load itself. Four
//! rows by three vectors have 12 sums, too, but need all 16 registers, and a compiler then keeps one
//! sum in memory: every step waits for that store, and products take twice as long.

#![allow(clippy::needless_range_loop, reason = "registers are numbered by row and vector")]

use std::arch::x86_64::*;

use super::gemm::{Tile, Tiles};

macro_rules! table {
    ($tile:ident: $($rows:literal)*) => {{
        const RUN: &[[unsafe fn(Tile); 3]] = &[$([$tile::<$rows, 1>, $tile::<$rows, 2>, $tile::<$rows, 3>]),*];
        |rows, vectors| RUN[rows][vectors]
    }};
}

pub(crate) static AVX512: Tiles =
    Tiles { lanes: 16, vectors: 3, rows: 8, run: table!(avx512: 1 2 3 4 5 6 7 8) };

pub(crate) static AVX2: Tiles =
    Tiles { lanes: 8, vectors: 2, rows: 6, run: table!(avx2: 1 2 3 4 5 6) };

/// # Safety
/// The pointers of `tile` must be valid for its sizes and strides, and the processor must have
/// AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const ROWS: usize, const VECTORS: usize>(tile: Tile) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    let mut mask = [0_u16; VECTORS];
    for (v, mask) in mask.iter_mut().enumerate() {
        let left = tile.columns.saturating_sub(16 * v).min(16);
        *mask = ((1_u32 << left) - 1) as u16;
    }
    // SAFETY: the caller promises rows and depth as indexed here; the masks leave out columns that
    // do not exist.
    unsafe {
        if tile.add {
            for i in 0..ROWS {
                for v in 0..VECTORS {
                    sums[i][v] =
                        _mm512_maskz_loadu_ps(mask[v], tile.c.add(i * tile.c_row_stride + 16 * v));
                }
            }
        }
        let mut a = tile.a;
        let mut b = tile.b;
        for _ in 0..tile.depth {
            let mut row = [_mm512_setzero_ps(); VECTORS];
            for v in 0..VECTORS {
                row[v] = _mm512_loadu_ps(b.add(16 * v));
            }
            for i in 0..ROWS {
                let x = _mm512_set1_ps(*a.add(i * tile.a_row_stride));
                for v in 0..VECTORS {
                    sums[i][v] = _mm512_fmadd_ps(x, row[v], sums[i][v]);
                }
            }
            a = a.wrapping_add(tile.a_depth_stride);
            b = b.wrapping_add(16 * VECTORS);
        }
        for i in 0..ROWS {
            for v in 0..VECTORS {
                _mm512_mask_storeu_ps(
                    tile.c.add(i * tile.c_row_stride + 16 * v),
                    mask[v],
                    sums[i][v],
                );
            }
        }
    }
}

/// # Safety
/// The pointers of `tile` must be valid for its sizes and strides, and the processor must have AVX2
/// and FMA.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const ROWS: usize, const VECTORS: usize>(tile: Tile) {
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut mask = [_mm256_setzero_si256(); VECTORS];
    for (v, mask) in mask.iter_mut().enumerate() {
        let left = tile.columns.saturating_sub(8 * v).min(8) as i32;
        *mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lane);
    }
    // SAFETY: the caller promises rows and depth as indexed here; the masks leave out columns that
    // do not exist.
    unsafe {
        if tile.add {
            for i in 0..ROWS {
                for v in 0..VECTORS {
                    sums[i][v] =
                        _mm256_maskload_ps(tile.c.add(i * tile.c_row_stride + 8 * v), mask[v]);
                }
            }
        }
        let mut a = tile.a;
        let mut b = tile.b;
        for _ in 0..tile.depth {
            let mut row = [_mm256_setzero_ps(); VECTORS];
            for v in 0..VECTORS {
                row[v] = _mm256_loadu_ps(b.add(8 * v));
            }
            for i in 0..ROWS {
                let x = _mm256_set1_ps(*a.add(i * tile.a_row_stride));
                for v in 0..VECTORS {
                    sums[i][v] = _mm256_fmadd_ps(x, row[v], sums[i][v]);
                }
            }
            a = a.wrapping_add(tile.a_depth_stride);
            b = b.wrapping_add(8 * VECTORS);
        }
        for i in 0..ROWS {
            for v in 0..VECTORS {
                _mm256_maskstore_ps(tile.c.add(i * tile.c_row_stride + 8 * v), mask[v], sums[i][v]);
            }
        }
    }
}

/// `panel[k * width + i]` = `sources[i][k]` for i < 8 and k < depth rounded down to a multiple of
/// 8; returns that multiple.
///
/// Left to the compiler this is eight scalar loads and inserts per row, four times slower, and for
/// a small batch packing the weights is most of the product.
#[target_feature(enable = "avx2")]
pub(crate) fn transpose_eight(
    sources: &[&[f32]; 8],
    panel: &mut [f32],
    width: usize,
    depth: usize,
) -> usize {
    let whole = depth / 8 * 8;
    for k in (0..whole).step_by(8) {
        let mut r = [_mm256_setzero_ps(); 8];
        for i in 0..8 {
            // SAFETY: the slice has just been checked to hold eight values.
            r[i] = unsafe { _mm256_loadu_ps(sources[i][k..k + 8].as_ptr()) };
        }
        let mut t = [_mm256_setzero_ps(); 8];
        for i in (0..8).step_by(2) {
            t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        for i in [0, 4] {
            r[i] = _mm256_shuffle_ps::<0x44>(t[i], t[i + 2]);
            r[i + 1] = _mm256_shuffle_ps::<0xee>(t[i], t[i + 2]);
            r[i + 2] = _mm256_shuffle_ps::<0x44>(t[i + 1], t[i + 3]);
            r[i + 3] = _mm256_shuffle_ps::<0xee>(t[i + 1], t[i + 3]);
        }
        for i in 0..4 {
            t[i] = _mm256_permute2f128_ps::<0x20>(r[i], r[i + 4]);
            t[i + 4] = _mm256_permute2f128_ps::<0x31>(r[i], r[i + 4]);
        }
        for (i, row) in t.into_iter().enumerate() {
            // SAFETY: the slice has just been checked to hold eight values.
            unsafe {
                _mm256_storeu_ps(panel[(k + i) * width..(k + i) * width + 8].as_mut_ptr(), row);
            };
        }
    }
    whole
}

/// Exchanges rows and columns of 16 x 16 words.
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose_sixteen(tile: &mut [f32; 256]) {
    let mut r = [_mm512_setzero_ps(); 16];
    let mut t = r;
    for i in 0..16 {
        // SAFETY: row i of 16 rows of 16 words.
        r[i] = unsafe { _mm512_loadu_ps(tile.as_ptr().add(16 * i)) };
    }
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    // Words 4 l + c of rows i to i + 3, for the lanes l, in r[i + c].
    for i in (0..16).step_by(4) {
        r[i] = _mm512_shuffle_ps::<0x44>(t[i], t[i + 2]);
        r[i + 1] = _mm512_shuffle_ps::<0xee>(t[i], t[i + 2]);
        r[i + 2] = _mm512_shuffle_ps::<0x44>(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_shuffle_ps::<0xee>(t[i + 1], t[i + 3]);
    }
    for c in 0..4 {
        let (even, odd) = (
            _mm512_shuffle_f32x4::<0x88>(r[c], r[c + 4]),
            _mm512_shuffle_f32x4::<0xdd>(r[c], r[c + 4]),
        );
        let (more_even, more_odd) = (
            _mm512_shuffle_f32x4::<0x88>(r[c + 8], r[c + 12]),
            _mm512_shuffle_f32x4::<0xdd>(r[c + 8], r[c + 12]),
        );
        t[c] = _mm512_shuffle_f32x4::<0x88>(even, more_even);
        t[c + 8] = _mm512_shuffle_f32x4::<0xdd>(even, more_even);
        t[c + 4] = _mm512_shuffle_f32x4::<0x88>(odd, more_odd);
        t[c + 12] = _mm512_shuffle_f32x4::<0xdd>(odd, more_odd);
    }
    for (i, row) in t.into_iter().enumerate() {
        // SAFETY: row i of 16 rows of 16 words.
        unsafe { _mm512_storeu_ps(tile.as_mut_ptr().add(16 * i), row) };
    }
}
