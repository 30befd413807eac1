//! Initial positions of nodes, from the shape of a small graph alone.
//!
//! Knows nodes `0..n` and undirected edges; the caller maps its own nodes to those. An edge counts
//! once however often it is given, a node is not its own neighbour, and a node without neighbours
//! has the position zero. Two encodings: eigenvectors of the normalised Laplacian (section
//! "Positional Encoding for Graphs"), and return probabilities of random walks (Dwivedi et al.,
//! *Graph Neural Networks with Learnable Structural and Positional Representations*, ICLR 2022).
//!
//! The eigenvectors come from `symmetric.rs`, not from a library: see there for the reason.

use crate::linalg::{Eigen, eigen, largest};

/// Eigenvectors of `L = I - D^(-1/2) A D^(-1/2)` as positions: `[nodes x width]`, row-major.
///
/// Column `j` holds the eigenvector of the `j + 2`nd smallest eigenvalue; the first is left out,
/// and columns beyond the last are zero. `L` is that of the nodes that have neighbours, the others'
/// rows are zero. A vector has length 1, and the sign that makes its largest component positive
/// (the first of those within 1e-6 of the largest). The vectors of a repeated eigenvalue are some
/// orthonormal basis, the same on every machine.
///
/// Takes O(n^3) time and 16 n^2 bytes for n nodes with neighbours, up to 2,000 of them. A larger
/// graph is solved component by component. Of a component that is itself larger, only the vectors
/// that are needed are found, in O(n width^2) time for each round of `linalg::largest`.
///
/// # Panics
///
/// If an edge names a node that is not below `nodes`.
pub fn laplacian_positions(nodes: usize, edges: &[(u32, u32)], width: usize) -> Vec<f32> {
    let graph = Graph::new(nodes, edges);
    let mut positions = vec![0.0; nodes * width];
    let mut put = |column: usize, nodes: &[u32], vector: &[f64]| {
        let sign = sign(vector);
        for (&node, &component) in nodes.iter().zip(vector) {
            positions[node as usize * width + column] = (sign * component) as f32;
        }
    };
    let joined = graph.joined();
    if joined.len() <= DENSE {
        let vectors = graph.laplacian(&joined).vectors;
        let vectors = vectors.chunks_exact(joined.len().max(1)).skip(1).take(width);
        vectors.enumerate().for_each(|(column, vector)| put(column, &joined, vector));
    } else {
        let (components, found) = graph.smallest(width + 1, DENSE);
        for (column, found) in found.iter().skip(1).enumerate() {
            put(column, &components[found.component], &found.vector);
        }
    }
    positions
}

/// Nodes with neighbours up to which the Laplacian is written down as a matrix. Beyond, that takes
/// minutes and gigabytes; the first step of a stream has a few hundred.
const DENSE: usize = 2_000;

/// An eigenvector of the Laplacian that is zero outside of one component.
struct OfComponent {
    value: f64,
    component: usize,
    vector: Vec<f64>,
}

/// The eigenvalues of `L` in ascending order, as many as there are nodes with neighbours; all are
/// in [0, 2] up to rounding.
///
/// # Panics
///
/// If an edge names a node that is not below `nodes`.
pub fn laplacian_eigenvalues(nodes: usize, edges: &[(u32, u32)]) -> Vec<f64> {
    let graph = Graph::new(nodes, edges);
    graph.laplacian(&graph.joined()).values
}

