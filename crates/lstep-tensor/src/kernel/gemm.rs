//! The matrix product C = A B, C += A B, with rows that do not know of each other.
//!
//! Every element of C is one chain `c = fma(a[i,k], b[k,j], c)` over k = 0, 1, 2, .., whatever the
//! tile, the vector width, the thread or the number of other rows. So a row's result depends on
//! that row and B alone, bit for bit: splitting a batch, reordering it or scoring one row by itself
//! changes nothing, and neither does another processor.
//!
//! The `gemm` crate lost here, though its speed is the same: it switches to other kernels (matrix
//! times vector, inner products, another depth of blocks) depending on the number of rows, which
//! changes the order of additions, and it allocates in every call. The benches compare against it.
//!
//! B is packed into panels of a few vectors of columns; A is read in place with any pair of
//! strides.
//!
//! That is [`Matmul::F32`]. [`Matmul::Bf16x2`] is another definition with the same promises
//! (`split.rs`).

use super::scratch;
use super::simd::level;
use super::split::Split;
use crate::matrix::{Matrix, MatrixMut};
use crate::parallel;
use std::ops::Range;

/// Small steps have some 150 rows: in tasks of 24 no thread waits long for another.
const ROWS_PER_TASK: usize = 24;
/// Depth of one packed block: 512 x 272 columns of B stay in a megabyte of second-level cache.
const DEPTH: usize = 512;

/// How the numbers of a layer's products are multiplied.
///
/// Either gives the same bits on every processor and any number of threads; only their speed
/// differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matmul {
    /// One chain of fused multiply-adds in f32.
    #[default]
    F32,
    /// Each number as the sum of two of 8 significant bits: a product is right to about 16 bits
    /// instead of 24. Faster where the processor has a matrix unit for such numbers
    /// ([`has_matrix_unit`](crate::has_matrix_unit)), up to twice for the wide layers of the
    /// benches, and several times slower elsewhere.
    Bf16x2,
}

/// A factor: element (i, j) is `data[i * row_stride + j * column_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Factor<'a> {
    pub(super) data: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a> Factor<'a> {
    pub fn of(matrix: Matrix<'a>) -> Self {
        Self { data: matrix.data, row_stride: matrix.stride, column_stride: 1 }
    }

    pub fn transposed(matrix: Matrix<'a>) -> Self {
        Self { data: matrix.data, row_stride: 1, column_stride: matrix.stride }
    }

    fn check(&self, rows: usize, columns: usize) {
        let last = (rows - 1) * self.row_stride + (columns - 1) * self.column_stride;
        assert!(last < self.data.len(), "factor smaller than {rows} x {columns}");
    }
}

/// What happens to the old content of C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Overwrite,
    Add,
}

/// What happens to each finished row of C while it is still in cache.
pub(crate) struct Finish<'a> {
    /// A matrix that is written along with C; it has the rows of C, or no columns.
    pub beside: MatrixMut<'a>,
    /// Called with the row's number, the row, and the same row of `beside`.
    pub run: &'a FinishRow<'a>,
}

/// What is done to a row, given its number and the same row of the matrix beside it.
pub(crate) type FinishRow<'a> = dyn Fn(usize, &mut [f32], &mut [f32]) + Sync + 'a;

/// One tile of C: up to `rows` x `vectors` registers.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub depth: usize,
    pub a: *const f32,
    pub a_row_stride: usize,
    pub a_depth_stride: usize,
    /// `depth` rows of `vectors * lanes` packed values.
    pub b: *const f32,
    pub c: *mut f32,
    pub c_row_stride: usize,
    /// Columns of C that exist; at most `vectors * lanes`.
    pub columns: usize,
    pub add: bool,
}

/// The tiles of one instruction set.
pub(crate) struct Tiles {
    pub lanes: usize,
    pub vectors: usize,
    pub rows: usize,
    /// `run(rows - 1, vectors - 1)`
    pub run: fn(usize, usize) -> unsafe fn(Tile),
}

fn tiles() -> &'static Tiles {
    match level() {
        #[cfg(target_arch = "x86_64")]
        super::simd::Level::Avx512 => &super::gemm_x86::AVX512,
        #[cfg(target_arch = "x86_64")]
        super::simd::Level::Avx2 => &super::gemm_x86::AVX2,
        _ => &PORTABLE,
    }
}

/// C = A B or C += A B, on the current rayon pool if it is worth it. A is [m, depth], B is [depth,
/// n].
pub(crate) fn multiply(a: Factor<'_>, b: Factor<'_>, depth: usize, c: MatrixMut<'_>, into: Into) {
    run(&Chain(tiles()), a, b, depth, c, into, None, true);
}

