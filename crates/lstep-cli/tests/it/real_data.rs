//! Journeys over real temporal graphs, where `LSTEP_DATA` says they are. They are not part of the
//! repository.

use lstep_testkit::{command, real_data};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    command::json(&[arguments, &["--json"]].concat())
}

/// The events of a dataset, as an argument.
fn stream(name: &str) -> String {
    real_data::events(name).display().to_string()
}

#[test]
#[ignore = "needs LSTEP_DATA"]
fn inspection_counts_what_the_files_hold() {
    // Nodes, events, distinct times, self-loops where known.
    let known = [
        ("uci", 1_899, 59_835, 58_911, None),
        ("enron", 184, 125_235, 22_632, Some(16_410)),
        ("wikipedia", 9_227, 157_474, 152_757, None),
        ("mooc", 7_144, 411_749, 345_600, None),
        ("dgb/canparl", 734, 74_478, 14, Some(380)),
        ("dgb/uslegis", 225, 60_396, 12, None),
        ("email-eu", 986, 332_334, 207_880, None),
        ("mathoverflow", 24_818, 506_550, 505_784, Some(116_109)),
    ];
    for (name, nodes, events, distinct_times, self_loops) in known {
        let stats = json(&["inspect", &stream(name)]);
        assert_eq!(stats["nodes"], nodes, "{name}");
        assert_eq!(stats["events"], events, "{name}");
        assert_eq!(stats["distinct_times"], distinct_times, "{name}");
        if let Some(self_loops) = self_loops {
            assert_eq!(stats["self_loops"], self_loops, "{name}");
        }
        assert_eq!(stats["bipartite"], ["wikipedia", "mooc"].contains(&name), "{name}");
    }
}

/// What EdgeBank with the memories behind its published figures gives under `dyglib`.
fn published_edgebank(name: &str) -> Vec<serde_json::Value> {
    let report = json(&[
        "evaluate",
        &stream(name),
        "--model",
        "edgebank",
        "--memory",
        "published",
        "--protocol",
        "dyglib",
        "--negatives",
        "random,historical,inductive",
    ]);
    report["results"].as_array().expect("a list").clone()
}

#[test]
#[ignore = "needs LSTEP_DATA"]
fn edgebank_under_dyglib_is_within_a_tenth_of_a_point_of_published_figures() {
    // DyGLib's tables, test AP in percent: random, historical, inductive. Their negatives are of
    // other draws, so the last digit differs.
    let published = [
        ("dgb/canparl", [64.55, 63.84, 62.16]),
        ("dgb/uslegis", [58.39, 63.22, 64.74]),
        ("mooc", [57.97, 60.71, 49.43]),
    ];
    for (name, expected) in published {
        for (row, expected) in published_edgebank(name).iter().zip(expected) {
            let found = 100.0 * row["ap"].as_f64().expect("a number");
            let negatives = &row["negatives"];
            assert!((found - expected).abs() < 0.1, "{name} {negatives}: {found}, not {expected}");
        }
    }
}

#[test]
#[ignore = "needs LSTEP_DATA"]
fn edgebank_under_dyglib_gives_the_known_values() {
    // DyGLib's own code on the same files, test AP and AUC: random, historical, inductive.
    let known = [
        ("uci", [(0.7620146, 0.7730101), (0.6503285, 0.6913056), (0.5741173, 0.5799167)]),
        ("enron", [(0.8353186, 0.8704758), (0.7690038, 0.7983388), (0.7390658, 0.7503400)]),
    ];
    for (name, expected) in known {
        let results = published_edgebank(name);
        for (row, (ap, auc)) in results.iter().zip(expected) {
            for (found, expected) in [(&row["ap"], ap), (&row["auc"], auc)] {
                let found = found.as_f64().expect("a number");
                assert!(
                    (found - expected).abs() < 5e-7,
                    "{name} {}: {found} is not {expected}",
                    row["negatives"]
                );
            }
        }
    }
}

#[test]
#[ignore = "needs LSTEP_DATA"]
fn edgebank_under_tgb_gives_the_leaderboard_s_values() {
    let place = tempfile::tempdir().expect("a folder");
    // The stream is that of tgbl-wiki without its features, which EdgeBank does not use; all pages
    // are candidates.
    let edges = place.path().join("tgbl-wiki_edgelist.csv").display().to_string();
    json(&["data", "convert", &stream("wikipedia"), &edges]);
    // tgb.complexdatalab.com, tgbl-wiki-v2: MRR on validation and test.
    for (memory, expected) in [("unlimited", [0.527, 0.495]), ("window-tgb", [0.600, 0.571])] {
        let ask = [
            "evaluate",
            &edges,
            "--protocol",
            "tgb",
            "--memory",
            memory,
            "--part",
            "validation,test",
        ];
        let report = json(&ask);
        for (row, expected) in report["results"].as_array().expect("a list").iter().zip(expected) {
            let mrr = row["mrr"].as_f64().expect("an MRR");
            assert!(
                (mrr - expected).abs() < 5e-4,
                "{memory} {}: {mrr} is not {expected}",
                row["part"]
            );
        }
    }
}

#[test]
#[ignore = "needs LSTEP_DATA"]
fn a_grid_takes_protocol_and_published_memory_by_the_datasets_name() {
    let out = tempfile::tempdir().expect("a folder");
    let (uci, out) =
        (real_data::folder().join("uci").display().to_string(), out.path().display().to_string());
    let comparison = json(&["compare", &uci, "--models", "edgebank", "--out", &out]);
    let cell = &comparison["cells"][0];
    assert_eq!(
        (&cell["dataset"], &cell["protocol"]["name"]),
        (&Value::from("uci"), &Value::from("dyglib"))
    );
    for (row, ap) in
        cell["results"].as_array().expect("a list").iter().zip([0.7620146, 0.6503285, 0.5741173])
    {
        let found = row["ap"].as_f64().expect("a number");
        assert!((found - ap).abs() < 5e-7, "{}: {found} is not {ap}", row["negatives"]);
    }
}
