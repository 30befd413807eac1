//! Columns of Python tables as the library reads them.
//!
//! `lstep._columns` has brought every column into one of four forms, without copying where it
//! could. Here they are borrowed.

use lstep::event::Unit;
use lstep::read::Column;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A column that is held while it is read.
pub enum HeldColumn<'py> {
    Integer(PyReadonlyArray1<'py, i64>),
    Float(PyReadonlyArray1<'py, f64>),
    Text(Vec<String>, PyReadonlyArray1<'py, i64>),
    Instant(Unit, PyReadonlyArray1<'py, i64>),
}

impl<'py> HeldColumn<'py> {
    /// From a pair of a form's name and its content.
    pub fn new(form: &Bound<'py, PyAny>) -> PyResult<HeldColumn<'py>> {
        let (name, content): (String, Bound<'py, PyAny>) = form.extract()?;
        Ok(match name.as_str() {
            "integer" => HeldColumn::Integer(content.extract()?),
            "float" => HeldColumn::Float(content.extract()?),
            "text" => {
                let (values, rows) = content.extract()?;
                HeldColumn::Text(values, rows)
            }
            "s" => HeldColumn::Instant(Unit::Second, content.extract()?),
            "ms" => HeldColumn::Instant(Unit::Millisecond, content.extract()?),
            "us" => HeldColumn::Instant(Unit::Microsecond, content.extract()?),
            "ns" => HeldColumn::Instant(Unit::Nanosecond, content.extract()?),
            other => return Err(PyTypeError::new_err(format!("no form of a column: {other}"))),
        })
    }

    pub fn column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            HeldColumn::Integer(cells) => Column::Integer(cells.as_slice()?),
            HeldColumn::Float(cells) => Column::Float(cells.as_slice()?),
            HeldColumn::Text(values, rows) => Column::Text { values, rows: rows.as_slice()? },
            HeldColumn::Instant(unit, cells) => Column::Instant(*unit, cells.as_slice()?),
        })
    }
}
