//! Journeys of a trained model that is asked: about sources, pairs, and events that came after it
//! was trained.

use lstep_testkit::command::{Place, done, json, refused, text};
use lstep_testkit::small;
use serde_json::Value;
use std::fs;

#[test]
fn features_of_nodes_that_come_later_are_heard() {
    let place = Place::new();
    let nodes = |value: f64| {
        let rows: String = (0..210)
            .map(|node| {
                format!("{node},{}\n", if node >= 200 { value } else { f64::from(node % 7) })
            })
            .collect();
        fs::write(place.at("nodes.csv"), format!("id,f0\n{rows}")).expect("written");
    };
    nodes(1.0);
    let (events, run, features) = (place.at("events.csv"), place.at("run"), place.at("nodes.csv"));
    let mut arguments = vec![
        "train",
        &events,
        "--for",
        "benchmark",
        "--out",
        &run,
        "--node-features",
        &features,
        "--set",
        "train.epochs=1",
    ];
    small::LSTEP.iter().for_each(|setting| arguments.extend(["--set", setting]));
    done(&arguments);
    let known = place.words("events.csv");
    let last: Vec<&str> = known.lines().last().expect("events").split(',').collect();
    let later = format!(
        "{}\n{},205,99999999999,0.5,0.5\n",
        known.lines().next().expect("a header"),
        last[0]
    );
    fs::write(place.at("later.csv"), later).expect("written");
    let score = || {
        let later = place.at("later.csv");
        let asked =
            ["score", &run, "--source", last[0], "--events", &later, "--top", "1000", "--json"];
        let scored = json(&asked);
        let rows = scored.as_array().expect("a list");
        rows.iter().find(|row| row["destination"] == "205").expect("the new node is a candidate")["score"].clone()
    };
    let before = score();
    nodes(5.0);
    assert_ne!(score(), before);
}

#[test]
fn times_and_ids_may_be_negative() {
    let place = Place::new();
    let rows: String =
        (0..600).map(|n| format!("{},{},{}\n", -1 - n % 9, 9 + n % 11, n - 1000)).collect();
    fs::write(place.at("negative.csv"), format!("source,destination,time\n{rows}"))
        .expect("written");
    let (events, run) = (place.at("negative.csv"), place.at("run"));
    let mut arguments =
        vec!["train", &events, "--for", "benchmark", "--out", &run, "--set", "train.epochs=1"];
    small::LSTEP.iter().for_each(|setting| arguments.extend(["--set", setting]));
    done(&arguments);
    let scored = json(&["score", &run, "--source", "-5", "--at", "-300", "--top", "3", "--json"]);
    assert_eq!(
        (scored.as_array().map(Vec::len), &scored[0]["time"]),
        (Some(3), &Value::from("-300")),
        "{scored}"
    );
}

