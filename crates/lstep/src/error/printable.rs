//! Texts that a terminal shows as they are: names and messages may hold what others wrote.

use std::borrow::Cow;
use std::fmt::Write;

/// The most characters of a message. What is left out is in its middle: the place stands at the
/// beginning and the remedy at the end.
const LONGEST: usize = 4_000;

/// A text of several lines whose control characters are escaped, and which is not endless.
pub fn printable(text: &str) -> Cow<'_, str> {
    bounded(escaped(text, |letter| letter == '\n' || letter == '\t'))
}

/// A text whose control characters, also ends of lines, are escaped, and which is not endless.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    bounded(escaped(text, |_| false))
}

/// Whether a terminal would do something else than show it: control characters, and those that turn
/// the direction of writing.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let special = |letter: char| is_control(letter) && !kept(letter);
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if special(letter) {
            // As JSON writes it. Writing to a String does not fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(letter));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

fn bounded(text: Cow<'_, str>) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= LONGEST {
        return text;
    }
    let half = LONGEST / 2;
    let (begin, end): (String, String) =
        (text.chars().take(half).collect(), text.chars().skip(count - half).collect());
    Cow::Owned(format!("{begin} … ({} characters) … {end}", count - 2 * half))
}
