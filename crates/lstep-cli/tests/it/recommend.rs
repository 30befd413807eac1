//! Journeys of predictions into files: the likeliest destinations of all sources, for whatever
//! reads tables.

use lstep_testkit::command::{Place, done, json, lstep, refused, text};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The rows of a CSV file without quotes, by the names of its columns.
fn csv(place: &Place, name: &str) -> Vec<HashMap<String, String>> {
    let words = place.words(name);
    let mut lines = words.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), header.len(), "{line}");
        let named = header.iter().zip(cells);
        named.map(|(name, cell)| (name.to_string(), cell.to_string())).collect()
    };
    lines.map(row).collect()
}

#[test]
fn the_best_of_all_sources_go_into_a_file_of_any_format() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let (run, model) = (place.at("run"), place.at("model.lstep"));
    let all = |from: &str, out: &str, more: &[&str]| -> Value {
        let out = place.at(out);
        json(&[&["score", from, "--all", "--top", "3", "--out", &out, "--json"], more].concat())
    };
    let said = all(&run, "recs.csv", &[]);
    let rows = csv(&place, "recs.csv");
    let sources: HashSet<&String> = rows.iter().map(|row| &row["source"]).collect();
    assert_eq!(said["sources"], sources.len());
    assert_eq!((said["rows"].as_u64(), rows.len()), (Some(rows.len() as u64), 3 * sources.len()));
    let pairs = said["candidates"].as_u64().expect("a number") * sources.len() as u64;
    assert_eq!(said["pairs"], pairs);

    // The same as asking for one source.
    for source in sources.iter().take(5) {
        let alone = json(&["score", &run, "--source", source, "--top", "3", "--json"]);
        let found: Vec<_> = rows.iter().filter(|row| row["source"] == **source).collect();
        for (place, (row, alone)) in found.iter().zip(alone.as_array().expect("rows")).enumerate() {
            assert_eq!(row["rank"], (place + 1).to_string());
            assert_eq!(row["destination"], alone["destination"].as_str().expect("a name"));
            let score: f64 = row["score"].parse().expect("a number");
            assert_eq!(Some(score), alone["score"].as_f64());
            assert_ne!(row["destination"], row["source"]);
        }
    }

    // The other formats, and the exported model, hold the same rows.
    done(&["export", &run, &model]);
    all(&model, "recs.jsonl", &[]);
    let lines = place.words("recs.jsonl");
    assert_eq!(lines.lines().count(), rows.len());
    for (line, row) in lines.lines().zip(&rows) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["source"].to_string(), row["source"], "ids are integers as in the file");
        assert_eq!(line["destination"].to_string(), row["destination"]);
        assert_eq!(line["known"], true);
    }
    all(&model, "recs.parquet", &[]);
    assert!(place.bytes("recs.parquet").starts_with(b"PAR1"));
    let again = place.at("again.csv");
    refused(
        &["score", &run, "--all", "--out", &place.at("recs.csv")],
        &["recs.csv", "exists", "--force"],
    );
    refused(&["score", &run, "--all", "--out", &place.at("recs.xlsx")], &["recs.xlsx", ".parquet"]);
    refused(&["score", &run, "--all"], &["--out"]);
    refused(&["score", &run, "--all", "--top", "0", "--out", &again], &["top is 0"]);
    refused(&["score", &run, "--all", "--at", "0", "--out", &again], &["later"]);
    assert!(!place.holds("again.csv"));
    all(&run, "recs.csv", &["--force"]);
    assert_eq!(csv(&place, "recs.csv"), rows);
}

#[test]
fn sources_and_candidates_come_from_files_and_newcomers_are_marked() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let events = place.words("events.csv");
    let last: Vec<&str> = events.lines().last().expect("events").split(',').collect();
    place.write("users.csv", format!("source\n{}\nzoe\n{}\n", last[0], last[0]));
    place.write("shop.txt", format!("{}\n7\n8\n9\n10\n", last[1]));
    let (users, shop) = (place.at("users.csv"), place.at("shop.txt"));
    let arguments =
        ["score", &run, "--sources", &users, "--candidates", &shop, "--top", "9", "--explain"];
    let output = done(&[&arguments[..], &["--out", &place.at("recs.csv")]].concat());
    assert!(text(&output.stderr).contains("1 of 2 sources are named by no event"));
    let rows = csv_with_words(&place, "recs.csv");
    assert!(rows.iter().all(|row| row["known"] == (row["source"] != "zoe").to_string()));
    let asked: HashSet<&str> = [last[1], "7", "8", "9", "10"].into_iter().collect();
    for row in &rows {
        assert!(asked.contains(row["destination"].as_str()), "{row:?}");
        let met = events.lines().skip(1).filter(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            cells[0] == row["source"] && cells[1] == row["destination"]
        });
        let met = met.count();
        assert_eq!(row["met"], met.to_string(), "{row:?}");
        let words = if met == 0 { "never met" } else { "met " };
        assert!(row["why"].starts_with(words), "{row:?}");
    }
    let known = rows.iter().any(|row| row["destination"] == last[1] && row["source"] == last[0]);
    assert!(known, "{rows:?}");

    let new = place.at("new.csv");
    done(&[&arguments[..], &["--exclude-known", "--out", &new]].concat());
    let rows = csv_with_words(&place, "new.csv");
    let left_out = |row: &HashMap<String, String>| row["met"] == "0";
    assert!(!rows.is_empty() && rows.iter().all(left_out), "{rows:?}");

    refused(&["score", &run, "--source", "zoe"], &["zoe", "no event names it"]);
    place.write("empty.csv", "source\n");
    let empty = place.at("empty.csv");
    refused(
        &["score", &run, "--sources", &empty, "--out", &place.at("x.csv")],
        &["empty.csv", "has no ids"],
    );
    refused(&["score", &run, "--pairs", &users, "--explain"], &["--source"]);
}

/// As [`csv`], for rows whose last cell is in quotes or has no commas.
fn csv_with_words(place: &Place, name: &str) -> Vec<HashMap<String, String>> {
    let words = place.words(name);
    let mut lines = words.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| -> HashMap<String, String> {
        let cells = line.splitn(header.len(), ',');
        let named = header.iter().zip(cells);
        named.map(|(name, cell)| (name.to_string(), cell.trim_matches('"').to_string())).collect()
    };
    lines.map(row).collect()
}

#[test]
fn pairs_and_one_source_can_be_written_too() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    place.write("pairs.csv", "src,dst,time\n1,2,99999999999\n3,new,99999999999\n");
    let (pairs, out) = (place.at("pairs.csv"), place.at("scored.csv"));
    let output = lstep(&["score", &run, "--pairs", &pairs, "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = csv(&place, "scored.csv");
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0]["known"].as_str(), rows[1]["known"].as_str()), ("true", "false"));
    let source = &rows[0]["source"];
    let one = place.at("one.jsonl");
    done(&["score", &run, "--source", source, "--top", "2", "--explain", "--out", &one]);
    assert_eq!(place.words("one.jsonl").lines().count(), 2);
    let shown = done(&["score", &run, "--source", source, "--explain"]);
    assert!(text(&shown.stdout).contains("met by"), "{}", text(&shown.stdout));
}
