//! A comparison for people: its tables with marks, published figures and notes, and the cells that
//! failed.

use crate::report::write_comparison_page;
use crate::say;
use crate::table::Table;
use anyhow::{Result, bail};
use lstep::experiments::{Comparison, ComparisonTable, Mark, TiesRow, write_comparison};
use lstep::results::TiesReport;
use std::path::Path;

/// Writes a comparison's files and prints it; an error if cells failed.
pub fn tell(comparison: &Comparison, out: &Path, json: bool) -> Result<()> {
    write_comparison(out, comparison)?;
    write_comparison_page(out, comparison)?;
    if json {
        say(serde_json::to_string_pretty(comparison)?)?;
    } else {
        show(comparison)?;
        say(format!(
            "Written to {}: comparison.json, .csv, .md, .tex, and report.html to look at\n\
             Numbers without times: sha256 {}",
            out.display(),
            comparison.numbers_sha256()
        ))?;
    }
    let failed = comparison.failed.len();
    if failed == 0 {
        return Ok(());
    }
    for cell in &comparison.failed {
        let seed = cell.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        crate::tell(format!("failed: {}, {}{seed}: {}", cell.dataset, cell.model, cell.error));
    }
    bail!(
        "{failed} of {} cells failed; the same command tries them again",
        comparison.cells.len() + failed
    )
}

/// Prints the tables of a comparison.
fn show(comparison: &Comparison) -> Result<()> {
    say(&comparison.title)?;
    for dataset in &comparison.datasets {
        let of_it = comparison.cells.iter().find(|cell| cell.dataset == dataset.name);
        let protocol = of_it.map_or("-", |cell| cell.protocol.name());
        let preset =
            dataset.preset.as_ref().map(|preset| format!(", preset {preset}")).unwrap_or_default();
        let (name, nodes, events) = (&dataset.name, dataset.nodes, dataset.events);
        say(format!("{name}: {nodes} nodes, {events} events, protocol {protocol}{preset}"))?;
    }
    for table in comparison.tables() {
        say(format!("\n{}", table.title()))?;
        say(of(&table, comparison).show().trim_end())?;
    }
    let training = comparison.training_rows();
    if !training.is_empty() {
        let mut table =
            Table::new(["dataset", "model", "epochs", "seconds", "s per epoch", "events/s"]);
        for row in training {
            table.row(vec![
                row.dataset.clone(),
                row.model.clone(),
                comparison.time_shown("epochs", &row.epochs, &row.dataset, &row.model),
                comparison.time_shown("seconds", &row.seconds, &row.dataset, &row.model),
                format!("{:.2}", row.seconds_per_epoch.mean),
                format!("{:.0}", row.events_per_second.mean),
            ]);
        }
        say("\nTraining")?;
        say(table.show().trim_end())?;
    }
    let seeds = if comparison.cells.iter().any(|cell| cell.seed.is_some()) {
        format!(
            "; learned models: mean ± population deviation over {} seed(s)",
            comparison.seeds.len()
        )
    } else {
        String::new()
    };
    let published = if comparison.published.is_empty() { "" } else { "; [published]" };
    let ties = comparison.ties_rows();
    if !ties.is_empty() {
        let mut table = Table::new(TiesRow::COLUMNS);
        ties.iter().for_each(|row| table.row(row.shown().to_vec()));
        say("\nEqual times: test AP, random negatives")?;
        say(table.show().trim_end())?;
        say(TiesReport::MEANING)?;
    }
    say(format!(
        "\n¹ better than every other, ² than every other but the best: the 95 % interval of the \
         paired difference over seeds excludes zero{seeds}{published}"
    ))?;
    for (dataset, model, count) in comparison.short_of_seeds() {
        say(format!("{dataset}, {model}: {count} of {} seeds only", comparison.seeds.len()))?;
    }
    comparison.notes.iter().try_for_each(say)
}

fn of(table: &ComparisonTable, comparison: &Comparison) -> Table {
    let mut shown = Table::with_columns(
        [vec!["dataset".to_string()], table.models.clone(), vec!["lead".to_string()]].concat(),
    );
    for row in &table.rows {
        let mut cells = vec![row.dataset.clone()];
        for (model, cell) in table.models.iter().zip(&row.cells) {
            let mut text = cell.as_ref().map_or("-".to_string(), |cell| {
                table.metric.show(cell)
                    + match cell.mark {
                        Some(Mark::Best) => "¹",
                        Some(Mark::Second) => "²",
                        None => " ",
                    }
            });
            if let Some(figure) = table.published(comparison, &row.dataset, model) {
                text += &format!(" [{}]", table.metric.show_figure(figure.mean, figure.deviation));
            }
            cells.push(text);
        }
        cells.push(row.lead.as_ref().map_or("-".into(), |lead| table.metric.lead(lead)));
        shown.row(cells);
    }
    if comparison.datasets.len() == 1 {
        return shown;
    }
    let ranks = table.shown_ranks().map(|rank| format!("{rank} "));
    shown.row(
        std::iter::once("avg. rank".to_string()).chain(ranks).chain([String::new()]).collect(),
    );
    shown
}
