//! How much a score may change before it counts as changed.
//!
//! The library's own models keep every bit. Others cannot: a BLAS adds in an order that depends on
//! the shape of the batch. What rounding does is far below what a leak does, and both are small or
//! large only beside the spread of the scores, so the limits are shares of it.

use serde::Serialize;

/// How much a score may change by rounding: the larger of two shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Share of the spread (largest minus smallest) of the scores of its row.
    pub of_row: f64,
    /// Share of the spread of the scores of its call. Candidates that a model cannot tell apart
    /// have a row without spread, and their scores still round.
    pub of_call: f64,
}

impl Tolerance {
    /// Every bit counts.
    pub const EXACT: Tolerance = Tolerance { of_row: 0.0, of_call: 0.0 };

    /// For models that compute in 32 bits and add in any order. An honest network in PyTorch moves
    /// its scores by 1.5e-6 of a row's spread; every leak we know of by more than 1e-2.
    pub const ROUNDING: Tolerance = Tolerance { of_row: 1e-3, of_call: 1e-5 };

    /// A change as a share of the spread of its row, or of a hundredth of its call's if that is
    /// more. Where all scores are equal, it is the change itself.
    pub(super) fn share(change: f64, row: &[f64], call: &[f64]) -> f64 {
        let scale = spread(row).max(spread(call) / 100.0);
        if scale > 0.0 { change / scale } else { change }
    }

    /// The largest change that is allowed among these scores of a row and of its call.
    pub(super) fn allows(self, row: &[f64], call: &[f64]) -> f64 {
        if self == Tolerance::EXACT {
            return 0.0;
        }
        (self.of_row * spread(row)).max(self.of_call * spread(call))
    }
}

/// The largest of some numbers minus the smallest; zero if there are none.
fn spread(scores: &[f64]) -> f64 {
    let ends = scores.iter().fold(None, |ends: Option<(f64, f64)>, &score| {
        Some(ends.map_or((score, score), |(low, high)| (low.min(score), high.max(score))))
    });
    ends.map_or(0.0, |(low, high)| high - low)
}
