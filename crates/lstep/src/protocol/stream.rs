//! The stream protocol: one stream that runs on from training through validation to test, and
//! nobody sees ahead.
//!
//! The default. Everything is observed once and in order; all query sets are answered in one pass.

use super::config::EvalScope;
use super::eval_pass::{EvalPass, Part, QuerySet};
use super::negative::StreamSampler;
use super::numbering::Numbering;
use super::split::{DEFAULT_SPLIT, Split};
use super::step::{DEFAULT_STEP, StepRule, Visibility, cut};
use super::ties::Ties;
use crate::error::{Error, Remedy, Result};
use crate::event::Events;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a stream is split, stepped and asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamProtocol {
    /// Time quantiles at which validation and test begin, each in (0, 1). The field's 70/15/15.
    pub split: (f64, f64),
    /// Where steps end.
    pub step: StepRule,
    /// What questions may see.
    pub visibility: Visibility,
    /// Share of all nodes that training does not get to know, in [0, 1).
    pub held_out: f64,
    /// Negatives for each event, at least 1; more than there are destinations means all of them.
    pub per_event: usize,
    /// At most this many events of a part are asked, spread evenly over it; all of them if nothing
    /// is said. Against every destination of a large stream a few thousand already tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<usize>,
    /// Seed of held-out nodes and negatives.
    pub seed: u64,
    /// The order of events that share a time.
    #[serde(skip_serializing_if = "Ties::is_file")]
    pub ties: Ties,
    /// The order of the numbers that models call nodes by.
    #[serde(
        default = "Numbering::of_former_runs",
        skip_serializing_if = "Numbering::is_of_former_runs"
    )]
    pub numbering: Numbering,
}

impl Default for StreamProtocol {
    fn default() -> StreamProtocol {
        StreamProtocol {
            split: DEFAULT_SPLIT,
            step: StepRule::Events(DEFAULT_STEP),
            visibility: Visibility::Event,
            held_out: 0.0,
            per_event: 1,
            questions: None,
            seed: 0,
            ties: Ties::File,
            numbering: Numbering::default(),
        }
    }
}

impl StreamProtocol {
    /// The split of a stream.
    pub fn split(&self, events: &Events) -> Result<Split> {
        let mut split = Split::chronological(events, self.split.0, self.split.1)?;
        if self.held_out != 0.0 {
            split.hold_out_share(events, self.held_out, self.seed)?;
        }
        Ok(split)
    }

    /// One pass over validation and test, or validation alone, with a query set for each part,
    /// setting and strategy.
    pub fn pass(&self, events: &Events, split: &Split, asked: &EvalScope) -> Result<EvalPass> {
        if self.per_event == 0 {
            return Err(Error::setting("per-event", 0, "an event needs at least one negative"));
        }
        if self.questions == Some(0) {
            return Err(Error::setting("questions", 0, "ask about at least one event"));
        }
        let steps_of = |part| cut(events, split.range(part), self.step, self.visibility);
        let validation = steps_of(Part::Validation);
        let test =
            if asked.parts.contains(&Part::Test) { steps_of(Part::Test) } else { Vec::new() };
        let mut query_sets = Vec::new();
        for &part in &asked.parts {
            let (steps, before, after) = match part {
                Part::Validation => (&validation, 0, test.len()),
                Part::Test => (&test, validation.len(), 0),
            };
            for &setting in &asked.settings {
                let (seed, per_event, questions) = (self.seed, self.per_event, self.questions);
                let sampler =
                    StreamSampler { events, split, part, setting, seed, per_event, questions };
                let (events_asked, drawn) = sampler.sample(&asked.strategies, steps)?;
                if events_asked.iter().all(Vec::is_empty) {
                    return Err(no_new_nodes(split));
                }
                for (&strategy, negatives) in asked.strategies.iter().zip(drawn) {
                    let nothing = |count| std::iter::repeat_n(Vec::new(), count);
                    let steps =
                        nothing(before).chain(events_asked.iter().cloned()).chain(nothing(after));
                    query_sets.push(QuerySet::new(part, setting, strategy, steps, negatives)?);
                }
            }
        }
        let steps = validation.into_iter().chain(test).map(Range::collect);
        EvalPass::new(steps, query_sets, self.visibility, false)
    }
}

fn no_new_nodes(split: &Split) -> Error {
    Error::EmptyPart {
        part: "inductive",
        reason: format!(
            "{} nodes are new after training, none of them is in this part",
            split.new_nodes().len()
        ),
        remedy: Remedy::HoldOutNodes,
    }
}
