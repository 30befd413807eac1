//! Some rows of one Parquet column, as ids, times or numbers.

use crate::error::Remedy;
use crate::event::{Instant, Side, TimeFormat, Unit};
use crate::read::nodes::{EMPTY_ID, Nodes};
use crate::read::number::Refusal;
use crate::read::times::Times;
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::schema::types::ColumnDescriptor;
use std::collections::BTreeMap;

/// Some rows of one column.
pub(super) struct Cells {
    values: Values,
    /// What is wrong with a cell that cannot be used, by its row. Something stands in its place.
    faults: BTreeMap<usize, &'static str>,
}

/// What becomes of a cell that is empty or no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The file is refused.
    Refused,
    /// The row is marked.
    Marked,
}

/// Values of one column.
enum Values {
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<String>),
    /// Timestamps and dates, counted from 1970.
    Instant(Vec<Instant>),
}

/// Why a column cannot be used, and in which of the rows read, if it is one of them.
pub(super) struct ColumnFault {
    pub row: Option<usize>,
    pub problem: &'static str,
    pub remedy: &'static str,
}

const EMPTY: &str = "is empty, but every event needs a value there";
const NOT_TEXT: &str = "is not valid UTF-8";

impl Cells {
    /// Reads up to so many rows. The outer error is Parquet's own, the inner one says what we
    /// cannot use.
    pub(super) fn read(
        reader: &mut ColumnReader,
        description: &ColumnDescriptor,
        rows: usize,
        missing: Missing,
    ) -> Result<Result<Cells, ColumnFault>, ParquetError> {
        if description.max_rep_level() > 0 {
            let problem = "holds lists, which are no columns of numbers or text";
            return Ok(Err(ColumnFault {
                row: None,
                problem,
                remedy: "write one column for each number",
            }));
        }
        let unsigned = matches!(description.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed)
            || matches!(
                description.converted_type(),
                ConvertedType::UINT_32 | ConvertedType::UINT_64
            );
        let unit = timestamp_unit(description);
        let mut faults = BTreeMap::new();
        let take = &mut Take { description, rows, missing, faults: &mut faults };
        let values = match reader {
            ColumnReader::BoolColumnReader(reader) => take
                .values(reader)?
                .map(|cells| Values::Integer(cells.into_iter().map(i64::from).collect())),
            ColumnReader::Int32ColumnReader(reader) => take.values(reader)?.map(|cells| {
                let cells = cells.into_iter();
                match is_date(description) {
                    true => Values::Instant(
                        cells
                            .map(|days| Instant {
                                seconds: i64::from(days) * 86_400,
                                nanoseconds: 0,
                            })
                            .collect(),
                    ),
                    false if unsigned => {
                        Values::Integer(cells.map(|value| i64::from(value as u32)).collect())
                    }
                    false => Values::Integer(cells.map(i64::from).collect()),
                }
            }),
            ColumnReader::Int64ColumnReader(reader) => {
                take.values(reader)?.map(|cells| match unit {
                    Some(unit) => {
                        let per_unit = i128::from(1_000_000_000 / unit.per_second());
                        let moment =
                            |value: i64| Instant::from_nanoseconds(i128::from(value) * per_unit);
                        Values::Instant(cells.into_iter().map(moment).collect())
                    }
                    // Beyond i64 only the text is exact.
                    None if unsigned && cells.iter().any(|&value| value < 0) => Values::Text(
                        cells.into_iter().map(|value| (value as u64).to_string()).collect(),
                    ),
                    None => Values::Integer(cells),
                })
            }
            ColumnReader::FloatColumnReader(reader) => take
                .values(reader)?
                .map(|cells| Values::Float(cells.into_iter().map(f64::from).collect())),
            ColumnReader::DoubleColumnReader(reader) => take.values(reader)?.map(Values::Float),
            ColumnReader::ByteArrayColumnReader(reader) => {
                take.values(reader)?.and_then(|cells: Vec<ByteArray>| take.texts(&cells))
            }
            ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
                Err(ColumnFault {
                    row: None,
                    problem: "has a type that is neither integer, float, text, date nor timestamp",
                    remedy: "write it as one of these",
                })
            }
        };
        Ok(values.map(|values| Cells { values, faults }))
    }

    /// Refuses a cell that cannot be used.
    pub(super) fn check(&self, row: usize) -> Result<(), Refusal> {
        match self.faults.get(&row) {
            Some(problem) => Err(Refusal::new(problem, "fill it or drop the row")),
            None => Ok(()),
        }
    }

    /// Refuses a cell that holds no id.
    pub(super) fn check_id(&self, row: usize) -> Result<(), Refusal> {
        match &self.values {
            Values::Integer(_) => Ok(()),
            Values::Text(cells) if cells[row].is_empty() => Err(EMPTY_ID),
            Values::Text(_) => Ok(()),
            Values::Float(_) | Values::Instant(_) => {
                Err(Refusal::with("is not an id", Remedy::WriteIds))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.values {
            Values::Integer(cells) => cells.len(),
            Values::Float(cells) => cells.len(),
            Values::Text(cells) => cells.len(),
            Values::Instant(cells) => cells.len(),
        }
    }

    /// The cell as text.
    pub(super) fn show(&self, row: usize) -> String {
        if self.faults.contains_key(&row) {
            return String::new();
        }
        match &self.values {
            Values::Integer(cells) => cells[row].to_string(),
            Values::Float(cells) => format!("{:?}", cells[row]),
            Values::Text(cells) => cells[row].clone(),
            Values::Instant(cells) => cells[row].show(cells[row].unit()),
        }
    }

    /// Appends the id that the cell holds.
    pub(super) fn push_id(&self, row: usize, side: Side, nodes: &mut Nodes) -> Result<(), Refusal> {
        match &self.values {
            Values::Integer(cells) => nodes.push_integer(cells[row], side),
            Values::Text(cells) => nodes.push(&cells[row], side),
            Values::Float(_) | Values::Instant(_) => self.check_id(row),
        }
    }

    /// Appends the time that the cell holds.
    pub(super) fn push_time(
        &self,
        row: usize,
        format: Option<&TimeFormat>,
        times: &mut Times,
    ) -> Result<(), Refusal> {
        if let (Some(format), Values::Integer(_) | Values::Text(_)) = (format, &self.values) {
            return times.push_as(&self.show(row), format);
        }
        match &self.values {
            Values::Integer(cells) => times.push_integer(cells[row]),
            Values::Float(cells) => times.push_float(cells[row]),
            Values::Text(cells) => times.push(&cells[row]),
            Values::Instant(cells) => times.push_instant(cells[row]),
        }
    }

    /// The number that the cell holds.
    pub(super) fn number(&self, row: usize) -> Result<f64, Refusal> {
        match &self.values {
            Values::Integer(cells) => Ok(cells[row] as f64),
            Values::Float(cells) => Ok(cells[row]),
            Values::Text(_) | Values::Instant(_) => Err(Refusal::with(
                "is not a number, so it cannot be a feature",
                Remedy::OtherFeatures(None),
            )),
        }
    }
}

/// How a column's values are taken.
struct Take<'a> {
    description: &'a ColumnDescriptor,
    rows: usize,
    missing: Missing,
    faults: &'a mut BTreeMap<usize, &'static str>,
}

