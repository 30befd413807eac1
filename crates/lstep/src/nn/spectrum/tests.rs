use super::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// Sparse graphs of up to 30 nodes with repeated edges, self-loops, isolated nodes and many
/// components.
fn graph() -> impl Strategy<Value = (usize, Vec<(u32, u32)>)> {
    (1..=30usize).prop_flat_map(|n| {
        let node = 0..n as u32;
        (Just(n), prop::collection::vec((node.clone(), node), 0..2 * n))
    })
}

/// The normalised Laplacian written as its definition, over all nodes; and which nodes have
/// neighbours.
fn plain_laplacian(n: usize, edges: &[(u32, u32)]) -> (Vec<f64>, Vec<bool>) {
    let mut a = vec![0.0; n * n];
    for &(i, j) in edges.iter().filter(|(i, j)| i != j) {
        (a[i as usize * n + j as usize], a[j as usize * n + i as usize]) = (1.0, 1.0);
    }
    let degree: Vec<f64> = a.chunks_exact(n).map(|row| row.iter().sum()).collect();
    let mut l = vec![0.0; n * n];
    for i in (0..n).filter(|&i| degree[i] > 0.0) {
        for j in (0..n).filter(|&j| degree[j] > 0.0) {
            l[i * n + j] =
                f64::from(u8::from(i == j)) - a[i * n + j] / (degree[i] * degree[j]).sqrt();
        }
    }
    (l, degree.iter().map(|&degree| degree > 0.0).collect())
}

fn close(left: &[f64], right: &[f64], within: f64) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(a, b)| (a - b).abs() <= within)
}

/// A row-major [rows x width] matrix's column.
fn column(matrix: &[f32], width: usize, column: usize) -> Vec<f64> {
    matrix.chunks_exact(width).map(|row| f64::from(row[column])).collect()
}

#[test]
fn eigenvalues_equal_those_of_an_outside_program() {
    // `laplacian_eigenvalues` of the float64 test vectors: the first 6 events among 14 nodes.
    let edges = [(6, 8), (1, 10), (1, 11), (3, 8), (1, 9), (0, 11)];
    let expected = [0.0, 0.0, 0.422649730810374, 1.0, 1.0, 1.5773502691896255, 2.0, 2.0];
    assert!(close(&laplacian_eigenvalues(14, &edges), &expected, 1e-14));
}

#[test]
fn a_complete_graph_has_one_zero_and_n_over_n_minus_1_repeated() {
    let edges: Vec<(u32, u32)> = (0..7).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    let mut expected = [7.0 / 6.0; 7];
    expected[0] = 0.0;
    assert!(close(&laplacian_eigenvalues(7, &edges), &expected, 1e-14));
}

#[test]
fn the_path_of_three_has_known_positions() {
    // Eigenvalues 0, 1, 2 with (1, sqrt 2, 1)/2, (1, 0, -1)/sqrt 2 and (-1, sqrt 2, -1)/2; the
    // first is left out.
    let positions = laplacian_positions(3, &[(0, 1), (1, 2)], 4);
    let half = 0.5f64.sqrt();
    assert!(close(&column(&positions, 4, 0), &[half, 0.0, -half], 1e-7));
    assert!(close(&column(&positions, 4, 1), &[-0.5, half, -0.5], 1e-7));
    assert_eq!(column(&positions, 4, 2), [0.0; 3]);
    assert_eq!(column(&positions, 4, 3), [0.0; 3]);
}

#[test]
fn repeated_edges_turned_edges_and_self_loops_change_nothing() {
    let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)];
    let noisy = [(3, 0), (1, 0), (0, 1), (2, 2), (1, 2), (3, 2), (0, 2), (0, 1), (4, 4)];
    assert_eq!(laplacian_positions(5, &edges, 3), laplacian_positions(5, &noisy, 3));
    assert_eq!(random_walk_positions(5, &edges, 6), random_walk_positions(5, &noisy, 6));
}

#[test]
fn the_bits_are_the_same_on_every_machine() {
    // Stars and paths: 0, 1 and 2 are repeated, so that rounding alone decides on the basis.
    let edges: Vec<(u32, u32)> =
        (0..60).filter(|i| i % 10 != 9).map(|i| (i / 20 * 20 + i % 3, i + 1)).collect();
    let bytes: Vec<u8> =
        laplacian_positions(61, &edges, 40).iter().flat_map(|x| x.to_le_bytes()).collect();
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "d2928d4023e03d31e0d84473e613b450668df6e5d332939f3992f4ebd73011bb");
}

#[test]
fn no_nodes_no_edges_and_no_width_are_answered() {
    assert!(laplacian_eigenvalues(0, &[]).is_empty());
    assert!(laplacian_positions(0, &[], 3).is_empty());
    assert!(random_walk_positions(0, &[], 3).is_empty());
    assert!(laplacian_positions(2, &[(0, 1)], 0).is_empty());
    assert_eq!(laplacian_positions(2, &[(1, 1)], 2), [0.0; 4]);
    assert_eq!(random_walk_positions(2, &[(1, 1)], 2), [0.0; 4]);
}

#[test]
#[should_panic(expected = "an edge names node Some(2) of 2")]
fn an_edge_out_of_range_is_a_bug() {
    laplacian_positions(2, &[(0, 2)], 1);
}

#[test]
fn a_walk_on_a_triangle_returns_with_known_probabilities() {
    let positions = random_walk_positions(3, &[(0, 1), (1, 2), (2, 0)], 5);
    assert_eq!(positions, [[0.0, 0.5, 0.25, 0.375, 0.3125]; 3].concat());
}

