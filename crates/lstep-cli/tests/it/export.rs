//! Journeys of a model that travels: exported from its run, asked where its events are not, and
//! written again with newer ones.

use lstep_testkit::command::{Place, done, json, refused, text};
use lstep_testkit::small::LSTEP as SMALL;
use serde_json::Value;
use std::fs;

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The learned models, with settings that make them small enough for a test.
const MODELS: [(&str, &[&str]); 5] = [
    ("lstep", &["model.position_width=8", "model.snapshots=6", "model.recent=4"]),
    (
        "lstep-pair",
        &["model.position_width=8", "model.snapshots=6", "model.recent=4", "model.pair.history=8"],
    ),
    ("graphmixer", &["model.channels=8", "model.recent=4"]),
    ("tgn", &["model.recent=4"]),
    ("dygformer", &["model.channel_width=4", "model.longest=8", "model.patch=2"]),
];

fn train(place: &Place, model: &str, small: &[&str]) {
    let mut arguments =
        vec!["train".to_string(), place.at("events.csv"), "--out".into(), place.at(model)];
    arguments.extend(["--model", model, "--for", "benchmark"].map(String::from));
    let all = ["model.time_width=8", "model.node_width=8", "model.edge_width=4"];
    let run = ["protocol.step.events=50", "train.epochs=1", "train.ema=0.9"];
    for setting in all.iter().chain(small).chain(&run) {
        arguments.extend(["--set".to_string(), setting.to_string()]);
    }
    done(&strs(&arguments));
}

#[test]
fn an_exported_model_scores_as_its_run_without_the_runs_events() {
    let place = Place::new();
    let events = place.words("events.csv");
    let (header, last) =
        (events.lines().next().expect("a header"), events.lines().last().expect("events"));
    let last: Vec<&str> = last.split(',').collect();
    let (source, time): (&str, f64) = (last[0], last[2].parse().expect("a time"));
    let time = time as i64;
    let pairs: String = (0..6).map(|n| format!("{source},{n},{}\n", time + 900 + n)).collect();
    // One pair has a node that no event names.
    let newcomer = format!("{source},987654,{}\n", time + 901);
    fs::write(place.at("pairs.csv"), format!("src,dst,time\n{pairs}{newcomer}")).expect("written");
    // More than one step, out of order, with nodes that are new.
    let later = |rows: std::ops::Range<i64>, name: &str| {
        let row = |n: i64| {
            let time = time + n / 3 + if n % 7 == 0 { 1 } else { 0 };
            format!("{},{},{time},0.25,{n}\n", n % 11, 190 + n % 20)
        };
        let rows: String = rows.map(row).collect();
        fs::write(place.at(name), format!("{header}\n{rows}")).expect("written");
    };
    later(0..70, "later.csv");
    later(80..130, "latest.csv");
    let at = |name: &str| place.at(name);
    let (pairs, later, latest) = (at("pairs.csv"), at("later.csv"), at("latest.csv"));
    let questions: [&[&str]; 2] = [&["--source", source, "--top", "40"], &["--pairs", &pairs]];
    let ask = |from: &str, question: &[&str], more: &[&str]| {
        json(&[&["score", from, "--json"], question, more].concat())
    };

    for (model, small) in MODELS {
        train(&place, model, small);
        let (run, file) = (at(model), at(&format!("{model}.lstep")));
        let answers = |from: &str| {
            let mut answers = Vec::new();
            for question in questions {
                answers.push(ask(from, question, &[]));
                answers.push(ask(from, question, &["--events", &later]));
            }
            answers
        };
        let expected = answers(&run);
        assert_ne!(expected[0], expected[1], "{model}: events change what is known");
        let exported = json(&["export", &run, &file, "--json"]);
        assert_eq!((&exported["model"], &exported["events"]), (&model.into(), &3000.into()));
        assert_eq!(exported["bytes"].as_u64(), fs::metadata(&file).ok().map(|file| file.len()));

        // Neither the run nor its events are there any more.
        let (hidden, away) = (at("hidden.csv"), at("away"));
        fs::rename(at("events.csv"), &hidden).expect("moved");
        fs::rename(&run, &away).expect("moved");
        assert_eq!(answers(&file), expected, "{model}");

        // Events appended and written again score as events given with the question.
        let newer = at(&format!("{model}-newer.lstep"));
        let saved = done(&["score", &file, "--events", &later, "--save", &newer]);
        assert!(text(&saved.stdout).contains("3070 events"), "{}", text(&saved.stdout));
        for (number, question) in questions.into_iter().enumerate() {
            assert_eq!(ask(&newer, question, &[]), expected[2 * number + 1], "{model}");
        }
        // In place, with a question at the same time, which is answered with what is known then.
        let [top, _] = questions;
        let force = ["--events", &latest, "--save", &newer, "--force"];
        let answered = ask(&newer, top, &force);
        assert_eq!(ask(&newer, top, &[]), answered, "{model}");

        fs::rename(&hidden, at("events.csv")).expect("moved");
        fs::rename(&away, &run).expect("moved");
    }
}

