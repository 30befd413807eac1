//! Journeys through training, as the real binary makes them: a run, its folder, stops and kills,
//! refusals, audits.

use lstep_testkit::command::{Place, command, done, json, lstep, refused, text, without_seconds};
use lstep_testkit::small;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_run_leaves_settings_weights_metrics_and_a_report() {
    let place = Place::new();
    let output = place.trained("run", &["train.epochs=3"]);
    let said = text(&output.stderr);
    assert_eq!(
        said.lines().filter(|line| line.starts_with("epoch")).count(),
        3,
        "a line for each epoch: {said}"
    );

    let lines: Vec<Value> = place
        .words("run/metrics.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    for (place, line) in lines.iter().enumerate() {
        assert_eq!(line["epoch"], place + 1);
        for key in [
            "train_seconds",
            "train_events_per_second",
            "validation_seconds",
            "validation_pairs_per_second",
        ] {
            assert!(
                line[key].as_f64().is_some_and(|value| value > 0.0 && value.is_finite()),
                "{key}: {line}"
            );
        }
        for key in ["loss", "validation_ap", "validation_auc"] {
            assert!(line[key].as_f64().is_some_and(f64::is_finite), "{key}: {line}");
        }
    }
    assert!(lines[2]["loss"].as_f64() < lines[0]["loss"].as_f64(), "the loss falls: {lines:?}");

    // The settings are complete: those that were never named are there, too.
    let settings = place.words("run/config.toml");
    for key in [
        "events = ",
        "split = ",
        "visibility = ",
        "alpha_neg = ",
        "scope = ",
        "patience = ",
        "learning_rate = ",
    ] {
        assert!(settings.contains(key), "{key} is missing:\n{settings}");
    }
    done(&[
        "train",
        &place.at("events.csv"),
        "--config",
        &place.at("run/config.toml"),
        "--out",
        &place.at("again"),
    ]);
    for file in ["config.toml", "best.safetensors", "last.safetensors"] {
        assert!(
            place.bytes(&format!("run/{file}")) == place.bytes(&format!("again/{file}")),
            "{file} differs"
        );
    }

    let report: Value = serde_json::from_str(&place.words("run/report.json")).expect("JSON");
    assert_eq!(report["results"].as_array().map(Vec::len), Some(3));
    let evaluated = json(&["evaluate", &place.at("run"), "--json"]);
    let compared = report["against_counting"].as_array().expect("a list");
    assert_eq!(compared.len(), 3);
    for against in compared {
        let number = |key: &str| against[key].as_f64().expect("a number");
        assert!(number("low") <= number("high"), "{against}");
        let verdict = if number("low") > 0.0 {
            "better"
        } else if number("high") < 0.0 {
            "worse"
        } else {
            "not-told-apart"
        };
        assert_eq!(against["verdict"], verdict);
    }
    assert_eq!(without_seconds(evaluated), without_seconds(report));
}

#[test]
fn own_events_are_ranked_and_the_run_ends_with_a_verdict() {
    let place = Place::new();
    let (events, run) = (place.events(), place.at("run"));
    let mut arguments = vec!["train", &events, "--out", &run, "--epochs", "1", "--seed", "3"];
    let small = ["protocol.questions=60", "train.select_questions=40"];
    small::LSTEP.iter().chain(&small).for_each(|setting| arguments.extend(["--set", setting]));
    let shown = text(&done(&arguments).stdout);
    for word in ["hits@10", "Verdict: ", "95 % interval", "Best counting: ", "Next: ", "lstep "] {
        assert!(shown.contains(word), "{word} is missing:\n{shown}");
    }
    let report = place.json("run/report.json");
    let settings = &report["settings"];
    assert_eq!((&settings["purpose"], &settings["train"]["seed"]), (&"ranking".into(), &3.into()));
    assert_eq!(settings["train"]["select_by"], "mrr");
    assert_eq!(report["model"], "lstep-pair");
    let rows = report["results"].as_array().expect("a list");
    assert_eq!(rows.len(), 1, "all destinations, and no other negatives");
    for key in ["mrr", "hits_1", "hits_10", "ndcg_10"] {
        assert!(rows[0][key].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{key}");
    }
    let mrr = format!("{:.4}", rows[0]["mrr"].as_f64().expect("a number"));
    assert!(report["summary"]["verdict"].as_str().is_some_and(|said| said.contains(&mrr)));
    assert!(report["baselines"].as_array().is_some_and(|rows| rows.len() > 3), "{report}");
    assert_eq!(
        without_seconds(json(&["evaluate", &run, "--json"])),
        without_seconds(report),
        "evaluated again"
    );
    refused(
        &["train", &events, "--for", "ranking", "--protocol", "dyglib", "--out", "no"],
        &["dyglib"],
    );
}

#[test]
fn the_events_named_on_the_command_line_are_those_that_are_read() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    place.generate("other.csv", "5");
    let other = place.at("other.csv");
    done(&[
        "train",
        &other,
        "--config",
        &place.at("run/config.toml"),
        "--out",
        &place.at("second"),
    ]);
    assert!(
        place.words("second/config.toml").contains("other.csv"),
        "{}",
        place.words("second/config.toml")
    );
}

