//! Is one model better than another on the same questions, or could that be chance?
//!
//! A paired bootstrap over test events: within every step events are drawn with replacement, each
//! with its negatives, and both models are judged by the same draw. The interval holds 95 % of the
//! differences. It says how far the difference depends on which events happened to be asked. It
//! says nothing about other seeds of training; `compare` has those.

use super::ScoreLog;
use crate::results::{AgainstCounting, ResultRow, Verdict};
use crate::rng::KeyedRng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How often events are drawn.
const DRAWS: usize = 1_000;

/// A difference with the interval that holds 95 % of what other draws of events give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedDifference {
    /// The first model's metric minus the second's.
    pub difference: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl PairedDifference {
    /// What the interval says about the first model.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.low, self.high)
    }
}

/// The difference of two models that answered the same questions: of mean reciprocal ranks where
/// rows are ranked, else of average precision, the mean over steps. Nothing if no answer was kept.
///
/// # Panics
/// If the two answered different questions.
pub fn paired_difference(one: &ScoreLog, other: &ScoreLog) -> Option<PairedDifference> {
    assert_eq!(one.events(), other.events(), "both answered the same questions");
    if one.is_empty() {
        return None;
    }
    let sides = [Judged::new(one), Judged::new(other)];
    let difference = |times: &[u32]| sides[0].metric(times) - sides[1].metric(times);
    let (difference, low, high) = bootstrap(one, difference);
    Some(PairedDifference { difference, low, high })
}

/// The interval that holds 95 % of a model's metric over other draws of its events. Nothing if no
/// answer was kept.
pub fn metric_interval(record: &ScoreLog) -> Option<(f64, f64)> {
    if record.is_empty() {
        return None;
    }
    let judged = Judged::new(record);
    let (_, low, high) = bootstrap(record, |times| judged.metric(times));
    Some((low, high))
}

/// A model's row and answers beside those of a rival to the same questions. Nothing if no answer
/// was kept.
pub fn against(
    (row, record): (&ResultRow, &ScoreLog),
    (rival, rivals): (&ResultRow, &ScoreLog),
) -> Option<AgainstCounting> {
    let found = paired_difference(record, rivals)?;
    let ((metric, value), (_, rival_value)) = (row.headline(), rival.headline());
    Some(AgainstCounting {
        part: row.part,
        setting: row.setting,
        negatives: row.negatives,
        metric: metric.to_string(),
        model: rival.model.clone(),
        value: rival_value,
        difference: value - rival_value,
        low: found.low,
        high: found.high,
        own: metric_interval(record),
        verdict: found.verdict(),
    })
}

/// A number of some answers, given how often each row counts: its value for all of them, and the
/// ends of the interval that holds 95 % of its values over draws.
fn bootstrap(record: &ScoreLog, value: impl Fn(&[u32]) -> f64) -> (f64, f64, f64) {
    let steps: Vec<Range<usize>> = match record.is_ranked() {
        true => spans(record.reciprocal_ranks().1),
        false => record.steps().collect(),
    };
    bootstrap_over(&steps, value)
}

/// The mean of differences of reciprocal ranks, with the interval that holds 95 % of its values
/// over draws of rows within their steps.
pub(super) fn bootstrap_ranks(differences: &[f64], step_ends: &[usize]) -> PairedDifference {
    let judged = Judged::Ranked(differences.to_vec());
    let (difference, low, high) = bootstrap_over(&spans(step_ends), |times| judged.metric(times));
    PairedDifference { difference, low, high }
}

/// The rows of each step.
fn spans(ends: &[usize]) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| start..end).collect()
}

