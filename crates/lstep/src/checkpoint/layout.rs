//! A checkpoint as bytes: the header's length as a little-endian u64, the header as JSON padded
//! with spaces to a multiple of 8, the tensors' values.

use super::{Checkpoint, Tensor, Values};
use crate::error::{Error, InputFault, Result};
use crate::fingerprint::Fingerprint;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read, Seek, Write};
use std::path::Path;

/// How every header begins; the SHA-256 follows.
const BEGINNING: &[u8] = br#"{"__metadata__":{"lstep":"{\"sha256\":\""#;
/// Where the SHA-256 begins.
const DIGEST: usize = 8 + BEGINNING.len();
/// Where it ends.
pub(super) const HEAD: usize = DIGEST + 64;
/// The version of the entry below. A change that old versions cannot read counts it up.
const FORMAT: u32 = 1;
/// What the format allows for a header.
const MAX_HEADER: usize = 100_000_000;

/// The one metadata entry, as JSON in a string.
#[derive(Serialize, Deserialize)]
struct Entry<'a> {
    /// Stays first: [`BEGINNING`] counts on it.
    sha256: String,
    format: u32,
    /// The tensors' order. In the file the wider types come first, so that all are aligned.
    order: Vec<String>,
    notes: Cow<'a, BTreeMap<String, String>>,
}

