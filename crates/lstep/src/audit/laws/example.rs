//! A breach as data, and the smallest call that still shows it.
//!
//! A question that is asked alone has nothing around it to depend on. If its score is another one
//! in a call of many rows, rows and candidates are taken away as long as that stays so. What is left
//! is what the model should not have looked at.

use crate::event::{NodeId, Time};
use crate::query::Queries;
use serde::Serialize;

/// At most so many calls are made to find a small example.
const CALLS: usize = 300;

/// A question whose score changed although it may not. Nodes are numbers of the stream that was
/// checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// Who would act.
    pub source: u32,
    /// With whom.
    pub destination: u32,
    /// When, in the stream's unit.
    pub time: f64,
    /// The score.
    pub expected: f64,
    /// What it became.
    pub found: f64,
    /// The smallest call in which the score differs from that of the question asked alone, where
    /// there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
}

/// A question alone, and in a call that changes its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Context {
    /// The score of the question asked alone.
    pub alone: f64,
    /// Its score in the call below.
    pub together: f64,
    /// Which row of the call the question is.
    pub row: usize,
    /// The call.
    pub call: Vec<AskedRow>,
}

/// A row of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskedRow {
    /// Who would act.
    pub source: u32,
    /// When.
    pub time: f64,
    /// With whom.
    pub candidates: Vec<u32>,
}

/// A row that can be taken out of a call.
type Row = (NodeId, Time, Vec<NodeId>);

/// A call that holds the question, while it is made smaller.
struct Shrinking<'a> {
    rows: Vec<Row>,
    /// The row of the question, and its place in it.
    question: (usize, usize),
    score: &'a dyn Fn(&Queries) -> Option<Vec<f64>>,
    alone: f64,
    allowed: f64,
    calls: usize,
}

/// The smallest call that can be found, from one that holds the question in some row at some place.
/// Nothing if the question has the same score alone.
pub(super) fn smallest_context(
    ask: &Queries,
    question: (usize, usize),
    allowed: f64,
    score: &dyn Fn(&Queries) -> Option<Vec<f64>>,
) -> Option<Context> {
    let rows: Vec<Row> =
        ask.rows().map(|row| (row.source, row.time, row.candidates.to_vec())).collect();
    let (row, place) = question;
    let (source, time, candidates) = &rows[row];
    let alone = score(&Queries::from_iter([(*source, *time, [candidates[place]])]))?[0];
    let mut shrinking = Shrinking { rows, question, score, alone, allowed, calls: 0 };
    shrinking.together(&shrinking.rows.clone(), question)?;
    shrinking.drop_rows();
    shrinking.drop_candidates();
    let Shrinking { rows, question, .. } = &shrinking;
    let together = shrinking.together(&rows.clone(), *question)?;
    let shown = |(source, time, candidates): &Row| AskedRow {
        source: source.0,
        time: time.value(),
        candidates: candidates.iter().map(|node| node.0).collect(),
    };
    Some(Context { alone, together, row: question.0, call: rows.iter().map(shown).collect() })
}

impl Shrinking<'_> {
    /// The question's score in a call, if it differs from that of the question alone.
    fn together(&self, rows: &[Row], (row, place): (usize, usize)) -> Option<f64> {
        let ask = Queries::from_iter(rows.iter().cloned());
        let found = (self.score)(&ask)?[ask.span(row).start + place];
        ((found - self.alone).abs() > self.allowed).then_some(found)
    }

    /// Takes other rows away, in large pieces first.
    fn drop_rows(&mut self) {
        let mut piece = self.rows.len().div_ceil(2);
        while piece > 0 {
            let mut start = 0;
            while start < self.rows.len() && self.calls < CALLS {
                let (row, place) = self.question;
                let gone = start..(start + piece).min(self.rows.len());
                let keeps = |at: &usize| *at == row || !gone.contains(at);
                let kept: Vec<usize> = (0..self.rows.len()).filter(keeps).collect();
                if kept.len() == self.rows.len() {
                    start += piece;
                    continue;
                }
                let rows: Vec<Row> = kept.iter().map(|&at| self.rows[at].clone()).collect();
                let moved = kept.iter().position(|&at| at == row).expect("it is kept");
                self.calls += 1;
                if self.together(&rows, (moved, place)).is_some() {
                    (self.rows, self.question) = (rows, (moved, place));
                } else {
                    start += piece;
                }
            }
            piece /= 2;
        }
    }

    /// Takes candidates away, in the question's own row and in the others.
    fn drop_candidates(&mut self) {
        for row in 0..self.rows.len() {
            let mut at = 0;
            while self.rows[row].2.len() > 1 && at < self.rows[row].2.len() && self.calls < CALLS {
                let (asked, place) = self.question;
                if row == asked && at == place {
                    at += 1;
                    continue;
                }
                let mut rows = self.rows.clone();
                rows[row].2.remove(at);
                let question = (asked, place - usize::from(row == asked && at < place));
                self.calls += 1;
                if self.together(&rows, question).is_some() {
                    (self.rows, self.question) = (rows, question);
                } else {
                    at += 1;
                }
            }
        }
    }
}
