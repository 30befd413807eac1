//! The report of a run: what the model is worth on its data beside models that only count, and what it looks like inside.

use super::bars::{Bar, bars};
use super::chart::{Ink, Mark, Plot};
use super::figures::{by_activity, by_time, calibration, classes, earlier_events, precision_recall, roc, spread};
use super::page::{Cell, Page, Table};
use super::scale::{Axis, grouped, seconds, short};
use super::{exhibits, stream, word};
use crate::error::{Error, Result};
use crate::protocol::{Setting, StepRule, Visibility};
use crate::run::{EpochReport, Examined, Examinee, Portrait, Record, ResultRow, RunFolder, Trained};
use std::fs;

/// A calibration error above this is worth a warning.
const POOR_CALIBRATION: f64 = 0.1;
/// With fewer test events than this, the second digit of a number is chance.
const FEW_EVENTS: usize = 1_000;
/// Bins of a distribution of scores.
const BINS: usize = 36;
/// Groups over time and by activity.
const TIMES: usize = 16;
const ACTIVITIES: usize = 5;

/// The report of a run as a page. `examined` is what [`Trained::examine`] gave.
pub fn run_page(folder: &RunFolder, trained: &Trained, examined: &Examined) -> Result<String> {
    let epochs = epochs(folder)?;
    let Some(main) = examined.model.results.first() else {
        return Err(Error::setting("asked", "nothing", "a report needs at least one kind of question"));
    };
    let stream = trained.stream();
    let title = format!("{} on {}", examined.model.name, stream.name);
    let mut page = Page::new(&title, &subtitle(trained, examined));
    headline(&mut page, examined, main);
    page.section("Results on the test part", RESULTS);
    page.table(&results(examined));
    page.section("Learning", "A line of metrics.jsonl for each epoch; the best epoch is the one that is evaluated.");
    page.charts(learning(&epochs));
    let shown: Vec<&Record> =
        examined.model.records.iter().filter(|record| record.setting == main.setting && !record.is_empty()).collect();
    page.section("Answers", &answers_about(main.setting, &shown));
    page.charts(answers(examined, &shown));
    page.section(
        "Quality over time and by activity",
        "Where a mean over the whole test part hides something. All curves ask the same events.",
    );
    page.charts(quality(trained, examined, &shown));
    let charts = exhibits::charts(
        &trained.after_training(),
        &trained.at_the_end()?.describe(),
        stream.log.events(),
        &stream.names,
    );
    if !charts.is_empty() {
        page.section("Inside the model", "What it has learned, in numbers that scoring uses.");
        page.charts(charts);
    }
    page.section("Time", "Wall-clock time on the machine that trained and evaluated; no result depends on it.");
    page.charts([phases(trained, examined, &epochs), pace(&epochs)]);
    page.section("The data's own portrait", &portrait_about(trained));
    page.charts(stream::charts(stream.log.events(), &stream.clock, trained.split()));
    page.section("Settings and protocol", &protocol(trained));
    page.table(&questions(examined));
    page.paragraph("All settings, as in config.toml:");
    page.verbatim(&trained.config().to_toml());
    Ok(page.finish())
}

const RESULTS: &str = "① is the best, ② the second of a row. AP and AUC are means over steps; higher is better; 0.5 is guessing \
                       where an event has one negative. The counting models learn nothing: a learned model has to beat them.";

