//! Columns of any library that gives Arrow's capsules.
//!
//! A column becomes one of the forms of `lstep._columns`. Integers of 64 bits, doubles and moments
//! in one piece are read where they lie: the numpy array that is given holds the table.

use super::{ARRAY, ArrowArray, ArrowArrayStream, ArrowSchema, Released, SCHEMA, STREAM};
use numpy::ndarray::ArrayView1;
use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};

/// What stands for a moment that is missing: numpy's `NaT`.
const NOT_A_TIME: i64 = i64::MIN;
const SECONDS_PER_DAY: i64 = 86_400;

/// All pieces of a table or of a column.
#[pyclass(frozen, module = "lstep._core")]
pub struct ArrowTable {
    schema: ArrowSchema,
    pieces: Vec<ArrowArray>,
}

#[pymethods]
impl ArrowTable {
    /// From anything that gives Arrow's capsules. A stream is read to its end.
    #[new]
    fn new(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        if given.hasattr("__arrow_c_stream__")? {
            let capsule = given.call_method0("__arrow_c_stream__")?;
            let mut stream: ArrowArrayStream = taken(&capsule, STREAM)?;
            return py.detach(|| read(&mut stream)).map_err(PyRuntimeError::new_err);
        }
        let pair = given.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        Ok(ArrowTable { schema: taken(&schema, SCHEMA)?, pieces: vec![taken(&array, ARRAY)?] })
    }

    /// The names of its columns; nothing if it is a column itself.
    fn names(&self) -> Option<Vec<String>> {
        let names = || self.schema.children().map(ArrowSchema::name);
        (self.schema.format() == "+s").then(|| names().collect())
    }

    /// A column of a table by its place, or the column that it is.
    #[pyo3(signature = (place))]
    fn column<'py>(
        this: &Bound<'py, ArrowTable>,
        place: Option<usize>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let table = this.get();
        let whole: Vec<Piece<'_>> = table.pieces.iter().map(Piece::whole).collect();
        let (schema, pieces) = match place {
            None => (&table.schema, whole),
            Some(place) => {
                let schema = table.schema.children().nth(place).ok_or_else(no_column)?;
                let pieces = whole.into_iter().map(|Piece { array, offset, length }| {
                    array.child(place, offset, length).ok_or_else(no_column)
                });
                (schema, pieces.collect::<PyResult<_>>()?)
            }
        };
        let column = this.py().detach(|| Values::read(schema, &pieces));
        column.into_python(this)
    }
}

fn no_column() -> PyErr {
    PyRuntimeError::new_err("the table has fewer columns than its schema")
}

/// The content of a capsule, which is left empty.
fn taken<T: Released>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<T> {
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("Arrow's methods have to give capsules"))?;
    let content = capsule.pointer_checked(Some(name))?;
    // SAFETY: a capsule of this name points to a struct of this type.
    Ok(unsafe { T::moved(content.as_ptr().cast()) })
}

/// Reads a stream to its end. A failure is told in the producer's words.
fn read(stream: &mut ArrowArrayStream) -> Result<ArrowTable, String> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err("the stream of Arrow tables was read before: open it again".into());
    };
    let mut schema = ArrowSchema::NOTHING;
    // SAFETY: the stream is filled, since it has these functions; they fill what they are given.
    let code = unsafe { get_schema(stream, &mut schema) };
    check(stream, code)?;
    let mut pieces = Vec::new();
    loop {
        let mut piece = ArrowArray::NOTHING;
        // SAFETY: as above.
        let code = unsafe { get_next(stream, &mut piece) };
        check(stream, code)?;
        if piece.release.is_none() {
            return Ok(ArrowTable { schema, pieces });
        }
        pieces.push(piece);
    }
}

fn check(stream: &mut ArrowArrayStream, code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the text lives until the stream is used again, or is null.
    let said = stream.get_last_error.and_then(|last| unsafe {
        let text = last(stream);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    });
    Err(said.unwrap_or_else(|| format!("the producer of the table failed with code {code}")))
}

impl ArrowSchema {
    fn format(&self) -> &str {
        // SAFETY: a schema that was filled has a format, which ends with a zero.
        let text = (!self.format.is_null()).then(|| unsafe { CStr::from_ptr(self.format) });
        text.and_then(|text| text.to_str().ok()).unwrap_or_default()
    }

