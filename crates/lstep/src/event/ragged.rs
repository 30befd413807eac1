//! Rows of different lengths, kept one after the other in one vector.
//!
//! [`RowEnds`] knows where rows end, whatever holds their values; [`Ragged`] is the usual case with
//! one vector of values. Depends on nothing.

use std::ops::Range;

/// Where each row ends in a column of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowEnds(Vec<usize>);

impl RowEnds {
    /// Ends the next row where the column ends now.
    #[inline]
    pub fn push(&mut self, end: usize) {
        debug_assert!(self.0.last().is_none_or(|&last| last <= end), "rows follow each other");
        self.0.push(end);
    }

    /// How many rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where a row is in the column.
    #[inline]
    pub fn span(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.0[row - 1] };
        start..self.0[row]
    }

    /// The row that holds a place of the column. O(log rows).
    pub fn row_of(&self, place: usize) -> usize {
        self.0.partition_point(|&end| end <= place)
    }

    /// Whether every row has exactly one value.
    pub fn one_each(&self) -> bool {
        self.0.iter().enumerate().all(|(row, &end)| end == row + 1)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Rows of different lengths.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ragged<T> {
    ends: RowEnds,
    values: Vec<T>,
}

impl<T> Ragged<T> {
    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = T>) {
        self.values.extend(row);
        self.ends.push(self.values.len());
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where a row's values are among all values.
    #[inline]
    pub fn span(&self, row: usize) -> Range<usize> {
        self.ends.span(row)
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[self.span(row)]
    }

    /// The row that holds a place among all values.
    pub fn row_of(&self, place: usize) -> usize {
        self.ends.row_of(place)
    }

    /// All values, row after row.
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.values.clear();
    }
}

impl<T> Default for Ragged<T> {
    fn default() -> Ragged<T> {
        Ragged { ends: RowEnds::default(), values: Vec::new() }
    }
}

impl<T, R: IntoIterator<Item = T>> FromIterator<R> for Ragged<T> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Ragged<T> {
        let mut ragged = Ragged::default();
        rows.into_iter().for_each(|row| ragged.push(row));
        ragged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_pushed() {
        let rows: [&[u32]; 4] = [&[], &[7, 8], &[], &[9]];
        let ragged: Ragged<u32> = rows.iter().map(|row| row.iter().copied()).collect();
        assert_eq!(ragged.len(), 4);
        (0..4).for_each(|row| assert_eq!(ragged.row(row), rows[row]));
        assert_eq!(ragged.values(), [7, 8, 9]);
        assert_eq!([0, 1, 2].map(|place| ragged.row_of(place)), [1, 1, 3]);
        assert_eq!(ragged.span(3), 2..3);
    }
}
