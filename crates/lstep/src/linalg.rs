//! Eigenvalues and eigenvectors of a dense symmetric matrix: Householder tridiagonalisation, then
//! implicit QL. `subspace.rs` finds some of them for a matrix that is only known by its products.
//!
//! Only `+ - * /` and square roots of f64, in one fixed order: the bits are the same on every
//! machine and with any number of threads. That matters because the eigenvectors of a repeated
//! eigenvalue, of which sparse graphs are full, are decided by rounding alone. The alternative,
//! `faer`, chooses its instructions by processor and cannot promise it; its smallest set of
//! features is 48 crates and 133 CPU seconds of building. It is faster, 0.18 s against 0.55 s for n
//! = 800, for something that is done once in a run.

mod subspace;

pub(crate) use subspace::largest;

/// Eigenvalues, in ascending order where nothing else is said, and their eigenvectors.
pub(super) struct Eigen {
    pub values: Vec<f64>,
    /// Row-major: row `i` is the eigenvector of `values[i]`, of length 1.
    pub vectors: Vec<f64>,
}

/// Solves `A v = lambda v` for a symmetric `A` `[n x n]` in O(n^3) time and with a second matrix of
/// its size.
pub(super) fn eigen(mut matrix: Vec<f64>, n: usize) -> Eigen {
    assert_eq!(matrix.len(), n * n, "the matrix has to be square");
    let (mut diagonal, mut beside) = tridiagonal(&mut matrix, n);
    let basis = basis(matrix, &beside.scales, n);
    let mut vectors = Strips::columns(&basis, n);
    drop(basis);
    implicit_ql(&mut diagonal, &mut beside.values, &mut vectors);

    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[i].total_cmp(&diagonal[j]));
    Eigen {
        values: order.iter().map(|&i| diagonal[i]).collect(),
        vectors: order.iter().flat_map(|&i| vectors.row(i)).collect(),
    }
}

/// The off-diagonal of the tridiagonal matrix, and the scale of each reflection that led to it.
struct Beside {
    /// `n` numbers, the last is zero.
    values: Vec<f64>,
    scales: Vec<f64>,
}

/// Turns `A` into `T = Q^T A Q` with `Q = H_0 H_1 ...`, `H_k = I - s_k v_k v_k^T`.
///
/// Gives the diagonal of `T` and what is beside it; `v_k` is left in row `k` of the matrix, right
/// of the diagonal.
fn tridiagonal(matrix: &mut [f64], n: usize) -> (Vec<f64>, Beside) {
    let mut diagonal = vec![0.0; n];
    let mut beside = Beside { values: vec![0.0; n], scales: vec![0.0; n] };
    let mut image = vec![0.0; n];
    for k in 0..n {
        diagonal[k] = matrix[k * n + k];
        let (above, below) = matrix.split_at_mut((k + 1) * n);
        let v = &mut above[k * n + k + 1..];
        let Some(&first) = v.first() else { break };
        let tail: f64 = v[1..].iter().map(|x| x * x).sum();
        if tail < 1e-200 {
            // Nothing to annihilate, or so little that its scale would overflow: H_k is the
            // identity.
            beside.values[k] = first;
            continue;
        }
        let length = (first * first + tail).sqrt();
        let target = if first > 0.0 { -length } else { length };
        v[0] = first - target;
        let scale = 2.0 / (v[0] * v[0] + tail);
        (beside.values[k], beside.scales[k]) = (target, scale);

        // A - v w^T - w v^T with w = p - (s/2)(p.v) v, p = s A v. The matrix is kept whole, so all
        // passes run along rows.
        let w = &mut image[k + 1..];
        w.fill(0.0);
        for (row, &x) in below.chunks_exact(n).zip(&*v) {
            add(w, scale * x, &row[k + 1..]);
        }
        let along: f64 = w.iter().zip(&*v).map(|(w, v)| w * v).sum();
        add(w, -0.5 * scale * along, v);
        for ((row, &x), &y) in below.chunks_exact_mut(n).zip(&*v).zip(&*w) {
            for ((a, &v), &w) in row[k + 1..].iter_mut().zip(&*v).zip(&*w) {
                *a -= x * w + y * v;
            }
        }
    }
    (diagonal, beside)
}

