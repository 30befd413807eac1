//! The report of a run: what the model is worth on its data beside models that only count, and what
//! it looks like inside.

use super::answers::{self, quality_of};
use super::bars::{Bar, bars};
use super::chart::{Ink, Mark, Plot};
use super::evaluation::ties_table;
use super::figures::calibration;
use super::page::{Cell, Page, Table};
use super::scale::{Axis, grouped, seconds};
use super::{diagnostics, examples, stream};
use crate::error::{Error, Result};
use crate::evaluation::ScoreLog;
use crate::protocol::{StepRule, Strategy, Visibility};
use crate::results::{EpochReport, ResultRow, TiesReport, Verdict, main_row};
use crate::stream::DatasetStats;
use crate::training::{
    EvaluationWithBaselines, RunFolder, ScoredModel, TrainedRun, stopped_while_gaining,
};

/// A calibration error above this is worth a warning.
const POOR_CALIBRATION: f64 = 0.1;
/// So many counting models are shown beside the trained one.
const SHOWN_COUNTING: usize = 3;
/// With fewer test events than this, the second digit of a number is chance.
const FEW_EVENTS: usize = 1_000;
/// The report of a run as a page. `evaluated` is what [`TrainedRun::evaluate_with_baselines`] gave.
pub fn run_page(
    folder: &RunFolder,
    trained: &TrainedRun,
    evaluated: &EvaluationWithBaselines,
) -> Result<String> {
    page_of_run(&folder.epochs()?, trained, evaluated)
}

/// The same for a run that is in no folder; its epochs are what [`TrainedRun::epochs`] gives.
pub fn page_of_run(
    epochs: &[EpochReport],
    trained: &TrainedRun,
    evaluated: &EvaluationWithBaselines,
) -> Result<String> {
    let Some(main) = main_row(&evaluated.model.results) else {
        return Err(Error::setting(
            "asked",
            "nothing",
            "a report needs at least one kind of question",
        ));
    };
    let stream = trained.stream();
    let title = format!("{} on {}", evaluated.model.name, stream.name);
    let mut page = Page::new(&title, &subtitle(trained, evaluated));
    headline(&mut page, evaluated, main);
    if let Some(warning) = unfinished(trained, epochs) {
        page.warning(&warning);
    }
    page.section("Results on the test part", RESULTS);
    page.table(&results(evaluated));
    page.section(
        "Learning",
        "A line of metrics.jsonl for each epoch; the best epoch is the one that is evaluated.",
    );
    page.charts(learning(epochs));
    let shown: Vec<&ScoreLog> = evaluated
        .model
        .records
        .iter()
        .filter(|record| record.setting == main.setting && !record.is_empty())
        .collect();
    examples_of(&mut page, trained, evaluated);
    page.section("Answers", &answers::about(main.setting, &shown));
    page.charts(answers::charts(evaluated, &shown));
    page.section(
        "Quality over time and by activity",
        "Where a mean over the whole test part hides something. All curves ask the same events.",
    );
    page.charts(answers::quality(trained, evaluated, &shown));
    let charts = diagnostics::charts(
        &trained.after_training()?,
        &trained.at_the_end()?.describe(),
        stream.log.events(),
        &stream.names,
    );
    if !charts.is_empty() {
        page.section("Inside the model", "What it has learned, in numbers that scoring uses.");
        page.charts(charts);
    }
    page.section(
        "Time",
        "Wall-clock time on the machine that trained and evaluated; no result depends on it.",
    );
    page.charts([phases(trained, evaluated, epochs), pace(epochs)]);
    page.section("Statistics of the data", &stats_about(trained));
    let clock = stream::display_clock(&stream.clock, stream.log.events());
    page.charts(stream::charts(stream.log.events(), &clock, trained.split()));
    page.section("Settings and protocol", &protocol(trained));
    page.table(&questions(evaluated));
    if let Some(command) = trained.command() {
        page.paragraph(&format!("Made by lstep {} with:", evaluated.report.version));
        page.verbatim(&command);
    }
    page.paragraph("All settings, as in config.toml:");
    page.verbatim(&trained.config().to_toml());
    Ok(page.finish())
}