/// [`multiply`] by either kind of products.
pub(crate) fn multiply_as(
    products: Matmul,
    a: Factor<'_>,
    b: Factor<'_>,
    depth: usize,
    c: MatrixMut<'_>,
    into: Into,
) {
    match products {
        Matmul::F32 => multiply(a, b, depth, c, into),
        Matmul::Bf16x2 => run(&Split::new(), a, b, depth, c, into, None, true),
    }
}

/// C = A B, with something done to each finished row.
pub(crate) fn multiply_and_finish(
    products: Matmul,
    a: Factor<'_>,
    b: Factor<'_>,
    depth: usize,
    c: MatrixMut<'_>,
    finish: Finish<'_>,
) {
    match products {
        Matmul::F32 => run(&Chain(tiles()), a, b, depth, c, Into::Overwrite, Some(finish), true),
        Matmul::Bf16x2 => run(&Split::new(), a, b, depth, c, Into::Overwrite, Some(finish), true),
    }
}

/// The exact product on the calling thread, for use inside parallel tasks.
pub(crate) fn multiply_here(
    a: Factor<'_>,
    b: Factor<'_>,
    depth: usize,
    c: MatrixMut<'_>,
    into: Into,
) {
    run(&Chain(tiles()), a, b, depth, c, into, None, false);
}

/// How a block of a product is made. A block is all of C and some of the depth.
pub(super) trait Kernel: Sync {
    /// Rows given to one task. Only a matter of balance: results do not depend on it.
    const ROWS_PER_TASK: usize;

    /// A block's depth begins at a multiple of this.
    const DEPTH_UNIT: usize;

    /// How many floats of a block of B come to when packed.
    fn packed_len(&self, depth: usize, n: usize) -> usize;

    /// Packs B's rows `from .. from + depth`.
    fn pack(
        &self,
        b: Factor<'_>,
        from: usize,
        depth: usize,
        n: usize,
        packed: &mut [f32],
        share: bool,
    );

    /// Some rows of C from the same rows of A, from `first_row` on, and a packed block of B.
    fn multiply(
        &self,
        a: Factor<'_>,
        first_row: usize,
        depth: Range<usize>,
        packed: &[f32],
        c: &mut MatrixMut<'_>,
        add: bool,
    );
}

#[allow(clippy::too_many_arguments, reason = "the geometry of a product")]
fn run<K: Kernel>(
    kernel: &K,
    a: Factor<'_>,
    b: Factor<'_>,
    depth: usize,
    mut c: MatrixMut<'_>,
    into: Into,
    finish: Option<Finish<'_>>,
    share: bool,
) {
    let (m, n) = (c.rows, c.cols);
    if m == 0 || n == 0 {
        return;
    }
    let (mut beside, finish) = match finish {
        Some(Finish { beside, run }) => (beside, Some(run)),
        None => (MatrixMut::new(&mut [], m, 0), None),
    };
    if depth == 0 {
        for i in 0..m {
            if into == Into::Overwrite {
                c.row(i).fill(0.0);
            }
            if let Some(finish) = finish {
                finish(i, c.row(i), beside.row(i));
            }
        }
        return;
    }
    a.check(m, depth);
    b.check(depth, n);
    assert!(c.data.len() >= (m - 1) * c.stride + n);
    let blocks = depth.div_ceil(DEPTH);
    let block_depth = depth.div_ceil(blocks).next_multiple_of(K::DEPTH_UNIT);
    scratch::with(kernel.packed_len(block_depth.min(depth), n), |packed| {
        for from in (0..depth).step_by(block_depth) {
            let to = (from + block_depth).min(depth);
            kernel.pack(b, from, to - from, n, packed, share);
            let add = from > 0 || into == Into::Add;
            let last = to == depth;
            let packed = &*packed;
            let task = |first_row: usize, mut part: MatrixMut<'_>, mut beside: MatrixMut<'_>| {
                kernel.multiply(a, first_row, from..to, packed, &mut part, add);
                if let (true, Some(finish)) = (last, finish) {
                    for i in 0..part.rows {
                        finish(first_row + i, part.row(i), beside.row(i));
                    }
                }
            };
            if share {
                // One task per fused multiply-add of a vector is what counts against the threshold.
                let work = m * n * (to - from) / 8;
                parallel::rows_beside(
                    c.reborrow(),
                    beside.reborrow(),
                    K::ROWS_PER_TASK,
                    work,
                    task,
                );
            } else {
                task(0, c.reborrow(), beside.reborrow());
            }
        }
    });
}

