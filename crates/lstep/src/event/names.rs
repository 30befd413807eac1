//! The names of nodes: dense numbers on the inside, the file's own ids on the outside.
//!
//! Ids are integers as long as every one of them prints back the same ("7" does, "007" does not),
//! otherwise text. Dense numbers follow first appearance, so they do not depend on which of the two
//! it turns out to be. Where sources and destinations are different kinds of nodes, the same id on
//! both sides names two nodes. Depends on `NodeId` only.

use super::NodeId;
use crate::error::{Error, Result};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::Hasher;

/// On which side of an event a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It acts.
    Source,
    /// It is acted upon.
    Destination,
}

/// A node's id as the file had it. Displays as it was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name<'a> {
    /// All ids of the stream are integers.
    Integer(i64),
    /// At least one id of the stream is no integer.
    Text(&'a str),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Integer(number) => write!(f, "{number}"),
            Name::Text(text) => f.write_str(text),
        }
    }
}

/// The ids of all nodes of a stream, in both directions.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
pub struct Names {
    ids: Ids,
    /// The side of each node, where the sides are separated.
    sides: Option<Vec<Side>>,
    index: HashTable<u32>,
    most: u64,
    /// Largest integer id of the sources and of the destinations.
    largest: [Option<i64>; 2],
}

/// The ids of nodes in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ids {
    Integer(Vec<i64>),
    /// All texts in one buffer: a million short strings are a million allocations otherwise.
    Text {
        buffer: String,
        ends: Vec<usize>,
    },
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        match self {
            Ids::Integer(numbers) => numbers.len(),
            Ids::Text { ends, .. } => ends.len(),
        }
    }
}

impl Names {
    /// Most nodes a stream can have: a dense number has 32 bits.
    pub const MOST: u64 = 1 << 32;

    /// No names yet. With `separated`, the same id as source and as destination names two nodes.
    pub fn new(separated: bool) -> Names {
        Names::with_most(separated, Names::MOST)
    }

    /// As [`Names::new`], with room for fewer nodes: lets a test reach the limit.
    pub(crate) fn with_most(separated: bool, most: u64) -> Names {
        Names {
            ids: Ids::Integer(Vec::new()),
            sides: separated.then(Vec::new),
            index: HashTable::new(),
            most,
            largest: [None; 2],
        }
    }

    /// Names from their columns: `sides` where they are separated. Refuses columns of different
    /// lengths, ends that do not cut the buffer into texts, and a name that repeats.
    pub(crate) fn from_columns(ids: &Ids, sides: Option<&[Side]>) -> Result<Names> {
        let count = ids.len();
        if let Some(sides) = sides
            && sides.len() != count
        {
            let (left, right) = (count, sides.len());
            return Err(Error::LengthMismatch { what: "names and their sides", left, right });
        }
        let mut names = Names::new(sides.is_some());
        if let Ids::Text { buffer, ends } = ids {
            let starts = std::iter::once(&0).chain(ends);
            let cut = starts.zip(ends).all(|(&start, &end)| buffer.get(start..end).is_some());
            if !cut || ends.last().copied().unwrap_or(0) != buffer.len() {
                let (what, value) = ("a list of names", "cut in the wrong places");
                return Err(Error::setting(what, value, "every end has to be the end of a name"));
            }
            names.become_text();
        }
        for node in 0..count {
            let name = match ids {
                Ids::Integer(numbers) => Name::Integer(numbers[node]),
                Ids::Text { buffer, ends } => Name::Text(text_at(buffer, ends, node)),
            };
            let side = sides.map_or(Side::Source, |sides| sides[node]);
            if names.intern_name(name, side)?.index() != node {
                return Err(Error::duplicate("a name", name, "list every name of a side once"));
            }
        }
        Ok(names)
    }

    /// The columns that [`Names::from_columns`] takes.
    pub(crate) fn columns(&self) -> (&Ids, Option<&[Side]>) {
        (&self.ids, self.sides.as_deref())
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the same id as source and as destination names two nodes.
    pub fn separated(&self) -> bool {
        self.sides.is_some()
    }

    /// Whether all ids are integers.
    pub fn are_integers(&self) -> bool {
        matches!(self.ids, Ids::Integer(_))
    }

    /// The node's id in the file.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn name(&self, node: NodeId) -> Name<'_> {
        match &self.ids {
            Ids::Integer(numbers) => Name::Integer(numbers[node.index()]),
            Ids::Text { buffer, ends } => Name::Text(text_at(buffer, ends, node.index())),
        }
    }