/// Waits until the child says that it trains: from then on it listens to Ctrl-C.
fn wait_for_training(child: &mut Child) -> BufReader<std::process::ChildStderr> {
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("training events") {
        line.clear();
        assert!(said.read_line(&mut line).expect("UTF-8") > 0, "it ended before it trained");
    }
    said
}

/// Long enough to be hit in its middle.
const LONGER: [&str; 4] =
    ["train.epochs=40", "train.patience=40", "train.learning_rate=0.003", "train.average=0.9"];

#[test]
fn a_run_killed_again_and_again_ends_with_the_bytes_of_an_undisturbed_one() {
    let place = Place::new();
    let began = Instant::now();
    place.trained("calm", &LONGER);
    let whole = began.elapsed().as_secs_f64();

    let begin = place.train("killed", &LONGER);
    let resume = ["train".to_string(), "--resume".into(), place.at("killed")];
    let mut kills = 0;
    // Moments of a fixed sequence, spread over the first third of a run; where they fall in it
    // differs with the machine. A run that is faster than the calm one was is killed after four
    // epochs, so it is not over before it could be killed.
    let mut moment = 0.37f64;
    let epochs = || {
        let metrics = fs::read_to_string(place.path("killed/metrics.jsonl")).unwrap_or_default();
        metrics.lines().count()
    };
    loop {
        let arguments = if place.holds("killed/config.toml") { resume.as_slice() } else { &begin };
        let mut child = command(&[])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("runs");
        if kills < 8 {
            moment = (moment + 0.618_034).fract();
            let wait = Duration::from_secs_f64(0.02 + whole * moment / 3.0);
            let (started, before) = (Instant::now(), epochs());
            while started.elapsed() < wait && epochs() < before + 4 {
                std::thread::sleep(Duration::from_millis(2));
            }
            if child.try_wait().expect("a child").is_none() {
                child.kill().expect("killed");
                child.wait().expect("a child");
                kills += 1;
                continue;
            }
        }
        assert!(child.wait().expect("a child").success(), "resumed after {kills} kills");
        break;
    }
    assert!(kills >= 2, "the run was over before it could be killed: {kills} kills");
    same_end(&place, "calm", "killed");
}

#[test]
fn a_run_made_longer_ends_as_if_it_had_been_begun_so() {
    let place = Place::new();
    let settings = ["train.patience=2", "train.learning_rate=0.003"];
    place.trained("long", &[&settings[..], &["train.epochs=6"]].concat());
    place.trained("made", &[&settings[..], &["train.epochs=2"]].concat());
    let made = place.at("made");
    for (key, words) in [
        ("train.epochs=1", "longer"),
        ("train.patience=1", "longer"),
        ("train.seed=1", "anew"),
        ("model.recent=9", "anew"),
        ("train.epoch=9", "epoch"),
    ] {
        refused(&["train", "--resume", &made, "--set", key], &[key, words]);
    }
    assert_eq!(
        place.words("made/metrics.jsonl").lines().count(),
        2,
        "nothing of that changed the run"
    );
    done(&["train", "--resume", &made, "--set", "train.epochs=6"]);
    same_end(&place, "long", "made");
}

