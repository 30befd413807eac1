//! A column of times while it is read: integers, decimals or ISO 8601, whichever the file turns out
//! to hold.
//!
//! Integers become decimals at the first decimal, provided nothing is lost; dates are held in the
//! coarsest unit that has been needed so far. At the end the column becomes [`Time`]s and the
//! [`Clock`] that shows them as the file did.

use super::number::Refusal;
use crate::error::{Argument, Remedy};
use crate::event::{Clock, EXACT, Instant, Time, TimeFormat, Unit, exact};

/// The times read so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Times {
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Iso8601(Unit, Vec<i64>),
}

const NOT_A_TIME: Refusal = Refusal::with("is not a time", Remedy::WriteTimes);
pub(super) const OTHER_FORMAT: Refusal = Refusal::with(
    "is not a time of the format that was given",
    Remedy::CorrectColumn(Argument::TimeFormat),
);
const EMPTY: Refusal =
    Refusal::new("is empty, but every event needs a time", "fill it or drop the row");
const NOT_FINITE: Refusal =
    Refusal::new("is not a finite time", "drop the row or correct its time");
const TOO_LARGE: Refusal = Refusal::new(
    "does not fit into 64 bits",
    "count times from a later origin or in a coarser unit",
);
const INEXACT: Refusal = Refusal::new(
    "cannot stand in one column with decimals: integers beyond 2^53 would be rounded",
    "write all times as integers, or count them from a later origin",
);
pub(super) const MIXED: Refusal =
    Refusal::new("mixes ISO 8601 with numbers in one column", "write all times in the same way");
const DISTANT: Refusal = Refusal::new(
    "is too far from 1970 for the fractions of a second in this column",
    "write fewer decimals or correct the year",
);
const ROUNDED: Refusal = Refusal::new(
    "has more digits than a double holds, so that two times might become one",
    "write times as integers (of nanoseconds, for example) or as ISO 8601, or with fewer digits",
);
const LONG_SPAN: Refusal = Refusal::new(
    "times span more than 2^53 units, so that doubles would round them",
    "write them in a coarser unit",
);

impl Default for Times {
    fn default() -> Times {
        Times::Integer(Vec::new())
    }
}

impl Times {
    pub(super) fn len(&self) -> usize {
        match self {
            Times::Integer(times) | Times::Iso8601(_, times) => times.len(),
            Times::Float(times) => times.len(),
        }
    }

    /// Appends what is written in the file.
    #[inline]
    pub(super) fn push(&mut self, text: &str) -> Result<(), Refusal> {
        match short_integer(text) {
            Some(number) => self.push_integer(number),
            None => self.push_other(text),
        }
    }

    /// Appends what is written in the file by a pattern.
    pub(super) fn push_as(&mut self, text: &str, format: &TimeFormat) -> Result<(), Refusal> {
        match format.parse(text) {
            Some(instant) => self.push_instant(instant),
            None if text.is_empty() => Err(EMPTY),
            None => Err(OTHER_FORMAT),
        }
    }

    #[inline]
    pub(super) fn push_integer(&mut self, number: i64) -> Result<(), Refusal> {
        match self {
            Times::Integer(times) => times.push(number),
            Times::Float(times) => times.push(exact(i128::from(number)).ok_or(INEXACT)?.value()),
            Times::Iso8601(..) => return Err(MIXED),
        }
        Ok(())
    }

    pub(super) fn push_float(&mut self, number: f64) -> Result<(), Refusal> {
        if !number.is_finite() {
            return Err(NOT_FINITE);
        }
        self.become_float()?;
        match self {
            // Negative zero becomes zero: equal times have to sort as equals.
            Times::Float(times) => times.push(number + 0.0),
            _ => return Err(MIXED),
        }
        Ok(())
    }

    pub(super) fn push_instant(&mut self, instant: Instant) -> Result<(), Refusal> {
        let finest = match self {
            Times::Iso8601(unit, _) => instant.unit().max(*unit),
            _ if self.len() == 0 => instant.unit(),
            _ => return Err(MIXED),
        };
        let per_unit = 1_000_000_000 / finest.per_second();
        let time = i64::try_from(instant.nanoseconds() / i128::from(per_unit));
        let time = time.map_err(|_| DISTANT)?;
        match self {
            Times::Iso8601(..) => self.refine(finest)?,
            _ => *self = Times::Iso8601(finest, Vec::new()),
        }
        if let Times::Iso8601(_, times) = self {
            times.push(time);
        }
        Ok(())
    }