    fn name(&self) -> String {
        // SAFETY: a name is null or ends with a zero.
        let text = (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) });
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    }

    fn children(&self) -> impl Iterator<Item = &ArrowSchema> {
        // SAFETY: a schema has as many children as it says, and lives longer than this borrow.
        (0..self.n_children as usize).map(|place| unsafe { &**self.children.add(place) })
    }

    fn dictionary(&self) -> Option<&ArrowSchema> {
        // SAFETY: it is null, or a schema that lives as long as this one.
        unsafe { self.dictionary.as_ref() }
    }
}

impl ArrowArray {
    fn child(&self, place: usize, offset: usize, length: usize) -> Option<Piece<'_>> {
        if place >= self.n_children as usize {
            return None;
        }
        // SAFETY: an array has as many children as it says, and they live as long.
        let array = unsafe { &**self.children.add(place) };
        Some(Piece { array, offset: array.offset as usize + offset, length })
    }

    fn buffer(&self, place: usize) -> *const c_void {
        if place >= self.n_buffers as usize {
            return std::ptr::null();
        }
        // SAFETY: an array has as many buffers as it says.
        unsafe { *self.buffers.add(place) }
    }
}

/// A part of an array.
#[derive(Clone, Copy)]
struct Piece<'a> {
    array: &'a ArrowArray,
    offset: usize,
    length: usize,
}

impl<'a> Piece<'a> {
    fn whole(array: &'a ArrowArray) -> Piece<'a> {
        Piece { array, offset: array.offset as usize, length: array.length as usize }
    }

    /// Whether a row is empty.
    fn is_null(&self, row: usize) -> bool {
        let bits: *const u8 = self.array.buffer(0).cast();
        !bits.is_null() && !bit(bits, self.offset + row)
    }

    /// The first row that is empty.
    fn first_null(&self) -> Option<usize> {
        if self.array.null_count == 0 || self.array.buffer(0).is_null() {
            return None;
        }
        (0..self.length).find(|&row| self.is_null(row))
    }

    /// The numbers of the second buffer, where they lie.
    fn slice<T: Copy>(&self) -> Option<&'a [T]> {
        if self.length == 0 {
            return Some(&[]);
        }
        let start: *const T = self.array.buffer(1).cast();
        if !start.is_aligned() || start.is_null() {
            return None;
        }
        // SAFETY: the buffer has so many numbers of this type, by the array's type and length.
        Some(unsafe { std::slice::from_raw_parts(start.add(self.offset), self.length) })
    }

    /// The same one by one, wherever they lie. Where nothing but empty rows are, there need not be
    /// any buffer.
    fn numbers<T: Copy + Default + 'a>(&self) -> impl Iterator<Item = T> + 'a {
        let start: *const T = self.array.buffer(1).cast();
        let offset = self.offset;
        (0..self.length).map(move |row| match start.is_null() {
            true => T::default(),
            // SAFETY: as above; the numbers need not be aligned.
            false => unsafe { start.add(offset + row).read_unaligned() },
        })
    }

    /// Text with offsets of 32 or 64 bits.
    fn text<Offset: Copy + TryInto<usize>>(&self, row: usize) -> &'a [u8] {
        let offsets: *const Offset = self.array.buffer(1).cast();
        let bytes: *const u8 = self.array.buffer(2).cast();
        if offsets.is_null() || bytes.is_null() {
            return &[];
        }
        // SAFETY: there is one offset more than rows, and they are within the third buffer.
        let at = |row: usize| unsafe { offsets.add(row).read_unaligned() };
        let (start, end) = (at(self.offset + row), at(self.offset + row + 1));
        let (start, end) = (start.try_into().unwrap_or(0), end.try_into().unwrap_or(0));
        if end <= start {
            return &[];
        }
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(bytes.add(start), end - start) }
    }

    /// Text by views: short ones lie in the view, others in one of several buffers.
    fn viewed(&self, row: usize) -> &'a [u8] {
        let views: *const u8 = self.array.buffer(1).cast();
        if views.is_null() {
            return &[];
        }
        // SAFETY: there is a view of 16 bytes for each row.
        unsafe {
            let view = views.add(16 * (self.offset + row));
            let word = |at: usize| view.add(at).cast::<i32>().read_unaligned() as usize;
            let (length, buffer, start) = (word(0), word(8), word(12));
            if length <= 12 {
                return std::slice::from_raw_parts(view.add(4), length);
            }
            let bytes: *const u8 = self.array.buffer(2 + buffer).cast();
            if bytes.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(bytes.add(start), length)
        }
    }
}

fn bit(bits: *const u8, place: usize) -> bool {
    // SAFETY: the caller asks about a row of the array, for each of which there is a bit.
    unsafe { *bits.add(place / 8) >> (place % 8) & 1 == 1 }
}

