//! The operations, one family per file: a forward method on [`Tape`](crate::Tape) and a backward
//! step.
//!
//! Adding one: write its struct with `forward` as a method of the tape and `backward`, add a
//! variant here, give it a finite-difference test, and if it is fused a plain reference.

pub(crate) mod attention;
pub(crate) mod circular;
pub(crate) mod dropout;
pub(crate) mod elementwise;
pub(crate) mod gather;
pub(crate) mod linear;
pub(crate) mod loss;
pub(crate) mod mix_tokens;
pub(crate) mod normalize;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod segment;
pub(crate) mod self_attention;
pub(crate) mod shape;
pub(crate) mod temporal_filter;
pub(crate) mod time;

use crate::backward::Backward;
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use crate::workspace::Scratch;

macro_rules! operations {
    ($($variant:ident($ty:ty)),* $(,)?) => {
        /// How a result was made.
        #[derive(Clone, Copy)]
        pub(crate) enum Op {
            $($variant($ty)),*
        }

        impl Op {
            pub fn backward(&self, backward: &mut Backward<'_>) {
                match self {
                    $(Self::$variant(op) => if backward.grads.reached(op.out) { op.backward(backward) }),*
                }
            }
        }

        $(impl From<$ty> for Op {
            fn from(op: $ty) -> Self {
                Self::$variant(op)
            }
        })*
    };
}

operations! {
    Linear(linear::Linear),
    Matmul(linear::Matmul),
    Unary(elementwise::Unary),
    Binary(elementwise::Binary),
    Scale(elementwise::Scale),
    AddRow(elementwise::AddRow),
    ScaleRows(elementwise::ScaleRows),
    Copy(shape::Copy),
    Transpose(shape::Transpose),
    Gather(gather::Gather),
    GatherPair(gather::GatherPair),
    Segment(segment::Segment),
    Sum(reduce::Sum),
    RowSum(reduce::RowSum),
    RowDistance(reduce::RowDistance),
    Softmax(normalize::Softmax),
    LayerNorm(normalize::LayerNorm),
    Attention(attention::Attention),
    SelfAttention(self_attention::SelfAttention),
    MixTokens(mix_tokens::MixTokens),
    TimeSum(time::TimeSum),
    TimeEncode(time::TimeEncode),
    Gru(recurrent::Gru),
    CrossEntropy(loss::CrossEntropy),
    SoftmaxCrossEntropy(loss::SoftmaxCrossEntropy),
    FoldFilter(temporal_filter::FoldFilter),
    RunKernel(temporal_filter::RunKernel),
    Circular(circular::Circular),
    Dropout(dropout::Dropout),
}

/// Elements handled at once by an element-wise task: four pages, within the first-level cache for
/// three operands.
const ELEMENTS: usize = 4096;
/// Rows handled at once if the operands have gaps.
const ROWS: usize = 16;

/// Calls `f(piece of out, the same piece of every input)`, in parallel; `cost` is the work per
/// element.
pub(crate) fn map<const N: usize>(
    mut out: MatrixMut<'_>,
    inputs: [Matrix<'_>; N],
    cost: usize,
    f: impl Fn(&mut [f32], [&[f32]; N]) + Sync + Send,
) {
    for input in inputs {
        assert_eq!((input.rows, input.cols), (out.rows, out.cols), "operands of different shape");
    }
    let work = out.rows * out.cols * cost;
    if out.flat().is_some() && inputs.iter().all(|input| input.flat().is_some()) {
        let out = out.flat().expect("just seen");
        parallel::chunks(out, ELEMENTS, work, |index, part| {
            let from = index * ELEMENTS;
            let len = part.len();
            f(part, inputs.map(|input| &input.data[from..from + len]));
        });
    } else {
        parallel::rows(out, ROWS, work, |first, mut part| {
            for i in 0..part.rows {
                f(part.row(i), inputs.map(|input| input.row(first + i)));
            }
        });
    }
}

/// Rows whose column sums form one partial sum.
const COLUMN_SUM_ROWS: usize = 256;

/// `out[j]` += sum over i of `x[i, j]`: fixed blocks of rows, merged in order.
pub(crate) fn add_column_sums(x: Matrix<'_>, out: &mut [f32], scratch: &mut Scratch) {
    use crate::kernel::vector;
    let blocks = x.rows.div_ceil(COLUMN_SUM_ROWS);
    let partial = scratch.floats.take(blocks * x.cols);
    if x.cols == 0 {
        return;
    }
    parallel::chunks(partial, x.cols, x.rows * x.cols, |block, sums| {
        sums.fill(0.0);
        let from = block * COLUMN_SUM_ROWS;
        let to = (from + COLUMN_SUM_ROWS).min(x.rows);
        vector::add_rows(sums, (from..to).map(|i| (x.row(i), 1.0)));
    });
    for sums in partial.chunks(x.cols) {
        vector::add(out, sums);
    }
}
