//! Journeys through the real binary, as a newcomer would make them.

use lstep_testkit::command::{command, lstep, quiet_json as json, text};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn generated(folder: &Path) -> String {
    let path = folder.join("sample.csv").display().to_string();
    let output = lstep(&["generate", &path, "--events", "6000", "--seed", "4"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    path
}

#[test]
fn without_arguments_the_sample_stream_goes_all_the_way_to_a_table() {
    let output = lstep(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for word in [
        "distinct pairs",
        "edgebank (unlimited)",
        "poptrack",
        "local-recency+global-popularity",
        "historical",
    ] {
        assert!(shown.contains(word), "{word} is missing:\n{shown}");
    }
}

#[test]
fn a_generated_stream_is_inspected_and_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let stats = json(&["inspect", &path, "--json"]);
    assert_eq!(stats["events"], 6000);
    for key in [
        "nodes",
        "distinct_times",
        "sources",
        "destinations",
        "bipartite",
        "self_loops",
        "first_time",
        "last_time",
        "repeat_share",
        "surprise",
        "edge_feature_width",
    ] {
        assert!(!stats[key].is_null(), "{key}: {stats}");
    }
    let report = json(&[
        "evaluate",
        &path,
        "--model",
        "edgebank",
        "--held-out",
        "0.1",
        "--setting",
        "transductive,inductive",
        "--json",
    ]);
    assert_eq!(report["protocol"], "stream");
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 6);
    for row in results {
        assert_eq!(row["part"], "test");
        for key in ["ap", "auc", "ap_pooled", "auc_pooled", "seconds"] {
            assert!(row[key].as_f64().is_some_and(f64::is_finite), "{key}: {row}");
        }
        assert_eq!(row["negatives_sha256"].as_str().map(str::len), Some(64));
        assert!(row["events"].as_u64().is_some_and(|events| events > 0), "{row}");
    }
}

#[test]
fn counting_finds_the_planted_habits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let report =
        json(&["evaluate", &path, "--model", "heuristics", "--negatives", "random", "--json"]);
    let auc = report["results"][0]["auc"].as_f64().expect("a number");
    assert!(auc > 0.7, "{auc}: repeats, recency and popularity are planted");
}

#[test]
fn negatives_written_and_read_back_give_the_same_numbers_and_hash() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let kept = folder.path().join("negatives").display().to_string();
    let first = json(&["evaluate", &path, "--write-negatives", &kept, "--json"]);
    let again = json(&["evaluate", &path, "--seed", "99", "--read-negatives", &kept, "--json"]);
    for (row, other) in first["results"]
        .as_array()
        .expect("a list")
        .iter()
        .zip(again["results"].as_array().expect("a list"))
    {
        assert_eq!(row["negatives_sha256"], other["negatives_sha256"]);
        assert_eq!(row["ap"], other["ap"]);
    }
    let file = folder.path().join("negatives").join("test-transductive-historical.csv");
    let sum = Command::new("sha256sum").arg(&file).output();
    if let Ok(sum) = sum {
        let expected = first["results"][1]["negatives_sha256"].as_str().expect("a hash");
        assert!(text(&sum.stdout).starts_with(expected), "the hash is the file's");
    }
    std::fs::write(&file, "event,source,destination\n0,1,2\n").expect("written");
    let output = lstep(&["evaluate", &path, "--read-negatives", &kept]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let ask = |threads: &str| {
        let mut report = json(&[
            "evaluate",
            &path,
            "--model",
            "all",
            "--per-event",
            "50",
            "--threads",
            threads,
            "--json",
        ]);
        for row in report["results"].as_array_mut().expect("a list") {
            row["seconds"] = Value::Null;
            row["events_per_second"] = Value::Null;
        }
        report["results"].take()
    };
    assert_eq!(ask("1"), ask("3"));
}

#[test]
fn events_come_through_standard_input() {
    let mut child = command(&["inspect", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(b"src,dst,t\na,b,1\nb,c,2\n").expect("written");
    let output = child.wait_with_output().expect("it ends");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&stats["nodes"], &stats["events"]), (&Value::from(3), &Value::from(2)));
}

#[test]
fn bad_input_fails_with_the_place_the_value_and_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.csv");
    std::fs::write(&path, "src,dst,time\na,b,1\na,c,soon\n").expect("written");
    let output = lstep(&["inspect", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = text(&output.stderr);
    for word in ["events.csv", "line 3", "time", "soon"] {
        assert!(message.contains(word), "{word} is missing: {message}");
    }
    let output = lstep(&["evaluate", "nowhere.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nowhere.csv"));
}

#[test]
fn the_split_is_two_numbers_with_a_comma_as_the_help_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let report =
        json(&["evaluate", &path, "--split", "0.5,0.75", "--negatives", "random", "--json"]);
    assert_eq!(report["protocol_settings"]["split"], serde_json::json!([0.5, 0.75]));
    let output = lstep(&["evaluate", &path, "--split", "0.5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("0.7,0.85"), "{}", text(&output.stderr));
}

#[test]
fn a_flag_of_another_protocol_is_refused_and_not_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generated(folder.path());
    let output = lstep(&["evaluate", &path, "--protocol", "dyglib", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--seed"), "{}", text(&output.stderr));
}

#[test]
fn shell_completions_name_the_commands() {
    assert!(text(&lstep(&["completions", "bash"]).stdout).contains("inspect"));
}
