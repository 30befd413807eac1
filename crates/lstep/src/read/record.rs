//! Lines of CSV cut into fields, and a stream cut into blocks of whole lines that can be parsed
//! side by side.
//!
//! A field that begins with a quote ends at the next single quote; two quotes stand for one, and
//! separators and line ends in between are text. A quote elsewhere is an ordinary character. Blank
//! lines are passed over by the callers.

use super::jsonl::is_json;
use std::borrow::Cow;
use std::io::{self, Read};

/// Longest line that is read: longer ones come from a quote left open or from a file that is no
/// table.
pub(super) const LONGEST_RECORD: usize = 64 << 20;

/// Where a field stands in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    start: usize,
    end: usize,
    quoted: bool,
}

impl Field {
    /// The text: unquoted fields without the blanks around them, quoted ones without the quotes.
    #[inline]
    pub(super) fn text<'a>(&self, block: &'a str) -> Cow<'a, str> {
        let text = &block[self.start..self.end];
        if !self.quoted {
            Cow::Borrowed(text.trim_ascii())
        } else if text.contains("\"\"") {
            Cow::Owned(text.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Whether it stands in quotes.
    #[inline]
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// As [`Field::text`] without the detour for doubled quotes: for fields that hold numbers.
    #[inline]
    pub(super) fn raw<'a>(&self, block: &'a str) -> &'a str {
        block[self.start..self.end].trim_ascii()
    }
}

/// How a record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With a line end; the next record starts here.
    Line(usize),
    /// With the block.
    Block,
    /// With the block, inside a quoted field.
    OpenQuote,
    /// With something other than a separator after a closing quote, at this place.
    AfterQuote(usize),
}

/// Cuts the record that starts at `start` into fields.
#[inline]
pub(super) fn split(block: &[u8], start: usize, separator: u8, fields: &mut Vec<Field>) -> End {
    fields.clear();
    let mut field = start;
    let mut at = start;
    while at < block.len() {
        let byte = block[at];
        if byte == separator {
            // Words set apart by several blanks are still two words.
            if separator != b' ' || at > field {
                fields.push(Field { start: field, end: at, quoted: false });
            }
            at += 1;
            field = at;
        } else if byte == b'\n' {
            close(block, field, at, separator, fields);
            return End::Line(at + 1);
        } else if byte == b'"' && at == field {
            let Some(end) = closing_quote(block, at + 1) else { return End::OpenQuote };
            fields.push(Field { start: at + 1, end, quoted: true });
            match block[end + 1..] {
                [] | [b'\r'] => return End::Block,
                [b'\n', ..] => return End::Line(end + 2),
                [b'\r', b'\n', ..] => return End::Line(end + 3),
                [byte, ..] if byte == separator => {
                    at = end + 2;
                    field = at;
                }
                _ => return End::AfterQuote(end + 1),
            }
        } else {
            at += 1;
        }
    }
    close(block, field, block.len(), separator, fields);
    End::Block
}

/// The last field of a record, without the carriage return of a Windows line end.
#[inline]
fn close(block: &[u8], field: usize, end: usize, separator: u8, fields: &mut Vec<Field>) {
    let end = if end > field && block[end - 1] == b'\r' { end - 1 } else { end };
    if separator != b' ' || end > field || fields.is_empty() {
        fields.push(Field { start: field, end, quoted: false });
    }
}

fn closing_quote(block: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(b'"', &block[at..])?;
        if block.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether the record is a blank line.
#[inline]
pub(super) fn is_blank(block: &str, fields: &[Field]) -> bool {
    matches!(fields, [only] if !only.quoted && only.raw(block).is_empty())
}

/// Cuts a stream into blocks of whole records.
pub(super) struct Blocks<R> {
    stream: R,
    size: usize,
    separator: Option<u8>,
    /// Whether every line is a record, as in JSON Lines; known from the first block on.
    json: bool,
    /// What came after the last whole record.
    rest: Vec<u8>,
    ended: bool,
    begun: bool,
}

impl<R: Read> Blocks<R> {
    /// Blocks of about `size` bytes. The separator, if not given, is found in the first line.
    pub(super) fn new(stream: R, size: usize, separator: Option<u8>) -> Blocks<R> {
        let (json, ended, begun) = (false, false, false);
        Blocks { stream, size, separator, json, rest: Vec::new(), ended, begun }
    }

    /// Whether these are lines of JSON; false before the first block.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// What stands between fields; a comma before the first block.
    pub(super) fn separator(&self) -> u8 {
        self.separator.unwrap_or(b',')
    }

    /// The next block: whole records, or whatever is left at the end. Nothing after the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut block = std::mem::take(&mut self.rest);
        loop {
            if !self.ended {
                let wanted = self.size as u64;
                self.ended = (&mut self.stream).take(wanted).read_to_end(&mut block)? < self.size;
            }
            if !self.begun {
                self.begun = true;
                self.json = is_json(&block[preamble(&block).0..]);
            }
            let separator = match self.json {
                true => *self.separator.insert(b','),
                false => *self.separator.get_or_insert_with(|| guess_separator(&block)),
            };
            if self.ended {
                return Ok((!block.is_empty()).then_some(block));
            }
            let end = match self.json {
                true => memchr::memrchr(b'\n', &block).map(|end| end + 1),
                false => last_record_end(&block, separator),
            };
            if let Some(end) = end {
                self.rest = block.split_off(end);
                return Ok(Some(block));
            }
            if block.len() > LONGEST_RECORD {
                // The caller sees a block without a line end and can say where it begins.
                self.ended = true;
                return Ok(Some(block));
            }
        }
    }
}

