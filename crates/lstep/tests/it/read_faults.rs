//! One test for each way a file of events can be wrong: the message names file, line, column, value
//! and remedy.

use lstep::read::{FeatureColumns, ReadOptions, read, read_from};
use std::io::Write;
use std::path::PathBuf;

fn fault_with(text: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    read_from("e.csv", text.as_ref(), options).expect_err("this file is wrong").to_string()
}

fn fault(text: impl AsRef<[u8]>) -> String {
    fault_with(text, &ReadOptions::default())
}

fn features(columns: FeatureColumns) -> ReadOptions {
    ReadOptions { features: columns, ..ReadOptions::default() }
}

/// A folder with files, and the path of the first.
fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let first = folder.path().join(files[0].0);
    (folder, first)
}

fn file_fault(files: &[(&str, &[u8])]) -> String {
    let (folder, path) = folder(files);
    let message = read(&path, &ReadOptions::default()).expect_err("this file is wrong").to_string();
    message.replace(&format!("{}/", folder.path().display()), "")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text).expect("memory");
    packed.finish().expect("memory")
}

fn many_events() -> Vec<u8> {
    let mut text = b"u,i,ts\n".to_vec();
    for event in 0..20_000u32 {
        writeln!(text, "{},{},{event}", event.wrapping_mul(2_654_435_761) % 1000, event % 77)
            .expect("memory");
    }
    text
}

#[test]
fn an_empty_file() {
    let message = "e.csv: is empty; give a file with a header and at least one event";
    for text in ["", "\n\n", "\u{feff}", "# only a comment\n"] {
        assert_eq!(fault(text), message, "{text:?}");
    }
    assert!(file_fault(&[("e.csv.gz", b"")]).contains("is empty"));
}

#[test]
fn a_header_without_events() {
    for text in ["u,i,ts\n", "u,i,ts"] {
        assert_eq!(
            fault(text),
            "e.csv: has a header but no events; give a file with at least one event"
        );
    }
}

#[test]
fn a_missing_column() {
    assert_eq!(
        fault("u,i,colour\n1,2,3\n"),
        "e.csv, line 1: has no time column among \"u\", \"i\", \"colour\"; name it with `time`"
    );
    assert_eq!(
        fault("# note\nonly\n1\n"),
        "e.csv, line 2: has no source column among \"only\"; name it with `source`"
    );
}

#[test]
fn a_ragged_row() {
    assert_eq!(
        fault("u,i,ts\n1,2,3\n1,2\n"),
        "e.csv, line 3: has 2 fields where 3 are expected; \
         give all rows the same columns; quote fields that contain the separator"
    );
    assert!(
        fault("u,i,ts\n1,2,3\n\n1,2,3,4\n")
            .starts_with("e.csv, line 4: has 4 fields where 3 are expected")
    );
    assert!(
        fault("u,i,ts\n\"1\n1\",2,3\n1\n").starts_with("e.csv, line 4: has 1 fields"),
        "a quoted line end counts"
    );
}

#[test]
fn a_time_that_is_none() {
    assert_eq!(
        fault("u,i,ts\n1,2,3\n1,2,yesterday\n"),
        "e.csv, line 3, column \"ts\": \"yesterday\" is not a time; \
         write integers, decimals or ISO 8601, say how it is written with `time_format`, or name \
         the right column with `time`"
    );
    assert_eq!(
        fault("u,i,ts\n1,2,\n"),
        "e.csv, line 2, column \"ts\": \"\" is empty, but every event needs a time; fill it or drop the row"
    );
    assert!(fault("u,i,ts\n1,2,2021-02-30\n").contains("\"2021-02-30\" is not a time"));
}

#[test]
fn a_time_that_is_not_finite() {
    for value in ["nan", "NaN", "inf", "-inf", "1e999"] {
        assert_eq!(
            fault(format!("u,i,ts\n1,2,{value}\n")),
            format!(
                "e.csv, line 2, column \"ts\": \"{value}\" is not a finite time; drop the row or correct its time"
            )
        );
    }
}

