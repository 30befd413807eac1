//! The tape: handles to matrices, leaves, views, and the record of operations.
//!
//! An operation writes its result at the end of the value slab and notes how it was made. A [`Var`]
//! is a small handle that lives until its tape does. Views (rows, columns, another shape) share
//! memory and gradients with what they view.

use std::ops::Range;

use crate::kernel::gemm::Matmul;
use crate::matrix::{Matrix, MatrixMut};
use crate::op::Op;
use crate::parameter::{ParameterId, Parameters};
use crate::slab::Slab;
use crate::workspace::{Node, Place, Reader, Workspace, carve};

/// A matrix on a [`Tape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(pub(crate) u32);

impl Var {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A list of row numbers, offsets or slots on a [`Tape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Indices {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A list of time differences or frequencies on a [`Tape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// What the dropout masks of a step are drawn from. Together with the number of the operation and
/// the place of the element it decides each mask bit, so a resumed run draws what the uninterrupted
/// one would have drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropoutKey {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the step.
    pub step: u64,
}

/// How many matrices a tape can borrow in one step.
const EXTERNALS: usize = 16;

/// One step: values, and how they were made.
pub struct Tape<'a> {
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) parameters: &'a Parameters,
    externals: [&'a [f32]; EXTERNALS],
    external_count: usize,
    pub(crate) draw: Option<DropoutKey>,
    pub(crate) dropouts: u64,
    pub(crate) products: Matmul,
}

impl<'a> Tape<'a> {
    pub(crate) fn new(
        workspace: &'a mut Workspace,
        parameters: &'a Parameters,
        draw: Option<DropoutKey>,
    ) -> Self {
        Self {
            workspace,
            parameters,
            externals: [&[]; EXTERNALS],
            external_count: 0,
            draw,
            dropouts: 0,
            products: Matmul::F32,
        }
    }

    /// Whether gradients can be asked for.
    pub fn is_training(&self) -> bool {
        self.draw.is_some()
    }

    /// The tape with layers that multiply so, forward and backward.
    pub fn with_matmul(self, products: Matmul) -> Self {
        Self { products, ..self }
    }

    /// A parameter; asking again gives the same handle.
    pub fn parameter(&mut self, id: ParameterId) -> Var {
        if let Some(var) = self.workspace.parameter_nodes[id.0] {
            return var;
        }
        let entry = self.parameters.entry(id);
        let var = self.push(Node {
            place: Place::Parameter,
            offset: entry.offset,
            rows: entry.rows,
            cols: entry.cols,
            stride: entry.cols,
            base: 0,
            tracked: self.draw.is_some(),
            stopped: false,
        });
        self.workspace.parameter_nodes[id.0] = Some(var);
        var
    }

    /// A constant [rows, cols], filled by `fill`, which is given zeros in row-major order.
    pub fn input(&mut self, rows: usize, cols: usize, fill: impl FnOnce(&mut [f32])) -> Var {
        let var = self.zeros(rows, cols);
        let span = self.node(var).span();
        fill(&mut self.workspace.values.as_mut_slice()[span]);
        var
    }

    /// A constant [rows, cols] copied from `values`.
    pub fn constant(&mut self, rows: usize, cols: usize, values: &[f32]) -> Var {
        assert_eq!(values.len(), rows * cols, "{} values cannot be {rows} x {cols}", values.len());
        let var = self.emit(rows, cols);
        let span = self.node(var).span();
        self.workspace.values.as_mut_slice()[span].copy_from_slice(values);
        var
    }

    /// A constant of `cols` columns that stays where it is, such as a feature table.
    ///
    /// # Panics
    /// If more than 16 are lent to one tape, or the length is no multiple of `cols`.
    pub fn borrow(&mut self, values: &'a [f32], cols: usize) -> Var {
        assert!(self.external_count < EXTERNALS, "a tape borrows at most {EXTERNALS} matrices");
        let rows = values.len().checked_div(cols).unwrap_or(0);
        assert_eq!(rows * cols, values.len(), "{} values are no rows of {cols}", values.len());
        let number = self.external_count;
        self.externals[number] = values;
        self.external_count += 1;
        self.push(Node {
            place: Place::External(number as u8),
            offset: 0,
            rows,
            cols,
            stride: cols,
            base: 0,
            tracked: false,
            stopped: false,
        })
    }

    /// Zeros [rows, cols]: a constant, or a buffer whose [`columns`](Tape::columns) the `.._into`
    /// operations fill. Every column is to be written at most once, and before it is read.
    pub fn zeros(&mut self, rows: usize, cols: usize) -> Var {
        let var = self.emit(rows, cols);
        let span = self.node(var).span();
        self.workspace.values.as_mut_slice()[span].fill(0.0);
        var
    }

    /// Stores row numbers, offsets or slots for use by operations.
    pub fn indices(&mut self, list: impl IntoIterator<Item = u32>) -> Indices {
        let start = self.workspace.indices.len();
        self.workspace.indices.extend(list);
        Indices { start, len: self.workspace.indices.len() - start }
    }

    /// Stores time differences or frequencies for use by operations. They are `f64`, since a
    /// difference in seconds has more digits than an `f32` holds.
    pub fn times(&mut self, list: impl IntoIterator<Item = f64>) -> Times {
        let start = self.workspace.times.len();
        self.workspace.times.extend(list);
        Times { start, len: self.workspace.times.len() - start }
    }

