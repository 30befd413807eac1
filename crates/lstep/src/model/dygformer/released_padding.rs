//! The padding of DyGFormer's released code, for the audit that shows what it is worth, and for
//! nothing else.
//!
//! The released code fills histories up to the longest of a call with empty patches, which take
//! part in the mean as others do, and it asks about the true events of a step in one call and about
//! their negatives in another. Where the longest histories of the two differ, the number of empty
//! patches tells which is which, and the model learns to read it. [`ReleasedPadding`] is a
//! [`DyGFormer`] with that fault. No setting leads here, only the crate can make one, and it cannot
//! be saved.

use super::{DyGFormerConfig, DyGFormerHead, Patches};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::model::composite::{CompositeState, pairs_of};
use crate::model::encoder::{Chunk, Encoded, ForwardContext, Mode, NoEncoder, PairHead};
use crate::model::{
    Composite, FeatureWidths, LaneGradients, Learner, Model, PairBatch, StreamInfo, TrainBatch,
    TrainContext,
};
use crate::query::{Queries, Scores};
use lstep_tensor::{Parameters, Var};

/// DyGFormer that fills histories up to the longest of the step's true events, or of its negatives.
#[derive(Clone)]
pub struct ReleasedPadding {
    config: DyGFormerConfig,
    filled: Composite<NoEncoder, Filled>,
}

impl ReleasedPadding {
    /// A model with weights drawn from a seed: those that an honest one begins with.
    pub fn new(config: DyGFormerConfig, seed: u64) -> Result<ReleasedPadding> {
        let filled = Composite::build(seed, |parameters| {
            Ok((NoEncoder, Filled { honest: DyGFormerHead::new(config.clone(), parameters)? }))
        })?;
        Ok(ReleasedPadding { config, filled })
    }
}

/// How many patches the longest histories of a step have, of sources and of destinations, for true
/// events and for negatives. A model is never told which pairs are true; this one knows how
/// evaluator and batches lay them out: a true event, then its negative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Longest([[u32; 2]; 2]);

impl Longest {
    fn of(
        past: Past<'_>,
        pairs: impl Iterator<Item = (Seed, NodeId)>,
        config: &DyGFormerConfig,
    ) -> Longest {
        let mut longest = Longest::default();
        for (pair, (source, candidate)) in pairs.enumerate() {
            let sides = [source, source.with_node(candidate)];
            for (most, seed) in longest.0[pair % 2].iter_mut().zip(sides) {
                let entries = 1 + past.recent(seed, config.longest - 1).len();
                *most = (*most).max(entries.div_ceil(config.patch) as u32);
            }
        }
        longest
    }

    /// For a call with true events only, or with negatives only.
    fn only(self, kind: usize) -> Longest {
        Longest([self.0[kind]; 2])
    }
}

/// The head, which takes what it must not know for a state.
#[derive(Clone)]
pub struct Filled {
    honest: DyGFormerHead,
}

impl PairHead<NoEncoder> for Filled {
    type State = Longest;
    type Scratch = Patches;
    type Prepared = ();

    fn feature_widths(&self, encoder: &NoEncoder) -> FeatureWidths {
        self.honest.feature_widths(encoder)
    }

    fn chunk(&self, encoder: &NoEncoder, mode: Mode) -> Chunk {
        self.honest.chunk(encoder, mode)
    }

    fn init(&self, _: &StreamInfo) -> Longest {
        Longest::default()
    }

    fn prepare(&self, _: &NoEncoder, _: &Parameters, _: Past<'_>) {}

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        Longest(longest): &'t Longest,
        _: &Encoded,
        pairs: &PairBatch,
        _: Option<&'t ()>,
        patches: &mut Patches,
    ) -> Var {
        // Training batches hold an event, then its negative, in every piece.
        self.honest.logits_filled(context, pairs, patches, |pair, lengths| {
            let [source, destination] = longest[pair % 2];
            [source - lengths[0], destination - lengths[1]]
        })
    }

    fn save_state<'a>(&self, _: &'a Longest, _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<Longest> {
        Ok(Longest::default())
    }
}

fn state(head: Longest) -> CompositeState<NoEncoder, Filled> {
    CompositeState { encoder: (), head }
}

impl Model for ReleasedPadding {
    type State = ();

    fn begin(&self, _: &StreamInfo) {}