#[test]
fn times_that_cannot_be_kept_exactly() {
    assert!(fault("u,i,ts\n1,2,99999999999999999999\n").contains("does not fit into 64 bits"));
    assert_eq!(
        fault("u,i,ts\n1,2,0.5\n1,2,9007199254740993\n"),
        "e.csv, line 3, column \"ts\": \"9007199254740993\" cannot stand in one column with decimals: \
         integers beyond 2^53 would be rounded; write all times as integers, or count them from a later origin"
    );
    assert!(
        fault("u,i,ts\n1,2,0\n1,2,9007199254740993\n").contains("times span more than 2^53 units")
    );
}

#[test]
fn dates_mixed_with_numbers() {
    assert_eq!(
        fault("u,i,ts\n1,2,2021-03-04\n1,2,1614816001\n"),
        "e.csv, line 3, column \"ts\": \"1614816001\" mixes ISO 8601 with numbers in one column; \
         write all times in the same way"
    );
}

#[test]
fn a_feature_that_is_no_finite_number() {
    assert_eq!(
        fault("u,i,ts,w\n1,2,3,4\n1,2,3,NaN\n"),
        "e.csv, line 3, column \"w\": \"NaN\" is not a finite feature; correct it or drop the row"
    );
    assert!(
        fault("u,i,ts,f0\n1,2,3,-inf\n")
            .contains("column \"f0\": \"-inf\" is not a finite feature")
    );
    assert!(
        fault("u,i,ts,w\n1,2,3,1e300\n")
            .contains("\"1e300\" is too large for a feature of 32 bits")
    );
    assert_eq!(
        fault("u,i,ts,w\n1,2,3,heavy\n"),
        "e.csv, line 2, column \"w\": \"heavy\" is not a number, so it cannot be a feature; \
         correct it, or choose other columns with `features`"
    );
    assert!(fault("u,i,ts,w\n1,2,3,\n").contains("is empty, but a feature needs a number"));
    let all = features(FeatureColumns::All);
    assert!(
        fault_with("u,i,ts,note\n1,2,3,hello\n", &all)
            .contains("column \"note\": \"hello\" is not a number")
    );
    let unknown = features(FeatureColumns::Named(vec!["speed".into()]));
    assert!(
        fault_with("u,i,ts\n1,2,3\n", &unknown)
            .contains("has no column \"speed\" among \"u\", \"i\", \"ts\"")
    );
}

#[test]
fn an_empty_id() {
    assert_eq!(
        fault("u,i,ts\n1,2,3\n,2,3\n"),
        "e.csv, line 3, column \"u\": \"\" is empty, but every event needs two nodes; fill it or drop the row"
    );
    assert!(fault("u,i,ts\n1,\"\",3\n").contains("line 2, column \"i\": \"\" is empty"));
}

#[test]
fn text_that_is_not_utf8() {
    assert_eq!(
        fault(b"u,i,ts\n1,2,3\n1,caf\xe9,4\n"),
        "e.csv, line 3, column \"2\": \"caf\u{fffd}\" is not valid UTF-8; \
         convert the file, for example with iconv -t UTF-8"
    );
    assert!(
        fault(b"u,i,\xff\n1,2,3\n")
            .contains("line 1, column \"3\": \"\u{fffd}\" is not valid UTF-8")
    );
    let mut late = many_events();
    late.extend(vec![b'\n'; 5 << 20]);
    late.extend(b"1,\xff,30000\n");
    let line = 20_001 + (5 << 20) + 1;
    assert!(
        fault(&late).starts_with(&format!("e.csv, line {line}, column \"i\": ")),
        "{}",
        fault(&late)
    );
}