#[test]
fn a_run_stopped_by_a_signal_says_how_to_go_on_and_ends_with_the_same_bytes() {
    let place = Place::new();
    // With attention, whose weights have to be there after a stop like all others.
    let settings = [&LONGER[..], &["model.aggregation=attention"]].concat();
    place.trained("calm", &settings);

    let mut arguments = place.train("stopped", &settings);
    let mut stops = 0;
    // Under `nohup` a hangup is ignored, and so it is by what it starts.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    let hangup = if ignored & 1 == 0 { ("-HUP", 129) } else { ("-TERM", 143) };
    let signals = [(5, ("-INT", 130)), (60, ("-TERM", 143)), (110, hangup)];
    for (pause, (signal, expected)) in signals {
        let mut child = command(&[])
            .args(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        let mut said = wait_for_training(&mut child);
        std::thread::sleep(Duration::from_millis(pause));
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .expect("kill runs");
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("UTF-8");
        let code = child.wait().expect("a child").code();
        arguments = vec!["train".into(), "--resume".into(), place.at("stopped")];
        if code == Some(0) {
            assert!(place.holds("stopped/report.html"), "{rest}");
            break;
        }
        // In training, in validation, or while the trained model is asked.
        assert_eq!(code, Some(expected), "{rest}");
        assert!(sent.success());
        assert!(rest.contains(&format!("lstep train --resume {}", place.at("stopped"))), "{rest}");
        stops += 1;
    }
    assert!(stops >= 1, "the run was over before it could be stopped");
    done(&arguments);
    same_end(&place, "calm", "stopped");
}

/// Weights, moments, state and notes to the byte; metrics but for the clock; the report's numbers.
fn same_end(place: &Place, left: &str, right: &str) {
    for file in ["config.toml", "best.safetensors", "last.safetensors"] {
        assert!(
            place.bytes(&format!("{left}/{file}")) == place.bytes(&format!("{right}/{file}")),
            "{file} differs"
        );
    }
    let metrics = |run: &str| -> Vec<[Value; 5]> {
        let lines = place.words(&format!("{run}/metrics.jsonl"));
        let line = |line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            ["epoch", "loss", "validation_ap", "validation_auc", "improved"]
                .map(|key| line[key].clone())
        };
        lines.lines().map(line).collect()
    };
    assert_eq!(metrics(left), metrics(right));
    let report = |run: &str| -> Value {
        let report =
            serde_json::from_str(&place.words(&format!("{run}/report.json"))).expect("JSON");
        without_seconds(report)
    };
    assert_eq!(report(left), report(right));
}

#[test]
fn a_checkpoint_that_is_not_as_it_was_written_is_refused_by_name() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    for (file, reader) in [
        ("best.safetensors", ["evaluate", run.as_str()].as_slice()),
        ("best.safetensors", &["score", &run, "--source", "1"]),
        ("best.safetensors", &["audit", &run]),
        ("last.safetensors", &["train", "--resume", &run]),
    ] {
        let path = Path::new(&run).join(file);
        let whole = fs::read(&path).expect("read");
        let mut altered = whole.clone();
        altered[whole.len() * 2 / 3] ^= 1;
        for bytes in
            [&altered[..], &whole[..whole.len() - 1], &whole[..whole.len() / 2], &whole[..9], &[]]
        {
            fs::write(&path, bytes).expect("written");
            refused(reader, &[file]);
        }
        fs::remove_file(&path).expect("removed");
        refused(reader, &[file]);
        fs::write(&path, &whole).expect("written");
    }
    done(&["evaluate", &run]);
}

