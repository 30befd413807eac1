//! Average precision and ROC-AUC, with scikit-learn's treatment of ties.
//!
//! Both are read off a [`Tally`]: the distinct scores from high to low, each with its number of
//! positives and negatives. Equal scores are one threshold, so the order of the rows never matters.
//! O(n log n) time; memory follows the number of distinct scores.

use crate::error::{Error, Result};
use std::cmp::Ordering;

/// Average precision: `sum_j (R_j - R_{j-1}) P_j` over the distinct scores from high to low, recall
/// `R`, precision `P`.
///
/// Refuses lengths that differ, a score that is not finite, and rows without a positive.
pub fn average_precision(scores: &[f64], labels: &[bool]) -> Result<f64> {
    Tally::of_row(0, scores, labels)?.average_precision()
}

/// Area under the ROC curve: the share of (positive, negative) pairs in which the positive scores
/// higher, ties half.
///
/// Refuses lengths that differ, a score that is not finite, and rows of one class only.
pub fn roc_auc(scores: &[f64], labels: &[bool]) -> Result<f64> {
    Tally::of_row(0, scores, labels)?.roc_auc()
}

/// The two areas of one set of scores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Areas {
    /// Average precision, in (0, 1].
    pub average_precision: f64,
    /// Area under the ROC curve, in [0, 1].
    pub roc_auc: f64,
}

/// Scores counted by value: what both areas need, and no more.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Distinct scores, from high to low.
    groups: Vec<Group>,
    /// Groups not yet folded in, in any order. Never longer than `groups` and [`Tally::BUFFER`]
    /// both, so folding costs O(1) for each score added.
    pending: Vec<Group>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    score: f64,
    positives: u64,
    negatives: u64,
}

impl Tally {
    const BUFFER: usize = 4096;

    /// Counts the scores of one row; `row` is named in errors.
    ///
    /// Refuses lengths that differ and a score that is not finite.
    pub fn of_row(row: usize, scores: &[f64], labels: &[bool]) -> Result<Tally> {
        if scores.len() != labels.len() {
            let (left, right) = (scores.len(), labels.len());
            return Err(Error::LengthMismatch { what: "scores and labels", left, right });
        }
        if let Some(candidate) = scores.iter().position(|score| !score.is_finite()) {
            return Err(Error::ScoreNotFinite { row, candidate, value: scores[candidate] });
        }
        let pending = scores.iter().zip(labels).map(|(&score, &label)| Group {
            score,
            positives: u64::from(label),
            negatives: u64::from(!label),
        });
        let mut tally = Tally { groups: Vec::new(), pending: pending.collect() };
        tally.fold();
        Ok(tally)
    }

    /// Adds what another tally counted.
    pub fn merge(&mut self, other: &Tally) {
        self.pending.extend(other.groups.iter().chain(&other.pending));
        if self.pending.len() >= self.groups.len().max(Tally::BUFFER) {
            self.fold();
        }
    }

    /// Average precision; refused without a positive.
    pub fn average_precision(&self) -> Result<f64> {
        Ok(self.folded().precision_area(self.classes("average precision", false)?.0))
    }

    /// Area under the ROC curve; refused for one class only.
    pub fn roc_auc(&self) -> Result<f64> {
        let (positives, negatives) = self.classes("ROC-AUC", true)?;
        Ok(self.folded().roc_area(positives, negatives))
    }

    /// Both areas; refused for one class only.
    pub fn areas(&self) -> Result<Areas> {
        let (positives, negatives) = self.classes("ROC-AUC", true)?;
        let tally = self.folded();
        Ok(Areas {
            average_precision: tally.precision_area(positives),
            roc_auc: tally.roc_area(positives, negatives),
        })
    }

    fn precision_area(&self, positives: u64) -> f64 {
        let (mut found, mut seen, mut sum) = (0, 0, 0.0);
        for group in &self.groups {
            found += group.positives;
            seen += group.positives + group.negatives;
            sum += group.positives as f64 * (found as f64 / seen as f64);
        }
        sum / positives as f64
    }

