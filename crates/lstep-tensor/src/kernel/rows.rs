//! All products of a few rows with a few others, of some dozen numbers each, where packing for a
//! matrix product would cost more than it.
//!
//! A product is summed in the order of [`vector::dot`]. Left to the compiler, adding up 16 lanes
//! takes longer than multiplying, and makes it keep them in pairs; with AVX-512 four products are
//! added up together.

use super::vector::{LANES, dot};

/// `out[i, j]` = sum over k of `a[i, k]` `b[j, k]`, for as many rows as there are; the rest of
/// `out` stays as it is.
///
/// # Panics
/// If the width is 0 or no multiple of 16.
pub fn row_products(a: &[f32], b: &[f32], width: usize, out: &mut [f32]) {
    assert!(width > 0 && width.is_multiple_of(LANES), "rows of {width} numbers");
    let rows = a.chunks_exact(width).flat_map(|x| b.chunks_exact(width).map(move |y| (x, y)));
    let rows = rows.zip(out.iter_mut());
    #[cfg(target_arch = "x86_64")]
    if super::simd::level() == super::simd::Level::Avx512 {
        // SAFETY: `level` has seen the features on this processor; a row is a multiple of 16
        // numbers, as asserted.
        return unsafe { x86::in_fours(rows) };
    }
    rows.for_each(|((x, y), out)| *out = dot(x, y));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::dot;
    use std::arch::x86_64::*;

    /// Pairs of rows, each with the place of its product.
    ///
    /// # Safety
    /// As for [`four_products`].
    pub unsafe fn in_fours<'a>(
        mut rows: impl Iterator<Item = ((&'a [f32], &'a [f32]), &'a mut f32)>,
    ) {
        while let Some(first) = rows.next() {
            let four = [Some(first), rows.next(), rows.next(), rows.next()];
            if let [Some(p), Some(q), Some(r), Some(s)] = four {
                // SAFETY: the caller's promise.
                let sums = unsafe { four_products([p.0, q.0, r.0, s.0]) };
                [*p.1, *q.1, *r.1, *s.1] = sums;
            } else {
                four.into_iter().flatten().for_each(|((x, y), out)| *out = dot(x, y));
            }
        }
    }

    /// # Safety
    /// All rows must have the same length, a multiple of 16, and the processor must have AVX-512 F
    /// and DQ.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn four_products(rows: [(&[f32], &[f32]); 4]) -> [f32; 4] {
        let mut quarters = [_mm_setzero_ps(); 4];
        for ((x, y), quarter) in rows.iter().zip(&mut quarters) {
            let mut lanes = _mm512_setzero_ps();
            for (x, y) in x.chunks_exact(16).zip(y.chunks_exact(16)) {
                // SAFETY: both have 16 numbers.
                let (x, y) = unsafe { (_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(y.as_ptr())) };
                lanes = _mm512_fmadd_ps(x, y, lanes);
            }
            // Lanes i and i + 8, then i and i + 4.
            let half =
                _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps::<1>(lanes));
            *quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
        }
        let [mut l0, mut l1, mut l2, mut l3] = quarters;
        _MM_TRANSPOSE4_PS(&mut l0, &mut l1, &mut l2, &mut l3);
        // Lanes i and i + 2, then both, of all four products.
        let sums = _mm_add_ps(_mm_add_ps(l0, l2), _mm_add_ps(l1, l3));
        let mut out = [0.0; 4];
        // SAFETY: it has room for four numbers.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), sums) };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_rows_have_the_bits_of_one_product_each() {
        let numbers = |shift: f32| -> Vec<f32> {
            (0..3 * 48).map(|i| (i as f32 * 0.7 + shift).sin()).collect()
        };
        let (a, b) = (numbers(0.0), numbers(1.0));
        for rows in 1..=3 {
            let b = &b[..rows * 48];
            let mut products = [0.0; 9];
            row_products(&a, b, 48, &mut products);
            for (place, &product) in products[..3 * rows].iter().enumerate() {
                let (x, y) = (&a[place / rows * 48..][..48], &b[place % rows * 48..][..48]);
                assert_eq!(product, dot(x, y), "{place} of {rows}");
            }
            let before = products;
            row_products(&[], b, 48, &mut products);
            row_products(&a, &[], 48, &mut products);
            assert_eq!(products, before, "no row, no product");
        }
    }
}
