//! A stream in TGB's files, from the edge list and the pickles to MRR, against py-tgb
//! (`fixtures/tgb/edgebank.py`).
//!
//! EdgeBank's scores are the same in both programs, so every number has to be: the split, the
//! negatives of each event, what a batch may know, ranks with their ties, and the mean.

use lstep::evaluation::{EvaluatedModel, Evaluation};
use lstep::model::{EdgeBankConfig, Memory};
use lstep::protocol::tgb::TgbProtocol;
use lstep::protocol::{EvalScope, Part, Protocol, Setting, Strategy};
use lstep::read::{ReadOptions, read};
use lstep::stream::Stream;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tgb")
}

fn number(value: &Value) -> f64 {
    value.as_str().expect("a number as text").parse().expect("a number")
}

#[test]
fn mrr_on_validation_and_test_equals_that_of_py_tgb() {
    let text = std::fs::read_to_string(folder().join("tgbl-sample.json")).expect("the fixture");
    let theirs: Value = serde_json::from_str(&text).expect("the fixture is JSON");
    let events = folder().join("tgbl-sample_edgelist.csv");
    let stream = Stream::from(read(&events, &ReadOptions::default()).expect("the fixture"));
    let evaluation = Evaluation {
        protocol: Protocol::Tgb(TgbProtocol::for_dataset(&stream.name, Some(folder()))),
        asked: EvalScope {
            parts: vec![Part::Validation, Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Tgb],
        },
        models: vec![EvaluatedModel::Fixed(EdgeBankConfig { memory: Memory::Unlimited }.into())],
        read_negatives: None,
        write_negatives: None,
    };
    let report = evaluation.run(&stream, &|_, _, _| ()).expect("a good stream");
    assert_eq!(report.results.len(), 2);
    for (row, part) in report.results.iter().zip(["val", "test"]) {
        let theirs = &theirs[part];
        assert_eq!(row.events as u64, theirs["events"], "{part}");
        let mrr = row.mrr.expect("more than one negative");
        assert!((mrr - number(&theirs["mrr_of_doubles"])).abs() < 1e-12, "{part}: {mrr}");
        // The mean that TGB's examples print is taken in float32.
        assert!((mrr - number(&theirs["mrr"])).abs() < 1e-6, "{part}: {mrr}");
        assert!(
            (row.hits_10.expect("15 negatives") - number(&theirs["hits@10"])).abs() < 1e-12,
            "{part}"
        );
    }
}
