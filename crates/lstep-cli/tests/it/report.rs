//! Journeys to a report: what `train`, `report`, `bound` and `compare` leave for a browser. None of
//! them needs a browser.

use lstep_testkit::command::{Place, done, json, refused};
use lstep_testkit::small;
use std::fs;

/// A name that would be markup.
const NAME: &str = "<script>alert(1)<b>.csv";

fn train(place: &Place, model: &str, run: &str, settings: &[&str]) {
    let (events, out) = (place.events(), place.at(run));
    let mut arguments =
        vec!["train", &events, "--model", model, "--for", "benchmark", "--out", &out];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    done(&arguments);
}

/// What holds for every page: it is whole, asks the network for nothing, holds no markup from data,
/// and no chart lacks its words.
fn looks_well(page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(
        !page.replace("http://www.w3.org/2000/svg", "").contains("http"),
        "an address in the page"
    );
    assert!(!page.contains("<script>alert"), "the dataset's name is markup");
    assert_eq!(page.matches("<script").count(), 1, "the page's own script");
    let charts: Vec<&str> = page
        .split("<figure")
        .skip(1)
        .map(|rest| rest.split("</figure>").next().expect("some"))
        .collect();
    assert!(!charts.is_empty());
    for chart in charts {
        for needed in ["<h3>", "label across", "label up", "<svg", "</svg>", "<title>"] {
            assert!(
                chart.contains(needed),
                "{needed} is missing: {}",
                &chart[..chart.len().min(400)]
            );
        }
        assert!(
            !chart.contains("NaN") && !chart.contains("inf "),
            "{}",
            &chart[..chart.len().min(400)]
        );
    }
    for tag in ["figure", "svg", "table", "details", "ul", "div"] {
        let (opened, closed) =
            (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
        assert_eq!(opened, closed, "{tag}");
    }
}

#[test]
fn a_run_ends_with_a_page_that_can_be_made_anew_and_a_bound_that_can_be_measured() {
    let place = Place::with_events(NAME);
    // Less room than the stream's two features need: the run makes it, and everything that opens
    // the run does.
    let settings: Vec<&str> = [small::LSTEP, &["train.epochs=2", "model.edge_width=1"]].concat();
    train(&place, "lstep", "run", &settings);
    let page = place.words("run/report.html");
    looks_well(&page);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;b&gt;"), "the dataset is named");
    for title in [
        "Training loss",
        "ROC",
        "Precision and recall",
        "Reliability",
        "Scores, random negatives",
        "AP over time",
        "AP by activity",
        "Frequency response of the learned filter",
        "The folded kernel",
        "Where positions moved",
        "Time of each phase",
        "Events over time",
        "Repeats, replies and new pairs",
    ] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title} is missing");
    }
    // The number on top is that of report.json.
    let report = place.json("run/report.json");
    let ap = report["results"][0]["ap"].as_f64().expect("a number");
    assert!(page.contains(&format!("<b>{ap:.4}</b>")), "{ap}");
    for rival in ["edgebank (unlimited)", "poptrack (decay 0.94)", "heuristics"] {
        assert!(page.contains(rival), "{rival} is missing");
    }

    fs::remove_file(place.path("run/report.html")).expect("it is there");
    let run = place.at("run");
    let written = json(&["report", &run, "--json"]);
    assert_eq!(written["bytes"].as_u64(), Some(place.words("run/report.html").len() as u64));
    looks_well(&place.words("run/report.html"));

    let bound = json(&["bound", &run, "--json"]);
    let nodes = bound["nodes"].as_array().expect("a list");
    assert!(nodes.len() > 50, "{}", nodes.len());
    for node in nodes {
        let number = |key: &str| node[key].as_f64().expect("a number");
        assert!(number("largest_move") <= number("direct_bound") + 1e-4, "{node}");
        assert!(number("mean_move") <= number("largest_move") + 1e-12, "{node}");
        assert_eq!(node["holds"].as_bool(), Some(true), "the theorem's bound is far above: {node}");
    }
    assert!(nodes[0]["largest_move"].as_f64().expect("a number") > 0.0, "the busiest node moves");
    looks_well(&place.words("run/bound.html"));
}

#[test]
fn a_model_without_positions_has_a_page_without_them_and_no_bound() {
    let place = Place::with_events(NAME);
    let settings = [small::GRAPHMIXER, &["train.epochs=1"]].concat();
    train(&place, "graphmixer", "run", &settings);
    let page = place.words("run/report.html");
    looks_well(&page);
    assert!(!page.contains("Where positions moved"));
    refused(&["bound", &place.at("run")], &["graphmixer", "L-STEP"]);
}

#[test]
fn a_comparison_ends_with_a_page_of_tables_ranks_and_costs() {
    let place = Place::with_events(NAME);
    let (events, out) = (place.events(), place.at("grid"));
    let mut arguments = vec![
        "compare",
        &events,
        "--models",
        "lstep,edgebank,heuristics",
        "--seeds",
        "0,1",
        "--out",
        &out,
    ];
    small::LSTEP
        .iter()
        .chain(&["train.epochs=2"])
        .for_each(|setting| arguments.extend(["--set", setting]));
    done(&arguments);
    let page = place.words("grid/report.html");
    looks_well(&page);
    for words in [
        // On one dataset the metric says more than places.
        ">Models<",
        "against time",
        "95 % interval of the paired difference over seeds",
        ">lead<",
        " over ",
    ] {
        assert!(page.contains(words), "{words} is missing");
    }
    fs::remove_file(place.path("grid/report.html")).expect("it is there");
    done(&["report", &out]);
    assert_eq!(place.words("grid/report.html"), page);
}

#[test]
fn a_folder_without_a_run_is_refused() {
    let place = Place::with_events(NAME);
    refused(&["report", &place.at("")], &["config.toml"]);
}
