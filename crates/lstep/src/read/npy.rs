//! Tables of numbers in NumPy's `.npy` format, written, and read without trusting their headers.
//!
//! One or two dimensions, integers or floats of any size and byte order, in C or Fortran order.
//! Memory grows with the bytes that are really there, whatever shape the header claims.

use super::Result;
use super::number::narrow;
use crate::error::{Error, InputFault};
use crate::event::Features;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// Reads a table of features from a file.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Features> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    read_npy_from(&path.display().to_string(), BufReader::with_capacity(1 << 16, file))
}

/// Reads a table of features from a stream; `file` is what messages call it.
pub fn read_npy_from(file: &str, mut stream: impl Read) -> Result<Features> {
    let header = Header::read(file, &mut stream)?;
    let Header { rows, width, size, .. } = header;
    let count = rows
        .checked_mul(width)
        .filter(|count| count.checked_mul(size as u64).is_some())
        .ok_or_else(|| {
            InputFault::new(
                file,
                format!("claims {rows} rows of {width} numbers, more than any file holds"),
                SAVE_AGAIN,
            )
        })?;
    let mut values = Vec::new();
    let mut buffer = vec![0; size * 8192];
    let mut left = count;
    while left > 0 {
        let many = left.min(8192) as usize;
        let bytes = &mut buffer[..many * size];
        let got = fill(&mut stream, bytes).map_err(|error| Error::io(file, error))?;
        for number in bytes[..got].chunks_exact(size) {
            let place = values.len() as u64;
            values.push(narrow(header.number(number)).map_err(|refusal| {
                let (row, column) = header.place(place);
                InputFault::new(file, format!("in row {row} {}", refusal.problem), refusal.remedy)
                    .column(column.to_string())
                    .value(header.number(number).to_string())
            })?);
        }
        if got < bytes.len() {
            let problem =
                format!("ends after {} of {count} numbers ({rows} rows of {width})", values.len());
            return Err(InputFault::new(file, problem, SAVE_AGAIN).into());
        }
        left -= many as u64;
    }
    if fill(&mut stream, &mut buffer[..1]).map_err(|error| Error::io(file, error))? > 0 {
        let problem = format!("goes on after its {rows} rows of {width} numbers");
        return Err(InputFault::new(file, problem, SAVE_AGAIN).into());
    }
    let (rows, width) = (rows as usize, width as usize);
    if header.fortran && width > 1 {
        to_row_major(&mut values, rows, width);
    }
    if count == 0 { Ok(Features::none()) } else { Features::new(width, values) }
}

/// Brings columns that follow each other into rows. Every number moves along its cycle of places,
/// so that beside the table there is only a bit for each number.
fn to_row_major(values: &mut [f32], rows: usize, width: usize) {
    let mut moved = vec![0u64; values.len().div_ceil(64)];
    for start in 0..values.len() {
        if moved[start / 64] & (1 << (start % 64)) != 0 {
            continue;
        }
        let (mut place, mut carried) = (start, values[start]);
        loop {
            place = place % rows * width + place / rows;
            std::mem::swap(&mut carried, &mut values[place]);
            moved[place / 64] |= 1 << (place % 64);
            if place == start {
                break;
            }
        }
    }
}

/// Writes a table, row by row, as numpy would save an array of 32-bit floats.
///
/// # Panics
/// If there are not `rows` rows of `width` numbers.
pub(super) fn write_npy<'a>(
    mut out: impl Write,
    width: usize,
    rows: impl ExactSizeIterator<Item = &'a [f32]>,
) -> io::Result<()> {
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {width}), }}", rows.len());
    // Numbers begin at a multiple of 64 bytes: eight of magic and version, two of length, the
    // header and its line end.
    let end = (10 + header.len() + 1).next_multiple_of(64) - 11;
    header.extend(std::iter::repeat_n(' ', end - header.len()));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for row in rows {
        assert_eq!(row.len(), width, "a row of the table's width");
        row.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
    }
    Ok(())
}

const SAVE_AGAIN: &str = "save it again with numpy.save";

/// What the beginning of the file says.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    kind: Kind,
    size: usize,
    big_endian: bool,
    fortran: bool,
    rows: u64,
    width: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
}