    /// Rows `range` of x, sharing its memory and gradient.
    pub fn rows(&mut self, x: Var, range: Range<usize>) -> Var {
        let node = *self.node(x);
        assert!(
            range.start <= range.end && range.end <= node.rows,
            "rows {range:?} of {}",
            node.rows
        );
        let offset = node.offset + range.start * node.stride;
        self.push_view(x, Node { offset, rows: range.len(), ..node })
    }

    /// Columns `range` of x, sharing its memory and gradient.
    pub fn columns(&mut self, x: Var, range: Range<usize>) -> Var {
        let node = *self.node(x);
        assert!(
            range.start <= range.end && range.end <= node.cols,
            "columns {range:?} of {}",
            node.cols
        );
        self.push_view(x, Node { offset: node.offset + range.start, cols: range.len(), ..node })
    }

    /// The same numbers in row-major order as [rows, cols], sharing memory and gradient. x must
    /// have no gaps.
    pub fn reshape(&mut self, x: Var, rows: usize, cols: usize) -> Var {
        let node = *self.node(x);
        assert!(node.is_dense(), "a column slice cannot be reshaped: copy it first");
        assert_eq!(
            node.rows * node.cols,
            rows * cols,
            "{} x {} is not {rows} x {cols}",
            node.rows,
            node.cols
        );
        self.push_view(x, Node { rows, cols, stride: cols, ..node })
    }

    /// The same matrix as a constant: no gradient passes.
    pub fn detach(&mut self, x: Var) -> Var {
        let node = *self.node(x);
        self.push_view(x, Node { stopped: true, ..node })
    }

    /// (rows, columns) of x.
    pub fn shape(&self, x: Var) -> (usize, usize) {
        let node = self.node(x);
        (node.rows, node.cols)
    }

    /// The values of x.
    pub fn value(&self, x: Var) -> Matrix<'_> {
        self.reader().matrix(x)
    }

    /// The single value of a 1 x 1 matrix.
    pub fn scalar(&self, x: Var) -> f32 {
        assert_eq!(self.shape(x), (1, 1), "only a 1 x 1 matrix is a number");
        self.value(x).row(0)[0]
    }

    pub(crate) fn node(&self, var: Var) -> &Node {
        &self.workspace.nodes[var.index()]
    }

    /// Whether a gradient may reach x.
    pub(crate) fn is_tracked(&self, x: Var) -> bool {
        let node = self.node(x);
        !node.stopped && self.workspace.nodes[node.base as usize].tracked
    }

    /// Room for a result; its content is unspecified until written.
    pub(crate) fn emit(&mut self, rows: usize, cols: usize) -> Var {
        let workspace = &mut *self.workspace;
        let offset = Slab::round_up(workspace.cursor);
        workspace.cursor = offset + rows * cols;
        workspace.values.reserve(workspace.cursor);
        self.push(Node {
            place: Place::Slab,
            offset,
            rows,
            cols,
            stride: cols,
            base: 0,
            tracked: false,
            stopped: false,
        })
    }

    fn push(&mut self, mut node: Node) -> Var {
        let index = self.workspace.nodes.len() as u32;
        node.base = index;
        self.workspace.nodes.push(node);
        Var(index)
    }

    fn push_view(&mut self, of: Var, view: Node) -> Var {
        let base = self.node(of).base;
        let var = self.push(view);
        self.workspace.nodes[var.index()].base = base;
        var
    }

    /// Write access to `outs` and read access to everything else.
    pub(crate) fn forward<const N: usize>(
        &mut self,
        outs: [Var; N],
    ) -> (Reader<'_>, [MatrixMut<'_>; N]) {
        let workspace = &mut *self.workspace;
        let nodes = &workspace.nodes;
        for out in outs {
            assert_eq!(
                nodes[out.index()].place,
                Place::Slab,
                "results are written to matrices of the tape only"
            );
        }
        let spans = outs.map(|out| nodes[out.index()].span());
        let (written, values) = carve(workspace.values.as_mut_slice(), spans);
        let mut out = outs.iter();
        let written =
            written.map(|data| nodes[out.next().expect("as many").index()].writable(data));
        let reader = Reader {
            nodes,
            values,
            parameters: self.parameters.flat(),
            externals: &self.externals,
            indices: &workspace.indices,
            times: &workspace.times,
            fourier: &workspace.fourier,
        };
        (reader, written)
    }

    /// Notes how `out` was made, if a gradient can pass through it.
    pub(crate) fn record(&mut self, out: Var, inputs: &[Var], op: impl FnOnce() -> Op) {
        if self.draw.is_some() && inputs.iter().any(|&input| self.is_tracked(input)) {
            let base = self.node(out).base as usize;
            self.workspace.nodes[base].tracked = true;
            self.workspace.ops.push(op());
        }
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            nodes: &self.workspace.nodes,
            values: crate::workspace::Pieces::whole(self.workspace.values.as_slice()),
            parameters: self.parameters.flat(),
            externals: &self.externals,
            indices: &self.workspace.indices,
            times: &self.workspace.times,
            fourier: &self.workspace.fourier,
        }
    }

    /// The workspace and the borrowed matrices, for the backward pass.
    pub(crate) fn parts(&mut self) -> (&mut Workspace, &Parameters, &[&'a [f32]]) {
        (self.workspace, self.parameters, &self.externals)
    }
}
