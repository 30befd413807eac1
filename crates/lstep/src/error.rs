//! Everything that can go wrong and that a caller can act on.
//!
//! A message names the place, the value and the remedy. What cannot happen is a bug and an
//! `expect`, not a variant here.

use std::fmt;
use std::path::{Path, PathBuf};

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong and that a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, or a part of one, is not what it has to be.
    #[error("{0}")]
    Input(Box<InputFault>),

    /// The operating system refused to read or write.
    #[error("{path}: {reason}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the operating system said; part of the message, so not its source as well.
        reason: std::io::Error,
    },

    /// An event comes before its predecessor.
    #[error("event {event} is at {time}, before event {previous} at {previous_time}: sort the events by time", previous = event - 1)]
    OutOfOrder {
        /// Number of the event that comes too late in the file, counted from 0.
        event: u64,
        /// Its time.
        time: f64,
        /// The time of the event before it.
        previous_time: f64,
    },

    /// A setting has a value it cannot have.
    #[error("{setting} is {value}: {remedy}")]
    Setting {
        /// The setting's name as the user writes it.
        setting: &'static str,
        /// The value given.
        value: String,
        /// What to do instead.
        remedy: String,
    },

    /// A part of the stream that a question needs has no events.
    #[error("the {part} part of the stream has no events ({reason}): {remedy}")]
    EmptyPart {
        /// Which part, for example `test`.
        part: &'static str,
        /// Why it is empty.
        reason: String,
        /// What to do instead.
        remedy: String,
    },

    /// A model gave a score that cannot be ranked.
    #[error(
        "the score of candidate {candidate} in row {row} is {value}: a score that is not finite cannot be ranked"
    )]
    ScoreNotFinite {
        /// The row of the query.
        row: usize,
        /// The place of the candidate in its row.
        candidate: usize,
        /// The score.
        value: f64,
    },

    /// Stored weights do not fit the model.
    #[error("{0}")]
    Weights(lstep_tensor::Error),

    /// A watcher ended the work before it was done.
    #[error("stopped before it was finished")]
    Interrupted,

    /// Lengths that have to agree do not.
    #[error("{what}: {left} and {right} have to be equal")]
    LengthMismatch {
        /// What was compared.
        what: &'static str,
        /// The first length.
        left: usize,
        /// The second length.
        right: usize,
    },
}

impl From<lstep_tensor::Error> for Error {
    fn from(error: lstep_tensor::Error) -> Self {
        Error::Weights(error)
    }
}

impl Error {
    /// Wraps what the operating system said about a file.
    pub fn io(path: impl AsRef<Path>, reason: std::io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), reason }
    }

    /// A setting with a value it cannot have.
    pub fn setting(
        setting: &'static str,
        value: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Setting { setting, value: value.to_string(), remedy: remedy.into() }
    }
}

impl From<InputFault> for Error {
    fn from(fault: InputFault) -> Self {
        Error::Input(Box::new(fault))
    }
}

/// What is wrong with a file, where, and what to do about it.
///
/// Printed as `events.csv, line 3, column "ts": "yesterday" is not a time; write numbers or ISO
/// 8601`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// The file as the user named it; `standard input` for a pipe.
    pub file: String,
    /// The line, counted from 1 with the header, where the file has lines.
    pub line: Option<u64>,
    /// The column's name, or its number if it has none.
    pub column: Option<String>,
    /// The value found there, shortened if long.
    pub value: Option<String>,
    /// What is wrong, to be read after the value: `is not a time`.
    pub problem: String,
    /// What the user can do.
    pub remedy: String,
}

impl InputFault {
    /// A fault of the whole file.
    pub fn new(
        file: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        InputFault {
            file: file.into(),
            line: None,
            column: None,
            value: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// Says on which line.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// Says in which column.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// Shows the value, shortened to 60 characters.
    #[must_use]
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        let text = String::from_utf8_lossy(value.as_ref());
        let mut shown: String = text.chars().take(60).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.value = Some(shown);
        self
    }
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column:?}")?;
        }
        f.write_str(": ")?;
        if let Some(value) = &self.value {
            write!(f, "{value:?} ")?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_fault_names_place_value_and_remedy() {
        let fault = InputFault::new("events.csv", "is not a time", "write numbers or ISO 8601")
            .line(3)
            .column("ts")
            .value("yesterday");
        assert_eq!(
            fault.to_string(),
            "events.csv, line 3, column \"ts\": \"yesterday\" is not a time; write numbers or ISO 8601"
        );
    }

    #[test]
    fn a_long_value_is_shortened() {
        let fault = InputFault::new("a", "b", "c").value("x".repeat(1000));
        assert_eq!(fault.value.expect("a value was given").chars().count(), 61);
    }
}
