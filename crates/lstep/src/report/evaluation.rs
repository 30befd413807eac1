//! The report of an evaluation: models that were asked the same questions, side by side, among them
//! those of which only the scores are known.

use super::bars::{Bar, bars};
use super::page::{Cell, Page, Table};
use super::scale::grouped;
use crate::results::{EvaluationReport, ResultRow, TiesReport, Verdict};

/// An evaluation as a page.
pub fn evaluation_page(report: &EvaluationReport) -> String {
    let title = format!("Models on {}", report.dataset);
    let subtitle = format!(
        "{} nodes, {} events, protocol {}. All models answered the same questions.",
        grouped(report.nodes),
        grouped(report.events),
        report.protocol
    );
    let mut page = Page::new(&title, &subtitle);
    let questions = questions(report);
    if let Some(first) = questions.first() {
        let card = |row: &&ResultRow| {
            let (metric, value) = row.headline();
            (format!("{value:.4}"), format!("{} of {}", metric.to_uppercase(), row.model))
        };
        page.cards(&best_first(report, first).iter().take(4).map(card).collect::<Vec<_>>());
    }
    for against in &report.against_counting {
        let text = format!(
            "{} {} with {} {:.4}: {:+.4}, 95 % interval {:+.4} to {:+.4} ({}, {} negatives).",
            capital(&against.verdict.to_string()),
            against.model,
            against.metric.to_uppercase(),
            against.value,
            against.difference,
            against.low,
            against.high,
            against.setting,
            against.negatives
        );
        match against.verdict {
            Verdict::Better => page.fine(&text),
            Verdict::Worse | Verdict::NotToldApart => page.warning(&text),
        }
    }
    if let Some(warning) = report.tie_warning() {
        page.warning(&format!("{warning}."));
    }
    page.section(
        "Results",
        "The best of each kind of questions is on top; higher is better. AP and AUC are means over steps.",
    );
    for question in &questions {
        let rows = best_first(report, question);
        page.heading(&said(rows[0]));
        page.table(&table(&rows));
    }
    page.charts(questions.iter().map(|question| {
        let rows = best_first(report, question);
        let metric = rows[0].headline().0.to_uppercase();
        let bar = |row: &&ResultRow| Bar {
            name: row.model.to_string(),
            value: row.headline().1,
            says: format!("{:.4}", row.headline().1),
        };
        let all: Vec<Bar> = rows.iter().map(bar).collect();
        bars(&said(rows[0]), "Longer is better.", &metric, &all)
    }));
    if !report.ties.is_empty() {
        page.section("Equal times", TiesReport::MEANING);
        page.table(&ties_table(&report.ties));
    }
    page.section(
        "Questions",
        "Equal hashes are equal questions: other models can be asked the same.",
    );
    let mut asked = Table::default()
        .words("questions")
        .numbers("events")
        .numbers("candidates")
        .words("SHA-256 of the negatives (first 16 digits)");
    for question in &questions {
        let row = best_first(report, question)[0];
        asked.row(
            false,
            vec![
                Cell::words(said(row)),
                Cell::number(grouped(row.events)),
                Cell::number(grouped(row.pairs)),
                Cell::words(row.negatives_sha256.chars().take(16).collect::<String>()),
            ],
        );
    }
    page.table(&asked);
    page.finish()
}

/// What the order of events that share a time is worth, a row for each model.
pub(super) fn ties_table(ties: &[TiesReport]) -> Table {
    let [model, numbers @ ..] = TiesReport::COLUMNS;
    let start = Table::default().words(model);
    let mut table = numbers.iter().fold(start, |table, column| table.numbers(column));
    for report in ties {
        let [model, numbers @ ..] = report.shown();
        let cells = std::iter::once(Cell::words(model)).chain(numbers.map(Cell::number));
        table.row(false, cells.collect());
    }
    table
}

/// A kind of questions: the negatives' hash tells them apart.
type Question = (String, String);

fn question(row: &ResultRow) -> Question {
    (said(row), row.negatives_sha256.clone())
}

fn said(row: &ResultRow) -> String {
    format!("{} part, {} setting, {} negatives", row.part, row.setting, row.negatives)
}

fn questions(report: &EvaluationReport) -> Vec<Question> {
    let mut all = Vec::new();
    for row in &report.results {
        if !all.contains(&question(row)) {
            all.push(question(row));
        }
    }
    all
}

fn best_first<'r>(report: &'r EvaluationReport, asked: &Question) -> Vec<&'r ResultRow> {
    let mut rows: Vec<&ResultRow> =
        report.results.iter().filter(|row| question(row) == *asked).collect();
    rows.sort_by(|a, b| b.headline().1.total_cmp(&a.headline().1));
    rows
}

fn table(rows: &[&ResultRow]) -> Table {
    type Metric = (&'static str, fn(&ResultRow) -> Option<f64>);
    let metrics: [Metric; 6] = [
        ("MRR", |row| row.mrr),
        ("Hits@1", |row| row.hits_1),
        ("Hits@10", |row| row.hits_10),
        ("NDCG@10", |row| row.ndcg_10),
        ("AP", |row| Some(row.ap)),
        ("AUC", |row| Some(row.auc)),
    ];
    let used: Vec<&Metric> =
        metrics.iter().filter(|(_, of)| rows.iter().any(|row| of(row).is_some())).collect();
    let start = Table::default().words("model");
    let mut table = used.iter().fold(start, |table, (name, _)| table.numbers(name));
    for row in rows {
        let mut cells = vec![Cell::words(row.model.to_string())];
        for (_, of) in &used {
            let values = || rows.iter().filter_map(|row| of(row));
            cells.push(match of(row) {
                Some(value) => {
                    let above = values().filter(|other| *other > value).count();
                    Cell::ranked(format!("{value:.4}"), above)
                }
                None => Cell::number("–"),
            });
        }
        table.row(false, cells);
    }
    table
}

/// A sentence begins with a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
