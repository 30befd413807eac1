//! What the command does to files and folders: it has them to itself, and hurts nothing else.

use lstep::disk::{FileLock, FolderLock};
use lstep_testkit::command::{Place, command, done, json, lstep, refused, text};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// Long enough that somebody else can come.
const LONG: [&str; 2] = ["train.epochs=2000", "train.patience=2000"];

/// Waits until a child has said something of its work.
fn wait_for(child: &mut Child, word: &str) {
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(said.read_line(&mut line).expect("UTF-8") > 0, "it ended before {word:?}");
    }
    // What else it says goes into the pipe, which is long enough.
    child.stderr = Some(said.into_inner());
}

#[test]
fn a_run_has_one_writer_and_any_number_of_readers() {
    let place = Place::new();
    let run = place.at("run");
    let begin = |arguments: &[String]| {
        let mut command = command(&[]);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("runs")
    };
    let mut child = begin(&place.train("run", &LONG));
    wait_for(&mut child, "epoch   1");
    let words = [run.as_str(), "another process", "choose another folder"];
    refused(&["train", "--resume", &run], &words);
    refused(&["train", "--resume", &run, "--set", "train.epochs=9000"], &words);
    assert_eq!(lstep(&place.train("run", &[])).status.code(), Some(2));
    done(&["evaluate", &run]);
    fs::write(place.path("run/.lstep-0123456789abcdef.partial"), "half").expect("written");
    child.kill().expect("killed");
    child.wait().expect("ended");
    // The lock is gone with the process, and so is what it left.
    let mut child = begin(&["train".into(), "--resume".into(), run]);
    wait_for(&mut child, "training events");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!place.holds("run/.lstep-0123456789abcdef.partial"));
}

#[test]
fn a_comparison_has_one_writer() {
    let place = Place::new();
    let mut grid = place.grid("compare", "grid", &["--models", "lstep", "--seeds", "0..1"]);
    let long = LONG.iter().flat_map(|set| ["--set", set]);
    let mut child =
        grid.args(long).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("runs");
    wait_for(&mut child, "cells");
    let words = ["grid", "another process", "choose another folder"];
    refused(&["compare", "--resume", &place.at("grid")], &words);
    child.kill().expect("killed");
    child.wait().expect("ended");
    done(&mut place.grid("compare", "grid", &["--models", "edgebank"]));
}

/// The other process is this test.
#[test]
fn searches_exports_and_downloads_have_one_writer() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    for folder in ["sweep", "data/uci"] {
        fs::create_dir_all(place.path(folder)).expect("a folder");
    }
    let file = place.at("model.lstep");
    let _locks = ["sweep", "data/uci"].map(|name| FolderLock::acquire(place.path(name)));
    let lock = FileLock::acquire(&file).expect("nobody else");
    let words = ["another process", "wait until it has ended"];
    refused(&mut place.grid("sweep", "sweep", &["--set", "model.recent=1,2"]), &words);
    refused(&["data", "fetch", "uci", "--from", "x", "--to", &place.at("data")], &words);
    refused(&["export", &place.at("run"), &file], &words);
    let save = ["score", &place.at("run"), "--events", &place.events(), "--save", &file];
    refused(&save, &words);
    assert!(!place.holds("model.lstep"));
    // Another file in the same folder is nobody's concern.
    done(&["export", &place.at("run"), &place.at("other.lstep")]);
    drop(lock);
    done(&["export", &place.at("run"), &file]);
}

#[cfg(unix)]
#[test]
fn devices_pipes_and_folders_are_never_replaced() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let (run, folder, pipe) = (place.at("run"), place.at("folder"), place.at("pipe.csv"));
    fs::create_dir(place.path("folder")).expect("a folder");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let before = place.names("");
    for target in ["/dev/null", "/dev/stdout", &folder, &pipe] {
        let words = [target, "never replaced", "name a file"];
        refused(&["generate", target, "--events", "100", "--habits", "0"], &words);
        refused(&["data", "convert", &place.events(), target], &words);
        refused(&["report", &run, "--out", target], &words);
        refused(&["export", &run, target, "--force"], &words);
    }
    assert_eq!(place.names(""), before, "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn a_planted_link_is_replaced_and_not_followed() {
    let place = Place::new();
    place.write("victim", "precious");
    fs::create_dir(place.path("run")).expect("a folder");
    for name in ["last.safetensors", "best.safetensors", "report.json"] {
        let link = place.path("run").join(name);
        std::os::unix::fs::symlink(place.path("victim"), link).expect("a link");
    }
    std::os::unix::fs::symlink(place.path("victim"), place.path("out.csv")).expect("a link");
    place.trained("run", &["train.epochs=1"]);
    done(&["generate", &place.at("out.csv"), "--events", "100", "--habits", "0", "--force"]);
    assert_eq!(place.words("victim"), "precious");
    let kept = fs::symlink_metadata(place.path("run/report.json")).expect("there");
    assert!(kept.is_file());
    assert!(text(&place.bytes("out.csv")).starts_with("source"));
}

