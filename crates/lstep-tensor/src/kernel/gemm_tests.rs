use proptest::prelude::*;

use super::*;
use crate::kernel::simd::{Level, limit_level};

fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// The definition: one chain of fused multiply-adds per element.
fn plain(a: Factor<'_>, b: Factor<'_>, depth: usize, c: &mut [f32], n: usize) {
    for (i, row) in c.chunks_exact_mut(n).enumerate() {
        for (j, sum) in row.iter_mut().enumerate() {
            for k in 0..depth {
                let x = a.data[i * a.row_stride + k * a.column_stride];
                let y = b.data[k * b.row_stride + j * b.column_stride];
                *sum = x.mul_add(y, *sum);
            }
        }
    }
}

/// A product of any shape.
pub struct Case {
    pub m: usize,
    pub n: usize,
    pub depth: usize,
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub add: bool,
    pub seed: u32,
}

impl Case {
    /// Compares a kind of products with its definition on every instruction set, bit for bit.
    /// `values` makes some numbers from a seed.
    pub fn check(
        &self,
        products: Matmul,
        values: fn(usize, u32) -> Vec<f32>,
        plain: fn(Factor<'_>, Factor<'_>, usize, &mut [f32], usize),
    ) {
        let Case { m, n, depth, a_transposed, b_transposed, add, seed } = *self;
        let a = values(m * depth + 1, seed);
        let b = values(n * depth + 1, seed ^ 1);
        let a =
            Matrix { data: &a, rows: m, cols: depth, stride: if a_transposed { m } else { depth } };
        let b =
            Matrix { data: &b, rows: depth, cols: n, stride: if b_transposed { depth } else { n } };
        let a = if a_transposed { Factor::transposed(a) } else { Factor::of(a) };
        let b = if b_transposed { Factor::transposed(b) } else { Factor::of(b) };
        let start = values(m * n, seed ^ 2);
        let mut expected = if add { start.clone() } else { vec![0.0; m * n] };
        plain(a, b, depth, &mut expected, n);
        for limit in [Level::Avx512, Level::Avx2, Level::Portable] {
            limit_level(limit);
            let mut c = start.clone();
            let into = if add { Into::Add } else { Into::Overwrite };
            multiply_as(products, a, b, depth, MatrixMut::new(&mut c, m, n), into);
            assert_eq!(c, expected, "{limit:?}");
        }
        limit_level(Level::Avx512);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_product_has_the_bits_of_the_plain_chain_on_every_instruction_set(
        m in 1_usize..70, n in 1_usize..130, depth in prop_oneof![4 => 0_usize..90, 1 => 500_usize..1_100],
        a_transposed: bool, b_transposed: bool, add: bool, seed: u32,
    ) {
        let case = Case { m, n, depth, a_transposed, b_transposed, add, seed };
        case.check(Matmul::F32, values, plain);
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_around_it(
        m in 1_usize..200, n in 1_usize..100, depth in 1_usize..1400, from in 0_usize..200, count in 1_usize..20, seed: u32,
    ) {
        let from = from % m;
        let count = count.min(m - from);
        let a = values(m * depth, seed);
        let b = values(n * depth, seed ^ 1);
        let weights = Factor::transposed(Matrix::new(&b, n, depth));
        let mut all = vec![0.0; m * n];
        multiply(Factor::of(Matrix::new(&a, m, depth)), weights, depth, MatrixMut::new(&mut all, m, n), Into::Overwrite);
        let mut some = vec![0.0; count * n];
        let rows = Matrix::new(&a[from * depth..(from + count) * depth], count, depth);
        multiply(Factor::of(rows), weights, depth, MatrixMut::new(&mut some, count, n), Into::Overwrite);
        prop_assert_eq!(&all[from * n..(from + count) * n], &some[..]);
    }
}
