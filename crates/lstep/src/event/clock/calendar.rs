//! Dates and times of ISO 8601 to nanoseconds since 1970 and back, in the proleptic Gregorian
//! calendar, without leap seconds.
//!
//! Read: `2021-03-04`, then perhaps `T` or a space and `05:06`, `:07`, `.089` (up to nine digits),
//! then perhaps `Z` or `+01:00`. No offset means UTC. Written: always UTC with `Z`.

use super::Unit;

/// A moment with nanoseconds, any year from 0000 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds after that second, below 1e9.
    pub nanoseconds: u32,
}

impl Instant {
    pub(crate) fn from_nanoseconds(nanoseconds: i128) -> Instant {
        Instant {
            seconds: nanoseconds.div_euclid(1_000_000_000) as i64,
            nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as u32,
        }
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub(crate) fn nanoseconds(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    /// The coarsest unit that holds this moment exactly.
    pub(crate) fn unit(self) -> Unit {
        match self.nanoseconds {
            0 => Unit::Second,
            n if n.is_multiple_of(1_000_000) => Unit::Millisecond,
            n if n.is_multiple_of(1_000) => Unit::Microsecond,
            _ => Unit::Nanosecond,
        }
    }

    /// Reads ISO 8601. Nothing if it is not, or if there is no such day or hour.
    pub(crate) fn parse(text: &str) -> Option<Instant> {
        let mut rest = text.as_bytes();
        let year = number(&mut rest, 4)?;
        expect(&mut rest, b'-')?;
        let month = number(&mut rest, 2)?;
        expect(&mut rest, b'-')?;
        let day = number(&mut rest, 2)?;
        if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
            return None;
        }
        let mut seconds = days_since_1970(year, month, day) * 86_400;
        let mut nanoseconds = 0;
        if let [b'T' | b't' | b' ', after @ ..] = rest {
            rest = after;
            let hour = number(&mut rest, 2)?;
            expect(&mut rest, b':')?;
            let minute = number(&mut rest, 2)?;
            let mut second = 0;
            if expect(&mut rest, b':').is_some() {
                second = number(&mut rest, 2)?;
                if let [b'.' | b',', after @ ..] = rest {
                    rest = after;
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    if !(1..=9).contains(&digits) {
                        return None;
                    }
                    nanoseconds = number(&mut rest, digits)? as u32 * 10u32.pow(9 - digits as u32);
                }
            }
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            seconds += hour * 3600 + minute * 60 + second - offset(&mut rest)?;
        }
        rest.is_empty().then_some(Instant { seconds, nanoseconds })
    }

    /// Writes ISO 8601 in UTC, with as many decimals as the unit has.
    pub(crate) fn show(self, unit: Unit) -> String {
        let (year, month, day) = date_of(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        let mut text = format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        );
        let digits = unit.digits();
        if digits > 0 {
            let fraction = self.nanoseconds / 10u32.pow(9 - digits as u32);
            text.push_str(&format!(".{fraction:0digits$}"));
        }
        text.push('Z');
        text
    }
}

/// Seconds that the offset at the end says to subtract; zero if there is none.
fn offset(rest: &mut &[u8]) -> Option<i64> {
    let sign = match rest {
        [] => return Some(0),
        [b'Z' | b'z'] => {
            *rest = &[];
            return Some(0);
        }
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hour = number(rest, 2)?;
    let mut minute = 0;
    if !rest.is_empty() {
        let _ = expect(rest, b':');
        minute = number(rest, 2)?;
    }
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 3600 + minute * 60))
}

fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (head, tail) = rest.split_at_checked(digits)?;
    *rest = tail;
    head.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn expect(rest: &mut &[u8], byte: u8) -> Option<()> {
    let (&first, tail) = rest.split_first()?;
    (first == byte).then(|| *rest = tail)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01. Years are taken to start in March, so that the leap day is the last of its
/// year, and eras of 400 years have 146,097 days each.
pub(super) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of the day that lies this many days after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_calendar_comes_back() {
        let mut expected = days_since_1970(0, 1, 1);
        for year in 0..10_000 {
            for month in 1..=12 {
                for day in [1, days_in(year, month)] {
                    let days = days_since_1970(year, month, day);
                    assert_eq!(date_of(days), (year, month, day));
                }
                assert_eq!(days_since_1970(year, month, 1), expected);
                expected += days_in(year, month);
            }
        }
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
    }

    #[test]
    fn all_forms_of_one_moment_are_equal() {
        let moment = Instant { seconds: 1_614_834_367, nanoseconds: 0 };
        for text in [
            "2021-03-04T05:06:07",
            "2021-03-04 05:06:07",
            "2021-03-04T05:06:07Z",
            "2021-03-04T05:06:07.000Z",
            "2021-03-04T07:06:07+02:00",
            "2021-03-03T23:36:07-05:30",
            "2021-03-04T05:06:07+00",
            "2021-03-04T05:06:07+0000",
        ] {
            assert_eq!(Instant::parse(text), Some(moment), "{text}");
        }
        assert_eq!(moment.show(Unit::Second), "2021-03-04T05:06:07Z");
        assert_eq!(moment.show(Unit::Millisecond), "2021-03-04T05:06:07.000Z");
    }

    #[test]
    fn nanoseconds_are_kept() {
        let moment = Instant::parse("1969-12-31T23:59:59.000000001Z").expect("a moment");
        assert_eq!(moment, Instant { seconds: -1, nanoseconds: 1 });
        assert_eq!(moment.unit(), Unit::Nanosecond);
        assert_eq!(Instant::from_nanoseconds(moment.nanoseconds()), moment);
        assert_eq!(moment.show(Unit::Nanosecond), "1969-12-31T23:59:59.000000001Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2021",
            "2021-3-4",
            "2021-02-29",
            "2021-13-01",
            "2021-00-10",
            "2021-03-04T",
            "2021-03-04T24:00:00",
            "2021-03-04T05:06:60",
            "2021-03-04T05:06:07.",
            "2021-03-04T05:06:07.0123456789",
            "2021-03-04T05:06:07X",
            "2021-03-04T05:06:07+25:00",
            "2021-03-04T05:06:07Z ",
            "yesterday",
            "２021-03-04",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }
}
