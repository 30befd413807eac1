//! JSON Lines: an object on each line, made into a line of CSV for the reader of tables.
//!
//! The keys of the first object are the columns, those of objects within it joined by a dot. Later
//! objects may have their keys in any order, lack some and have more. A line becomes one record, so
//! that faults are told with the number of their line.

use super::number::Refusal;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Why a line is no row.
pub(super) const NO_OBJECT: Refusal = Refusal::new(
    "is no JSON object on a line of its own",
    "write one object on each line, for example with jq -c",
);

/// Whether a text holds JSON Lines: what comes first is an object.
pub(super) fn is_json(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'{')
}

/// Whether a text is an array of objects, which can be made into lines.
pub(super) fn is_array(text: &[u8]) -> bool {
    text.trim_ascii_start().strip_prefix(b"[").is_some_and(is_json)
}

/// The columns that an object has.
pub(super) fn names(line: &str) -> Result<Vec<String>, Refusal> {
    let mut names = Vec::new();
    each_value(line, "", DEPTH, &mut |name, _| names.push(name.to_string()))?;
    Ok(names)
}

/// Makes lines of JSON into as many records of CSV with these columns, of which only the used ones
/// are filled. `refuse` is told the number of a line that is no object, from 0, with its text, and
/// may let the line be blank.
pub(super) fn as_csv<E>(
    block: &[u8],
    names: &[String],
    used: &dyn Fn(usize) -> bool,
    mut refuse: impl FnMut(u64, &[u8], Refusal) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut csv = Vec::with_capacity(block.len());
    let mut cells: Vec<Cell> = vec![Cell::Nothing; names.len()];
    // Objects of one writer have their keys in one order: the next column is the first guess.
    for (number, line) in block.split(|&byte| byte == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            cells.fill(Cell::Nothing);
            let mut guess = 0;
            let text = std::str::from_utf8(line).map_err(|_| NOT_UTF_8);
            let read = text.and_then(|text| {
                each_value(text, "", DEPTH, &mut |name, value| {
                    let place = match names.get(guess).is_some_and(|next| next == name) {
                        true => Some(guess),
                        false => names.iter().position(|other| other == name),
                    };
                    if let Some(place) = place {
                        guess = place + 1;
                        if used(place) {
                            cells[place] = value;
                        }
                    }
                })
            });
            match read {
                Ok(()) => write_row(&mut csv, &cells),
                Err(refusal) => refuse(number as u64, line, refusal)?,
            }
        }
        csv.push(b'\n');
    }
    // A line end at the end has made one line too many.
    csv.pop();
    Ok(csv)
}

/// Objects within objects, at most: nobody writes more, and a hostile file might.
const DEPTH: usize = 16;

const TOO_DEEP: Refusal =
    Refusal::new("has objects within objects more than 16 deep", "write its values flat");
const NOT_UTF_8: Refusal =
    Refusal::new("is not valid UTF-8", "convert the file, for example with iconv -t UTF-8");

/// A value that can stand in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Nothing,
    /// A number, or a word: as it is written.
    Plain(String),
    Text(String),
}

fn write_row(csv: &mut Vec<u8>, cells: &[Cell]) {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            csv.push(b',');
        }
        match cell {
            Cell::Nothing => {}
            Cell::Plain(text) => csv.extend_from_slice(text.as_bytes()),
            Cell::Text(text) => {
                csv.push(b'"');
                csv.extend_from_slice(text.replace('"', "\"\"").as_bytes());
                csv.push(b'"');
            }
        }
    }
}