/// The directions in which points spread most: `[axes x width]`, row-major, each of length 1, the
/// widest first.
///
/// Eigenvectors of the points' covariance, with the sign that makes a vector's largest component
/// positive. Fewer where there are fewer dimensions. Takes O(points * width^2 + width^3) time.
///
/// # Panics
///
/// If `points` is no whole number of rows of `width`.
pub fn principal_axes(points: &[f32], width: usize, axes: usize) -> Vec<f64> {
    assert!(width > 0 && points.len().is_multiple_of(width), "rows of {width} numbers");
    let count = (points.len() / width).max(1) as f64;
    let mut mean = vec![0.0; width];
    for point in points.chunks_exact(width) {
        mean.iter_mut().zip(point).for_each(|(mean, &x)| *mean += f64::from(x) / count);
    }
    let mut covariance = vec![0.0; width * width];
    for point in points.chunks_exact(width) {
        let centred: Vec<f64> =
            point.iter().zip(&mean).map(|(&x, mean)| f64::from(x) - mean).collect();
        for (row, &x) in covariance.chunks_exact_mut(width).zip(&centred) {
            row.iter_mut().zip(&centred).for_each(|(entry, y)| *entry += x * y / count);
        }
    }
    let vectors = eigen(covariance, width).vectors;
    let widest = vectors.chunks_exact(width).rev().take(axes);
    widest
        .flat_map(|vector| vector.iter().map(|x| x * sign(vector)).collect::<Vec<f64>>())
        .collect()
}

/// The probabilities that a random walk is back where it began: `[nodes x width]`, row-major.
///
/// `p_i = [RW_ii, RW^2_ii, ..., RW^width_ii]` with `RW = A D^(-1)`. Takes O(nodes * edges * width)
/// time and no matrix.
///
/// # Panics
///
/// If an edge names a node that is not below `nodes`.
pub fn random_walk_positions(nodes: usize, edges: &[(u32, u32)], width: usize) -> Vec<f32> {
    // That many walks go together: each neighbour list is read once for all of them.
    const TOGETHER: usize = 16;
    let graph = Graph::new(nodes, edges);
    let joined = graph.joined();
    let mut positions = vec![0.0; nodes * width];
    // What leaves a node over each of its edges in the next step, for each of the walks.
    let mut leaving = vec![[0.0f64; TOGETHER]; nodes];
    let mut arrived = vec![[0.0f64; TOGETHER]; nodes];
    for starts in joined.chunks(TOGETHER) {
        arrived.fill([0.0; TOGETHER]);
        for (walk, &start) in starts.iter().enumerate() {
            arrived[start as usize][walk] = 1.0;
        }
        for step in 0..width {
            for &node in &joined {
                let share = 1.0 / graph.neighbours(node).len() as f64;
                leaving[node as usize] =
                    arrived[node as usize].map(|probability| probability * share);
            }
            for &node in &joined {
                let mut sum = [0.0; TOGETHER];
                for &neighbour in graph.neighbours(node) {
                    for (sum, part) in sum.iter_mut().zip(&leaving[neighbour as usize]) {
                        *sum += part;
                    }
                }
                arrived[node as usize] = sum;
            }
            for (walk, &start) in starts.iter().enumerate() {
                positions[start as usize * width + step] = arrived[start as usize][walk] as f32;
            }
        }
    }
    positions
}

