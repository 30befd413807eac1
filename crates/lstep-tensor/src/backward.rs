//! The backward pass: operations in reverse, gradients beside the values.
//!
//! The gradient slab has the layout of the value slab. A region is zeroed, or overwritten by its
//! first contribution, when it is first needed, so a pass never clears memory that no gradient
//! reaches. The gradient of an intermediate result is used up by the operation that made it and
//! cannot be read afterwards; those of parameters are added to [`Gradients`].

use crate::kernel::gemm::Matmul;
use crate::matrix::{Matrix, MatrixMut};
use crate::op::Op;
use crate::parameter::Gradients;
use crate::tape::{Tape, Var};
use crate::workspace::{Node, Pieces, Place, Reader, Scratch};

impl Tape<'_> {
    /// Adds d loss / d parameter to `gradients` for every parameter; `loss` is 1 x 1. Each tape
    /// runs backward once.
    ///
    /// # Panics
    /// On a tape from [`Workspace::infer`](crate::Workspace::infer), and if `loss` is not 1 x 1. A
    /// loss that is not finite has gradients that are not: look at it before a step is taken.
    pub fn backward(self, loss: Var, gradients: &mut Gradients) {
        assert!(self.is_training(), "a tape for inference has no gradients");
        assert_eq!(self.shape(loss), (1, 1), "only a 1 x 1 matrix is a loss");
        if !self.is_tracked(loss) {
            return;
        }
        let (products, mut tape) = (self.products, self);
        let (workspace, parameters, externals) = tape.parts();
        workspace.gradients.reserve(workspace.cursor);
        workspace.touched.clear();
        workspace.touched.resize(workspace.nodes.len(), false);
        let read = Reader {
            nodes: &workspace.nodes,
            values: Pieces::whole(workspace.values.as_slice()),
            parameters: parameters.flat(),
            externals,
            indices: &workspace.indices,
            times: &workspace.times,
            fourier: &workspace.fourier,
        };
        assert_eq!(
            gradients.flat().len(),
            read.parameters.len(),
            "these gradients belong to other parameters"
        );
        let mut backward = Backward {
            read,
            grads: Grads {
                nodes: &workspace.nodes,
                slab: workspace.gradients.as_mut_slice(),
                parameters: gradients.flat_mut(),
                touched: &mut workspace.touched,
            },
            scratch: &mut workspace.scratch,
            products,
        };
        backward.grads.target(loss).row(0)[0] = 1.0;
        for op in workspace.ops.iter().rev() {
            backward.run(op);
        }
    }
}

/// What an operation may touch in its backward step.
pub(crate) struct Backward<'b> {
    pub read: Reader<'b>,
    pub grads: Grads<'b>,
    pub scratch: &'b mut Scratch,
    pub products: Matmul,
}

impl Backward<'_> {
    fn run(&mut self, op: &Op) {
        op.backward(self);
    }
}

/// The gradients while they are being made.
pub(crate) struct Grads<'b> {
    nodes: &'b [Node],
    slab: &'b mut [f32],
    parameters: &'b mut [f32],
    touched: &'b mut [bool],
}

