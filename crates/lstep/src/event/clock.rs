//! How the file's times became numbers, kept exactly, and how a number is shown as the file would.
//!
//! A double holds every integer up to 2^53. Integers beyond that (nanoseconds since 1970, say) are
//! counted from an origin, the earliest time; a stream whose own span is longer than 2^53 is
//! refused by the reader. Depends on `Time` only.

mod calendar;

pub(crate) use calendar::Instant;

use super::Time;
use serde::{Deserialize, Serialize};

/// Largest integer up to which a double holds every integer.
pub(crate) const EXACT: i64 = 1 << 53;

/// How times are written in the file, and where zero is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Clock {
    /// Integers in a unit that only the file's author knows, counted from `origin`.
    Integer {
        /// The file's time at [`Time`] zero.
        origin: i64,
    },
    /// Decimal numbers, taken as they are.
    Float,
    /// Dates and times of ISO 8601, counted in `unit` from `origin`.
    Iso8601 {
        /// The coarsest unit that holds all times of the file exactly.
        unit: Unit,
        /// Units from 1970-01-01T00:00:00Z to [`Time`] zero.
        origin: i64,
    },
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Second,
    /// 1e-3 s.
    Millisecond,
    /// 1e-6 s.
    Microsecond,
    /// 1e-9 s.
    Nanosecond,
}

impl Unit {
    /// How many of it make a second.
    pub fn per_second(self) -> i64 {
        10i64.pow(self.digits() as u32)
    }

    /// Decimal places of a second.
    pub(crate) fn digits(self) -> usize {
        match self {
            Unit::Second => 0,
            Unit::Millisecond => 3,
            Unit::Microsecond => 6,
            Unit::Nanosecond => 9,
        }
    }
}

impl Clock {
    /// Seconds in one unit of [`Time`], if the file says.
    pub fn seconds_per_unit(&self) -> Option<f64> {
        match self {
            Clock::Iso8601 { unit, .. } => Some(1.0 / unit.per_second() as f64),
            _ => None,
        }
    }

    /// The time as the file would write it: integers and ISO 8601 exactly (in UTC), decimals as the
    /// shortest text that reads back the same.
    pub fn show(&self, time: Time) -> String {
        let value = time.value();
        match self {
            Clock::Float => format!("{value:?}"),
            Clock::Integer { origin } if value.fract() == 0.0 => {
                (value as i128 + i128::from(*origin)).to_string()
            }
            Clock::Integer { origin } => format!("{:?}", value + *origin as f64),
            Clock::Iso8601 { unit, origin } => {
                // A moment between two units (a query, never an event) is shown with nanoseconds.
                let whole = value.floor();
                let nanoseconds_per_unit = i128::from(1_000_000_000 / unit.per_second());
                let between = ((value - whole) * nanoseconds_per_unit as f64) as i128;
                Instant::from_nanoseconds(
                    (whole as i128 + i128::from(*origin)) * nanoseconds_per_unit + between,
                )
                .show(if between == 0 { *unit } else { Unit::Nanosecond })
            }
        }
    }

    /// The time that a user wrote in the file's manner. Nothing if it is no such time or lies
    /// beyond what is exact.
    pub fn parse(&self, text: &str) -> Option<Time> {
        let text = text.trim();
        match self {
            Clock::Float => Time::new(text.parse().ok()?),
            Clock::Integer { origin } => match text.parse::<i64>() {
                Ok(number) => exact(i128::from(number) - i128::from(*origin)),
                Err(_) => Time::new(text.parse::<f64>().ok()? - *origin as f64),
            },
            Clock::Iso8601 { unit, origin } => {
                let nanoseconds = Instant::parse(text)?.nanoseconds();
                let nanoseconds_per_unit = i128::from(1_000_000_000 / unit.per_second());
                let whole =
                    exact(nanoseconds.div_euclid(nanoseconds_per_unit) - i128::from(*origin))?;
                let between = nanoseconds.rem_euclid(nanoseconds_per_unit) as f64
                    / nanoseconds_per_unit as f64;
                Time::new(whole.value() + between)
            }
        }
    }
}

/// The integer as a time, if a double holds it exactly.
pub(crate) fn exact(number: i128) -> Option<Time> {
    if number.unsigned_abs() <= EXACT as u128 { Time::new(number as f64) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(value: f64) -> Time {
        Time::new(value).expect("a finite time")
    }

    #[test]
    fn integers_print_back_exactly_whatever_the_origin() {
        let clock = Clock::Integer { origin: 1_700_000_000_123_456_789 };
        assert_eq!(clock.show(time(5.0)), "1700000000123456794");
        assert_eq!(clock.parse("1700000000123456794"), Some(time(5.0)));
        assert_eq!(clock.parse("0"), None, "further from the origin than 2^53");
        let clock = Clock::Integer { origin: 0 };
        assert_eq!(clock.show(time(1_254_192_988.0)), "1254192988");
        assert_eq!(clock.parse("-12"), Some(time(-12.0)));
        assert_eq!(clock.parse("12.5"), Some(time(12.5)));
        assert_eq!(clock.parse("noon"), None);
    }

    #[test]
    fn decimals_print_the_shortest_text_that_reads_back() {
        assert_eq!(Clock::Float.show(time(0.1)), "0.1");
        assert_eq!(Clock::Float.show(time(36.0)), "36.0");
        assert_eq!(Clock::Float.parse("1e3"), Some(time(1000.0)));
        assert_eq!(Clock::Float.parse("nan"), None);
    }

    #[test]
    fn dates_print_back_in_utc_with_their_unit() {
        let clock = Clock::Iso8601 { unit: Unit::Millisecond, origin: 0 };
        let moment = clock.parse("2021-03-04T05:06:07.089+01:00").expect("a date");
        assert_eq!(clock.show(moment), "2021-03-04T04:06:07.089Z");
        assert_eq!(clock.parse("2021-03-04"), Some(time(1_614_816_000_000.0)));
        assert_eq!(clock.seconds_per_unit(), Some(0.001));
        let days = Clock::Iso8601 { unit: Unit::Second, origin: 0 };
        assert_eq!(days.show(time(-1.0)), "1969-12-31T23:59:59Z");
        assert_eq!(days.show(time(0.5)), "1970-01-01T00:00:00.500000000Z");
        assert_eq!(days.parse("1970-01-01T00:00:00.5"), Some(time(0.5)));
    }

    #[test]
    fn a_clock_is_stored_as_plain_words() {
        let clock = Clock::Iso8601 { unit: Unit::Second, origin: 0 };
        let stored = serde_json::to_string(&clock).expect("a clock is plain data");
        assert_eq!(stored, r#"{"kind":"iso8601","unit":"second","origin":0}"#);
        assert_eq!(serde_json::from_str::<Clock>(&stored).expect("what was written"), clock);
    }
}
