//! Some rows of one Parquet column, as ids, times or numbers.

use crate::error::Remedy;
use crate::event::{Instant, Side, Unit};
use crate::read::nodes::{EMPTY_ID, Nodes};
use crate::read::number::Refusal;
use crate::read::times::Times;
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::schema::types::ColumnDescriptor;

/// Values of one column, none of them missing.
pub(super) enum Cells {
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

impl Cells {
    /// Reads up to so many rows. The outer error is Parquet's own, the inner one says what we
    /// cannot use.
    pub(super) fn read(
        reader: &mut ColumnReader,
        description: &ColumnDescriptor,
        rows: usize,
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
        Ok(match reader {
            ColumnReader::BoolColumnReader(reader) => values(reader, description, rows)?
                .map(|cells| Cells::Integer(cells.into_iter().map(i64::from).collect())),
            ColumnReader::Int32ColumnReader(reader) => {
                values(reader, description, rows)?.map(|cells| {
                    let cells = cells.into_iter();
                    match is_date(description) {
                        true => Cells::Instant(
                            cells
                                .map(|days| Instant {
                                    seconds: i64::from(days) * 86_400,
                                    nanoseconds: 0,
                                })
                                .collect(),
                        ),
                        false if unsigned => {
                            Cells::Integer(cells.map(|value| i64::from(value as u32)).collect())
                        }
                        false => Cells::Integer(cells.map(i64::from).collect()),
                    }
                })
            }
            ColumnReader::Int64ColumnReader(reader) => {
                values(reader, description, rows)?.map(|cells| match unit {
                    Some(unit) => {
                        let per_unit = i128::from(1_000_000_000 / unit.per_second());
                        let moment =
                            |value: i64| Instant::from_nanoseconds(i128::from(value) * per_unit);
                        Cells::Instant(cells.into_iter().map(moment).collect())
                    }
                    // Beyond i64 only the text is exact.
                    None if unsigned && cells.iter().any(|&value| value < 0) => Cells::Text(
                        cells.into_iter().map(|value| (value as u64).to_string()).collect(),
                    ),
                    None => Cells::Integer(cells),
                })
            }
            ColumnReader::FloatColumnReader(reader) => values(reader, description, rows)?
                .map(|cells| Cells::Float(cells.into_iter().map(f64::from).collect())),
            ColumnReader::DoubleColumnReader(reader) => {
                values(reader, description, rows)?.map(Cells::Float)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                values(reader, description, rows)?.and_then(|cells: Vec<ByteArray>| texts(&cells))
            }
            ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
                Err(ColumnFault {
                    row: None,
                    problem: "has a type that is neither integer, float, text, date nor timestamp",
                    remedy: "write it as one of these",
                })
            }
        })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Integer(cells) => cells.len(),
            Cells::Float(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
            Cells::Instant(cells) => cells.len(),
        }
    }

    /// The cell as text.
    pub(super) fn show(&self, row: usize) -> String {
        match self {
            Cells::Integer(cells) => cells[row].to_string(),
            Cells::Float(cells) => format!("{:?}", cells[row]),
            Cells::Text(cells) => cells[row].clone(),
            Cells::Instant(cells) => cells[row].show(cells[row].unit()),
        }
    }

    /// Appends the id that the cell holds.
    pub(super) fn push_id(&self, row: usize, side: Side, nodes: &mut Nodes) -> Result<(), Refusal> {
        match self {
            Cells::Integer(cells) => nodes.push_integer(cells[row], side),
            Cells::Text(cells) if cells[row].is_empty() => Err(EMPTY_ID),
            Cells::Text(cells) => nodes.push(&cells[row], side),
            Cells::Float(_) | Cells::Instant(_) => {
                Err(Refusal::with("is not an id", Remedy::WriteIds))
            }
        }
    }

    /// Appends the time that the cell holds.
    pub(super) fn push_time(&self, row: usize, times: &mut Times) -> Result<(), Refusal> {
        match self {
            Cells::Integer(cells) => times.push_integer(cells[row]),
            Cells::Float(cells) => times.push_float(cells[row]),
            Cells::Text(cells) => times.push(&cells[row]),
            Cells::Instant(cells) => times.push_instant(cells[row]),
        }
    }

    /// The number that the cell holds.
    pub(super) fn number(&self, row: usize) -> Result<f64, Refusal> {
        match self {
            Cells::Integer(cells) => Ok(cells[row] as f64),
            Cells::Float(cells) => Ok(cells[row]),
            Cells::Text(_) | Cells::Instant(_) => Err(Refusal::with(
                "is not a number, so it cannot be a feature",
                Remedy::OtherFeatures(None),
            )),
        }
    }
}

fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    description: &ColumnDescriptor,
    rows: usize,
) -> Result<Result<Vec<T::T>, ColumnFault>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (records, found, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if found < records {
        let row = levels.iter().position(|&level| level < description.max_def_level());
        let problem = "is empty, but every event needs a value there";
        return Ok(Err(ColumnFault { row, problem, remedy: "fill it or drop the row" }));
    }
    Ok(Ok(values))
}

fn texts(cells: &[ByteArray]) -> Result<Cells, ColumnFault> {
    let text = |(row, cell): (usize, &ByteArray)| {
        let text = std::str::from_utf8(cell.data()).map(String::from);
        text.map_err(|_| ColumnFault {
            row: Some(row),
            problem: "is not valid UTF-8",
            remedy: "write ids as UTF-8 text",
        })
    };
    Ok(Cells::Text(cells.iter().enumerate().map(text).collect::<Result<_, _>>()?))
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