#[test]
fn a_trained_model_answers_about_sources_pairs_and_newer_events() {
    let place = Place::new();
    place.trained("run", &["train.epochs=2"]);
    let run = place.at("run");
    let events = place.words("events.csv");
    let last: Vec<&str> = events.lines().last().expect("events").split(',').collect();
    let (source, time): (&str, f64) = (last[0], last[2].parse().expect("a time"));

    let top = json(&["score", &run, "--source", source, "--top", "3", "--json"]);
    let top = top.as_array().expect("a list");
    assert_eq!(top.len(), 3);
    let score = |row: &Value| row["score"].as_f64().expect("a number");
    assert!(top.windows(2).all(|rows| score(&rows[0]) >= score(&rows[1])), "{top:?}");
    for row in top {
        assert_eq!(row["source"], source);
        assert!(row.get("probability").is_none(), "a score that nobody calibrated is none: {row}");
    }

    // Pairs in an order that is not that of scores, one of them twice.
    let names = |place: usize| top[place]["destination"].as_str().expect("a name");
    let later = [time + 1.0, time + 1.0, time + 1.0, time + 2.0];
    let asked: Vec<(&str, f64)> = [1, 0, 2, 1].into_iter().map(names).zip(later).collect();
    let rows: String =
        asked.iter().map(|(name, time)| format!("{source},{name},{time}\n")).collect();
    fs::write(place.at("pairs.csv"), format!("src,dst,time\n{rows}")).expect("written");
    let scored = json(&["score", &run, "--pairs", &place.at("pairs.csv"), "--json"]);
    let scored = scored.as_array().expect("a list");
    let answered: Vec<(&str, f64)> = scored
        .iter()
        .map(|row| {
            (row["destination"].as_str().expect("a name"), row["time"].as_str().expect("a time"))
        })
        .map(|(name, time)| (name, time.parse().expect("a number")))
        .collect();
    assert_eq!(answered, asked);
    let alone = json(&[
        "score",
        &run,
        "--source",
        source,
        "--at",
        &format!("{}", time + 1.0),
        "--top",
        "9999",
        "--json",
    ]);
    let same = alone.as_array().expect("a list").iter().find(|row| row["destination"] == names(1));
    assert_eq!(
        same.map(score),
        Some(score(&scored[0])),
        "a pair scores as it does among candidates"
    );

    // One more event of the source: the answer about it changes.
    let header = events.lines().next().expect("a header");
    let features = &last[3..].join(",");
    fs::write(
        place.at("more.csv"),
        format!("{header}\n{source},{},{},{features}\n", names(2), time + 0.5),
    )
    .expect("written");
    let at = format!("{}", time + 10.0);
    let ask = |more: &[&str]| {
        json(&[&["score", &run, "--source", source, "--at", &at, "--json"], more].concat())
    };
    let more = place.at("more.csv");
    assert_eq!(ask(&[]), ask(&[]));
    assert_ne!(ask(&[]), ask(&["--events", &more]));

    refused(&["score", &run, "--source", "nobody"], &["nobody"]);
    refused(&["score", &run, "--source", source, "--at", "soon"], &["soon"]);

    // The state has seen what the question may not: neither a time nor a pair of the past is
    // answered.
    refused(&["score", &run, "--source", source, "--at", last[2]], &[last[2], "later"]);
    fs::write(
        place.at("past.csv"),
        format!("src,dst,time\n{source},{},{}\n", names(0), time - 1.0),
    )
    .expect("written");
    refused(&["score", &run, "--pairs", &place.at("past.csv")], &["past.csv", "time", "later"]);
    refused(
        &["score", &run, "--source", source, "--events", &place.at("events.csv")],
        &["events.csv", "since"],
    );
    fs::write(
        place.at("bare.csv"),
        format!("src,dst,time\n{source},{},{}\n", names(0), time + 1.0),
    )
    .expect("written");
    refused(
        &["score", &run, "--source", source, "--events", &place.at("bare.csv")],
        &["bare.csv", "features", "0", "2"],
    );
}

#[test]
fn events_given_later_score_as_events_of_the_file() {
    let place = Place::new();
    // Sixty times with fifty events each, so that a step at every time is not a step after every
    // event.
    let events = place.words("events.csv");
    let mut lines = events.lines();
    let header = lines.next().expect("a header");
    let coarse: Vec<String> = (lines.enumerate())
        .map(|(number, line)| {
            let mut fields: Vec<&str> = line.split(',').collect();
            let time = (number / 50).to_string();
            fields[2] = &time;
            fields.join(",")
        })
        .collect();
    let first = coarse.len() - 100;
    for (name, rows) in
        [("all.csv", &coarse[..]), ("known.csv", &coarse[..first]), ("later.csv", &coarse[first..])]
    {
        fs::write(place.at(name), format!("{header}\n{}\n", rows.join("\n"))).expect("written");
    }
    for name in ["all", "known"] {
        let (events, run) = (place.at(&format!("{name}.csv")), place.at(name));
        let mut arguments = vec!["train", &events, "--for", "benchmark", "--out", &run];
        // Weights that do not move are the same whatever part of the stream is for training.
        let still =
            ["protocol.step=\"distinct_time\"", "train.learning_rate=1e-30", "train.epochs=1"];
        let small =
            small::LSTEP.iter().filter(|setting| !setting.starts_with("protocol")).chain(&still);
        small.for_each(|setting| arguments.extend(["--set", setting]));
        done(&arguments);
    }
    let (all, known, later) = (place.at("all"), place.at("known"), place.at("later.csv"));
    let source = coarse[first + 60].split(',').next().expect("a source");
    let ask = |run: &str, more: &[&str]| {
        json(
            &[&["score", run, "--source", source, "--at", "61", "--top", "50", "--json"], more]
                .concat(),
        )
    };
    assert_eq!(ask(&all, &[]), ask(&known, &["--events", &later]));
    assert_ne!(ask(&all, &[]), ask(&known, &[]));
}