#[test]
fn a_run_is_not_continued_on_other_events() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let events = place.words("events.csv");
    let mut lines: Vec<&str> = events.lines().collect();
    let dropped = lines.pop().expect("an event");
    let cells: Vec<&str> = dropped.split(',').collect();
    let shorter = lines.join("\n") + "\n";
    let (last, before) = (cells.len() - 1, cells[..cells.len() - 1].join(","));
    let other_feature =
        format!("{shorter}{before},{}\n", cells[last].parse::<f64>().expect("a feature") + 1.0);
    let other_name = format!("{shorter}{}\n", dropped.replacen(cells[1], "999999", 1));
    for (what, changed) in
        [("an event less", &shorter), ("a feature", &other_feature), ("a name", &other_name)]
    {
        assert_ne!(changed, &events, "{what}");
        fs::write(place.at("events.csv"), changed).expect("written");
        refused(&["evaluate", &run], &["best.safetensors", "other events"]);
        refused(&["train", "--resume", &run], &["last.safetensors", "other events"]);
    }
}

#[test]
fn settings_and_folders_that_cannot_be_are_refused() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    refused(&place.train("run", &[]), &[&place.at("run"), "--resume"]);
    for (setting, word) in [
        ("model.recnt=9", "recnt"),
        ("train.epoch=9", "epoch"),
        ("protocol.stepp=9", "stepp"),
        ("modle.recent=9", "modle"),
        ("model.recent=0", "recent"),
        ("model.variant=half", "half"),
        ("model.aggregation=mean", "mean"),
        ("train.epochs=0", "epochs"),
        ("epochs", "key=value"),
    ] {
        refused(&place.train("fresh", &[setting]), &[word]);
        assert!(!place.holds("fresh"), "{setting}: nothing is left behind");
    }
    let fresh = place.at("fresh");
    refused(
        &["train", &place.at("events.csv"), "--preset", "wikipedai", "--out", &fresh],
        &["wikipedai", "wikipedia"],
    );
    refused(&["train", "--resume", &fresh], &["fresh"]);
    fs::create_dir(place.path("empty")).expect("a folder");
    refused(&["evaluate", &place.at("empty")], &["config.toml"]);
}

#[test]
fn a_process_among_several_of_mpi_is_told_which_binary_shares_a_training() {
    let place = Place::new();
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"] {
        let mut among_four = command(&["train", &place.events(), "--out", &place.at("run")]);
        among_four.env(variable, "4");
        refused(&mut among_four, &["one of 4 processes", "MPI", "lstep-mpi train", "--worker"]);
        assert!(!place.holds("run"), "nothing is left behind");
    }
    let settings = ["train.epochs=1"];
    let mut alone = command(&[]);
    alone.args(place.train("run", &settings)).env("OMPI_COMM_WORLD_SIZE", "1");
    done(&mut alone);
}

#[test]
fn a_file_of_settings_does_not_silently_go_before_a_flag() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let (events, settings, fresh) =
        (place.at("events.csv"), place.at("run/config.toml"), place.at("fresh"));
    let again = ["train", &events, "--config", &settings, "--out", &fresh];
    refused(
        &[&again[..], &["--model", "tgn"]].concat(),
        &["--model is tgn", "config.toml", "lstep"],
    );
    refused(
        &[&again[..], &["--protocol", "dyglib"]].concat(),
        &["--protocol is dyglib", "config.toml", "stream"],
    );
    assert!(!place.holds("fresh"));
    done(&[&again[..], &["--model", "lstep", "--protocol", "stream"]].concat());
    // A fault of the file is the file's.
    fs::write(place.at("my.toml"), "[model]\nname = \"lstep-pair\"\nrecnt = 3\n").expect("written");
    let mine = [
        "train",
        &events,
        "--config",
        &place.at("my.toml"),
        "--set",
        "train.epochs=1",
        "--out",
        &place.at("other"),
    ];
    refused(&mine, &["my.toml", "recnt"]);
}

#[test]
fn steps_too_large_for_a_small_stream_are_named_with_the_key_that_helps() {
    let place = Place::new();
    let few: Vec<String> = place.words("events.csv").lines().take(31).map(String::from).collect();
    fs::write(place.at("few.csv"), few.join("\n")).expect("written");
    let (events, run) = (place.at("few.csv"), place.at("run"));
    refused(&["train", &events, "--out", &run], &["protocol.step", "200", "--set protocol.step=2"]);
    done(&["train", &events, "--out", &run, "--step", "2", "--epochs", "1"]);
}

