//! Pictures of a run's answers: how well scores part what happened from what did not, whether
//! probabilities mean what they say, and where in the test part the model is good.

use super::chart::{Ink, Mark, Plot};
use super::examples::percent;
use super::figures::{
    by_activity, by_time, calibration, classes, earlier_events, precision_recall, roc, spread,
};
use super::scale::{Axis, grouped, short};
use super::stream;
use crate::evaluation::ScoreLog;
use crate::protocol::Setting;
use crate::results::{Reliability, ResultRow, main_place, main_row};
use crate::training::{EvaluationWithBaselines, ScoredModel, TrainedRun};

/// Bins of a distribution of scores.
const BINS: usize = 36;
/// Groups over time and by activity.
const TIMES: usize = 16;
const ACTIVITIES: usize = 5;

/// The number that counts: MRR where an event has many negatives, else AP.
pub fn quality_of(row: &ResultRow) -> (String, f64) {
    let (metric, value) = row.headline();
    (metric.to_uppercase(), value)
}

/// What the answers are, in a sentence.
pub fn about(setting: Setting, shown: &[&ScoreLog]) -> String {
    let thinned = shown.iter().map(|record| record.every).max().unwrap_or(1);
    let part =
        if thinned > 1 { format!(" One in {thinned} questions is drawn.") } else { String::new() };
    format!(
        "The scores of the test questions, {setting} setting. Pooled over all steps; all negatives of an event together weigh as much as the \
         event.{part}"
    )
}

/// Curves, calibration and distributions of the answers.
pub fn charts(evaluated: &EvaluationWithBaselines, shown: &[&ScoreLog]) -> Vec<String> {
    let reliability = match &evaluated.report.reliability {
        Some(held) => calibrated(held),
        None => reliability(shown),
    };
    let mut charts =
        vec![curves(evaluated, shown, true), curves(evaluated, shown, false), reliability];
    charts.extend(shown.iter().map(|record| distribution(record)));
    charts
}

fn curves(evaluated: &EvaluationWithBaselines, shown: &[&ScoreLog], is_roc: bool) -> String {
    let (title, about, across, up) = if is_roc {
        let about = "Share of true events found against share of negatives taken for true, for every threshold. The diagonal is \
                     guessing.";
        ("ROC", about, "share of negatives taken for true", "share of true events found")
    } else {
        let about = "Of what is taken for true, how much is; for every threshold. Equal weights put guessing at 0.5.";
        ("Precision and recall", about, "recall: share of true events found", "precision")
    };
    let mut plot =
        Plot::new(title, about, Axis::between(across, 0.0, 1.0), Axis::between(up, 0.0, 1.0));
    let mut add = |name: String, ink: Ink, record: &ScoreLog| {
        let curve = if is_roc { roc(record) } else { precision_recall(record) };
        let says = |(x, y, score): (f64, f64, f64)| {
            Mark::new(
                x,
                y,
                format!("{name}\n{across} {x:.3}\n{up} {y:.3}\nscore at least {}", short(score)),
            )
        };
        let marks = curve.places.into_iter().map(says).collect();
        plot = plot.clone().line(&name, ink, marks);
    };
    for (place, record) in shown.iter().enumerate() {
        add(format!("{} negatives", record.strategy), Ink::Kind(place), record);
    }
    if let Some((name, record)) = best_rival(evaluated) {
        add(format!("{name}, {} negatives", record.strategy), Ink::Kind(5), record);
    }
    let (from, to) = if is_roc { ((0.0, 0.0), (1.0, 1.0)) } else { ((0.0, 0.5), (1.0, 0.5)) };
    plot.rule(Some("guessing"), from, to).draw()
}

/// The counting model that is best on the main kind of question, with its answers there.
fn best_rival(evaluated: &EvaluationWithBaselines) -> Option<(&str, &ScoreLog)> {
    let quality =
        |model: &&ScoredModel| main_row(&model.results).map_or(0.0, |row| quality_of(row).1);
    let best = evaluated.counting.iter().max_by(|a, b| quality(a).total_cmp(&quality(b)))?;
    Some((&best.name, best.records.get(main_place(&best.results)?)?))
}

/// Whether calibrated probabilities hold, on the ten likeliest of every question.
fn calibrated(held: &Reliability) -> String {
    let marks = held.groups.iter().map(|group| {
        let says = format!(
            "said {}, came true {}\n{} answers",
            percent(group.said),
            percent(group.came),
            grouped(group.answers)
        );
        Mark::new(group.said, group.came, says)
    });
    let most = held.groups.iter().flat_map(|group| [group.said, group.came]).fold(0.05, f64::max);
    let most = (most * 1.1).min(1.0);
    Plot::new(
        "Reliability of the probabilities",
        &format!(
            "Calibrated on validation, asked on test: the ten likeliest destinations of {} \
             questions, in ten groups of equally many. On the diagonal, probabilities mean what \
             they say. Off by {:.2} points of a hundred on average (ECE); Brier {:.4}, against \
             {:.4} if all were given their mean. Of the lists of ten, {} were said to hold what \
             happened, and {} did.",
            grouped(held.questions),
            100.0 * held.ece,
            held.brier,
            held.brier_of_mean,
            percent(held.hits_said),
            percent(held.hits_came)
        ),
        Axis::between("probability said", 0.0, most),
        Axis::between("share that came true", 0.0, most),
    )
    .line("ten likeliest", Ink::Kind(0), marks.collect())
    .rule(Some("perfectly calibrated"), (0.0, 0.0), (most, most))
    .draw()
}