/// Goes through the values of an object in the order in which they are written.
fn each_value(
    text: &str,
    within: &str,
    depth: usize,
    take: &mut dyn FnMut(&str, Cell),
) -> Result<(), Refusal> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let pairs = reader.deserialize_map(Pairs).and_then(|pairs| reader.end().map(|()| pairs));
    for (key, value) in pairs.map_err(|_| NO_OBJECT)? {
        let name = match within {
            "" => key,
            outer => Cow::Owned(format!("{outer}.{key}")),
        };
        let raw = value.get();
        match raw.as_bytes().first() {
            Some(b'{') if depth == 0 => return Err(TOO_DEEP),
            Some(b'{') => each_value(raw, &name, depth - 1, take)?,
            Some(b'"') => {
                take(&name, Cell::Text(serde_json::from_str(raw).map_err(|_| NO_OBJECT)?));
            }
            Some(b'n') => take(&name, Cell::Nothing),
            // A list is left as it is written; nobody takes it for an id by chance.
            Some(b'[') => take(&name, Cell::Text(raw.to_string())),
            _ => take(&name, Cell::Plain(raw.to_string())),
        }
    }
    Ok(())
}

type Pair<'a> = (Cow<'a, str>, &'a RawValue);

/// Keeps the pairs of an object in their order.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<Pair<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            pairs.push((Cow::Owned(key), map.next_value::<&RawValue>()?));
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::read::{Dataset, ReadOptions, read_from};

    fn read(text: &str, options: &ReadOptions) -> Result<Dataset, Error> {
        read_from("e.jsonl", text.as_bytes(), options)
    }

    #[test]
    fn objects_on_lines_are_events() {
        let text = "{\"user_id\": \"ann, \\\"a\\\"\", \"item\": {\"id\": 7, \"kind\": \"x\"}, \
                    \"ts\": \"2021-03-04T05:06:07Z\", \"tags\": [1, 2]}\n\n\
                    {\"ts\":\"2021-03-05\",\"new\":1,\"item\":{\"id\":8},\"user_id\":\"bob\"}\n";
        let options = ReadOptions { destination: Some("item.id".into()), ..ReadOptions::default() };
        let data = read(text, &options).expect("events");
        assert_eq!(data.events.len(), 2);
        let name = |node| data.names.name(node).to_string();
        assert_eq!(name(data.events.at(0).source), "ann, \"a\"");
        assert_eq!(name(data.events.at(1).destination), "8");
        assert_eq!(data.clock.show(data.events.at(1).time), "2021-03-05T00:00:00Z");
        assert_eq!(data.ignored_columns, ["item.kind", "tags"]);
    }

    #[test]
    fn an_object_that_is_too_deep_is_refused_and_breaks_nothing() {
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        let error = read(&deep, &ReadOptions::default()).expect_err("too deep").to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let text = "{\"u\":12345678901234567,\"i\":12345678901234568,\"ts\":1,\"w\":0.25}\n";
        let data = read(text, &ReadOptions::default()).expect("events");
        assert_eq!(data.names.name(data.events.at(0).source).to_string(), "12345678901234567");
        assert_eq!(data.events.features().row(0), [0.25]);
    }

    #[test]
    fn a_line_that_is_no_object_is_told_or_left_out() {
        let good = "{\"u\":1,\"i\":2,\"ts\":3}\n";
        let text = format!("{good}{good}not json\n{good}{{\"u\":1,\"i\":null,\"ts\":4}}\n{good}");
        let error = read(&text, &ReadOptions::default()).expect_err("a fault").to_string();
        assert!(error.starts_with("e.jsonl, line 3") && error.contains("JSON"), "{error}");
        let skipped = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let data = read(&text, &skipped).expect("the others");
        assert_eq!(data.events.len(), 4);
        let lines: Vec<u64> = data.left_out.faults.iter().map(|fault| fault.first_line).collect();
        assert_eq!(lines, [3, 5]);
    }

    #[test]
    fn an_array_and_an_object_over_several_lines_are_refused_with_what_to_do() {
        for text in ["[{\"u\":1,\"i\":2,\"ts\":3}]", "{\n\"u\":1,\"i\":2,\"ts\":3\n}\n"] {
            let error = read(text, &ReadOptions::default()).expect_err("no lines").to_string();
            assert!(error.contains("jq -c"), "{error}");
        }
    }
}