#[test]
fn a_kind_of_question_that_a_stream_cannot_be_asked_is_left_out_of_the_report() {
    let place = Place::new();
    // One source that meets everybody in every step leaves no pair of the past that did not happen.
    let rows: String = (0..600).map(|n| format!("0,{},{n}\n", 1 + (n * 7 + n / 13) % 20)).collect();
    fs::write(place.at("one.csv"), format!("source,destination,time\n{rows}")).expect("written");
    let (events, run) = (place.at("one.csv"), place.at("run"));
    let mut arguments = vec![
        "train",
        &events,
        "--out",
        &run,
        "--protocol",
        "dyglib",
        "--set",
        "train.epochs=1",
        "--json",
    ];
    let small = small::LSTEP.iter().filter(|setting| !setting.starts_with("protocol"));
    small.chain(&["protocol.step=20"]).for_each(|setting| arguments.extend(["--set", setting]));
    let output = done(&arguments);
    let said = text(&output.stderr);
    assert!(said.contains("Left out of the report: historical negatives"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let kinds: Vec<&Value> =
        report["results"].as_array().expect("a list").iter().map(|row| &row["negatives"]).collect();
    assert_eq!(kinds, ["random", "random"], "in both settings");
    assert!(place.words("run/report.html").contains("random negatives"));
}

#[test]
fn a_grid_that_asks_what_cannot_be_asked_says_so_before_it_trains() {
    let place = Place::new();
    let rows: String =
        (0..900).map(|n| format!("{},{},{n}\n", n % 15, 15 + (n * 7 + n / 15) % 15)).collect();
    fs::write(place.at("known.csv"), format!("source,destination,time\n{rows}")).expect("written");
    let (events, grid) = (place.at("known.csv"), place.at("grid"));
    let mut arguments =
        vec!["compare", &events, "--out", &grid, "--models", "lstep", "--seeds", "0"];
    arguments.extend(["--settings", "transductive,inductive", "--set", "train.epochs=1"]);
    small::LSTEP.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = lstep(&arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("inductive") && said.contains("protocol.held_out"), "{said}");
    assert!(!place.holds("grid/runs/known/lstep/seed-0/metrics.jsonl"), "nothing was trained");
}

#[test]
fn flags_that_a_run_settles_are_refused_by_name_and_the_others_are_heard() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    for flag in [
        ["--model", "edgebank"],
        ["--memory", "unlimited"],
        ["--decay", "0.9"],
        ["--dataset", "uci"],
        ["--protocol", "dyglib"],
        ["--protocol", "stream"],
        ["--step", "200"],
        ["--visibility", "strict"],
        ["--held-out", "0.1"],
        ["--seed", "3"],
        ["--tgb-negatives", "folder"],
        ["--write-negatives", "folder"],
        ["--read-negatives", "folder"],
        ["--src", "a"],
        ["--node-features", "nodes.csv"],
    ] {
        refused(
            &["evaluate", &run, flag[0], flag[1]],
            &[flag[0], &run, "config.toml", "lstep train"],
        );
    }
    refused(&["evaluate", &run, "--split", "0.7,0.85"], &["--split", &run]);
    refused(&["evaluate", &run, "--sort", "--protocol", "tgb"], &["--protocol", "--sort"]);
    let report =
        json(&["evaluate", &run, "--negatives", "random", "--part", "validation,test", "--json"]);
    assert_eq!(report["results"].as_array().map(Vec::len), Some(2), "{report}");
    refused(
        &["evaluate", &place.at("events.csv"), "--protocol", "tgb", "--negatives", "random"],
        &["--negatives", "tgb"],
    );
}

#[test]
fn training_goes_on_when_nobody_reads_what_it_says() {
    let place = Place::new();
    let arguments = place.train("run", &["train.epochs=3"]);
    let mut child = command(&[])
        .args(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    assert!(place.holds("run/report.json"));
}

#[test]
fn an_audit_names_every_law_says_what_it_asked_and_finds_them_kept() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let shown = text(&done(&["audit", &run, "--events", "1000"]).stdout);
    assert_eq!(shown.lines().filter(|line| line.contains("kept")).count(), 14, "{shown}");
    assert!(!shown.contains("BROKEN"), "{shown}");
    let found = json(&["audit", &run, "--events", "1000", "--json"]);
    let laws = found["laws"].as_array().expect("a list");
    assert_eq!(laws.len(), 14);
    for law in laws {
        assert!(shown.contains(law["says"].as_str().expect("a sentence")), "{shown}");
        assert!(law["compared"].as_u64() > Some(0) && law["changed"] == 0, "{law}");
    }
    assert_eq!(found["questions"]["evaluated"], 300);
    // Another round asks about other events, and the same seed asks the same again.
    let two = json(&["audit", &run, "--events", "1000", "--rounds", "2", "--json"]);
    assert!(two["questions"]["rows"].as_u64() > found["questions"]["rows"].as_u64());
    let seeds = ["audit", &run, "--events", "1000", "--seed", "0", "--json"];
    assert_eq!(json(&seeds)["questions"], found["questions"]);
    assert_eq!(found["breaches"], Value::Array(Vec::new()));
    assert!(found.get("released_leak").is_none(), "only when it is asked for");
}

#[test]
fn the_released_leak_is_shown_beside_honest_numbers_and_leaves_the_run_as_it_was() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let files = || -> Vec<(std::ffi::OsString, Vec<u8>)> {
        let entries = fs::read_dir(&run).expect("a folder").map(|entry| entry.expect("an entry"));
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("a file"))).collect()
    };
    let before = files();
    let found = json(&["audit", &run, "--events", "1000", "--show-released-leak", "--json"]);
    assert_eq!(found["breaches"], Value::Array(Vec::new()));
    let leak = &found["released_leak"];
    assert_eq!(leak["honest_breaches"], Value::Array(Vec::new()));
    let broken = leak["leaking_breaches"].as_array().expect("a list");
    assert!(broken.iter().any(|breach| breach["law"] == "other-rows"), "{leak}");
    let shown = text(&done(&["audit", &run, "--events", "1000", "--show-released-leak"]).stdout);
    assert!(shown.contains("the other rows of a call change no score"), "{shown}");
    for row in leak["results"].as_array().expect("a list") {
        for quality in [&row["honest"], &row["leaking"]] {
            for key in ["ap", "auc"] {
                let number = quality[key].as_f64().expect("a number");
                assert!(
                    shown.contains(&format!("{number:.4}")),
                    "the same numbers again: {number} in {shown}"
                );
            }
        }
        assert!(row["leaking"]["ap"].as_f64() > row["honest"]["ap"].as_f64(), "{row}");
    }
    assert!(files() == before, "the run is as it was");
    assert_eq!(leak["fault"], "filter");
    // The switch is nowhere else.
    for command in ["train", "evaluate", "score"] {
        let help = text(&done(&[command, "--help"]).stdout);
        assert!(!help.contains("leak"), "{help}");
    }
    assert!(!place.words("run/config.toml").contains("leak"));
}

