//! Questions without answers: rows of one source at one time against candidates.
//!
//! There are no labels here. Only the evaluator knows which candidate is true, so no model can be
//! told.

use crate::error::{Error, Result};
use crate::event::{NodeId, Ragged, Time};
use crate::graph::Seed;

/// Rows of questions, asked in one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queries {
    sources: Vec<NodeId>,
    times: Vec<Time>,
    candidates: Ragged<NodeId>,
}

/// One source at one time against candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'ask> {
    /// Who would act.
    pub source: NodeId,
    /// When.
    pub time: Time,
    /// With whom, perhaps.
    pub candidates: &'ask [NodeId],
}

impl Row<'_> {
    /// The source at the row's time.
    pub fn seed(&self) -> Seed {
        Seed::new(self.source, self.time)
    }
}

impl Queries {
    /// No rows yet.
    pub fn new() -> Queries {
        Queries::default()
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.sources.clear();
        self.times.clear();
        self.candidates.clear();
    }

    /// Adds a row.
    pub fn push(
        &mut self,
        source: NodeId,
        time: Time,
        candidates: impl IntoIterator<Item = NodeId>,
    ) {
        self.sources.push(source);
        self.times.push(time);
        self.candidates.push(candidates);
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// How many candidates in all rows together.
    pub fn pairs(&self) -> usize {
        self.candidates.values().len()
    }

    /// Where the row's candidates are among all candidates, and so its scores among all scores.
    pub fn span(&self, row: usize) -> std::ops::Range<usize> {
        self.candidates.span(row)
    }

    /// One row.
    pub fn row(&self, row: usize) -> Row<'_> {
        Row {
            source: self.sources[row],
            time: self.times[row],
            candidates: self.candidates.row(row),
        }
    }

    /// All rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|row| self.row(row))
    }
}

impl<C: IntoIterator<Item = NodeId>> Extend<(NodeId, Time, C)> for Queries {
    fn extend<I: IntoIterator<Item = (NodeId, Time, C)>>(&mut self, rows: I) {
        rows.into_iter().for_each(|(source, time, candidates)| self.push(source, time, candidates));
    }
}

impl<C: IntoIterator<Item = NodeId>> FromIterator<(NodeId, Time, C)> for Queries {
    fn from_iter<I: IntoIterator<Item = (NodeId, Time, C)>>(rows: I) -> Queries {
        let mut ask = Queries::new();
        ask.extend(rows);
        ask
    }
}

/// A finite score for each candidate of each row; higher is likelier. Only the order counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    values: Vec<f64>,
}

impl Scores {
    /// Scores in the order of the queries' candidates. Refuses a wrong number of them and any that
    /// is not finite.
    pub fn new(ask: &Queries, values: Vec<f64>) -> Result<Scores> {
        if values.len() != ask.pairs() {
            return Err(Error::LengthMismatch {
                what: "candidates and scores",
                left: ask.pairs(),
                right: values.len(),
            });
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let row = ask.candidates.row_of(place);
            let candidate = place - ask.span(row).start;
            return Err(Error::ScoreNotFinite { row, candidate, value: values[place] });
        }
        Ok(Scores { values })
    }

    /// All scores, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_rows() -> Queries {
        let mut ask = Queries::new();
        ask.push(NodeId(0), Time::ZERO, [NodeId(1), NodeId(2)]);
        ask.push(NodeId(3), Time::ZERO, [NodeId(4)]);
        ask
    }

    #[test]
    fn a_score_that_is_not_finite_is_refused_with_its_place() {
        let error = Scores::new(&two_rows(), vec![0.0, 1.0, f64::NAN]).expect_err("NaN");
        assert!(matches!(error, Error::ScoreNotFinite { row: 1, candidate: 0, .. }), "{error}");
        let error = Scores::new(&two_rows(), vec![0.0, f64::INFINITY, 1.0]).expect_err("infinite");
        assert!(matches!(error, Error::ScoreNotFinite { row: 0, candidate: 1, .. }), "{error}");
    }

    #[test]
    fn too_few_scores_are_refused() {
        assert!(Scores::new(&two_rows(), vec![0.0]).is_err());
    }
}
