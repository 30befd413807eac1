//! Row-major matrix views with a row stride, read-only and writable.
//!
//! A column slice of a wider matrix is such a view, which is why concatenation and slicing need no
//! copies.

/// A read-only matrix: row `i` is `data[i * stride ..][.. cols]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

impl<'a> Matrix<'a> {
    /// A dense matrix of `cols` columns over `data`.
    ///
    /// # Panics
    /// If the length of `data` is not `rows * cols`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "{} values cannot be {rows} x {cols}", data.len());
        Self { data, rows, cols, stride: cols }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [f32] {
        &self.data[i * self.stride..][..self.cols]
    }

    /// All values in row-major order, if the rows follow each other without a gap.
    pub fn flat(&self) -> Option<&'a [f32]> {
        (self.stride == self.cols || self.rows <= 1).then(|| &self.data[..self.rows * self.cols])
    }

    /// All rows, first to last.
    pub fn iter_rows(self) -> impl Iterator<Item = &'a [f32]> {
        (0..self.rows).map(move |i| self.row(i))
    }

    /// A copy of all values in row-major order.
    pub fn to_vec(&self) -> Vec<f32> {
        (0..self.rows).flat_map(|i| self.row(i).iter().copied()).collect()
    }

    /// Rows `from .. from + count`.
    pub(crate) fn rows_from(&self, from: usize, count: usize) -> Matrix<'a> {
        Matrix {
            data: &self.data[(from * self.stride).min(self.data.len())..],
            rows: count,
            ..*self
        }
    }

    /// Columns `from .. from + count`.
    pub(crate) fn columns_from(&self, from: usize, count: usize) -> Matrix<'a> {
        Matrix { data: &self.data[from.min(self.data.len())..], cols: count, ..*self }
    }
}

/// A writable matrix: row `i` is `data[i * stride ..][.. cols]`.
#[derive(Debug)]
pub(crate) struct MatrixMut<'a> {
    pub data: &'a mut [f32],
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
}

impl<'a> MatrixMut<'a> {
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self { data, rows, cols, stride: cols }
    }

    #[inline]
    pub fn row(&mut self, i: usize) -> &mut [f32] {
        &mut self.data[i * self.stride..][..self.cols]
    }

    pub fn flat(&mut self) -> Option<&mut [f32]> {
        (self.stride == self.cols || self.rows <= 1)
            .then(|| &mut self.data[..self.rows * self.cols])
    }

    pub fn reborrow(&mut self) -> MatrixMut<'_> {
        MatrixMut { data: self.data, rows: self.rows, cols: self.cols, stride: self.stride }
    }

    pub fn as_ref(&self) -> Matrix<'_> {
        Matrix { data: self.data, rows: self.rows, cols: self.cols, stride: self.stride }
    }

    pub fn columns_from(self, from: usize, count: usize) -> MatrixMut<'a> {
        let from_in_data = from.min(self.data.len());
        MatrixMut { data: &mut self.data[from_in_data..], cols: count, ..self }
    }

    pub fn fill(&mut self, value: f32) {
        for i in 0..self.rows {
            self.row(i).fill(value);
        }
    }
}
