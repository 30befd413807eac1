//! Named tensors and notes in a file: exact to the bit, whole or absent, and refused if a single
//! byte has changed.
//!
//! The file is a safetensors file that other programs can open. All notes sit in one metadata
//! entry, because the format's own map has no order and the same checkpoint has to give the same
//! bytes. That entry begins with the SHA-256 of all other bytes of the file, at a fixed place, so
//! it is checked before anything is parsed. A file is written under a temporary name, brought to
//! the disk, and renamed: under its right name it is always whole, also after a kill.
//!
//! A state can be most of the memory a run has, so it is never there twice: what is written is
//! borrowed from its owner, and what is read goes from the file into the vectors that the new owner
//! takes.

mod layout;
#[cfg(test)]
pub(crate) mod spoil;

pub use crate::disk::{append_line, write_text};

use crate::disk::{FileWriter, write_file};
use crate::error::{Error, InputFault, Result};
use crate::event::NodeId;
use crate::fingerprint::Fingerprint;
use safetensors::Dtype;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Named tensors and small texts, to be kept in one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint<'a> {
    /// The tensors; their order is kept, their names differ.
    pub tensors: Vec<Tensor<'a>>,
    /// Small texts by name: versions, settings as JSON.
    pub notes: BTreeMap<String, String>,
}

/// What the stream of a model allows in a checkpoint of it. A digest only tells that nobody altered
/// what somebody wrote, and a number of a node that does not exist would take any amount of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamExtent {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many features an event has.
    pub event_features: usize,
}

/// The note that holds a [`StreamExtent`] between opening a checkpoint and loading it.
const EXTENT: &str = "stream extent";

/// Numbers with a name and a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor<'a> {
    /// Its name, a path such as `position.in.weight`.
    pub name: String,
    /// Its dimensions, outermost first; their product is the number of values.
    pub shape: Vec<usize>,
    /// Its values, row-major.
    pub values: Values<'a>,
}

