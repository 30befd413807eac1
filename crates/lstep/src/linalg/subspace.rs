//! The largest eigenvalues of a symmetric matrix that is too large to be written down, and their
//! eigenvectors: subspace iteration with Chebyshev filters (Zhou and Saad, 2007), which finds
//! repeated eigenvalues as often as they are there, as a Lanczos process from one vector does not.
//!
//! As in the dense solver there are only `+ - * /` and square roots of f64. Threads share columns or
//! rows, never a sum, so their number changes no bit.

use super::{Eigen, eigen};
use crate::rng::KeyedRng;
use rayon::prelude::*;

/// Degree of the filter. Higher ones cost more products and fewer orthogonalisations.
const DEGREE: usize = 30;
/// How far from its eigenvalue times itself a vector's image may be, at an eigenvalue of at most 1:
/// far below what positions of 32 bits can tell.
const RESIDUAL: f64 = 1e-9;
/// Rounds after which vectors are taken as they are. Only the last of a dense cluster at the end of
/// what is wanted take as many; whatever they are then, they are orthonormal and the same anywhere.
const ROUNDS: usize = 60;
/// Rows that one task works on.
const ROWS: usize = 1024;

/// The `count` largest eigenvalues of a symmetric matrix `[n x n]` with eigenvalues in [-1, 1],
/// largest first, and their eigenvectors. `product` multiplies it with a vector.
///
/// Takes 24 n (count + guards) bytes, with a quarter of `count` as guards, and as much time for each
/// round as 30 (count + guards) products and 8 n (count + guards)^2 operations.
pub(crate) fn largest(
    n: usize,
    count: usize,
    product: impl Fn(&[f64], &mut [f64]) + Sync,
) -> Eigen {
    // Vectors at the end of the subspace converge slowly, so there are some that nobody needs.
    let size = (count + (count / 4).max(16)).min(n);
    let mut vectors: Vec<Vec<f64>> = (0..size as u64)
        .map(|column| {
            let mut draw = KeyedRng::new(&[0x5eed, column]);
            (0..n).map(|_| 2.0 * draw.unit() - 1.0).collect()
        })
        .collect();
    orthonormalise(&mut vectors);
    let mut values = rotate(&mut vectors, &product).values;
    for _ in 0..ROUNDS {
        // The filter keeps what is above and makes small what is between the ends.
        let (low, high) = (-1.0, values[size - 1]);
        if size == n || high - low < 1e-12 {
            break;
        }
        vectors.par_iter_mut().for_each(|vector| filter(vector, (low, high), &product));
        orthonormalise(&mut vectors);
        let found = rotate(&mut vectors, &product);
        values = found.values;
        if found.residuals[..count.min(size)].iter().all(|residual| *residual <= RESIDUAL) {
            break;
        }
    }
    let count = count.min(size);
    values.truncate(count);
    Eigen { values, vectors: vectors[..count].concat() }
}

/// Multiplies a vector with the Chebyshev polynomial of the matrix that is at most 1 between `low`
/// and `high` and grows fastest above.
fn filter(vector: &mut Vec<f64>, (low, high): (f64, f64), product: &impl Fn(&[f64], &mut [f64])) {
    let (middle, half) = ((high + low) / 2.0, (high - low) / 2.0);
    let mut next = vec![0.0; vector.len()];
    product(vector, &mut next);
    next.iter_mut().zip(&*vector).for_each(|(image, x)| *image = (*image - middle * x) / half);
    let mut image = vec![0.0; vector.len()];
    for _ in 1..DEGREE {
        product(&next, &mut image);
        // T(k + 1) = 2 x T(k) - T(k - 1), in place of the oldest.
        for ((before, now), image) in vector.iter_mut().zip(&next).zip(&image) {
            *before = 2.0 * (image - middle * now) / half - *before;
        }
        std::mem::swap(vector, &mut next);
        // The values grow by the same factor for all, which is divided out before it overflows.
        let largest = next.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if largest > 1e100 {
            next.iter_mut().for_each(|x| *x /= largest);
            vector.iter_mut().for_each(|x| *x /= largest);
        }
    }
    std::mem::swap(vector, &mut next);
}

/// Makes vectors orthonormal, one after the other, each against all before it, twice: once leaves
/// what rounding has lost.
fn orthonormalise(vectors: &mut [Vec<f64>]) {
    for column in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(column);
        let vector = &mut rest[0];
        for attempt in 0.. {
            let start = dot(vector, vector).sqrt();
            if start > 0.0 {
                vector.iter_mut().for_each(|x| *x /= start);
            }
            for _ in 0..2 {
                let along: Vec<f64> = before.par_iter().map(|other| dot(other, vector)).collect();
                vector.par_chunks_mut(ROWS).enumerate().for_each(|(chunk, part)| {
                    for (other, along) in before.iter().zip(&along) {
                        let other = &other[chunk * ROWS..][..part.len()];
                        part.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
                    }
                });
            }
            let length = dot(vector, vector).sqrt();
            // Nothing is left of a vector that lies within the others: any other one will do.
            if length > 1e-10 || attempt == 3 {
                vector.iter_mut().for_each(|x| *x /= length.max(f64::MIN_POSITIVE));
                break;
            }
            let mut draw = KeyedRng::new(&[0xa9a1, column as u64, attempt]);
            vector.iter_mut().for_each(|x| *x = 2.0 * draw.unit() - 1.0);
        }
    }
}

