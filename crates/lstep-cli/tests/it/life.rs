//! Journeys after training: newer events come, files move and grow, models are watched and go on
//! from their weights, runs are listed and compared.

use lstep_testkit::command::{Place, done, json, lstep, refused, text};
use serde_json::Value;
use std::fs;

/// A run on all but the last 300 events, which are in `later.csv`.
fn place() -> Place {
    let place = Place::new();
    let all = place.words("events.csv");
    let lines: Vec<&str> = all.lines().collect();
    place.write("events.csv", format!("{}\n", lines[..2701].join("\n")));
    place.write("later.csv", format!("{}\n{}\n", lines[0], lines[2701..].join("\n")));
    place.write("all.csv", all);
    place.trained("run", &["train.epochs=1"]);
    place
}

fn last_source(place: &Place) -> String {
    let events = place.words("all.csv");
    events.lines().last().expect("events").split(',').next().expect("a source").to_string()
}

fn score(place: &Place, model: &str, more: &[&str]) -> Value {
    let (run, source) = (place.at(model), last_source(place));
    json(&[&["score", &run, "--source", &source, "--json"], more].concat())
}

#[test]
fn an_update_answers_as_the_same_events_given_with_the_question() {
    let place = place();
    let (run, later, model) = (place.at("run"), place.at("later.csv"), place.at("model.lstep"));
    let numbers = |run: &str| json(&["evaluate", run, "--json"])["results"][0]["ap"].clone();
    let before = numbers(&run);
    done(&["export", &run, &model]);
    let expected = score(&place, "run", &["--events", &later]);
    assert_ne!(score(&place, "run", &[]), expected);
    for name in ["run", "model.lstep"] {
        let updated = json(&["update", &place.at(name), &later, "--json"]);
        assert_eq!((&updated["new_events"], &updated["events"]), (&300.into(), &3000.into()));
        assert_eq!(score(&place, name, &[]), expected, "{name}");
    }
    assert_eq!(numbers(&run), before, "the numbers of a run are about its own events");
    refused(&["update", &run, &later], &["later.csv", "since"]);
    assert_eq!(place.names("run/updates"), ["000001.csv"]);
    let again = place.at("again.lstep");
    done(&["export", &run, &again]);
    assert_eq!(score(&place, "again.lstep", &[]), expected);
}

#[test]
fn a_file_may_grow_at_its_end_and_move() {
    let place = place();
    let (run, later) = (place.at("run"), place.at("later.csv"));
    let expected = score(&place, "run", &["--events", &later]);
    let old = score(&place, "run", &[]);
    let numbers = || json(&["evaluate", &run, "--json"])["results"][0]["ap"].clone();
    let before = numbers();
    fs::rename(place.path("events.csv"), place.path("first.csv")).expect("moved");
    refused(
        &["score", &run, "--source", "1"],
        &["events.csv", "not there any more", "lstep update"],
    );
    done(&["update", &run, &place.at("first.csv")]);
    assert_eq!(score(&place, "run", &[]), old);
    let grown = json(&["update", &run, &place.at("all.csv"), "--json"]);
    assert_eq!(grown["new_events"], 300);
    assert!(grown["reads"].as_str().is_some_and(|file| file.ends_with("all.csv")), "{grown}");
    assert_eq!(score(&place, "run", &[]), expected);
    assert_eq!(numbers(), before);
    // Another beginning is another stream.
    let changed = place.words("all.csv").replacen("0.", "1.", 1);
    place.write("all.csv", changed);
    refused(&["evaluate", &run], &["other events"]);
}

#[test]
fn a_model_is_watched_beside_its_test_part_and_counting() {
    let place = place();
    let (run, later) = (place.at("run"), place.at("later.csv"));
    let asked = ["watch", &run, &later, "--questions", "100", "--json"];
    let output = lstep(&asked);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let worse = report["worse"].as_bool().expect("a verdict");
    assert_eq!(output.status.code(), Some(i32::from(worse)), "{}", text(&output.stderr));
    for part in ["new", "reference"] {
        let part = &report[part];
        let number = |key: &str| part[key].as_f64().unwrap_or_else(|| panic!("{key}: {part}"));
        assert!(number("low") <= number("mrr") && number("mrr") <= number("high"), "{part}");
        assert!((0.0..=1.0).contains(&number("repeats")), "{part}");
        assert_eq!(part["questions"], 100);
    }
    assert_eq!(report["new"]["events"], 300);
    assert_eq!(report["against_counting"].as_array().map(Vec::len), Some(4));
    let shown = text(&lstep(&asked[..3]).stdout);
    assert!(shown.contains("95 % interval") && shown.contains("The model"), "{shown}");
    // Watching changes nothing.
    assert_eq!(lstep(&asked).stdout, output.stdout);
    // An exported model answers the same, without a test part.
    done(&["export", &run, &place.at("model.lstep")]);
    let model = place.at("model.lstep");
    let exported = lstep(&["watch", &model, &later, "--questions", "100", "--json"]);
    let exported: Value = serde_json::from_slice(&exported.stdout).expect("JSON");
    assert_eq!(exported["new"], report["new"]);
    assert!(exported["reference"].is_null());
    refused(&["watch", &run, &place.at("all.csv")], &["all.csv", "since"]);
    refused(&["watch", &run, &later, "--questions", "0"], &["questions is 0"]);
}

