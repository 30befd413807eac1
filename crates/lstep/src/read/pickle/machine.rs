//! The stack machine that runs a pickle, without the power to call anything.
//!
//! Values are small and copied; tuples, arrays and kinds of number live in lists and are referred
//! to by place, so that no value contains another and nothing recurs, however deeply a file nests.
//! Bytes and text are slices of the file.

use super::number::{Kind, Outcome, whole};
use super::{NegativeLists, Positive};
use std::sync::Arc;

/// What the machine works on.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Nothing,
    Flag,
    Whole(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Bytes written as the characters 0 to 255: protocol 2 has no other way.
    Latin(&'a str),
    Tuple {
        start: usize,
        length: usize,
    },
    Name(Name),
    Kind(usize),
    Array(usize),
    /// The one dictionary of the file.
    Dictionary,
}

/// The names a file may use. They stand for what the machine does itself; nothing is looked up or
/// called.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Name {
    NdArray,
    Dtype,
    Reconstruct,
    Scalar,
    FromBuffer,
    PublicFromBuffer,
    Encode,
    NoBytes,
}

impl Name {
    fn new(module: &str, name: &str) -> Outcome<Name> {
        match (module, name) {
            ("numpy", "ndarray") => Ok(Name::NdArray),
            ("numpy", "dtype") => Ok(Name::Dtype),
            ("numpy", "frombuffer") => Ok(Name::PublicFromBuffer),
            // numpy 2 renamed the module.
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => {
                Ok(Name::Reconstruct)
            }
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Ok(Name::Scalar),
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Ok(Name::FromBuffer),
            // How protocol 2 writes bytes, and how it writes none.
            ("_codecs", "encode") => Ok(Name::Encode),
            ("__builtin__", "bytes") => Ok(Name::NoBytes),
            _ => {
                let shown: String = format!("{module}.{name}").chars().take(80).collect();
                Err(format!("it names {shown}, which no file of negatives needs"))
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Array<'a> {
    /// Announced; its contents come later.
    Bare,
    /// Bytes, and how many ids they are said to be.
    Raw {
        kind: Kind,
        data: Value<'a>,
        claimed: Option<i64>,
    },
    Read(Arc<[i64]>),
}

/// Runs a pickle; what goes wrong comes with the place of the operation.
pub(super) fn run(bytes: &[u8]) -> Result<NegativeLists, (usize, String)> {
    let mut machine = Machine {
        bytes,
        place: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memory: Vec::new(),
        tuples: Vec::new(),
        kinds: Vec::new(),
        arrays: Vec::new(),
        dictionary: false,
        ids: 0,
        negatives: NegativeLists::default(),
    };
    if !bytes.starts_with(&[0x80]) {
        return Err((0, "it does not begin as a pickle of protocol 2 or later".to_string()));
    }
    loop {
        let start = machine.place;
        match machine.step() {
            Ok(true) => return Ok(machine.negatives),
            Ok(false) => (),
            Err(problem) => return Err((start, problem)),
        }
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    place: usize,
    stack: Vec<Value<'a>>,
    /// Where groups on the stack begin.
    marks: Vec<usize>,
    memory: Vec<Option<Value<'a>>>,
    tuples: Vec<Value<'a>>,
    kinds: Vec<Kind>,
    arrays: Vec<Array<'a>>,
    dictionary: bool,
    /// Ids read so far.
    ids: usize,
    negatives: NegativeLists,
}

impl<'a> Machine<'a> {
    /// One operation; true after the last.
    fn step(&mut self) -> Outcome<bool> {
        let value = match self.byte()? {
            0x80 => {
                let protocol = self.byte()?;
                return if (2..=5).contains(&protocol) {
                    Ok(false)
                } else {
                    Err(format!("it is of protocol {protocol}, not 2 to 5"))
                };
            }
            0x95 => {
                // A frame only says how much to read at once.
                let length = self.length::<8>()?;
                return if length <= self.bytes.len() - self.place {
                    Ok(false)
                } else {
                    Err(ends())
                };
            }
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(false);
            }
            b'0' => return self.pop().map(|_| false),
            b'1' => return self.group().map(|_| false),
            b'N' => Value::Nothing,
            0x88 | 0x89 => Value::Flag,
            b'K' => Value::Whole(i64::from(self.byte()?)),
            b'M' => Value::Whole(i64::from(u16::from_le_bytes(self.array()?))),
            b'J' => Value::Whole(i64::from(i32::from_le_bytes(self.array()?))),
            0x8a => Value::Whole(self.long()?),
            b'G' => Value::Real(f64::from_be_bytes(self.array()?)),
            0x8c => self.text::<1>()?,
            b'X' => self.text::<4>()?,
            0x8d => self.text::<8>()?,
            b'C' => self.blob::<1>()?,
            b'B' => self.blob::<4>()?,
            0x8e | 0x96 => self.blob::<8>()?,
            b')' => self.tuple(self.stack.len())?,
            0x85 => self.tuple_of(1)?,
            0x86 => self.tuple_of(2)?,
            0x87 => self.tuple_of(3)?,
            b't' => {
                let start = self.group_start()?;
                self.tuple(start)?
            }
            b'}' if self.dictionary => return Err("it makes a second dictionary".to_string()),
            b'}' => {
                self.dictionary = true;
                Value::Dictionary
            }
            b's' => {
                let (list, key) = (self.pop()?, self.pop()?);
                return self.set(&[key, list]);
            }
            b'u' => {
                let items = self.group()?;
                return self.set(&items);
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                Value::Name(Name::new(module, name)?)
            }
            0x93 => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => Value::Name(Name::new(module, name)?),
                _ => return Err("it names something without text".to_string()),
            },
            b'R' => {
                let (given, name) = (self.pop()?, self.pop()?);
                self.make(name, given)?
            }
            b'b' => {
                let state = self.pop()?;
                let target = self.top()?;
                return self.fill(target, state).map(|()| false);
            }
            b'q' => return self.remember::<1>(),
            b'r' => return self.remember::<4>(),
            0x94 => {
                let value = self.top()?;
                self.memory.push(Some(value));
                return Ok(false);
            }
            b'h' => self.recall::<1>()?,
            b'j' => self.recall::<4>()?,
            b'.' => {
                return match self.pop()? {
                    Value::Dictionary if self.place == self.bytes.len() => Ok(true),
                    Value::Dictionary => Err("it ends, but more bytes follow".to_string()),
                    _ => Err("it ends with no dictionary".to_string()),
                };
            }
            other => {
                return Err(format!(
                    "operation {other:#04x} is not one that a file of negatives needs"
                ));
            }
        };
        self.stack.push(value);
        Ok(false)
    }

    /// What Python would get by calling a name.
    fn make(&mut self, name: Value<'a>, given: Value<'a>) -> Outcome<Value<'a>> {
        let Value::Name(name) = name else { return Err("it calls what is not a name".to_string()) };
        let array = match (name, self.members(given)?) {
            (Name::Dtype, [Value::Text(name), Value::Flag, Value::Flag]) => {
                let kind = Kind::named(name)?;
                self.kinds.push(kind);
                return Ok(Value::Kind(self.kinds.len() - 1));
            }
            (Name::Scalar, &[Value::Kind(kind), data]) => {
                return Ok(Value::Whole(self.scalar(self.kinds[kind], data)?));
            }
            (Name::Encode, [Value::Text(text), Value::Text("latin1")]) => {
                return Ok(Value::Latin(text));
            }
            (Name::NoBytes, []) => return Ok(Value::Bytes(&[])),
            (Name::Reconstruct, [Value::Name(Name::NdArray), ..]) => Array::Bare,
            (Name::FromBuffer, &[data, Value::Kind(kind), shape, Value::Text(_)]) => {
                self.raw(self.kinds[kind], data, Some(shape))?
            }
            (Name::PublicFromBuffer, &[data, Value::Text(name)]) => {
                self.raw(Kind::named(name)?, data, None)?
            }
            (name, _) => return Err(format!("it calls {name:?} with what that cannot take")),
        };
        self.arrays.push(array);
        Ok(Value::Array(self.arrays.len() - 1))
    }

    /// Gives contents to what was made without.
    fn fill(&mut self, target: Value<'a>, state: Value<'a>) -> Outcome<()> {
        match (target, self.members(state)?) {
            (Value::Kind(kind), [Value::Whole(_), Value::Text(order), ..]) => {
                self.kinds[kind] = self.kinds[kind].ordered(order)?;
            }
            (
                Value::Array(array),
                &[Value::Whole(_), shape, Value::Kind(kind), Value::Flag, data],
            ) => {
                self.arrays[array] = self.raw(self.kinds[kind], data, Some(shape))?;
            }
            _ => return Err("it gives contents to what takes none".to_string()),
        }
        Ok(())
    }

    /// An array whose bytes are looked at when it is used.
    fn raw(&self, kind: Kind, data: Value<'a>, shape: Option<Value<'a>>) -> Outcome<Array<'a>> {
        match shape.map(|shape| self.members(shape)).transpose()? {
            None => Ok(Array::Raw { kind, data, claimed: None }),
            Some(&[Value::Whole(count)]) => Ok(Array::Raw { kind, data, claimed: Some(count) }),
            Some(shape) => Err(format!("an array has {} dimensions, not one", shape.len())),
        }
    }