const RESULTS: &str = "① is the best, ② the second of a row. AP and AUC are means over steps; higher is better; 0.5 is guessing \
                       where an event has one negative. The counting models learn nothing: a learned model has to beat them.";

/// Metrics of ranks, where a row has them.
type RankMetric = (&'static str, fn(&ResultRow) -> Option<f64>);
const RANKS: [RankMetric; 3] =
    [("Hits@1", |row| row.hits_1), ("Hits@10", |row| row.hits_10), ("NDCG@10", |row| row.ndcg_10)];

fn question(row: &ResultRow) -> String {
    if row.mrr.is_some() && row.negatives == Strategy::Random {
        return format!("among {} destinations", grouped(row.pairs / row.events.max(1)));
    }
    format!("{}, {} negatives", row.setting, row.negatives)
}

fn subtitle(trained: &TrainedRun, evaluated: &EvaluationWithBaselines) -> String {
    let report = &evaluated.report;
    format!(
        "Temporal link prediction: {} trained on the first part of {} ({} nodes, {} events), asked about its last part under protocol \
         {}. Seed {}.",
        report.model,
        report.dataset,
        grouped(report.nodes),
        grouped(report.events),
        report.protocol,
        trained.config().train.seed
    )
}

/// Said where the benchmark's own negatives were not at hand.
const GENERATED: &str = "TGB's negatives were made by its rule, for there was no file of them: \
     these numbers are not comparable with the leaderboard.";

fn headline(page: &mut Page, evaluated: &EvaluationWithBaselines, main: &ResultRow) {
    let (metric, value) = quality_of(main);
    let mut cards = vec![(
        format!("{value:.4}"),
        format!("{} {metric} of {} ({})", main.part, evaluated.model.name, question(main)),
    )];
    cards.extend(best_counting(evaluated).iter().map(|model| {
        let value = main_row(&model.results).map_or(0.0, |row| quality_of(row).1);
        (format!("{value:.4}"), format!("{}, the same questions", model.name))
    }));
    page.cards(&cards);
    for (place, against) in evaluated.report.against_counting.iter().enumerate() {
        let row = &evaluated.model.results[place];
        let told = format!(
            "{} {:.4} against {:.4} of {}, the best of all models that only count, {}: {:+.4}, 95 % \
             interval {:+.4} to {:+.4}",
            quality_of(row).0,
            against.value + against.difference,
            against.value,
            against.model,
            question(row),
            against.difference,
            against.low,
            against.high
        );
        match against.verdict {
            Verdict::Better if place == 0 && evaluated.report.tie_warning().is_some() => {
                page.warning(&format!(
                    "Better than counting, but the order of tied rows may be why: {told}."
                ));
            }
            Verdict::Better if place == 0 => page.fine(&format!("Learning pays here: {told}.")),
            Verdict::Better => {}
            Verdict::Worse => page.warning(&format!(
                "Counting is better: {told}. On these questions the trained model does not earn \
                 its cost."
            )),
            Verdict::NotToldApart => page.warning(&format!(
                "No difference that chance would not explain: {told}. On these questions the \
                 trained model is not shown to earn its cost."
            )),
        }
    }
    if evaluated.model.results.iter().any(|row| row.negatives_generated) {
        page.warning(GENERATED);
    }
    if let Some(warning) = evaluated.report.tie_warning() {
        page.warning(&format!("{warning}."));
    }
    if !evaluated.report.ties.is_empty() {
        page.heading("Equal times: test AP by the order of events that share a time");
        page.table(&ties_table(&evaluated.report.ties));
        page.paragraph(TiesReport::MEANING);
    }
    let first = evaluated.model.records.first().filter(|_| evaluated.calibration.is_none());
    let poor = first.map(calibration).filter(|found| found.error > POOR_CALIBRATION);
    if let Some(found) = poor {
        page.warning(&format!(
            "Calibration is poor: probabilities are off by {:.3} on average. Use scores to rank, not as probabilities.",
            found.error
        ));
    }
    if main.events < FEW_EVENTS {
        page.warning(&format!(
            "Only {} test events: differences of a few hundredths can be chance. Train with several seeds.",
            grouped(main.events)
        ));
    }
}

/// What to say where training was stopped by the number of epochs while it still gained.
fn unfinished(trained: &TrainedRun, epochs: &[EpochReport]) -> Option<String> {
    let most = stopped_while_gaining(trained.config(), epochs)?;
    Some(format!(
        "The best epoch is the last of {most}: the model may not have learned all it can. Train \
         it for more epochs."
    ))
}

/// Questions with what was shown and what happened, and the worst misses.
fn examples_of(page: &mut Page, trained: &TrainedRun, evaluated: &EvaluationWithBaselines) {
    let found = &evaluated.examples;
    if found.spread.is_empty() {
        return;
    }
    let stream = trained.stream();
    let clock = stream::display_clock(&stream.clock, stream.log.events());
    let curve = evaluated.calibration.as_ref();
    let said = match curve {
        Some(_) => " In percent: the probability that was said.",
        None => "",
    };
    page.section(
        "Examples",
        &format!(
            "Ten of {} test questions, spread over time: the five destinations that the model \
             would have shown first, and what happened. Marked rows were right.{said}",
            grouped(found.questions)
        ),
    );
    page.table(&examples::table(&found.spread, &stream.names, &clock, curve));
    if !found.misses.is_empty() {
        page.heading("The worst misses");
        page.paragraph(
            "What happened was ranked lowest here. Was it new, or is something missing in the \
             data?",
        );
        page.table(&examples::table(&found.misses, &stream.names, &clock, curve));
    }
}

/// The counting models that are best on the main questions: all of them would hide the picture.
fn best_counting(evaluated: &EvaluationWithBaselines) -> Vec<&ScoredModel> {
    let quality =
        |model: &&ScoredModel| main_row(&model.results).map_or(0.0, |row| quality_of(row).1);
    let mut models: Vec<&ScoredModel> = evaluated.counting.iter().collect();
    models.sort_by(|a, b| quality(b).total_cmp(&quality(a)));
    models.truncate(SHOWN_COUNTING);
    models
}

fn results(evaluated: &EvaluationWithBaselines) -> Table {
    let everybody: Vec<&ScoredModel> =
        std::iter::once(&evaluated.model).chain(best_counting(evaluated)).collect();
    let mut table = Table::default().words("test questions").words("metric");
    for scored_model in &everybody {
        table = table.numbers(&scored_model.name);
    }
    for (query_set, row) in evaluated.model.results.iter().enumerate() {
        let mut add = |about: String, metric: &str, of: &dyn Fn(&ResultRow) -> f64| {
            let values: Vec<f64> =
                everybody.iter().map(|scored_model| of(&scored_model.results[query_set])).collect();
            let place = |value: f64| values.iter().filter(|other| **other > value).count();
            let main = !about.is_empty();
            let mut cells = vec![Cell::words(about), Cell::words(metric)];
            cells.extend(
                values.iter().map(|&value| Cell::ranked(format!("{value:.4}"), place(value))),
            );
            table.row(main, cells);
        };
        add(question(row), &quality_of(row).0, &|row| row.headline().1);
        for (metric, of) in RANKS {
            if of(row).is_some() {
                add(String::new(), metric, &|row| of(row).unwrap_or(f64::NAN));
            }
        }
        add(String::new(), "AUC", &|row| row.auc);
    }
    table
}

fn learning(epochs: &[EpochReport]) -> Vec<String> {
    let line = |of: &dyn Fn(&EpochReport) -> f64, name: &str| -> Vec<Mark> {
        epochs
            .iter()
            .map(|epoch| {
                let says = format!("epoch {}\n{name} {:.4}", epoch.epoch, of(epoch));
                Mark::new(f64::from(epoch.epoch), of(epoch), says)
            })
            .collect()
    };
    let across = || Axis::whole("epoch");
    let loss = Plot::new(
        "Training loss",
        "Mean over the steps of an epoch; lower is better.",
        across(),
        Axis::new("loss"),
    )
    .line("loss", Ink::Kind(0), line(&|epoch| epoch.loss, "loss"));
    // What was ranked is selected by MRR.
    let ranked = epochs.iter().all(|epoch| epoch.validation_mrr.is_some());
    let chosen_by = |epoch: &EpochReport| match epoch.validation_mrr {
        Some(mrr) if ranked => mrr,
        _ => epoch.validation_ap,
    };
    let name = if ranked { "MRR" } else { "AP" };
    let mut quality = Plot::new(
        "Validation",
        match epochs.first().map_or(0, |epoch| epoch.validation.len()) {
            _ if ranked => "Mean reciprocal rank among the destinations asked; higher is better.",
            0 => "Mean over the steps of validation, random negatives; higher is better.",
            _ => "Mean over the steps of validation and over the kinds of negatives that select; higher is better.",
        },
        across(),
        Axis::new(if ranked { "MRR and AUC" } else { "AP and AUC" }),
    )
    .line(name, Ink::Kind(0), line(&chosen_by, name))
    .line("AUC", Ink::Kind(1), line(&|epoch| epoch.validation_auc, "AUC"));
    if let Some(best) = epochs.iter().rfind(|epoch| epoch.improved) {
        let says = format!(
            "epoch {}, the best: this one is evaluated\n{name} {:.4}",
            best.epoch,
            chosen_by(best)
        );
        let mark = Mark::new(f64::from(best.epoch), chosen_by(best), says);
        quality = quality.dots("best epoch", Ink::Kind(2), 5.0, vec![mark]);
    }
    vec![loss.draw(), quality.draw()]
}

fn phases(
    trained: &TrainedRun,
    evaluated: &EvaluationWithBaselines,
    epochs: &[EpochReport],
) -> String {
    let timings = trained.timings();
    let mut rows: Vec<(String, f64)> = Vec::new();
    rows.extend(timings.reading.map(|seconds| ("reading the events".to_string(), seconds)));
    rows.push(("splitting the stream".into(), timings.splitting));
    rows.push((
        format!("training, {} epochs", epochs.len()),
        epochs.iter().map(|epoch| epoch.train_seconds).sum(),
    ));
    rows.push((
        "validation after each epoch".into(),
        epochs.iter().map(|epoch| epoch.validation_seconds).sum(),
    ));
    rows.push(("drawing the test questions".into(), evaluated.asking_seconds));
    let total = |model: &ScoredModel| model.results.iter().map(|row| row.seconds).sum::<f64>();
    let pairs: usize = evaluated.model.results.iter().map(|row| row.pairs).sum();
    rows.push((format!("test, {} candidates", grouped(pairs)), total(&evaluated.model)));
    rows.extend(
        evaluated
            .counting
            .iter()
            .map(|model| (format!("the same questions, {}", model.name), total(model))),
    );
    let bar = |(name, value): (String, f64)| Bar { says: seconds(value), name, value };
    bars(
        "Time of each phase",
        "All epochs and all kinds of questions together. Kinds that share a pass each count its state updates.",
        "seconds, the longest phase fills the width",
        &rows.into_iter().map(bar).collect::<Vec<Bar>>(),
    )
}

fn pace(epochs: &[EpochReport]) -> String {
    let line = |of: &dyn Fn(&EpochReport) -> f64, name: &str| -> Vec<Mark> {
        let mark = |epoch: &EpochReport| {
            let says = format!("epoch {}\n{name} {}", epoch.epoch, seconds(of(epoch)));
            Mark::new(f64::from(epoch.epoch), of(epoch), says)
        };
        epochs.iter().map(mark).collect()
    };
    let most = epochs
        .iter()
        .map(|epoch| epoch.train_seconds.max(epoch.validation_seconds))
        .fold(1e-9, f64::max);
    Plot::new(
        "Seconds of each epoch",
        "Learning and validation. A step up means that something else used the machine.",
        Axis::whole("epoch"),
        Axis::between("seconds", 0.0, most * 1.1),
    )
    .line("training", Ink::Kind(0), line(&|epoch| epoch.train_seconds, "training"))
    .line("validation", Ink::Kind(1), line(&|epoch| epoch.validation_seconds, "validation"))
    .draw()
}

fn stats_about(trained: &TrainedRun) -> String {
    let log = &trained.stream().log;
    let stats = DatasetStats::of(log.events(), log.node_features());
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut text = format!(
        "{} nodes ({} sources, {} destinations{}), {} events at {} distinct times, {} distinct pairs. {} of events repeat a pair, {} \
         answer one in the other direction.",
        grouped(stats.nodes),
        grouped(stats.sources),
        grouped(stats.destinations),
        if stats.bipartite { ", no node is both" } else { "" },
        grouped(stats.events),
        grouped(stats.distinct_times),
        grouped(stats.distinct_pairs),
        percent(stats.repeat_share),
        percent(stats.reply_share)
    );
    if let (Some(pairs), Some(nodes)) = (stats.surprise_events, stats.new_nodes_in_test) {
        text.push_str(&format!(
            " With 70/15/15 %, {} of test events are of a pair that training has not seen, and {} nodes of the test part are new.",
            percent(pairs),
            grouped(nodes)
        ));
    }
    text
}

fn protocol(trained: &TrainedRun) -> String {
    let protocol = &trained.config().protocol;
    let what = protocol.about();
    let step = match protocol.step() {
        StepRule::Events(events) => {
            format!("Events are scored and then revealed in steps of {}", grouped(events as usize))
        }
        StepRule::DistinctTime => {
            "Events of one time are scored and then revealed together".to_string()
        }
    };
    let sees = match protocol.visibility() {
        Visibility::Event => "a question sees all events strictly before its time",
        Visibility::Step => "a question sees nothing of its own step",
        Visibility::Strict => "a question sees strictly earlier times only, in graph and state",
    };
    let split = trained.split();
    let events = trained.stream().log.events();
    let training =
        split.train.clone().filter(|&number| split.trains(events.at(number as usize))).count();
    let held_out = match split.train.len() - training {
        0 => String::new(),
        held_out => format!(" ({} more are of nodes held out of training)", grouped(held_out)),
    };
    let train = &trained.config().train;
    let negatives = if train.historical + train.novel > 0.0 {
        let (historical, novel) = (100.0 * train.historical, 100.0 * train.novel);
        format!(
            " Of training's negatives {historical:.0} % are pairs that met before and {novel:.0} % pairs that met lately for the \
             first time; the others have a random destination."
        )
    } else {
        String::new()
    };
    format!(
        "Protocol {}: {what}. {step}; {sees}. {} events train{held_out}, {} validate, {} test.{negatives}",
        protocol.name(),
        grouped(training),
        grouped(split.validation.len()),
        grouped(split.test.len())
    )
}

/// What exactly was asked: the hashes tell whether two reports asked the same.
fn questions(evaluated: &EvaluationWithBaselines) -> Table {
    let mut table = Table::default()
        .words("questions")
        .numbers("events")
        .numbers("candidates")
        .numbers("steps")
        .words("SHA-256 of the negatives (first 16 digits)");
    for row in &evaluated.model.results {
        table.row(
            false,
            vec![
                Cell::words(question(row)),
                Cell::number(grouped(row.events)),
                Cell::number(grouped(row.pairs)),
                Cell::number(grouped(row.steps)),
                Cell::words(row.negatives_sha256.chars().take(16).collect::<String>()),
            ],
        );
    }
    table
}
