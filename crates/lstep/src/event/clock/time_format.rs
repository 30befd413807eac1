//! Times that are written neither as numbers nor as ISO 8601: read by a pattern, as C's and
//! Python's `strptime` reads them.

use super::calendar::{Instant, days_in, days_since_1970};

/// A pattern of times, such as `%d.%m.%Y %H:%M`.
///
/// `%Y %y %m %d %e %b %B %H %I %p %M %S %f %z %Z %s %a %A %T %R %F %D %%` mean what they mean in
/// Python. A time without an offset is UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFormat(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Literal(char),
    /// One or more blanks, or none.
    Blank,
    Directive(char),
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl TimeFormat {
    /// The pattern of a text; nothing if it has a directive that is not known, or says no date.
    pub fn new(text: &str) -> Option<TimeFormat> {
        let (mut pieces, mut rest) = (Vec::new(), text.chars());
        while let Some(letter) = rest.next() {
            if letter != '%' {
                let blank = letter.is_whitespace();
                pieces.push(if blank { Piece::Blank } else { Piece::Literal(letter) });
                continue;
            }
            match rest.next()? {
                '%' => pieces.push(Piece::Literal('%')),
                'T' => pieces.extend("H:M:S".chars().map(directive_or_literal)),
                'R' => pieces.extend("H:M".chars().map(directive_or_literal)),
                'F' => pieces.extend("Y-m-d".chars().map(directive_or_literal)),
                'D' => pieces.extend("m/d/y".chars().map(directive_or_literal)),
                letter if "YymdebBHIpMSfzZsaA".contains(letter) => {
                    pieces.push(Piece::Directive(letter));
                }
                _ => return None,
            }
        }
        Some(TimeFormat(pieces))
    }

    /// Whether it says enough to know a moment: a day, or seconds since 1970.
    pub fn says_a_moment(&self) -> bool {
        let has = |letters: &str| {
            self.0.iter().any(|piece| matches!(piece, Piece::Directive(c) if letters.contains(*c)))
        };
        has("s") || has("Yy") && has("mbB") && has("de")
    }

    /// Reads a time. Nothing if it is written otherwise, or if there is no such day or hour.
    pub(crate) fn parse(&self, text: &str) -> Option<Instant> {
        let mut rest = text;
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let (mut hour, mut minute, mut second, mut nanoseconds) = (0, 0, 0, 0u32);
        let (mut afternoon, mut offset, mut unix) = (None, 0, None);
        for &piece in &self.0 {
            let directive = match piece {
                Piece::Literal(letter) => {
                    rest = rest.strip_prefix(letter)?;
                    continue;
                }
                Piece::Blank => {
                    rest = rest.trim_start();
                    continue;
                }
                Piece::Directive(letter) => letter,
            };
            match directive {
                'Y' => year = number(&mut rest, 4)?,
                // As POSIX has it: 69 is 1969, 68 is 2068.
                'y' => {
                    let short = number(&mut rest, 2)?;
                    year = if short < 69 { 2000 + short } else { 1900 + short };
                }
                'm' => month = number(&mut rest, 2)?,
                'b' | 'B' => month = 1 + name(&mut rest, &MONTHS)? as i64,
                'a' | 'A' => drop(name(&mut rest, &DAYS)?),
                'd' | 'e' => {
                    rest = rest.trim_start();
                    day = number(&mut rest, 2)?;
                }
                'H' => hour = number(&mut rest, 2)?,
                'I' => {
                    hour = number(&mut rest, 2)?;
                    // Twelve is where the half day begins.
                    hour = if (1..=12).contains(&hour) { hour % 12 } else { return None };
                }
                'p' => afternoon = Some(name(&mut rest, &["am", "pm"])? == 1),
                'M' => minute = number(&mut rest, 2)?,
                'S' => second = number(&mut rest, 2)?,
                'f' => {
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    if !(1..=9).contains(&digits) {
                        return None;
                    }
                    let fraction = u32::try_from(number(&mut rest, digits)?).ok()?;
                    nanoseconds = fraction * 10u32.pow(9 - digits as u32);
                }
                'z' => offset = offset_of(&mut rest)?,
                'Z' => drop(name(&mut rest, &["utc", "gmt", "z"])?),
                's' => {
                    let negative = rest.strip_prefix('-').inspect(|after| rest = after).is_some();
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let seconds = number(&mut rest, digits.clamp(1, 15))?;
                    unix = Some(if negative { -seconds } else { seconds });
                }
                _ => unreachable!("only known directives are kept"),
            }
        }
        if !rest.is_empty() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        if let Some(seconds) = unix {
            return Some(Instant { seconds, nanoseconds });
        }
        if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
            return None;
        }
        if afternoon == Some(true) {
            hour += 12;
        }
        let clock = hour * 3600 + minute * 60 + second;
        let seconds = days_since_1970(year, month, day) * 86_400 + clock - offset;
        (hour < 24).then_some(Instant { seconds, nanoseconds })
    }
}

