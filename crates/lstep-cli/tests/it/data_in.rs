//! Journeys from the files that people have: parts in a folder, several files, lines of JSON, times
//! of their own kind, and files that are no tables.

use lstep_testkit::command::{Place, done, json, refused, text};
use serde_json::Value;
use std::fs;

/// A log of a shop as JSON Lines in parts, with times as nobody else writes them.
fn shop() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("log")).expect("a folder");
    let events = place.words("events.csv");
    let rows: Vec<Vec<&str>> =
        events.lines().skip(1).map(|line| line.split(',').collect()).collect();
    for (part, rows) in rows.chunks(1500).enumerate() {
        let line = |row: &Vec<&str>| {
            let second: f64 = row[2].parse().expect("a time");
            let (day, second) = ((second / 86_400.0) as u32, second as u32 % 86_400);
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            let (month, day) = (1 + day / 28, 1 + day % 28);
            format!(
                "{{\"event_time\":\"{day:02}.{month:02}.2025 {hour:02}:{minute:02}:{second:02}\",\
                 \"customer\":{{\"id\":\"C{}\"}},\"product_id\":{},\"price\":9.5}}\n",
                row[0], row[1]
            )
        };
        place.write(&format!("log/part-{part}.jsonl"), rows.iter().map(line).collect::<String>());
    }
    place.write("log/_SUCCESS", "");
    place
}

const FORMAT: &str = "%d.%m.%Y %H:%M:%S";

fn train(place: &Place, run: &str, more: &[&str]) -> String {
    let (log, out) = (place.at("log"), place.at(run));
    let mut arguments = vec!["train", &log, "--src", "customer.id", "--time-format", FORMAT];
    arguments.extend(["--sort", "--bipartite", "--epochs", "1", "--out", &out]);
    arguments.extend(["--set", "protocol.step.events=50"].iter().chain(more));
    text(&done(&arguments).stdout)
}

