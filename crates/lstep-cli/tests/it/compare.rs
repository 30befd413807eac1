//! Journeys through grids, as the real binary makes them: tables and files, kills and stops,
//! refusals, searches and recipes.

use lstep_testkit::command::{Place, command, done, refused, text};
use lstep_testkit::small;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

/// What a comparison says, but for the clock.
fn numbers(comparison: &Value) -> Vec<(String, Vec<Value>)> {
    let cell = |cell: &Value| {
        let name = format!("{} {} {}", cell["dataset"], cell["model"], cell["seed"]);
        let rows = cell["results"].as_array().expect("a list").iter();
        let row = |row: &Value| {
            ["ap", "auc", "ap_pooled", "auc_pooled", "negatives_sha256"].map(|key| row[key].clone())
        };
        let training =
            ["best_epoch", "epochs", "validation_ap"].map(|key| cell["training"][key].clone());
        (name, rows.flat_map(row).chain(training).collect())
    };
    comparison["cells"].as_array().expect("a list").iter().map(cell).collect()
}

/// Reads what a grid says until a number of cells have ended.
fn wait_for_cells(child: &mut Child, count: usize) -> BufReader<std::process::ChildStderr> {
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with(&format!("[{count}/")) {
        line.clear();
        assert!(
            said.read_line(&mut line).expect("UTF-8") > 0,
            "the grid ended before {count} cells did"
        );
    }
    said
}

#[test]
fn a_grid_is_complete_in_all_files_and_its_cells_are_runs() {
    let place = Place::with_events("sample.csv");
    let models = "lstep,lstep:variant=no-position,graphmixer:node_width=4:edge_width=4:recent=3:time_width=4,edgebank,heuristics";
    let mut grid = command(&[
        "compare",
        &place.at("sample.csv"),
        "--out",
        &place.at("grid"),
        "--models",
        models,
    ]);
    grid.args(["--seeds", "0..1", "--negatives", "random,historical", "--json"]);
    grid.args(["--set", "train.epochs=1", "--set", "protocol.step.events=200"]);
    let printed: Value = serde_json::from_slice(&done(&mut grid).stdout).expect("JSON");
    assert_eq!(printed, place.json("grid/comparison.json"));
    let cells = numbers(&printed);
    assert_eq!(cells.len(), 3 * 2 + 2, "three learned models with two seeds, two that count");
    assert!(
        printed["cells"].as_array().expect("a list").iter().all(|cell| cell["results"]
            .as_array()
            .expect("a list")
            .len()
            == 2)
    );

    let csv = fs::read_to_string(place.path("grid/comparison.csv")).expect("written");
    // Four numbers of two questions; seven more about training.
    assert_eq!(csv.lines().count(), 1 + 8 * 2 * 4 + 6 * 7);
    let markdown = fs::read_to_string(place.path("grid/comparison.md")).expect("written");
    assert!(markdown.contains("| lstep | lstep (no-position) | graphmixer ("), "{markdown}");
    assert!(
        fs::read_to_string(place.path("grid/comparison.tex"))
            .expect("written")
            .contains("\\toprule")
    );

    // A cell is a run like any other, and has the numbers of one trained alone.
    let run = place.at("grid/runs/sample/lstep/seed-1");
    let mut evaluate = command(&["evaluate", &run, "--negatives", "random", "--json"]);
    let report: Value = serde_json::from_slice(&done(&mut evaluate).stdout).expect("JSON");
    let cell = printed["cells"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|cell| cell["model"] == "lstep" && cell["seed"] == 1);
    assert_eq!(report["results"][0]["ap"], cell.expect("it is there")["results"][0]["ap"]);
    let mut train = command(&[
        "train",
        &place.at("sample.csv"),
        "--for",
        "benchmark",
        "--out",
        &place.at("alone"),
        "--set",
        "train.seed=1",
    ]);
    done(train.args(["--set", "train.epochs=1", "--set", "protocol.step.events=200"]));
    let bytes = |name: &str| fs::read(place.path(name)).expect("read");
    assert!(
        bytes("alone/best.safetensors") == bytes("grid/runs/sample/lstep/seed-1/best.safetensors"),
        "same weights"
    );
}