#[test]
fn quotes_that_do_not_match() {
    assert_eq!(
        fault("u,i,ts\n1,2,3\n\"1,2,4\n"),
        "e.csv, line 3: opens a quote that is never closed; close it, or double quotes that are text"
    );
    assert_eq!(
        fault("u,i,ts\n\"1\"x,2,4\n"),
        "e.csv, line 2: \"x,2,4\" stands after a closing quote; double quotes that are text"
    );
    assert!(fault("\"u,i,ts\n").contains("has a header that cannot be read"));
}

#[test]
fn gzip_that_ends_early() {
    let packed = gzip(&many_events());
    for length in [packed.len() / 2, packed.len() - 1, packed.len() - 8, 12] {
        assert_eq!(
            file_fault(&[("e.csv.gz", &packed[..length])]),
            "e.csv.gz: ends in the middle of its gzip data; download or compress the file again"
        );
    }
}

#[test]
fn gzip_that_is_corrupt() {
    let mut packed = gzip(&many_events());
    let checksum = packed.len() - 6;
    packed[checksum] ^= 0xff;
    let message = file_fault(&[("e.csv.gz", &packed)]);
    assert!(message.starts_with("e.csv.gz: has corrupt gzip data ("), "{message}");
    assert!(message.ends_with("; download or compress the file again"), "{message}");
    for place in (10..packed.len()).step_by(997) {
        let mut packed = gzip(&many_events());
        packed[place] ^= 0xff;
        // Noticed by the unpacker, its checksum, or the parser: never taken for good.
        assert!(file_fault(&[("e.csv.gz", &packed)]).starts_with("e.csv.gz"));
    }
}

#[test]
fn zstandard_that_ends_early_or_is_corrupt() {
    let mut packed = zstd::encode_all(&many_events()[..], 0).expect("memory");
    assert_eq!(
        file_fault(&[("e.csv.zst", &packed[..packed.len() / 2])]),
        "e.csv.zst: ends in the middle of its Zstandard data; download or compress the file again"
    );
    packed[8..40].fill(0xff);
    let message = file_fault(&[("e.csv.zst", &packed)]);
    assert!(message.starts_with("e.csv.zst: has corrupt Zstandard data ("), "{message}");
}

#[test]
fn a_name_that_promises_compression_in_vain() {
    assert_eq!(
        file_fault(&[("e.csv.gz", b"u,i,ts\n1,2,3\n")]),
        "e.csv.gz: is named .gz but does not begin as gzip data; compress it again or rename it"
    );
}

#[test]
fn a_file_that_is_not_there() {
    let error = read("no/such/events.csv", &ReadOptions::default()).expect_err("not there");
    assert!(matches!(error, lstep::Error::Io { .. }), "{error:?}");
    assert!(error.to_string().starts_with("no/such/events.csv: "), "{error}");
}

#[test]
fn events_out_of_order() {
    assert_eq!(
        fault("u,i,ts\n1,2,18\n\n1,2,17\n"),
        "e.csv, line 4, column \"ts\": \"17\" is before the event above it, at 18; \
         sort the file by time or pass `sort`"
    );
    assert!(
        fault("u,i,ts\n1,2,1.5\n1,2,1\n").contains("\"1.0\" is before the event above it, at 1.5")
    );
    assert!(
        fault("u,i,ts\n1,2,2021-03-05\n1,2,2021-03-04\n")
            .contains("\"2021-03-04T00:00:00Z\" is before")
    );
}

#[test]
fn one_column_for_two_things() {
    let options = ReadOptions { source: Some("i".into()), ..ReadOptions::default() };
    assert!(fault_with("u,i,ts\n1,2,3\n", &options).contains("two of them are the same column"));
}

