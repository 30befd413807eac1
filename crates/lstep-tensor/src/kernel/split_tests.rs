use proptest::prelude::*;

use super::*;
use crate::kernel::gemm::tests::Case;
use crate::kernel::gemm::{Into, Matmul, multiply_as};
use crate::matrix::Matrix;

/// Numbers of very different sizes, zeros and numbers below the smallest normal one among them.
fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    (0..n)
        .map(|_| match next() % 16 {
            0 => 0.0,
            1 => next() as f32 * 1e-45,
            2 => (next() as f32 - 8_388_608.0) * 1e-23,
            _ => (next() as f32 - 8_388_608.0) / 8_388_608.0,
        })
        .collect()
}

/// The definition, number by number.
fn plain(a: Factor<'_>, b: Factor<'_>, depth: usize, c: &mut [f32], n: usize) {
    for (i, row) in c.chunks_exact_mut(n).enumerate() {
        for (j, sum) in row.iter_mut().enumerate() {
            *sum = flushed(*sum);
            for from in (0..depth).step_by(STEPS) {
                let steps = from..depth.min(from + STEPS);
                let of_a = |k: usize| parts(a.data[i * a.row_stride + k * a.column_stride]);
                let of_b = |k: usize| parts(b.data[k * b.row_stride + j * b.column_stride]);
                let low_high = |k: usize| (of_a(k).1, of_b(k).0);
                let high_high = |k: usize| (of_a(k).0, of_b(k).0);
                let high_low = |k: usize| (of_a(k).0, of_b(k).1);
                for product in [&low_high as &dyn Fn(usize) -> (u32, u32), &high_high, &high_low] {
                    let mut chains = [0.0_f32; 2];
                    for k in steps.clone() {
                        let (x, y) = product(k);
                        let chain = &mut chains[(k - from) / LINES];
                        let (x, y) = (flushed(f32::from_bits(x)), flushed(f32::from_bits(y)));
                        *chain = flushed(x.mul_add(y, *chain));
                    }
                    *sum = flushed(*sum + flushed(chains[0] + chains[1]));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_product_has_the_bits_of_its_definition_with_and_without_a_matrix_unit(
        m in 1_usize..80, n in 1_usize..80, depth in prop_oneof![4 => 1_usize..130, 1 => 500_usize..1_100],
        a_transposed: bool, b_transposed: bool, add: bool, seed: u32,
    ) {
        let case = Case { m, n, depth, a_transposed, b_transposed, add, seed };
        case.check(Matmul::Bf16x2, values, plain);
    }

    #[test]
    fn a_split_number_is_right_to_sixteen_bits(x in prop::num::f32::NORMAL) {
        prop_assume!(x.abs() > 1e-30 && x.abs() < 1e38);
        let (high, low) = parts(x);
        let error = f64::from(x) - f64::from(f32::from_bits(high)) - f64::from(f32::from_bits(low));
        prop_assert!(error.abs() <= f64::from(x.abs()) * 2.0_f64.powi(-17), "{x}: {error}");
    }
}

#[test]
fn a_product_of_split_numbers_is_near_the_exact_one() {
    let (m, n, depth) = (100, 90, 700);
    let uniform = |n: usize, seed: u32| -> Vec<f32> {
        (0..n as u32)
            .map(|i| {
                (i.wrapping_mul(2_654_435_761) ^ seed).wrapping_mul(40_503) as f32 / u32::MAX as f32
                    - 0.5
            })
            .collect()
    };
    let (a, b) = (uniform(m * depth, 1), uniform(n * depth, 2));
    let mut c = vec![0.0; m * n];
    let (x, y) =
        (Factor::of(Matrix::new(&a, m, depth)), Factor::transposed(Matrix::new(&b, n, depth)));
    multiply_as(Matmul::Bf16x2, x, y, depth, MatrixMut::new(&mut c, m, n), Into::Overwrite);
    let mut square_error = 0.0;
    for i in 0..m {
        for j in 0..n {
            let exact: f64 =
                (0..depth).map(|k| f64::from(a[i * depth + k]) * f64::from(b[j * depth + k])).sum();
            square_error += (f64::from(c[i * n + j]) - exact).powi(2);
        }
    }
    // Matmul are of size 1/12, their errors of a few parts in 2^18, and 700 independent ones add
    // up.
    let typical = (square_error / (m * n) as f64).sqrt();
    assert!(typical < 700_f64.sqrt() / 12.0 * 2.0_f64.powi(-16), "{typical}");
    assert!(typical > 0.0);
}
