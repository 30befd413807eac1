//! The metrics against scikit-learn's areas and py-tgb's ranks, made by
//! `fixtures/metric/metric_reference.py`.

use lstep::metric::{Ranks, average_precision, rank, roc_auc};
use serde_json::Value;

fn reference() -> Value {
    serde_json::from_str(include_str!("../fixtures/metric/metric_reference.json"))
        .expect("the fixture is JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_str()
        .expect("numbers as text")
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect()
}

fn close(ours: f64, theirs: &Value, tolerance: f64, name: &str) {
    let theirs = numbers(theirs)[0];
    assert!((ours - theirs).abs() <= tolerance, "{name}: {ours} is not {theirs}");
}

#[test]
fn areas_equal_those_of_scikit_learn() {
    let reference = reference();
    let curves = reference["curves"].as_object().expect("curves by name");
    assert_eq!(curves.len(), 11);
    for (name, case) in curves {
        let scores = numbers(&case["scores"]);
        let labels: Vec<bool> =
            serde_json::from_value(case["labels"].clone()).expect("a list of labels");
        let area = average_precision(&scores, &labels).expect("defined");
        close(area, &case["average_precision"], 1e-14, name);
        close(roc_auc(&scores, &labels).expect("defined"), &case["roc_auc"], 1e-14, name);
    }
}

#[test]
fn the_reciprocal_rank_of_every_row_equals_that_of_py_tgb() {
    for case in reference()["ranks"].as_array().expect("rows") {
        let scores = numbers(&case["scores"]);
        let rank = rank(scores[0], &scores[1..]).expect("finite");
        close(rank.reciprocal(), &case["mrr"], 0.0, "reciprocal rank");
        assert_eq!(rank.within(10), case["hits@10"] == "1.0");
    }
}

#[test]
fn the_mean_over_positives_equals_that_of_py_tgb() {
    let block = &reference()["block"];
    let mut ranks = Ranks::new();
    for row in block["scores"].as_array().expect("rows") {
        let scores = numbers(row);
        ranks.add(rank(scores[0], &scores[1..]).expect("finite"));
    }
    // py-tgb sums in float32.
    close(ranks.mrr().expect("rows"), &block["mrr"], 1e-7, "MRR");
    close(ranks.hits(10).expect("rows"), &block["hits@10"], 1e-7, "Hits@10");
}