    /// All names in order of their dense numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Name<'_>> + '_ {
        (0..self.len()).map(|node| self.name(NodeId(node as u32)))
    }

    /// The node's side, where the sides are separated.
    pub fn side(&self, node: NodeId) -> Option<Side> {
        self.sides.as_ref().map(|sides| sides[node.index()])
    }

    /// The node with this id. The side matters only where the sides are separated.
    pub fn find(&self, id: &str, side: Side) -> Option<NodeId> {
        self.find_name(Name::Text(id), side)
    }

    /// As [`Names::find`] for a name of another stream. Numbers become text, or text numbers, only
    /// where the two streams keep their ids differently.
    pub fn find_name(&self, name: Name<'_>, side: Side) -> Option<NodeId> {
        let shown;
        let name = match (&self.ids, name) {
            (Ids::Integer(_), Name::Text(id)) => Name::Integer(canonical_integer(id)?),
            (Ids::Text { .. }, Name::Integer(number)) => {
                shown = number.to_string();
                Name::Text(&shown)
            }
            (_, same_kind) => same_kind,
        };
        let found = self.index.find(self.hash(name, side), |&node| self.is(node, name, side));
        found.map(|&node| NodeId(node))
    }

    /// The node with this id, a new one if the id is new. The side matters only where the sides are
    /// separated.
    ///
    /// The first id that is no integer turns all ids into text; no dense number changes by that.
    pub fn intern(&mut self, id: &str, side: Side) -> Result<NodeId> {
        match (&self.ids, canonical_integer(id)) {
            (Ids::Integer(_), Some(number)) => self.intern_name(Name::Integer(number), side),
            (Ids::Integer(_), None) => {
                self.become_text();
                self.intern_name(Name::Text(id), side)
            }
            (Ids::Text { .. }, _) => self.intern_name(Name::Text(id), side),
        }
    }

    /// As [`Names::intern`] for an id that is known to be an integer.
    pub fn intern_integer(&mut self, id: i64, side: Side) -> Result<NodeId> {
        if self.are_integers() {
            self.intern_name(Name::Integer(id), side)
        } else {
            self.intern_name(Name::Text(&id.to_string()), side)
        }
    }

    /// As [`Names::intern`] for a name of another stream. Numbers become text, or text numbers, only
    /// where the two streams keep their ids differently.
    pub fn intern_from(&mut self, name: Name<'_>, side: Side) -> Result<NodeId> {
        match name {
            Name::Integer(number) => self.intern_integer(number, side),
            Name::Text(text) => self.intern(text, side),
        }
    }

    /// Interns all names of another stream, in their order, and gives this one's nodes for them, or
    /// the name for which there is no room.
    pub(crate) fn absorb<'a>(
        &mut self,
        other: &'a Names,
    ) -> std::result::Result<Vec<NodeId>, Name<'a>> {
        (0..other.len())
            .map(|node| {
                let node = NodeId(node as u32);
                let side = other.side(node).unwrap_or(Side::Source);
                let name = other.name(node);
                self.intern_from(name, side).map_err(|_| name)
            })
            .collect()
    }

    /// The same names in another order: node `k` of the result is `order[k]` here.
    pub(crate) fn reordered(&self, order: &[NodeId]) -> Result<Names> {
        let mut names = Names::with_most(self.separated(), self.most);
        if !self.are_integers() {
            names.become_text();
        }
        for &node in order {
            names.intern_name(self.name(node), self.side(node).unwrap_or(Side::Source))?;
        }
        Ok(names)
    }

    /// The number that DyGLib's pre-processing gives a node, where 0 is padding.
    ///
    /// Integer ids are already such numbers, so they are taken as they are. Where the sides are
    /// separated, ids count from 0 on each side: a source is `id + 1`, a destination `id + 1 +
    /// (largest source + 1)`. Text ids, and integers too large for this sum, are numbered by first
    /// appearance from 1.
    pub fn number(&self, node: NodeId) -> i64 {
        match (&self.ids, self.side(node)) {
            (Ids::Integer(numbers), None) => numbers[node.index()],
            (Ids::Integer(numbers), Some(side)) => match (self.destination_offset(), side) {
                (None, _) => i64::from(node.0) + 1,
                (Some(_), Side::Source) => numbers[node.index()] + 1,
                (Some(offset), Side::Destination) => numbers[node.index()] + offset + 1,
            },
            (Ids::Text { .. }, _) => i64::from(node.0) + 1,
        }
    }

    /// The number that TGB gives a node: `id` and `id + largest source + 1` for integer ids with
    /// separated sides (`tgbl-wiki`), first appearance from 0 otherwise (`tgbl-coin` and the
    /// others).
    pub fn tgb_number(&self, node: NodeId) -> i64 {
        match (&self.ids, self.side(node), self.destination_offset()) {
            (Ids::Integer(numbers), Some(Side::Source), Some(_)) => numbers[node.index()],
            (Ids::Integer(numbers), Some(Side::Destination), Some(offset)) => {
                numbers[node.index()] + offset
            }
            _ => i64::from(node.0),
        }
    }

    /// What is added to destinations so that they follow the sources, if all sums fit into 64 bits.
    fn destination_offset(&self) -> Option<i64> {
        let offset = self.largest[0].unwrap_or(-1).checked_add(1)?;
        self.largest[0].unwrap_or(0).checked_add(1)?;
        self.largest[1].unwrap_or(0).checked_add(offset)?.checked_add(1)?;
        Some(offset)
    }

    fn intern_name(&mut self, name: Name<'_>, side: Side) -> Result<NodeId> {
        let Names { ids, sides, index, most, largest } = self;
        let separated = sides.is_some();
        let entry = index.entry(
            hash(name, side, separated),
            |&node| same(ids, sides.as_deref(), node, name, side),
            |&node| rehash(ids, sides.as_deref(), node),
        );
        let vacant = match entry {
            Entry::Occupied(found) => return Ok(NodeId(*found.get())),
            Entry::Vacant(vacant) => vacant,
        };
        let next = ids.len();
        if next as u64 >= *most {
            return Err(Error::TooMany { what: "nodes", most: *most });
        }
        match (ids, name) {
            (Ids::Integer(numbers), Name::Integer(number)) => {
                let largest = &mut largest[side as usize];
                *largest = Some(largest.map_or(number, |before| before.max(number)));
                numbers.push(number);
            }
            (Ids::Text { buffer, ends }, Name::Text(text)) => {
                buffer.push_str(text);
                ends.push(buffer.len());
            }
            _ => unreachable!("callers bring the name into the kind of the column"),
        }
        if let Some(sides) = sides {
            sides.push(side);
        }
        vacant.insert(next as u32);
        Ok(NodeId(next as u32))
    }

    fn become_text(&mut self) {
        let Ids::Integer(numbers) = &self.ids else { return };
        let mut buffer = String::new();
        let mut ends = Vec::with_capacity(numbers.len());
        for number in numbers {
            buffer.push_str(&number.to_string());
            ends.push(buffer.len());
        }
        self.ids = Ids::Text { buffer, ends };
        let (ids, sides) = (&self.ids, self.sides.as_deref());
        let mut index = HashTable::with_capacity(self.len());
        for node in 0..self.len() as u32 {
            index.insert_unique(rehash(ids, sides, node), node, |&node| rehash(ids, sides, node));
        }
        self.index = index;
    }

    fn hash(&self, name: Name<'_>, side: Side) -> u64 {
        hash(name, side, self.separated())
    }

    fn is(&self, node: u32, name: Name<'_>, side: Side) -> bool {
        same(&self.ids, self.sides.as_deref(), node, name, side)
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new(false)
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.ids == other.ids && self.sides == other.sides
    }
}