    /// Whether one time is before another, both by their places.
    pub(super) fn is_before(&self, place: usize, other: usize) -> bool {
        match self {
            Times::Integer(times) | Times::Iso8601(_, times) => times[place] < times[other],
            Times::Float(times) => times[place] < times[other],
        }
    }

    /// The first time from this place on that is before its predecessor.
    pub(super) fn first_decrease(&self, from: usize) -> Option<usize> {
        fn place<T: PartialOrd>(times: &[T], from: usize) -> Option<usize> {
            let before = from.saturating_sub(1);
            times[before..]
                .windows(2)
                .position(|pair| pair[1] < pair[0])
                .map(|place| before + place + 1)
        }
        match self {
            Times::Integer(times) | Times::Iso8601(_, times) => place(times, from),
            Times::Float(times) => place(times, from),
        }
    }

    /// One time as the file would write it.
    pub(super) fn show(&self, place: usize) -> String {
        match self {
            Times::Integer(times) => times[place].to_string(),
            Times::Float(times) => format!("{:?}", times[place]),
            Times::Iso8601(unit, times) => {
                let per_unit = i128::from(1_000_000_000 / unit.per_second());
                Instant::from_nanoseconds(i128::from(times[place]) * per_unit).show(*unit)
            }
        }
    }

    /// The places of all times in time order, equal times in file order.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        match self {
            Times::Integer(times) | Times::Iso8601(_, times) => {
                order.sort_by_key(|&place| times[place as usize]);
            }
            Times::Float(times) => {
                order.sort_by(|&a, &b| times[a as usize].total_cmp(&times[b as usize]));
            }
        }
        order
    }

    /// The same times in another order.
    pub(super) fn reordered(&self, order: &[u32]) -> Times {
        fn pick<T: Copy>(times: &[T], order: &[u32]) -> Vec<T> {
            order.iter().map(|&place| times[place as usize]).collect()
        }
        match self {
            Times::Integer(times) => Times::Integer(pick(times, order)),
            Times::Float(times) => Times::Float(pick(times, order)),
            Times::Iso8601(unit, times) => Times::Iso8601(*unit, pick(times, order)),
        }
    }

    /// Drops fractions, as TGB does when it casts times to integers.
    pub(super) fn truncate(&mut self) -> Result<(), Refusal> {
        if let Times::Float(times) = self {
            let whole = times
                .iter()
                .map(|time| exact(time.trunc() as i128).map(|time| time.value() as i64));
            *self = Times::Integer(whole.collect::<Option<_>>().ok_or(TOO_LARGE)?);
        }
        Ok(())
    }

    /// Appends the times of the next part of the file.
    pub(super) fn append(&mut self, mut later: Times) -> Result<(), Refusal> {
        if self.len() == 0 {
            *self = later;
            return Ok(());
        }
        if later.len() == 0 {
            return Ok(());
        }
        match (&*self, &later) {
            (Times::Float(_), Times::Integer(_)) => later.become_float()?,
            (Times::Integer(_), Times::Float(_)) => self.become_float()?,
            (Times::Iso8601(unit, _), Times::Iso8601(other, _)) => {
                let finest = *unit.max(other);
                self.refine(finest)?;
                later.refine(finest)?;
            }
            _ => {}
        }
        match (self, later) {
            (Times::Integer(times), Times::Integer(more))
            | (Times::Iso8601(_, times), Times::Iso8601(_, more)) => {
                times.extend(more);
            }
            (Times::Float(times), Times::Float(more)) => times.extend(more),
            _ => return Err(MIXED),
        }
        Ok(())
    }

    /// The numbers that the rest of the program works with, and the clock that shows them as the
    /// file did.
    pub(super) fn finish(self) -> Result<(Vec<Time>, Clock), Refusal> {
        match self {
            Times::Float(times) => {
                let times = times
                    .into_iter()
                    .map(|time| Time::new(time).expect("checked when it was read"));
                Ok((times.collect(), Clock::Float))
            }
            Times::Integer(times) => {
                let (times, origin) = from_origin(times)?;
                Ok((times, Clock::Integer { origin }))
            }
            Times::Iso8601(unit, times) => {
                let (times, origin) = from_origin(times)?;
                Ok((times, Clock::Iso8601 { unit, origin }))
            }
        }
    }

    #[cold]
    fn push_other(&mut self, text: &str) -> Result<(), Refusal> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EMPTY);
        }
        if let Some(instant) = Instant::parse(text) {
            return self.push_instant(instant);
        }
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
            return self.push_integer(text.parse().map_err(|_| TOO_LARGE)?);
        }
        let number: f64 = text.parse().map_err(|_| NOT_A_TIME)?;
        if number.is_finite() && !is_kept(text, number) {
            return Err(ROUNDED);
        }
        self.push_float(number)
    }

    fn become_float(&mut self) -> Result<(), Refusal> {
        if let Times::Integer(times) = self {
            let floats = times.iter().map(|&time| exact(i128::from(time)).map(Time::value));
            *self = Times::Float(floats.collect::<Option<_>>().ok_or(INEXACT)?);
        }
        Ok(())
    }

    fn refine(&mut self, finer: Unit) -> Result<(), Refusal> {
        if let Times::Iso8601(unit, times) = self
            && finer > *unit
        {
            let factor = finer.per_second() / unit.per_second();
            // A column that cannot follow stays as it is.
            let finer_times = times.iter().map(|time| time.checked_mul(factor));
            *times = finer_times.collect::<Option<_>>().ok_or(DISTANT)?;
            *unit = finer;
        }
        Ok(())
    }
}

