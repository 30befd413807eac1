//! Commands that are ended at random moments and started again: nothing is lost, the end is that
//! of an undisturbed run to the bit, and nothing is left behind.
//!
//! A few kills in the ordinary tests; as many as wanted with
//!
//! ```text
//! LSTEP_KILLS=60 cargo test --workspace --test it -- --ignored kills::many --nocapture
//! ```
#![cfg(unix)]

use crate::data::{archive, fetch};
use crate::host::Host;
use lstep::rng::KeyedRng;
use lstep_testkit::command::{Place, command, done, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What was done to a command.
#[derive(Debug, Default, Clone, Copy)]
struct Disturbed {
    /// SIGKILL.
    kills: usize,
    /// SIGTERM.
    stops: usize,
    /// How often it came to its end all the same.
    ends: usize,
}

/// Starts a command, ends it at a random moment with SIGKILL or, once in four times, SIGTERM, and
/// starts it again, until it has been ended `count` times. Whenever it comes to its end, and at
/// last, `check` looks at what it made, and removes it so that all begins anew. `between` looks at
/// what a kill leaves.
fn disturb(
    key: u64,
    count: usize,
    whole: Duration,
    mut command: impl FnMut() -> Command,
    mut between: impl FnMut(),
    mut check: impl FnMut(),
) -> Disturbed {
    let mut draw = KeyedRng::new(&[0xdead, key]);
    let mut disturbed = Disturbed::default();
    // A machine that has become faster must not end every run before its kill.
    let mut whole = whole.as_secs_f64();
    loop {
        let ended = disturbed.kills + disturbed.stops;
        let mut child = command()
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        if ended < count {
            std::thread::sleep(Duration::from_secs_f64(whole * draw.unit()));
            if child.try_wait().expect("a child").is_none() {
                if draw.below(4) == 0 {
                    let id = child.id().to_string();
                    let sent = Command::new("kill").args(["-TERM", &id]).status();
                    assert!(sent.expect("kill runs").success());
                    disturbed.stops += 1;
                } else {
                    child.kill().expect("killed");
                    disturbed.kills += 1;
                }
                child.wait().expect("a child");
                between();
                continue;
            }
            whole *= 0.95;
        }
        let output = child.wait_with_output().expect("a child");
        assert!(output.status.success(), "after {disturbed:?}: {}", text(&output.stderr));
        disturbed.ends += 1;
        check();
        if ended >= count {
            return disturbed;
        }
    }
}

/// The files below a folder, as paths within it; nothing that a writer leaves unfinished.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("below it").to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// A JSON or JSON Lines file without what the clock says, and without digests over that.
fn timeless(path: &Path) -> Vec<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| {
                    !["seconds", "per_second", "digest", "threads"]
                        .iter()
                        .any(|word| key.contains(word))
                });
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let values = serde_json::Deserializer::from_str(&text).into_iter();
    let mut values: Vec<Value> = values.map(|value| value.expect("JSON")).collect();
    values.iter_mut().for_each(strip);
    values
}

/// Both folders hold the same files: checkpoints and settings to the byte, numbers but for the
/// clock.
fn same(calm: &Path, other: &Path) {
    assert_eq!(files(calm), files(other));
    for file in files(calm) {
        let (one, two) = (calm.join(&file), other.join(&file));
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("safetensors" | "lstep" | "zip" | "csv" | "sha256") if !is_table(&file) => {
                assert!(fs::read(one).ok() == fs::read(two).ok(), "{file:?} differs");
            }
            Some("json" | "jsonl") => assert_eq!(timeless(&one), timeless(&two), "{file:?}"),
            Some("toml") if file.ends_with("config.toml") || file.ends_with("chosen.toml") => {
                assert!(fs::read(one).ok() == fs::read(two).ok(), "{file:?} differs");
            }
            // Pages and tables show seconds; `cell.toml` has the digest of metrics with seconds.
            _ => {}
        }
    }
}

fn is_table(file: &Path) -> bool {
    file.ends_with("comparison.csv")
}

