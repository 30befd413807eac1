//! The numbers behind the pictures of answers: curves, distributions, calibration, and quality by
//! time and by activity.
//!
//! Everything is made from a [`ScoreLog`], in Rust and once; a drawing only places it. Curves are
//! thinned to what an eye can tell apart.

use crate::evaluation::ScoreLog;
use crate::event::Events;

/// Two places of a thinned curve are at least this far apart, in parts of the whole axis.
const APART: f64 = 1.0 / 150.0;

/// A curve over thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its places, from the highest threshold to the lowest: across, up, threshold.
    pub places: Vec<(f64, f64, f64)>,
}

/// All scores of a record with their labels and weights, from high to low. All negatives of an
/// event weigh as much as the event, as they do in training, where there is one for each.
fn weighted(record: &ScoreLog) -> Vec<(f64, bool, f64)> {
    let mut scores = Vec::new();
    for answer in record.answers() {
        scores.push((answer.positive, true, 1.0));
        let weight = 1.0 / answer.negatives.len().max(1) as f64;
        scores.extend(answer.negatives.iter().map(|&score| (score, false, weight)));
    }
    scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    scores
}

/// Walks down the thresholds: after each distinct score, `place` gets the shares of positives and
/// of negatives found so far, and the share of positives among what was found.
fn walk(
    record: &ScoreLog,
    place: impl Fn(f64, f64, f64) -> (f64, f64),
    start: (f64, f64),
) -> Curve {
    let scores = weighted(record);
    let (positives, negatives) =
        scores.iter().fold(
            (0.0, 0.0),
            |(p, n), score| if score.1 { (p + score.2, n) } else { (p, n + score.2) },
        );
    let first = scores.first().map_or(0.0, |score| score.0);
    let mut places = vec![(start.0, start.1, first)];
    let (mut hits, mut misses) = (0.0, 0.0);
    for (number, &(score, label, weight)) in scores.iter().enumerate() {
        if label {
            hits += weight;
        } else {
            misses += weight;
        }
        let last = number + 1 == scores.len();
        if !last && scores[number + 1].0 == score {
            continue;
        }
        let (x, y) = place(hits / positives, misses / negatives, hits / (hits + misses));
        let &(old_x, old_y, _) = places.last().expect("there is a first place");
        if last || (x - old_x).abs() + (y - old_y).abs() >= APART {
            places.push((x, y, score));
        }
    }
    Curve { places }
}

/// Share of true events found, over share of negatives taken for true.
pub fn roc(record: &ScoreLog) -> Curve {
    walk(record, |found, mistaken, _| (mistaken, found), (0.0, 0.0))
}

/// Share of what was taken for true that is true, over share of true events found.
pub fn precision_recall(record: &ScoreLog) -> Curve {
    let mut curve = walk(record, |found, _, precise| (found, precise), (0.0, 1.0));
    // The first threshold says what precision begins with; "1 for nothing found" is no measurement.
    if let [first, second, ..] = &mut curve.places[..] {
        first.1 = second.1;
    }
    curve
}

/// How scores are spread: bins of equal width, and the shares of true events and of negatives in
/// each.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The lowest score shown.
    pub low: f64,
    /// Width of a bin.
    pub width: f64,
    /// Share of true events in each bin, share of negatives in each bin.
    pub bins: Vec<(f64, f64)>,
}

/// The spread of scores over bins, from the lowest to the highest but for one in five hundred on
/// each side, which go into the outer bins.
pub fn spread(record: &ScoreLog, bins: usize) -> Spread {
    let scores = weighted(record);
    let at = |share: f64| scores[((scores.len() - 1) as f64 * share) as usize].0;
    let (low, high) = if scores.is_empty() { (0.0, 1.0) } else { (at(0.998), at(0.002)) };
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
    let width = (high - low) / bins as f64;
    let mut shares = vec![(0.0, 0.0); bins];
    let rows = record.len().max(1) as f64;
    for (score, label, weight) in scores {
        let bin = &mut shares[(((score - low) / width).max(0.0) as usize).min(bins - 1)];
        if label {
            bin.0 += weight / rows;
        } else {
            bin.1 += weight / rows;
        }
    }
    Spread { low, width, bins: shares }
}