fn directive_or_literal(letter: char) -> Piece {
    if letter.is_alphabetic() { Piece::Directive(letter) } else { Piece::Literal(letter) }
}

/// Up to so many digits, at least one.
fn number(rest: &mut &str, most: usize) -> Option<i64> {
    let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (head, tail) = rest.split_at(digits);
    *rest = tail;
    head.parse().ok()
}

/// One of some words, in any case, whole or its first three letters: which one.
fn name(rest: &mut &str, names: &[&str]) -> Option<usize> {
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (head, tail) = rest.split_at(letters);
    let head = head.to_ascii_lowercase();
    let is = |name: &&str| head == **name || head.len() == 3 && name.starts_with(&head);
    let found = names.iter().position(is)?;
    *rest = tail;
    Some(found)
}

/// Seconds east of Greenwich: `Z`, `+0100`, `+01:00` or `+01`.
fn offset_of(rest: &mut &str) -> Option<i64> {
    if let Some(after) = rest.strip_prefix(['Z', 'z']) {
        *rest = after;
        return Some(0);
    }
    let sign = match rest.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours = number(rest, 2)?;
    *rest = rest.strip_prefix(':').unwrap_or(rest);
    let minutes = if rest.starts_with(|c: char| c.is_ascii_digit()) { number(rest, 2)? } else { 0 };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, text: &str) -> Option<String> {
        let moment = TimeFormat::new(format).expect("a pattern").parse(text)?;
        Some(moment.show(moment.unit()))
    }

    #[test]
    fn times_are_read_as_strptime_reads_them() {
        for (format, text, iso) in [
            ("%d.%m.%Y %H:%M", "04.03.2021 05:06", "2021-03-04T05:06:00Z"),
            ("%m/%d/%Y", "3/4/2021", "2021-03-04T00:00:00Z"),
            ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("%a %b %e %T %Y", "Thu Mar  4 05:06:07 2021", "2021-03-04T05:06:07Z"),
            ("%D %I:%M %p", "12/31/99 12:05 AM", "1999-12-31T00:05:00Z"),
            ("%F %I:%M:%S %p", "2021-03-04 11:05:09 pm", "2021-03-04T23:05:09Z"),
            ("%Y%m%d%H%M%S", "20210304050607", "2021-03-04T05:06:07Z"),
            ("%Y-%m-%d %H:%M:%S UTC", "2021-03-04 05:06:07 UTC", "2021-03-04T05:06:07Z"),
            ("%F %T.%f", "2021-03-04 05:06:07.25", "2021-03-04T05:06:07.250Z"),
            ("%s", "1614834367", "2021-03-04T05:06:07Z"),
            ("%B %d, %Y", "March 4, 2021", "2021-03-04T00:00:00Z"),
        ] {
            assert_eq!(read(format, text).as_deref(), Some(iso), "{format} of {text}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_no_time() {
        for (format, text) in [
            ("%d.%m.%Y", "04.13.2021"),
            ("%d.%m.%Y", "31.02.2021"),
            ("%d.%m.%Y", "04.03.2021 05:06"),
            ("%d.%m.%Y", ""),
            ("%H:%M %F", "24:00 2021-03-04"),
            ("%I %p %F", "13 pm 2021-03-04"),
            ("%F", "2021-03-0ä"),
        ] {
            assert_eq!(read(format, text), None, "{format} of {text}");
        }
        assert_eq!(TimeFormat::new("%Q"), None);
        assert_eq!(TimeFormat::new("%"), None);
        assert!(!TimeFormat::new("%H:%M").expect("a pattern").says_a_moment());
        assert!(TimeFormat::new("%d %b %y").expect("a pattern").says_a_moment());
    }
}