fn reliability(shown: &[&ScoreLog]) -> String {
    let mut plot = Plot::new(
        "Reliability",
        "Of all that was said with a probability, how much came true. On the diagonal, probabilities mean what they say. The number \
         in the legend is the expected calibration error (ECE).",
        Axis::between("probability said", 0.0, 1.0),
        Axis::between("share that came true", 0.0, 1.0),
    );
    for (place, record) in shown.iter().enumerate() {
        let found = calibration(record);
        let name = format!("{} negatives: ECE {:.3}", record.strategy, found.error);
        let marks = found.bins.iter().map(|&(said, came, share)| {
            let says = format!(
                "said {said:.3}, came true {came:.3}\n{:.1} % of all answers",
                100.0 * share
            );
            Mark::new(said, came, format!("{} negatives\n{says}", record.strategy))
        });
        plot = plot.line(&name, Ink::Kind(place), marks.collect());
    }
    plot.rule(Some("perfectly calibrated"), (0.0, 0.0), (1.0, 1.0)).draw()
}

fn distribution(record: &ScoreLog) -> String {
    let found = spread(record, BINS);
    let marks = |of: &dyn Fn(&(f64, f64)) -> f64, name: &str| -> Vec<Mark> {
        let bins = found.bins.iter().enumerate();
        bins.map(|(bin, shares)| {
            let middle = found.low + (bin as f64 + 0.5) * found.width;
            let (from, to) = (middle - found.width / 2.0, middle + found.width / 2.0);
            let says = format!(
                "{:.1} % of the {name}\nscore from {} to {}",
                100.0 * of(shares),
                short(from),
                short(to)
            );
            Mark::new(middle, 100.0 * of(shares), says)
        })
        .collect()
    };
    Plot::new(
        &format!("Scores, {} negatives", record.strategy),
        "How scores (logits) of true events and of negatives are spread. The less the two overlap, the better.",
        Axis::new("score (logit)"),
        Axis::new("share of the class (%)"),
    )
    .columns("true events", Ink::Kind(0), found.width / 2.0, marks(&|bin| bin.0, "true events"))
    .columns("negatives", Ink::Kind(1), found.width / 2.0, marks(&|bin| bin.1, "negatives"))
    .draw()
}

/// Quality over time and by activity.
pub fn quality(
    trained: &TrainedRun,
    evaluated: &EvaluationWithBaselines,
    shown: &[&ScoreLog],
) -> Vec<String> {
    let Some(first) = shown.first() else { return Vec::new() };
    let metric = if first.is_ranked() { "MRR" } else { "AP" };
    let events = trained.stream().log.events();
    let clock = &stream::display_clock(&trained.stream().clock, events);
    let groups = TIMES.min(first.len().div_ceil(100)).max(1);
    let rival = best_rival(evaluated)
        .map(|(name, record)| (format!("{name}, {} negatives", record.strategy), record));
    let mut all: Vec<(String, Ink, &ScoreLog)> = Vec::new();
    for (place, record) in shown.iter().enumerate() {
        all.push((format!("{} negatives", record.strategy), Ink::Kind(place), record));
    }
    all.extend(rival.into_iter().map(|(name, record)| (name, Ink::Kind(5), record)));

    let spans: Vec<(f64, f64)> =
        by_time(first, events, groups).iter().map(|group| group.span).collect();
    let (from, to) =
        (spans.first().map_or(0.0, |span| span.0), spans.last().map_or(1.0, |span| span.1));
    let mut over_time = Plot::new(
        &format!("{metric} over time"),
        "The test part in groups of equally many events, each drawn in the middle of its time.",
        stream::time_axis(clock, from, to),
        Axis::new(metric),
    );
    for (name, ink, record) in &all {
        let marks = by_time(record, events, groups).into_iter().map(|group| {
            let (from, to) =
                (stream::say_time(clock, group.span.0), stream::say_time(clock, group.span.1));
            let says = format!(
                "{name}\n{metric} {:.4}\n{} events\n{from} to {to}",
                group.quality,
                grouped(group.rows)
            );
            Mark::new((group.span.0 + group.span.1) / 2.0, group.quality, says)
        });
        over_time = over_time.line(name, *ink, marks.collect());
    }

    let earlier = earlier_events(events);
    let asked: Vec<u32> = first.answers().map(|answer| earlier[answer.event as usize]).collect();
    let starts = classes(&asked, ACTIVITIES);
    let names = starts.iter().map(ToString::to_string).collect();
    let mut by_source = Plot::new(
        &format!("{metric} by activity"),
        "The test events by how many events their source had before. A group ends where the next begins; 0 are sources that nobody \
         knows yet.",
        Axis::named("earlier events of the source, at least", names),
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