#[test]
fn pairs_are_read_with_the_columns_of_the_run() {
    let place = Place::new();
    let events = place.words("events.csv");
    let renamed = events.replacen(events.lines().next().expect("a header"), "who,whom,at,f0,f1", 1);
    fs::write(place.at("renamed.csv"), &renamed).expect("written");
    let (file, run) = (place.at("renamed.csv"), place.at("run"));
    let mut arguments = vec![
        "train",
        &file,
        "--for",
        "benchmark",
        "--out",
        &run,
        "--src",
        "who",
        "--dst",
        "whom",
        "--time",
        "at",
    ];
    small::LSTEP
        .iter()
        .chain(&["train.epochs=1"])
        .for_each(|setting| arguments.extend(["--set", setting]));
    done(&arguments);
    let last: Vec<&str> = renamed.lines().last().expect("events").split(',').collect();
    fs::write(place.at("pairs.csv"), format!("who,whom,at\n{},{},9999999999\n", last[0], last[1]))
        .expect("written");
    let scored = json(&["score", &run, "--pairs", &place.at("pairs.csv"), "--json"]);
    assert_eq!(scored.as_array().map(Vec::len), Some(1), "{scored}");
    let newcomer =
        format!("who,whom,at\n{},{},9999999999\n{},987654,9999999999\n", last[0], last[1], last[0]);
    fs::write(place.at("pairs.csv"), newcomer).expect("written");
    let output = done(&["score", &run, "--pairs", &place.at("pairs.csv"), "--json"]);
    assert!(text(&output.stderr).contains("1 of 2 pairs"), "{}", text(&output.stderr));
    let both: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&both[0], &both[1]["known"]), (&scored[0], &Value::Bool(false)), "{both}");
    assert!(
        both[1]["score"].as_f64().is_some_and(f64::is_finite) && both[1]["destination"] == "987654",
        "{both}"
    );
    fs::write(place.at("pairs.csv"), format!("who,whom\n{},{}\n", last[0], last[1]))
        .expect("written");
    refused(
        &["score", &run, "--pairs", &place.at("pairs.csv")],
        &["no column \"at\"", "who, whom and at"],
    );
    fs::write(place.at("pairs.csv"), format!("who,whom,at\n{},{},soon\n", last[0], last[1]))
        .expect("written");
    refused(
        &["score", &run, "--pairs", &place.at("pairs.csv")],
        &["\"soon\" is not a time", "ISO 8601"],
    );
}

#[test]
fn a_run_can_be_asked_fewer_questions_against_more_candidates() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let ask = |more: &[&str]| {
        let report = json(&[&["evaluate", &run, "--negatives", "random", "--json"], more].concat());
        report["results"][0].clone()
    };
    let (all, some) = (ask(&[]), ask(&["--questions", "10", "--per-event", "5"]));
    assert!(all["events"].as_u64() > Some(10) && all["mrr"].is_null(), "{all}");
    assert_eq!((some["events"].as_u64(), some["pairs"].as_u64()), (Some(10), Some(60)), "{some}");
    assert!(some["mrr"].as_f64() > Some(0.0), "{some}");
    let whole = json(&["evaluate", &run, "--negatives", "random", "--per-event", "5", "--json"]);
    let per_event = |settings: &Value| settings["per_event"].as_u64();
    assert_eq!(per_event(&whole["protocol_settings"]), Some(5), "{whole}");
    assert_eq!(per_event(&whole["settings"]["protocol"]), Some(1), "as it was trained: {whole}");
    refused(&["evaluate", &run, "--questions", "0"], &["questions is 0"]);
    let (events, other) = (place.at("events.csv"), place.at("other"));
    let mut arguments =
        vec!["train", &events, "--out", &other, "--protocol", "dyglib", "--set", "train.epochs=1"];
    small::LSTEP
        .iter()
        .filter(|setting| setting.starts_with("model"))
        .for_each(|key| arguments.extend(["--set", key]));
    done(&arguments);
    refused(&["evaluate", &other, "--questions", "10"], &["protocol is dyglib", "--questions"]);
}