impl Checkpoint<'_> {
    /// Everything before the values, with the SHA-256 in its place.
    pub(super) fn header(&self, file: &str) -> Result<Vec<u8>> {
        let refused = |problem: String| {
            Error::from(InputFault::new(file, problem, "this is a fault of the caller"))
        };
        let mut names = BTreeSet::from(["__metadata__"]);
        let mut infos = Vec::with_capacity(self.tensors.len());
        let mut end = 0;
        for tensor in self.laid_out() {
            if !names.insert(&tensor.name) {
                return Err(refused(format!(
                    "cannot have one more tensor named {:?}",
                    tensor.name
                )));
            }
            let expected = tensor.shape.iter().copied().try_fold(1, usize::checked_mul);
            if expected != Some(tensor.values.len()) {
                let (shape, values) = (&tensor.shape, tensor.values.len());
                return Err(refused(format!(
                    "cannot have {:?} of shape {shape:?} with {values} values",
                    tensor.name
                )));
            }
            let dtype = tensor.values.kind();
            let start = end;
            end += tensor.values.len() * dtype.bitsize() / 8;
            let info =
                TensorInfo { dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
            infos.push((tensor.name.clone(), info));
        }
        let entry = Entry {
            sha256: "0".repeat(64),
            format: FORMAT,
            order: self.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
            notes: Cow::Borrowed(&self.notes),
        };
        let entry = serde_json::to_string(&entry).expect("texts and numbers become JSON");
        let entry = [("lstep".to_owned(), entry)].into_iter().collect();
        let metadata =
            Metadata::new(Some(entry), infos).map_err(|error| refused(error.to_string()))?;
        let json = serde_json::to_vec(&metadata).expect("texts and numbers become JSON");
        let length = json.len().next_multiple_of(8);
        if length > MAX_HEADER {
            return Err(refused(format!(
                "cannot have names and notes of {length} bytes, more than {MAX_HEADER}"
            )));
        }
        let mut header = [&(length as u64).to_le_bytes(), json.as_slice()].concat();
        header.resize(8 + length, b' ');
        assert!(
            header[8..].starts_with(BEGINNING),
            "the entry comes first and begins with the digest"
        );

        let mut hash = Fingerprint::default();
        hash.take(&header[..DIGEST]);
        hash.take(&header[HEAD..]);
        for tensor in self.laid_out() {
            tensor.values.emit(&mut hash).expect("hashing does no input or output");
        }
        header[DIGEST..HEAD].copy_from_slice(hash.hex().as_bytes());
        Ok(header)
    }

    /// Writes the whole file.
    pub(super) fn emit(&self, header: &[u8], out: &mut impl Write) -> io::Result<()> {
        out.write_all(header)?;
        self.laid_out().into_iter().try_for_each(|tensor| tensor.values.emit(out))
    }

    /// The tensors in the order of the file.
    fn laid_out(&self) -> Vec<&Tensor<'_>> {
        let mut tensors: Vec<&Tensor<'_>> = self.tensors.iter().collect();
        tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.values.kind().bitsize()));
        tensors
    }

    /// Puts the right beginning and the right SHA-256 into bytes that are long enough for them. For
    /// tests on arbitrary bytes, which would all be refused for their SHA-256.
    #[doc(hidden)]
    pub fn seal(bytes: &mut [u8]) {
        if bytes.len() >= HEAD {
            bytes[8..DIGEST].copy_from_slice(BEGINNING);
            let mut hash = Fingerprint::default();
            hash.take(&bytes[..DIGEST]);
            hash.take(&bytes[HEAD..]);
            bytes[DIGEST..HEAD].copy_from_slice(hash.hex().as_bytes());
        }
    }

    /// Reads the whole file: once to see that it is as it was written, and only then for what is in
    /// it.
    pub(super) fn parse(
        path: &Path,
        mut source: impl BufRead + Seek,
    ) -> Result<Checkpoint<'static>> {
        let file = path.display().to_string();
        let failed = |error| Error::io(path, error);
        let size = check_digest(path, &mut source)?;
        source.rewind().map_err(failed)?;
        // From here on the bytes are those that somebody wrote; what follows refuses a file made up
        // by hand.
        let made_up = || damaged(&file, "its header does not describe its contents");
        let mut length = [0; 8];
        source.read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER as u64 || length > size - 8 {
            return Err(made_up().into());
        }
        let mut header = vec![0; length as usize];
        source.read_exact(&mut header).map_err(failed)?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|_| made_up())?;
        let entry = metadata
            .metadata()
            .as_ref()
            .and_then(|texts| texts.get("lstep"))
            .ok_or_else(made_up)?;
        let Format { format } = serde_json::from_str(entry).map_err(|_| made_up())?;
        if format != FORMAT {
            let problem = format!(
                "is a checkpoint of format {format}, this version of lstep reads format {FORMAT}"
            );
            return Err(
                InputFault::new(file, problem, "read it with the version that wrote it").into()
            );
        }
        let entry: Entry<'_> = serde_json::from_str(entry).map_err(|_| made_up())?;
        let infos = metadata.tensors();
        if metadata.data_len() as u64 != size - 8 - length || infos.len() != entry.order.len() {
            return Err(made_up().into());
        }
        // The format's reader has made sure that the tensors lie one after another, without a gap.
        let mut laid_out: Vec<(&String, &TensorInfo)> =
            infos.iter().map(|(name, info)| (name, *info)).collect();
        laid_out.sort_by_key(|(_, info)| info.data_offsets);
        let mut tensors: Vec<Option<Tensor<'static>>> = entry.order.iter().map(|_| None).collect();
        for (name, info) in laid_out {
            let place =
                entry.order.iter().position(|ordered| ordered == name).ok_or_else(made_up)?;
            let bytes = info.data_offsets.1 - info.data_offsets.0;
            let values = Values::read(info.dtype, bytes, &mut source)
                .map_err(failed)?
                .ok_or_else(made_up)?;
            tensors[place] = Some(Tensor { name: name.clone(), shape: info.shape.clone(), values });
        }
        let tensors = tensors.into_iter().collect::<Option<_>>().ok_or_else(made_up)?;
        Ok(Checkpoint { tensors, notes: entry.notes.into_owned() })
    }
}