/// Of what was said with a probability, how much came true.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The bins that hold something: mean probability said, share that came true, share of all
    /// answers.
    pub bins: Vec<(f64, f64, f64)>,
    /// Expected calibration error: the mean over answers of the distance between the two.
    pub error: f64,
}

/// The calibration of scores that are logits, in ten bins of equal width.
pub fn calibration(record: &ScoreLog) -> Calibration {
    const BINS: usize = 10;
    let mut sums = [(0.0, 0.0, 0.0); BINS];
    for (score, label, weight) in weighted(record) {
        let probability = 1.0 / (1.0 + (-score).exp());
        let bin = &mut sums[((probability * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += weight * probability;
        bin.1 += if label { weight } else { 0.0 };
        bin.2 += weight;
    }
    let all: f64 = sums.iter().map(|bin| bin.2).sum();
    let bins: Vec<(f64, f64, f64)> = sums
        .iter()
        .filter(|bin| bin.2 > 0.0)
        .map(|bin| (bin.0 / bin.2, bin.1 / bin.2, bin.2 / all))
        .collect();
    let error =
        bins.iter().map(|(said, true_share, share)| share * (said - true_share).abs()).sum();
    Calibration { bins, error }
}

/// The quality of a group of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The lowest and the highest value of what they are grouped by.
    pub span: (f64, f64),
    /// Average precision or mean reciprocal rank.
    pub quality: f64,
    /// Rows in the group.
    pub rows: usize,
}

/// Quality over time: groups of equally many rows, as they came.
pub fn by_time(record: &ScoreLog, events: &Events, groups: usize) -> Vec<Group> {
    let time = |row: usize| events.times()[record.answer(row).event as usize].value();
    let rows: Vec<usize> = (0..record.len()).collect();
    let size = rows.len().div_ceil(groups.max(1)).max(1);
    rows.chunks(size)
        .filter_map(|rows| {
            let quality = record.quality(rows)?;
            Some(Group {
                span: (time(rows[0]), time(rows[rows.len() - 1])),
                quality,
                rows: rows.len(),
            })
        })
        .collect()
}

/// For each event of the stream, how many earlier ones its source took part in.
pub fn earlier_events(events: &Events) -> Vec<u32> {
    let mut counts = vec![0u32; events.node_bound()];
    let mut earlier = Vec::with_capacity(events.len());
    for event in events.iter() {
        earlier.push(counts[event.source.index()]);
        counts[event.source.index()] += 1;
        if event.source != event.destination {
            counts[event.destination.index()] += 1;
        }
    }
    earlier
}

/// Values parted into at most `groups` classes of about equal size, and never one value into two:
/// the first value of each class.
pub fn classes(values: &[u32], groups: usize) -> Vec<u32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut starts: Vec<u32> = (0..groups)
        .filter_map(|group| sorted.get(group * sorted.len() / groups).copied())
        .collect();
    // Nobody known yet is a class of its own, however few there are.
    if starts.first() == Some(&0) {
        starts.insert(1, 1);
    }
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|start| sorted.last().is_some_and(|last| start <= last));
    starts
}

/// Which class a value is in.
pub fn class_of(starts: &[u32], value: u32) -> usize {
    starts.partition_point(|start| *start <= value).saturating_sub(1)
}

/// Quality by how many events the source had before: one group for each class that has rows.
pub fn by_activity(record: &ScoreLog, earlier: &[u32], starts: &[u32]) -> Vec<(usize, Group)> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
    for row in 0..record.len() {
        members[class_of(starts, earlier[record.answer(row).event as usize])].push(row);
    }
    let group = |(class, rows): (usize, &Vec<usize>)| {
        let quality = record.quality(rows)?;
        let activity = |row: &usize| earlier[record.answer(*row).event as usize];
        let (low, high) = (rows.iter().map(activity).min()?, rows.iter().map(activity).max()?);
        Some((class, Group { span: (f64::from(low), f64::from(high)), quality, rows: rows.len() }))
    };
    members.iter().enumerate().filter_map(group).collect()
}

