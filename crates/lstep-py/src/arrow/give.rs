//! Columns of ours for any library that takes Arrow's capsules.
//!
//! A table is given in one piece. Numbers, moments and text are what results and streams have.

use super::{ArrowArray, ArrowArrayStream, ArrowSchema, Released, STREAM};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// The flag of a column that may have empty rows.
const NULLABLE: i64 = 2;

/// A capsule with a stream of one table. Columns are pairs of a kind and its values: `integer`,
/// `float`, `bool` or a unit of moments with an array or a list that may have `None`, and `text`
/// with a list.
#[pyfunction]
pub fn arrow_stream<'py>(
    py: Python<'py>,
    names: Vec<String>,
    columns: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = names.iter().zip(&columns).map(|(name, (kind, cells))| {
        let name = CString::new(name.as_str())?;
        Ok(Column { name, ..Column::new(kind, cells)? })
    });
    let table = Table { columns: columns.collect::<PyResult<_>>()?, given: false };
    let stream = ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(table)).cast(),
    };
    PyCapsule::new_with_value(py, stream, STREAM)
}

struct Column {
    name: CString,
    format: &'static CStr,
    rows: usize,
    nulls: usize,
    /// A bit for each row that is not empty.
    known: Vec<u8>,
    cells: Cells,
}

enum Cells {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Bits(Vec<u8>),
    Text(Vec<i64>, Vec<u8>),
}

impl Column {
    fn new(kind: &str, cells: &Bound<'_, PyAny>) -> PyResult<Column> {
        let (format, cells, known) = match kind {
            "integer" => integers(c"l", cells)?,
            "s" => integers(c"tss:", cells)?,
            "ms" => integers(c"tsm:", cells)?,
            "us" => integers(c"tsu:", cells)?,
            "ns" => integers(c"tsn:", cells)?,
            "float" => {
                if let Ok(array) = cells.extract::<PyReadonlyArray1<'_, f64>>() {
                    let numbers = array.as_array().to_vec();
                    let known = vec![true; numbers.len()];
                    (c"g", Cells::Floats(numbers), known)
                } else {
                    let (numbers, known) = optional::<f64>(cells)?;
                    (c"g", Cells::Floats(numbers), known)
                }
            }
            "bool" => {
                let (truths, known) = optional::<bool>(cells)?;
                (c"b", Cells::Bits(bits(&truths)), known)
            }
            "text" => {
                let texts: Vec<Option<String>> = cells.extract()?;
                let (mut ends, mut bytes) = (vec![0], Vec::new());
                for text in &texts {
                    bytes.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
                    ends.push(bytes.len() as i64);
                }
                let known = texts.iter().map(Option::is_some).collect();
                (c"U", Cells::Text(ends, bytes), known)
            }
            other => return Err(PyTypeError::new_err(format!("no kind of a column: {other}"))),
        };
        let nulls = known.iter().filter(|known| !**known).count();
        let rows = known.len();
        Ok(Column { name: CString::default(), format, rows, nulls, known: bits(&known), cells })
    }
}

/// A type, its cells, and which of them are not empty.
type Read = (&'static CStr, Cells, Vec<bool>);

fn integers(format: &'static CStr, cells: &Bound<'_, PyAny>) -> PyResult<Read> {
    if let Ok(array) = cells.extract::<PyReadonlyArray1<'_, i64>>() {
        let numbers = array.as_array().to_vec();
        let known = vec![true; numbers.len()];
        return Ok((format, Cells::Integers(numbers), known));
    }
    let (numbers, known) = optional::<i64>(cells)?;
    Ok((format, Cells::Integers(numbers), known))
}

fn optional<'py, T>(cells: &Bound<'py, PyAny>) -> PyResult<(Vec<T>, Vec<bool>)>
where
    T: Default + Copy + for<'a> FromPyObject<'a, 'py>,
{
    let mut read = (Vec::new(), Vec::new());
    for cell in cells.try_iter()? {
        let cell = cell?;
        let value = (!cell.is_none()).then(|| cell.extract::<T>().map_err(Into::into));
        let value: Option<T> = value.transpose()?;
        read.0.push(value.unwrap_or_default());
        read.1.push(value.is_some());
    }
    Ok(read)
}

fn bits(truths: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| {
        let bit = |(place, truth): (usize, &bool)| u8::from(*truth) << place;
        eight.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    };
    truths.chunks(8).map(byte).collect()
}