#[test]
fn a_killed_grid_redoes_nothing_that_was_finished_and_ends_with_the_same_numbers() {
    let place = Place::with_events("sample.csv");
    let settings = [
        "--models",
        "edgebank,lstep",
        "--seeds",
        "0..2",
        "--jobs",
        "1",
        "--set",
        "train.epochs=12",
    ];
    done(&mut place.grid("compare", "calm", &settings));

    let mut child = place
        .grid("compare", "killed", &settings)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    // EdgeBank and seed 0 are finished; seed 1 has begun or is about to.
    wait_for_cells(&mut child, 2);
    child.kill().expect("killed");
    child.wait().expect("a child");
    assert!(
        !place.path("killed/comparison.json").exists(),
        "the grid was over before it could be killed"
    );
    let finished = ["killed/runs/sample/edgebank", "killed/runs/sample/lstep/seed-0"];
    let before = finished.map(|cell| place.files(cell));
    assert!(!place.path("killed/runs/sample/lstep/seed-2/report.json").exists());

    let output = done(command(&["compare", "--resume", &place.at("killed")]).args(["--jobs", "2"]));
    assert!(text(&output.stderr).contains("2 finished before"), "{}", text(&output.stderr));
    assert!(finished.map(|cell| place.files(cell)) == before, "a finished cell was touched");
    let (calm, killed) = (place.json("calm/comparison.json"), place.json("killed/comparison.json"));
    assert_eq!(numbers(&calm), numbers(&killed));
    assert_eq!(
        (&killed["unfinished"], killed["failed"].as_array().expect("a list").len()),
        (&Value::from(0), 0)
    );

    // The same command once more does nothing at all.
    let all = place.files("killed/runs");
    done(&mut place.grid("compare", "killed", &settings));
    assert!(place.files("killed/runs") == all, "nothing was left to do");
}

#[test]
fn a_grid_stopped_by_ctrl_c_says_how_to_go_on() {
    let place = Place::with_events("sample.csv");
    let settings =
        ["--models", "lstep", "--seeds", "0..3", "--jobs", "2", "--set", "train.epochs=12"];
    let mut child = place
        .grid("compare", "grid", &settings)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut said = wait_for_cells(&mut child, 1);
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .expect("kill runs")
            .success()
    );
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(child.wait().expect("a child").code(), Some(130), "{rest}");
    assert!(rest.contains(&format!("lstep compare --resume {}", place.at("grid"))), "{rest}");
    assert!(place.json("grid/comparison.json")["unfinished"].as_u64().expect("a count") > 0);
    done(&mut command(&["compare", "--resume", &place.at("grid")]));
    assert_eq!(numbers(&place.json("grid/comparison.json")).len(), 4);
}

#[test]
fn seeds_are_named_as_seeds_only() {
    let place = Place::with_events("sample.csv");
    let words = ["train.seed", "--seeds"];
    refused(
        &mut place.grid("compare", "a", &["--models", "lstep,lstep:train.seed=5", "--seeds", "0"]),
        &words,
    );
    refused(
        &mut place.grid("compare", "b", &["--models", "lstep", "--set", "train.seed=5"]),
        &words,
    );
    refused(
        &mut command(&[
            "sweep",
            &place.at("sample.csv"),
            "--set",
            "train.seed=1,2",
            "--out",
            &place.at("c"),
        ]),
        &words,
    );
}

