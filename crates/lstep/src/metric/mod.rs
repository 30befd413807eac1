//! Scores to numbers: areas under curves, and ranks.
//!
//! A metric knows scores and which of them were true, never a model. Scores are `f64`; scores a
//! model made as `f32` are widened, which is exact, so that ties stay ties. A score that is not
//! finite is refused, never ranked.
//!
//! [`StepMeans`] gives average precision and ROC-AUC in the two ways found in the literature:
//! pooled over all scores, and as the unweighted mean over steps, where a short last step counts as
//! much as a full one.

mod curve;
mod quantile;
mod rank;

pub use curve::{Areas, Tally, average_precision, roc_auc};
pub use quantile::quantile;
pub use rank::{Rank, Ranks, rank};

use crate::error::Result;

/// Average precision and ROC-AUC, pooled and as the mean over steps.
///
/// Pooling keeps one entry for each distinct score, not one for each score: a counting model needs
/// a few bytes.
#[derive(Debug, Clone, Default)]
pub struct StepMeans {
    steps: usize,
    sum: Areas,
    pooled: Tally,
}

impl StepMeans {
    /// No steps yet.
    pub fn new() -> StepMeans {
        StepMeans::default()
    }

    /// Adds one step, and gives its own areas.
    ///
    /// Refuses a step whose areas are not defined (see [`Tally::areas`]); the means are then as
    /// before. The row in an error is the number of the step.
    pub fn add(&mut self, scores: &[f64], labels: &[bool]) -> Result<Areas> {
        let step = Tally::of_row(self.steps, scores, labels)?;
        let areas = step.areas()?;
        self.steps += 1;
        self.sum.average_precision += areas.average_precision;
        self.sum.roc_auc += areas.roc_auc;
        self.pooled.merge(&step);
        Ok(areas)
    }

    /// How many steps were added.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The unweighted mean of the steps' areas; none without a step.
    pub fn mean(&self) -> Option<Areas> {
        let steps = self.steps as f64;
        (self.steps > 0).then(|| Areas {
            average_precision: self.sum.average_precision / steps,
            roc_auc: self.sum.roc_auc / steps,
        })
    }

    /// The areas over the scores of all steps together; none without a step.
    pub fn pooled(&self) -> Option<Areas> {
        self.pooled.areas().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_step_counts_as_much_as_a_long_one_in_the_mean_but_not_in_the_pool() {
        let mut means = StepMeans::new();
        let long =
            means.add(&[0.9, 0.8, 0.2, 0.1], &[true, true, false, false]).expect("two classes");
        let short = means.add(&[0.3, 0.7], &[true, false]).expect("two classes");
        assert_eq!((long.roc_auc, short.roc_auc), (1.0, 0.0));
        assert_eq!(means.mean().expect("two steps").roc_auc, 0.5);
        // 3 positives against 3 negatives: the positive at 0.3 is above 0.2 and 0.1, below 0.7.
        assert_eq!(means.pooled().expect("two steps").roc_auc, 8.0 / 9.0);
    }

    #[test]
    fn a_refused_step_changes_nothing() {
        let mut means = StepMeans::new();
        assert!(means.add(&[0.5, f64::NAN], &[true, false]).is_err());
        assert!(means.add(&[0.5, 0.4], &[true, true]).is_err());
        assert_eq!(means.steps(), 0);
        assert_eq!(means.mean(), None);
        assert_eq!(means.pooled(), None);
    }

    #[test]
    fn the_pool_equals_the_curve_over_all_scores() {
        // Enough steps that the tally folds its buffer into its groups several times.
        let scores: Vec<f64> =
            (0..60_000_u64).map(|i| (i.wrapping_mul(2_654_435_761) % 7_919) as f64).collect();
        let labels: Vec<bool> = (0..60_000_u64).map(|i| i.wrapping_mul(40_503) % 11 < 4).collect();
        let mut means = StepMeans::new();
        for (scores, labels) in scores.chunks(97).zip(labels.chunks(97)) {
            means.add(scores, labels).expect("two classes");
        }
        let pooled = means.pooled().expect("many steps");
        assert_eq!(
            pooled.average_precision,
            average_precision(&scores, &labels).expect("two classes")
        );
        assert_eq!(pooled.roc_auc, roc_auc(&scores, &labels).expect("two classes"));
    }
}