#[test]
fn training_goes_on_from_the_weights_of_a_run() {
    let place = place();
    let (run, still) = (place.at("run"), place.at("still"));
    let keep = ["--set", "train.learning_rate=1e-30"];
    done(&[&["train", "--from", &run, "--out", &still], &keep[..]].concat());
    // The weights do not move. The state follows with them from the beginning, and in the run it
    // followed with weights that were still moving, so the last digits differ.
    let drawn = place.at("drawn");
    let events = place.events();
    let config = place.at("run/config.toml");
    done(&[&["train", &events, "--config", &config, "--out", &drawn], &keep[..]].concat());
    let distance = |model: &str| {
        let (one, other) =
            (score(&place, model, &["--top", "999"]), score(&place, "run", &["--top", "999"]));
        let number = |row: &Value| row["score"].as_f64().expect("a score");
        let rows = other.as_array().expect("rows");
        let difference = |row: &Value| {
            let same = one.as_array().expect("rows").iter();
            let same = same.into_iter().find(|other| other["destination"] == row["destination"]);
            (number(same.expect("the same candidates")) - number(row)).abs()
        };
        rows.iter().map(difference).fold(0.0, f64::max)
    };
    let (still_far, drawn_far) = (distance("still"), distance("drawn"));
    assert!(still_far < 1e-3 && still_far < 0.1 * drawn_far, "{still_far} {drawn_far}");
    let newer = place.at("newer");
    done(&["train", &place.at("all.csv"), "--from", &run, "--out", &newer]);
    assert_ne!(score(&place, "newer", &[]), score(&place, "run", &[]));
    let wider = ["--set", "model.position_width=9"];
    let other = place.at("other");
    refused(
        &[&["train", "--from", &run, "--out", &other], &wider[..]].concat(),
        &["best.safetensors", "that fit the model"],
    );
    let nowhere = place.at("nowhere");
    refused(&["train", "--from", &nowhere, "--out", &other], &["holds no run"]);
}

#[test]
fn runs_are_listed_and_compared() {
    let place = Place::new();
    place.trained("runs/a", &["train.epochs=1"]);
    place.trained("runs/deep/b", &["train.epochs=2", "train.seed=1"]);
    let listed = json(&["runs", &place.at("runs"), "--json"]);
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["stream_sha256"], listed[1]["stream_sha256"]);
    assert_eq!((&listed[1]["seed"], &listed[1]["epochs"]), (&1.into(), &2.into()));
    let shown = text(&done(&["runs", &place.at("runs")]).stdout);
    assert!(shown.contains("deep") && shown.contains("test random"), "{shown}");
    refused(&["runs", &place.at("runs/a/nowhere")], &["nowhere"]);

    let (a, b) = (place.at("runs/a"), place.at("runs/deep/b"));
    let compared = json(&["compare", &a, &b, "--json"]);
    assert_eq!(compared["same_events"], true);
    let first = &compared["questions"][0];
    assert_eq!((&first["same_negatives"], &first["metric"]), (&true.into(), &"ap".into()));
    let value = place.json("runs/a/report.json")["results"][0]["ap"].clone();
    assert_eq!(first["values"][0], value);
    let settings = compared["settings"].as_array().expect("a list");
    let keys: Vec<&str> = settings.iter().filter_map(|row| row["setting"].as_str()).collect();
    assert_eq!(keys, ["train.epochs", "train.seed"]);
    let shown = text(&done(&["compare", &a, &b]).stdout);
    assert!(shown.contains("train.seed"), "{shown}");
    refused(&["compare", &a, &b, "--out", &place.at("x")], &["--out", "finished runs"]);
}

#[test]
fn settings_and_words_explain_themselves() {
    let common = text(&done(&["settings"]).stdout);
    assert!(common.contains("train.epochs = 200 (epochs)"), "{common}");
    let model = json(&["settings", "lstep-pair", "--json"]);
    let keys = model.as_array().expect("a list").iter();
    let about = |row: &Value| row["about"].as_str().map_or(0, str::len);
    assert!(keys.clone().all(|row| about(row) > 8), "{model}");
    assert!(keys.clone().any(|row| row["key"] == "model.pair.history"));
    refused(&["settings", "nobody"], &["nobody", "lstep-pair"]);
    for words in [&["words"][..], &["help", "words"]] {
        assert!(text(&done(words).stdout).contains("mean of 1/rank"));
    }
}
