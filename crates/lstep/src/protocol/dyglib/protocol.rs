//! From the emulation's rows and ids to passes over the stream.

use super::{EdgeColumns, EmulatedPart, EmulatedSplit, EmulatedStrategy, Sampler};
use crate::error::{Error, Remedy, Result};
use crate::event::Names;
use crate::protocol::numbered::Numbered;
use crate::protocol::step::by_events;
use crate::protocol::{
    DEFAULT_SPLIT, DEFAULT_STEP, EvalPass, EvalScope, Negatives, Part, QuerySet, Setting, Split,
    Strategy, Subject, Ties, Visibility,
};
use serde::{Deserialize, Serialize};

/// DyGLib's protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DyglibProtocol {
    /// Events in a step, at least 1; the draws depend on it. 200 in DyGLib.
    #[serde(deserialize_with = "by_events")]
    pub step: u32,
    /// The order of events that share a time. DyGLib's is that of the file.
    #[serde(skip_serializing_if = "Ties::is_file")]
    pub ties: Ties,
}

impl Default for DyglibProtocol {
    fn default() -> DyglibProtocol {
        DyglibProtocol { step: DEFAULT_STEP, ties: Ties::File }
    }
}

impl DyglibProtocol {
    /// The split, with the nodes held out that DyGLib holds out, and the emulation that found them.
    pub fn emulate(&self, subject: Subject<'_>) -> Result<(Split, Emulation)> {
        let times: Vec<f64> = subject.events.times().iter().map(|time| time.value()).collect();
        let ids = Numbered::new(subject, Names::number);
        let emulated =
            EmulatedSplit::new(EdgeColumns::new(&ids.sources, &ids.destinations, &times)?)?;
        let mut split = Split::chronological(subject.events, DEFAULT_SPLIT.0, DEFAULT_SPLIT.1)?;
        let held_out = emulated.sampled.iter().map(|number| ids.nodes[number]).collect();
        split.hold_out(subject.events, held_out);
        Ok((split, Emulation { ids, times, split: emulated }))
    }

    /// A pass for each part and setting: each has batches of its own, and the state evolves over
    /// the events asked only.
    pub fn passes(&self, emulation: &Emulation, asked: &EvalScope) -> Result<Vec<EvalPass>> {
        if self.step == 0 {
            return Err(Error::setting("step", 0, "a step has at least one event"));
        }
        let (columns, split) = (emulation.columns(), &emulation.split);
        let size = self.step as usize;
        let batches = |rows: &[usize]| -> Vec<Vec<u32>> {
            rows.chunks(size).map(|batch| batch.iter().map(|&row| row as u32).collect()).collect()
        };
        let mut passes = Vec::new();
        for &part in &asked.parts {
            for &setting in &asked.settings {
                let emulated = emulated_part(part, setting);
                let rows = emulated.events(split);
                // Test goes on from the state after validation.
                let before = if part == Part::Test { batches(&split.val) } else { Vec::new() };
                let mut query_sets = Vec::new();
                for &strategy in &asked.strategies {
                    let mut sampler =
                        Sampler::new(columns, split, emulated, emulated_strategy(strategy)?)?;
                    let negatives = emulation.negatives(&mut sampler, strategy, rows, size)?;
                    let steps = before.iter().map(|_| Vec::new()).chain(batches(rows));
                    query_sets.push(QuerySet::new(part, setting, strategy, steps, negatives)?);
                }
                let steps = before.into_iter().chain(batches(rows));
                passes.push(EvalPass::new(steps, query_sets, Visibility::Event, true)?);
            }
        }
        Ok(passes)
    }
}

fn emulated_part(part: Part, setting: Setting) -> EmulatedPart {
    match (part, setting) {
        (Part::Validation, Setting::Transductive) => EmulatedPart::Val,
        (Part::Validation, Setting::Inductive) => EmulatedPart::NewVal,
        (Part::Test, Setting::Transductive) => EmulatedPart::Test,
        (Part::Test, Setting::Inductive) => EmulatedPart::NewTest,
    }
}

fn emulated_strategy(strategy: Strategy) -> Result<EmulatedStrategy> {
    match strategy {
        Strategy::Random => Ok(EmulatedStrategy::Random),
        Strategy::Historical => Ok(EmulatedStrategy::Historical),
        Strategy::Inductive => Ok(EmulatedStrategy::Inductive),
        Strategy::Tgb => Err(Error::setting("negatives", "tgb", Remedy::UseProtocol("tgb"))),
    }
}

/// A stream as DyGLib sees it: the ids its pre-processing gives the nodes, and its split.
#[derive(Debug, Clone)]
pub struct Emulation {
    ids: Numbered,
    times: Vec<f64>,
    split: EmulatedSplit,
}

impl Emulation {
    /// The columns, which were checked when the split was made.
    fn columns(&self) -> EdgeColumns<'_> {
        EdgeColumns {
            sources: &self.ids.sources,
            destinations: &self.ids.destinations,
            times: &self.times,
        }
    }

    fn negatives(
        &self,
        sampler: &mut Sampler<'_>,
        strategy: Strategy,
        rows: &[usize],
        size: usize,
    ) -> Result<Negatives> {
        let mut negatives = if strategy == Strategy::Random {
            Negatives::of_destinations()
        } else {
            Negatives::of_pairs()
        };
        for batch in rows.chunks(size) {
            for (source, destination) in sampler.negatives(batch)? {
                match strategy {
                    Strategy::Random => negatives.push_destinations([self.ids.nodes[&destination]]),
                    _ => negatives
                        .push_pairs([(self.ids.nodes[&source], self.ids.nodes[&destination])]),
                }
            }
        }
        Ok(negatives)
    }
}