/// Bytes before the first line that is neither blank nor a comment, and how many lines they are.
pub(super) fn preamble(block: &[u8]) -> (usize, u64) {
    let mut start = if block.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut lines = 0;
    while let Some(line) = block[start..].split_inclusive(|&byte| byte == b'\n').next()
        && (line.trim_ascii().is_empty() || matches!(line[0], b'#' | b'%'))
    {
        start += line.len();
        lines += 1;
    }
    (start, lines)
}

/// The separator of the first line: a tab if there is one, else a comma, a semicolon, a blank.
fn guess_separator(block: &[u8]) -> u8 {
    let (start, _) = preamble(block);
    let line = block[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    [b'\t', b',', b';', b' '].into_iter().find(|byte| line.contains(byte)).unwrap_or(b',')
}

/// Where the last whole record ends.
fn last_record_end(block: &[u8], separator: u8) -> Option<usize> {
    if memchr::memchr(b'"', block).is_none() {
        return memchr::memrchr(b'\n', block).map(|end| end + 1);
    }
    // Only from the beginning can one tell which line ends are inside quotes.
    let (mut end, mut fields) = (0, Vec::new());
    loop {
        match split(block, end, separator, &mut fields) {
            End::Line(next) => end = next,
            // The parser will say what is wrong with the line: it only has to be in one block.
            End::AfterQuote(place) => match memchr::memchr(b'\n', &block[place..]) {
                Some(line_end) => end = place + line_end + 1,
                None => break,
            },
            End::Block | End::OpenQuote => break,
        }
    }
    (end > 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, separator: u8) -> (Vec<String>, End) {
        let mut fields = Vec::new();
        let end = split(line.as_bytes(), 0, separator, &mut fields);
        (fields.iter().map(|field| field.text(line).into_owned()).collect(), end)
    }

    #[test]
    fn a_line_is_cut_at_separators() {
        assert_eq!(
            fields("a, b ,\r\nnext", b','),
            (vec!["a".into(), "b".into(), "".into()], End::Line(8))
        );
        assert_eq!(fields("a\tb", b'\t'), (vec!["a".into(), "b".into()], End::Block));
        assert_eq!(fields(" 1  2 3 \n", b' ').0, ["1", "2", "3"]);
    }

    #[test]
    fn quotes_protect_separators_line_ends_and_blanks() {
        assert_eq!(
            fields("\"a,\"\"b\"\"\n\",\" c \"\n", b','),
            (vec!["a,\"b\"\n".into(), " c ".into()], End::Line(17))
        );
        assert_eq!(fields("5\" disk,x\n", b',').0, ["5\" disk", "x"]);
        assert_eq!(fields("\"a\",", b','), (vec!["a".into(), "".into()], End::Block));
        assert_eq!(fields("\"a\"\r\n", b',').1, End::Line(5));
    }

    #[test]
    fn bad_quotes_are_noticed() {
        assert_eq!(fields("\"open,1,2\n", b',').1, End::OpenQuote);
        assert_eq!(fields("\"a\"b,1\n", b',').1, End::AfterQuote(3));
    }

    #[test]
    fn blocks_hold_whole_records_of_any_stream() {
        let text = "one,1\ntwo,\"2\n2\"\nthree,3\n\"\"\"four\",\"\"\nfive,5";
        for size in 1..text.len() + 2 {
            let mut blocks = Blocks::new(text.as_bytes(), size, Some(b','));
            let mut joined = Vec::new();
            while let Some(block) = blocks.next().expect("memory does not fail") {
                let shown = String::from_utf8(block.clone()).expect("text");
                assert!(blocks.ended || shown.ends_with('\n'), "{shown:?}");
                assert!(!shown.ends_with("2\n") || shown == "2\n2\"\n", "{shown:?}");
                joined.extend(block);
            }
            assert_eq!(joined, text.as_bytes());
        }
    }
}
