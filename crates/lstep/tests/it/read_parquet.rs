//! Parquet files as other programs write them: all types of columns, and what is refused.

use lstep::read::{Dataset, ReadOptions, read_from};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, Int32Type,
    Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], present: Option<&[i16]>) {
    let mut column = group.next_column().expect("memory").expect("one more column");
    column.typed::<T>().write_batch(values, present, None).expect("memory");
    column.close().expect("memory");
}

fn file(schema: &str, groups: usize, write: impl Fn(usize, &mut Group<'_>)) -> Vec<u8> {
    let schema =
        Arc::new(parse_message_type(&format!("message events {{ {schema} }}")).expect("a schema"));
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).expect("memory");
    for number in 0..groups {
        let mut group = file.next_row_group().expect("memory");
        write(number, &mut group);
        group.close().expect("memory");
    }
    file.into_inner().expect("memory")
}

fn data(bytes: &[u8]) -> Dataset {
    read_from("e.parquet", bytes, &ReadOptions::default()).expect("a good file")
}

fn fault(bytes: &[u8]) -> String {
    read_from("e.parquet", bytes, &ReadOptions::default())
        .expect_err("this file is wrong")
        .to_string()
}

fn shown(data: &Dataset) -> Vec<String> {
    let show = |event: lstep::event::Event| {
        let (source, destination) =
            (data.names.name(event.source), data.names.name(event.destination));
        format!("{source} {destination} {}", data.clock.show(event.time))
    };
    data.events.iter().map(show).collect()
}

#[test]
fn integers_text_dates_and_features_are_read_from_all_row_groups() {
    let bytes = file(
        "optional int32 src; required binary dst (STRING); required int32 day (DATE); required boolean f0; required double w;",
        2,
        |number, group| {
            column::<Int32Type>(group, &[number as i32, 7], Some(&[1, 1]));
            column::<ByteArrayType>(group, &[ByteArray::from("a"), ByteArray::from("b")], None);
            column::<Int32Type>(group, &[number as i32 * 2, number as i32 * 2 + 1], None);
            column::<BoolType>(group, &[true, false], None);
            column::<DoubleType>(group, &[0.5, -1.5], None);
        },
    );
    let data = data(&bytes);
    assert_eq!(
        shown(&data),
        [
            "0 a 1970-01-01T00:00:00Z",
            "7 b 1970-01-02T00:00:00Z",
            "1 a 1970-01-03T00:00:00Z",
            "7 b 1970-01-04T00:00:00Z"
        ]
    );
    assert_eq!(data.events.features().values(), [1.0, 0.5, 0.0, -1.5, 1.0, 0.5, 0.0, -1.5]);
}

#[test]
fn ids_beyond_63_bits_stay_exact() {
    let schema = "required int64 u (INTEGER(64,false)); required int64 i; required int64 t (TIMESTAMP(MICROS,false));";
    let bytes = file(schema, 1, |_, group| {
        column::<Int64Type>(group, &[-1], None);
        column::<Int64Type>(group, &[i64::MIN], None);
        column::<Int64Type>(group, &[1], None);
    });
    assert_eq!(
        shown(&data(&bytes)),
        ["18446744073709551615 -9223372036854775808 1970-01-01T00:00:00.000001Z"]
    );
}

#[test]
fn rows_with_empty_cells_are_left_out_if_the_caller_wishes() {
    let schema = "optional binary u (STRING); required binary i; optional int64 t; \
                  optional double w;";
    let bytes = file(schema, 2, |number, group| {
        let text = |text: &[u8]| ByteArray::from(text.to_vec());
        let (a, b) = (text(b"a"), text(b"b"));
        column::<ByteArrayType>(group, &[a.clone(), b.clone(), a], Some(&[1, 0, 1, 1]));
        column::<ByteArrayType>(group, &[b.clone(), b.clone(), b, text(b"\xff")], None);
        let time = 10 * number as i64;
        column::<Int64Type>(group, &[time, time + 1, time + 2, time + 3], Some(&[1, 1, 1, 1]));
        column::<DoubleType>(group, &[1.0, 2.0, 4.0], Some(&[1, 1, 0, 1]));
    });
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let data = read_from("e.parquet", &bytes[..], &options).expect("two good rows");
    assert_eq!(shown(&data), ["a b 0", "a b 10"]);
    assert_eq!((data.events.features().row(0), data.names.len()), (&[1.0][..], 2));
    let faults: Vec<(&str, u64, u64)> = data
        .left_out
        .faults
        .iter()
        .map(|fault| (fault.column.as_str(), fault.count, fault.first_line))
        .collect();
    assert_eq!(faults, [("u", 2, 2), ("w", 2, 3), ("i", 2, 4)]);
}

