//! How the file's times became numbers, kept exactly, and how a number is shown as the file would.
//!
//! A double holds every integer up to 2^53. Integers beyond that (nanoseconds since 1970, say) are
//! counted from an origin, the earliest time; a stream whose own span is longer than 2^53 is
//! refused by the reader. Depends on `Time` only.

mod calendar;
mod time_format;

pub(crate) use calendar::Instant;
pub use time_format::TimeFormat;

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

    fn in_nanoseconds(self) -> i128 {
        i128::from(1_000_000_000 / self.per_second())
    }

    /// Nanoseconds since 1970 of a time that counts this unit from `origin`.
    fn nanoseconds(self, value: f64, origin: i64) -> i128 {
        let whole = value.floor();
        let between = ((value - whole) * self.in_nanoseconds() as f64) as i128;
        (whole as i128 + i128::from(origin)) * self.in_nanoseconds() + between
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
                let nanoseconds = unit.nanoseconds(value, *origin);
                let between = nanoseconds.rem_euclid(unit.in_nanoseconds());
                Instant::from_nanoseconds(nanoseconds).show(if between == 0 {
                    *unit
                } else {
                    Unit::Nanosecond
                })
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
            Clock::Iso8601 { .. } => self.of_nanoseconds(Instant::parse(text)?.nanoseconds()),
        }
    }

    /// A time of another file's clock on this one: the same as reading what the other clock shows,
    /// without writing it down. Nothing if one of the two has dates and the other has numbers, or
    /// if the time lies beyond what is exact here.
    pub fn convert(&self, time: Time, from: &Clock) -> Option<Time> {
        let value = time.value();
        let decimal = match (from, self) {
            (Clock::Float, Clock::Float) => return Some(time),
            (Clock::Float, Clock::Integer { .. }) => value,
            (Clock::Integer { origin }, Clock::Float | Clock::Integer { .. }) => {
                if value.fract() == 0.0 {
                    return self.of_integer(value as i128 + i128::from(*origin));
                }
                value + *origin as f64
            }
            (Clock::Iso8601 { unit, origin }, Clock::Iso8601 { .. }) => {
                return self.of_nanoseconds(unit.nanoseconds(value, *origin));
            }
            (Clock::Iso8601 { .. }, _) | (_, Clock::Iso8601 { .. }) => return None,
        };
        match self {
            Clock::Integer { origin } => Time::new(decimal - *origin as f64),
            _ => Time::new(decimal),
        }
    }

    /// A whole number of the file on a clock of numbers.
    fn of_integer(&self, number: i128) -> Option<Time> {
        match (self, i64::try_from(number)) {
            (Clock::Integer { origin }, Ok(number)) => {
                exact(i128::from(number) - i128::from(*origin))
            }
            (Clock::Integer { origin }, Err(_)) => Time::new(number as f64 - *origin as f64),
            (Clock::Float, _) => Time::new(number as f64),
            (Clock::Iso8601 { .. }, _) => None,
        }
    }

    /// Nanoseconds since 1970 on a clock of dates.
    fn of_nanoseconds(&self, nanoseconds: i128) -> Option<Time> {
        let Clock::Iso8601 { unit, origin } = self else { return None };
        let per_unit = unit.in_nanoseconds();
        let whole = exact(nanoseconds.div_euclid(per_unit) - i128::from(*origin))?;
        let between = nanoseconds.rem_euclid(per_unit) as f64 / per_unit as f64;
        Time::new(whole.value() + between)
    }
}

/// The integer as a time, if a double holds it exactly.
pub(crate) fn exact(number: i128) -> Option<Time> {
    if number.unsigned_abs() <= EXACT as u128 { Time::new(number as f64) } else { None }
}

impl Clock {
    /// A clock that shows these times as dates, where they look like seconds, milliseconds,
    /// microseconds or nanoseconds since 1970: all of them lie between 1990 and 2100.
    pub fn as_unix(&self, first: Time, last: Time) -> Option<Clock> {
        let origin = match self {
            Clock::Integer { origin } => *origin,
            Clock::Float => 0,
            Clock::Iso8601 { .. } => return None,
        };
        let units = [Unit::Second, Unit::Millisecond, Unit::Microsecond, Unit::Nanosecond];
        let fits = |unit: &Unit| {
            let year = |from_1970: f64| from_1970 * 365.25 * 86_400.0 * unit.per_second() as f64;
            let [first, last] = [first, last].map(|time| time.value() + origin as f64);
            first >= year(20.0) && last < year(130.0)
        };
        let unit = units.into_iter().find(fits)?;
        Some(Clock::Iso8601 { unit, origin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn clocks() -> impl Strategy<Value = Clock> {
        let unit = prop::sample::select(vec![
            Unit::Second,
            Unit::Millisecond,
            Unit::Microsecond,
            Unit::Nanosecond,
        ]);
        prop_oneof![
            Just(Clock::Float),
            prop_oneof![Just(0), -1000..1000i64, any::<i64>()]
                .prop_map(|origin| Clock::Integer { origin }),
            // Counted from 1970 or later, up to the year 2200 or so.
            (unit, prop_oneof![Just(0i64), 0..7_000_000_000i64])
                .prop_map(|(unit, origin)| Clock::Iso8601 { unit, origin }),
        ]
    }

    proptest! {
        #[test]
        fn a_time_of_another_clock_is_what_its_text_would_be_read_as(
            from in clocks(),
            to in clocks(),
            whole in prop_oneof![0..2_000i64, -1_000_000..9_000_000_000i64, -EXACT..=EXACT],
            fraction in prop_oneof![Just(0.0), Just(0.5), 0.0..1.0f64],
        ) {
            // Dates beyond the year 9999 have no text that reads back.
            let dates = matches!(from, Clock::Iso8601 { .. });
            let whole = if dates { whole.rem_euclid(9_000_000_000) } else { whole };
            let time = time(whole as f64 + fraction);
            prop_assert_eq!(to.convert(time, &from), to.parse(&from.show(time)));
        }
    }
}
