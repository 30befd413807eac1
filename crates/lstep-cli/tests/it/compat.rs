//! Runs and comparisons that earlier versions wrote, opened with today's command.
//! `compat/README.md` says how they were made.

use lstep_testkit::command::{Place, command, done, json};
use serde_json::Value;
use std::path::Path;

const VERSION: &str = "3c2d281";
const MODELS: [&str; 5] = ["lstep", "lstep-pair", "tgn", "graphmixer", "dygformer"];

/// A copy of what the version left, which the command may write to.
fn copy() -> Place {
    let place = Place::empty();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat").join(VERSION);
    place.copy_folder(&kept, "");
    place
}

/// The command, run in the folder: settings name `events.csv` there.
fn inside(place: &Place, arguments: &[&str]) -> std::process::Command {
    let mut command = command(arguments);
    command.current_dir(place.path(""));
    command
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn close(found: &Value, kept: &Value, tolerance: f64, what: &str) {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{what}: {value}"));
    let (found, kept) = (number(found), number(kept));
    let scale = kept.abs().max(f64::MIN_POSITIVE);
    assert!((found - kept).abs() <= tolerance * scale, "{what}: {found} was {kept}");
}

#[test]
fn runs_of_every_model_score_as_they_did() {
    let place = copy();
    for model in MODELS {
        let ask = ["score", model, "--source", "14", "--top", "6", "--json"];
        let found = json(&mut inside(&place, &ask));
        let kept = place.json(&format!("{model}.score.json"));
        assert_eq!(rows(&found).len(), rows(&kept).len(), "{model}");
        // A source was a candidate for itself then.
        let kept: Vec<&Value> =
            rows(&kept).iter().filter(|row| row["source"] != row["destination"]).collect();
        assert!(kept.len() >= 5, "{model}");
        for (found, kept) in rows(&found).iter().zip(kept) {
            for key in ["source", "destination", "time", "known"] {
                assert_eq!(found[key], kept[key], "{model}: {key}");
            }
            close(&found["score"], &kept["score"], 1e-6, model);
        }
    }
}

#[test]
fn runs_of_every_model_have_the_numbers_they_had() {
    let place = copy();
    for model in MODELS {
        let ask = ["evaluate", model, "--setting", "transductive,inductive", "--json"];
        let found = json(&mut inside(&place, &ask));
        let kept = place.json(&format!("{model}.evaluate.json"));
        assert_eq!(found["protocol_settings"], kept["protocol_settings"], "{model}");
        assert_eq!(rows(&found["results"]).len(), rows(&kept["results"]).len(), "{model}");
        for (found, kept) in rows(&found["results"]).iter().zip(rows(&kept["results"])) {
            assert_eq!(found["part"], kept["split"], "{model}");
            for key in ["setting", "negatives", "negatives_sha256", "events", "pairs"] {
                assert_eq!(found[key], kept[key], "{model}: {key}");
            }
            for key in ["ap", "auc"] {
                close(&found[key], &kept[key], 1e-9, &format!("{model} {}", kept["negatives"]));
            }
        }
    }
}

#[test]
fn a_run_of_before_can_be_made_longer() {
    let place = copy();
    for model in ["lstep", "lstep-pair"] {
        done(&mut inside(&place, &["train", "--resume", model, "--set", "train.epochs=4"]));
        let metrics = place.words(&format!("{model}/metrics.jsonl"));
        assert_eq!(metrics.lines().count(), 4, "{model}: {metrics}");
        let report = place.json(&format!("{model}/report.json"));
        assert!(!rows(&report["results"]).is_empty(), "{model}");
        assert!(place.holds(&format!("{model}/report.html")), "{model}");
    }
}

#[test]
fn a_comparison_of_before_becomes_a_page() {
    let place = copy();
    done(&mut inside(&place, &["report", "grid"]));
    let page = place.words("grid/report.html");
    assert!(page.contains("edgebank") && page.contains("lstep"), "{page}");
}