/// Whether a decimal comes back from a double as it was written: as its shortest name, or printed
/// with as many digits. A double holds fifteen digits, whatever they are; of more, two different
/// times might become one.
fn is_kept(text: &str, number: f64) -> bool {
    let digits = text
        .bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .filter(u8::is_ascii_digit)
        .count();
    if digits <= 15 {
        return true;
    }
    let written = significant(text);
    written == significant(&format!("{number:e}"))
        || written
            == significant(&format!("{number:.*e}", significant_digits(text).saturating_sub(1)))
}

/// Digits from the first that is not zero.
fn significant_digits(text: &str) -> usize {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|&digit| digit == b'0').count()
}

/// A number's sign, its digits without zeros at either end, and the power of ten of the first of
/// them.
fn significant(text: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: String = [whole.trim_start_matches(['-', '+']), fraction].concat();
    let zeros = all.len() - all.trim_start_matches('0').len();
    let power = exponent + (all.len() - fraction.len()) as i64 - zeros as i64;
    (text.starts_with('-'), all.trim_matches('0').to_string(), power)
}

/// Integers as times, counted from zero if doubles hold them all, otherwise from the earliest.
fn from_origin(times: Vec<i64>) -> Result<(Vec<Time>, i64), Refusal> {
    let (Some(&earliest), Some(&latest)) = (times.iter().min(), times.iter().max()) else {
        return Ok((Vec::new(), 0));
    };
    let origin = if earliest >= -EXACT && latest <= EXACT { 0 } else { earliest };
    if i128::from(latest) - i128::from(origin) > i128::from(EXACT) {
        return Err(LONG_SPAN);
    }
    let times = times
        .into_iter()
        .map(|time| Time::new((time - origin) as f64).expect("an integer is finite"));
    Ok((times.collect(), origin))
}