/// What [`rotate`] finds: values, largest first, and how far each vector is from an eigenvector.
struct Ritz {
    values: Vec<f64>,
    residuals: Vec<f64>,
}

/// Turns orthonormal vectors within their space so that they are as near to eigenvectors as it has
/// any.
fn rotate(vectors: &mut Vec<Vec<f64>>, product: &(impl Fn(&[f64], &mut [f64]) + Sync)) -> Ritz {
    let (size, n) = (vectors.len(), vectors[0].len());
    let image = |vector: &Vec<f64>| {
        let mut image = vec![0.0; n];
        product(vector, &mut image);
        image
    };
    let images: Vec<Vec<f64>> = vectors.par_iter().map(image).collect();
    let rows = vectors.par_iter().enumerate().map(|(row, vector)| {
        (0..=row).map(|column| dot(vector, &images[column])).collect::<Vec<f64>>()
    });
    let mut matrix = vec![0.0; size * size];
    for (row, values) in rows.collect::<Vec<_>>().into_iter().enumerate() {
        for (column, value) in values.into_iter().enumerate() {
            (matrix[row * size + column], matrix[column * size + row]) = (value, value);
        }
    }
    let small = eigen(matrix, size);
    let values: Vec<f64> = small.values.iter().rev().copied().collect();
    let turned = |from: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let turns: Vec<&[f64]> = small.vectors.chunks_exact(size).rev().collect();
        let turned = turns.into_par_iter().map(|turn| {
            let mut sum = vec![0.0; n];
            for (share, column) in turn.iter().zip(from) {
                super::add(&mut sum, *share, column);
            }
            sum
        });
        turned.collect()
    };
    let images = turned(&images);
    *vectors = turned(vectors);
    let residual = |((vector, image), value): ((&Vec<f64>, &Vec<f64>), &f64)| {
        let squares = vector.iter().zip(image).map(|(x, y)| (y - value * x) * (y - value * x));
        squares.sum::<f64>().sqrt()
    };
    let residuals = vectors.iter().zip(&images).zip(&values).map(residual).collect();
    Ritz { values, residuals }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix with eigenvalues in [-1, 1]: rows of an orthogonal one, scaled.
    fn with_eigenvalues(values: &[f64]) -> Vec<f64> {
        let n = values.len();
        let mut basis: Vec<Vec<f64>> = (0..n as u64)
            .map(|row| {
                let mut draw = KeyedRng::new(&[7, row]);
                (0..n).map(|_| draw.unit() - 0.5).collect()
            })
            .collect();
        orthonormalise(&mut basis);
        let mut matrix = vec![0.0; n * n];
        for (value, vector) in values.iter().zip(&basis) {
            for i in 0..n {
                for j in 0..n {
                    matrix[i * n + j] += value * vector[i] * vector[j];
                }
            }
        }
        matrix
    }

    #[test]
    fn repeated_and_crowded_eigenvalues_are_found_as_often_as_they_are_there() {
        let n = 120;
        let values: Vec<f64> = (0..n)
            .map(|place| match place {
                0..3 => 1.0,
                3..9 => 0.9,
                9..20 => 0.8 - 1e-3 * f64::from(place),
                _ => 0.7 - 0.013 * f64::from(place),
            })
            .collect();
        let matrix = with_eigenvalues(&values);
        let n = n as usize;
        let product = |from: &[f64], to: &mut [f64]| {
            to.iter_mut().zip(matrix.chunks_exact(n)).for_each(|(to, row)| *to = dot(row, from));
        };
        let found = largest(n, 25, product);
        assert_eq!((found.values.len(), found.vectors.len()), (25, 25 * n));
        for (found, expected) in found.values.iter().zip(&values) {
            assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        }
        let vectors: Vec<&[f64]> = found.vectors.chunks_exact(n).collect();
        for (place, vector) in vectors.iter().enumerate() {
            for (other, second) in vectors.iter().enumerate() {
                let expected = f64::from(u8::from(place == other));
                assert!((dot(vector, second) - expected).abs() < 1e-10, "{place} and {other}");
            }
            let mut image = vec![0.0; n];
            product(vector, &mut image);
            super::super::add(&mut image, -found.values[place], vector);
            assert!(dot(&image, &image).sqrt() < 1e-8, "eigenvector {place}");
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let matrix = with_eigenvalues(
            &(0..60).map(|place| 1.0 - 0.03 * f64::from(place)).collect::<Vec<_>>(),
        );
        let solve = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("threads").install(|| {
                largest(60, 5, |from, to| {
                    to.iter_mut()
                        .zip(matrix.chunks_exact(60))
                        .for_each(|(to, row)| *to = dot(row, from));
                })
                .vectors
            })
        };
        let bits = |vectors: Vec<f64>| vectors.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(solve(1)), bits(solve(3)));
    }

    #[test]
    fn all_of_a_small_matrix_can_be_asked_for() {
        let found = largest(2, 5, |from, to| (to[0], to[1]) = (from[1], from[0]));
        assert!((found.values[0] - 1.0).abs() < 1e-12 && (found.values[1] + 1.0).abs() < 1e-12);
    }
}