impl Grads<'_> {
    /// Whether x needs a gradient.
    pub fn wants(&self, x: Var) -> bool {
        let node = &self.nodes[x.index()];
        !node.stopped && self.nodes[node.base as usize].tracked
    }

    /// Whether x is a parameter or a view of one.
    pub fn is_parameter(&self, x: Var) -> bool {
        self.nodes[x.index()].place == Place::Parameter
    }

    /// Whether any gradient has reached the matrix that `out` lies in.
    pub fn reached(&self, out: Var) -> bool {
        self.touched[self.nodes[out.index()].base as usize]
    }

    /// The gradient of `out`, to change in place.
    pub fn own(&mut self, out: Var) -> MatrixMut<'_> {
        let node = &self.nodes[out.index()];
        node.writable(&mut self.slab[node.span()])
    }

    /// The gradient of x, zeroed if nothing has reached it yet.
    pub fn target(&mut self, x: Var) -> MatrixMut<'_> {
        self.prepare(x, false);
        let node = &self.nodes[x.index()];
        match node.place {
            Place::Parameter => node.writable(&mut self.parameters[node.span()]),
            _ => node.writable(&mut self.slab[node.span()]),
        }
    }

    /// The gradient of `out` to read and that of `x` to add to.
    pub fn pair(&mut self, out: Var, x: Var) -> (Matrix<'_>, MatrixMut<'_>) {
        let (gradient, [target], _) = self.many(out, [x], false);
        (gradient, target)
    }

    /// As [`Self::pair`]; if the flag is true the target holds nothing yet and must be overwritten.
    pub fn pair_or_fresh(&mut self, out: Var, x: Var) -> (Matrix<'_>, MatrixMut<'_>, bool) {
        let (gradient, [target], fresh) = self.many(out, [x], true);
        (gradient, target, fresh)
    }

    /// Whether the gradients of these can be written at the same time.
    pub fn are_disjoint(&self, vars: &[Var]) -> bool {
        vars.iter().enumerate().all(|(i, a)| {
            vars[..i].iter().all(|b| {
                let (a, b) = (&self.nodes[a.index()], &self.nodes[b.index()]);
                let (x, y) = (a.span(), b.span());
                a.place != b.place || x.end <= y.start || y.end <= x.start
            })
        })
    }

    /// The gradient of `out` to read and those of `targets` to add to.
    pub fn several<const N: usize>(
        &mut self,
        out: Var,
        targets: [Var; N],
    ) -> (Matrix<'_>, [MatrixMut<'_>; N]) {
        let (gradient, targets, _) = self.many(out, targets, false);
        (gradient, targets)
    }

    /// As [`Self::several`]; if the flag is true the last target holds nothing yet and must be
    /// overwritten. The others must be parameters.
    pub fn several_or_fresh<const N: usize>(
        &mut self,
        out: Var,
        targets: [Var; N],
    ) -> (Matrix<'_>, [MatrixMut<'_>; N], bool) {
        debug_assert!(targets[..N - 1].iter().all(|&x| self.is_parameter(x)));
        self.many(out, targets, true)
    }

    fn many<const N: usize>(
        &mut self,
        out: Var,
        targets: [Var; N],
        allow_fresh: bool,
    ) -> (Matrix<'_>, [MatrixMut<'_>; N], bool) {
        let mut fresh = false;
        for target in targets {
            fresh = self.prepare(target, allow_fresh);
        }
        let nodes = self.nodes;
        let in_slab = |var: Var| {
            let node = &nodes[var.index()];
            if node.place == Place::Slab { node.span() } else { 0..0 }
        };
        let in_parameters = |var: Var| {
            let node = &nodes[var.index()];
            if node.place == Place::Parameter { node.span() } else { 0..0 }
        };
        let (slab, rest) = crate::workspace::carve(self.slab, targets.map(in_slab));
        let (parameters, _) = crate::workspace::carve(self.parameters, targets.map(in_parameters));
        let gradient = Reader {
            nodes,
            values: rest,
            parameters: &[],
            externals: &[],
            indices: &[],
            times: &[],
            fourier: &[],
        }
        .matrix(out);
        let mut sources = slab.into_iter().zip(parameters).zip(targets);
        let written = std::array::from_fn(|_| {
            let ((slab, parameter), target) = sources.next().expect("as many");
            let node = &nodes[target.index()];
            node.writable(if node.place == Place::Parameter { parameter } else { slab })
        });
        (gradient, written, fresh)
    }

    /// Marks x as reached. Returns whether its memory is stale and the caller will overwrite all of
    /// it.
    fn prepare(&mut self, x: Var, allow_fresh: bool) -> bool {
        let node = &self.nodes[x.index()];
        let base = &self.nodes[node.base as usize];
        debug_assert!(self.wants(x), "a gradient for a constant");
        let reached = std::mem::replace(&mut self.touched[node.base as usize], true);
        if reached || base.place == Place::Parameter {
            return false;
        }
        let covers = node.is_dense() && node.rows * node.cols == base.rows * base.cols;
        if allow_fresh && covers {
            return true;
        }
        self.slab[base.span()].fill(0.0);
        false
    }
}
