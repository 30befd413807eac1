//! Journeys of models that only count: where counting is best, it is a run like any other.

use lstep_testkit::command::{Place, done, json, refused, text};
use serde_json::Value;

fn run(place: &Place, model: &str) -> String {
    let run = place.at(model);
    let step = "protocol.step.events=50";
    let purpose = ["--for", "benchmark", "--set", step];
    done(&[&["train", &place.events(), "--model", model, "--out", &run], &purpose[..]].concat());
    run
}

/// AP and AUC of all rows.
fn numbers(report: &Value) -> Vec<(f64, f64)> {
    let number = |value: &Value| value.as_f64().expect("a number");
    let rows = report["results"].as_array().expect("rows").iter();
    rows.map(|row| (number(&row["ap"]), number(&row["auc"]))).collect()
}

#[test]
fn a_counting_model_is_a_run_with_the_numbers_it_has_alone() {
    let place = Place::new();
    for model in ["heuristics", "edgebank", "poptrack", "local-recency+global-popularity"] {
        let run = run(&place, model);
        let alone = ["evaluate", &place.events(), "--model", model, "--step", "50", "--json"];
        let alone = numbers(&json(&alone));
        assert_eq!(numbers(&json(&["evaluate", &run, "--json"])), alone, "{model}");
        let report = place.json(&format!("{model}/report.json"));
        assert_eq!(numbers(&report), alone, "{model}");
        assert!(place.holds(&format!("{model}/report.html")));
    }
}

#[test]
fn a_run_that_counts_is_exported_asked_updated_and_audited() {
    let place = Place::new();
    let events = place.words("events.csv");
    let last: Vec<&str> = events.lines().last().expect("events").split(',').collect();
    let header = events.lines().next().expect("a header");
    place.write("more.csv", format!("{header}\n{},{},99999999999,0.5,0.5\n", last[0], last[1]));
    let more = place.at("more.csv");
    for model in ["heuristics", "edgebank", "poptrack"] {
        let (run, file) = (run(&place, model), place.at(&format!("{model}.lstep")));
        done(&["export", &run, &file]);
        for later in [&[][..], &["--events", &more]] {
            let ask = |from| {
                let asked = ["score", from, "--source", last[0], "--top", "5", "--json"];
                json(&[&asked[..], later].concat())
            };
            assert_eq!(ask(&run), ask(&file), "{model}");
        }
        let out = place.at(&format!("{model}.parquet"));
        done(&["score", &file, "--all", "--explain", "--out", &out]);
    }
    let top = json(&["score", &place.at("heuristics"), "--source", last[0], "--json"]);
    assert_eq!(top[0]["destination"], last[1], "whom it met last comes first");
    let audited = done(&["audit", &place.at("heuristics"), "--size", "light"]);
    assert!(!text(&audited.stdout).is_empty());
    refused(
        &["train", &place.events(), "--model", "edgebnk", "--out", &place.at("x")],
        &["edgebnk", "heuristics"],
    );
}