#[test]
fn a_cell_with_other_settings_or_other_events_is_refused() {
    let place = Place::with_events("sample.csv");
    let grid = |models: &str, negatives: &str, epochs: &str| {
        let set = format!("train.epochs={epochs}");
        let settings =
            ["--models", models, "--seeds", "0", "--negatives", negatives, "--set", &set];
        place.grid("compare", "grid", &settings)
    };
    done(&mut grid("lstep", "random", "1"));
    let other = ["seed-0", "train.epochs is 1 there, 2 is asked for", "--out"];
    refused(&mut grid("lstep", "random", "2"), &other);
    // More questions are answered by the weights that are there.
    let weights =
        fs::read(place.path("grid/runs/sample/lstep/seed-0/last.safetensors")).expect("read");
    done(&mut grid("lstep,edgebank", "inductive", "1"));
    let comparison = place.json("grid/comparison.json");
    assert_eq!(comparison["cells"].as_array().expect("a list").len(), 2);
    assert_eq!(comparison["cells"][0]["results"][0]["negatives"], "inductive");
    assert!(
        fs::read(place.path("grid/runs/sample/lstep/seed-0/last.safetensors")).expect("read")
            == weights
    );
    let kept = place.json("grid/runs/sample/lstep/seed-0/report.json");
    assert_eq!(
        kept["results"].as_array().expect("a list").len(),
        2,
        "what was asked before stays answered"
    );

    // A number that somebody edited is not taken for a result.
    let path = place.path("grid/runs/sample/lstep/seed-0/report.json");
    let written = fs::read_to_string(&path).expect("read");
    fs::write(&path, written.replacen("\"ap\": 0.", "\"ap\": 0.9", 1)).expect("written");
    refused(&mut grid("lstep,edgebank", "inductive", "1"), &["report.json", "changed"]);
    fs::write(&path, written).expect("written");
    // Neither is what a damaged or another checkpoint stands beside, nor an edited epoch.
    for (name, byte) in [("best.safetensors", 5_000), ("metrics.jsonl", 60)] {
        let path = place.path("grid/runs/sample/lstep/seed-0").join(name);
        let whole = fs::read(&path).expect("read");
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        // A new file: the last checkpoint may share the bytes of the best.
        fs::remove_file(&path).expect("removed");
        fs::write(&path, damaged).expect("written");
        let words = [name, "was changed after the cell was finished", "restore it"];
        refused(&mut grid("lstep,edgebank", "inductive", "1"), &words);
        fs::write(&path, whole).expect("written");
    }
    done(&mut grid("lstep,edgebank", "inductive", "1"));

    // Nor a report alone: its writer was killed before it said what the report is about.
    let about = place.path("grid/runs/sample/lstep/seed-0/cell.toml");
    fs::remove_file(&about).expect("removed");
    done(&mut grid("lstep,edgebank", "inductive", "1"));
    assert!(about.exists(), "it was asked once more");

    place.generate("sample.csv", "5");
    refused(&mut grid("lstep", "random", "1"), &["sample.csv", "changed"]);
    refused(&mut grid("lstp", "random", "1"), &["lstp", "graphmixer"]);
    refused(&mut place.grid("compare", "other", &["--models", "lstep,lstep"]), &["lstep", "twice"]);
    refused(&mut command(&["compare", "--resume", &place.at("nowhere")]), &["grid.toml", "--out"]);
}

#[test]
fn what_was_counted_about_one_stream_is_not_shown_for_another_of_the_same_name() {
    let place = Place::with_events("sample.csv");
    for (folder, seed) in [("a", "1"), ("b", "2")] {
        fs::create_dir(place.path(folder)).expect("a folder");
        place.generate(&format!("{folder}/same.csv"), seed);
    }
    let grid = |events: &str, out: &str, more: &[&str]| {
        let mut grid = command(&[
            "compare",
            &place.at(events),
            "--out",
            &place.at(out),
            "--models",
            "heuristics",
        ]);
        grid.args(more);
        grid
    };
    done(&mut grid("a/same.csv", "grid", &[]));
    let before = place.files("grid");
    done(&mut grid("a/same.csv", "grid", &[]));
    let cells = |files: Vec<(PathBuf, SystemTime, Vec<u8>)>| -> Vec<(PathBuf, SystemTime)> {
        let below = files.into_iter().filter(|file| file.0.starts_with(place.path("grid/runs")));
        below.map(|(path, time, _)| (path, time)).collect()
    };
    assert_eq!(cells(before), cells(place.files("grid")), "a finished cell is not done again");
    refused(&mut grid("b/same.csv", "grid", &[]), &["heuristics", "data.events", "b/same.csv"]);
    refused(&mut grid("a/same.csv", "grid", &["--bipartite"]), &["heuristics", "bipartite"]);
    // A report that does not say about what is no answer.
    fs::remove_file(place.path("grid/runs/same/heuristics/cell.toml")).expect("removed");
    done(&mut grid("b/same.csv", "grid", &[]));
    done(&mut grid("b/same.csv", "fresh", &[]));
    assert_eq!(
        numbers(&place.json("grid/comparison.json")),
        numbers(&place.json("fresh/comparison.json"))
    );
}

