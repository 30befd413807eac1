//! TGB's files and TGB's rule, against files made by Python (`fixtures/tgb/pickles.py`,
//! `fixtures/tgb/generated.py`).

use lstep::protocol::Split;
use lstep::protocol::tgb::{Generator, TgbColumns};
use lstep::read::pickle;
use lstep::read::pickle::NegativeLists;
use proptest::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tgb").join(name)
}

#[test]
fn files_of_every_protocol_and_both_numpys_say_the_same() {
    let mut expected = NegativeLists::default();
    expected.insert((1, 10, 100), vec![11, 12, 200, -1]);
    expected.insert((2, 10, 1 << 40), vec![13, 14, 300]);
    expected.insert((3, 10, 102), vec![15, 16]);
    expected.insert((4, 10, 103), vec![17, 1 << 33]);
    expected.insert((5, 10, 104), vec![]);
    expected.insert((6, 10, -105), (1..=255).rev().collect::<Vec<i64>>());
    expected.insert((7, 10, 106), vec![0, 2, 4, 6, 8]);
    for numpy in [1, 2] {
        for protocol in 2..=5 {
            let name = format!("numpy{numpy}_protocol{protocol}.pkl");
            let negatives =
                pickle::read(fixture(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(negatives, expected, "{name}");
        }
    }
}

#[test]
fn the_generator_draws_what_py_tgb_draws() {
    let text = std::fs::read_to_string(fixture("generated.json")).expect("the fixture");
    let stream: Value = serde_json::from_str(&text).expect("the fixture is JSON");
    let column = |name: &str| -> Vec<i64> {
        serde_json::from_value(stream[name].clone()).expect("integers")
    };
    let (sources, destinations, times) = (column("source"), column("destination"), column("time"));
    let rows = sources.iter().zip(&destinations).zip(&times);
    let rows = rows.map(|((&source, &to), &time)| (source as u32, to as u32, time as f64));
    let events = lstep_testkit::stream!(rows);
    let split = Split::chronological(&events, 0.7, 0.85).expect("three parts");
    assert_eq!(
        (Some(split.train_until), Some(split.validation_until)),
        (stream["val_time"].as_f64(), stream["test_time"].as_f64())
    );
    let rows = |range: &std::ops::Range<u32>| range.start as usize..range.end as usize;
    let (train, val, test) = (rows(&split.train), rows(&split.validation), rows(&split.test));
    for (name, rows) in [("train", &train), ("val", &val), ("test", &test)] {
        assert_eq!(rows.len() as u64, stream[name], "{name}");
    }
    let part = |rows: &std::ops::Range<usize>| TgbColumns {
        sources: &sources[rows.clone()],
        destinations: &destinations[rows.clone()],
        times: &times[rows.clone()],
    };
    let range = stream["first"].as_i64().expect("an id")..=stream["last"].as_i64().expect("an id");
    for count in [1, 8, 1000] {
        let mut generator = Generator::new(part(&train), range.clone(), count).expect("a range");
        for (name, rows) in [("val", &val), ("test", &test)] {
            let theirs = pickle::read(fixture(&format!("generated_{count}_{name}_ns.pkl")))
                .expect("py-tgb's file");
            assert_eq!(generator.next_part(part(rows)).expect("columns"), theirs, "{count} {name}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = pickle::read(fixture("absent.pkl")).expect_err("there is none");
    assert!(error.to_string().contains("absent.pkl"), "{error}");
}

fn some_negatives() -> impl Strategy<Value = NegativeLists> {
    let entry = (any::<(i64, i64, i64)>(), proptest::collection::vec(any::<i64>(), 0..20));
    proptest::collection::vec(entry, 0..20).prop_map(|entries| {
        let mut negatives = NegativeLists::default();
        entries.into_iter().for_each(|(event, list)| negatives.insert(event, list));
        negatives
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(negatives in some_negatives()) {
        let mut bytes = Vec::new();
        pickle::write(&negatives, &mut bytes).expect("memory");
        prop_assert_eq!(pickle::parse("a.pkl", &bytes).expect("our own file"), negatives);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = pickle::parse("a.pkl", &bytes);
        bytes.splice(0..0, *b"\x80\x04}(");
        let _ = pickle::parse("a.pkl", &bytes);
    }

    /// Operations in any order reach deeper than arbitrary bytes.
    #[test]
    fn arbitrary_operations_never_panic(
        operations in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(&b"(01N)}subRt.\x85\x86\x87\x88\x93\x94"[..]).prop_map(|byte| vec![byte]),
                proptest::sample::select(vec![
                    &b"K\x02"[..], b"h\x00", b"h\x01", b"h\x02", b"q\x00", b"q\x03", b"\x8a\x01\x80", b"\x8c\x02i8",
                    b"\x8c\x06latin1", b"C\x08\x01\0\0\0\0\0\0\0", b"cnumpy\ndtype\n", b"cnumpy\nfrombuffer\n",
                    b"cnumpy.core.multiarray\nscalar\n", b"cnumpy.core.multiarray\n_reconstruct\n",
                    b"cnumpy\nndarray\n", b"cnumpy._core.numeric\n_frombuffer\n", b"c_codecs\nencode\n", b"\x8c\x01<",
                ]).prop_map(<[u8]>::to_vec),
            ],
            0..60,
        )
    ) {
        let _ = pickle::parse("a.pkl", &[b"\x80\x04".to_vec(), operations.concat()].concat());
    }

    #[test]
    fn a_damaged_file_never_panics(place in any::<proptest::sample::Index>(), byte in any::<u8>(), file in 0..8_usize) {
        let name = format!("numpy{}_protocol{}.pkl", file / 4 + 1, file % 4 + 2);
        let mut bytes = std::fs::read(fixture(&name)).expect("the fixture");
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = pickle::parse(&name, &bytes);
        prop_assert!(pickle::parse(&name, &bytes[..place]).is_err());
    }
}