impl Header {
    fn read(file: &str, stream: &mut impl Read) -> Result<Header> {
        let not_npy = || InputFault::new(file, "is not a .npy file", SAVE_AGAIN);
        let mut start = [0; 8];
        if fill(stream, &mut start).map_err(|error| Error::io(file, error))? < 8
            || !start.starts_with(b"\x93NUMPY")
        {
            return Err(not_npy().into());
        }
        let length_bytes = if start[6] == 1 { 2 } else { 4 };
        let mut length = [0; 4];
        if fill(stream, &mut length[..length_bytes]).map_err(|error| Error::io(file, error))?
            < length_bytes
        {
            return Err(not_npy().into());
        }
        let length = u64::from(u32::from_le_bytes(length));
        // NumPy itself refuses headers beyond 10,000 bytes.
        if length > 10_000 {
            return Err(InputFault::new(
                file,
                format!("has a header of {length} bytes"),
                SAVE_AGAIN,
            )
            .into());
        }
        let mut text = vec![0; length as usize];
        if fill(stream, &mut text).map_err(|error| Error::io(file, error))? < text.len() {
            return Err(not_npy().into());
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Header::parse(&text)
            .map_err(|problem| InputFault::new(file, problem, SAVE_AGAIN).value(text.trim()).into())
    }

    /// Reads `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }`.
    fn parse(text: &str) -> Result<Header, &'static str> {
        let after = |key: &str| {
            let (_, rest) = text
                .split_once(&format!("'{key}'"))
                .or_else(|| text.split_once(&format!("\"{key}\"")))?;
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let description = after("descr").ok_or("has a header without a number type")?;
        let description =
            description.strip_prefix(['\'', '"']).ok_or("has records instead of plain numbers")?;
        let (kind, size, big_endian) = number_type(
            description.split(['\'', '"']).next().unwrap_or_default(),
        )
        .ok_or("has a type that is neither integer nor float; convert it with .astype('f4')")?;
        let fortran = match after("fortran_order").ok_or("has a header without an order")? {
            order if order.starts_with("True") => true,
            order if order.starts_with("False") => false,
            _ => return Err("has a header without an order"),
        };
        let shape = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let sizes = shape
            .ok_or("has a header without a shape")?
            .0
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty());
        let sizes: Vec<u64> = sizes
            .map(|size| size.parse().map_err(|_| "has a shape that is no list of sizes"))
            .collect::<Result<_, _>>()?;
        let (rows, width) = match sizes[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => return Err("has a shape of other than one or two dimensions"),
        };
        Ok(Header { kind, size, big_endian, fortran, rows, width })
    }

    fn number(&self, bytes: &[u8]) -> f64 {
        let mut wide = [0; 8];
        for (place, &byte) in bytes.iter().enumerate() {
            wide[if self.big_endian { bytes.len() - 1 - place } else { place }] = byte;
        }
        let bits = u64::from_le_bytes(wide);
        match (self.kind, self.size) {
            (Kind::Float, 4) => f64::from(f32::from_bits(bits as u32)),
            (Kind::Float, _) => f64::from_bits(bits),
            (Kind::Unsigned, _) => bits as f64,
            (Kind::Signed, size) => {
                let shift = 64 - 8 * size as u32;
                (((bits << shift) as i64) >> shift) as f64
            }
        }
    }

    /// Row and column of the number at this place in the file.
    fn place(&self, place: u64) -> (u64, u64) {
        if self.fortran {
            (place % self.rows, place / self.rows)
        } else {
            (place / self.width, place % self.width)
        }
    }
}

fn number_type(description: &str) -> Option<(Kind, usize, bool)> {
    let (order, rest) = match description.split_at_checked(1)? {
        (order @ ("<" | ">" | "|" | "="), rest) => (order, rest),
        _ => ("<", description),
    };
    let (kind, size) = match rest {
        "f4" => (Kind::Float, 4),
        "f8" => (Kind::Float, 8),
        "i1" | "i2" | "i4" | "i8" => (Kind::Signed, rest[1..].parse().ok()?),
        "u1" | "u2" | "u4" | "u8" | "b1" => (Kind::Unsigned, rest[1..].parse().ok()?),
        _ => return None,
    };
    Some((kind, size, order == ">"))
}