#[test]
fn a_file_is_not_replaced_unless_that_is_wanted() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let (run, file) = (place.at("run"), place.at("model.lstep"));
    let words = text(&done(&["export", &run, &file]).stdout);
    assert!(words.contains("model.lstep: lstep after 3000 events"), "{words}");
    let before = place.bytes("model.lstep");
    refused(&["export", &run, &file], &["model.lstep exists", "--force"]);
    let events = place.at("events.csv");
    let save = ["score", &run, "--source", "1", "--events", &events, "--save", &file];
    refused(&save, &["model.lstep exists", "--force"]);
    done(&["export", &run, &file, "--force"]);
    assert!(place.bytes("model.lstep") == before, "the same run gives the same bytes");
    let help = text(&done(&["help", "export"]).stdout);
    assert!(help.contains("lstep export run model.lstep"), "{help}");

    // No folder, no run, no finished epoch.
    refused(&["export", &place.at("nowhere"), &place.at("x")], &["holds no run"]);
    refused(&["score", &place.at("nowhere"), "--source", "1"], &["holds no run"]);
    refused(&["export", &run, &place.at("nowhere/model.lstep")], &["nowhere"]);
    refused(&["score", &run, "--save", &place.at("x")], &["--events"]);
    refused(&["score", &file], &["--source"]);
}

#[test]
fn a_damaged_model_is_refused_and_says_so() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    done(&["export", &place.at("run"), &place.at("model.lstep")]);
    let (whole, damaged) = (place.bytes("model.lstep"), place.at("damaged.lstep"));
    let ask = |words: &[&str]| refused(&["score", &damaged, "--source", "1"], words);
    for length in [0, 1, 8, 60, 100, 110, whole.len() / 2, whole.len() - 1] {
        fs::write(&damaged, &whole[..length]).expect("written");
        ask(&["damaged.lstep", "not a whole checkpoint", "copy it again"]);
    }
    for part in 1..8 {
        let mut altered = whole.clone();
        altered[whole.len() * part / 8] ^= 1;
        fs::write(&damaged, altered).expect("written");
        ask(&["damaged.lstep", "SHA-256"]);
    }
    fs::write(&damaged, "source,destination,time\n1,2,3\n").expect("written");
    ask(&["damaged.lstep", "is not a checkpoint of lstep"]);
    let best = place.at("run/best.safetensors");
    refused(&["score", &best, "--source", "1"], &["checkpoint of training", "export the run"]);
}

