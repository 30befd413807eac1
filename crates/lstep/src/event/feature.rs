//! A table of features, one row for each event or node. An absent table has width zero and costs
//! nothing.

use crate::error::{Error, Result};

/// Rows of equally many finite numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Features {
    width: usize,
    values: Vec<f32>,
}

impl Features {
    /// No features.
    pub fn none() -> Features {
        Features::default()
    }

    /// A table from its rows written one after the other.
    ///
    /// Refuses values that are not finite and a length that is no multiple of the width.
    pub fn new(width: usize, values: Vec<f32>) -> Result<Features> {
        if width == 0 && !values.is_empty() || width > 0 && !values.len().is_multiple_of(width) {
            return Err(Error::LengthMismatch {
                what: "feature values and whole rows",
                left: values.len(),
                right: width,
            });
        }
        all_finite(&values, width, 0)?;
        Ok(Features { width, values })
    }

    /// Numbers in a row; zero where there are no features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows; zero where there are no features.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// One row; empty where there are no features.
    #[inline]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// The first `count` rows.
    #[must_use]
    pub fn first(&self, count: usize) -> Features {
        Features { width: self.width, values: self.values[..count * self.width].to_vec() }
    }

    /// All rows, one after the other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Appends a row of the table's width, of finite numbers.
    pub fn push(&mut self, row: &[f32]) -> Result<()> {
        if row.len() != self.width {
            return Err(Error::LengthMismatch {
                what: "feature row and table width",
                left: row.len(),
                right: self.width,
            });
        }
        all_finite(row, self.width, self.rows())?;
        self.values.extend_from_slice(row);
        Ok(())
    }
}

fn all_finite(values: &[f32], width: usize, first_row: usize) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(place) => Err(Error::FeatureNotFinite {
            row: first_row + place / width,
            column: place % width,
            value: values[place],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_table_gives_empty_rows() {
        assert_eq!(Features::none().row(7), &[] as &[f32]);
        assert_eq!(Features::none().rows(), 0);
    }

    #[test]
    fn a_value_that_is_not_finite_is_refused_with_its_place() {
        let error = Features::new(2, vec![0.0, 1.0, 2.0, f32::NAN]).expect_err("NaN");
        assert!(error.to_string().contains("row 1, column 1"), "{error}");
    }
}