/// A column as `lstep._columns` takes it.
enum Values<'a> {
    Integer(Cow<'a, [i64]>),
    Unsigned(Cow<'a, [u64]>),
    Float(Cow<'a, [f64]>),
    /// Numbers of 16 bits.
    Half(Cow<'a, [u16]>),
    /// Distinct values, and which of them each row has.
    Text(Vec<Vec<u8>>, Vec<i64>),
    Instant(&'static str, Cow<'a, [i64]>),
    /// Which values rows have, of a column of values.
    Coded(Vec<i64>, Box<Values<'a>>),
    /// The first row that is empty, where none may be.
    Empty(usize),
    /// A type that is neither an id nor a time nor a feature.
    Unknown(String),
}

impl<'a> Values<'a> {
    fn read(schema: &ArrowSchema, pieces: &[Piece<'a>]) -> Values<'a> {
        if let Some(values) = schema.dictionary() {
            return coded(schema, values, pieces);
        }
        let format = schema.format();
        match format {
            "u" => return text(pieces, |piece, row| piece.text::<i32>(row)),
            "U" => return text(pieces, |piece, row| piece.text::<i64>(row)),
            "vu" => return text(pieces, |piece, row| piece.viewed(row)),
            "tdD" => {
                let days = |piece: &Piece<'a>, found: &mut Vec<i64>| {
                    found
                        .extend(piece.numbers::<i32>().map(|day| i64::from(day) * SECONDS_PER_DAY));
                };
                return Values::Instant("s", moments(pieces, copied(pieces, days)));
            }
            "tdm" => return Values::Instant("ms", moments(pieces, joined(pieces))),
            _ => {}
        }
        let units = [("tss:", "s"), ("tsm:", "ms"), ("tsu:", "us"), ("tsn:", "ns")];
        if let Some((_, unit)) = units.iter().find(|(start, _)| format.starts_with(start)) {
            return Values::Instant(unit, moments(pieces, joined(pieces)));
        }
        let mut before = 0;
        for piece in pieces {
            if let Some(row) = piece.first_null() {
                return Values::Empty(before + row);
            }
            before += piece.length;
        }
        match format {
            "l" => Values::Integer(joined(pieces)),
            "L" => Values::Unsigned(joined(pieces)),
            "g" => Values::Float(joined(pieces)),
            "e" => Values::Half(joined(pieces)),
            "f" => Values::Float(copied(pieces, |piece, found| {
                found.extend(piece.numbers::<f32>().map(f64::from));
            })),
            "b" => Values::Integer(copied(pieces, |piece, found| {
                let bits: *const u8 = piece.array.buffer(1).cast();
                found.extend((0..piece.length).map(|row| i64::from(bit(bits, piece.offset + row))));
            })),
            "n" if before > 0 => Values::Empty(0),
            _ => match integers(format, pieces) {
                Some(numbers) => Values::Integer(numbers.into()),
                None => Values::Unknown(format.into()),
            },
        }
    }

    fn into_python<'py>(self, table: &Bound<'py, ArrowTable>) -> PyResult<Bound<'py, PyTuple>> {
        let py = table.py();
        fn pair<'py>(
            py: Python<'py>,
            name: &str,
            content: impl IntoPyObject<'py>,
        ) -> PyResult<Bound<'py, PyTuple>> {
            (name, content.into_bound_py_any(py)?).into_pyobject(py)
        }
        match self {
            Values::Integer(numbers) => pair(py, "integer", array(numbers, table)?),
            Values::Unsigned(numbers) => pair(py, "unsigned", array(numbers, table)?),
            Values::Float(numbers) => pair(py, "float", array(numbers, table)?),
            Values::Half(numbers) => pair(py, "half", array(numbers, table)?),
            Values::Instant(unit, numbers) => pair(py, unit, array(numbers, table)?),
            Values::Text(values, rows) => {
                let values = values.into_iter().map(String::from_utf8);
                let values: Vec<String> = values.collect::<Result<_, _>>()?;
                pair(py, "text", (values, rows.into_pyarray(py)))
            }
            Values::Coded(rows, values) => {
                pair(py, "coded", (rows.into_pyarray(py), values.into_python(table)?))
            }
            Values::Empty(row) => pair(py, "empty", row),
            Values::Unknown(format) => pair(py, "unknown", format),
        }
    }
}

/// An array of numpy. What lies in the table stays there: the array holds the table.
fn array<'py, T: Element + Clone>(
    numbers: Cow<'_, [T]>,
    table: &Bound<'py, ArrowTable>,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    match numbers {
        Cow::Owned(numbers) => Ok(numbers.into_pyarray(table.py())),
        Cow::Borrowed(numbers) => {
            let holder = table.clone().into_any();
            // SAFETY: the numbers live as long as the table, which the array holds and which never
            // changes.
            let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(numbers), holder) };
            array.readwrite().make_nonwriteable();
            Ok(array)
        }
    }
}

