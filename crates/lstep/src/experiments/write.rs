//! A comparison in four files: JSON with everything, CSV with a line for every number, Markdown and
//! LaTeX with the tables.

use crate::disk::{REPORT_LIMIT, read_text, write_text};
use crate::error::{InputFault, Remedy, Result};
use crate::experiments::{CellResult, Comparison, Published};
use crate::experiments::{ComparisonTable, Lead, Mark, Metric, Spread, TiesRow};
use crate::protocol::Part;
use crate::results::TiesReport;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Writes `comparison.json`, `.csv`, `.md` and `.tex` into a folder.
pub fn write_comparison(folder: &Path, comparison: &Comparison) -> Result<()> {
    let json = serde_json::to_string_pretty(comparison).expect("a comparison is plain data");
    write_text(folder.join("comparison.json"), &json)?;
    write_text(folder.join("comparison.csv"), &csv(comparison))?;
    write_text(folder.join("comparison.md"), &markdown(comparison))?;
    write_text(folder.join("comparison.tex"), &latex(comparison))
}

/// Reads what [`write_comparison`] wrote.
pub fn read_comparison(folder: &Path) -> Result<Comparison> {
    let path = folder.join("comparison.json");
    let text = read_text(&path, REPORT_LIMIT)?;
    serde_json::from_str(&text).map_err(|error| {
        let problem = format!("is no comparison ({error})");
        InputFault::new(path.display().to_string(), problem, Remedy::RepeatComparison).into()
    })
}

impl Metric {
    /// A number over seeds as tables write it: in percent, MRR as a share; the deviation where
    /// there are several seeds.
    pub fn show(self, spread: &Spread) -> String {
        self.show_figure(spread.mean, (spread.count > 1).then_some(spread.deviation))
    }

    /// A lead as tables write it, in points where the metric is in percent:
    /// `+0.53 (+0.21 to +0.85) over x`.
    pub fn lead(self, lead: &Lead) -> String {
        let number = |value: f64| match self {
            Metric::Mrr => format!("{value:+.3}"),
            Metric::Ap | Metric::Auc => format!("{:+.2}", 100.0 * value),
        };
        let interval = lead
            .interval
            .map(|(low, high)| format!(" ({} to {})", number(low), number(high)))
            .unwrap_or_default();
        format!("{}{interval} over {}", number(lead.difference), lead.over)
    }

    /// A figure as tables write it.
    pub fn show_figure(self, mean: f64, deviation: Option<f64>) -> String {
        let number = |value: f64| match self {
            Metric::Mrr => format!("{value:.3}"),
            Metric::Ap | Metric::Auc => format!("{:.2}", 100.0 * value),
        };
        let deviation = deviation.map(|deviation| format!("±{}", number(deviation)));
        number(mean) + &deviation.unwrap_or_default()
    }
}

impl ComparisonTable {
    /// What somebody published for a place of the table, where it was published.
    pub fn published<'a>(
        &self,
        comparison: &'a Comparison,
        dataset: &str,
        model: &str,
    ) -> Option<&'a Published> {
        let (setting, negatives) = (self.setting.to_string(), self.negatives.to_string());
        let metric = match self.part {
            Part::Test => self.metric.key().to_string(),
            Part::Validation => format!("validation-{}", self.metric.key()),
        };
        comparison.published.iter().find(|figure| {
            figure.setting == setting
                && figure.negatives == negatives
                && figure.metric == metric
                && figure.dataset == dataset
                && figure.model == model
        })
    }
}

impl Comparison {
    /// Epochs or seconds over seeds, with the published figure in brackets where there is one.
    pub fn time_shown(&self, metric: &str, spread: &Spread, dataset: &str, model: &str) -> String {
        let shown = |mean: f64, deviation: f64, count: usize| {
            if count > 1 { format!("{mean:.1}±{deviation:.1}") } else { format!("{mean:.1}") }
        };
        let of = |figure: &&Published| {
            figure.metric == metric && figure.dataset == dataset && figure.model == model
        };
        let measured = shown(spread.mean, spread.deviation, spread.count);
        match self.published.iter().find(of) {
            Some(figure) => {
                format!("{measured} [{}]", shown(figure.mean, figure.deviation.unwrap_or(0.0), 5))
            }
            None => measured,
        }
    }
}

/// A line of the CSV.
#[derive(Serialize)]
struct Line<'a> {
    source: &'a str,
    part: String,
    setting: String,
    negatives: String,
    metric: &'a str,
    dataset: &'a str,
    model: &'a str,
    seed: Option<u64>,
    value: f64,
    deviation: Option<f64>,
}

/// Every number on a line of its own, also those of training; published ones at the end.
pub fn csv(comparison: &Comparison) -> String {
    let mut lines = csv::Writer::from_writer(Vec::new());
    let mut put = |line: Line<'_>| lines.serialize(line).expect("lines are written to memory");
    for cell in &comparison.cells {
        numbers(cell, &mut put);
    }
    for figure in &comparison.published {
        put(Line {
            source: "published",
            part: String::new(),
            setting: figure.setting.clone(),
            negatives: figure.negatives.clone(),
            metric: &figure.metric,
            dataset: &figure.dataset,
            model: &figure.model,
            seed: None,
            value: figure.mean,
            deviation: figure.deviation,
        });
    }
    String::from_utf8(lines.into_inner().expect("lines are written to memory"))
        .expect("CSV of text is text")
}