/// Settings that make the other systems small enough for a test.
const SYSTEMS: [(&str, &[&str]); 9] = [
    (
        "lstep-pair",
        &["model.position_width=8", "model.snapshots=6", "model.recent=4", "model.pair.history=8"],
    ),
    ("graphmixer", &["model.channels=8", "model.recent=4"]),
    ("tgn", &["model.recent=4"]),
    ("dygformer", &["model.channel_width=4", "model.longest=8", "model.patch=2"]),
    ("tgat", &["model.recent=4"]),
    ("cawn", &["model.walks=4", "model.position_width=8"]),
    ("tcl", &["model.recent=4"]),
    ("freedyg", &["model.recent=4", "model.count_width=4"]),
    ("tpnet", &["model.recent=4", "model.projection_width=8"]),
];

#[test]
fn every_other_system_goes_on_after_a_kill_evaluates_scores_and_keeps_the_laws() {
    let place = Place::new();
    for (name, small) in SYSTEMS {
        let arguments = |run: &str| {
            let mut arguments =
                vec!["train".to_string(), place.at("events.csv"), "--out".into(), place.at(run)];
            arguments.extend(["--model", name, "--for", "benchmark"].map(String::from));
            let all = [
                "model.time_width=8",
                "model.node_width=8",
                "model.edge_width=4",
                "protocol.step.events=50",
            ];
            for setting in all.iter().chain(small).chain(&["train.epochs=8", "train.patience=8"]) {
                arguments.extend(["--set".to_string(), setting.to_string()]);
            }
            arguments
        };
        let (calm, killed) = (format!("calm-{name}"), format!("killed-{name}"));
        done(&arguments(&calm));
        let mut child =
            command(&[]).args(arguments(&killed)).stderr(Stdio::piped()).spawn().expect("runs");
        let mut said = wait_for_training(&mut child);
        let mut line = String::new();
        while !line.starts_with("epoch   2") && said.read_line(&mut line).expect("UTF-8") > 0 {
            line = line.split_off(line.rfind("epoch").unwrap_or(0));
        }
        child.kill().expect("killed");
        let status = child.wait().expect("a child");
        assert!(!status.success(), "{name} was over before it could be killed");
        done(&["train", "--resume", &place.at(&killed)]);
        same_end(&place, &calm, &killed);

        let run = place.at(&calm);
        let report: Value =
            serde_json::from_str(&place.words(&format!("{calm}/report.json"))).expect("JSON");
        assert_eq!(
            without_seconds(json(&["evaluate", &run, "--json"])),
            without_seconds(report),
            "{name}"
        );
        assert!(!done(&["score", &run, "--source", "1", "--top", "3"]).stdout.is_empty(), "{name}");
        done(&["audit", &run]);
    }
}