fn epochs(folder: &RunFolder) -> Result<Vec<EpochReport>> {
    let path = folder.file("metrics.jsonl");
    let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The number that counts: MRR where an event has many negatives, else AP.
fn quality_of(row: &ResultRow) -> (&'static str, f64) {
    row.mrr.map_or(("AP", row.ap), |mrr| ("MRR", mrr))
}

fn question(row: &ResultRow) -> String {
    format!("{}, {} negatives", word(row.setting), word(row.negatives))
}

fn subtitle(trained: &Trained, examined: &Examined) -> String {
    let report = &examined.report;
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

fn headline(page: &mut Page, examined: &Examined, main: &ResultRow) {
    let (metric, value) = quality_of(main);
    let mut cards =
        vec![(format!("{value:.4}"), format!("test {metric} of {} ({})", examined.model.name, question(main)))];
    let rivals = rivals(examined, 0);
    cards.extend(rivals.iter().map(|(name, value)| (format!("{value:.4}"), format!("{name}, the same questions"))));
    page.cards(&cards);
    if let Some((name, best)) = rivals.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let difference = value - best;
        let told = format!("{metric} {value:.4} against {best:.4} of {name}, the best model that only counts");
        if difference > 0.0 {
            page.fine(&format!("Learning pays here: {told}, a difference of {difference:+.4}."));
        } else {
            page.warning(&format!(
                "Counting is as good or better: {told}. On these questions the trained model does not earn its cost."
            ));
        }
    }
    for (place, row) in examined.model.results.iter().enumerate().skip(1) {
        let value = quality_of(row).1;
        let better: Vec<String> = self::rivals(examined, place)
            .into_iter()
            .filter(|rival| rival.1 >= value)
            .map(|(name, rival)| format!("{name} ({rival:.4})"))
            .collect();
        if !better.is_empty() {
            page.warning(&format!(
                "Asked {}, {} do as well or better than the trained model ({value:.4}).",
                question(row),
                better.join(" and ")
            ));
        }
    }
    let poor = examined.model.records.first().map(calibration).filter(|found| found.error > POOR_CALIBRATION);
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

/// What the counting models reach on a sheet.
fn rivals(examined: &Examined, sheet: usize) -> Vec<(&str, f64)> {
    examined.counting.iter().map(|model| (model.name.as_str(), quality_of(&model.results[sheet]).1)).collect()
}

fn results(examined: &Examined) -> Table {
    let everybody: Vec<&Examinee> = std::iter::once(&examined.model).chain(&examined.counting).collect();
    let mut table = Table::default().words("test questions").words("metric");
    for examinee in &everybody {
        table = table.numbers(&examinee.name);
    }
    for (sheet, row) in examined.model.results.iter().enumerate() {
        let mut add = |about: String, metric: &str, of: &dyn Fn(&ResultRow) -> f64| {
            let values: Vec<f64> = everybody.iter().map(|examinee| of(&examinee.results[sheet])).collect();
            let place = |value: f64| values.iter().filter(|other| **other > value).count();
            let main = !about.is_empty();
            let mut cells = vec![Cell::words(about), Cell::words(metric)];
            cells.extend(values.iter().map(|&value| Cell::ranked(format!("{value:.4}"), place(value))));
            table.row(main, cells);
        };
        add(question(row), quality_of(row).0, &|row| quality_of(row).1);
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
    let loss =
        Plot::new("Training loss", "Mean over the steps of an epoch; lower is better.", across(), Axis::new("loss"))
            .line("loss", Ink::Kind(0), line(&|epoch| epoch.loss, "loss"));
    let mut quality = Plot::new(
        "Validation",
        "Mean over the steps of validation, random negatives; higher is better.",
        across(),
        Axis::new("AP and AUC"),
    )
    .line("AP", Ink::Kind(0), line(&|epoch| epoch.validation_ap, "AP"))
    .line("AUC", Ink::Kind(1), line(&|epoch| epoch.validation_auc, "AUC"));
    if let Some(best) = epochs.iter().rfind(|epoch| epoch.improved) {
        let says = format!("epoch {}, the best: this one is evaluated\nAP {:.4}", best.epoch, best.validation_ap);
        let mark = Mark::new(f64::from(best.epoch), best.validation_ap, says);
        quality = quality.dots("best epoch", Ink::Kind(2), 5.0, vec![mark]);
    }
    vec![loss.draw(), quality.draw()]
}

fn answers_about(setting: Setting, shown: &[&Record]) -> String {
    let thinned = shown.iter().map(|record| record.every).max().unwrap_or(1);
    let part = if thinned > 1 { format!(" One in {thinned} questions is drawn.") } else { String::new() };
    format!(
        "The scores of the test questions, {} setting. Pooled over all steps; all negatives of an event together weigh as much as the \
         event.{part}",
        word(setting)
    )
}

fn answers(examined: &Examined, shown: &[&Record]) -> Vec<String> {
    let mut charts = vec![curves(examined, shown, true), curves(examined, shown, false), reliability(shown)];
    charts.extend(shown.iter().map(|record| distribution(record)));
    charts
}

fn curves(examined: &Examined, shown: &[&Record], is_roc: bool) -> String {
    let (title, about, across, up) = if is_roc {
        let about = "Share of true events found against share of negatives taken for true, for every threshold. The diagonal is \
                     guessing.";
        ("ROC", about, "share of negatives taken for true", "share of true events found")
    } else {
        let about = "Of what is taken for true, how much is; for every threshold. Equal weights put guessing at 0.5.";
        ("Precision and recall", about, "recall: share of true events found", "precision")
    };
    let mut plot = Plot::new(title, about, Axis::between(across, 0.0, 1.0), Axis::between(up, 0.0, 1.0));
    let mut add = |name: String, ink: Ink, record: &Record| {
        let curve = if is_roc { roc(record) } else { precision_recall(record) };
        let says = |(x, y, score): (f64, f64, f64)| {
            Mark::new(x, y, format!("{name}\n{across} {x:.3}\n{up} {y:.3}\nscore at least {}", short(score)))
        };
        let marks = curve.places.into_iter().map(says).collect();
        plot = plot.clone().line(&name, ink, marks);
    };
    for (place, record) in shown.iter().enumerate() {
        add(format!("{} negatives", word(record.strategy)), Ink::Kind(place), record);
    }
    if let Some((name, record)) = best_rival(examined) {
        add(format!("{name}, {} negatives", word(record.strategy)), Ink::Kind(5), record);
    }
    let (from, to) = if is_roc { ((0.0, 0.0), (1.0, 1.0)) } else { ((0.0, 0.5), (1.0, 0.5)) };
    plot.rule(Some("guessing"), from, to).draw()
}

/// The counting model that is best on the first kind of question, with its answers there.
fn best_rival(examined: &Examined) -> Option<(&str, &Record)> {
    let quality = |model: &&Examinee| model.results.first().map_or(0.0, |row| quality_of(row).1);
    let best = examined.counting.iter().max_by(|a, b| quality(a).total_cmp(&quality(b)))?;
    Some((&best.name, best.records.first()?))
}

fn reliability(shown: &[&Record]) -> String {
    let mut plot = Plot::new(
        "Reliability",
        "Of all that was said with a probability, how much came true. On the diagonal, probabilities mean what they say. The number \
         in the legend is the expected calibration error (ECE).",
        Axis::between("probability said", 0.0, 1.0),
        Axis::between("share that came true", 0.0, 1.0),
    );
    for (place, record) in shown.iter().enumerate() {
        let found = calibration(record);
        let name = format!("{} negatives: ECE {:.3}", word(record.strategy), found.error);
        let marks = found.bins.iter().map(|&(said, came, share)| {
            let says = format!("said {said:.3}, came true {came:.3}\n{:.1} % of all answers", 100.0 * share);
            Mark::new(said, came, format!("{} negatives\n{says}", word(record.strategy)))
        });
        plot = plot.line(&name, Ink::Kind(place), marks.collect());
    }
    plot.rule(Some("perfectly calibrated"), (0.0, 0.0), (1.0, 1.0)).draw()
}

fn distribution(record: &Record) -> String {
    let found = spread(record, BINS);
    let marks = |of: &dyn Fn(&(f64, f64)) -> f64, name: &str| -> Vec<Mark> {
        let bins = found.bins.iter().enumerate();
        bins.map(|(bin, shares)| {
            let middle = found.low + (bin as f64 + 0.5) * found.width;
            let (from, to) = (middle - found.width / 2.0, middle + found.width / 2.0);
            let says =
                format!("{:.1} % of the {name}\nscore from {} to {}", 100.0 * of(shares), short(from), short(to));
            Mark::new(middle, 100.0 * of(shares), says)
        })
        .collect()
    };
    Plot::new(
        &format!("Scores, {} negatives", word(record.strategy)),
        "How scores (logits) of true events and of negatives are spread. The less the two overlap, the better.",
        Axis::new("score (logit)"),
        Axis::new("share of the class (%)"),
    )
    .columns("true events", Ink::Kind(0), found.width / 2.0, marks(&|bin| bin.0, "true events"))
    .columns("negatives", Ink::Kind(1), found.width / 2.0, marks(&|bin| bin.1, "negatives"))
    .draw()
}

fn quality(trained: &Trained, examined: &Examined, shown: &[&Record]) -> Vec<String> {
    let Some(first) = shown.first() else { return Vec::new() };
    let metric = if first.is_ranked() { "MRR" } else { "AP" };
    let (events, clock) = (trained.stream().log.events(), &trained.stream().clock);
    let groups = TIMES.min(first.len().div_ceil(100)).max(1);
    let rival =
        best_rival(examined).map(|(name, record)| (format!("{name}, {} negatives", word(record.strategy)), record));
    let mut all: Vec<(String, Ink, &Record)> = Vec::new();
    for (place, record) in shown.iter().enumerate() {
        all.push((format!("{} negatives", word(record.strategy)), Ink::Kind(place), record));
    }
    all.extend(rival.into_iter().map(|(name, record)| (name, Ink::Kind(5), record)));

    let spans: Vec<(f64, f64)> = by_time(first, events, groups).iter().map(|group| group.span).collect();
    let (from, to) = (spans.first().map_or(0.0, |span| span.0), spans.last().map_or(1.0, |span| span.1));
    let mut over_time = Plot::new(
        &format!("{metric} over time"),
        "The test part in groups of equally many events, each drawn in the middle of its time.",
        stream::time_axis(clock, from, to),
        Axis::new(metric),
    );
    for (name, ink, record) in &all {
        let marks = by_time(record, events, groups).into_iter().map(|group| {
            let (from, to) = (stream::say_time(clock, group.span.0), stream::say_time(clock, group.span.1));
            let says = format!("{name}\n{metric} {:.4}\n{} events\n{from} to {to}", group.quality, grouped(group.rows));
            Mark::new((group.span.0 + group.span.1) / 2.0, group.quality, says)
        });
        over_time = over_time.line(name, *ink, marks.collect());
    }

    let earlier = earlier_events(events);
    let asked: Vec<u32> = first.answers().map(|answer| earlier[answer.event as usize]).collect();
    let starts = classes(&asked, ACTIVITIES);
    let names = (0..starts.len()).map(|class| exhibits::range(&starts, class, &asked)).collect();
    let mut by_source = Plot::new(
        &format!("{metric} by activity"),
        "The test events by how many events their source had before. On the left are sources that nobody knows yet.",
        Axis::named("earlier events of the source", names),
        Axis::new(metric),
    );
    for (name, ink, record) in &all {
        let marks = by_activity(record, &earlier, &starts).into_iter().map(|(class, group)| {
            let says = format!(
                "{name}\n{metric} {:.4}\n{} events whose source had {} to {} before",
                group.quality,
                grouped(group.rows),
                group.span.0,
                group.span.1
            );
            Mark::new(class as f64, group.quality, says)
        });
        by_source = by_source.line(name, *ink, marks.collect());
    }
    vec![over_time.draw(), by_source.draw()]
}

fn phases(trained: &Trained, examined: &Examined, epochs: &[EpochReport]) -> String {
    let spent = trained.spent();
    let mut rows: Vec<(String, f64)> = Vec::new();
    rows.extend(spent.reading.map(|seconds| ("reading the events".to_string(), seconds)));
    rows.push(("splitting the stream".into(), spent.splitting));
    rows.push((format!("training, {} epochs", epochs.len()), epochs.iter().map(|epoch| epoch.train_seconds).sum()));
    rows.push(("validation after each epoch".into(), epochs.iter().map(|epoch| epoch.validation_seconds).sum()));
    rows.push(("drawing the test questions".into(), examined.asking_seconds));
    let total = |model: &Examinee| model.results.iter().map(|row| row.seconds).sum::<f64>();
    let pairs: usize = examined.model.results.iter().map(|row| row.pairs).sum();
    rows.push((format!("test, {} candidates", grouped(pairs)), total(&examined.model)));
    rows.extend(examined.counting.iter().map(|model| (format!("the same questions, {}", model.name), total(model))));
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
    let most = epochs.iter().map(|epoch| epoch.train_seconds.max(epoch.validation_seconds)).fold(1e-9, f64::max);
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

fn portrait_about(trained: &Trained) -> String {
    let log = &trained.stream().log;
    let portrait = Portrait::of(log.events(), log.node_features());
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut text = format!(
        "{} nodes ({} sources, {} destinations{}), {} events at {} distinct times, {} distinct pairs. {} of events repeat a pair, {} \
         answer one in the other direction.",
        grouped(portrait.nodes),
        grouped(portrait.sources),
        grouped(portrait.destinations),
        if portrait.bipartite { ", no node is both" } else { "" },
        grouped(portrait.events),
        grouped(portrait.distinct_times),
        grouped(portrait.distinct_pairs),
        percent(portrait.repeat_share),
        percent(portrait.reply_share)
    );
    if let (Some(pairs), Some(nodes)) = (portrait.surprise_events, portrait.new_nodes_in_test) {
        text.push_str(&format!(
            " With 70/15/15 %, {} of test events are of a pair that training has not seen, and {} nodes of the test part are new.",
            percent(pairs),
            grouped(nodes)
        ));
    }
    text
}

fn protocol(trained: &Trained) -> String {
    let protocol = &trained.config().protocol;
    let what = match protocol.name() {
        "stream" => "one stream that runs on from training through validation to test, and nobody sees ahead",
        "dyglib" => "the field's habit, bit for bit: splits and negatives are those behind published tables",
        _ => "the Temporal Graph Benchmark's: its negatives, and ranks",
    };
    let step = match protocol.step() {
        StepRule::Events(events) => {
            format!("Events are scored and then revealed in steps of {}", grouped(events as usize))
        }
        StepRule::DistinctTime => "Events of one time are scored and then revealed together".to_string(),
    };
    let sees = match protocol.visibility() {
        Visibility::Event => "a question sees all events strictly before its time",
        Visibility::Step => "a question sees nothing of its own step",
        Visibility::Strict => "a question sees strictly earlier times only, in graph and state",
    };
    let split = trained.split();
    let events = trained.stream().log.events();
    let training = split.train.clone().filter(|&number| split.trains(events.at(number as usize))).count();
    let held_out = match split.train.len() - training {
        0 => String::new(),
        held_out => format!(" ({} more are of nodes held out of training)", grouped(held_out)),
    };
    format!(
        "Protocol {}: {what}. {step}; {sees}. {} events train{held_out}, {} validate, {} test.",
        protocol.name(),
        grouped(training),
        grouped(split.validation.len()),
        grouped(split.test.len())
    )
}

/// What exactly was asked: the hashes tell whether two reports asked the same.
fn questions(examined: &Examined) -> Table {
    let mut table = Table::default()
        .words("questions")
        .numbers("events")
        .numbers("candidates")
        .numbers("steps")
        .words("SHA-256 of the negatives (first 16 digits)");
    for row in &examined.model.results {
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