/// `Q` from the reflections that [`tridiagonal`] left in the rows of `matrix`.
fn basis(matrix: Vec<f64>, scales: &[f64], n: usize) -> Vec<f64> {
    let mut q = vec![0.0; n * n];
    for i in 0..n {
        q[i * n + i] = 1.0;
    }
    let mut image = vec![0.0; n];
    // Q = H_0 (H_1 (... I)): from the last on, a reflection meets only the rows and columns behind
    // its number.
    for k in (0..n).rev().filter(|&k| scales[k] != 0.0) {
        let v = &matrix[k * n + k + 1..(k + 1) * n];
        let below = &mut q[(k + 1) * n..];
        let image = &mut image[k + 1..];
        image.fill(0.0);
        for (row, &x) in below.chunks_exact(n).zip(v) {
            add(image, x, &row[k + 1..]);
        }
        for (row, &x) in below.chunks_exact_mut(n).zip(v) {
            add(&mut row[k + 1..], -scales[k] * x, image);
        }
    }
    q
}

/// Makes a tridiagonal matrix diagonal with Wilkinson's shifts, and turns the vectors along.
///
/// An off-diagonal is zero when it is below rounding next to the whole matrix: small eigenvalues
/// are found to an absolute, not a relative, precision, and a matrix with many zero eigenvalues
/// does not turn in its own rounding.
fn implicit_ql(d: &mut [f64], e: &mut [f64], vectors: &mut Strips) {
    let n = d.len();
    let negligible =
        f64::EPSILON * d.iter().zip(&*e).map(|(d, e)| d.abs() + e.abs()).fold(0.0, f64::max);
    let mut sweeps = Sweeps::default();
    for low in 0..n {
        for sweep in 0.. {
            assert!(
                sweep < 100,
                "implicit QL with Wilkinson's shifts converges for every finite matrix"
            );
            let high = (low..n - 1).find(|&i| e[i].abs() <= negligible).unwrap_or(n - 1);
            if high == low {
                break;
            }
            let g = (d[low + 1] - d[low]) / (2.0 * e[low]);
            let mut g = d[high] - d[low] + e[low] / (g + length(g, 1.0).copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            sweeps.begin(high);
            for i in (low..high).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = length(f, g);
                e[i + 1] = r;
                if r == 0.0 {
                    // The matrix falls apart here: what is left of it is looked at in the next
                    // sweep.
                    d[i + 1] -= p;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                sweeps.turns.push((c, s));
                if i == low {
                    d[low] -= p;
                    e[low] = g;
                }
            }
            e[high] = 0.0;
            // Enough for a strip to be worth fetching, few enough to stay in the cache beside it.
            if sweeps.turns.len() >= 1 << 14 {
                vectors.turn(&mut sweeps);
            }
        }
    }
    vectors.turn(&mut sweeps);
}

/// Rotations of neighbouring rows, to be done later.
#[derive(Default)]
struct Sweeps {
    /// The row at which a sweep begins, and the number of its first turn.
    begun: Vec<(usize, usize)>,
    /// Cosine and sine. A sweep turns rows `high` and `high - 1`, then `high - 1` and `high - 2`,
    /// and so on.
    turns: Vec<(f64, f64)>,
}

impl Sweeps {
    fn begin(&mut self, high: usize) {
        self.begun.push((high, self.turns.len()));
    }
}

const LANES: usize = 16;

/// A square matrix cut into strips of 16 columns, each strip contiguous: many sweeps pass over one
/// while it is in the cache.
struct Strips {
    n: usize,
    /// Strip after strip, `n` rows each; the last strip is padded with zeros.
    rows: Vec<[f64; LANES]>,
}

impl Strips {
    /// The columns of a row-major matrix become the rows of this one.
    fn columns(matrix: &[f64], n: usize) -> Self {
        let mut rows = vec![[0.0; LANES]; n.div_ceil(LANES) * n];
        for (j, row) in matrix.chunks_exact(n.max(1)).enumerate() {
            for (i, &value) in row.iter().enumerate() {
                rows[j / LANES * n + i][j % LANES] = value;
            }
        }
        Strips { n, rows }
    }

    fn row(&self, i: usize) -> impl Iterator<Item = f64> {
        self.rows.iter().skip(i).step_by(self.n).flatten().copied().take(self.n)
    }

    /// Does all sweeps, in order, and forgets them.
    fn turn(&mut self, sweeps: &mut Sweeps) {
        for strip in self.rows.chunks_exact_mut(self.n.max(1)) {
            for (i, &(high, first)) in sweeps.begun.iter().enumerate() {
                let end = sweeps.begun.get(i + 1).map_or(sweeps.turns.len(), |&(_, next)| next);
                let mut upper = strip[high];
                let mut row = high;
                for &(c, s) in &sweeps.turns[first..end] {
                    let lower = strip[row - 1];
                    for lane in 0..LANES {
                        strip[row][lane] = s * lower[lane] + c * upper[lane];
                        upper[lane] = c * lower[lane] - s * upper[lane];
                    }
                    row -= 1;
                }
                strip[row] = upper;
            }
        }
        sweeps.begun.clear();
        sweeps.turns.clear();
    }
}

/// `to += by * from`.
fn add(to: &mut [f64], by: f64, from: &[f64]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to += by * from;
    }
}

