//! The buffers of a tape, kept from step to step.
//!
//! Everything a step needs lives in a handful of growing arrays: values, gradients, node and
//! operation records, indices and times. Starting a step sets their lengths to zero and keeps their
//! memory, so from the second identical step on nothing is allocated.

use crate::matrix::{Matrix, MatrixMut};
use crate::op::Op;
use crate::op::temporal_filter::Fourier;
use crate::parameter::Parameters;
use crate::slab::Slab;
use crate::tape::{DropoutKey, Tape, Var};

/// The reusable memory of one thread's tapes.
#[derive(Default)]
pub struct Workspace {
    pub(crate) values: Slab,
    pub(crate) gradients: Slab,
    pub(crate) cursor: usize,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ops: Vec<Op>,
    pub(crate) indices: Vec<u32>,
    pub(crate) times: Vec<f64>,
    /// The node of each parameter, if it was asked for in this step.
    pub(crate) parameter_nodes: Vec<Option<Var>>,
    /// By node: whether its gradient holds anything yet.
    pub(crate) touched: Vec<bool>,
    pub(crate) scratch: Scratch,
    /// Transforms used so far, by length. They are constants and outlive steps.
    pub(crate) fourier: Vec<Fourier>,
}

/// Working memory of backward passes.
#[derive(Default)]
pub(crate) struct Scratch {
    pub floats: Slab,
    pub integers: Vec<u32>,
    /// The segment of each entry of a sum.
    pub owners: Vec<u32>,
}

impl Workspace {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a step that can be differentiated. `draw` fixes all its dropout masks.
    pub fn train<'a>(&'a mut self, parameters: &'a Parameters, draw: DropoutKey) -> Tape<'a> {
        self.clear(parameters);
        Tape::new(self, parameters, Some(draw))
    }

    /// Starts a step without gradients: nothing is recorded for a backward pass, dropout is the
    /// identity.
    pub fn infer<'a>(&'a mut self, parameters: &'a Parameters) -> Tape<'a> {
        self.clear(parameters);
        Tape::new(self, parameters, None)
    }

    /// The bytes of values and gradients held, used or not.
    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.gradients.bytes() + self.scratch.floats.bytes()
    }

    fn clear(&mut self, parameters: &Parameters) {
        self.cursor = 0;
        self.nodes.clear();
        self.ops.clear();
        self.indices.clear();
        self.times.clear();
        self.parameter_nodes.clear();
        self.parameter_nodes.resize(parameters.len(), None);
    }
}

/// Where the values of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Slab,
    Parameter,
    /// Memory lent by the caller, by number.
    External(u8),
}

/// A matrix, or a view into the matrix of node `base`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub place: Place,
    pub offset: usize,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
    pub base: u32,
    /// Of a base: whether a gradient is wanted.
    pub tracked: bool,
    /// Of a view: whether gradients stop here.
    pub stopped: bool,
}

impl Node {
    /// The smallest range of its buffer that holds the matrix.
    pub fn span(&self) -> std::ops::Range<usize> {
        let len = if self.rows == 0 || self.cols == 0 {
            0
        } else {
            (self.rows - 1) * self.stride + self.cols
        };
        self.offset..self.offset + len
    }

    pub fn is_dense(&self) -> bool {
        self.stride == self.cols || self.rows <= 1
    }

    pub fn writable<'b>(&self, data: &'b mut [f32]) -> MatrixMut<'b> {
        MatrixMut { data, rows: self.rows, cols: self.cols, stride: self.stride }
    }
}

/// The readable rest of a slab of which up to three ranges are being written.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'b> {
    parts: [(usize, &'b [f32]); 4],
}

impl<'b> Pieces<'b> {
    pub fn whole(slab: &'b [f32]) -> Self {
        Self { parts: [(0, slab), (0, &[]), (0, &[]), (0, &[])] }
    }

    fn find(&self, span: std::ops::Range<usize>) -> &'b [f32] {
        for (start, part) in self.parts {
            if span.start >= start && span.end <= start + part.len() {
                return &part[span.start - start..span.end - start];
            }
        }
        assert!(
            span.is_empty(),
            "an operation cannot read the buffer it writes: copy one of them first"
        );
        &[]
    }
}

/// Splits disjoint ranges out of `slab` for writing; what lies between them stays readable.
pub(crate) fn carve<const N: usize>(
    mut slab: &mut [f32],
    spans: [std::ops::Range<usize>; N],
) -> ([&mut [f32]; N], Pieces<'_>) {
    const { assert!(N <= 3) };
    let mut written: [&mut [f32]; N] = std::array::from_fn(|_| <&mut [f32]>::default());
    let mut parts: [(usize, &[f32]); 4] = [(0, &[]); 4];
    let mut order: [usize; N] = std::array::from_fn(|i| i);
    order.sort_unstable_by_key(|&i| (spans[i].start, spans[i].end));
    let mut position = 0;
    for (rank, &i) in order.iter().enumerate() {
        let span = spans[i].clone();
        if span.is_empty() {
            continue;
        }
        assert!(span.start >= position, "an operation writes two overlapping views");
        let (before, rest) = slab.split_at_mut(span.start - position);
        let (out, after) = rest.split_at_mut(span.len());
        parts[rank] = (position, before);
        written[i] = out;
        position = span.end;
        slab = after;
    }
    parts[3] = (position, slab);
    (written, Pieces { parts })
}

/// Read access to all values while some are being written.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'b> {
    pub nodes: &'b [Node],
    pub values: Pieces<'b>,
    pub parameters: &'b [f32],
    pub externals: &'b [&'b [f32]],
    pub indices: &'b [u32],
    pub times: &'b [f64],
    pub fourier: &'b [Fourier],
}

impl<'b> Reader<'b> {
    pub fn matrix(&self, var: Var) -> Matrix<'b> {
        let node = &self.nodes[var.index()];
        let span = node.span();
        let data = match node.place {
            Place::Slab => self.values.find(span),
            Place::Parameter => &self.parameters[span],
            Place::External(number) => &self.externals[usize::from(number)][span],
        };
        Matrix { data, rows: node.rows, cols: node.cols, stride: node.stride }
    }

    /// The matrix as one dense slice.
    pub fn flat(&self, var: Var) -> &'b [f32] {
        self.matrix(var).flat().expect("parameters and vectors are dense")
    }

    pub fn indices(&self, list: crate::tape::Indices) -> &'b [u32] {
        &self.indices[list.start..list.start + list.len]
    }

    pub fn times(&self, list: crate::tape::Times) -> &'b [f64] {
        &self.times[list.start..list.start + list.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carving_gives_the_ranges_and_leaves_the_rest_readable() {
        let mut slab: Vec<f32> = (0..10).map(|i| i as f32).collect();
        let ([a, b], rest) = carve(&mut slab, [6..8, 1..3]);
        assert_eq!((&*a, &*b), (&[6.0, 7.0][..], &[1.0, 2.0][..]));
        assert_eq!(rest.find(3..6), [3.0, 4.0, 5.0]);
        assert_eq!(rest.find(8..10), [8.0, 9.0]);
        assert_eq!(rest.find(0..1), [0.0]);
    }

    #[test]
    #[should_panic(expected = "cannot read the buffer it writes")]
    fn reading_what_is_being_written_is_refused() {
        let mut slab = [0.0; 10];
        let (_, rest) = carve(&mut slab, [2..5, 7..8]);
        rest.find(4..6);
    }
}