#[test]
fn parts_of_json_become_recommendations_with_probabilities_that_hold() {
    let place = shop();
    let said = train(&place, "run", &[]);
    assert!(said.contains("Probabilities:") && said.contains("(ECE)"), "{said}");
    let report = place.json("run/report.json");
    let held = &report["reliability"];
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&held["ece"]) < 0.05, "{held}");
    assert!(number(&held["brier"]) < number(&held["brier_of_mean"]), "{held}");
    assert_eq!(held["groups"].as_array().map(Vec::len), Some(10));

    let (run, recs) = (place.at("run"), place.at("recs.jsonl"));
    done(&["score", &run, "--all", "--top", "500", "--out", &recs]);
    let rows: Vec<Value> = place
        .words("recs.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for list in rows.chunk_by(|a, b| a["source"] == b["source"]) {
        let said: Vec<f64> = list.iter().map(|row| number(&row["probability"])).collect();
        assert!(said.iter().all(|share| (0.0..=1.0).contains(share)));
        assert!(said.is_sorted_by(|a, b| a >= b), "probabilities follow the scores: {said:?}");
    }
    // All destinations are listed, so the means over sources are about one event each.
    let sources = rows.chunk_by(|a, b| a["source"] == b["source"]).count() as f64;
    let all = rows.iter().map(|row| number(&row["probability"])).sum::<f64>() / sources;
    assert!((0.3..3.0).contains(&all), "{all}");

    // The exported model says the same, and so do pairs.
    let model = place.at("model.lstep");
    done(&["export", &run, &model]);
    let source = rows[0]["source"].as_str().expect("text");
    let ask = |from: &str| json(&["score", from, "--source", source, "--top", "3", "--json"]);
    assert_eq!(ask(&model), ask(&run));
    assert_eq!(ask(&model)[0]["probability"], rows[0]["probability"]);
    let page = place.words("run/report.html");
    let shown = ["The worst misses", "had met", "Reliability of the probabilities", "<abbr title="];
    for words in shown.iter().chain(&["lstep train log --src customer.id"]) {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_run_finds_its_parts_again_and_two_runs_are_compared_with_an_interval() {
    let place = shop();
    train(&place, "a", &[]);
    train(&place, "b", &["--set", "train.seed=1"]);
    let (a, b) = (place.at("a"), place.at("b"));
    let compared = json(&["compare", &a, &b, "--json"]);
    let row = &compared["questions"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    let (difference, low, high) = (
        number(&row["differences"][1]["difference"]),
        number(&row["differences"][1]["low"]),
        number(&row["differences"][1]["high"]),
    );
    assert!(low <= difference && difference <= high && low < high, "{row}");
    let between = number(&row["values"][1]) - number(&row["values"][0]);
    assert!((between - difference).abs() < 1e-6, "{row}");
    let shown = text(&done(&["compare", &a, &b]).stdout);
    assert!(shown.contains("95 % interval") && shown.contains("minus the first"), "{shown}");

    // A further part has happened since.
    let before = json(&["score", &a, "--source", "C1", "--top", "3", "--json"]);
    let last = "{\"event_time\":\"01.12.2025 00:00:00\",\"customer\":{\"id\":\"C1\"},\
                \"product_id\":77777}\n";
    place.write("log/part-2.jsonl", last);
    let after = json(&["score", &a, "--source", "C1", "--top", "3", "--json"]);
    assert_ne!(before[0]["time"], after[0]["time"]);
}

#[test]
fn several_files_are_one_stream() {
    let place = Place::new();
    let all = place.words("events.csv");
    let lines: Vec<&str> = all.lines().collect();
    place.write("1.csv", format!("{}\n", lines[..1001].join("\n")));
    place.write("2.csv", format!("{}\n{}\n", lines[0], lines[1001..].join("\n")));
    let (one, two, joined) = (place.at("1.csv"), place.at("2.csv"), place.at("joined.csv"));
    let count = |files: &[&str]| {
        json(&[&["inspect"], files, &["--json"]].concat())["distinct_pairs"].clone()
    };
    assert_eq!(count(&[&one, &two]), count(&[&place.events()]));
    done(&["data", "convert", &one, &two, &joined]);
    assert_eq!(place.words("joined.csv"), {
        done(&["data", "convert", &place.events(), &place.at("plain.csv")]);
        place.words("plain.csv")
    });
    refused(&["inspect", &two, &one], &["1.csv, line 2", "--sort"]);
    let log = place.at("parts");
    fs::create_dir(&log).expect("a folder");
    refused(&["inspect", &log], &["folder without files"]);
}

#[test]
fn what_exists_is_replaced_only_if_that_is_said_and_endings_have_to_be_known() {
    let place = Place::new();
    let (events, out) = (place.events(), place.at("out.csv"));
    done(&["data", "convert", &events, &out]);
    refused(&["data", "convert", &events, &out], &["out.csv exists", "--force"]);
    done(&["data", "convert", &events, &out, "--force"]);
    refused(&["generate", &out, "--events", "500"], &["out.csv exists", "--force"]);
    done(&["generate", &out, "--events", "500", "--habits", "0", "--force"]);
    for name in ["out.xlsx", "out", "out.jsonl", "out.parquet.gz"] {
        refused(&["generate", &place.at(name), "--events", "500"], &["ending", ".parquet"]);
        refused(&["data", "convert", &events, &place.at(name)], &["ending", ".parquet"]);
    }
}

#[test]
fn files_that_are_no_tables_are_called_by_their_names() {
    let place = Place::empty();
    for (name, bytes, words) in [
        ("sales.xlsx", &b"PK\x03\x04rest"[..], ["spreadsheet", "read_excel"]),
        ("data.pt", b"PK\x03\x04rest", ["PyTorch", "torch.load"]),
        ("graph.pkl", b"\x80\x04\x95rest", ["pickle", "read_pickle"]),
        ("old.xls", b"\xd0\xcf\x11\xe0rest", ["spreadsheet", "CSV"]),
        ("shop.db", b"SQLite format 3", ["SQLite", "sqlite3"]),
        ("log.json", b"[{\"u\":1,\"i\":2,\"ts\":3}]", ["JSON array", "jq -c"]),
        ("bare.csv", b"ann,x,2021-03-04\nbob,y,2021-03-05\n", ["event already", "--no-header"]),
        ("pandas.csv", b"0,1,2\n7,8,9\n7,8,10\n", ["pandas", "--header"]),
        ("dates.csv", b"u,i,ts\n1,2,04.03.2021\n", ["is not a time", "--time-format"]),
    ] {
        place.write(name, bytes);
        refused(&["inspect", &place.at(name)], &[&[name][..], &words].concat());
    }
    let (bare, pandas) = (place.at("bare.csv"), place.at("pandas.csv"));
    assert_eq!(json(&["inspect", &bare, "--no-header", "--json"])["events"], 2);
    let named = ["--header", "--src", "0", "--dst", "1", "--time", "2", "--json"];
    assert_eq!(json(&[&["inspect", &pandas], &named[..]].concat())["events"], 2);
    refused(&["inspect", &bare, "--time-format", "%Q"], &["--time-format", "strptime"]);
}