    /// True events in one call, negatives in another, as the released code does.
    fn score(&self, past: Past<'_>, (): &(), ask: &Queries) -> Result<Scores> {
        let longest = Longest::of(past, pairs_of(ask), &self.config);
        let mut values = vec![0.0; ask.pairs()];
        for kind in 0..2 {
            let places: Vec<usize> = (kind..ask.pairs()).step_by(2).collect();
            let mut half = Queries::new();
            for (source, candidate) in pairs_of(ask).skip(kind).step_by(2) {
                half.push(source.node(), source.time(), [candidate]);
            }
            let scores = self.filled.score(past, &state(longest.only(kind)), &half)?;
            places.iter().zip(scores.values()).for_each(|(&place, &score)| values[place] = score);
        }
        Scores::new(ask, values)
    }

    fn observe(&self, _: Revealed<'_>, (): &mut (), _: &[Event]) -> Result<()> {
        Ok(())
    }
}

impl Learner for ReleasedPadding {
    type Ahead = ();

    fn parameters(&self) -> &Parameters {
        self.filled.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.filled.parameters_mut()
    }

    fn lanes(&self, batch: TrainBatch<'_>, wanted: Option<usize>) -> usize {
        self.filled.lanes(batch, wanted)
    }

    fn gradients(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        (): &(),
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<LaneGradients<()>> {
        let pairs = batch.pairs().map(|(pair, _)| pair);
        let longest = Longest::of(past, pairs, &self.config);
        self.filled.gradients(past, known, &state(longest), batch, context)
    }

    fn observe_ahead(&self, _: Revealed<'_>, (): &mut (), _: &[Event], (): ()) -> Result<()> {
        Ok(())
    }

    /// # Panics
    /// Always: a leaking model in a file could be taken for an honest one.
    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {
        panic!(
            "a model with the released padding is never saved: the audit that trains it forgets it"
        );
    }

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Err(Error::setting(
            "model",
            "with the released padding",
            "it is never saved: train an honest one",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::DyGFormer;
    use super::*;
    use crate::audit::laws::{Check, Law, Opening, Submission, check_model};
    use crate::graph::EventLog;
    use crate::model::{OptimizerConfig, new_trainer, open};
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn small() -> DyGFormerConfig {
        DyGFormerConfig {
            time_width: 4,
            node_width: 6,
            edge_width: 1,
            channel_width: 4,
            longest: 8,
            patch: 2,
            layers: 1,
            ..DyGFormerConfig::default()
        }
    }

    #[test]
    fn the_laws_catch_the_padding_and_acquit_the_same_weights_without_it() {
        let settings = SyntheticConfig { events: 600, nodes: 60, ..SyntheticConfig::default() };
        let log = EventLog::new(generate(&settings).expect("a stream").events);
        let leaking =
            |opening: &Opening<'_>| Ok(open(ReleasedPadding::new(small(), 1)?, opening.info));
        let honest = |opening: &Opening<'_>| Ok(open(DyGFormer::new(small(), 1)?, opening.info));
        let check = |submission: &Submission<'_>| {
            check_model(submission, &log, Check::small()).expect("checked").breaches()
        };
        let broken = check(&Submission::new(&leaking));
        assert!(broken.iter().any(|breach| breach.law == Law::Split), "{broken:?}");
        assert_eq!(check(&Submission::new(&honest)), []);
    }

    #[test]
    fn histories_are_filled_up_to_the_longest_of_true_events_and_of_negatives() {
        let time = |value: u32| crate::event::Time::new(f64::from(value)).expect("finite");
        let mut log = EventLog::default();
        // Node 1 has met somebody five times, 2 three times, 3 twice, 4 never.
        for (number, (source, destination)) in
            [(1, 2), (1, 2), (1, 3), (1, 3), (1, 2)].into_iter().enumerate()
        {
            log.push(NodeId(source), NodeId(destination), time(number as u32), &[])
                .expect("in order");
        }
        let pair =
            |source: u32, candidate: u32| (Seed::new(NodeId(source), time(9)), NodeId(candidate));
        let pairs = [pair(1, 3), pair(1, 4), pair(2, 4), pair(2, 2)];
        // Each history holds the node itself, and two entries are a patch: six, four, three and one
        // entries.
        let longest = Longest::of(log.past(5), pairs.into_iter(), &small());
        assert_eq!(longest, Longest([[3, 2], [3, 2]]));
        let longest = Longest::of(log.past(5), pairs.into_iter().take(2), &small());
        assert_eq!(longest, Longest([[3, 2], [3, 1]]));
    }

    #[test]
    #[should_panic(expected = "never saved")]
    fn a_leaking_model_cannot_be_saved() {
        let info = StreamInfo::new(2, (crate::event::Time::ZERO, crate::event::Time::ZERO));
        let optimizer = OptimizerConfig::default();
        new_trainer(ReleasedPadding::new(small(), 0).expect("settings"), &info, optimizer)
            .save(&mut Checkpoint::default());
    }
}
