//! Rows that are left out because the caller wished so: the rest is as if they had never been there.

use lstep::read::{Dataset, LeftOut, ReadOptions, read_from};
use proptest::prelude::*;

fn skipping() -> ReadOptions {
    ReadOptions { skip_bad: true, ..ReadOptions::default() }
}

fn with(text: impl AsRef<[u8]>, options: &ReadOptions) -> Dataset {
    read_from("e.csv", text.as_ref(), options).expect("what is left is good")
}

fn without_report(data: Dataset) -> Dataset {
    Dataset { left_out: LeftOut::default(), ..data }
}

#[test]
fn every_fault_of_a_row_is_counted_and_leaves_no_trace() {
    let bad: [(&[u8], &str, &str); 11] = [
        (b",2,2,0.5", "u", "is empty"),
        (b"9,,2,0.5", "i", "is empty"),
        (b"9,2,soon,0.5", "ts", "is not a time"),
        (b"9,2,,0.5", "ts", "is empty"),
        (b"9,2,2020-01-01,0.5", "ts", "mixes"),
        (b"9,2,inf,0.5", "ts", "is not a finite time"),
        (b"9,2,2,many", "w", "is not a number"),
        (b"9,2", "row", "has 2 fields"),
        (b"9,2,0,0.5", "ts", "is before an event above it"),
        (b"9,b\xff,2,0.5", "row", "is not valid UTF-8"),
        (b"\"9\"x,2,2,0.5", "row", "stands after a closing quote"),
    ];
    let good = "u,i,ts,w\nann,2,1,0.5\n3,4,2,1.5\n2,ann,3,1\n";
    for (row, column, fault) in bad {
        let lines: Vec<&str> = good.split_inclusive('\n').collect();
        let mut text = lines[..3].concat().into_bytes();
        text.extend_from_slice(row);
        text.extend_from_slice(b"\n");
        text.extend_from_slice(lines[3].as_bytes());
        let read = with(&text, &skipping());
        assert_eq!(read.left_out.bad_rows(), 1, "{row:?}");
        let found = &read.left_out.faults[0];
        assert_eq!((found.column.as_str(), found.first_line, found.count), (column, 4, 1));
        assert!(found.fault.contains(fault), "{}", found.fault);
        assert_eq!(without_report(read), with(good, &ReadOptions::default()), "{row:?}");
        // Without the wish the file is refused on the same line.
        let refused = read_from("e.csv", &text[..], &ReadOptions::default()).expect_err("refused");
        assert!(refused.to_string().contains("e.csv, line 4"), "{refused}");
    }
}

#[test]
fn the_first_row_may_be_bad_and_a_file_without_good_rows_is_refused() {
    let read = with("u,i,ts\n1,2,\n1,2,2020-01-01\n1,2,5\n3,4,2020-01-02\n", &skipping());
    assert_eq!((read.events.len(), read.left_out.bad_rows()), (2, 2));
    assert_eq!(read.left_out.faults[1].first_line, 4);
    let error = read_from("e.csv", &b"u,i,ts\n1,2,x\n"[..], &skipping()).expect_err("no event");
    assert!(error.to_string().contains("has no row without a fault"), "{error}");
    // The header is no row: what is wrong with it is still told.
    for text in [&b"u,i\xff,ts\n1,2,3\n"[..], b"a,b,c\n1,2,3\n", b""] {
        assert!(read_from("e.csv", text, &skipping()).is_err());
    }
}

#[test]
fn a_quote_left_open_costs_its_row_only() {
    let read = with("u,i,ts\n1,2,1\n1,\"2,2\n1,2,3\n", &skipping());
    assert_eq!((read.events.len(), read.left_out.bad_rows()), (2, 1));
    assert!(read.left_out.faults[0].fault.contains("never closed"));
}

#[test]
fn an_early_event_is_late_only_without_sorting() {
    let text = "u,i,ts\n1,2,5\n3,4,1\n5,6,4\n1,2,5\n";
    let read = with(text, &skipping());
    assert_eq!((read.events.len(), read.names.len()), (2, 2));
    assert_eq!((read.left_out.faults[0].count, read.left_out.faults[0].first_line), (2, 3));
    let sorted = with(text, &ReadOptions { sort: true, ..skipping() });
    assert_eq!((sorted.events.len(), sorted.left_out), (4, LeftOut::default()));
}

#[test]
fn repeated_events_go_and_all_else_stays() {
    let dedup = ReadOptions { dedup: true, ..ReadOptions::default() };
    let text = "u,i,ts,w\n1,2,1,0\n1,2,1,0\n1,2,1,7\n2,1,1,0\n1,2,1,0\n1,2,2,0\n";
    let read = with(text, &dedup);
    assert_eq!((read.events.len(), read.left_out.duplicates), (4, 2));
    let kept = "u,i,ts,w\n1,2,1,0\n1,2,1,7\n2,1,1,0\n1,2,2,0\n";
    assert_eq!(without_report(read), with(kept, &ReadOptions::default()));
    // Copies that lie apart are found when events are sorted.
    let sorted = ReadOptions { sort: true, ..dedup };
    let read = with("u,i,ts\n1,2,1\n1,2,9\n1,2,1\n", &sorted);
    assert_eq!((read.events.len(), read.left_out.duplicates), (2, 1));
    assert_eq!(with(kept, &sorted).left_out, LeftOut::default());
}

proptest! {
    /// Whatever rows are damaged, what is read is what the good rows alone would be.
    #[test]
    fn bad_rows_change_nothing_else(
        rows in prop::collection::vec((0..9u32, 0..9u32, 0..3u32, 0..6usize), 1..60),
    ) {
        let (mut all, mut good) = (String::from("u,i,ts,w\n"), String::from("u,i,ts,w\n"));
        let (mut time, mut bad) = (0, 0);
        for (source, destination, later, kind) in rows {
            time += later;
            let row = match kind {
                0 => format!("{source},{destination},x{time},1\n"),
                1 => format!("n{source},,{time},1\n"),
                2 => format!("{source},{destination},{time}\n"),
                _ => format!("{source},{destination},{time},{kind}\n"),
            };
            all += &row;
            if kind > 2 { good += &row } else { bad += 1 }
        }
        let read = read_from("e.csv", all.as_bytes(), &skipping());
        let expected = read_from("e.csv", good.as_bytes(), &ReadOptions::default());
        match (read, expected) {
            (Ok(read), Ok(expected)) => {
                prop_assert_eq!(read.left_out.bad_rows(), bad);
                prop_assert_eq!(without_report(read), expected);
            }
            (read, expected) => prop_assert_eq!(read.is_err(), expected.is_err()),
        }
    }
}