/// Numbers as they lie, if they lie in one piece, or copied into one.
fn joined<'a, T: Copy + Default>(pieces: &[Piece<'a>]) -> Cow<'a, [T]> {
    match pieces {
        [one] if one.slice::<T>().is_some() => Cow::Borrowed(one.slice().unwrap_or_default()),
        _ => copied(pieces, |piece, found| match piece.slice::<T>() {
            Some(numbers) => found.extend_from_slice(numbers),
            None => found.extend(piece.numbers::<T>()),
        }),
    }
}

fn copied<'a, T: Copy>(
    pieces: &[Piece<'a>],
    copy: impl Fn(&Piece<'a>, &mut Vec<T>),
) -> Cow<'a, [T]> {
    let mut found = Vec::with_capacity(pieces.iter().map(|piece| piece.length).sum());
    pieces.iter().for_each(|piece| copy(piece, &mut found));
    found.into()
}

/// Narrow integers.
fn integers(format: &str, pieces: &[Piece<'_>]) -> Option<Vec<i64>> {
    fn widened<T: Copy + Default + Into<i64>>(pieces: &[Piece<'_>]) -> Vec<i64> {
        pieces.iter().flat_map(|piece| piece.numbers::<T>()).map(Into::into).collect()
    }
    Some(match format {
        "c" => widened::<i8>(pieces),
        "C" => widened::<u8>(pieces),
        "s" => widened::<i16>(pieces),
        "S" => widened::<u16>(pieces),
        "i" => widened::<i32>(pieces),
        "I" => widened::<u32>(pieces),
        "l" => joined(pieces).into_owned(),
        _ => return None,
    })
}

/// Moments with a mark where a row is empty.
fn moments<'a>(pieces: &[Piece<'a>], mut found: Cow<'a, [i64]>) -> Cow<'a, [i64]> {
    let mut start = 0;
    for piece in pieces {
        if piece.first_null().is_some() {
            for row in (0..piece.length).filter(|&row| piece.is_null(row)) {
                found.to_mut()[start + row] = NOT_A_TIME;
            }
        }
        start += piece.length;
    }
    found
}

/// Distinct texts in the order of their first rows; -1 for an empty row.
fn text<'a>(pieces: &[Piece<'a>], read: impl Fn(&Piece<'a>, usize) -> &'a [u8]) -> Values<'a> {
    let mut places: HashMap<&[u8], i64> = HashMap::new();
    let mut rows = Vec::with_capacity(pieces.iter().map(|piece| piece.length).sum());
    let mut values = Vec::new();
    for piece in pieces {
        for row in 0..piece.length {
            if piece.is_null(row) {
                rows.push(-1);
                continue;
            }
            let value = read(piece, row);
            rows.push(*places.entry(value).or_insert_with(|| {
                values.push(value.to_vec());
                values.len() as i64 - 1
            }));
        }
    }
    Values::Text(values, rows)
}

/// A column of places in a dictionary. Pieces may each have their own.
fn coded<'a>(schema: &ArrowSchema, values: &ArrowSchema, pieces: &[Piece<'a>]) -> Values<'a> {
    let (mut rows, mut dictionaries) = (Vec::new(), Vec::<Piece<'a>>::new());
    let (mut base, mut next) = (0, 0);
    for piece in pieces {
        // SAFETY: an array with a dictionary in its schema has one, or is empty.
        let Some(dictionary) = (unsafe { piece.array.dictionary.as_ref() }) else { continue };
        let dictionary = Piece::whole(dictionary);
        let same = |last: &Piece<'_>| {
            let (new, old) = (dictionary.array, last.array);
            let equal = |place| new.buffer(place) == old.buffer(place);
            (new.length, new.offset) == (old.length, old.offset) && (0..3).all(equal)
        };
        if !dictionaries.last().is_some_and(same) {
            base = next;
            next += dictionary.length as i64;
            dictionaries.push(dictionary);
        }
        let Some(places) = integers(schema.format(), &[*piece]) else {
            return Values::Unknown(format!("dictionary of {}", schema.format()));
        };
        let row = |(row, place): (usize, i64)| if piece.is_null(row) { -1 } else { base + place };
        rows.extend(places.into_iter().enumerate().map(row));
    }
    Values::Coded(rows, Box::new(Values::read(values, &dictionaries)))
}