#[test]
fn text_ids_dates_and_separated_sides_travel() {
    let place = Place::new();
    let day =
        |n: u32| format!("2024-{:02}-{:02}T{:02}:30:00Z", 1 + n / 280, 1 + n / 10 % 28, n % 10);
    let rows: String = (0..600).map(|n| format!("u{},{},{}\n", n % 9, n % 11, day(n))).collect();
    fs::write(place.at("dates.csv"), format!("who,whom,at\n{rows}")).expect("written");
    let (events, run) = (place.at("dates.csv"), place.at("run"));
    let mut arguments = vec!["train", &events, "--for", "benchmark", "--out", &run, "--bipartite"];
    arguments.extend(["--src", "who", "--dst", "whom", "--time", "at"]);
    for setting in SMALL.iter().chain(&["train.epochs=1"]) {
        arguments.extend(["--set", setting]);
    }
    done(&arguments);
    let file = place.at("model.lstep");
    done(&["export", &run, &file]);
    // With another unit, another offset, and ids that are all numbers on one side.
    let later = "who,whom,at\nu3,4,2024-05-01T00:00:00.250+01:00\n4,4,2024-05-02T00:00:00Z\n";
    fs::write(place.at("later.csv"), later).expect("written");
    fs::write(
        place.at("pairs.csv"),
        "who,whom,at\n4,4,2024-06-01\nu3,zoe,2024-06-01T00:00:00.5Z\n",
    )
    .expect("written");
    let (later, pairs) = (place.at("later.csv"), place.at("pairs.csv"));
    for question in
        [&["--source", "u3"][..], &["--source", "u3", "--at", "2024-07-01"], &["--pairs", &pairs]]
    {
        for more in [&[][..], &["--events", &later]] {
            let ask = |from| json(&[&["score", from, "--json"], question, more].concat());
            let answer = ask(&run);
            assert_eq!(ask(&file), answer);
            assert!(answer[0]["time"].as_str().is_some_and(|time| time.starts_with("2024-")));
        }
    }
    let numbers = "who,whom,at\nu3,4,1800000000\n";
    fs::write(place.at("numbers.csv"), numbers).expect("written");
    let numbers = place.at("numbers.csv");
    refused(
        &["score", &file, "--source", "u3", "--events", &numbers],
        &["numbers.csv", "\"1800000000\" is no time of the run's clock", "write times alike"],
    );
}

#[test]
fn features_of_nodes_are_needed_only_for_new_nodes() {
    let place = Place::new();
    let rows: String = (0..210).map(|node| format!("{node},{}\n", node % 7)).collect();
    fs::write(place.at("nodes.csv"), format!("id,f0\n{rows}")).expect("written");
    let (events, run, table) = (place.at("events.csv"), place.at("run"), place.at("nodes.csv"));
    let mut arguments =
        vec!["train", &events, "--for", "benchmark", "--out", &run, "--node-features", &table];
    for setting in SMALL.iter().chain(&["train.epochs=1"]) {
        arguments.extend(["--set", setting]);
    }
    done(&arguments);
    let file = place.at("model.lstep");
    done(&["export", &run, &file]);
    let known = place.words("events.csv");
    let (header, last) = (known.lines().next(), known.lines().last().expect("events"));
    let last: Vec<&str> = last.split(',').collect();
    let later = |name: &str, node: &str| -> String {
        let rows = format!("{},{node},99999999999,0.5,0.5\n", last[0]);
        fs::write(place.at(name), format!("{}\n{rows}", header.expect("a header")))
            .expect("written");
        place.at(name)
    };
    let (old, new) = (later("old.csv", last[1]), later("new.csv", "205"));
    let ask = |from: &str, events: &str| -> Value {
        json(&["score", from, "--source", last[0], "--events", events, "--json"])
    };
    let expected = ask(&run, &old);
    assert_eq!(ask(&file, &new), ask(&run, &new));
    fs::remove_file(&table).expect("removed");
    assert_eq!(ask(&file, &old), expected, "its nodes' features travel with the model");
    refused(
        &["score", &file, "--source", last[0], "--events", &new],
        &["new.csv", "0 features for each node", "have 1"],
    );
}
