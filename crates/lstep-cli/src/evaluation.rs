//! An evaluation for people: what `lstep evaluate` and the end of a training print.

use crate::say;
use crate::table::Table;
use anyhow::Result;
use lstep::model::ModelConfig;
use lstep::results::{EvaluationReport, ResultRow, TiesReport};
use lstep::settings::Purpose;

/// Prints an evaluation for people: a line for each result of one model, or a line for each of
/// several models.
pub fn show(report: &EvaluationReport) -> Result<()> {
    let same = |of: fn(&ResultRow) -> String, what: &str| {
        let first = report.results.first().map(of)?;
        let all = report.results.iter().all(|row| of(row) == first);
        all.then(|| format!(", {first} {what}"))
    };
    say(format!(
        "{}: {} nodes, {} events, protocol {}{}{}",
        report.dataset,
        report.nodes,
        report.events,
        report.protocol,
        same(|row| row.part.to_string(), "part").unwrap_or_default(),
        same(|row| row.setting.to_string(), "setting").unwrap_or_default()
    ))?;
    let columns = report.results.iter().filter(|row| row.model == report.results[0].model).count();
    let ranked = ranks_among_baselines(report);
    let table = if report.results.len() > columns {
        by_model(report)
    } else if ranked {
        by_rank(report)
    } else {
        by_result(report)
    };
    say(table.show().trim_end())?;
    tell_the_worst(
        report,
        |row| row.negatives_filled,
        "are random pairs, for history had no more of that kind",
    )?;
    let meeting = "meet in their own step, for nobody else was left: smaller steps say more";
    tell_the_worst(report, |row| row.negatives_meeting, meeting)?;
    if let Some(warning) = report.tie_warning() {
        say(format!("{warning} (--ties shuffled, or --set protocol.ties=shuffled to train)"))?;
    }
    show_ties(&report.ties)?;
    if report.results.iter().any(|row| row.negatives_generated) {
        say(
            "TGB's negatives were made by its rule, for there was no file of them: not comparable with the leaderboard",
        )?;
    }
    if report.results.iter().any(|row| row.mrr.is_some()) {
        say("mrr: mean reciprocal rank of the true destination, ties in the middle")?;
    }
    if ranked {
        return say("hits@k: share of questions whose answer is among the first k (recall@k)");
    }
    say("ap and auc: mean over steps")?;
    // A run is compared with all models that count, scores of a file with those beside them.
    let rivals = match report.settings.is_some() {
        true => "the best of all models that only count",
        false => "the best of the others",
    };
    report.against_counting.iter().try_for_each(|against| {
        say(format!(
            "{}, {} negatives: {} {}, {rivals} ({} {}): {:+.4}, 95 % interval {:+.4} to {:+.4}",
            against.setting,
            against.negatives,
            against.verdict,
            against.model,
            against.metric,
            share(against.value),
            against.difference,
            against.low,
            against.high
        ))
    })
}

/// An evaluation as a table for a paper.
pub fn latex(report: &EvaluationReport) -> String {
    by_model(report).latex()
}

/// What the order of events that share a time is worth, a line for each model; nothing where there
/// is nothing to tell.
pub fn show_ties(ties: &[TiesReport]) -> Result<()> {
    if ties.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(TiesReport::COLUMNS);
    ties.iter().for_each(|report| table.row(report.shown().to_vec()));
    say("\nEqual times: test AP by the order of events that share a time")?;
    say(table.show().trim_end())?;
    say(TiesReport::MEANING)
}

/// Says what is odd about some of the negatives, where there are most of them.
fn tell_the_worst(
    report: &EvaluationReport,
    count: fn(&ResultRow) -> usize,
    what: &str,
) -> Result<()> {
    let odd = report.results.iter().filter(|row| count(row) > 0);
    odd.max_by_key(|row| count(row)).map_or(Ok(()), |row| {
        let negatives = row.pairs - row.events;
        say(format!(
            "{} of the {negatives} negatives ({}, {}) {what}",
            count(row),
            row.setting,
            row.negatives
        ))
    })
}

/// A share with four digits.
pub fn share(value: f64) -> String {
    format!("{value:.4}")
}