/// Reads until the buffer is full or the stream ends, and says how much it got.
fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match stream.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn columns_become_rows_in_place() {
        for (rows, width) in [(1, 1), (1, 7), (7, 1), (2, 3), (5, 4), (16, 16), (13, 29)] {
            let columns: Vec<f32> = (0..rows * width).map(|value| value as f32).collect();
            let plain = |place: usize| columns[place % width * rows + place / width];
            let expected: Vec<f32> = (0..rows * width).map(plain).collect();
            let mut values = columns.clone();
            to_row_major(&mut values, rows, width);
            assert_eq!(values, expected, "{rows} x {width}");
        }
    }

    fn table(kind: &str, fortran: &str, shape: &str, data: &[u8]) -> Result<Features> {
        let header =
            format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        read_npy_from("x.npy", &npy(&header, data)[..])
    }

    fn refused(kind: &str, shape: &str, data: &[u8]) -> String {
        table(kind, "False", shape, data).expect_err("refused").to_string()
    }

    #[test]
    fn all_number_types_are_read() {
        let expected = Features::new(2, vec![1.0, 2.0, 3.0, 4.0]).expect("a table");
        let floats: Vec<u8> =
            [1f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(table("<f4", "False", "(2, 2)", &floats).expect("f4"), expected);
        let doubles: Vec<u8> =
            [1f64, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        assert_eq!(table(">f8", "False", "(2, 2)", &doubles).expect("f8"), expected);
        assert_eq!(table("|u1", "False", "(2, 2)", &[1, 2, 3, 4]).expect("u1"), expected);
        assert_eq!(table("<i2", "False", "(1,)", &[0xfe, 0xff]).expect("i2").values(), [-2.0]);
    }

    #[test]
    fn what_is_written_is_read_and_begins_as_numpy_aligns_it() {
        let table =
            Features::new(3, (0..12).map(|value| value as f32 / 8.0).collect()).expect("a table");
        let mut bytes = Vec::new();
        write_npy(&mut bytes, 3, (0..4).map(|row| table.row(row))).expect("memory");
        assert_eq!((bytes.len() - 12 * 4) % 64, 0);
        assert_eq!(read_npy_from("x.npy", &bytes[..]).expect("our own file"), table);
    }

    #[test]
    fn columns_first_is_turned_round() {
        assert_eq!(
            table("|u1", "True", "(3, 2)", &[1, 2, 3, 4, 5, 6]).expect("a table").values(),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
    }

    #[test]
    fn a_table_without_numbers_is_absent() {
        assert_eq!(table("<f4", "False", "(0, 172)", &[]).expect("empty"), Features::none());
        assert_eq!(table("<f4", "False", "(5, 0)", &[]).expect("empty"), Features::none());
    }

    #[test]
    fn a_file_that_ends_early_or_late_is_refused() {
        assert_eq!(
            refused("|u1", "(2, 2)", &[1, 2, 3]),
            "x.npy: ends after 3 of 4 numbers (2 rows of 2); save it again with numpy.save"
        );
        assert_eq!(
            refused("|u1", "(2, 2)", &[1, 2, 3, 4, 5]),
            "x.npy: goes on after its 2 rows of 2 numbers; save it again with numpy.save"
        );
    }

    #[test]
    fn a_claimed_shape_allocates_nothing() {
        assert!(
            refused("<f8", "(4000000000000, 1000)", &[0; 16])
                .contains("ends after 2 of 4000000000000000 numbers")
        );
        assert!(
            refused("<f8", "(18446744073709551615, 8)", &[]).contains("more than any file holds")
        );
        assert!(refused("<f8", "(99999999999999999999,)", &[]).contains("no list of sizes"));
    }

    #[test]
    fn other_types_and_shapes_are_refused() {
        assert!(refused("<c8", "(1,)", &[0; 8]).contains("neither integer nor float"));
        assert!(refused("<U3", "(1,)", &[0; 12]).contains("neither integer nor float"));
        assert!(refused("|u1", "(1, 1, 1)", &[0]).contains("other than one or two dimensions"));
        assert!(refused("|u1", "()", &[0]).contains("other than one or two dimensions"));
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_with_its_place() {
        let data: Vec<u8> =
            [0f32, 1.0, f32::NAN, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(
            refused("<f4", "(2, 2)", &data),
            "x.npy, column \"0\": \"NaN\" in row 1 is not a finite feature; correct it or drop the row"
        );
        assert!(
            refused("<f8", "(1,)", &1e300f64.to_le_bytes())
                .contains("too large for a feature of 32 bits")
        );
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"u,i,ts\n1,2,3\n", b"\x93NUMPY\x01", b"\x93NUMPY\x01\x00\xff\x00{"]
        {
            let error = read_npy_from("x.npy", bytes).expect_err("no npy").to_string();
            assert_eq!(error, "x.npy: is not a .npy file; save it again with numpy.save");
        }
        let error = read_npy_from("x.npy", &b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..])
            .expect_err("long header");
        assert!(error.to_string().contains("has a header of 4294967295 bytes"), "{error}");
    }
}