/// A simple undirected graph: each node's distinct neighbours, ascending, without itself.
struct Graph {
    offsets: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Graph {
    fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut pairs: Vec<(u32, u32)> =
            edges.iter().filter(|(a, b)| a != b).flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let largest = edges.iter().map(|&(a, b)| a.max(b)).max();
        assert!(
            largest.is_none_or(|node| (node as usize) < nodes),
            "an edge names node {largest:?} of {nodes}"
        );
        let mut offsets = vec![0; nodes + 1];
        for &(node, _) in &pairs {
            offsets[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            offsets[node + 1] += offsets[node];
        }
        Graph { offsets, neighbours: pairs.into_iter().map(|(_, neighbour)| neighbour).collect() }
    }

    fn neighbours(&self, node: u32) -> &[u32] {
        &self.neighbours[self.offsets[node as usize]..self.offsets[node as usize + 1]]
    }

    /// The nodes that have neighbours, ascending.
    fn joined(&self) -> Vec<u32> {
        (0..self.offsets.len() as u32 - 1)
            .filter(|&node| !self.neighbours(node).is_empty())
            .collect()
    }

    /// The connected components of nodes that have neighbours, by their first node; nodes ascending.
    fn components(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![false; self.offsets.len() - 1];
        let mut components = Vec::new();
        for start in self.joined() {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let (mut component, mut next) = (vec![start], 0);
            while let Some(&node) = component.get(next) {
                next += 1;
                for &neighbour in self.neighbours(node) {
                    if !std::mem::replace(&mut seen[neighbour as usize], true) {
                        component.push(neighbour);
                    }
                }
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }

    /// The `count` smallest eigenvalues of the Laplacian, ascending, with their eigenvectors, and
    /// the components these belong to. Components of up to `dense` nodes are solved as matrices.
    ///
    /// Every component has the eigenvalue 0 once, whose vector is known: with these alone no matrix
    /// is solved.
    fn smallest(&self, count: usize, dense: usize) -> (Vec<Vec<u32>>, Vec<OfComponent>) {
        let components = self.components();
        let flat = |(component, nodes): (usize, &Vec<u32>)| {
            let edges: usize = nodes.iter().map(|&node| self.neighbours(node).len()).sum();
            let share = |&node: &u32| (self.neighbours(node).len() as f64 / edges as f64).sqrt();
            OfComponent { value: 0.0, component, vector: nodes.iter().map(share).collect() }
        };
        let mut found: Vec<OfComponent> =
            components.iter().enumerate().take(count).map(flat).collect();
        let missing = count - found.len();
        for (component, nodes) in components.iter().enumerate().filter(|_| missing > 0) {
            let solved = match nodes.len() <= dense {
                true => self.laplacian(nodes),
                false => self.smallest_of(nodes, missing + 1),
            };
            // The first is the one that is known.
            let vectors = solved.vectors.chunks_exact(nodes.len());
            let solved = solved.values.iter().zip(vectors).skip(1).take(missing);
            found.extend(solved.map(|(&value, vector)| OfComponent {
                value,
                component,
                vector: vector.to_vec(),
            }));
            // Of equal values the first component's come first.
            found.sort_by(|a, b| a.value.total_cmp(&b.value));
            found.truncate(count);
        }
        (components, found)
    }

    /// The smallest eigenvalues of a component's Laplacian: the largest of `I - L`.
    fn smallest_of(&self, nodes: &[u32], count: usize) -> Eigen {
        let mut offsets = vec![0];
        let (mut columns, mut weights) = (Vec::new(), Vec::new());
        for &node in nodes {
            let around = self.neighbours(node);
            for &neighbour in around {
                columns.push(nodes.binary_search(&neighbour).expect("of the same component"));
                let degrees = around.len() * self.neighbours(neighbour).len();
                weights.push(1.0 / (degrees as f64).sqrt());
            }
            offsets.push(columns.len());
        }
        let product = |from: &[f64], to: &mut [f64]| {
            for (to, span) in to.iter_mut().zip(offsets.windows(2)) {
                let span = span[0]..span[1];
                let terms = columns[span.clone()].iter().zip(&weights[span]);
                *to = terms.map(|(&column, weight)| weight * from[column]).sum();
            }
        };
        let mut found = largest(nodes.len(), count, product);
        found.values.iter_mut().for_each(|value| *value = 1.0 - *value);
        found
    }

    /// The spectrum of the normalised Laplacian of the nodes that have neighbours.
    fn laplacian(&self, joined: &[u32]) -> Eigen {
        let n = joined.len();
        let mut matrix = vec![0.0; n * n];
        for (row, &node) in joined.iter().enumerate() {
            matrix[row * n + row] = 1.0;
            let around = self.neighbours(node);
            for &neighbour in around {
                let column = joined.binary_search(&neighbour).expect("a neighbour has a neighbour");
                let degrees = around.len() * self.neighbours(neighbour).len();
                matrix[row * n + column] = -1.0 / (degrees as f64).sqrt();
            }
        }
        eigen(matrix, n)
    }
}

/// The factor that makes the first of the largest components positive.
fn sign(vector: &[f64]) -> f64 {
    let largest = vector.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let first = vector.iter().find(|x| x.abs() >= largest - 1e-6);
    if first.is_some_and(|&x| x < 0.0) { -1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests;
