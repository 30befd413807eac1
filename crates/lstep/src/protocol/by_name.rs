//! Choices that files and the command line write by name.

use super::{Part, Setting, Strategy, Ties, Visibility};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

impl Part {
    /// All parts.
    pub const ALL: [Part; 2] = [Part::Validation, Part::Test];
}

impl Setting {
    /// All settings.
    pub const ALL: [Setting; 2] = [Setting::Transductive, Setting::Inductive];
}

impl Strategy {
    /// The kinds that can be drawn for any stream.
    pub const DRAWN: [Strategy; 3] = [Strategy::Random, Strategy::Historical, Strategy::Inductive];
}

impl Visibility {
    /// All of them, the widest first.
    pub const ALL: [Visibility; 3] = [Visibility::Event, Visibility::Step, Visibility::Strict];
}

impl fmt::Display for Ties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ties::File => "file",
            Ties::Shuffled => "shuffled",
        })
    }
}

impl fmt::Display for Visibility {
    /// As files and the command line write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Visibility::Event => "event",
            Visibility::Step => "step",
            Visibility::Strict => "strict",
        })
    }
}

fn by_name<T: Copy + fmt::Display>(what: &'static str, all: &[T], text: &str) -> Result<T> {
    all.iter().copied().find(|choice| choice.to_string() == text).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(T::to_string).collect();
        Error::setting(what, text, format!("choose one of {}", known.join(", ")))
    })
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Part> {
        by_name("part", &Part::ALL, text)
    }
}

impl FromStr for Setting {
    type Err = Error;

    fn from_str(text: &str) -> Result<Setting> {
        by_name("setting", &Setting::ALL, text)
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Strategy> {
        let [random, historical, inductive] = Strategy::DRAWN;
        by_name("negatives", &[random, historical, inductive, Strategy::Tgb], text)
    }
}

impl FromStr for Ties {
    type Err = Error;

    fn from_str(text: &str) -> Result<Ties> {
        by_name("ties", &Ties::ALL, text)
    }
}

impl FromStr for Visibility {
    type Err = Error;

    fn from_str(text: &str) -> Result<Visibility> {
        by_name("visibility", &Visibility::ALL, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_is_written() {
        fn read_back<T: Copy + fmt::Display + fmt::Debug + PartialEq + FromStr<Err = Error>>(
            all: &[T],
        ) {
            for choice in all {
                assert_eq!(choice.to_string().parse::<T>().expect("known"), *choice);
            }
            assert!("other".parse::<T>().is_err());
        }
        read_back(&Part::ALL);
        read_back(&Setting::ALL);
        read_back(&Strategy::DRAWN);
        read_back(&[Strategy::Tgb]);
        read_back(&Visibility::ALL);
    }
}