/// Refuses a file whose SHA-256 is not the one written in it; tells its length. Of a large file of
/// another kind, or of one without an end, no more is read than the beginning.
fn check_digest(path: &Path, source: &mut impl BufRead) -> Result<u64> {
    let file = path.display().to_string();
    let failed = |error| Error::io(path, error);
    let mut head = Vec::with_capacity(HEAD);
    source.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    check_head(&file, &head)?;
    let mut hash = Fingerprint::default();
    hash.take(&head[..DIGEST]);
    let mut size = HEAD as u64;
    loop {
        let some = source.fill_buf().map_err(failed)?;
        if some.is_empty() {
            break;
        }
        hash.take(some);
        let taken = some.len();
        size += taken as u64;
        source.consume(taken);
    }
    if hash.hex().as_bytes() != &head[DIGEST..] {
        return Err(damaged(
            &file,
            "it was cut off or altered, for its SHA-256 is not the one written in it",
        )
        .into());
    }
    Ok(size)
}

/// Read first, so that an entry of a later format need not look like an [`Entry`].
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Refuses what is not the beginning of a checkpoint.
fn check_head(file: &str, bytes: &[u8]) -> Result<()> {
    let begun = &bytes[bytes.len().min(8)..bytes.len().min(DIGEST)];
    if bytes.is_empty() {
        Err(damaged(file, "it is empty").into())
    } else if !BEGINNING.starts_with(begun) {
        Err(InputFault::new(
            file,
            "is not a checkpoint of lstep",
            "give the file that a run of lstep wrote",
        )
        .into())
    } else if bytes.len() < HEAD {
        Err(damaged(file, "it is cut off within its header").into())
    } else {
        Ok(())
    }
}

fn damaged(file: &str, how: &str) -> InputFault {
    let remedy = "copy it again from where it came, or go on from another checkpoint";
    InputFault::new(file, format!("is not a whole checkpoint: {how}"), remedy)
}

impl Values<'_> {
    pub(super) fn emit(&self, out: &mut impl Write) -> io::Result<()> {
        fn put<T: Copy, const W: usize>(
            values: &[T],
            bytes: fn(T) -> [u8; W],
            out: &mut impl Write,
        ) -> io::Result<()> {
            let mut buffer = Vec::with_capacity(values.len().min(4096));
            for some in values.chunks(4096) {
                buffer.clear();
                buffer.extend(some.iter().map(|&value| bytes(value)));
                out.write_all(buffer.as_flattened())?;
            }
            Ok(())
        }
        match self {
            Values::F32(values) => put(values, f32::to_le_bytes, out),
            Values::U32(values) => put(values, u32::to_le_bytes, out),
            Values::U64(values) => put(values, u64::to_le_bytes, out),
            Values::F64(values) => put(values, f64::to_le_bytes, out),
            Values::U8(values) => out.write_all(values),
        }
    }

    /// Reads `bytes` bytes of a type; nothing if a checkpoint has no such type.
    fn read(
        kind: Dtype,
        bytes: usize,
        source: &mut impl Read,
    ) -> io::Result<Option<Values<'static>>> {
        fn take<T: Clone, const W: usize>(
            bytes: usize,
            value: fn([u8; W]) -> T,
            source: &mut impl Read,
        ) -> io::Result<Cow<'static, [T]>> {
            let mut values = Vec::with_capacity(bytes / W);
            let mut buffer = [[0; W]; 4096];
            while values.len() < bytes / W {
                let some = &mut buffer[..(bytes / W - values.len()).min(4096)];
                source.read_exact(some.as_flattened_mut())?;
                values.extend(some.iter().map(|&bytes| value(bytes)));
            }
            Ok(Cow::Owned(values))
        }
        Ok(Some(match kind {
            Dtype::F32 => Values::F32(take(bytes, f32::from_le_bytes, source)?),
            Dtype::U32 => Values::U32(take(bytes, u32::from_le_bytes, source)?),
            Dtype::U64 => Values::U64(take(bytes, u64::from_le_bytes, source)?),
            Dtype::F64 => Values::F64(take(bytes, f64::from_le_bytes, source)?),
            Dtype::U8 => Values::U8(take(bytes, u8::from_le_bytes, source)?),
            _ => return Ok(None),
        }))
    }
}
