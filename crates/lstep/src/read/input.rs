//! Where bytes come from: a file, standard input or memory, unpacked if they are gzip or Zstandard.
//!
//! Compression is recognised by its first bytes, so that it works on standard input too. What the
//! operating system says is [`Error::Io`]; what is wrong with the compressed data is an input
//! fault.

use super::Result;
use crate::error::{Error, InputFault};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// A stream of unpacked bytes.
pub(super) struct Input<'a> {
    /// What messages call it.
    pub label: String,
    pub stream: Box<dyn Read + Send + 'a>,
    /// How it was compressed.
    pub compression: Option<&'static str>,
    /// Whether it begins as a Parquet file does.
    pub parquet: bool,
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: &[u8] = b"PAR1";

/// What is known about files that are no table, by their first bytes and their name: what they are
/// and how to make a table of them.
fn foreign(head: &[u8], name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let torch = (
        "is a file of PyTorch, which only Python can open",
        "load it there with torch.load, and give its columns to the lstep package or write them \
         with pandas.DataFrame(...).to_parquet(\"events.parquet\")",
    );
    let excel = (
        "is a spreadsheet",
        "save its sheet as CSV, or in Python: \
         pandas.read_excel(FILE).to_parquet(\"events.parquet\")",
    );
    let packed = ("is packed in a way that is not read", "unpack it, or pack it with gzip or zstd");
    Some(match head {
        [b'P', b'K', 3, 4, ..] if ends(&[".pt", ".pth"]) => torch,
        [b'P', b'K', 3, 4, ..] if ends(&[".xlsx", ".xlsm", ".ods"]) => excel,
        [b'P', b'K', 3, 4, ..] if ends(&[".npz"]) => (
            "is an archive of numpy arrays",
            "write its columns in Python with pandas.DataFrame(...).to_parquet(\"events.parquet\")",
        ),
        [b'P', b'K', 3, 4, ..] => ("is a zip archive", "unpack it and name the table in it"),
        [0xd0, 0xcf, 0x11, 0xe0, ..] => excel,
        [0x80, 2..=5, ..] if ends(&[".pt", ".pth"]) => torch,
        [0x80, 2..=5, ..] => (
            "is a Python pickle, which may run any program when it is opened",
            "if you trust it, make a table of it in Python: \
             pandas.read_pickle(FILE).to_parquet(\"events.parquet\")",
        ),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => (
            "is a numpy array without names of columns",
            "write it in Python with pandas.DataFrame(...).to_parquet(\"events.parquet\")",
        ),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => (
            "is an Arrow or Feather file",
            "write it as Parquet, in Python: \
             pandas.read_feather(FILE).to_parquet(\"events.parquet\")",
        ),
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => (
            "is an SQLite database",
            "write its table as CSV: sqlite3 -header -csv FILE \"SELECT ...\" > events.csv",
        ),
        [0x89, b'H', b'D', b'F', ..] => (
            "is an HDF5 file",
            "make a table of it in Python: pandas.read_hdf(FILE).to_parquet(\"events.parquet\")",
        ),
        [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] | [b'7', b'z', 0xbc, ..] => {
            packed
        }
        _ => return None,
    })
}

/// Whether a file begins as a Parquet file does.
pub(super) fn is_parquet(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == PARQUET
}

impl<'a> Input<'a> {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> Result<Input<'static>> {
        if is_standard_input(path) {
            return Input::new("standard input".into(), io::stdin());
        }
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        let input = Input::new(path.display().to_string(), file)?;
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let promised = match ending.as_str() {
            "gz" => Some("gzip"),
            "zst" => Some("Zstandard"),
            _ => None,
        };
        let empty = path.metadata().is_ok_and(|data| data.len() == 0);
        if let Some(promised) = promised
            && input.compression != Some(promised)
            && !empty
        {
            let problem = format!("is named .{ending} but does not begin as {promised} data");
            return Err(
                InputFault::new(input.label, problem, "compress it again or rename it").into()
            );
        }
        Ok(input)
    }

    /// Looks at the first bytes of a stream and unpacks it if it is compressed.
    pub(super) fn new(label: String, mut stream: impl Read + Send + 'a) -> Result<Input<'a>> {
        let mut head = Vec::new();
        (&mut stream)
            .take(8)
            .read_to_end(&mut head)
            .map_err(|error| Input::fault(&label, None, error))?;
        if let Some((problem, remedy)) = foreign(&head, &label) {
            return Err(InputFault::new(label, problem, remedy).into());
        }
        let (gzip, zstandard) = (head.starts_with(GZIP), head.starts_with(ZSTANDARD));
        let parquet = head.starts_with(PARQUET);
        let whole = Cursor::new(head).chain(stream);
        let (stream, compression): (Box<dyn Read + Send + 'a>, _) = if gzip {
            (
                Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(
                    1 << 16,
                    whole,
                ))),
                Some("gzip"),
            )
        } else if zstandard {
            let decoder = zstd::Decoder::new(whole).map_err(|error| Error::io(&label, error))?;
            (Box::new(decoder), Some("Zstandard"))
        } else {
            (Box::new(whole), None)
        };
        Ok(Input { label, stream, compression, parquet })
    }

    /// What a failed read means.
    pub(super) fn fault(label: &str, compression: Option<&'static str>, error: io::Error) -> Error {
        match compression {
            // The operating system's own errors have a number; those of the unpacker do not.
            Some(compression) if error.raw_os_error().is_none() => {
                let problem = if error.kind() == io::ErrorKind::UnexpectedEof {
                    format!("ends in the middle of its {compression} data")
                } else {
                    format!("has corrupt {compression} data ({error})")
                };
                InputFault::new(label, problem, "download or compress the file again").into()
            }
            _ => Error::io(label, error),
        }
    }
}

/// Whether a path means standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}
