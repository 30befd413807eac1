//! What was answered, kept for figures: the scores of a query set, row by row.
//!
//! Numbers are made while scoring and need no memory; pictures need the scores themselves. A record
//! keeps whole rows, every n-th one where a query set has more than [`MOST_PAIRS`] candidates, so
//! it takes at most about 8 bytes times that, whatever the stream's size. Where rows are ranked, the
//! rank of every row is kept beside them: comparing two models needs no more.

use crate::event::Ragged;
use crate::metric::{Rank, Tally, rank};
use crate::protocol::{EvalPass, QuerySet, Setting, Strategy};
use std::ops::Range;

/// Candidates of one query set whose scores are kept at most, but never less than one row: 8 MB.
pub const MOST_PAIRS: usize = 1 << 20;

/// The scores of one query set.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreLog {
    /// Which events were asked.
    pub setting: Setting,
    /// Against which negatives.
    pub strategy: Strategy,
    /// One of so many rows is kept.
    pub every: usize,
    /// The numbers of the events of the rows kept.
    events: Vec<u32>,
    scores: Ragged<f64>,
    /// How many rows were kept when each step ended.
    step_ends: Vec<usize>,
    /// The reciprocal rank of every row, kept or not; empty where rows are not ranked.
    reciprocals: Vec<f64>,
    /// How many of them there were when each step ended.
    rank_step_ends: Vec<usize>,
    /// The highest scores of every ranked row with more candidates than that, and which of them is
    /// the true one's.
    leaders: Vec<[(f64, bool); LEADERS]>,
}

/// So many scores of every ranked row are kept, whatever else is: a list as long as this is what
/// somebody is shown.
const LEADERS: usize = 10;

/// An event's score and those of its negatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<'r> {
    /// The event's number.
    pub event: u32,
    /// The score of what happened.
    pub positive: f64,
    /// The scores of what did not.
    pub negatives: &'r [f64],
}

impl ScoreLog {
    /// Scratch for the answers of a query set.
    fn new(query_set: &QuerySet) -> ScoreLog {
        let pairs = query_set.asked().len() + query_set.negatives().pairs();
        let every = pairs.div_ceil(MOST_PAIRS).clamp(1, query_set.asked().len().max(1));
        let (setting, strategy) = (query_set.setting, query_set.strategy);
        ScoreLog {
            setting,
            strategy,
            every,
            events: Vec::new(),
            scores: Ragged::default(),
            step_ends: Vec::new(),
            reciprocals: Vec::new(),
            rank_step_ends: Vec::new(),
            leaders: Vec::new(),
        }
    }

    /// Scratch for the answers of a pass, a record for each query set.
    pub fn of_pass(pass: &EvalPass) -> Vec<ScoreLog> {
        pass.query_sets.iter().map(ScoreLog::new).collect()
    }

    /// Takes the row at a place of the query set: the true destination's score, then those of its
    /// negatives, and its rank among them where rows are ranked.
    pub(super) fn take(&mut self, place: usize, event: u32, row: &[f64], rank: Option<Rank>) {
        if place.is_multiple_of(self.every) {
            self.events.push(event);
            self.scores.push(row.iter().copied());
        }
        if rank.is_some() && row.len() > LEADERS {
            self.leaders.push(leaders(row));
        }
        self.reciprocals.extend(rank.map(Rank::reciprocal));
    }

    /// The ten highest scores of every ranked row that has more candidates than that, from high to
    /// low, and which of them is the true one's. Among equals the true one comes last.
    pub(crate) fn leaders(&self) -> &[[(f64, bool); LEADERS]] {
        &self.leaders
    }

    /// Ends a step: the rows since the last call are one.
    pub(super) fn close_step(&mut self) {
        if self.step_ends.last().copied().unwrap_or(0) < self.len() {
            self.step_ends.push(self.len());
        }
        if self.rank_step_ends.last().copied().unwrap_or(0) < self.reciprocals.len() {
            self.rank_step_ends.push(self.reciprocals.len());
        }
    }

    /// The reciprocal ranks of all rows, and how many there are at the end of each step.
    pub fn reciprocal_ranks(&self) -> (&[f64], &[usize]) {
        (&self.reciprocals, &self.rank_step_ends)
    }

    /// The rows of each step that has any.
    pub fn steps(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = std::iter::once(0).chain(self.step_ends.iter().copied());
        starts.zip(&self.step_ends).map(|(start, &end)| start..end)
    }

    /// The numbers of the events whose rows are kept.
    pub fn events(&self) -> &[u32] {
        &self.events
    }

