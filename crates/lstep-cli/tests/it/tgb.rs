//! The Temporal Graph Benchmark from end to end: files in its form, training that selects on MRR,
//! and MRR on validation and test.

use lstep_testkit::command::{json, refused};
use serde_json::Value;
use std::fs;
use std::path::Path;

const NEGATIVES: u64 = 30;

/// Writes a small stream of two kinds of nodes in TGB's files; gives the edge list.
fn generated(folder: &Path, name: &str, more: &[&str]) -> String {
    let path = folder.join(name).display().to_string();
    let small = "--layout tgb --sources 120 --nodes 200 --communities 4 --events 3000 --json";
    let made = json(
        &["generate", &path]
            .into_iter()
            .chain(small.split(' '))
            .chain(more.iter().copied())
            .collect::<Vec<_>>(),
    );
    assert_eq!(made["files"].as_array().map(Vec::len), Some(3));
    path
}

/// Trains a small model on it for a few epochs; gives the report.
fn trained(events: &str, run: &str, more: &[&str]) -> Value {
    let small = "model.position_width=8 model.time_width=8 model.node_width=8 model.edge_width=4 model.snapshots=6 \
                 model.recent=4 protocol.step=50 train.learning_rate=0.01";
    let settings = small.split_whitespace().flat_map(|setting| ["--set", setting]);
    let start = ["train", events, "--out", run, "--json"];
    json(&start.into_iter().chain(settings).chain(more.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn training_on_tgb_s_files_selects_on_mrr_and_reports_it_for_both_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = NEGATIVES.to_string();
    let events = generated(
        folder.path(),
        "tgbl-sample_edgelist.csv",
        &["--features", "2", "--per-event", &count],
    );
    let run = folder.path().join("run").display().to_string();
    let report = trained(&events, &run, &["--protocol", "tgb", "--set", "train.epochs=4"]);
    assert_eq!(report["protocol_settings"]["dataset"], "tgbl-sample");
    let metrics = fs::read_to_string(folder.path().join("run/metrics.jsonl")).expect("metrics");
    let epochs: Vec<Value> =
        metrics.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(epochs.len(), 4);
    let mut best = 0.0;
    for epoch in &epochs {
        let mrr = epoch["validation_mrr"].as_f64().expect("an MRR for every epoch");
        assert_eq!(epoch["improved"], mrr - best > 1e-6 * best, "{metrics}");
        best = f64::max(best, mrr);
    }

    // What is reported afterwards is the selected epoch's, on TGB's own negatives.
    let evaluated = json(&["evaluate", &run, "--part", "validation,test", "--json"]);
    for rows in [&report["results"], &evaluated["results"]] {
        let rows = rows.as_array().expect("a list");
        assert_eq!(rows.iter().map(|row| &row["part"]).collect::<Vec<_>>(), ["validation", "test"]);
        for row in rows {
            assert_eq!(row["negatives"], "tgb");
            let (events, pairs) = (
                row["events"].as_u64().expect("a number"),
                row["pairs"].as_u64().expect("a number"),
            );
            assert_eq!(
                pairs,
                events * (1 + NEGATIVES),
                "the files' negatives, not the rule's default of 100"
            );
        }
        assert_eq!(rows[0]["mrr"].as_f64(), Some(best));
        // A guess among 31 has an MRR of 0.13.
        assert!(rows[1]["mrr"].as_f64().is_some_and(|mrr| mrr > 0.2), "{rows:?}");
    }
}

#[test]
fn a_preset_of_tgb_finds_the_negatives_beside_its_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = generated(folder.path(), "tgbl-wiki_edgelist.csv", &["--per-event", "12"]);
    let run = folder.path().join("run").display().to_string();
    let report = trained(&events, &run, &["--preset", "tgbl-wiki", "--set", "train.epochs=1"]);
    assert_eq!(
        (&report["protocol"], &report["dataset"]),
        (&Value::from("tgb"), &Value::from("tgbl-wiki"))
    );
    for row in report["results"].as_array().expect("a list") {
        assert_eq!(
            row["pairs"].as_u64(),
            row["events"].as_u64().map(|events| events * 13),
            "{row}"
        );
    }
}

#[test]
fn negatives_are_those_of_the_files_and_a_file_of_another_stream_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, seed: &str| generated(folder.path(), name, &["--seed", seed]);
    let (first, second) = (make("tgbl-a_edgelist.csv", "1"), make("tgbl-b_edgelist.csv", "2"));
    let ask = |path: &str| {
        json(&["evaluate", path, "--protocol", "tgb", "--part", "validation,test", "--json"])
    };
    let read = ask(&first);
    // Without files the same lists are made by TGB's rule.
    for part in ["val", "test"] {
        fs::remove_file(folder.path().join(format!("tgbl-a_{part}_ns.pkl"))).expect("there");
    }
    let made = ask(&first);
    for (read, made) in read["results"]
        .as_array()
        .expect("rows")
        .iter()
        .zip(made["results"].as_array().expect("rows"))
    {
        assert_eq!(
            (&read["negatives_sha256"], &read["mrr"]),
            (&made["negatives_sha256"], &made["mrr"])
        );
    }
    fs::copy(folder.path().join("tgbl-a_edgelist.csv"), &second).expect("copied");
    refused(
        &["evaluate", &second, "--protocol", "tgb"],
        &["TGB's negatives", "have no list for event"],
    );
}

#[test]
fn a_layout_s_flags_and_names_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    refused(&["generate", &path("a.csv"), "--per-event", "5"], &["--layout tgb"]);
    refused(
        &["generate", &path("a.csv"), "--layout", "tgb", "--sources", "500"],
        &["a.csv", "NAME_edgelist.csv"],
    );
    refused(&["generate", &path("tgbl-a_edgelist.csv"), "--layout", "tgb"], &["--sources"]);
}

#[test]
fn two_kinds_of_nodes_with_gaps_between_their_ids_are_asked_about_by_the_benchmark_s_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gaps.csv");
    let rows: String =
        (0..600).map(|n| format!("{},{},{n}\n", 3 * (n % 17), 40 * ((n * 7) % 23))).collect();
    fs::write(&path, format!("source,destination,time\n{rows}")).expect("written");
    let path = path.display().to_string();
    let report = json(&["evaluate", &path, "--bipartite", "--protocol", "tgb", "--json"]);
    let row = &report["results"][0];
    // A source meets all 23 destinations sooner or later; the others of them are asked beside the
    // true one.
    assert_eq!(row["pairs"].as_u64(), row["events"].as_u64().map(|events| 23 * events), "{row}");
}