impl Eq for Names {}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|name| name.to_string())).finish()
    }
}

/// The integer that prints back as exactly this text.
pub(crate) fn canonical_integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, bytes),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    if digits.len() > 18 {
        // Rare and slow: the standard parser knows where 64 bits end.
        return digits.iter().all(u8::is_ascii_digit).then(|| text.parse().ok())?;
    }
    let mut number = 0i64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

fn text_at<'a>(buffer: &'a str, ends: &[usize], node: usize) -> &'a str {
    let start = if node == 0 { 0 } else { ends[node - 1] };
    &buffer[start..ends[node]]
}

#[inline]
fn hash(name: Name<'_>, side: Side, separated: bool) -> u64 {
    let mut hasher = FxHasher::default();
    match name {
        Name::Integer(number) => hasher.write_i64(number),
        Name::Text(text) => hasher.write(text.as_bytes()),
    }
    if separated {
        hasher.write_u8(side as u8);
    }
    hasher.finish()
}

#[inline]
fn same(ids: &Ids, sides: Option<&[Side]>, node: u32, name: Name<'_>, side: Side) -> bool {
    let node = node as usize;
    let equal = match (ids, name) {
        (Ids::Integer(numbers), Name::Integer(number)) => numbers[node] == number,
        (Ids::Text { buffer, ends }, Name::Text(text)) => text_at(buffer, ends, node) == text,
        _ => false,
    };
    equal && sides.is_none_or(|sides| sides[node] == side)
}