    /// How many rows are kept.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The rows kept, in the order asked.
    pub fn answers(&self) -> impl ExactSizeIterator<Item = Answer<'_>> {
        (0..self.len()).map(|row| self.answer(row))
    }

    /// One of the rows kept.
    pub fn answer(&self, row: usize) -> Answer<'_> {
        let scores = self.scores.row(row);
        Answer { event: self.events[row], positive: scores[0], negatives: &scores[1..] }
    }

    /// Whether an event has more than one negative, so that ranks say more than areas.
    pub fn is_ranked(&self) -> bool {
        self.scores.values().len() > 2 * self.len()
    }

    /// The metric of some rows: mean reciprocal rank where rows are ranked, else average precision.
    /// None without rows.
    pub fn quality(&self, rows: &[usize]) -> Option<f64> {
        let answers = rows.iter().map(|&row| self.answer(row));
        if self.is_ranked() {
            let ranks: Vec<f64> = answers
                .map(|answer| {
                    rank(answer.positive, answer.negatives).expect("scores are finite").reciprocal()
                })
                .collect();
            return (!ranks.is_empty()).then(|| ranks.iter().sum::<f64>() / ranks.len() as f64);
        }
        let (mut scores, mut labels) = (Vec::new(), Vec::new());
        for answer in answers {
            scores.push(answer.positive);
            scores.extend_from_slice(answer.negatives);
            labels.push(true);
            labels.extend(std::iter::repeat_n(false, answer.negatives.len()));
        }
        Tally::of_row(0, &scores, &labels).ok()?.average_precision().ok()
    }

    #[cfg(test)]
    pub(crate) fn of_rows(rows: &[(u32, f64, &[f64])]) -> ScoreLog {
        ScoreLog::of_rows_every(1, rows)
    }

    /// The same, of which one of so many is kept.
    #[cfg(test)]
    pub(crate) fn of_rows_every(every: usize, rows: &[(u32, f64, &[f64])]) -> ScoreLog {
        let (setting, strategy) = (Setting::Transductive, Strategy::Random);
        let mut record = ScoreLog {
            setting,
            strategy,
            every,
            events: Vec::new(),
            scores: Ragged::default(),
            step_ends: Vec::new(),
            reciprocals: Vec::new(),
            rank_step_ends: Vec::new(),
            leaders: Vec::new(),
        };
        for (place, (event, positive, negatives)) in rows.iter().enumerate() {
            let row: Vec<f64> =
                std::iter::once(*positive).chain(negatives.iter().copied()).collect();
            let ranked = negatives.len() > 1;
            let rank = ranked.then(|| rank(*positive, negatives).expect("scores are finite"));
            record.take(place, *event, &row, rank);
        }
        record.close_step();
        record
    }
}

/// The highest scores of a row, from high to low; the first of the row is the true one's.
fn leaders(row: &[f64]) -> [(f64, bool); LEADERS] {
    let mut best = [(f64::NEG_INFINITY, false); LEADERS];
    let mut offer = |score: f64, label: bool| {
        if score > best[LEADERS - 1].0 {
            let place = best.partition_point(|other| other.0 >= score);
            best.copy_within(place..LEADERS - 1, place + 1);
            best[place] = (score, label);
        }
    };
    row[1..].iter().for_each(|&score| offer(score, false));
    offer(row[0], true);
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_taken() {
        let record = ScoreLog::of_rows(&[(7, 0.5, &[0.1]), (9, -1.0, &[2.0])]);
        let answers: Vec<Answer<'_>> = record.answers().collect();
        assert_eq!(answers[0], Answer { event: 7, positive: 0.5, negatives: &[0.1] });
        assert_eq!(answers[1], Answer { event: 9, positive: -1.0, negatives: &[2.0] });
        assert!(!record.is_ranked());
        assert_eq!(record.quality(&[0]), Some(1.0));
        assert_eq!(record.quality(&[1]), Some(0.5));
        assert_eq!(record.quality(&[]), None);
    }

    #[test]
    fn several_negatives_are_ranked() {
        let record = ScoreLog::of_rows(&[(0, 0.5, &[0.9, 0.1, 0.2]), (1, 3.0, &[0.0, 1.0, 2.0])]);
        assert!(record.is_ranked());
        assert_eq!(record.quality(&[0, 1]), Some(0.75));
    }

    #[test]
    fn only_every_nth_row_is_kept_where_there_are_too_many() {
        let mut record = ScoreLog::of_rows(&[]);
        record.every = 3;
        (0..10).for_each(|place| record.take(place, place as u32, &[1.0, 0.0], None));
        assert_eq!(record.answers().map(|answer| answer.event).collect::<Vec<_>>(), [0, 3, 6, 9]);
    }

    #[test]
    fn the_ten_highest_of_every_row_are_kept_with_the_true_one_last_among_equals() {
        let negatives: Vec<f64> = (0..20).map(|n| f64::from(n * 7 % 20)).collect();
        let rows = [(0, 15.0, &negatives[..]), (1, 2.5, &negatives), (2, 1.0, &negatives[..5])];
        let record = ScoreLog::of_rows_every(2, &rows);
        let [first, second] = record.leaders() else { panic!("two rows are long enough") };
        assert_eq!(first.map(|row| row.0)[..6], [19.0, 18.0, 17.0, 16.0, 15.0, 15.0]);
        assert_eq!(first.iter().position(|row| row.1), Some(5));
        assert_eq!(second.map(|row| row.0)[9], 10.0);
        assert!(second.iter().all(|row| !row.1));
    }
}
