//! Random samples of a seed's history. The newest neighbours, and all within an interval, are
//! slices: see [`Past`].
//!
//! A sample depends on the key and the seed asked about, never on what else is asked or by which
//! thread.

use super::history::Neighbour;
use super::past::{Past, Seed};
use crate::rng::KeyedRng;

/// Draws `count` neighbours uniformly, with replacement, and puts them into `sample` oldest first.
/// O(count log count).
///
/// `sample` stays empty for a node without a history.
pub fn sample_uniformly(
    past: Past<'_>,
    seed: Seed,
    count: usize,
    key: u64,
    sample: &mut Vec<Neighbour>,
) {
    sample.clear();
    let history = past.history(seed);
    if history.is_empty() {
        return;
    }
    let mut draw = draw_for(past, seed, key);
    sample.extend((0..count).map(|_| history[draw.below(history.len() as u64) as usize]));
    sample.sort_by_key(|neighbour| neighbour.event());
}

/// Draws `count` neighbours with replacement, each with probability proportional to exp(rate (t_j -
/// t)), and puts them into `sample` oldest first: the newer, the likelier; a rate of zero is
/// uniform. O(history + count log history).
pub fn sample_by_recency(
    past: Past<'_>,
    seed: Seed,
    count: usize,
    rate: f64,
    key: u64,
    sample: &mut Vec<Neighbour>,
) {
    // Shifted by the newest time, so that the largest weight is 1 however long ago that was.
    let Some(newest) = past.recent(seed, 1).last() else {
        return sample.clear();
    };
    sample_by_weights(past, seed, count, key, sample, |neighbour| {
        (rate * neighbour.time().since(newest.time())).exp()
    });
}

/// Draws `count` neighbours with replacement, each with probability proportional to exp(w_k), where
/// w_k is e^(rate t_k) divided by the sum of e^(rate t_j) over the neighbours up to it, and puts them
/// into `sample` oldest first. DyGLib draws the walks of CAWN so. O(history + count log history).
pub fn sample_by_acceptance(
    past: Past<'_>,
    seed: Seed,
    count: usize,
    rate: f64,
    key: u64,
    sample: &mut Vec<Neighbour>,
) {
    // The sum divided by its last term, which neither overflows nor vanishes.
    let (mut terms, mut before) = (0.0, None);
    sample_by_weights(past, seed, count, key, sample, |neighbour| {
        let gap = before.replace(neighbour.time()).map_or(0.0, |time| neighbour.time().since(time));
        terms = terms * (-rate * gap).exp() + 1.0;
        (1.0f64 / terms).exp()
    });
}

/// Draws `count` neighbours with replacement, each with probability proportional to its weight, and
/// puts them into `sample` oldest first. `weight` is asked in the order of the history.
fn sample_by_weights(
    past: Past<'_>,
    seed: Seed,
    count: usize,
    key: u64,
    sample: &mut Vec<Neighbour>,
    mut weight: impl FnMut(&Neighbour) -> f64,
) {
    sample.clear();
    let history = past.history(seed);
    if history.is_empty() {
        return;
    }
    let mut sum = 0.0;
    let sums: Vec<f64> = history
        .iter()
        .map(|neighbour| {
            sum += weight(neighbour);
            sum
        })
        .collect();
    let mut draw = draw_for(past, seed, key);
    sample.extend((0..count).map(|_| {
        let mark = draw.unit() * sum;
        history[sums.partition_point(|&below| below <= mark).min(history.len() - 1)]
    }));
    sample.sort_by_key(|neighbour| neighbour.event());
}

/// Random numbers for a seed. They depend on its time and on its newest event, but not on how nodes
/// are numbered, and not on how much of its history is kept.
pub fn draw_for(past: Past<'_>, seed: Seed, key: u64) -> KeyedRng {
    let (newest, side) = past.recent(seed, 1).last().map_or((0, 2), |neighbour| {
        let source = past.starts_at(seed.node(), neighbour);
        (neighbour.time().value().to_bits(), u64::from(source))
    });
    KeyedRng::new(&[key, seed.time().value().to_bits(), newest, side])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::EventLog;

    fn time(value: f64) -> Time {
        Time::new(value).expect("finite")
    }

    /// Node 0 meets 1, 2, 3, 4 at times 0, 1, 2, 3.
    fn log() -> EventLog {
        let events = lstep_testkit::stream![0 -> 1 @ 0.0, 0 -> 2 @ 1.0, 0 -> 3 @ 2.0, 0 -> 4 @ 3.0];
        EventLog::new(events)
    }

    #[test]
    fn a_uniform_sample_is_even_and_never_shows_the_present() {
        let log = log();
        let (mut sample, mut counts) = (Vec::new(), [0u32; 5]);
        for key in 0..3_000 {
            sample_uniformly(log.past(9), Seed::new(NodeId(0), time(3.0)), 2, key, &mut sample);
            assert!(sample.is_sorted_by_key(|neighbour| neighbour.event()));
            sample.iter().for_each(|neighbour| counts[neighbour.node().index()] += 1);
        }
        assert_eq!(counts[4], 0);
        assert!(counts[1..4].iter().all(|&count| (1_850..2_150).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_sample_by_recency_follows_the_exponential() {
        let log = log();
        let (mut sample, mut counts) = (Vec::new(), [0f64; 5]);
        for key in 0..20_000 {
            let seed = Seed::new(NodeId(0), time(10.0));
            sample_by_recency(log.past(9), seed, 1, 2f64.ln(), key, &mut sample);
            counts[sample[0].node().index()] += 1.0 / 20_000.0;
        }
        for (neighbour, share) in
            [(1, 1.0 / 15.0), (2, 2.0 / 15.0), (3, 4.0 / 15.0), (4, 8.0 / 15.0)]
        {
            assert!((counts[neighbour] - share).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn a_sample_by_acceptance_is_nearly_even_with_a_preference_for_the_oldest() {
        let log = log();
        let (mut sample, mut counts) = (Vec::new(), [0f64; 5]);
        for key in 0..20_000 {
            let seed = Seed::new(NodeId(0), time(10.0));
            sample_by_acceptance(log.past(9), seed, 1, 2f64.ln(), key, &mut sample);
            counts[sample[0].node().index()] += 1.0 / 20_000.0;
        }
        // w is 1, 2/3, 4/7, 8/15.
        let weights = [1.0, 2.0 / 3.0, 4.0 / 7.0, 8.0 / 15.0].map(f64::exp);
        for (found, weight) in counts[1..].iter().zip(weights) {
            let share = weight / weights.iter().sum::<f64>();
            assert!((found - share).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn a_node_without_a_history_gives_an_empty_sample() {
        let log = log();
        let mut sample = vec![log.past(9).history(Seed::new(NodeId(0), time(9.0)))[0]];
        sample_uniformly(log.past(9), Seed::new(NodeId(77), time(9.0)), 2, 0, &mut sample);
        assert!(sample.is_empty());
    }
}
