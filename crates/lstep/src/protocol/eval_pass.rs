//! An evaluation pass: steps that are scored and then revealed, and the query sets asked in them.
//!
//! One pass over the stream answers all its query sets, so three kinds of negatives cost one pass
//! of the state, not three.

use super::negative::{Negatives, Strategy};
use super::step::Visibility;
use crate::error::{Error, Result};
use crate::event::{Events, Ragged};
use crate::query::Queries;
use std::ops::Range;

/// A part of the stream that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// For selecting.
    Validation,
    /// For the final number.
    Test,
}

impl std::fmt::Display for Part {
    /// As files and the command line write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Validation => "validation",
            Part::Test => "test",
        })
    }
}

/// Which events of a part are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// All of them.
    Transductive,
    /// Those with at least one node that training does not know.
    Inductive,
}

impl std::fmt::Display for Setting {
    /// As files and the command line write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Setting::Transductive => "transductive",
            Setting::Inductive => "inductive",
        })
    }
}

/// What is asked in each step of a pass: some of its events, each against negatives.
#[derive(Debug, Clone)]
pub struct QuerySet {
    /// The part the events are from.
    pub part: Part,
    /// Which of its events are asked.
    pub setting: Setting,
    /// How the negatives were chosen.
    pub strategy: Strategy,
    /// The events asked, a row for each step.
    asked: Ragged<u32>,
    negatives: Negatives,
}

impl QuerySet {
    /// A query set from the events asked in each step, and their negatives in the same order.
    pub fn new(
        part: Part,
        setting: Setting,
        strategy: Strategy,
        steps: impl IntoIterator<Item = Vec<u32>>,
        negatives: Negatives,
    ) -> Result<QuerySet> {
        let asked: Ragged<u32> = steps.into_iter().collect();
        fitting(asked.values(), &negatives)?;
        Ok(QuerySet { part, setting, strategy, asked, negatives })
    }

    /// The numbers of the events asked, in order.
    pub fn asked(&self) -> &[u32] {
        self.asked.values()
    }

    /// The negatives, a row for each event asked.
    pub fn negatives(&self) -> &Negatives {
        &self.negatives
    }

    /// Asks the same events against other negatives.
    pub fn replace_negatives(&mut self, negatives: Negatives) -> Result<()> {
        fitting(self.asked.values(), &negatives)?;
        self.negatives = negatives;
        Ok(())
    }

    /// Which of the events asked belong to a step, as places in [`QuerySet::asked`].
    pub fn step(&self, step: usize) -> Range<usize> {
        self.asked.span(step)
    }

    /// Adds the questions for some of the events asked. The true destination of each comes first,
    /// then its negatives; where negatives have sources of their own, each is a row of its own.
    pub fn ask(&self, events: &Events, places: Range<usize>, ask: &mut Queries) {
        for place in places {
            let event = events.at(self.asked.values()[place] as usize);
            let (sources, destinations) = self.negatives.row(place);
            match sources {
                None => {
                    let candidates =
                        std::iter::once(event.destination).chain(destinations.iter().copied());
                    ask.push(event.source, event.time, candidates);
                }
                Some(sources) => {
                    ask.push(event.source, event.time, [event.destination]);
                    for (&source, &destination) in sources.iter().zip(destinations) {
                        ask.push(source, event.time, [destination]);
                    }
                }
            }
        }
    }
}

fn fitting(asked: &[u32], negatives: &Negatives) -> Result<()> {
    if asked.len() == negatives.len() {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        what: "events asked and rows of negatives",
        left: asked.len(),
        right: negatives.len(),
    })
}

/// Steps to be scored and revealed in order, and the query sets to be answered on the way.
#[derive(Debug, Clone)]
pub struct EvalPass {
    /// What questions may see.
    pub visibility: Visibility,
    /// Whether the state stands still within a step even for models that could move with every
    /// event: the habit of the field's counting models.
    pub state_by_step: bool,
    /// What is asked.
    pub query_sets: Vec<QuerySet>,
    /// Whether an event stays unobserved until a step begins at a later time.
    pub(crate) ties_held_back: bool,
    /// The events revealed, a row for each step.
    reveals: Ragged<u32>,
}

impl EvalPass {
    /// A pass from the events that each step reveals.
    ///
    /// Refuses query sets with another number of steps.
    pub fn new(
        steps: impl IntoIterator<Item = Vec<u32>>,
        query_sets: Vec<QuerySet>,
        visibility: Visibility,
        state_by_step: bool,
    ) -> Result<EvalPass> {
        let reveals: Ragged<u32> = steps.into_iter().collect();
        for query_set in &query_sets {
            if query_set.asked.len() != reveals.len() {
                return Err(Error::LengthMismatch {
                    what: "steps of the pass and of a query set",
                    left: reveals.len(),
                    right: query_set.asked.len(),
                });
            }
        }
        Ok(EvalPass { visibility, state_by_step, query_sets, ties_held_back: false, reveals })
    }

    /// How many steps.
    pub fn steps(&self) -> usize {
        self.reveals.len()
    }

    /// The numbers of the events that a step reveals, in order.
    pub fn reveals(&self, step: usize) -> &[u32] {
        self.reveals.row(step)
    }

    /// The same pass with only these of its query sets.
    ///
    /// # Panics
    /// If there is no such query set.
    #[must_use]
    pub fn only(&self, query_sets: &[usize]) -> EvalPass {
        EvalPass {
            query_sets: query_sets
                .iter()
                .map(|&query_set| self.query_sets[query_set].clone())
                .collect(),
            ..self.clone()
        }
    }

    /// The same questions in the same steps, asked of a state that has observed nothing of the
    /// step's first time or later.
    #[must_use]
    pub fn holding_back_ties(&self) -> EvalPass {
        EvalPass { ties_held_back: true, ..self.clone() }
    }

    /// The number of the first event that the pass reveals: all before it have been observed.
    pub fn reveals_from(&self) -> u32 {
        self.reveals.values().first().copied().unwrap_or(0)
    }

    /// How many candidates all query sets ask about.
    pub fn pairs(&self) -> u64 {
        self.query_sets
            .iter()
            .map(|query_set| (query_set.asked().len() + query_set.negatives.pairs()) as u64)
            .sum()
    }
}
