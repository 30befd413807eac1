//! Journeys over real temporal graphs, where `LSTEP_DATA` says they are. They are not part of the
//! repository.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The folder of real data, or a visible message that the test is skipped.
fn data(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LSTEP_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED {test}: set LSTEP_DATA to a folder with uci/events.csv.gz and so on");
    }
    folder
}

fn json(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lstep"))
        .args(arguments)
        .arg("--json")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn inspection_counts_what_the_files_hold() {
    let Some(folder) = data("inspection_counts_what_the_files_hold") else { return };
    // Nodes, events, distinct times, self-loops where known.
    let known = [
        ("uci", 1_899, 59_835, 58_911, None),
        ("enron", 184, 125_235, 22_632, Some(16_410)),
        ("wikipedia", 9_227, 157_474, 152_757, None),
        ("canparl", 734, 74_478, 14, Some(380)),
        ("uslegis", 225, 60_396, 12, None),
        ("email-eu", 986, 332_334, 207_880, None),
        ("mathoverflow", 24_818, 506_550, 505_784, Some(116_109)),
    ];
    for (name, nodes, events, distinct_times, self_loops) in known {
        let path = folder.join(name).join("events.csv.gz");
        let stats = json(&["inspect", &path.display().to_string()]);
        assert_eq!(stats["nodes"], nodes, "{name}");
        assert_eq!(stats["events"], events, "{name}");
        assert_eq!(stats["distinct_times"], distinct_times, "{name}");
        if let Some(self_loops) = self_loops {
            assert_eq!(stats["self_loops"], self_loops, "{name}");
        }
        assert_eq!(stats["bipartite"], name == "wikipedia", "{name}");
    }
}

#[test]
fn edgebank_under_dyglib_gives_the_known_values() {
    let Some(folder) = data("edgebank_under_dyglib_gives_the_known_values") else { return };
    // DyGLib's own code on the same files, test AP and AUC: random, historical, inductive.
    let known = [
        ("uci", [(0.7620146, 0.7730101), (0.6503285, 0.6913056), (0.5741173, 0.5799167)]),
        ("enron", [(0.8353186, 0.8704758), (0.7690038, 0.7983388), (0.7390658, 0.7503400)]),
    ];
    for (name, expected) in known {
        let path = folder.join(name).join("events.csv.gz");
        let report = json(&[
            "evaluate",
            &path.display().to_string(),
            "--model",
            "edgebank",
            "--memory",
            "published",
            "--protocol",
            "dyglib",
            "--negatives",
            "random,historical,inductive",
        ]);
        for (row, (ap, auc)) in report["results"].as_array().expect("a list").iter().zip(expected) {
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
fn edgebank_under_tgb_gives_the_leaderboard_s_values() {
    let Some(folder) = data("edgebank_under_tgb_gives_the_leaderboard_s_values") else { return };
    let place = tempfile::tempdir().expect("a folder");
    // The stream is that of tgbl-wiki without its features, which EdgeBank does not use; all pages
    // are candidates.
    let events = place.path().join("tgbl-wiki_edgelist.csv").display().to_string();
    let wikipedia = folder.join("wikipedia").join("events.csv.gz").display().to_string();
    json(&["data", "convert", &wikipedia, &events]);
    // tgb.complexdatalab.com, tgbl-wiki-v2: MRR on validation and test.
    for (memory, expected) in [("unlimited", [0.527, 0.495]), ("window-tgb", [0.600, 0.571])] {
        let ask = [
            "evaluate",
            &events,
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
fn a_grid_takes_protocol_and_published_memory_by_the_datasets_name() {
    let Some(folder) = data("a_grid_takes_protocol_and_published_memory_by_the_datasets_name")
    else {
        return;
    };
    let out = tempfile::tempdir().expect("a folder");
    let (uci, out) = (folder.join("uci").display().to_string(), out.path().display().to_string());
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