/// A `.npy` file of 32-bit floats.
fn npy(rows: usize, width: usize, values: &[f32]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

const DGB: &[u8] = b",u,i,ts,label,idx\n0,1,2,0.0,0.0,1\n1,2,3,1.0,0.0,2\n";

#[test]
fn feature_rows_that_do_not_match_events() {
    assert_eq!(
        file_fault(&[("ml_x.csv", DGB), ("ml_x.npy", &npy(2, 1, &[0.0, 1.0]))]),
        "ml_x.npy: has 2 rows, but 2 events need 3; give it a row for padding, then one for each event"
    );
    let beyond = b",u,i,ts,label,idx\n0,1,2,0.0,0.0,1\n1,2,3,1.0,0.0,7\n";
    assert_eq!(
        file_fault(&[("ml_x.csv", beyond), ("ml_x.npy", &npy(3, 1, &[0.0, 1.0, 2.0]))]),
        "ml_x.csv, column \"idx\": \"7\" of event 1 is beyond the 3 rows of ml_x.npy; number the feature rows from 1"
    );
    let none = b",u,i,ts,label,idx\n0,1,2,0.0,0.0,first\n";
    let message = file_fault(&[("ml_x.csv", none)]);
    assert!(
        message.contains("line 2, column \"idx\": \"first\" is not the number of a feature row"),
        "{message}"
    );
}

#[test]
fn feature_tables_that_are_broken() {
    let whole = npy(3, 1, &[0.0, 1.0, 2.0]);
    assert_eq!(
        file_fault(&[("ml_x.csv", DGB), ("ml_x.npy", &whole[..whole.len() - 1])]),
        "ml_x.npy: ends after 2 of 3 numbers (3 rows of 1); save it again with numpy.save"
    );
    assert_eq!(
        file_fault(&[("ml_x.csv", DGB), ("ml_x_node.npy", &npy(3, 1, &[0.0, 1.0, 2.0]))]),
        "ml_x_node.npy: has 3 rows, none for node 3; add rows up to row 3, or leave the table out"
    );
    let text_ids = b",u,i,ts,label,idx\n0,a,2,0.0,0.0,1\n";
    assert!(
        file_fault(&[("ml_x.csv", text_ids), ("ml_x_node.npy", &npy(3, 1, &[0.0, 1.0, 2.0]))])
            .contains("has rows for integer ids, but the ids of the events are text")
    );
}

fn node_fault(nodes: &[u8], bipartite: bool) -> String {
    let (folder, path) = folder(&[("e.csv", b"u,i,ts\na,b,1\n"), ("n.csv", nodes)]);
    let node_features = Some(folder.path().join("n.csv"));
    let options = ReadOptions { node_features, bipartite, ..ReadOptions::default() };
    let message = read(&path, &options).expect_err("this table is wrong").to_string();
    message.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn node_features_that_do_not_match() {
    assert_eq!(
        node_fault(b"id,x\na,1\nc,2\n", false),
        "n.csv: \"b\" is a node without a row of features (1 in all); add a row for every node of the events"
    );
    assert_eq!(
        node_fault(b"id,x\na,1\nb,2\na,3\n", false),
        "n.csv, line 4: \"a\" has a second row of features; keep one row for each node"
    );
    assert_eq!(
        node_fault(b"id,x\na,1\nb,inf\n", false),
        "n.csv, line 3, column \"x\": \"inf\" is not a finite feature; correct it or drop the row"
    );
    assert!(
        node_fault(b"id,x\na\n", false)
            .starts_with("n.csv, line 2: has 1 fields where 2 are expected")
    );
    assert!(node_fault(b"", false).contains("n.csv: is empty"));
    assert!(node_fault(b"id,x\na,\xff\n", false).contains("is not valid UTF-8"));
    assert!(node_fault(b"id,x\n\"a,1\n", false).contains("line 2: has quotes that do not match"));
    assert!(node_fault(b"id,x\na,1\nb,2\n", true).contains("has no column \"side\""));
    assert!(
        node_fault(b"id,side,x\na,left,1\n", true).contains("column \"side\": \"left\" is no side")
    );
}

#[test]
fn parquet_that_is_broken() {
    let message = file_fault(&[("e.parquet", b"PAR1 and then nothing")]);
    assert!(message.starts_with("e.parquet: cannot be read as Parquet ("), "{message}");
    assert!(message.ends_with("; write the file again"), "{message}");
}