#[test]
fn changed_node_features_are_a_changed_stream() {
    let place = Place::with_events("sample.csv");
    let nodes = |value: usize| {
        let rows: String = (0..200).map(|node| format!("{node},{}\n", node % value)).collect();
        fs::write(place.path("nodes.csv"), format!("id,f0\n{rows}")).expect("written");
    };
    nodes(3);
    let features = place.at("nodes.csv");
    let grid =
        || place.grid("compare", "grid", &["--models", "edgebank", "--node-features", &features]);
    done(&mut grid());
    nodes(5);
    refused(&mut grid(), &["sample.csv", "features have changed"]);
}

#[test]
fn one_folder_holds_one_kind_of_result() {
    let place = Place::with_events("sample.csv");
    done(&mut place.grid("compare", "grid", &["--models", "edgebank"]));
    let before = place.files("grid");
    refused(
        &mut place.grid("sweep", "grid", &["--set", "model.recent=3,4"]),
        &["another kind of grid", "edgebank"],
    );
    let mut run = command(&[
        "train",
        &place.at("sample.csv"),
        "--for",
        "benchmark",
        "--out",
        &place.at("run"),
        "--set",
        "train.epochs=1",
    ]);
    small::LSTEP.iter().for_each(|setting| {
        run.args(["--set", setting]);
    });
    done(&mut run);
    let report = fs::read(place.path("run/report.html")).expect("read");
    refused(
        &mut place.grid("compare", "run", &["--models", "edgebank"]),
        &["run", "holds a single run"],
    );
    assert!(fs::read(place.path("run/report.html")).expect("read") == report);
    assert!(place.files("grid") == before);
    refused(
        &mut command(&["compare", "--resume", &place.at("grid"), "--sort"]),
        &["--sort", "--resume"],
    );
    refused(
        &mut command(&["train", "--resume", &place.at("run"), "--bipartite"]),
        &["--bipartite", "--resume"],
    );
}

#[test]
fn a_table_says_where_models_are_not_asked_the_same() {
    let place = Place::with_events("sample.csv");
    let models = "heuristics,edgebank,lstep,lstep:protocol.step=40";
    let output = done(&mut place.grid(
        "compare",
        "grid",
        &["--models", models, "--seeds", "0", "--negatives", "random", "--set", "train.epochs=1"],
    ));
    let said = text(&output.stdout);
    assert!(said.contains("not all models are asked the same questions"), "{said}");
    assert!(
        said.contains(
            "heuristics, edgebank, lstep in steps of 50; lstep (protocol.step=40) in steps of 40"
        ),
        "{said}"
    );
    let alike = done(&mut place.grid("compare", "alike", &["--models", "heuristics,edgebank"]));
    assert!(!text(&alike.stdout).contains("same questions"), "{}", text(&alike.stdout));
}

#[test]
fn a_search_compares_by_what_selects() {
    let place = Place::with_events("sample.csv");
    let kinds = "train.select=[\"random\", \"historical\"]";
    let search = ["--set", "model.recent=3,4", "--set", "train.epochs=1", "--set", kinds];
    done(&mut place.grid("sweep", "sweep", &search));
    let (found, searched) = (place.json("sweep/sweep.json"), place.json("sweep/comparison.json"));
    for point in found["points"].as_array().expect("a list") {
        let cells = searched["cells"].as_array().expect("a list");
        let cell = cells
            .iter()
            .find(|cell| cell["model"] == point["label"])
            .expect("a cell for every point");
        let aps: Vec<f64> = (cell["results"].as_array().expect("a list").iter())
            .map(|row| row["ap"].as_f64().expect("a number"))
            .collect();
        assert_eq!(aps.len(), 2, "{cell}");
        let mean = point["validation"]["mean"].as_f64().expect("a number");
        assert!((mean - (aps[0] + aps[1]) / 2.0).abs() < 1e-12, "{point}");
    }
    let both = ["--set", "train.select=[\"random\"],[\"historical\"]", "--set", "train.epochs=1"];
    refused(&mut place.grid("sweep", "other", &both), &["train.select"]);
}

