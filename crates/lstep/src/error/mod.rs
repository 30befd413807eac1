//! Everything that can go wrong and that a caller can act on.
//!
//! An [`Error`] is data: a variant for each kind of trouble, with the place and the value as
//! fields, and a [`Remedy`]. [`Error::kind`] sorts the variants into the few classes that a front
//! end answers differently. `Display` is one sentence that names place, value and remedy; a front
//! end that has its own names for arguments prints [`Error::display_with`] instead. What cannot
//! happen is a bug and an `expect`, not a variant here.

mod fault;
mod printable;
mod remedy;
#[cfg(test)]
mod wording;

pub use fault::{FaultKind, InputFault};
pub use printable::{printable, printable_line};
pub use remedy::{Argument, Front, Keywords, Plain, Remedy};

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong and that a caller can act on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file, or a part of one, is not what it has to be.
    Input(Box<InputFault>),

    /// A file is sound but belongs to something else: a checkpoint of other events, other settings
    /// or another model, a folder with another grid.
    Incompatible(Box<InputFault>),

    /// The operating system refused to read or write.
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the operating system said.
        reason: std::io::Error,
    },

    /// A setting has a value it cannot have.
    Setting {
        /// The setting's name as the user writes it.
        setting: Cow<'static, str>,
        /// The value given.
        value: String,
        /// Why it cannot be, where the remedy does not say.
        problem: Option<String>,
        /// What to do instead.
        remedy: Remedy,
    },

    /// A name that is not one of those known.
    UnknownName {
        /// What it should name, for example `dataset`.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },

    /// A node that no event names.
    UnknownNode {
        /// The id given.
        id: String,
    },

    /// Something is there twice that may be there only once.
    Duplicate {
        /// Where it is listed, for example `seeds`.
        what: &'static str,
        /// What is there twice.
        name: String,
        /// What to do instead.
        remedy: Remedy,
    },

    /// What should be made is there already.
    Exists {
        /// Where it is.
        path: PathBuf,
        /// What is there, for example `a run`.
        what: &'static str,
        /// What to do instead.
        remedy: Remedy,
    },

    /// An event comes before its predecessor.
    OutOfOrder {
        /// Number of the event that comes too late, counted from 0.
        event: u64,
        /// Its time.
        time: f64,
        /// The time of the event before it.
        previous_time: f64,
    },

    /// A question about a time that the model has already gone past.
    TimeInPast {
        /// The time asked about, as the stream writes times.
        time: String,
        /// The time of the last event that was observed.
        observed: String,
        /// What to do instead.
        remedy: Remedy,
    },

    /// A part of the stream that a question needs has no events.
    EmptyPart {
        /// Which part, for example `test`.
        part: &'static str,
        /// Why it is empty.
        reason: String,
        /// What to do instead.
        remedy: Remedy,
    },

    /// There is less of something than a computation needs.
    TooFew {
        /// What there is too little of, for example `events`.
        what: &'static str,
        /// What there is.
        found: String,
        /// What is needed.
        remedy: Remedy,
    },

    /// There is more of something than a stream can hold.
    TooMany {
        /// What there is too much of, for example `events`.
        what: &'static str,
        /// The most there may be.
        most: u64,
    },

    /// A watcher ended the work before it was done.
    Interrupted,

    /// Lengths that have to agree do not.
    LengthMismatch {
        /// What was compared.
        what: &'static str,
        /// The first length.
        left: usize,
        /// The second length.
        right: usize,
    },

    /// A feature is infinite or not a number.
    FeatureNotFinite {
        /// The row of the table.
        row: usize,
        /// The column of the table.
        column: usize,
        /// The feature.
        value: f32,
    },

    /// A model gave a score that cannot be ranked.
    ScoreNotFinite {
        /// The row of the query.
        row: usize,
        /// The place of the candidate in its row.
        candidate: usize,
        /// The score.
        value: f64,
    },

    /// A model of another language or crate failed in its own code.
    Model {
        /// What it said.
        reason: String,
    },

    /// Training has diverged.
    LossNotFinite {
        /// The epoch, counted from 1.
        epoch: u32,
        /// The loss.
        loss: f64,
    },

    /// Stored weights do not fit the model.
    Weights(lstep_tensor::Error),
}

/// What sort of trouble an [`Error`] is, for front ends that answer each in their own way.
///
/// | kind | a service answers | Python raises |
/// |---|---|---|
/// | `Setting` | 400 | `ValueError` |
/// | `Input` | 422 | `ValueError` |
/// | `NotFound` | 404 | `KeyError` |
/// | `Conflict` | 409 | `RuntimeError` |
/// | `Numeric` | 500 | `FloatingPointError` |
/// | `Io` | 500 | `OSError` |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's settings cannot be.
    Setting,
    /// The caller's events, features or files cannot be used as asked.
    Input,
    /// Something is named that does not exist.
    NotFound,
    /// The request is sound, but does not fit what is there already.
    Conflict,
    /// A computation gave infinity or NaN.
    Numeric,
    /// The operating system refused.
    Io,
    /// The caller ended the work.
    Interrupted,
}

