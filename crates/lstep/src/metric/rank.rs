//! The rank of the true candidate in its row, and the means over many rows.
//!
//! Ties stand in the middle, as in the Temporal Graph Benchmark: of the places a positive could
//! take among its equals it gets their mean, `rank = (optimistic + pessimistic) / 2 + 1`. Ranking
//! counts, it does not sort: O(candidates) a row.

use crate::error::{Error, Result};

/// Where one positive stands among its negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Negatives above, plus negatives at least as high: twice the rank less two, an integer
    /// whatever the ties.
    doubled: usize,
}

impl Rank {
    /// The rank: 1 is best, a tie may end in a half.
    pub fn value(self) -> f64 {
        self.doubled as f64 / 2.0 + 1.0
    }

    /// One over the rank, rounded to `f32` as the Temporal Graph Benchmark does.
    pub fn reciprocal(self) -> f64 {
        f64::from(1.0 / self.value() as f32)
    }

    /// One over the rank in full precision.
    pub fn reciprocal_exact(self) -> f64 {
        1.0 / self.value()
    }

    /// Whether the rank is `k` or better.
    pub fn within(self, k: usize) -> bool {
        k > 0 && self.doubled <= 2 * (k - 1)
    }
}

/// Ranks the score of a positive among the scores of its negatives.
///
/// Refuses scores that are not finite: in the error, candidate 0 is the positive, the negatives
/// follow from 1.
pub fn rank(positive: f64, negatives: &[f64]) -> Result<Rank> {
    // Three counters as wide as a score and no branch, so that the loop becomes vector code.
    let (mut above, mut level, mut finite) = (0_u64, 0_u64, 0_u64);
    for &negative in negatives {
        above += u64::from(negative > positive);
        level += u64::from(negative >= positive);
        finite += u64::from(negative.abs() < f64::INFINITY);
    }
    if !positive.is_finite() {
        return Err(Error::ScoreNotFinite { row: 0, candidate: 0, value: positive });
    }
    if finite != negatives.len() as u64 {
        let place = negatives.iter().position(|score| !score.is_finite()).expect("one was counted");
        return Err(Error::ScoreNotFinite {
            row: 0,
            candidate: place + 1,
            value: negatives[place],
        });
    }
    Ok(Rank { doubled: (above + level) as usize })
}

/// Ranks of many positives, counted by value.
///
/// A count, not a running sum: the means do not depend on the order in which rows or threads add to
/// it, and any `k` can be asked for afterwards. Memory follows the worst rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranks {
    counts: Vec<u64>,
}

impl Ranks {
    /// No ranks yet.
    pub fn new() -> Ranks {
        Ranks::default()
    }

    /// Adds the rank of one positive.
    pub fn add(&mut self, rank: Rank) {
        if self.counts.len() <= rank.doubled {
            self.counts.resize(rank.doubled + 1, 0);
        }
        self.counts[rank.doubled] += 1;
    }

    /// Adds all that another holds.
    pub fn merge(&mut self, other: &Ranks) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// How many positives were ranked.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean reciprocal rank over all positives, each reciprocal as [`Rank::reciprocal`]; none
    /// without a positive.
    pub fn mrr(&self) -> Option<f64> {
        self.mean(Rank::reciprocal)
    }

    /// Mean reciprocal rank in full precision; none without a positive.
    pub fn mrr_exact(&self) -> Option<f64> {
        self.mean(Rank::reciprocal_exact)
    }

    /// The share of positives with rank `k` or better; none without a positive.
    pub fn hits(&self, k: usize) -> Option<f64> {
        self.mean(|rank| f64::from(u8::from(rank.within(k))))
    }

    /// The mean discounted gain 1 / log2(1 + rank) of ranks up to `k`, which is NDCG where one
    /// candidate is true; none without a positive.
    pub fn ndcg(&self, k: usize) -> Option<f64> {
        self.mean(|rank| if rank.within(k) { 1.0 / (1.0 + rank.value()).log2() } else { 0.0 })
    }

    fn mean(&self, value: impl Fn(Rank) -> f64) -> Option<f64> {
        let sum: f64 = self
            .counts
            .iter()
            .enumerate()
            .map(|(doubled, &count)| count as f64 * value(Rank { doubled }))
            .sum();
        let count = self.count();
        (count > 0).then(|| sum / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_is_discounted_by_the_logarithm_of_the_rank() {
        let mut ranks = Ranks::new();
        [vec![], vec![1.0], vec![1.0; 9], vec![1.0; 10]].iter().for_each(|negatives| {
            ranks.add(rank(0.5, negatives).expect("finite"));
        });
        let expected = (1.0 + 1.0 / 3f64.log2() + 1.0 / 11f64.log2()) / 4.0;
        assert!((ranks.ndcg(10).expect("some") - expected).abs() < 1e-15);
        assert_eq!((ranks.hits(10), ranks.hits(1)), (Some(0.75), Some(0.25)));
    }

    #[test]
    fn a_tie_stands_in_the_middle() {
        let tied = rank(0.5, &[0.9, 0.5, 0.5, 0.1]).expect("finite");
        assert_eq!(tied.value(), 3.0);
        assert_eq!(rank(0.5, &[0.5]).expect("finite").value(), 1.5);
        assert_eq!(rank(0.5, &[]).expect("finite").value(), 1.0);
    }

    #[test]
    fn a_reciprocal_has_the_benchmarks_precision_and_the_exact_one_all_of_it() {
        let third = rank(0.5, &[0.6, 0.7]).expect("finite");
        assert_eq!(third.reciprocal(), f64::from(1.0_f32 / 3.0));
        assert_eq!(third.reciprocal_exact(), 1.0 / 3.0);
    }

    #[test]
    fn hits_count_a_half_rank_as_outside() {
        let half = rank(0.5, &[0.5]).expect("finite");
        assert!(!half.within(0) && !half.within(1) && half.within(2));
    }

    #[test]
    fn scores_that_are_not_finite_are_refused_with_their_place() {
        let error = rank(0.5, &[0.1, f64::NAN]).expect_err("not a number");
        assert!(matches!(error, Error::ScoreNotFinite { candidate: 2, .. }), "{error}");
        let error = rank(f64::INFINITY, &[0.1]).expect_err("infinite");
        assert!(matches!(error, Error::ScoreNotFinite { candidate: 0, .. }), "{error}");
    }

    #[test]
    fn the_means_do_not_depend_on_who_added_first() {
        let ranks: Vec<Rank> = (0..40)
            .map(|n| rank(0.0, &vec![if n % 3 == 0 { 0.0 } else { 1.0 }; n]).expect("finite"))
            .collect();
        let (mut whole, mut odd, mut even) = (Ranks::new(), Ranks::new(), Ranks::new());
        for (place, &rank) in ranks.iter().enumerate() {
            whole.add(rank);
            if place % 2 == 0 { even.add(rank) } else { odd.add(rank) }
        }
        odd.merge(&even);
        assert_eq!(odd, whole);
        assert_eq!(whole.count(), 40);
        let mean = ranks.iter().map(|rank| rank.reciprocal_exact()).sum::<f64>() / 40.0;
        assert!((whole.mrr_exact().expect("some") - mean).abs() < 1e-15);
        assert_eq!(Ranks::new().mrr(), None);
    }
}