#[test]
fn a_grid_is_asked_under_the_protocol_that_is_named() {
    let place = Place::with_events("sample.csv");
    let mut grid = command(&[
        "compare",
        &place.at("sample.csv"),
        "--out",
        &place.at("grid"),
        "--models",
        "edgebank",
    ]);
    done(grid.args(["--protocol", "dyglib", "--negatives", "random"]));
    assert_eq!(place.json("grid/comparison.json")["cells"][0]["protocol"]["name"], "dyglib");
}

#[test]
fn a_failed_cell_is_listed_and_the_others_are_finished() {
    let place = Place::with_events("sample.csv");
    // No setting is wrong, but weights that move this far are soon no numbers.
    let mut grid = command(&[
        "compare",
        &place.at("sample.csv"),
        "--out",
        &place.at("grid"),
        "--models",
        "tgn:recent=3,edgebank",
    ]);
    grid.args(["--seeds", "0", "--negatives", "random", "--set", "train.epochs=1"]);
    grid.args(["--set", "train.learning_rate=1e30"]);
    let output = grid.output().expect("the binary runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("failed: sample, tgn (recent=3), seed 0: the loss is NaN")
            && said.contains("1 of 2 cells failed"),
        "{said}"
    );
    assert!(text(&output.stdout).contains("edgebank"), "the tables of the others are printed");
    let comparison = place.json("grid/comparison.json");
    assert_eq!(
        (numbers(&comparison).len(), &comparison["failed"][0]["model"]),
        (1, &Value::from("tgn (recent=3)"))
    );
}

#[test]
fn settings_of_every_model_are_checked_before_the_first_cell_starts() {
    let place = Place::with_events("sample.csv");
    let mut grid = command(&[
        "compare",
        &place.at("sample.csv"),
        "--out",
        &place.at("grid"),
        "--models",
        "edgebank,lstep,tgn:heads=7",
    ]);
    let output = grid.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("model.heads is 7"), "{}", text(&output.stderr));
    assert!(!std::path::Path::new(&place.at("grid/runs")).exists(), "no cell was started");
}

#[test]
fn a_search_chooses_on_validation_and_asks_only_the_chosen_about_the_test_part() {
    let place = Place::with_events("sample.csv");
    let search = [
        "--set",
        "train.epochs=2",
        "--set",
        "model.recent=1,4",
        "--set",
        "train.learning_rate=0.000001,0.01",
        "--json",
    ];
    // `model.recent` is searched here, so it is set twice: the later one holds.
    let found: Value =
        serde_json::from_slice(&done(&mut place.grid("sweep", "sweep", &search)).stdout)
            .expect("JSON");
    let points = found["points"].as_array().expect("a list");
    assert_eq!(points.len(), 4);
    let means: Vec<f64> = points
        .iter()
        .map(|point| point["validation"]["mean"].as_f64().expect("a number"))
        .collect();
    assert!(means.is_sorted_by(|a, b| a >= b), "{means:?}");
    assert_eq!(found["chosen"], points[0]["label"]);
    assert_eq!(found["test"].as_array().expect("a list").len(), 3, "three kinds of negatives");

    // Only one run has numbers of the test part.
    let mut tested = 0;
    for (path, _, bytes) in place.files("sweep/runs") {
        if path.ends_with("report.json") {
            tested += usize::from(text(&bytes).contains("\"part\": \"test\""));
        }
    }
    assert_eq!(tested, 1);
    assert!(
        fs::read_to_string(place.path("sweep/comparison.csv"))
            .expect("written")
            .lines()
            .all(|line| !line.contains(",test,"))
    );
    let chosen = place.at("sweep/chosen.toml");
    done(&mut command(&[
        "train",
        &place.at("sample.csv"),
        "--config",
        &chosen,
        "--out",
        &place.at("run"),
    ]));
    let all = place.files("sweep/runs");
    let again: Value = serde_json::from_slice(
        &done(command(&["sweep", "--resume", &place.at("sweep")]).arg("--json")).stdout,
    )
    .expect("JSON");
    assert_eq!(again["points"], found["points"]);
    assert!(place.files("sweep/runs") == all, "nothing was left to do");
}

