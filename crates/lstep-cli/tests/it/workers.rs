//! Grids that several processes fill over one folder: cells by number, workers that take what is
//! free, one of them killed, and tables that are those of one process.
#![cfg(unix)]

use lstep_testkit::command::{Place, command, done, json, refused, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// Twelve small cells: three models with four seeds. The numbers in `grid` are their small settings.
const TWELVE: [&str; 6] = [
    "--models",
    "lstep,lstep:variant=no-position,lstep:variant=position-only",
    "--seeds",
    "0..3",
    "--set",
    "train.epochs=3",
];

/// A comparison but for what a clock said.
fn without_times(mut comparison: Value) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match name.contains("second") {
                        true => *field = Value::Null,
                        false => forget(field),
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(forget),
            _ => {}
        }
    }
    forget(&mut comparison);
    comparison
}

/// The tables of a grid's page in Markdown, but for the one about time.
fn tables(place: &Place, grid: &str) -> String {
    let page = place.words(&format!("{grid}/comparison.md"));
    let end = page.find("Training").unwrap_or(page.len());
    page[..end].to_string()
}

fn worker(place: &Place, grid: &str) -> Child {
    let mut worker = command(&["compare", "--resume", &place.at(grid), "--worker"]);
    worker.args(["--threads", "1"]).stdout(Stdio::null()).stderr(Stdio::piped());
    worker.spawn().expect("runs")
}

#[test]
fn three_workers_of_which_one_is_killed_fill_a_grid_as_one_process_does() {
    let place = Place::with_events("sample.csv");
    done(&mut place.grid("compare", "alone", &TWELVE));

    let listed = json(place.grid("compare", "shared", &TWELVE).args(["--list", "--json"]));
    assert_eq!(listed.as_array().expect("a list").len(), 12);
    let mut workers: Vec<Child> = (0..3).map(|_| worker(&place, "shared")).collect();
    // The first one is killed in the middle of its second cell or later.
    let mut said = BufReader::new(workers[0].stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("[1/") {
        line.clear();
        assert!(said.read_line(&mut line).expect("UTF-8") > 0, "the worker ended before a cell");
    }
    workers[0].kill().expect("killed");
    workers[0].wait().expect("a child");
    assert!(!place.path("shared/comparison.json").exists(), "workers make no tables");
    workers[0] = worker(&place, "shared");
    for worker in workers {
        let ended = worker.wait_with_output().expect("a child");
        let said = text(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        assert!(said.contains("12 of 12 cells are finished"), "{said}");
    }
    let collected = done(&["compare", "--resume", &place.at("shared"), "--collect"]);
    let [alone, shared] =
        ["alone", "shared"].map(|grid| place.json(&format!("{grid}/comparison.json")));
    assert_eq!(without_times(alone), without_times(shared));
    assert_eq!(tables(&place, "alone"), tables(&place, "shared"));
    let numbers = |said: &str| {
        said.lines().find(|line| line.contains("sha256")).map(str::to_string).expect("told")
    };
    let again = done(&["compare", "--resume", &place.at("alone"), "--collect"]);
    assert_eq!(numbers(&text(&collected.stdout)), numbers(&text(&again.stdout)));
    for cell in ["lstep/seed-0", "lstep/seed-3"] {
        let weights = |grid: &str| {
            let run = format!("{grid}/runs/sample/{cell}/best.safetensors");
            fs::read(place.path(&run)).expect("written")
        };
        assert!(weights("alone") == weights("shared"), "{cell}");
    }
}

#[test]
fn cells_are_trained_by_number_and_tables_say_what_is_missing() {
    let place = Place::with_events("sample.csv");
    let settings = ["--models", "edgebank,lstep", "--seeds", "0..1", "--set", "train.epochs=1"];
    // Each process writes the grid's file if it is the first, and trains its cell alone.
    let first = done(place.grid("compare", "grid", &settings).args(["--cell", "2"]));
    assert!(first.stdout.is_empty(), "{}", text(&first.stdout));
    assert!(place.holds("grid/runs/sample/lstep/seed-1/report.json"));
    assert!(!place.holds("grid/runs/sample/lstep/seed-0"));
    let ask = ["compare", "--resume", &place.at("grid")];
    let missing = command(&ask).arg("--collect").output().expect("runs");
    assert_eq!(missing.status.code(), Some(1), "the answer is no");
    let said = text(&missing.stderr);
    assert!(said.contains("2 of 3 cells are not finished: 0 (sample, edgebank); 1 ("), "{said}");
    assert_eq!(place.json("grid/comparison.json")["unfinished"], 2);

    for cell in ["0", "1", "2"] {
        done(command(&ask).args(["--cell", cell]));
    }
    done(command(&ask).arg("--collect"));
    assert_eq!(place.json("grid/comparison.json")["unfinished"], 0);
    let listed = json(command(&ask).args(["--list", "--json"]));
    assert!(listed.as_array().expect("a list").iter().all(|cell| cell["state"] == "finished"));
    refused(command(&ask).args(["--cell", "3"]), &["--cell is 3", "0 to 2"]);
    let mut other = place.grid("compare", "grid", &["--models", "lstep", "--seeds", "0"]);
    refused(other.args(["--cell", "0"]), &["another grid", "--resume"]);
}

#[test]
fn workers_that_begin_a_grid_at_once_agree_on_it() {
    let place = Place::with_events("sample.csv");
    let settings = ["--models", "edgebank,heuristics", "--negatives", "random", "--worker"];
    let begin = || {
        let mut worker = place.grid("compare", "grid", &settings);
        worker.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("runs")
    };
    let workers = [begin(), begin(), begin()];
    for worker in workers {
        let ended = worker.wait_with_output().expect("a child");
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    }
    done(&["compare", "--resume", &place.at("grid"), "--collect"]);
    assert_eq!(place.json("grid/comparison.json")["cells"].as_array().expect("cells").len(), 2);
}

#[test]
fn job_files_name_the_grid_and_a_script_of_workers_fills_it() {
    let place = Place::with_events("sample.csv");
    let settings = ["--models", "edgebank", "--negatives", "random"];
    let emitted = |launcher: &str| {
        let mut emit = place.grid("compare", "grid", &settings);
        text(&done(emit.args(["--emit", launcher])).stdout)
    };
    let slurm = emitted("slurm");
    assert!(slurm.contains("#SBATCH --array=0-0\n") && slurm.contains("--cell"), "{slurm}");
    assert!(emitted("kubernetes").contains("completionMode: Indexed"));
    assert!(emitted("ray").contains("ray.remote"));
    let script = place.path("fill.sh");
    fs::write(&script, emitted("shell")).expect("written");
    let lstep = command(&[]).get_program().to_os_string();
    let mut shell = std::process::Command::new("sh");
    let ended = shell.arg(&script).env("LSTEP", lstep).env("WORKERS", "2").output().expect("sh");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("edgebank"), "{}", text(&ended.stdout));
    assert!(place.holds("grid/comparison.json"));
}
