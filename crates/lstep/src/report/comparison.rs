//! The report of a comparison: its tables, which differences are more than chance, and what quality
//! costs.

use super::bars::{Bar, bars};
use super::chart::{Ink, Mark, Plot};
use super::page::{Cell, Page, Table};
use super::ranks::{Ranks, rank_chart};
use super::scale::{Axis, grouped, seconds, short};
use crate::experiments::{
    CellResult, Comparison, ComparisonTable, Mark as Standing, Metric, Spread, TableRow, TiesRow,
};
use crate::results::TiesReport;

/// Datasets that get a chart of their own at most.
const DATASETS: usize = 6;

/// A comparison as a page.
pub fn comparison_page(comparison: &Comparison) -> String {
    let datasets: Vec<&str> =
        comparison.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
    let subtitle = format!(
        "{} models on {} ({}), seeds {}.",
        comparison.models.len(),
        if datasets.len() == 1 {
            "one dataset".into()
        } else {
            format!("{} datasets", datasets.len())
        },
        datasets.join(", "),
        comparison.seeds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    let mut page = Page::new(&comparison.title, &subtitle);
    let tables = comparison.tables();
    if let Some(main) = tables.iter().find(|table| counts(table)) {
        headline(&mut page, comparison, main);
    }
    warnings(&mut page, comparison);
    for note in &comparison.notes {
        page.paragraph(note);
    }
    let main_tables = tables.iter().filter(|table| counts(table));
    if comparison.datasets.len() == 1 {
        page.section("Models", "Mean over seeds; the best is on top.");
        page.charts(main_tables.filter_map(model_bars));
    } else {
        page.section(
            "Average ranks",
            "Every model is ranked on every dataset by its mean over seeds; equal models share the mean of their places.",
        );
        let drawn = |table: &ComparisonTable| {
            let ranks = ranks(table);
            (ranks.datasets > 0).then(|| rank_chart(&format!("Ranks: {}", table.title()), &ranks))
        };
        let charts: Vec<String> = main_tables.filter_map(drawn).collect();
        if charts.is_empty() {
            page.paragraph("There is no dataset on which every model has a number, so nothing can be ranked fairly.");
        }
        page.charts(charts);
    }
    page.section(
        "Tables",
        "Mean ± deviation over seeds (of the population). ① is better than every other of its row, \
         ② than every other but the best: the 95 % interval of the paired difference over seeds \
         excludes zero. Lead: the best mean over the next, with that interval. AP and ROC-AUC in \
         percent, MRR as a share; higher is better. In brackets: published elsewhere, not measured \
         here. In the last row a missing number is last, and equal ones share the better place, as \
         in published tables.",
    );
    for table in &tables {
        page.heading(&table.title());
        page.table(&numbers(comparison, table));
    }
    let ties = comparison.ties_rows();
    if !ties.is_empty() {
        page.section("Equal times", TiesReport::MEANING);
        let [dataset, model, numbers @ ..] = TiesRow::COLUMNS;
        let start = Table::default().words(dataset).words(model);
        let mut table = numbers.iter().fold(start, |table, column| table.numbers(column));
        for row in &ties {
            let [dataset, model, numbers @ ..] = row.shown();
            let words = [Cell::words(dataset), Cell::words(model)];
            table.row(false, words.into_iter().chain(numbers.map(Cell::number)).collect());
        }
        page.table(&table);
    }
    page.section(
        "Quality against time",
        "Training and test together, mean over seeds. Up and to the left is better.",
    );
    let main = tables.iter().find(|table| counts(table));
    page.charts(main.into_iter().flat_map(|table| {
        comparison
            .datasets
            .iter()
            .take(DATASETS)
            .map(|dataset| scatter(comparison, table, &dataset.name))
    }));
    let curves: Vec<String> = comparison
        .datasets
        .iter()
        .take(DATASETS)
        .filter_map(|dataset| curves(comparison, &dataset.name))
        .collect();
    if !curves.is_empty() {
        page.section(
            "Learning",
            "Validation of every epoch, mean over the seeds that still trained then.",
        );
        page.charts(curves);
    }
    page.section("Training", "Epochs until training stopped, and what they took.");
    page.table(&training(comparison));
    page.section("Data and settings", "");
    page.table(&data(comparison));
    if !comparison.set.is_empty() {
        page.paragraph(&format!("Set for all cells: {}.", comparison.set.join(", ")));
    }
    for cell in first_cells(comparison) {
        let text = serde_json::to_string_pretty(&(&cell.protocol, &cell.config, &cell.train))
            .expect("plain data");
        page.folded(
            &format!(
                "All settings of {} on {}: protocol, model, training",
                cell.model, cell.dataset
            ),
            &text,
        );
    }
    page.finish()
}

/// Tables that stand for a kind of question: one each, by the metric that counts there.
fn counts(table: &ComparisonTable) -> bool {
    table.metric != Metric::Auc
}

/// The models of the only dataset, from the best to the worst.
fn best_first(table: &ComparisonTable) -> Vec<(&String, &Spread)> {
    let cells = table.rows.first().map_or(&[][..], |row| &row.cells);
    let mut models: Vec<(&String, &Spread)> = table
        .models
        .iter()
        .zip(cells)
        .filter_map(|(model, cell)| Some((model, cell.as_ref()?)))
        .collect();
    models.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    models
}

/// The metric of each model on the only dataset.
fn model_bars(table: &ComparisonTable) -> Option<String> {
    let bar = |(model, spread): (&String, &Spread)| Bar {
        name: model.clone(),
        value: spread.mean,
        says: table.metric.show(spread),
    };
    let all: Vec<Bar> = best_first(table).into_iter().map(bar).collect();
    let about = "Mean and deviation over seeds; higher is better.";
    (!all.is_empty()).then(|| bars(&table.title(), about, table.metric.title(), &all))
}

/// The models that come first, and whether learning was worth it.
fn headline(page: &mut Page, comparison: &Comparison, main: &ComparisonTable) {
    let ranked = ranks(main);
    if comparison.datasets.len() == 1 {
        let card = |(name, spread): &(&String, &Spread)| {
            (main.metric.show(spread), format!("{name} ({})", main.title()))
        };
        page.cards(&best_first(main).iter().take(4).map(card).collect::<Vec<_>>());
    }
    let card = |(name, rank): &(String, f64)| {
        (format!("{rank:.2}"), format!("average rank of {name} ({})", main.title()))
    };
    if ranked.datasets > 0 && comparison.datasets.len() > 1 {
        page.cards(&ranked.models.iter().take(4).map(card).collect::<Vec<_>>());
    }
    let learned: Vec<bool> = main
        .models
        .iter()
        .map(|model| {
            comparison.cells.iter().any(|cell| cell.model == *model && cell.training.is_some())
        })
        .collect();
    let best = |row: &TableRow, wanted: bool| {
        let cells = row.cells.iter().zip(&learned).filter(|(_, learned)| **learned == wanted);
        cells
            .filter_map(|(cell, _)| cell.as_ref())
            .max_by(|a, b| a.mean.total_cmp(&b.mean))
            .map(|cell| (cell.mean, cell.interval()))
    };
    let both: Vec<_> =
        main.rows.iter().filter_map(|row| Some((best(row, true)?, best(row, false)?))).collect();
    let behind = both.iter().filter(|(learned, counted)| learned.0 <= counted.0).count();
    let shown = both
        .iter()
        .filter(|(learned, counted)| learned.1.is_some_and(|(low, _)| low > counted.0))
        .count();
    let (datasets, title) = (both.len(), main.title());
    if datasets == 0 {
        return;
    }
    if shown == datasets {
        page.fine(
            "On every dataset a learned model is better than every model that only counts, and so \
             is its whole 95 % interval over seeds.",
        );
    } else if behind > 0 {
        page.warning(&format!(
            "On {behind} of {datasets} datasets, a model that only counts is as good as every \
             learned one ({title})."
        ));
    }
    let open = datasets - shown - behind;
    if open > 0 {
        page.warning(&format!(
            "On {open} of {datasets} datasets the best learned model has the higher mean, but its \
             95 % interval over seeds does not exclude the best model that only counts: use more \
             seeds ({title})."
        ));
    }
}

fn warnings(page: &mut Page, comparison: &Comparison) {
    if comparison.unfinished > 0 {
        page.warning(&format!(
            "{} cells are not finished: the tables are of what there is.",
            comparison.unfinished
        ));
    }
    for failed in &comparison.failed {
        let seed = failed.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        page.warning(&format!(
            "{} on {}{seed} failed: {}",
            failed.model, failed.dataset, failed.error
        ));
    }
    if comparison.seeds.len() < 2 {
        page.warning("One seed only: deviations are unknown, and small differences may be chance.");
    }
    let few = comparison.cells.iter().flat_map(|cell| &cell.results).map(|row| row.events).min();
    if let Some(few) = few.filter(|events| *events < 1_000) {
        page.warning(&format!("Some numbers are of only {} test events.", grouped(few)));
    }
}

fn ranks(table: &ComparisonTable) -> Ranks {
    let means =
        |row: &TableRow| row.cells.iter().map(|cell| cell.as_ref().map(|cell| cell.mean)).collect();
    let rows: Vec<Vec<Option<f64>>> = table.rows.iter().map(means).collect();
    Ranks::of(&table.models, &rows)
}

fn numbers(comparison: &Comparison, table: &ComparisonTable) -> Table {
    let mut shown = table
        .models
        .iter()
        .fold(Table::default().words("dataset"), |shown, model| shown.numbers(model))
        .words("lead");
    for row in &table.rows {
        let mut cells = vec![Cell::words(&row.dataset)];
        for (model, cell) in table.models.iter().zip(&row.cells) {
            let published = table
                .published(comparison, &row.dataset, model)
                .map(|figure| {
                    format!(" ({})", table.metric.show_figure(figure.mean, figure.deviation))
                })
                .unwrap_or_default();
            cells.push(match cell {
                None => Cell::number(format!("–{published}")),
                Some(spread) => {
                    let place = match spread.mark {
                        Some(Standing::Best) => 0,
                        Some(Standing::Second) => 1,
                        None => usize::MAX,
                    };
                    Cell::ranked(table.metric.show(spread) + &published, place)
                }
            });
        }
        cells.push(Cell::words(
            row.lead.as_ref().map_or("–".into(), |lead| table.metric.lead(lead)),
        ));
        shown.row(false, cells);
    }
    if comparison.datasets.len() > 1 {
        let mut last = vec![Cell::words("average rank")];
        last.extend(table.shown_ranks().map(Cell::number));
        last.push(Cell::words(""));
        shown.row(true, last);
    }
    shown
}

/// Seconds of a cell: all its epochs, and all its test questions.
fn cost(cell: &CellResult) -> f64 {
    cell.training.as_ref().map_or(0.0, |training| training.seconds)
        + cell.results.iter().map(|row| row.seconds).sum::<f64>()
}

fn scatter(comparison: &Comparison, table: &ComparisonTable, dataset: &str) -> String {
    let mut plot = Plot::new(
        &format!("{dataset}: {} against time", table.metric.title()),
        &format!("{}; the time axis is logarithmic.", table.title()),
        Axis::logarithmic("seconds of training and test"),
        Axis::new(table.metric.title()),
    );
    let row = table.rows.iter().find(|row| row.dataset == dataset);
    for (place, model) in table.models.iter().enumerate() {
        let Some(spread) = row.and_then(|row| row.cells.get(place)).and_then(Option::as_ref) else {
            continue;
        };
        let times: Vec<f64> = comparison
            .cells
            .iter()
            .filter(|cell| cell.dataset == dataset && cell.model == *model)
            .map(cost)
            .collect();
        let time = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let says =
            format!("{model}\n{} {:.4}\n{}", table.metric.title(), spread.mean, seconds(time));
        plot = plot.lettered(
            model,
            Ink::Kind(place),
            letter(place),
            Mark::new(time.max(1e-4), spread.mean, says),
        );
    }
    plot.draw()
}

/// A sign for a model in a chart: A, B, and so on.
fn letter(place: usize) -> char {
    char::from(b'A' + (place % 26) as u8)
}

fn curves(comparison: &Comparison, dataset: &str) -> Option<String> {
    let mut plot = Plot::new(
        &format!("{dataset}: validation"),
        "AP on validation after each epoch against random negatives (the benchmark's under tgb; where selection asks about other \
         kinds only, their mean).",
        Axis::whole("epoch"),
        Axis::new("validation AP"),
    );
    let mut any = false;
    for (place, model) in comparison.models.iter().enumerate() {
        let cells: Vec<&CellResult> = comparison
            .cells
            .iter()
            .filter(|cell| cell.dataset == dataset && cell.model == *model)
            .collect();
        let longest = cells
            .iter()
            .filter_map(|cell| Some(cell.training.as_ref()?.curve.len()))
            .max()
            .unwrap_or(0);
        let mean = |epoch: usize| {
            let values: Vec<f64> = cells
                .iter()
                .filter_map(|cell| Some(cell.training.as_ref()?.curve.get(epoch)?.ap_on_random()))
                .collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            Mark::new(
                epoch as f64 + 1.0,
                mean,
                format!("{model}\nepoch {}\nAP {mean:.4}, {} seeds", epoch + 1, values.len()),
            )
        };
        if longest > 0 {
            any = true;
            plot = plot.line(model, Ink::Kind(place), (0..longest).map(mean).collect());
        }
    }
    any.then(|| plot.draw())
}

fn training(comparison: &Comparison) -> Table {
    let mut table = Table::default()
        .words("dataset")
        .words("model")
        .numbers("epochs")
        .numbers("training and validation")
        .numbers("one epoch's training")
        .numbers("training events per second");
    for row in comparison.training_rows() {
        table.row(
            false,
            vec![
                Cell::words(&row.dataset),
                Cell::words(&row.model),
                Cell::number(format!("{:.1}", row.epochs.mean)),
                Cell::number(seconds(row.seconds.mean)),
                Cell::number(seconds(row.seconds_per_epoch.mean)),
                Cell::number(short(row.events_per_second.mean)),
            ],
        );
    }
    table
}

fn data(comparison: &Comparison) -> Table {
    let mut table = Table::default()
        .words("dataset")
        .numbers("nodes")
        .numbers("events")
        .words("settings from preset");
    for dataset in &comparison.datasets {
        let preset = dataset.preset.clone().unwrap_or_else(|| "none: each model's defaults".into());
        let (nodes, events) = (grouped(dataset.nodes), grouped(dataset.events));
        table.row(
            false,
            vec![
                Cell::words(&dataset.name),
                Cell::number(nodes),
                Cell::number(events),
                Cell::words(preset),
            ],
        );
    }
    table
}

/// One cell of each model and dataset: seeds differ in nothing else.
fn first_cells(comparison: &Comparison) -> Vec<&CellResult> {
    let mut first: Vec<&CellResult> = Vec::new();
    for cell in &comparison.cells {
        if !first.iter().any(|other| other.dataset == cell.dataset && other.model == cell.model) {
            first.push(cell);
        }
    }
    first
}