impl Error {
    /// Wraps what the operating system said about a file.
    pub fn io(path: impl AsRef<Path>, reason: std::io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), reason }
    }

    /// A setting with a value it cannot have, where the remedy says why.
    pub fn setting(
        setting: &'static str,
        value: impl fmt::Display,
        remedy: impl Into<Remedy>,
    ) -> Self {
        let (value, remedy) = (value.to_string(), remedy.into());
        Error::Setting { setting: setting.into(), value, problem: None, remedy }
    }

    /// A setting with a value it cannot have, why, and what to do instead.
    pub fn refused(
        setting: &'static str,
        value: impl fmt::Display,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> Self {
        let (value, problem, remedy) = (value.to_string(), Some(problem.into()), remedy.into());
        Error::Setting { setting: setting.into(), value, problem, remedy }
    }

    /// A name that is not one of those known.
    pub fn unknown<K: fmt::Display>(
        what: &'static str,
        name: impl fmt::Display,
        known: impl IntoIterator<Item = K>,
    ) -> Self {
        let known = known.into_iter().map(|name| name.to_string()).collect();
        Error::UnknownName { what, name: name.to_string(), known }
    }

    /// Something that is there twice.
    pub fn duplicate(
        what: &'static str,
        name: impl fmt::Display,
        remedy: impl Into<Remedy>,
    ) -> Self {
        Error::Duplicate { what, name: name.to_string(), remedy: remedy.into() }
    }

    /// A file that is sound but belongs to something else.
    pub fn incompatible(fault: InputFault) -> Self {
        Error::Incompatible(Box::new(fault))
    }

    /// What sort of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Setting { .. } | Error::Duplicate { .. } => ErrorKind::Setting,
            Error::Input(fault) => match fault.kind {
                FaultKind::Missing => ErrorKind::NotFound,
                _ => ErrorKind::Input,
            },
            Error::OutOfOrder { .. }
            | Error::EmptyPart { .. }
            | Error::TooFew { .. }
            | Error::TooMany { .. }
            | Error::LengthMismatch { .. }
            | Error::FeatureNotFinite { .. } => ErrorKind::Input,
            Error::UnknownName { .. } | Error::UnknownNode { .. } => ErrorKind::NotFound,
            Error::Incompatible(_)
            | Error::Exists { .. }
            | Error::TimeInPast { .. }
            | Error::Weights(_) => ErrorKind::Conflict,
            Error::ScoreNotFinite { .. } | Error::LossNotFinite { .. } => ErrorKind::Numeric,
            Error::Model { .. } => ErrorKind::Conflict,
            Error::Io { .. } => ErrorKind::Io,
            Error::Interrupted => ErrorKind::Interrupted,
        }
    }

    /// The message as users of a front end should read it.
    pub fn display_with<'a>(&'a self, front: &'a dyn Front) -> impl fmt::Display + 'a {
        struct Raw<'a>(&'a Error, &'a dyn Front);
        impl fmt::Display for Raw<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, self.1)
            }
        }
        struct Rendered<'a>(Raw<'a>);
        impl fmt::Display for Rendered<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&printable(&self.0.to_string()))
            }
        }
        Rendered(Raw(self, front))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, front: &dyn Front) -> fmt::Result {
        match self {
            Error::Input(fault) | Error::Incompatible(fault) => fault.write(f, front),
            Error::Io { path, reason } => {
                write!(f, "{}: {reason}", printable_line(&path.display().to_string()))
            }
            Error::Setting { setting, value, problem, remedy } => {
                write!(f, "{setting} is {value}: ")?;
                if let Some(problem) = problem {
                    write!(f, "{problem}: ")?;
                }
                f.write_str(&remedy.render(front))
            }
            Error::UnknownName { what, name, known } => {
                write!(f, "{what} is {name}: choose one of {}", known.join(", "))
            }
            Error::UnknownNode { id } => write!(
                f,
                "node is {id}: no event names it on that side: {}",
                Remedy::AddEvents.render(front)
            ),
            Error::Duplicate { what, name, remedy } => {
                write!(f, "{what} is {name}: it is there twice: {}", remedy.render(front))
            }
            Error::Exists { path, what, remedy } => write!(
                f,
                "{}: there is {what} in it already: {}",
                printable_line(&path.display().to_string()),
                remedy.render(front)
            ),
            Error::OutOfOrder { event, time, previous_time } => write!(
                f,
                "event {event} is at {time}, before event {} at {previous_time}: sort the events \
                 by time",
                event.saturating_sub(1)
            ),
            Error::TimeInPast { time, observed, remedy } => write!(
                f,
                "the time of a question is {time}: the model has observed events up to \
                 {observed}: {}",
                remedy.render(front)
            ),
            Error::EmptyPart { part, reason, remedy } => write!(
                f,
                "the {part} part of the stream has no events ({reason}): {}",
                remedy.render(front)
            ),
            Error::TooFew { what, found, remedy } => {
                write!(f, "{what} is {found}: {}", remedy.render(front))
            }
            Error::TooMany { what, most } => {
                write!(f, "{what} are more than {most}, the most a stream can hold: split it")
            }
            Error::Interrupted => f.write_str("stopped before it was finished"),
            Error::LengthMismatch { what, left, right } => {
                write!(f, "{what}: {left} and {right} have to be equal")
            }
            Error::FeatureNotFinite { row, column, value } => write!(
                f,
                "a feature is {value} in row {row}, column {column}: features must be finite: \
                 clean the table"
            ),
            Error::ScoreNotFinite { row, candidate, value } => write!(
                f,
                "the score of candidate {candidate} in row {row} is {value}: a score that is not \
                 finite cannot be ranked"
            ),
            Error::Model { reason } => write!(f, "the model failed: {reason}"),
            Error::LossNotFinite { epoch, loss } => write!(
                f,
                "the loss is {loss} in epoch {epoch}: lower train.learning_rate or set train.clip"
            ),
            Error::Weights(error) => write!(f, "{error}"),
        }
    }
}