/// `sqrt(a^2 + b^2)` without overflow or underflow of the squares. Not `hypot`, whose last bit
/// depends on the platform.
fn length(a: f64, b: f64) -> f64 {
    let (small, large) = if a.abs() < b.abs() { (a.abs(), b.abs()) } else { (b.abs(), a.abs()) };
    if large == 0.0 { 0.0 } else { large * (1.0 + (small / large) * (small / large)).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symmetric(max: usize) -> impl Strategy<Value = (usize, Vec<f64>)> {
        // Small whole numbers: zeros, repeated eigenvalues and blocks are common.
        (0..=max)
            .prop_flat_map(|n| (Just(n), prop::collection::vec((-2..=2i8, 0..4u8), n * n)))
            .prop_map(|(n, drawn)| {
                let mut matrix = vec![0.0; n * n];
                for i in 0..n {
                    for j in 0..=i {
                        let (value, kept) = drawn[i * n + j];
                        let value = if kept == 0 { f64::from(value) } else { 0.0 };
                        (matrix[i * n + j], matrix[j * n + i]) = (value, value);
                    }
                }
                (n, matrix)
            })
    }

    fn check(matrix: &[f64], n: usize) {
        let found = eigen(matrix.to_vec(), n);
        assert!(found.values.is_sorted());
        for i in 0..n {
            let v = &found.vectors[i * n..(i + 1) * n];
            for j in 0..n {
                let image: f64 = (0..n).map(|k| matrix[j * n + k] * v[k]).sum();
                assert!(
                    (image - found.values[i] * v[j]).abs() < 1e-11,
                    "eigenvector {i}, component {j}"
                );
                let dot: f64 = (0..n).map(|k| v[k] * found.vectors[j * n + k]).sum();
                assert!(
                    (dot - f64::from(u8::from(i == j))).abs() < 1e-12,
                    "eigenvectors {i} and {j}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn eigenvectors_are_orthonormal_and_keep_their_direction((n, matrix) in symmetric(24)) {
            check(&matrix, n);
        }
    }

    #[test]
    fn all_ones_has_one_eigenvalue_n_and_the_rest_zero() {
        let values = eigen(vec![1.0; 900], 30).values;
        assert!(values[..29].iter().all(|value| value.abs() < 1e-13));
        assert!((values[29] - 30.0).abs() < 1e-12);
        check(&[1.0; 900], 30);
    }

    #[test]
    fn magnitudes_far_apart_give_no_nan() {
        for small in [1e-8, 1e-100, 1e-155, 1e-170, 1e-300] {
            check(&[1.0, small, small, small, small * small, 1e-12, small, 1e-12, -1e-300], 3);
        }
    }
}
