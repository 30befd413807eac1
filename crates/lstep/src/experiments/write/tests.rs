//! The four files of a comparison made by hand.

use super::super::{ComparedDataset, FailedCell};
use super::*;
use crate::model::{EdgeBankConfig, Memory, ModelConfig};
use crate::protocol::{EvalScope, Protocol, Setting, Strategy, StreamProtocol};
use crate::results::{Outcome, ResultRow};

fn cell(dataset: &str, model: &str, seed: Option<u64>, ap: f64) -> CellResult {
    let config = ModelConfig::from(EdgeBankConfig { memory: Memory::Unlimited });
    let row = ResultRow {
        name: config.name().to_string(),
        model: config.clone(),
        outcome: Outcome {
            part: Part::Test,
            setting: Setting::Transductive,
            negatives: Strategy::Random,
            ap,
            auc: 0.5,
            ap_pooled: ap,
            auc_pooled: 0.5,
            mrr: None,
            hits_10: None,
            hits_1: None,
            ndcg_10: None,
            events: 10,
            steps: 1,
            pairs: 20,
            seconds: 0.1,
        },
        negatives_sha256: String::new(),
        negatives_generated: false,
        negatives_filled: 0,
        negatives_meeting: 0,
        events_per_second: 1.0,
    };
    CellResult {
        dataset: dataset.into(),
        model: model.into(),
        seed,
        folder: "there".into(),
        protocol: Protocol::Stream(StreamProtocol::default()),
        config,
        train: None,
        training: None,
        ties: None,
        results: vec![row],
    }
}

/// Two datasets, three models. Two of them have seeds, one is absent from the second dataset, where
/// the other has one seed.
fn comparison() -> Comparison {
    let dataset =
        |name: &str| ComparedDataset { name: name.into(), nodes: 3, events: 10, preset: None };
    Comparison {
        title: "By hand".into(),
        datasets: vec![dataset("a_1"), dataset("b")],
        models: vec!["x".into(), "y".into(), "z".into()],
        seeds: vec![0, 1],
        asked: EvalScope { parts: vec![Part::Test], settings: vec![], strategies: vec![] },
        set: vec![],
        cells: vec![
            cell("a_1", "x", Some(0), 0.90),
            cell("a_1", "x", Some(1), 0.902),
            cell("a_1", "y", Some(0), 0.95),
            cell("a_1", "y", Some(1), 0.9522),
            cell("a_1", "z", None, 0.80),
            cell("b", "y", Some(0), 0.60),
            cell("b", "z", None, 0.70),
        ],
        failed: vec![FailedCell {
            dataset: "b".into(),
            model: "x".into(),
            seed: Some(0),
            error: "broke".into(),
        }],
        unfinished: 0,
        leads: vec![],
        published: vec![Published {
            table: "tab:t".into(),
            setting: "transductive".into(),
            negatives: "random".into(),
            metric: "ap".into(),
            dataset: "a_1".into(),
            model: "y".into(),
            mean: 0.99,
            deviation: Some(0.001),
        }],
        notes: vec!["A note.".into()],
        version: "0".into(),
    }
}

#[test]
fn markdown_has_marks_ranks_published_figures_and_failures() {
    let text = markdown(&comparison());
    for line in [
        "> A note.",
        "| a_1 | *90.10±0.10* | **95.11±0.11** [99.00±0.10] | 80.00 | +5.01 (+4.88 to +5.14) over x |",
        // One seed tells nothing of others: the higher mean is not marked.
        "| b | - | 60.00 | 70.00 | +10.00 over y |",
        // x is second, then last without a number; y first, then second; z third, then first.
        "| Avg. rank | 2.50 | 1.50 | 2.00 | |",
        "b, y: 1 of 2 seeds only.",
        "- b, x, seed 0: broke",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing:\n{text}");
    }
}

#[test]
fn latex_is_escaped_and_underlines_the_second() {
    let text = latex(&comparison());
    let row = "a\\_1 & \\underline{90.10 $\\pm$ 0.10} & \\textbf{95.11 $\\pm$ 0.11} [99.00 $\\pm$ 0.10] & 80.00 & \
         +5.01 (+4.88 to +5.14) over x \\\\";
    assert!(text.lines().any(|line| line == row), "{row} is missing:\n{text}");
    assert_eq!(escaped("a_b^2"), "a\\_b\\textasciicircum{}2");
    assert_eq!(text.matches("\\toprule").count(), 2, "a table for AP, one for AUC");
    assert_eq!(text.matches("\\begin{table}").count(), text.matches("\\end{table}").count());
}

#[test]
fn csv_has_a_line_for_every_number() {
    let text = csv(&comparison());
    assert_eq!(text.lines().count(), 1 + 7 * 4 + 1, "{text}");
    assert!(text.contains("measured,test,transductive,random,ap,a_1,x,1,0.902,\n"), "{text}");
    assert!(text.contains("published,,transductive,random,ap,a_1,y,,0.99,0.001\n"), "{text}");
}

#[test]
fn json_is_read_back() {
    let text = serde_json::to_string(&comparison()).expect("plain data");
    assert_eq!(serde_json::from_str::<Comparison>(&text).expect("read back"), comparison());
}

#[test]
fn ties_are_shown_where_cells_have_them() {
    let mut comparison = comparison();
    assert!(!markdown(&comparison).contains("Equal times"));
    for (cell, shuffled) in comparison.cells[..2].iter_mut().zip([0.7, 0.8]) {
        cell.ties = Some(TiesReport {
            model: "x".into(),
            tied_share: 1.0,
            file_ap: 0.9,
            shuffled_ap: shuffled,
            strict_ap: 0.7,
            oracle_ap: 0.77,
        });
    }
    let row = "| a_1 | x | 100 % | 90.00±0.00 | 75.00±5.00 | 70.00±0.00 | 77.00 |";
    let text = markdown(&comparison);
    assert!(text.lines().any(|line| line == row), "{text}");
    assert!(latex(&comparison).contains("a\\_1 & x & 100 \\% & 90.00 $\\pm$ 0.00"));
}