/// What a stream of ours holds.
struct Table {
    columns: Vec<Column>,
    given: bool,
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: this function stands only in streams whose private data is a table.
    let table = unsafe { &*(*stream).private_data.cast::<Table>() };
    let child = |column: &Column| {
        let name = column.name.clone();
        HeldSchema { name, children: Vec::new() }.filled(column.format, NULLABLE)
    };
    let children = table.columns.iter().map(|column| Box::into_raw(Box::new(child(column))));
    let held = HeldSchema { name: CString::default(), children: children.collect() };
    // SAFETY: the caller gives a place for a schema, which holds none yet.
    unsafe { out.write(held.filled(c"+s", 0)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as above; a stream is used by one caller at a time.
    let table = unsafe { &mut *(*stream).private_data.cast::<Table>() };
    let next = if std::mem::replace(&mut table.given, true) {
        ArrowArray::NOTHING
    } else {
        let rows = table.columns.first().map_or(0, |column| column.rows);
        let children = table.columns.iter_mut().map(|column| {
            let (rows, nulls) = (column.rows, column.nulls);
            let held = HeldArray::of(std::mem::take(&mut column.known), column.take_cells());
            Box::into_raw(Box::new(held.filled(rows, nulls)))
        });
        let children = children.collect();
        HeldArray { _cells: None, children, buffers: vec![null()] }.filled(rows, 0)
    };
    // SAFETY: the caller gives a place for an array, which holds none yet.
    unsafe { out.write(next) };
    0
}

impl Column {
    /// Its cells. The rest stays, because the schema may be asked for again.
    fn take_cells(&mut self) -> Cells {
        std::mem::replace(&mut self.cells, Cells::Bits(Vec::new()))
    }
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: a stream is released once, and its private data was made from a box.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Table>()));
        (*stream).release = None;
    }
}

/// What a schema of ours points to.
struct HeldSchema {
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

impl HeldSchema {
    fn filled(self, format: &'static CStr, flags: i64) -> ArrowSchema {
        let held = Box::new(self);
        ArrowSchema {
            format: format.as_ptr(),
            name: held.name.as_ptr(),
            flags,
            n_children: held.children.len() as i64,
            children: held.children.as_ptr().cast_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(held).cast(),
            metadata: null(),
            dictionary: null_mut(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: a schema is released once; it and its children were made from boxes. A child that a
    // consumer has moved out is empty, and dropping it does nothing.
    unsafe {
        let held = Box::from_raw((*schema).private_data.cast::<HeldSchema>());
        held.children.iter().for_each(|&child| drop(Box::from_raw(child)));
        (*schema).release = None;
    }
}

/// What an array of ours points to.
struct HeldArray {
    /// What the buffers point to: a table has none of its own.
    _cells: Option<(Vec<u8>, Cells)>,
    children: Vec<*mut ArrowArray>,
    buffers: Vec<*const c_void>,
}

impl HeldArray {
    fn of(known: Vec<u8>, cells: Cells) -> HeldArray {
        // The vectors' contents stay where they are when the vectors are moved.
        let mut buffers: Vec<*const c_void> = vec![known.as_ptr().cast()];
        match &cells {
            Cells::Integers(numbers) => buffers.push(numbers.as_ptr().cast()),
            Cells::Floats(numbers) => buffers.push(numbers.as_ptr().cast()),
            Cells::Bits(bits) => buffers.push(bits.as_ptr().cast()),
            Cells::Text(ends, bytes) => {
                buffers.extend([ends.as_ptr().cast::<c_void>(), bytes.as_ptr().cast()]);
            }
        }
        HeldArray { _cells: Some((known, cells)), children: Vec::new(), buffers }
    }

    fn filled(self, rows: usize, nulls: usize) -> ArrowArray {
        let held = Box::new(self);
        ArrowArray {
            length: rows as i64,
            null_count: nulls as i64,
            offset: 0,
            n_buffers: held.buffers.len() as i64,
            n_children: held.children.len() as i64,
            buffers: held.buffers.as_ptr().cast_mut(),
            children: held.children.as_ptr().cast_mut(),
            dictionary: null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(held).cast(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for a schema.
    unsafe {
        let held = Box::from_raw((*array).private_data.cast::<HeldArray>());
        held.children.iter().for_each(|&child| drop(Box::from_raw(child)));
        (*array).release = None;
    }
}