#[test]
fn a_random_search_is_the_same_for_the_same_seed() {
    let place = Place::with_events("sample.csv");
    let labels = |out: &str, seed: &str| {
        let search = [
            "--set",
            "train.epochs=1",
            "--set",
            "train.learning_rate=1e-5..1e-2",
            "--random",
            "2",
            "--json",
        ];
        let found = done(place.grid("sweep", out, &search).args(["--random-seed", seed])).stdout;
        let found: Value = serde_json::from_slice(&found).expect("JSON");
        let mut labels: Vec<String> = found["points"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|point| point["label"].to_string())
            .collect();
        labels.sort();
        labels
    };
    assert_eq!(labels("one", "7"), labels("two", "7"));
    assert_ne!(labels("one", "7"), labels("three", "8"));
    refused(
        &mut place.grid("sweep", "four", &["--set", "model.recent=2..9"]),
        &["model.recent", "--random"],
    );
}

/// A folder of datasets with one that is called like one of the paper's.
fn dataset(place: &Place, name: &str) -> PathBuf {
    fs::create_dir_all(place.path(&format!("data/{name}"))).expect("made");
    place.generate(&format!("data/{name}/events.csv.gz"), "4");
    place.path("data")
}

#[test]
fn a_recipe_says_where_to_get_data_that_is_missing_and_shows_published_figures() {
    let place = Place::with_events("sample.csv");
    let out = place.at("paper");
    refused(
        &mut command(&["paper", "start", "--out", &out]),
        &["enron", "lstep data fetch enron", "zenodo.org/records/7213796"],
    );
    refused(
        &mut command(&["paper", "tgb", "--out", &out]),
        &["tgbl-coin", "tgb.complexdatalab.com"],
    );
    refused(&mut command(&["paper", "strat", "--out", &out]), &["strat", "alpha-neg"]);

    let data = dataset(&place, "enron");
    let mut recipe = command(&[
        "paper",
        "t-gap",
        "--quick",
        "--out",
        &out,
        "--data",
        &data.display().to_string(),
    ]);
    recipe.args([
        "--set",
        "train.epochs=1",
        "--set",
        "model.snapshots=5",
        "--set",
        "model.position_width=8",
    ]);
    let output = done(&mut recipe);
    let (said, shown) = (text(&output.stderr), text(&output.stdout));
    assert!(said.contains("skipped: unvote") && said.contains("lstep data fetch unvote"), "{said}");
    // Published transductive AP at t_gap = 10, beside the measured one.
    assert!(
        shown.contains("[93.77±0.28]")
            && shown.contains("leaks labels")
            && shown.contains("protocol dyglib"),
        "{shown}"
    );
    let comparison = place.json("paper/t-gap/comparison.json");
    assert_eq!(numbers(&comparison).len(), 4);
    assert!(comparison["notes"].to_string().contains("--quick"), "{}", comparison["notes"]);
    let config = fs::read_to_string(place.path("paper/runs/enron/lstep,gap=50/seed-0/config.toml"))
        .expect("a run");
    assert!(
        config.contains("gap = 50.0") && config.contains("recent = 20"),
        "the preset of enron, but for the gap: {config}"
    );
}

#[test]
fn recipes_are_listed() {
    let shown = text(&done(&mut command(&["paper"])).stdout);
    for name in [
        "main",
        "transductive-random",
        "inductive-historical",
        "tgb",
        "attention",
        "runtime",
        "only-lpe",
        "without-lpe",
    ] {
        assert!(shown.contains(name), "{shown}");
    }
    for name in ["t-gap", "k ", "l ", "alpha-neg", "alpha-pe", "start"] {
        assert!(shown.lines().any(|line| line.starts_with(name)), "{name}: {shown}");
    }
    let list: Value =
        serde_json::from_slice(&done(&mut command(&["paper", "--list", "--json"])).stdout)
            .expect("JSON");
    assert_eq!(list.as_array().expect("a list").len(), 18);
    assert!(Path::new("lstep-paper").metadata().is_err(), "listing leaves nothing behind");
}