#[test]
fn settings_that_were_changed_behind_a_run_are_refused() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let (run, settings) = (place.at("run"), place.words("run/config.toml"));
    let report = place.words("run/report.json");
    for (from, to, key) in [
        ("variant = \"full\"", "variant = \"no-position\"", "model.variant"),
        ("seed = 0", "seed = 1", "seed"),
        ("0.7,", "0.3,", "protocol.split"),
    ] {
        assert!(settings.contains(from), "{from}: {settings}");
        fs::write(place.at("run/config.toml"), settings.replacen(from, to, 1)).expect("written");
        for command in [vec!["evaluate", &run], vec!["train", "--resume", &run]] {
            refused(&command, &["safetensors", key, "put config.toml back"]);
        }
    }
    // Longer training is no change, but a run that cannot be gone on with stays as it is.
    fs::write(place.at("run/config.toml"), &settings).expect("written");
    let last = place.bytes("run/last.safetensors");
    fs::write(place.at("run/last.safetensors"), &last[..last.len() / 2]).expect("written");
    refused(&["train", "--resume", &run, "--set", "train.epochs=2"], &["last.safetensors"]);
    assert_eq!(place.words("run/config.toml"), settings);
    fs::write(place.at("run/last.safetensors"), last).expect("written");
    fs::remove_file(place.at("run/best.safetensors")).expect("there");
    for more in [&[][..], &["--set", "train.epochs=2"]] {
        refused(&[&["train", "--resume", &run], more].concat(), &["best.safetensors", "removed"]);
    }
    assert_eq!(place.words("run/config.toml"), settings);
    assert_eq!(place.words("run/report.json"), report);
}

#[test]
fn the_report_says_how_the_model_was_trained() {
    let place = Place::new();
    place.trained("run", &["train.epochs=2", "train.seed=3", "train.historical=0.25"]);
    let report: Value = serde_json::from_str(&place.words("run/report.json")).expect("JSON");
    assert_eq!(report["settings"]["train"]["seed"], 3, "{report}");
    assert_eq!(report["settings"]["train"]["historical"], 0.25);
    assert_eq!(report["training"]["epochs"], 2);
    for seconds in ["seconds", "seconds_per_epoch", "events_per_second"] {
        assert!(report["training"][seconds].as_f64() > Some(0.0), "{seconds}");
    }
    assert!(report["results"][0]["events_per_second"].as_f64() > Some(0.0));
}