impl Take<'_> {
    fn values<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
    ) -> Result<Result<Vec<T::T>, ColumnFault>, ParquetError> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (records, found, _) =
            reader.read_records(self.rows, Some(&mut levels), None, &mut values)?;
        if found == records {
            return Ok(Ok(values));
        }
        let full = self.description.max_def_level();
        if self.missing == Missing::Refused {
            let row = levels.iter().position(|&level| level < full);
            let remedy = "fill it or drop the row";
            return Ok(Err(ColumnFault { row, problem: EMPTY, remedy }));
        }
        let mut there = values.into_iter();
        let all = levels.iter().enumerate().map(|(row, &level)| {
            if level < full {
                self.faults.insert(row, EMPTY);
                return T::T::default();
            }
            there.next().unwrap_or_default()
        });
        Ok(Ok(all.collect()))
    }

    fn texts(&mut self, cells: &[ByteArray]) -> Result<Values, ColumnFault> {
        let text = |(row, cell): (usize, &ByteArray)| {
            // Nothing was read where a cell is empty.
            if self.faults.contains_key(&row) {
                return Ok(String::new());
            }
            match (std::str::from_utf8(cell.data()), self.missing) {
                (Ok(text), _) => Ok(text.to_string()),
                (Err(_), Missing::Marked) => {
                    self.faults.insert(row, NOT_TEXT);
                    Ok(String::new())
                }
                (Err(_), Missing::Refused) => Err(ColumnFault {
                    row: Some(row),
                    problem: NOT_TEXT,
                    remedy: "write ids as UTF-8 text",
                }),
            }
        };
        Ok(Values::Text(cells.iter().enumerate().map(text).collect::<Result<_, _>>()?))
    }
}

fn is_date(description: &ColumnDescriptor) -> bool {
    description.logical_type_ref() == Some(&LogicalType::Date)
        || description.converted_type() == ConvertedType::DATE
}

fn timestamp_unit(description: &ColumnDescriptor) -> Option<Unit> {
    if description.physical_type() != Type::INT64 {
        return None;
    }
    match (description.logical_type_ref(), description.converted_type()) {
        (Some(LogicalType::Timestamp(kind)), _) => Some(match kind.unit {
            TimeUnit::MILLIS => Unit::Millisecond,
            TimeUnit::MICROS => Unit::Microsecond,
            TimeUnit::NANOS => Unit::Nanosecond,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(Unit::Millisecond),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(Unit::Microsecond),
        _ => None,
    }
}
