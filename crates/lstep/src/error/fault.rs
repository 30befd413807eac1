//! What is wrong with a file, and where.

use super::{Front, Plain, Remedy, printable, printable_line};
use std::fmt;

/// What is wrong with a file, where, and what to do about it.
///
/// Printed as `events.csv, line 3, column "ts": "yesterday" is not a time; write numbers or ISO
/// 8601`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputFault {
    /// What sort of fault it is.
    pub kind: FaultKind,
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
    /// What the caller can do.
    pub remedy: Remedy,
}

/// What sort of fault a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The content is wrong: a value, a row, or the whole.
    Content,
    /// The header does not say which column is which.
    Columns,
    /// A part that has to be there is not.
    Missing,
}

impl InputFault {
    /// A fault of the whole file.
    pub fn new(
        file: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> Self {
        InputFault {
            kind: FaultKind::Content,
            file: file.into(),
            line: None,
            column: None,
            value: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// Says what sort of fault it is; [`FaultKind::Content`] unless told.
    #[must_use]
    pub fn kind(mut self, kind: FaultKind) -> Self {
        self.kind = kind;
        self
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

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, front: &dyn Front) -> fmt::Result {
        f.write_str(&printable_line(&self.file))?;
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
        write!(f, "{}; {}", self.problem, self.remedy.render(front))
    }
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Raw<'a>(&'a InputFault);
        impl fmt::Display for Raw<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, &Plain)
            }
        }
        f.write_str(&printable(&Raw(self).to_string()))
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