fn bootstrap_over(steps: &[Range<usize>], value: impl Fn(&[u32]) -> f64) -> (f64, f64, f64) {
    let rows = steps.last().map_or(0, |step| step.end);
    let mut drawn: Vec<f64> = (0..DRAWS as u64)
        .map(|number| {
            let mut draw = KeyedRng::new(&[0xb007, number]);
            let mut times = vec![0; rows];
            for step in steps {
                let count = step.len() as u64;
                for _ in step.clone() {
                    times[step.start + draw.below(count) as usize] += 1;
                }
            }
            value(&times)
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| crate::metric::quantile(&drawn, share);
    (value(&vec![1; rows]), at(0.025), at(0.975))
}

/// A model's answers, prepared to be judged many times.
enum Judged {
    /// For each row its reciprocal rank.
    Ranked(Vec<f64>),
    /// For each step its scores, highest first: the row, whether it is the true one, and whether
    /// the next score is lower.
    Areas(Vec<Vec<(u32, bool, bool)>>),
}

impl Judged {
    fn new(record: &ScoreLog) -> Judged {
        if record.is_ranked() {
            return Judged::Ranked(record.reciprocal_ranks().0.to_vec());
        }
        let of_step = |rows: std::ops::Range<usize>| {
            let mut scores: Vec<(f64, u32, bool)> = Vec::new();
            for row in rows {
                let answer = record.answer(row);
                scores.push((answer.positive, row as u32, true));
                scores.extend(answer.negatives.iter().map(|&score| (score, row as u32, false)));
            }
            scores.sort_by(|a, b| b.0.total_cmp(&a.0));
            let lower =
                |place: usize| scores.get(place + 1).is_none_or(|next| next.0 < scores[place].0);
            (0..scores.len())
                .map(|place| (scores[place].1, scores[place].2, lower(place)))
                .collect()
        };
        Judged::Areas(record.steps().map(of_step).collect())
    }

    /// The metric if each row counts as often as it was drawn.
    fn metric(&self, times: &[u32]) -> f64 {
        match self {
            Judged::Ranked(reciprocal) => {
                let sum: f64 =
                    reciprocal.iter().zip(times).map(|(rank, &n)| rank * f64::from(n)).sum();
                sum / times.iter().map(|&n| f64::from(n)).sum::<f64>()
            }
            Judged::Areas(steps) => {
                let sum: f64 = steps.iter().map(|step| average_precision(step, times)).sum();
                sum / steps.len() as f64
            }
        }
    }
}

/// The sum over thresholds of precision times the recall gained there.
fn average_precision(scores: &[(u32, bool, bool)], times: &[u32]) -> f64 {
    let (mut true_above, mut above, mut counted, mut area) = (0u64, 0u64, 0u64, 0.0);
    for &(row, is_true, ends) in scores {
        let n = u64::from(times[row as usize]);
        above += n;
        if is_true {
            true_above += n;
        }
        if ends && true_above > counted {
            area += (true_above - counted) as f64 * true_above as f64 / above as f64;
            counted = true_above;
        }
    }
    if counted == 0 { 0.0 } else { area / counted as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rows: &[(f64, f64)]) -> ScoreLog {
        let negatives: Vec<[f64; 1]> = rows.iter().map(|row| [row.1]).collect();
        let rows: Vec<(u32, f64, &[f64])> = (0..)
            .zip(rows.iter().zip(&negatives))
            .map(|(event, (row, negatives))| (event, row.0, &negatives[..]))
            .collect();
        ScoreLog::of_rows(&rows)
    }

    /// Scores that are right with a probability.
    fn noisy(right: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut draw = KeyedRng::new(&[seed]);
        (0..300)
            .map(|_| {
                let pair = (draw.unit() + 1.0, draw.unit());
                if draw.unit() < right { pair } else { (pair.1, pair.0) }
            })
            .collect()
    }

    #[test]
    fn the_difference_is_that_of_the_metric_itself() {
        let (one, other) = (record(&noisy(0.9, 1)), record(&noisy(0.6, 2)));
        let rows: Vec<usize> = (0..300).collect();
        let expected =
            one.quality(&rows).expect("some rows") - other.quality(&rows).expect("some rows");
        let found = paired_difference(&one, &other).expect("some rows");
        assert!((found.difference - expected).abs() < 1e-12, "{found:?}");
        assert!(found.low < found.difference && found.difference < found.high);
        assert_eq!(found.verdict(), Verdict::Better);
    }

    #[test]
    fn ranks_of_rows_whose_scores_are_not_kept_count_too() {
        let rows = [(0, 1.0, &[0.0, 0.5][..]), (1, 0.0, &[0.5, 1.0]), (2, 0.75, &[0.5, 1.0])];
        let ranked = ScoreLog::of_rows(&rows);
        let (low, high) = metric_interval(&ranked).expect("rows");
        assert!(low < high && low >= 1.0 / 3.0 && high <= 1.0, "{low} {high}");
        let thinned = ScoreLog::of_rows_every(2, &rows);
        assert_eq!(thinned.len(), 2);
        assert_eq!(thinned.reciprocal_ranks(), ranked.reciprocal_ranks());
        assert_eq!(metric_interval(&thinned), metric_interval(&ranked));
    }

    #[test]
    fn equal_skill_is_not_told_apart_and_equal_answers_have_no_interval() {
        let (one, other) = (record(&noisy(0.8, 3)), record(&noisy(0.8, 4)));
        let found = paired_difference(&one, &other).expect("some rows");
        assert_eq!(found.verdict(), Verdict::NotToldApart, "{found:?}");
        let found = paired_difference(&one, &one).expect("some rows");
        assert_eq!((found.difference, found.low, found.high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn an_interval_covers_the_truth_about_as_often_as_it_says() {
        // Both are equally good, so the true difference is zero.
        let covered = (0..60)
            .filter(|&n| {
                let (one, other) = (record(&noisy(0.7, 100 + n)), record(&noisy(0.7, 900 + n)));
                let found = paired_difference(&one, &other).expect("some rows");
                found.verdict() == Verdict::NotToldApart
            })
            .count();
        assert!((51..=60).contains(&covered), "{covered} of 60");
    }
}