/// The value below which a share of sorted values lies.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted.get(((sorted.len().max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logit(probability: f64) -> f64 {
        (probability / (1.0 - probability)).ln()
    }

    #[test]
    fn the_roc_of_a_perfect_order_goes_through_the_upper_left_corner() {
        let record = ScoreLog::of_rows(&[(0, 2.0, &[-1.0]), (1, 3.0, &[-2.0])]);
        let corners: Vec<(f64, f64)> =
            roc(&record).places.iter().map(|place| (place.0, place.1)).collect();
        assert_eq!(corners, [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.5, 1.0), (1.0, 1.0)]);
        assert!(precision_recall(&record).places[..3].iter().all(|place| place.1 == 1.0));
    }

    #[test]
    fn the_roc_of_equal_scores_is_the_diagonal() {
        let record = ScoreLog::of_rows(&[(0, 1.0, &[1.0]), (1, 1.0, &[1.0])]);
        let corners: Vec<(f64, f64)> =
            roc(&record).places.iter().map(|place| (place.0, place.1)).collect();
        assert_eq!(corners, [(0.0, 0.0), (1.0, 1.0)]);
        assert_eq!(
            precision_recall(&record).places.last().map(|place| (place.0, place.1)),
            Some((1.0, 0.5))
        );
    }

    #[test]
    fn a_thinned_curve_has_few_places_and_both_ends() {
        let rows: Vec<(u32, f64, [f64; 1])> = (0..5_000)
            .map(|n| (n, f64::from((n * 7919) % 5_003), [f64::from((n * 104_729) % 5_009)]))
            .collect();
        let rows: Vec<(u32, f64, &[f64])> =
            rows.iter().map(|row| (row.0, row.1, &row.2[..])).collect();
        let curve = roc(&ScoreLog::of_rows(&rows));
        assert!((100..320).contains(&curve.places.len()), "{}", curve.places.len());
        assert_eq!(curve.places.last().map(|place| (place.0, place.1)), Some((1.0, 1.0)));
    }

    #[test]
    fn the_calibration_error_of_a_hand_drawn_case() {
        // Said 0.85 four times, true in three of them; said 0.15 twice, true in none.
        let (high, low) = (logit(0.85), logit(0.15));
        let record = ScoreLog::of_rows(&[(0, high, &[high]), (1, high, &[low]), (2, high, &[low])]);
        let calibration = calibration(&record);
        assert_eq!(calibration.bins.len(), 2);
        let expected = 4.0 / 6.0 * (0.85f64 - 0.75) + 2.0 / 6.0 * 0.15;
        assert!((calibration.error - expected).abs() < 1e-12, "{calibration:?}");
    }

    #[test]
    fn many_negatives_weigh_as_much_as_one() {
        let one = ScoreLog::of_rows(&[(0, logit(0.7), &[logit(0.3)])]);
        let many = ScoreLog::of_rows(&[(0, logit(0.7), &[logit(0.3); 50])]);
        assert!((calibration(&one).error - calibration(&many).error).abs() < 1e-9);
        assert!((calibration(&one).error - 0.3).abs() < 1e-9);
    }

    #[test]
    fn shares_of_a_spread_add_up_to_one() {
        let record = ScoreLog::of_rows(&[(0, 1.0, &[-1.0, 0.0]), (1, 0.5, &[0.25, 0.75])]);
        let spread = spread(&record, 8);
        let sums = spread.bins.iter().fold((0.0, 0.0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
        assert!((sums.0 - 1.0).abs() < 1e-9 && (sums.1 - 1.0).abs() < 1e-9, "{sums:?}");
    }

    #[test]
    fn activity_is_counted_before_the_event_and_classes_keep_equal_values_together() {
        let events = lstep_testkit::stream![0 -> 1 @ 0.0, 0 -> 2 @ 1.0, 1 -> 1 @ 2.0, 2 -> 0 @ 3.0];
        let earlier = earlier_events(&events);
        assert_eq!(earlier, [0, 1, 1, 1]);
        let starts = classes(&[0, 1, 1, 1, 5, 9], 3);
        assert_eq!(starts, [0, 1, 5]);
        assert_eq!([0, 1, 4, 5, 99].map(|value| class_of(&starts, value)), [0, 1, 1, 2, 2]);
        let record = ScoreLog::of_rows(&[(0, 1.0, &[0.0]), (1, 0.0, &[1.0])]);
        let groups = by_activity(&record, &earlier, &[0, 1]);
        assert_eq!((groups[0].1.quality, groups[1].1.quality), (1.0, 0.5));
        assert_eq!(by_time(&record, &events, 2).len(), 2);
    }
}