/// Numbers of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values<'a> {
    /// Floats of 32 bits.
    F32(Cow<'a, [f32]>),
    /// Whole numbers of 32 bits.
    U32(Cow<'a, [u32]>),
    /// Whole numbers of 64 bits.
    U64(Cow<'a, [u64]>),
    /// Floats of 64 bits.
    F64(Cow<'a, [f64]>),
    /// Bytes: texts, one after the other.
    U8(Cow<'a, [u8]>),
}

impl<'a> Checkpoint<'a> {
    /// Writes the file, in place of an older one of that name if there is one.
    ///
    /// # Errors
    ///
    /// If two tensors have the same name, if a tensor's shape does not fit its values, or if the
    /// disk refuses.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let header = self.header(&path.display().to_string())?;
        write_file(path, |out| self.emit(&header, out))
    }

    /// Reads a file that [`Checkpoint::write`] wrote.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is something else, or is not exactly as it was written.
    pub fn read(path: impl AsRef<Path>) -> Result<Checkpoint<'static>> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        Checkpoint::parse(path, BufReader::with_capacity(1 << 16, file))
    }

    /// The SHA-256 of names and values. Notes are not in it.
    pub fn sha256(&self) -> String {
        let mut hash = Fingerprint::default();
        for tensor in &self.tensors {
            hash.take((tensor.name.len() as u64).to_le_bytes());
            hash.take(&tensor.name);
            hash.take((tensor.values.len() as u64).to_le_bytes());
            tensor.values.emit(&mut hash).expect("hashing does no input or output");
        }
        hash.hex()
    }

    /// The same with values of its own.
    pub fn into_owned(self) -> Checkpoint<'static> {
        let tensors = self.tensors.into_iter().map(|tensor| Tensor {
            name: tensor.name,
            shape: tensor.shape,
            values: tensor.values.into_owned(),
        });
        Checkpoint { tensors: tensors.collect(), notes: self.notes }
    }

    /// Reads the bytes of such a file; `name` is named in errors. For tests on arbitrary bytes.
    #[doc(hidden)]
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Checkpoint<'static>> {
        Checkpoint::parse(Path::new(name), std::io::Cursor::new(bytes))
    }

    /// Adds a list of f32.
    pub fn push_f32(&mut self, name: &str, values: impl Into<Cow<'a, [f32]>>) {
        self.push(name, Values::F32(values.into()));
    }

    /// Adds a list of u32.
    pub fn push_u32(&mut self, name: &str, values: impl Into<Cow<'a, [u32]>>) {
        self.push(name, Values::U32(values.into()));
    }

    /// Adds a list of u64.
    pub fn push_u64(&mut self, name: &str, values: impl Into<Cow<'a, [u64]>>) {
        self.push(name, Values::U64(values.into()));
    }

    /// Adds a list of f64.
    pub fn push_f64(&mut self, name: &str, values: impl Into<Cow<'a, [f64]>>) {
        self.push(name, Values::F64(values.into()));
    }

    /// Adds a list of bytes.
    pub fn push_u8(&mut self, name: &str, values: impl Into<Cow<'a, [u8]>>) {
        self.push(name, Values::U8(values.into()));
    }

    fn push(&mut self, name: &str, values: Values<'a>) {
        self.tensors.push(Tensor { name: name.to_string(), shape: vec![values.len()], values });
    }

    /// The values of a tensor of f32.
    pub fn f32(&self, name: &str) -> Result<&[f32]> {
        match self.values(name)? {
            Values::F32(values) => Ok(values),
            other => Err(of_another_type(name, other, "F32")),
        }
    }

    /// The values of a tensor of f32, taken out of it, for a tensor that may be large.
    pub fn take_f32(&mut self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.tensors.iter_mut().find(|tensor| tensor.name == name);
        match tensor.map(|tensor| &mut tensor.values) {
            Some(Values::F32(values)) => Ok(std::mem::take(values).into_owned()),
            _ => self.f32(name).map(<[f32]>::to_vec),
        }
    }

    /// The values of a tensor of u32.
    pub fn u32(&self, name: &str) -> Result<&[u32]> {
        match self.values(name)? {
            Values::U32(values) => Ok(values),
            other => Err(of_another_type(name, other, "U32")),
        }
    }

    /// The values of a tensor of u64.
    pub fn u64(&self, name: &str) -> Result<&[u64]> {
        match self.values(name)? {
            Values::U64(values) => Ok(values),
            other => Err(of_another_type(name, other, "U64")),
        }
    }

    /// The values of a tensor of f64.
    pub fn f64(&self, name: &str) -> Result<&[f64]> {
        match self.values(name)? {
            Values::F64(values) => Ok(values),
            other => Err(of_another_type(name, other, "F64")),
        }
    }

    /// The values of a tensor of bytes.
    pub fn u8(&self, name: &str) -> Result<&[u8]> {
        match self.values(name)? {
            Values::U8(values) => Ok(values),
            other => Err(of_another_type(name, other, "U8")),
        }
    }

    /// A tensor, whatever its type.
    pub fn tensor(&self, name: &str) -> Result<&Tensor<'a>> {
        let found = self.tensors.iter().find(|tensor| tensor.name == name);
        found.ok_or_else(|| missing(format!("has no tensor {name:?}")))
    }

    /// A note.
    pub fn note(&self, name: &str) -> Result<&str> {
        self.notes
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| missing(format!("has no note {name:?}")))
    }

    /// The nodes of a tensor of u32. Where it is known which stream they belong to, each has to be
    /// one of its nodes.
    pub fn nodes(&self, name: &str) -> Result<Vec<NodeId>> {
        let nodes = self.u32(name)?;
        let most = self.extent().map_or(usize::MAX, |extent| extent.nodes);
        if let Some(node) = nodes.iter().find(|node| **node as usize >= most) {
            return Err(missing(format!(
                "has node {node} in {name:?}, and there are {most} nodes"
            )));
        }
        Ok(nodes.iter().map(|&node| NodeId(node)).collect())
    }

    /// The one number of a tensor of u32.
    pub fn one_u32(&self, name: &str) -> Result<u32> {
        match self.u32(name)? {
            [value] => Ok(*value),
            other => Err(not_one(name, other.len())),
        }
    }

    /// The one number of a tensor of u64.
    pub fn one_u64(&self, name: &str) -> Result<u64> {
        match self.u64(name)? {
            [value] => Ok(*value),
            other => Err(not_one(name, other.len())),
        }
    }

    /// Says which stream a model that takes it over is about.
    pub(crate) fn set_extent(&mut self, extent: StreamExtent) {
        let StreamExtent { nodes, event_features } = extent;
        self.notes.insert(EXTENT.into(), format!("{nodes} {event_features}"));
    }

    /// What the stream allows, if that is known.
    pub(crate) fn extent(&self) -> Option<StreamExtent> {
        let (nodes, event_features) = self.notes.get(EXTENT)?.split_once(' ')?;
        Some(StreamExtent {
            nodes: nodes.parse().ok()?,
            event_features: event_features.parse().ok()?,
        })
    }

    fn values(&self, name: &str) -> Result<&Values<'a>> {
        self.tensor(name).map(|tensor| &tensor.values)
    }
}

/// Writes a file in place of an older one, as [`write_file`] does.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut FileWriter) -> std::io::Result<()>,
) -> Result<()> {
    write_file(path, write)
}

fn missing(problem: String) -> Error {
    Error::incompatible(InputFault::new(
        "checkpoint",
        problem,
        "use one of the same model, written by the same version of lstep",
    ))
}

fn not_one(name: &str, count: usize) -> Error {
    missing(format!("has {count} numbers as {name:?}, and one is needed"))
}

/// Says that what a checkpoint holds cannot be, to be read after its name.
pub(crate) fn impossible(problem: impl Into<String>) -> Error {
    missing(problem.into())
}

fn of_another_type(name: &str, found: &Values, wanted: &str) -> Error {
    missing(format!("has {name:?} as {}, not as {wanted}", found.kind()))
}

impl Values<'_> {
    fn into_owned(self) -> Values<'static> {
        match self {
            Values::F32(values) => Values::F32(Cow::Owned(values.into_owned())),
            Values::U32(values) => Values::U32(Cow::Owned(values.into_owned())),
            Values::U64(values) => Values::U64(Cow::Owned(values.into_owned())),
            Values::F64(values) => Values::F64(Cow::Owned(values.into_owned())),
            Values::U8(values) => Values::U8(Cow::Owned(values.into_owned())),
        }
    }

    /// Their type as the format names it.
    fn kind(&self) -> Dtype {
        match self {
            Values::F32(_) => Dtype::F32,
            Values::U32(_) => Dtype::U32,
            Values::U64(_) => Dtype::U64,
            Values::F64(_) => Dtype::F64,
            Values::U8(_) => Dtype::U8,
        }
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.len() * self.kind().bitsize() / 8
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::U32(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::U8(values) => values.len(),
        }
    }
}

#[cfg(test)]
mod tests;