    fn roc_area(&self, positives: u64, negatives: u64) -> f64 {
        let (mut above, mut doubled) = (0, 0_u128);
        for group in &self.groups {
            doubled += u128::from(group.negatives) * u128::from(2 * above + group.positives);
            above += group.positives;
        }
        doubled as f64 / (2 * u128::from(positives) * u128::from(negatives)) as f64
    }

    /// Positives and negatives counted, if `area` is defined for them.
    fn classes(&self, area: &str, both: bool) -> Result<(u64, u64)> {
        let all = self.groups.iter().chain(&self.pending);
        let (positives, negatives) =
            all.fold((0, 0), |(p, n), group| (p + group.positives, n + group.negatives));
        if positives == 0 || (both && negatives == 0) {
            let needed = if both { "at least one of each" } else { "at least one positive" };
            return Err(Error::TooFew {
                what: "labels",
                found: format!("{positives} positives and {negatives} negatives"),
                remedy: format!("{area} needs {needed}").into(),
            });
        }
        Ok((positives, negatives))
    }

    fn folded(&self) -> std::borrow::Cow<'_, Tally> {
        if self.pending.is_empty() {
            return std::borrow::Cow::Borrowed(self);
        }
        let mut tally = self.clone();
        tally.fold();
        std::borrow::Cow::Owned(tally)
    }

    fn fold(&mut self) {
        self.pending.sort_unstable_by(|a, b| descending(a.score, b.score));
        let mut merged: Vec<Group> = Vec::with_capacity(self.groups.len());
        let (mut old, mut new) = (self.groups.iter().peekable(), self.pending.iter().peekable());
        loop {
            let next = match (old.peek(), new.peek()) {
                (Some(a), Some(b)) if descending(a.score, b.score) == Ordering::Greater => {
                    new.next()
                }
                (Some(_), _) => old.next(),
                (None, _) => new.next(),
            };
            let Some(&group) = next else { break };
            match merged.last_mut() {
                Some(last) if last.score == group.score => {
                    last.positives += group.positives;
                    last.negatives += group.negatives;
                }
                _ => merged.push(group),
            }
        }
        self.groups = merged;
        self.pending.clear();
    }
}

/// High scores first. Scores are finite, and zero equals negative zero, as it does for
/// scikit-learn.
fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).expect("a tally holds only finite scores")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_are_one_threshold() {
        let labels = [true, false, false, true];
        assert_eq!(average_precision(&[0.5; 4], &labels).expect("two classes"), 0.5);
        assert_eq!(roc_auc(&[0.5; 4], &labels).expect("two classes"), 0.5);
        assert_eq!(roc_auc(&[0.0, -0.0], &[true, false]).expect("two classes"), 0.5);
    }

    #[test]
    fn a_perfect_order_has_area_one() {
        let (scores, labels) = ([0.1, 0.9, 0.8, 0.2], [false, true, true, false]);
        assert_eq!(average_precision(&scores, &labels).expect("two classes"), 1.0);
        assert_eq!(roc_auc(&scores, &labels).expect("two classes"), 1.0);
    }

    #[test]
    fn one_class_is_refused() {
        let error = roc_auc(&[0.1, 0.2], &[true, true]).expect_err("no negative");
        assert_eq!(
            error.to_string(),
            "labels is 2 positives and 0 negatives: ROC-AUC needs at least one of each"
        );
        assert!(average_precision(&[0.1, 0.2], &[false, false]).is_err());
        assert_eq!(average_precision(&[0.1, 0.2], &[true, true]).expect("positives suffice"), 1.0);
    }

    #[test]
    fn nothing_is_refused() {
        assert!(average_precision(&[], &[]).is_err());
        assert!(roc_auc(&[], &[]).is_err());
    }

    #[test]
    fn scores_that_are_not_finite_are_refused_with_their_place() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = roc_auc(&[0.1, bad], &[true, false]).expect_err("not finite");
            assert!(matches!(error, Error::ScoreNotFinite { candidate: 1, .. }), "{error}");
        }
    }

    #[test]
    fn scores_and_labels_have_one_length() {
        assert!(matches!(
            roc_auc(&[0.1], &[]),
            Err(Error::LengthMismatch { left: 1, right: 0, .. })
        ));
    }
}