    fn scalar(&self, kind: Kind, data: Value<'a>) -> Outcome<i64> {
        match data {
            Value::Bytes(bytes) => kind.one(bytes),
            // No number has more than 8 bytes; the rest need not be looked at.
            Value::Latin(text) => kind.one(&latin(text.chars().take(9))?),
            _ => Err("a number has no bytes".to_string()),
        }
    }

    /// Puts keys and lists, in turn, into the dictionary.
    fn set(&mut self, items: &[Value<'a>]) -> Outcome<bool> {
        let Value::Dictionary = self.top()? else {
            return Err("it puts items into no dictionary".to_string());
        };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err("a key has no value".to_string());
        }
        for &[key, list] in pairs {
            let key = self.key(key)?;
            let Value::Array(array) = list else {
                return Err("a value is not an array of ids".to_string());
            };
            let list = self.list(array)?;
            self.negatives.insert(key, list);
        }
        Ok(false)
    }

    fn key(&self, key: Value<'a>) -> Outcome<Positive> {
        let number = |value: Value<'a>| match value {
            Value::Whole(number) => Ok(number),
            Value::Real(number) => whole(number),
            _ => Err("a key is not (source, destination, time)".to_string()),
        };
        match self.members(key) {
            Ok(&[source, destination, time]) => {
                Ok((number(source)?, number(destination)?, number(time)?))
            }
            _ => Err("a key is not (source, destination, time)".to_string()),
        }
    }

    /// The ids of an array, read once however often it is used.
    fn list(&mut self, array: usize) -> Outcome<Arc<[i64]>> {
        let (kind, data, claimed) = match &self.arrays[array] {
            Array::Read(list) => return Ok(Arc::clone(list)),
            Array::Raw { kind, data, claimed } => (*kind, *data, *claimed),
            Array::Bare => return Err("an array has no contents".to_string()),
        };
        let decoded;
        let bytes = match data {
            Value::Bytes(bytes) => bytes,
            Value::Latin(text) => {
                decoded = latin(text.chars())?;
                &decoded
            }
            _ => return Err("an array has no bytes".to_string()),
        };
        let count = kind.count(bytes.len())?;
        if let Some(claimed) = claimed.filter(|claimed| usize::try_from(*claimed) != Ok(count)) {
            return Err(format!("an array claims {claimed} ids and has {count}"));
        }
        // Honest arrays have bytes of their own, so all of them together have no more ids than the
        // file has bytes.
        self.ids += count;
        if self.ids > self.bytes.len() {
            return Err("its arrays have more ids than the file has bytes".to_string());
        }
        let list: Arc<[i64]> = kind.all(bytes)?.into();
        self.arrays[array] = Array::Read(Arc::clone(&list));
        Ok(list)
    }

    fn members(&self, tuple: Value<'a>) -> Outcome<&[Value<'a>]> {
        match tuple {
            Value::Tuple { start, length } => Ok(&self.tuples[start..start + length]),
            _ => Err("it calls something without a tuple".to_string()),
        }
    }

    fn tuple_of(&mut self, length: usize) -> Outcome<Value<'a>> {
        let start = self.stack.len().checked_sub(length).filter(|start| *start >= self.floor());
        self.tuple(start.ok_or_else(pops)?)
    }

    fn tuple(&mut self, start: usize) -> Outcome<Value<'a>> {
        let length = self.stack.len() - start;
        self.tuples.extend(self.stack.drain(start..));
        Ok(Value::Tuple { start: self.tuples.len() - length, length })
    }

    fn group_start(&mut self) -> Outcome<usize> {
        self.marks.pop().ok_or_else(|| "it ends a group that did not begin".to_string())
    }

    fn group(&mut self) -> Outcome<Vec<Value<'a>>> {
        let start = self.group_start()?;
        Ok(self.stack.split_off(start))
    }

    /// The lowest place on the stack that may be popped.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Outcome<Value<'a>> {
        self.stack[self.floor()..].last().copied().ok_or_else(pops)
    }

    fn pop(&mut self) -> Outcome<Value<'a>> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    fn remember<const N: usize>(&mut self) -> Outcome<bool> {
        let slot = self.length::<N>()?;
        let value = self.top()?;
        // A pickler numbers what it remembers, so a number beyond the bytes read so far is a lie.
        if slot >= self.place {
            return Err(format!("it remembers something as number {slot}"));
        }
        if self.memory.len() <= slot {
            self.memory.resize(slot + 1, None);
        }
        self.memory[slot] = Some(value);
        Ok(false)
    }

    fn recall<const N: usize>(&mut self) -> Outcome<Value<'a>> {
        let slot = self.length::<N>()?;
        self.memory
            .get(slot)
            .copied()
            .flatten()
            .ok_or_else(|| format!("it recalls number {slot}, which it never kept"))
    }

    fn take(&mut self, length: usize) -> Outcome<&'a [u8]> {
        let taken = self.bytes[self.place..].get(..length).ok_or_else(ends)?;
        self.place += length;
        Ok(taken)
    }

    fn byte(&mut self) -> Outcome<u8> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many bytes were taken"))
    }

    /// A length of `N` bytes; one beyond `usize` is beyond any file.
    fn length<const N: usize>(&mut self) -> Outcome<usize> {
        let mut word = [0; 8];
        word[..N].copy_from_slice(self.take(N)?);
        usize::try_from(u64::from_le_bytes(word)).map_err(|_| ends())
    }

    fn blob<const N: usize>(&mut self) -> Outcome<Value<'a>> {
        let length = self.length::<N>()?;
        Ok(Value::Bytes(self.take(length)?))
    }

    fn text<const N: usize>(&mut self) -> Outcome<Value<'a>> {
        let length = self.length::<N>()?;
        Ok(Value::Text(utf8(self.take(length)?)?))
    }

    fn line(&mut self) -> Outcome<&'a str> {
        let length =
            self.bytes[self.place..].iter().position(|byte| *byte == b'\n').ok_or_else(ends)?;
        let line = utf8(self.take(length)?)?;
        self.place += 1;
        Ok(line)
    }

    /// An integer of any length up to 8 bytes, in two's complement.
    fn long(&mut self) -> Outcome<i64> {
        let length = self.length::<1>()?;
        let bytes = self.take(length)?;
        if length > 8 {
            return Err("an integer has more than 64 bits".to_string());
        }
        let negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let mut word = [if negative { 0xff } else { 0 }; 8];
        word[..length].copy_from_slice(bytes);
        Ok(i64::from_le_bytes(word))
    }
}

fn latin(characters: impl Iterator<Item = char>) -> Outcome<Vec<u8>> {
    let byte =
        |character: char| u8::try_from(character).map_err(|_| format!("{character:?} is no byte"));
    characters.map(byte).collect()
}

fn utf8(bytes: &[u8]) -> Outcome<&str> {
    std::str::from_utf8(bytes).map_err(|_| "its text is not UTF-8".to_string())
}

fn ends() -> String {
    "the file ends within it".to_string()
}

fn pops() -> String {
    "it pops more than there is".to_string()
}