fn numbers(cell: &CellResult, put: &mut impl FnMut(Line<'_>)) {
    let mut tell = |asked: [String; 3], metric: &str, value: Option<f64>| {
        let [part, setting, negatives] = asked;
        let Some(value) = value else { return };
        let (dataset, model, seed) = (&cell.dataset, &cell.model, cell.seed);
        put(Line {
            source: "measured",
            part,
            setting,
            negatives,
            metric,
            dataset,
            model,
            seed,
            value,
            deviation: None,
        });
    };
    for row in &cell.results {
        let values = [
            ("ap", Some(row.ap)),
            ("auc", Some(row.auc)),
            ("ap_pooled", Some(row.ap_pooled)),
            ("auc_pooled", Some(row.auc_pooled)),
            ("mrr", row.mrr),
            ("hits_1", row.hits_1),
            ("hits_10", row.hits_10),
            ("ndcg_10", row.ndcg_10),
        ];
        for (metric, value) in values {
            tell(
                [row.part.to_string(), row.setting.to_string(), row.negatives.to_string()],
                metric,
                value,
            );
        }
    }
    if let Some(training) = &cell.training {
        let values = [
            ("epochs", f64::from(training.epochs)),
            ("best_epoch", f64::from(training.best_epoch)),
            ("validation_ap", training.validation_ap),
            ("validation_auc", training.validation_auc),
            ("seconds", training.seconds),
            ("seconds_per_epoch", training.seconds_per_epoch),
            ("events_per_second", training.events_per_second),
        ];
        for (metric, value) in values {
            tell(["training".into(), String::new(), String::new()], metric, Some(value));
        }
    }
}

/// How marks look in Markdown, and what the tables say about themselves.
const LEGEND: &str = "Bold is better than every other model, italic better than every other but \
    the best: the 95 % interval of the paired difference over seeds excludes zero. One seed marks \
    nothing. Lead: the best mean over the next, with that interval. Mean and population deviation \
    over seeds; AP and ROC-AUC in %, means over steps. Avg. rank: mean place over the datasets; a \
    model without a number for one of them is last there.";

/// The tables as Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("# {}\n\n", plain(&comparison.title));
    let mut line = |line: String| writeln!(text, "{line}").expect("text grows in memory");
    comparison.notes.iter().for_each(|note| line(format!("> {}\n", plain(note))));
    line(format!(
        "{LEGEND}{}\n",
        if comparison.published.is_empty() { "" } else { " In brackets: published." }
    ));
    for table in comparison.tables() {
        line(format!("## {}\n", table.title()));
        line(format!(
            "| | {} | lead |",
            table.models.iter().map(|model| plain(model)).collect::<Vec<_>>().join(" | ")
        ));
        line(format!("|---|{}---|", "---:|".repeat(table.models.len())));
        for (row, figures) in table.rows.iter().zip(shown(&table, comparison)) {
            let lead = row.lead.as_ref().map_or("-".into(), |lead| plain(&table.metric.lead(lead)));
            line(format!("| {} | {} | {lead} |", plain(&row.dataset), figures.join(" | ")));
        }
        // Places on one dataset say less than its numbers.
        if comparison.datasets.len() > 1 {
            let ranks: Vec<String> = table.shown_ranks().collect();
            line(format!("| Avg. rank | {} | |", ranks.join(" | ")));
        }
        line(String::new());
    }
    for (dataset, model, count) in comparison.short_of_seeds() {
        line(format!(
            "{}, {}: {count} of {} seeds only.\n",
            plain(dataset),
            plain(model),
            comparison.seeds.len()
        ));
    }
    let ties = comparison.ties_rows();
    if !ties.is_empty() {
        line(format!("## Equal times: test AP, random negatives\n\n{}\n", TiesReport::MEANING));
        line(format!("| {} |", TiesRow::COLUMNS.join(" | ")));
        line(format!("|---|---|{}", "---:|".repeat(TiesRow::COLUMNS.len() - 2)));
    }
    for row in &ties {
        line(format!("| {} |", row.shown().map(|text| plain(&text)).join(" | ")));
    }
    if !ties.is_empty() {
        line(String::new());
    }
    let training = comparison.training_rows();
    if !training.is_empty() {
        line(
            "## Training\n\n| dataset | model | epochs | seconds | s per epoch | events/s |".into(),
        );
        line("|---|---|---:|---:|---:|---:|".into());
    }
    for row in training {
        let [epochs, seconds] =
            [("epochs", &row.epochs), ("seconds", &row.seconds)].map(|(metric, spread)| {
                comparison.time_shown(metric, spread, &row.dataset, &row.model)
            });
        let (each, speed) = (row.seconds_per_epoch.mean, row.events_per_second.mean);
        let (dataset, model) = (plain(&row.dataset), plain(&row.model));
        line(format!("| {dataset} | {model} | {epochs} | {seconds} | {each:.2} | {speed:.0} |"));
    }
    if !comparison.failed.is_empty() {
        line("\n## Failed\n".into());
    }
    for failed in &comparison.failed {
        let seed = failed.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        let (dataset, model, error) =
            (plain(&failed.dataset), plain(&failed.model), plain(&failed.error));
        line(format!("- {dataset}, {model}{seed}: {error}"));
    }
    text
}