#[test]
fn an_empty_cell_is_refused_with_its_row() {
    let bytes = file("required int64 u; required int64 i; optional int64 t;", 2, |_, group| {
        column::<Int64Type>(group, &[1, 2], None);
        column::<Int64Type>(group, &[3, 4], None);
        column::<Int64Type>(group, &[5], Some(&[1, 0]));
    });
    assert_eq!(
        fault(&bytes),
        "e.parquet, line 2, column \"t\": is empty, but every event needs a value there; fill it or drop the row"
    );
}

#[test]
fn events_out_of_order_are_refused_with_their_row() {
    let bytes =
        file("required int64 u; required int64 i; required double t;", 2, |number, group| {
            column::<Int64Type>(group, &[1, 2], None);
            column::<Int64Type>(group, &[3, 4], None);
            column::<DoubleType>(group, &[5.0 - number as f64, 6.0], None);
        });
    assert_eq!(
        fault(&bytes),
        "e.parquet, line 3, column \"t\": \"4.0\" is before the event above it, at 6.0; \
         sort the file by time or pass `sort`"
    );
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let with_time = |time: f64, id: &'static str| {
        file(
            "required binary u (STRING); required int64 i; required double t;",
            1,
            move |_, group| {
                column::<ByteArrayType>(group, &[ByteArray::from(id)], None);
                column::<Int64Type>(group, &[3], None);
                column::<DoubleType>(group, &[time], None);
            },
        )
    };
    assert!(
        fault(&with_time(f64::NAN, "a"))
            .contains("line 1, column \"t\": \"NaN\" is not a finite time")
    );
    assert!(fault(&with_time(1.0, "")).contains("line 1, column \"u\": \"\" is empty"));
    let float_id = file("required double u; required int64 i; required int64 t;", 1, |_, group| {
        column::<DoubleType>(group, &[1.5], None);
        column::<Int64Type>(group, &[3], None);
        column::<Int64Type>(group, &[4], None);
    });
    assert!(fault(&float_id).contains("line 1, column \"u\": \"1.5\" is not an id"));
    let bytes = file("required binary u; required int64 i; required int64 t;", 1, |_, group| {
        column::<ByteArrayType>(group, &[ByteArray::from(vec![0xff])], None);
        column::<Int64Type>(group, &[3], None);
        column::<Int64Type>(group, &[4], None);
    });
    assert!(fault(&bytes).contains("line 1, column \"u\": is not valid UTF-8"));
    let fixed = file(
        "required fixed_len_byte_array(2) u; required int64 i; required int64 t;",
        1,
        |_, group| {
            column::<FixedLenByteArrayType>(group, &[ByteArray::from("ab").into()], None);
            column::<Int64Type>(group, &[3], None);
            column::<Int64Type>(group, &[4], None);
        },
    );
    assert!(fault(&fixed).contains(
        "column \"u\": has a type that is neither integer, float, text, date nor timestamp"
    ));
}

#[test]
fn a_file_without_events_or_columns_is_refused() {
    let bytes = file("required int64 u; required int64 i; required int64 t;", 0, |_, _| {});
    assert_eq!(fault(&bytes), "e.parquet: has no events; give a file with at least one event");
    let bytes = file("required int64 u; required int64 i;", 0, |_, _| {});
    assert!(fault(&bytes).contains("has no time column among \"u\", \"i\"; name it with `time`"));
}