proptest! {
    #[test]
    fn positions_are_orthonormal_eigenvectors_with_a_definite_sign((n, edges) in graph()) {
        let (l, joined) = plain_laplacian(n, &edges);
        let values = laplacian_eigenvalues(n, &edges);
        let positions = laplacian_positions(n, &edges, n);
        prop_assert_eq!(values.len(), joined.iter().filter(|&&joined| joined).count());
        let columns: Vec<Vec<f64>> = (0..n).map(|j| column(&positions, n, j)).collect();
        for (j, v) in columns.iter().enumerate() {
            let Some(&value) = values.get(j + 1) else {
                prop_assert!(v.iter().all(|&x| x == 0.0));
                continue;
            };
            let image: Vec<f64> = l.chunks_exact(n).map(|row| row.iter().zip(v).map(|(l, v)| l * v).sum()).collect();
            let scaled: Vec<f64> = v.iter().map(|x| value * x).collect();
            prop_assert!(close(&image, &scaled, 1e-6));
            for (i, w) in columns[..=j].iter().enumerate() {
                let dot: f64 = v.iter().zip(w).map(|(v, w)| v * w).sum();
                prop_assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-6);
            }
            let largest = v.iter().map(|x| x.abs()).fold(0.0, f64::max);
            prop_assert!(v.iter().any(|&x| x > largest - 1.2e-6));
            prop_assert!(v.iter().zip(&joined).all(|(&x, &joined)| joined || x == 0.0));
        }
    }

    #[test]
    fn walks_equal_the_diagonals_of_dense_powers((n, edges) in graph(), width in 1..8usize) {
        let (l, joined) = plain_laplacian(n, &edges);
        // I - L is similar to RW, so their powers have the same diagonal.
        let walk = |i: usize, j: usize| f64::from(u8::from(i == j && joined[i])) - l[i * n + j];
        let positions = random_walk_positions(n, &edges, width);
        let mut power: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
        for step in 0..width {
            power = (0..n * n).map(|at| (0..n).map(|k| power[at / n * n + k] * walk(k, at % n)).sum()).collect();
            let diagonal: Vec<f64> = (0..n).map(|i| power[i * n + i]).collect();
            prop_assert!(close(&column(&positions, width, step), &diagonal, 1e-6));
        }
    }
}

#[test]
fn the_principal_axes_of_points_along_a_line_begin_with_the_line() {
    // Points along (3, 4, 0) / 5, and a little along the third dimension, uncorrelated with the
    // first two.
    let aside = [0.5, -0.5, -0.5, 0.5];
    let points: Vec<f32> =
        (0..20).flat_map(|n| [3.0 * n as f32, 4.0 * n as f32, aside[n % 4]]).collect();
    let axes = principal_axes(&points, 3, 2);
    for (axis, expected) in axes.iter().zip([0.6, 0.8, 0.0, 0.0, 0.0, 1.0]) {
        assert!((axis - expected).abs() < 1e-6, "{axes:?}");
    }
}

/// A graph of one large component, a ring, a star and many pairs; `n` of the large one.
fn patchwork(n: u32) -> (usize, Vec<(u32, u32)>) {
    let mut draw = crate::rng::KeyedRng::new(&[3, u64::from(n)]);
    let mut edges: Vec<(u32, u32)> = (1..n).map(|i| (draw.below(u64::from(i)) as u32, i)).collect();
    edges.extend((0..n).map(|i| (i, draw.below(u64::from(n)) as u32)));
    edges.extend((0..9).map(|i| (n + i, n + (i + 1) % 9)));
    edges.extend((1..8).map(|i| (n + 9, n + 9 + i)));
    edges.extend((0..6).map(|pair| (n + 20 + 2 * pair, n + 21 + 2 * pair)));
    (n as usize + 40, edges)
}

#[test]
fn a_graph_too_large_for_a_matrix_has_the_same_smallest_eigenvalues() {
    let (nodes, edges) = patchwork(300);
    let graph = Graph::new(nodes, &edges);
    let dense = graph.laplacian(&graph.joined());
    let whole: Vec<Eigen> = graph.components().iter().map(|nodes| graph.laplacian(nodes)).collect();
    for (count, limit) in [(5, 0), (40, 50), (40, 0), (60, 400)] {
        let (components, found) = graph.smallest(count, limit);
        assert_eq!(found.len(), count);
        let values: Vec<f64> = found.iter().map(|found| found.value).collect();
        assert!(close(&values, &dense.values[..count], 1e-8), "{values:?}");
        for found in &found {
            let (nodes, whole) = (&components[found.component], &whole[found.component]);
            // The vector is one of the eigenspace: what is left of it elsewhere is nothing.
            let vectors = whole.vectors.chunks_exact(nodes.len()).zip(&whole.values);
            let outside: f64 = vectors
                .filter(|(_, value)| (**value - found.value).abs() > 1e-6)
                .map(|(other, _)| {
                    let dot: f64 = other.iter().zip(&found.vector).map(|(a, b)| a * b).sum();
                    dot * dot
                })
                .sum();
            assert!(outside < 1e-9, "{outside} at {}", found.value);
        }
    }
}

#[test]
fn a_large_first_step_has_positions_of_length_one_that_do_not_depend_on_threads() {
    let (nodes, edges) = patchwork(DENSE as u32 + 1);
    let solve = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads").install(|| laplacian_positions(nodes, &edges, 12))
    };
    let positions = solve(2);
    for place in 0..12 {
        let vector = column(&positions, 12, place);
        let length: f64 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-5, "column {place}: {length}");
    }
    assert!(positions == solve(1));
}