/// A name as Markdown shows it and not as markup.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '|' | '*' | '`' | '[' | '\\' => plain.extend(['\\', c]),
            '\n' | '\r' => plain.push(' '),
            _ => plain.push(c),
        }
    }
    plain
}

/// The figures of a table as Markdown.
fn shown(table: &ComparisonTable, comparison: &Comparison) -> Vec<Vec<String>> {
    let cell = |dataset: &str, model: &String, cell: &Option<Spread>| {
        let mut text = cell.as_ref().map_or("-".to_string(), |cell| {
            match (table.metric.show(cell), cell.mark) {
                (text, Some(Mark::Best)) => format!("**{text}**"),
                (text, Some(Mark::Second)) => format!("*{text}*"),
                (text, None) => text,
            }
        });
        if let Some(figure) = table.published(comparison, dataset, model) {
            write!(text, " [{}]", table.metric.show_figure(figure.mean, figure.deviation))
                .expect("text grows in memory");
        }
        text
    };
    let row = |row: &super::TableRow| {
        let models = table.models.iter().zip(&row.cells);
        models.map(|(model, spread)| cell(&row.dataset, model, spread)).collect()
    };
    table.rows.iter().map(row).collect()
}

/// The tables as LaTeX, for `booktabs`.
pub fn latex(comparison: &Comparison) -> String {
    let mut text =
        String::from("% Needs \\usepackage{booktabs}. Deviations are those of the population.\n");
    for note in &comparison.notes {
        text.push_str(&format!("% {note}\n"));
    }
    for table in comparison.tables() {
        let published = table.rows.iter().any(|row| {
            table
                .models
                .iter()
                .any(|model| table.published(comparison, &row.dataset, model).is_some())
        });
        text.push_str("\n\\begin{table}\n\\centering\n");
        text.push_str(&format!(
            "\\caption{{{}. Bold: better than every other model by the 95\\,\\% interval of the \
             paired difference over seeds; underlined: better than every other but the best{}.}}\n",
            escaped(&table.title()),
            if published { "; published figures in brackets" } else { "" }
        ));
        text.push_str(&format!(
            "\\begin{{tabular}}{{l{}l}}\n\\toprule\n",
            "r".repeat(table.models.len())
        ));
        let models: Vec<String> = table.models.iter().map(|model| escaped(model)).collect();
        text.push_str(&format!("Dataset & {} & Lead \\\\\n\\midrule\n", models.join(" & ")));
        for row in &table.rows {
            text.push_str(&escaped(&row.dataset));
            for (model, cell) in table.models.iter().zip(&row.cells) {
                text.push_str(" & ");
                text.push_str(
                    &cell.as_ref().map_or("--".to_string(), |cell| latex_cell(&table, cell)),
                );
                if let Some(figure) = table.published(comparison, &row.dataset, model) {
                    let figure = table.metric.show_figure(figure.mean, figure.deviation);
                    text.push_str(&format!(" [{}]", figure.replace('±', " $\\pm$ ")));
                }
            }
            let lead = row.lead.as_ref().map(|lead| escaped(&table.metric.lead(lead)));
            text.push_str(&format!(" & {} \\\\\n", lead.as_deref().unwrap_or("--")));
        }
        let ranks: Vec<String> = table.shown_ranks().collect();
        text.push_str(&format!("\\midrule\nAvg. rank & {} & \\\\\n", ranks.join(" & ")));
        text.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    }
    let ties = comparison.ties_rows();
    if !ties.is_empty() {
        text.push_str(&format!(
            "\n\\begin{{table}}\n\\centering\n\\caption{{Equal times: test AP, random negatives. \
             {}}}\n\\begin{{tabular}}{{ll{}}}\n\\toprule\n{} \\\\\n\\midrule\n",
            escaped(TiesReport::MEANING),
            "r".repeat(TiesRow::COLUMNS.len() - 2),
            TiesRow::COLUMNS.join(" & "),
        ));
        for row in &ties {
            let cells = row.shown().map(|cell| escaped(&cell).replace('±', " $\\pm$ "));
            text.push_str(&format!("{} \\\\\n", cells.join(" & ")));
        }
        text.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    }
    text
}

fn latex_cell(table: &ComparisonTable, cell: &Spread) -> String {
    let text = table.metric.show(cell).replace('±', " $\\pm$ ");
    match cell.mark {
        Some(Mark::Best) => format!("\\textbf{{{text}}}"),
        Some(Mark::Second) => format!("\\underline{{{text}}}"),
        None => text,
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