/// In the words of [`Plain`].
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.display_with(&Plain))
    }
}

impl std::error::Error for Error {
    /// The causes of what the message already says, so that a report of the whole chain says
    /// nothing twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { reason, .. } => reason.source(),
            Error::Weights(error) => error.source(),
            _ => None,
        }
    }
}

impl From<lstep_tensor::Error> for Error {
    fn from(error: lstep_tensor::Error) -> Self {
        Error::Weights(error)
    }
}

impl From<InputFault> for Error {
    fn from(fault: InputFault) -> Self {
        Error::Input(Box::new(fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_setting_names_value_problem_and_remedy() {
        let error = Error::setting("skew", 0, "it has to be at least 1");
        assert_eq!(error.to_string(), "skew is 0: it has to be at least 1");
        let error = Error::refused("train.seed", 3, "a grid has its own", Remedy::NameSeeds);
        assert_eq!(
            error.to_string(),
            "train.seed is 3: a grid has its own: name them with `seeds`"
        );
        assert_eq!(
            error.display_with(&Keywords).to_string(),
            "train.seed is 3: a grid has its own: name them with seeds="
        );
    }

    #[test]
    fn a_chain_of_causes_says_nothing_twice() {
        let reason = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
        let error = Error::io("events.csv", reason);
        assert_eq!(error.to_string(), "events.csv: no such file");
        let mut cause = error.source();
        while let Some(error) = cause {
            assert!(!error.to_string().contains("no such file"), "{error}");
            cause = error.source();
        }
    }

    #[test]
    fn kinds_are_what_a_front_end_answers_by() {
        let fault = || InputFault::new("run", "holds no run", Remedy::NameRun);
        for (error, kind) in [
            (Error::setting("skew", 0, "1 or more"), ErrorKind::Setting),
            (fault().into(), ErrorKind::Input),
            (fault().kind(FaultKind::Missing).into(), ErrorKind::NotFound),
            (Error::unknown("dataset", "ucy", ["uci"]), ErrorKind::NotFound),
            (Error::incompatible(fault()), ErrorKind::Conflict),
            (Error::LossNotFinite { epoch: 1, loss: f64::NAN }, ErrorKind::Numeric),
            (Error::io("a", std::io::Error::other("b")), ErrorKind::Io),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }

    #[test]
    fn messages_are_printable_and_bounded() {
        let error = Error::io("a\u{1b}[31m\nb", std::io::Error::other("c\u{7}"));
        assert_eq!(error.to_string(), "a\\u001b[31m\\u000ab: c\\u0007");
        let fault = InputFault::new("x\r\ny", "is \u{202e}wrong", "mend it");
        assert_eq!(Error::from(fault).to_string(), "x\\u000d\\u000ay: is \\u202ewrong; mend it");
        let long = Error::unknown("dataset", "x".repeat(100_000), ["uci"]).to_string();
        assert!(long.chars().count() < 5_000 && long.ends_with("uci"), "{}", long.len());
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<Error>() <= 112, "{}", size_of::<Error>());
    }
}