/// A line for each result, in 80 columns: what is the same in all of them is said above the table,
/// and pooled areas and seconds are in the JSON.
fn by_result(report: &EvaluationReport) -> Table {
    type Column = (&'static str, fn(&ResultRow) -> String);
    let all: [Column; 9] = [
        ("model", |row| row.model.to_string()),
        ("part", |row| row.part.to_string()),
        ("setting", |row| row.setting.to_string()),
        ("negatives", |row| row.negatives.to_string()),
        ("ap", |row| share(row.ap)),
        ("auc", |row| share(row.auc)),
        ("mrr", |row| row.mrr.map_or("-".into(), share)),
        ("hits@10", |row| row.hits_10.map_or("-".into(), share)),
        ("events", |row| row.events.to_string()),
    ];
    let told = |(name, of): &&Column| match *name {
        "part" | "setting" => report.results.iter().any(|row| of(row) != of(&report.results[0])),
        "mrr" | "hits@10" => report.results.iter().any(|row| of(row) != "-"),
        _ => true,
    };
    let columns: Vec<&Column> = all.iter().filter(told).collect();
    let mut table = Table::with_columns(columns.iter().map(|(name, _)| name.to_string()).collect());
    for row in &report.results {
        table.row(columns.iter().map(|(_, of)| of(row)).collect());
    }
    table
}

/// Whether a run was ranked once, beside counting models.
fn ranks_among_baselines(report: &EvaluationReport) -> bool {
    let ranking =
        report.settings.as_ref().is_some_and(|settings| settings.purpose == Purpose::Ranking);
    ranking && report.results.len() == 1 && report.results[0].mrr.is_some()
}

/// A run's ranks beside those of the best counting models. The others are in report.json.
fn by_rank(report: &EvaluationReport) -> Table {
    let mut table = Table::new(["model", "mrr", "hits@1", "hits@10", "ndcg@10", "auc"]);
    let asked = &report.results[0];
    let same = |row: &&ResultRow| row.part == asked.part && row.negatives == asked.negatives;
    let mut baselines: Vec<&ResultRow> = report.baselines.iter().filter(same).collect();
    baselines.sort_by(|a, b| b.mrr.unwrap_or(0.0).total_cmp(&a.mrr.unwrap_or(0.0)));
    for row in report.results.iter().chain(baselines.into_iter().take(3)) {
        let shown = |value: Option<f64>| value.map_or("-".into(), share);
        table.row(vec![
            row.model.to_string(),
            shown(row.mrr),
            shown(row.hits_1),
            shown(row.hits_10),
            shown(row.ndcg_10),
            share(row.auc),
        ]);
    }
    table
}

/// AP and AUC, or MRR where there is one, of every kind of question side by side.
fn by_model(report: &EvaluationReport) -> Table {
    let question = |row: &ResultRow| (row.part, row.setting, row.negatives);
    let mut questions = Vec::new();
    let mut models: Vec<&ModelConfig> = Vec::new();
    for row in &report.results {
        if !questions.contains(&question(row)) {
            questions.push(question(row));
        }
        if !models.contains(&&row.model) {
            models.push(&row.model);
        }
    }
    let mut header = vec!["model".to_string()];
    for (split, setting, negatives) in &questions {
        let ranked = report
            .results
            .iter()
            .any(|row| question(row) == (*split, *setting, *negatives) && row.mrr.is_some());
        let mut name = vec![negatives.to_string()];
        if questions.iter().any(|other| other.1 != *setting) {
            name.push(setting.to_string());
        }
        if questions.iter().any(|other| other.0 != *split) {
            name.push(split.to_string());
        }
        header.push(format!("{} {}", name.join(" "), if ranked { "mrr" } else { "ap" }));
        header.push("auc".to_string());
    }
    let mut table = Table::with_columns(header);
    for model in models {
        let mut cells = vec![model.to_string()];
        for asked in &questions {
            let found =
                report.results.iter().find(|row| row.model == *model && question(row) == *asked);
            cells.push(found.map_or("-".into(), |row| share(row.headline().1)));
            cells.push(found.map_or("-".into(), |row| share(row.auc)));
        }
        table.row(cells);
    }
    table
}