fn rehash(ids: &Ids, sides: Option<&[Side]>, node: u32) -> u64 {
    let node = node as usize;
    let name = match ids {
        Ids::Integer(numbers) => Name::Integer(numbers[node]),
        Ids::Text { buffer, ends } => Name::Text(text_at(buffer, ends, node)),
    };
    hash(name, sides.map_or(Side::Source, |sides| sides[node]), sides.is_some())
}

/// How names are stored in files: the index is left out and made again.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Record {
    Integer { ids: Vec<i64>, destinations: Option<Vec<u8>> },
    Text { ids: Vec<String>, destinations: Option<Vec<u8>> },
}

impl From<Names> for Record {
    fn from(names: Names) -> Record {
        let destinations =
            names.sides.as_ref().map(|sides| sides.iter().map(|&side| side as u8).collect());
        match &names.ids {
            Ids::Integer(ids) => Record::Integer { ids: ids.clone(), destinations },
            Ids::Text { .. } => Record::Text {
                ids: names.iter().map(|name| name.to_string()).collect(),
                destinations,
            },
        }
    }
}

impl TryFrom<Record> for Names {
    type Error = Error;

    fn try_from(record: Record) -> Result<Names> {
        let (ids, destinations) = match record {
            Record::Integer { ids, destinations } => (Ids::Integer(ids), destinations),
            Record::Text { ids, destinations } => {
                let mut buffer = String::new();
                let end = |id: String| {
                    buffer.push_str(&id);
                    buffer.len()
                };
                let ends = ids.into_iter().map(end).collect();
                (Ids::Text { buffer, ends }, destinations)
            }
        };
        let sides: Option<Vec<Side>> = destinations.map(|sides| {
            let side = |side| if side == 1 { Side::Destination } else { Side::Source };
            sides.into_iter().map(side).collect()
        });
        Names::from_columns(&ids, sides.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Destination, Source};

    fn names(separated: bool, ids: &[(&str, Side)]) -> Names {
        let mut names = Names::new(separated);
        for (id, side) in ids {
            names.intern(id, *side).expect("room for a few names");
        }
        names
    }

    #[test]
    fn numbers_follow_first_appearance() {
        let mut names = names(
            false,
            &[("30", Source), ("10", Destination), ("30", Destination), ("20", Source)],
        );
        assert_eq!(
            names.iter().map(|name| name.to_string()).collect::<Vec<_>>(),
            ["30", "10", "20"]
        );
        assert_eq!(names.find("10", Source), Some(NodeId(1)));
        assert_eq!(names.find("11", Source), None);
        assert_eq!(names.intern("10", Source).expect("known"), NodeId(1));
    }

    #[test]
    fn one_id_that_does_not_print_back_makes_all_ids_text() {
        let names = names(false, &[("7", Source), ("007", Destination), ("-0", Source)]);
        assert!(!names.are_integers());
        assert_eq!(names.len(), 3);
        assert_eq!(names.find("7", Source), Some(NodeId(0)));
        assert_eq!(names.find("007", Source), Some(NodeId(1)));
        assert_eq!(names.name(NodeId(2)).to_string(), "-0");
    }

    #[test]
    fn separated_sides_give_one_id_two_nodes() {
        let names =
            names(true, &[("1", Source), ("1", Destination), ("0", Source), ("0", Destination)]);
        assert_eq!(names.len(), 4);
        assert_eq!(names.side(NodeId(1)), Some(Destination));
        assert_eq!(names.find("1", Destination), Some(NodeId(1)));
        let dyglib: Vec<i64> = (0..4).map(|node| names.number(NodeId(node))).collect();
        assert_eq!(
            dyglib,
            [2, 4, 1, 3],
            "sources 0 and 1 become 1 and 2, destinations 0 and 1 become 3 and 4"
        );
        let tgb: Vec<i64> = (0..4).map(|node| names.tgb_number(NodeId(node))).collect();
        assert_eq!(tgb, [1, 3, 0, 2]);
    }

    #[test]
    fn without_sides_integers_keep_their_number_and_tgb_counts_from_zero() {
        let names = names(false, &[("17", Source), ("5", Destination)]);
        assert_eq!((names.number(NodeId(0)), names.number(NodeId(1))), (17, 5));
        assert_eq!((names.tgb_number(NodeId(0)), names.tgb_number(NodeId(1))), (0, 1));
    }

    #[test]
    fn numbers_that_would_overflow_are_counted_instead() {
        let largest = i64::MAX.to_string();
        let names = names(true, &[(&largest, Source), (&largest, Destination)]);
        assert_eq!((names.number(NodeId(0)), names.number(NodeId(1))), (1, 2));
        assert_eq!((names.tgb_number(NodeId(0)), names.tgb_number(NodeId(1))), (0, 1));
    }

    #[test]
    fn only_canonical_decimals_are_integers() {
        for (text, number) in [
            ("0", Some(0)),
            ("-12", Some(-12)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("+1", None),
            ("01", None),
            ("-", None),
            ("", None),
            ("1.0", None),
            ("12345678901234567x", None),
        ] {
            assert_eq!(canonical_integer(text), number, "{text}");
        }
    }

    #[test]
    fn one_node_too_many_is_refused() {
        let mut names = Names::with_most(false, 2);
        names.intern("a", Source).expect("first");
        names.intern("b", Source).expect("second");
        names.intern("a", Source).expect("known");
        let error = names.intern("c", Source).expect_err("third");
        assert_eq!(
            error.to_string(),
            "nodes are more than 2, the most a stream can hold: split it"
        );
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn names_are_stored_and_found_again() {
        for names in [
            names(false, &[("3", Source), ("-4", Destination)]),
            names(true, &[("a,\"b\"\n", Source), ("3", Destination), ("3", Source)]),
        ] {
            let stored = serde_json::to_string(&names).expect("names are plain data");
            let read: Names = serde_json::from_str(&stored).expect("what was written");
            assert_eq!(read, names);
            assert_eq!(read.find("3", Source), names.find("3", Source));
            assert_eq!(read.number(NodeId(0)), names.number(NodeId(0)));
        }
    }

    #[test]
    fn names_of_another_stream_are_the_same_names_whatever_their_kind() {
        let numbers = names(true, &[("3", Source), ("-4", Destination)]);
        let texts = names(true, &[("x", Source), ("3", Source), ("-4", Destination)]);
        for (ours, theirs) in [(&numbers, &texts), (&texts, &numbers), (&texts, &texts)] {
            let mut grown = ours.clone();
            for node in (0..theirs.len() as u32).map(NodeId) {
                let (name, side) = (theirs.name(node), theirs.side(node).expect("separated"));
                let text = name.to_string();
                assert_eq!(ours.find_name(name, side), ours.find(&text, side));
                let mut by_text = grown.clone();
                let found = grown.intern_from(name, side).expect("room");
                assert_eq!(found, by_text.intern(&text, side).expect("room"));
                assert_eq!(grown, by_text);
            }
        }
    }

    #[test]
    fn stored_names_that_repeat_are_refused() {
        let stored = r#"{"kind":"integer","ids":[1,1],"destinations":null}"#;
        assert!(serde_json::from_str::<Names>(stored).is_err());
        let stored = r#"{"kind":"integer","ids":[1,1],"destinations":[0]}"#;
        assert!(serde_json::from_str::<Names>(stored).is_err());
    }
}
