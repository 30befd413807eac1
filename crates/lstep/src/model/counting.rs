//! What the counting models share: a table of pairs, and scoring candidate by candidate.

use crate::error::Result;
use crate::event::NodeId;
use crate::query::{Queries, Row, Scores};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Something remembered of each pair that has met.
pub(super) type PairTable<T> = FxHashMap<u64, T>;

/// Rows with fewer candidates than this in all are not worth waking threads for.
const PARALLEL_FROM: usize = 8_192;

/// Scores each candidate by itself. Parallel over candidates when there are many; the result is the
/// same either way.
pub(super) fn score_each(
    ask: &Queries,
    score: impl Fn(Row<'_>, NodeId) -> f64 + Sync,
) -> Result<Scores> {
    let mut values = vec![0.0; ask.pairs()];
    let fill = |row: Row<'_>, slots: &mut [f64]| {
        for (slot, &candidate) in slots.iter_mut().zip(row.candidates) {
            *slot = score(row, candidate);
        }
    };
    if ask.pairs() < PARALLEL_FROM {
        let mut rest = values.as_mut_slice();
        for row in ask.rows() {
            let (slots, later) = rest.split_at_mut(row.candidates.len());
            fill(row, slots);
            rest = later;
        }
    } else {
        let mut rest = values.as_mut_slice();
        let mut slots_of_rows = Vec::with_capacity(ask.len());
        for row in ask.rows() {
            let (slots, later) = rest.split_at_mut(row.candidates.len());
            slots_of_rows.push((row, slots));
            rest = later;
        }
        slots_of_rows.into_par_iter().with_min_len(4).for_each(|(row, slots)| fill(row, slots));
    }
    Scores::new(ask, values)
}
