//! Events into a Parquet file: required columns `source`, `destination`, `time`, `f0`, `f1`, ...;
//! and tables of results, whose columns are the caller's.

use super::SEPARATED;
use crate::event::{Clock, Name, NodeId, Unit};
use crate::read::{ColumnData, ColumnType, Dataset};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// Events in a row group.
const GROUP: usize = 1 << 20;

/// Writes all events.
pub(in crate::read) fn write<W: Write + Send>(out: W, data: &Dataset) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            SEPARATED.into(),
            data.bipartite().to_string(),
        )]))
        .build();
    let schema = Arc::new(parse_message_type(&schema(data)).map_err(io_error)?);
    let mut file =
        SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io_error)?;
    let count = data.events.len();
    for start in (0..count).step_by(GROUP) {
        let events = start..count.min(start + GROUP);
        let mut group = file.next_row_group().map_err(io_error)?;
        for nodes in
            [&data.events.sources()[events.clone()], &data.events.destinations()[events.clone()]]
        {
            write_nodes(&mut group, data, nodes).map_err(io_error)?;
        }
        let times = data.events.times()[events.clone()].iter().map(|time| time.value());
        match data.clock {
            Clock::Float => write_column::<DoubleType>(&mut group, &times.collect::<Vec<_>>())
                .map_err(io_error)?,
            Clock::Integer { origin } => {
                let times: Vec<i64> = times.map(|time| time as i64 + origin).collect();
                write_column::<Int64Type>(&mut group, &times).map_err(io_error)?;
            }
            Clock::Iso8601 { unit, origin } => {
                // Parquet has no timestamps in seconds.
                let factor = if unit == Unit::Second { 1000 } else { 1 };
                let times: Vec<i64> = times.map(|time| (time as i64 + origin) * factor).collect();
                write_column::<Int64Type>(&mut group, &times).map_err(io_error)?;
            }
        }
        let features = data.events.features();
        for feature in 0..features.width() {
            let column: Vec<f32> =
                events.clone().map(|event| features.row(event)[feature]).collect();
            write_column::<FloatType>(&mut group, &column).map_err(io_error)?;
        }
        group.close().map_err(io_error)?;
    }
    file.into_inner().map_err(io_error)?.flush()
}

/// A table of results, a row group at a time.
pub(in crate::read) struct RowGroups<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> RowGroups<W> {
    pub(in crate::read) fn new(out: W, columns: &[(&str, ColumnType)]) -> io::Result<RowGroups<W>> {
        let column = |(name, of): &(&str, ColumnType)| match of {
            ColumnType::Integer => format!("required int64 {name};"),
            ColumnType::Double => format!("required double {name};"),
            ColumnType::Boolean => format!("required boolean {name};"),
            ColumnType::Text => format!("required binary {name} (STRING);"),
        };
        let columns: String = columns.iter().map(column).collect();
        let schema = parse_message_type(&format!("message table {{ {columns} }}"));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let schema = Arc::new(schema.map_err(io_error)?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties));
        Ok(RowGroups { file: file.map_err(io_error)? })
    }

    /// Writes a group of rows.
    pub(in crate::read) fn write(&mut self, columns: &[ColumnData]) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(io_error)?;
        for column in columns {
            match column {
                ColumnData::Integers(cells) => write_column::<Int64Type>(&mut group, cells),
                ColumnData::Doubles(cells) => write_column::<DoubleType>(&mut group, cells),
                ColumnData::Booleans(cells) => write_column::<BoolType>(&mut group, cells),
                ColumnData::Texts(cells) => {
                    let cells: Vec<ByteArray> =
                        cells.iter().map(|cell| ByteArray::from(cell.as_str())).collect();
                    write_column::<ByteArrayType>(&mut group, &cells)
                }
            }
            .map_err(io_error)?;
        }
        group.close().map(drop).map_err(io_error)
    }

    /// Writes the end of the file.
    pub(in crate::read) fn finish(self) -> io::Result<()> {
        self.file.into_inner().map_err(io_error)?.flush()
    }
}

fn schema(data: &Dataset) -> String {
    let id = |name| match data.names.are_integers() {
        true => format!("required int64 {name};"),
        false => format!("required binary {name} (STRING);"),
    };
    let time = match data.clock {
        Clock::Float => "required double time;",
        Clock::Integer { .. } => "required int64 time;",
        Clock::Iso8601 { unit: Unit::Second | Unit::Millisecond, .. } => {
            "required int64 time (TIMESTAMP(MILLIS,true));"
        }
        Clock::Iso8601 { unit: Unit::Microsecond, .. } => {
            "required int64 time (TIMESTAMP(MICROS,true));"
        }
        Clock::Iso8601 { unit: Unit::Nanosecond, .. } => {
            "required int64 time (TIMESTAMP(NANOS,true));"
        }
    };
    let features: String = (0..data.events.features().width())
        .map(|feature| format!("required float f{feature};"))
        .collect();
    format!("message events {{ {} {} {time} {features} }}", id("source"), id("destination"))
}

fn write_nodes<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    data: &Dataset,
    nodes: &[NodeId],
) -> Result<(), ParquetError> {
    if data.names.are_integers() {
        let ids = nodes.iter().filter_map(|&node| match data.names.name(node) {
            Name::Integer(number) => Some(number),
            Name::Text(_) => None,
        });
        write_column::<Int64Type>(group, &ids.collect::<Vec<_>>())
    } else {
        let ids = nodes
            .iter()
            .map(|&node| ByteArray::from(data.names.name(node).to_string().into_bytes()));
        write_column::<ByteArrayType>(group, &ids.collect::<Vec<_>>())
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("one column too many".into()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