#[cfg(target_os = "linux")]
#[test]
fn paths_need_not_be_utf_8() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let place = Place::new();
    let odd = place.path("").join(OsString::from_vec(b"odd-\xff\x1b[31m".to_vec()));
    fs::create_dir(&odd).expect("a folder");
    let (events, run) = (odd.join("events.csv"), odd.join("run"));
    fs::copy(place.events(), &events).expect("copied");
    let small = place.train("", &["train.epochs=1"]);
    let set = &small[4..];
    done(command(&["train"]).arg(&events).arg("--out").arg(&run).args(set));
    for verb in ["evaluate", "report"] {
        let output = done(command(&[verb]).arg(&run));
        assert!(!output.stdout.contains(&0x1b), "{}", text(&output.stdout));
    }
    let longer = ["--set", "train.epochs=2"];
    done(command(&["train", "--resume"]).arg(&run).args(longer));
    done(command(&["export"]).arg(&run).arg(odd.join("model")).arg("--json"));
    done(command(&["score", "--source", "4", "--top", "3"]).arg(odd.join("model")));
    done(command(&["data", "convert"]).arg(&events).arg(odd.join("ml_x.csv")).arg("--json"));
    done(
        command(&["generate", "--events", "100", "--habits", "0", "--json"]).arg(odd.join("y.csv")),
    );
    let grid = ["--models", "edgebank", "--out"];
    done(command(&["compare"]).arg(&events).args(grid).arg(odd.join("grid")));
    done(command(&["compare", "--resume"]).arg(odd.join("grid")));
    // What lies beside a file is found by its name.
    let dgb = odd.join(OsString::from_vec(b"ml_\xff.csv.gz".to_vec()));
    done(command(&["data", "convert"]).arg(&events).arg(&dgb));
    assert!(odd.join(OsString::from_vec(b"ml_\xff_node.npy".to_vec())).exists());
    let found = json(command(&["inspect", "--json"]).arg(&dgb));
    assert_eq!(found["edge_feature_width"], 2, "{found}");
    fs::write(odd.join("n.csv"), nodes_of(&place.words("events.csv"))).expect("written");
    let table = odd.join(OsString::from_vec(b"\xff.parquet".to_vec()));
    let mut convert = command(&["data", "convert"]);
    done(convert.arg(&events).arg(&table).arg("--node-features").arg(odd.join("n.csv")));
    assert!(odd.join(OsString::from_vec(b"\xff.nodes.csv".to_vec())).exists());
    let missing = odd.join("missing\n.csv");
    let output = lstep(command(&["inspect"]).arg(missing));
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains("missing\\u000a.csv") && !message.contains('\u{1b}'), "{message}");
}

/// A feature for every node of a table of events.
#[cfg(target_os = "linux")]
fn nodes_of(events: &str) -> String {
    let ids = events.lines().skip(1).flat_map(|line| line.split(',').take(2));
    let ids: std::collections::BTreeSet<&str> = ids.collect();
    let rows = ids.iter().map(|id| format!("{id},0.5\n"));
    ["id,f\n".to_string()].into_iter().chain(rows).collect()
}

#[test]
fn every_text_that_is_read_has_a_limit_that_is_named() {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let run = place.at("run");
    let events = place.events();
    place.write("large.toml", vec![b'#'; (4 << 20) + 1]);
    refused(
        &["train", &events, "--out", &place.at("new"), "--config", &place.at("large.toml")],
        &["large.toml", "more than 4 MiB"],
    );
    fs::create_dir(place.path("grid")).expect("a folder");
    place.write("grid/grid.toml", vec![b'#'; (4 << 20) + 1]);
    refused(&["compare", "--resume", &place.at("grid")], &["grid.toml", "more than 4 MiB"]);
    let metrics = fs::OpenOptions::new().write(true).open(place.path("run/metrics.jsonl"));
    metrics.and_then(|file| file.set_len((64 << 20) + 1)).expect("made longer");
    refused(&["train", "--resume", &run], &["metrics.jsonl", "more than 64 MiB"]);
    let settings = fs::OpenOptions::new().write(true).open(place.path("run/config.toml"));
    settings.and_then(|file| file.set_len((4 << 20) + 1)).expect("made longer");
    refused(&["evaluate", &run], &["config.toml", "more than 4 MiB"]);
}