/// A finished cell keeps its best checkpoint, whatever happens to the others.
fn finished_cells_are_whole(calm: &Path, other: &Path) {
    if !other.exists() {
        return;
    }
    for cell in files(other).iter().filter(|file| file.ends_with("cell.toml")) {
        let best = cell.with_file_name("best.safetensors");
        assert!(
            fs::read(calm.join(&best)).ok() == fs::read(other.join(&best)).ok(),
            "{best:?} differs"
        );
    }
}

/// A grid, whichever verb makes it.
fn grid(verb: &str, count: usize, more: &[&str]) -> Disturbed {
    let place = Place::with_events("sample.csv");
    let settings = [more, &["--seeds", "0..1", "--set", "train.epochs=3"]].concat();
    let started = Instant::now();
    done(&mut place.grid(verb, "calm", &settings));
    let whole = started.elapsed();
    let (calm, killed) = (place.path("calm"), place.path("killed"));
    disturb(
        verb.len() as u64,
        count,
        whole,
        || place.grid(verb, "killed", &settings),
        || finished_cells_are_whole(&calm, &killed),
        || {
            same(&calm, &killed);
            fs::remove_dir_all(&killed).expect("removed");
        },
    )
}

fn compare(count: usize) -> Disturbed {
    grid("compare", count, &["--models", "lstep,edgebank", "--negatives", "random"])
}

fn sweep(count: usize) -> Disturbed {
    grid("sweep", count, &["--set", "model.snapshots=2,4"])
}

fn export(count: usize) -> Disturbed {
    let place = Place::new();
    place.trained("run", &["train.epochs=1"]);
    let started = Instant::now();
    fs::create_dir(place.path("out")).expect("a folder");
    done(&["export", &place.at("run"), &place.at("calm.lstep")]);
    let (whole, expected) = (started.elapsed(), place.bytes("calm.lstep"));
    let (run, file) = (place.at("run"), place.at("out/model.lstep"));
    let whole_or_absent = || {
        let found = fs::read(&file).ok();
        assert!(found.is_none_or(|found| found == expected), "a half file");
    };
    disturb(
        3,
        count,
        whole,
        || command(&["export", &run, &file, "--force"]),
        whole_or_absent,
        || {
            whole_or_absent();
            assert_eq!(place.names("out"), ["model.lstep"], "nothing is left behind");
            fs::remove_file(&file).expect("there");
        },
    )
}

fn data_fetch(count: usize) -> Disturbed {
    let bytes = archive(40_000);
    let (place, host) = (Place::empty(), Host::offering("uci.zip", bytes.clone()));
    // As if it came from afar: most moments are in the middle of the transfer.
    host.change(|offer| offer.pause = Duration::from_millis(2));
    let started = Instant::now();
    done(&fetch(&host.address, &place.at("calm")));
    let whole = started.elapsed();
    let (calm, killed, to) = (place.path("calm"), place.path("killed"), place.at("killed"));
    disturb(
        4,
        count,
        whole,
        || command(&fetch(&host.address, &to)),
        || {
            let found = fs::read(killed.join("uci/uci.zip")).ok();
            assert!(found.is_none_or(|found| found == bytes), "a half archive under its name");
        },
        || {
            same(&calm, &killed);
            fs::remove_dir_all(&killed).expect("removed");
        },
    )
}

#[test]
fn a_comparison_survives_kills() {
    compare(3);
}

#[test]
fn a_search_survives_kills() {
    sweep(3);
}

#[test]
fn an_export_survives_kills() {
    export(5);
}

#[test]
fn a_download_survives_kills() {
    data_fetch(5);
}

#[test]
#[ignore = "takes minutes: see this module"]
fn many_kills() {
    let count = std::env::var("LSTEP_KILLS").map_or(60, |text| text.parse().expect("a number"));
    let tell = |name: &str, Disturbed { kills, stops, ends }: Disturbed| {
        let mut out = std::io::stdout();
        let _ =
            writeln!(out, "{name}: {kills} SIGKILL, {stops} SIGTERM, {ends} ends, all the same");
    };
    tell("compare", compare(count));
    tell("sweep", sweep(count));
    tell("export", export(count));
    tell("data fetch", data_fetch(count));
}
