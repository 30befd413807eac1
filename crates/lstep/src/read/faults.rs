//! Rows that were left out of a stream, counted by what was wrong with them.

use super::Result;
use crate::error::InputFault;
use serde::Serialize;

/// A fault of a column and how often it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// The file, where a stream was read from several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The column, or `row` for the whole row.
    pub column: String,
    /// What is wrong.
    pub fault: String,
    /// In how many rows.
    pub count: u64,
    /// The first of them, counted from 1.
    pub first_line: u64,
    /// What stands there.
    pub example: String,
}

/// What was left out of a stream because the caller wished so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Rows with faults, in the order of their first lines. A row counts once, under its first
    /// fault.
    pub faults: Vec<FaultCount>,
    /// Events that repeat an earlier one: the same source, destination, time and features.
    pub duplicates: u64,
}

impl LeftOut {
    /// Rows with a fault.
    pub fn bad_rows(&self) -> u64 {
        self.faults.iter().map(|fault| fault.count).sum()
    }

    /// Whether every row became an event.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.duplicates == 0
    }
}

/// Faults while they are counted.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<FaultCount>);

/// How much of a value is shown.
const SHOWN: usize = 40;

impl Faults {
    /// Counts a fault on a line.
    pub(super) fn note(&mut self, column: &str, fault: &str, line: u64, example: &str) {
        let known = |row: &&mut FaultCount| row.column == column && row.fault == fault;
        match self.0.iter_mut().find(known) {
            Some(row) => row.count += 1,
            None => self.0.push(FaultCount {
                file: None,
                column: column.to_string(),
                fault: fault.to_string(),
                count: 1,
                first_line: line,
                example: example.chars().take(SHOWN).collect(),
            }),
        }
    }

    /// Counts what would have ended the reading.
    pub(super) fn note_fault(&mut self, fault: &InputFault) {
        let column = fault.column.as_deref().unwrap_or("row");
        let example = fault.value.as_deref().unwrap_or_default();
        self.note(column, &fault.problem, fault.line.unwrap_or_default(), example);
    }

    /// Takes over the faults of the next part, whose lines count from `before`, and of a file, if
    /// there are several.
    pub(super) fn absorb(&mut self, later: Faults, before: u64, file: Option<&str>) {
        for fault in later.0 {
            let same = |row: &&mut FaultCount| {
                row.column == fault.column
                    && row.fault == fault.fault
                    && row.file.as_deref() == file
            };
            match self.0.iter_mut().find(same) {
                Some(row) => row.count += fault.count,
                None => self.0.push(FaultCount {
                    file: file.map(String::from),
                    first_line: fault.first_line + before,
                    ..fault
                }),
            }
        }
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|fault| fault.count).sum()
    }

    /// The counts, in the order of their first lines; files stay in their order.
    pub(super) fn finish(mut self) -> Vec<FaultCount> {
        let mut files: Vec<Option<String>> = Vec::new();
        for fault in &self.0 {
            if !files.contains(&fault.file) {
                files.push(fault.file.clone());
            }
        }
        let place = |fault: &FaultCount| files.iter().position(|file| *file == fault.file);
        self.0.sort_by_key(|fault| (place(fault), fault.first_line));
        self.0
    }
}

/// Does something for a row. A fault ends the reading, or is counted where rows may be left out;
/// then nothing of the row may be kept, and the answer is false.
pub(super) fn unless_skipped(
    done: Result<(), InputFault>,
    faults: Option<&mut Faults>,
) -> Result<bool, InputFault> {
    match (done, faults) {
        (Ok(()), _) => Ok(true),
        (Err(fault), Some(faults)) => {
            faults.note_fault(&fault);
            Ok(false)
        }
        (Err(fault), None) => Err(fault),
    }
}