/// An integer of at most 18 digits, the common case.
#[inline]
fn short_integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, bytes),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: &[&str]) -> Result<Times, Refusal> {
        let mut times = Times::default();
        texts.iter().try_for_each(|text| times.push(text))?;
        Ok(times)
    }

    /// Reads, finishes and shows again.
    fn shown(texts: &[&str]) -> Vec<String> {
        let (times, clock) = column(texts).expect("good times").finish().expect("an exact span");
        times.into_iter().map(|time| clock.show(time)).collect()
    }

    #[test]
    fn integers_come_back_exactly_even_beyond_doubles() {
        assert_eq!(shown(&["-5", "0", "1254192988"]), ["-5", "0", "1254192988"]);
        let nanoseconds = ["1700000000123456789", "1700000000123456790", "1700000000123456791"];
        assert_eq!(shown(&nanoseconds), nanoseconds);
        assert_eq!(shown(&["-9223372036854775808"]), ["-9223372036854775808"]);
    }

    #[test]
    fn a_span_that_doubles_would_round_is_refused() {
        assert_eq!(
            column(&["0", "9007199254740992"]).expect("read").finish().expect("2^53 is exact").1,
            Clock::Integer { origin: 0 }
        );
        assert_eq!(column(&["-1", "9007199254740993"]).expect("read").finish(), Err(LONG_SPAN));
    }

    #[test]
    fn integers_become_decimals_unless_that_would_round_them() {
        assert_eq!(shown(&["1", "2.5", "3"]), ["1.0", "2.5", "3.0"]);
        assert_eq!(column(&["9007199254740993", "0.5"]), Err(INEXACT));
        assert_eq!(column(&["0.5", "9007199254740993"]), Err(INEXACT));
    }

    #[test]
    fn a_decimal_that_a_double_would_round_is_refused() {
        for text in [
            "1700000000.000000399",
            "1700000000.1234568",
            "1700000000000000059.5",
            "0.30000000000000001",
        ] {
            assert_eq!(column(&[text]), Err(ROUNDED), "{text}");
        }
        // Shortest names, and doubles printed with 17 digits, with 19, and with an exponent.
        let number: f64 = 1_700_000_000.123_456_7;
        let printed = [
            format!("{number:?}"),
            format!("{number:.7}"),
            format!("{number:.16e}"),
            format!("{number:.18e}"),
        ];
        for text in printed.iter().map(String::as_str).chain([
            "0.30000000000000004",
            "-1082008561.5000000000000",
            "00.1",
        ]) {
            let read = column(&[text]).expect("a double's own name");
            assert_eq!(read, Times::Float(vec![text.parse().expect("a number")]), "{text}");
        }
    }

    #[test]
    fn dates_are_held_in_the_coarsest_unit_that_fits() {
        assert_eq!(
            column(&["2021-03-04", "2021-03-04T00:00:01Z"])
                .expect("dates")
                .finish()
                .expect("exact")
                .1,
            { Clock::Iso8601 { unit: Unit::Second, origin: 0 } }
        );
        let texts = ["2021-03-04T00:00:00.000000Z", "2021-03-04T00:00:00.000250Z"];
        assert_eq!(shown(&texts), texts);
        assert_eq!(
            shown(&["2021-03-04", "2021-03-04T00:00:00.000000001Z"])[1],
            "2021-03-04T00:00:00.000000001Z"
        );
        assert_eq!(column(&["0001-01-01", "2021-03-04T00:00:00.000000001Z"]), Err(DISTANT));
    }

    #[test]
    fn dates_and_numbers_do_not_mix() {
        assert_eq!(column(&["2021-03-04", "17"]), Err(MIXED));
        assert_eq!(column(&["17", "2021-03-04"]), Err(MIXED));
        assert_eq!(column(&["17.5", "2021-03-04"]), Err(MIXED));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(column(&["noon"]), Err(NOT_A_TIME));
        assert_eq!(column(&[""]), Err(EMPTY));
        assert_eq!(column(&["NaN"]), Err(NOT_FINITE));
        assert_eq!(column(&["-inf"]), Err(NOT_FINITE));
        assert_eq!(column(&["1e400"]), Err(NOT_FINITE));
        assert_eq!(column(&["99999999999999999999"]), Err(TOO_LARGE));
    }

    #[test]
    fn parts_join_as_if_they_were_one() {
        for texts in [
            &["1", "2", "3", "4"][..],
            &["1", "2", "2.5", "4"],
            &["0.5", "2.5", "3", "4"],
            &["2021-03-04", "2021-03-04", "2021-03-04T00:00:00.5", "2021-03-05"],
        ] {
            let mut joined = column(&texts[..2]).expect("good times");
            joined.append(column(&texts[2..]).expect("good times")).expect("parts fit");
            assert_eq!(joined, column(texts).expect("good times"));
        }
        let mut dates = column(&["2021-03-04"]).expect("a date");
        assert_eq!(dates.append(column(&["5"]).expect("a number")), Err(MIXED));
    }
}