/// [`Matmul::F32`] by the tiles of an instruction set.
struct Chain(&'static Tiles);

impl Kernel for Chain {
    const ROWS_PER_TASK: usize = ROWS_PER_TASK;
    const DEPTH_UNIT: usize = 1;

    fn packed_len(&self, depth: usize, n: usize) -> usize {
        depth * n.next_multiple_of(self.0.lanes)
    }

    fn pack(
        &self,
        b: Factor<'_>,
        from: usize,
        depth: usize,
        n: usize,
        packed: &mut [f32],
        share: bool,
    ) {
        pack(b, from, depth, n, self.0, packed, share);
    }

    fn multiply(
        &self,
        a: Factor<'_>,
        first_row: usize,
        depth: Range<usize>,
        packed: &[f32],
        c: &mut MatrixMut<'_>,
        add: bool,
    ) {
        multiply_block(a, first_row, depth.start, depth.len(), packed, c, add, self.0);
    }
}

/// Copies `B[from .. from + depth, 0 .. n]` into panels: panel p holds `depth` rows of its columns,
/// padded with zeros.
fn pack(
    b: Factor<'_>,
    from: usize,
    depth: usize,
    n: usize,
    tiles: &Tiles,
    packed: &mut [f32],
    share: bool,
) {
    let widest = tiles.vectors * tiles.lanes;
    let packed = &mut packed[..depth * n.next_multiple_of(tiles.lanes)];
    let task = |index: usize, panel: &mut [f32]| {
        let column = index * widest;
        let columns = widest.min(n - column);
        let width = columns.next_multiple_of(tiles.lanes);
        if b.column_stride == 1 {
            let source = &b.data[from * b.row_stride + column..];
            pack_rows(source, b.row_stride, columns, width, panel);
        } else {
            pack_transposed(b, from, depth, column, columns, width, panel);
        }
    };
    // Moving a number takes as long as several operations on it.
    let work = if share { 4 * packed.len() } else { 0 };
    parallel::chunks(packed, widest * depth, work, task);
}

multiversion! {
    /// Packs a panel whose rows are contiguous. Rows are too short for calls of `memcpy`.
    fn pack_rows(source: &[f32], stride: usize, columns: usize, width: usize, panel: &mut [f32]) {
        for (k, row) in panel.chunks_exact_mut(width).enumerate() {
            let source = &source[k * stride..][..columns];
            let (row, rest) = row.split_at_mut(columns);
            let (blocks, ends) = row.as_chunks_mut::<8>();
            let (from, from_ends) = source.as_chunks::<8>();
            for (to, from) in blocks.iter_mut().zip(from) {
                *to = *from;
            }
            for (to, &from) in ends.iter_mut().zip(from_ends) {
                *to = from;
            }
            for to in rest {
                *to = 0.0;
            }
        }
    }
}

/// Packs a panel whose columns, not rows, are contiguous in memory (B is a transposed matrix).
fn pack_transposed(
    b: Factor<'_>,
    from: usize,
    depth: usize,
    column: usize,
    columns: usize,
    width: usize,
    panel: &mut [f32],
) {
    // Eight columns at a time: eight sequential reads per write of a half line.
    let mut j = 0;
    while j < width {
        let source = |offset: usize| {
            let inside = (j + offset).min(columns - 1);
            &b.data[(column + inside) * b.column_stride + from * b.row_stride..]
                [..(depth - 1) * b.row_stride + 1]
        };
        let sources: [&[f32]; 8] = std::array::from_fn(source);
        if b.row_stride == 1 {
            transpose_eight(&sources, &mut panel[j..], width, depth);
        } else {
            for k in 0..depth {
                for (offset, source) in sources.iter().enumerate() {
                    panel[k * width + j + offset] = source[k * b.row_stride];
                }
            }
        }
        if j + 8 > columns {
            for k in 0..depth {
                panel[k * width + j.max(columns)..k * width + j + 8].fill(0.0);
            }
        }
        j += 8;
    }
}

/// The first steps of [`transpose_eight`], as many as vector instructions can do at once: how many
/// that were.
#[cfg(target_arch = "x86_64")]
fn transposed_by_vectors(
    sources: &[&[f32]; 8],
    panel: &mut [f32],
    width: usize,
    depth: usize,
) -> usize {
    if level() < super::simd::Level::Avx2 {
        return 0;
    }
    // SAFETY: `level` has seen AVX2 on this processor.
    unsafe { super::gemm_x86::transpose_eight(sources, panel, width, depth) }
}

#[cfg(not(target_arch = "x86_64"))]
fn transposed_by_vectors(_: &[&[f32]; 8], _: &mut [f32], _: usize, _: usize) -> usize {
    0
}

/// `panel[k * width + i]` = `sources[i][k]` for i < 8.
fn transpose_eight(sources: &[&[f32]; 8], panel: &mut [f32], width: usize, depth: usize) {
    for k in transposed_by_vectors(sources, panel, width, depth)..depth {
        for (out, source) in panel[k * width..][..8].iter_mut().zip(sources) {
            *out = source[k];
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "the geometry of a block of a product")]
fn multiply_block(
    a: Factor<'_>,
    first_row: usize,
    from: usize,
    depth: usize,
    packed: &[f32],
    c: &mut MatrixMut<'_>,
    add: bool,
    tiles: &Tiles,
) {
    let widest = tiles.vectors * tiles.lanes;
    assert!(c.data.len() >= (c.rows - 1) * c.stride + c.cols);
    assert!(packed.len() >= depth * c.cols.next_multiple_of(tiles.lanes));
    // A transposed factor has the rows of a tile side by side but each step of depth on another
    // line. Read once per panel of B that costs a third of the speed, so it is gathered once per
    // tile.
    let gather = a.row_stride == 1 && a.column_stride > 1 && c.cols > 2 * widest;
    scratch::with(if gather { tiles.rows * depth } else { 0 }, |gathered| {
        for row in (0..c.rows).step_by(tiles.rows) {
            let rows = tiles.rows.min(c.rows - row);
            let source = &a.data[(first_row + row) * a.row_stride + from * a.column_stride..];
            let (source, row_stride, depth_stride) = if gather {
                gather_tile(source, a.column_stride, rows, &mut gathered[..rows * depth]);
                (&*gathered, 1, rows)
            } else {
                (source, a.row_stride, a.column_stride)
            };
            for column in (0..c.cols).step_by(widest) {
                let columns = widest.min(c.cols - column);
                let vectors = columns.div_ceil(tiles.lanes);
                let tile = Tile {
                    depth,
                    a: source.as_ptr(),
                    a_row_stride: row_stride,
                    a_depth_stride: depth_stride,
                    b: packed[column * depth..].as_ptr(),
                    c: c.data[row * c.stride + column..].as_mut_ptr(),
                    c_row_stride: c.stride,
                    columns,
                    add,
                };
                // SAFETY: `run` checked that A has m x depth and C m x n elements, and this tile
                // stays inside them, or `gathered` holds `rows * depth` values; the panel holds
                // `depth * vectors * lanes` values (asserted above); `level` has seen the
                // instruction set.
                unsafe { (tiles.run)(rows - 1, vectors - 1)(tile) };
            }
        }
    });
}

/// `gathered[k * rows + i] = source[k * stride + i]`.
fn gather_tile(source: &[f32], stride: usize, rows: usize, gathered: &mut [f32]) {
    for (k, out) in gathered.chunks_exact_mut(rows).enumerate() {
        let from = &source[k * stride..][..rows];
        if let (Some(out), Some(from)) = (out.first_chunk_mut::<8>(), from.first_chunk::<8>()) {
            *out = *from;
        } else {
            for (out, &from) in out.iter_mut().zip(from) {
                *out = from;
            }
        }
    }
}

/// Lanes of the portable tile: two vectors of eight keep within 32 four-lane registers.
const PORTABLE_LANES: usize = 8;

static PORTABLE: Tiles = Tiles {
    lanes: PORTABLE_LANES,
    vectors: 2,
    rows: 4,
    run: |rows, vectors| {
        const RUN: [[unsafe fn(Tile); 2]; 4] = [
            [portable::<1, 1>, portable::<1, 2>],
            [portable::<2, 1>, portable::<2, 2>],
            [portable::<3, 1>, portable::<3, 2>],
            [portable::<4, 1>, portable::<4, 2>],
        ];
        RUN[rows][vectors]
    },
};

/// # Safety
/// The pointers of `tile` must be valid for its sizes and strides.
unsafe fn portable<const ROWS: usize, const VECTORS: usize>(tile: Tile) {
    let width = VECTORS * PORTABLE_LANES;
    let mut sums = [[[0.0_f32; PORTABLE_LANES]; VECTORS]; ROWS];
    // SAFETY: the caller promises rows, columns and depth as indexed here.
    unsafe {
        if tile.add {
            for (i, row) in sums.iter_mut().enumerate() {
                for j in 0..tile.columns {
                    row[j / PORTABLE_LANES][j % PORTABLE_LANES] =
                        *tile.c.add(i * tile.c_row_stride + j);
                }
            }
        }
        for k in 0..tile.depth {
            let b = tile.b.add(k * width).cast::<[[f32; PORTABLE_LANES]; VECTORS]>().read();
            for (i, row) in sums.iter_mut().enumerate() {
                let a = *tile.a.add(i * tile.a_row_stride + k * tile.a_depth_stride);
                for v in 0..VECTORS {
                    for lane in 0..PORTABLE_LANES {
                        row[v][lane] = a.mul_add(b[v][lane], row[v][lane]);
                    }
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            for j in 0..tile.columns {
                *tile.c.add(i * tile.c_row_stride + j) =
                    row[j / PORTABLE_LANES][j % PORTABLE_LANES];
            }
        }
    }
}

#[cfg(test)]
#[path = "gemm_tests.rs"]
pub(super) mod tests;
