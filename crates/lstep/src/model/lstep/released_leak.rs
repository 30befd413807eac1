//! The label leak of the authors' released code, for the audit that shows what it is worth, and for
//! nothing else.
//!
//! The released code filters the positions of the nodes of a step's true events and leaves all
//! others as they were stored. A sampled negative is then mostly unfiltered, and the scorer learns
//! to tell that apart. [`ReleasedLeak`] is an L-STEP with that fault. No setting leads here,
//! only the crate can make one, and it cannot be saved.

use super::{LstepConfig, LstepEncoder, LstepScratch, LstepState, Snapshot, handed_over};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeSet};
use crate::graph::{Past, Revealed, Seed};
use crate::model::batch::BatchOrder;
use crate::model::composite::CompositeState;
use crate::model::encoder::{
    Chunk, Encoded, ForwardContext, LossBatch, Mode, NodeEncoder, ObserveScratch,
};
use crate::model::{
    Composite, FeatureWidths, LaneGradients, Learner, Mlp, Model, StreamInfo, TrainBatch,
    TrainContext,
};
use crate::query::{Queries, Scores};
use lstep_tensor::{Parameters, Tape, Var};

/// L-STEP that filters only the endpoints of true events.
#[derive(Clone)]
pub struct ReleasedLeak {
    leaking: Composite<Leaking, Mlp>,
}

impl ReleasedLeak {
    /// A model with weights drawn from a seed: those that an honest one begins with.
    pub fn new(config: LstepConfig, seed: u64) -> Result<ReleasedLeak> {
        let leaking = Composite::build(seed, |parameters| {
            let width = config.node_width;
            let honest = LstepEncoder::new(config, parameters)?;
            Ok((Leaking { honest }, Mlp::add(parameters, width).by_role()))
        })?;
        Ok(ReleasedLeak { leaking })
    }
}

/// The encoder, which takes the nodes it must not know for a part of its state.
#[derive(Clone)]
pub struct Leaking {
    honest: LstepEncoder,
}

/// An honest state, and the endpoints of the call's true events.
#[derive(Clone)]
pub struct LeakingState {
    honest: LstepState,
    told: NodeSet,
}

impl NodeEncoder for Leaking {
    type State = LeakingState;
    type Scratch = LstepScratch;
    type Ahead = Option<Snapshot>;

    fn feature_widths(&self) -> FeatureWidths {
        self.honest.feature_widths()
    }

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: usize::MAX, pairs: usize::MAX }
    }

    fn order(&self) -> BatchOrder {
        self.honest.order()
    }

    fn init(&self, info: &StreamInfo) -> LeakingState {
        LeakingState { honest: self.honest.init(info), told: NodeSet::default() }
    }

    fn is_ready(&self, state: &LeakingState) -> bool {
        self.honest.is_ready(&state.honest)
    }

    /// The encoder's equations, with the stored position wherever a node is not among the `told`.
    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        LeakingState { honest: state, told }: &'t LeakingState,
        seeds: &[Seed],
        LstepScratch { gathered, runs, .. }: &mut LstepScratch,
    ) -> Encoded {
        let (past, tape) = (context.past, &mut *context.tape);
        self.honest.gather(gathered, past, seeds);
        let equations = self.honest.equations(context.parameters, false);
        let filtered = equations.approximate(tape, gathered, state, runs);
        let (nodes, width) = tape.shape(filtered);
        let is_told = tape.input(nodes, 1, |marks| {
            marks
                .iter_mut()
                .zip(&gathered.nodes)
                .for_each(|(mark, &node)| *mark = f32::from(u8::from(told.contains(node))));
        });
        let stored = tape.input(nodes, width, |rows| {
            for (row, &node) in rows
                .chunks_mut(width)
                .zip(&gathered.nodes)
                .filter(|(_, node)| !told.contains(**node))
            {
                state.positions.latest(node).iter().for_each(|latest| row.copy_from_slice(latest));
            }
        });
        let filtered = tape.scale_rows(filtered, is_told);
        let mixed = tape.add(filtered, stored);
        handed_over(equations.encode_at(tape, past, gathered, Some(mixed)), gathered)
    }

    fn total_loss(
        &self,
        tape: &mut Tape<'_>,
        prediction: Var,
        encoded: &Encoded,
        batch: LossBatch<'_>,
        scratch: &LstepScratch,
    ) -> Var {
        self.honest.total_loss(tape, prediction, encoded, batch, scratch)
    }

    fn ahead(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &LeakingState,
        step: &[Event],
        scratch: &mut ObserveScratch<LstepScratch>,
    ) -> Option<Snapshot> {
        self.honest.ahead(parameters, known, &state.honest, step, scratch)
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &mut LeakingState,
        step: &[Event],
        ahead: Option<Snapshot>,
        scratch: &mut ObserveScratch<LstepScratch>,
    ) {
        self.honest.observe(parameters, known, &mut state.honest, step, ahead, scratch);
    }

    /// # Panics
    /// Always: a leaking model in a file could be taken for an honest one.
    fn save_state<'a>(&self, _: &'a LeakingState, _: &mut Checkpoint<'a>) {
        panic!(
            "a model with the released leak is never saved: the audit that trains it forgets it"
        );
    }

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<LeakingState> {
        Err(Error::setting(
            "model",
            "with the released leak",
            "it is never saved: train an honest one",
        ))
    }
}

/// The endpoints of the true events among the questions. A model is never told which they are; this
/// one knows how the evaluator lays them out: the true destination comes before its negative, in a
/// row with it or, where the negative has a source of its own, in the row before.
fn told(ask: &Queries) -> NodeSet {
    let rows =
        ask.rows().enumerate().filter(|(number, row)| row.candidates.len() > 1 || number % 2 == 0);
    rows.flat_map(|(_, row)| std::iter::once(row.source).chain(row.candidates.first().copied()))
        .collect()
}

type State = CompositeState<Leaking, Mlp>;

impl Model for ReleasedLeak {
    type State = State;

    fn begin(&self, info: &StreamInfo) -> State {
        self.leaking.begin(info)
    }

    fn score(&self, past: Past<'_>, state: &State, ask: &Queries) -> Result<Scores> {
        let mut state = state.clone();
        state.encoder.told = told(ask);
        self.leaking.score(past, &state, ask)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut State, step: &[Event]) -> Result<()> {
        self.leaking.observe(known, state, step)
    }
}

impl Learner for ReleasedLeak {
    type Ahead = Option<Snapshot>;

    fn parameters(&self) -> &Parameters {
        self.leaking.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.leaking.parameters_mut()
    }

    fn gradients(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &State,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<LaneGradients<Option<Snapshot>>> {
        let mut state = state.clone();
        state.encoder.told =
            batch.events.iter().flat_map(|event| [event.source, event.destination]).collect();
        self.leaking.gradients(past, known, &state, batch, context)
    }

    fn observe_ahead(
        &self,
        known: Revealed<'_>,
        state: &mut State,
        step: &[Event],
        ahead: Option<Snapshot>,
    ) -> Result<()> {
        self.leaking.observe_ahead(known, state, step, ahead)
    }

    fn save_state<'a>(&self, state: &'a State, checkpoint: &mut Checkpoint<'a>) {
        self.leaking.save_state(state, checkpoint);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<State> {
        self.leaking.load_state(info, checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lstep;
    use super::*;
    use crate::audit::laws::{Check, Law, Opening, Submission, check_model};
    use crate::event::NodeId;
    use crate::graph::EventLog;
    use crate::model::{OptimizerConfig, new_trainer, open};
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn small() -> LstepConfig {
        LstepConfig {
            time_width: 4,
            node_width: 6,
            edge_width: 1,
            position_width: 5,
            snapshots: 4,
            recent: 3,
            ..LstepConfig::default()
        }
    }

    #[test]
    fn the_laws_catch_the_leak_and_acquit_the_same_weights_without_it() {
        let settings = SyntheticConfig { events: 800, nodes: 60, ..SyntheticConfig::default() };
        let log = EventLog::new(generate(&settings).expect("a stream").events);
        let leaking =
            |opening: &Opening<'_>| Ok(open(ReleasedLeak::new(small(), 1)?, opening.info));
        let honest = |opening: &Opening<'_>| Ok(open(Lstep::new(small(), 1)?, opening.info));
        let check = |submission: &Submission<'_>| {
            check_model(submission, &log, Check::small()).expect("checked").breaches()
        };
        let broken = check(&Submission::new(&leaking));
        assert!(broken.iter().any(|breach| breach.law == Law::OtherRows), "{broken:?}");
        assert_eq!(check(&Submission::new(&honest)), []);
    }

    #[test]
    #[should_panic(expected = "never saved")]
    fn a_leaking_model_cannot_be_saved() {
        let info = StreamInfo::new(2, (crate::event::Time::ZERO, crate::event::Time::ZERO));
        let optimizer = OptimizerConfig::default();
        new_trainer(ReleasedLeak::new(small(), 0).expect("settings"), &info, optimizer)
            .save(&mut Checkpoint::default());
    }

    #[test]
    fn true_endpoints_are_told_whether_negatives_have_sources_of_their_own_or_not() {
        let node =
            |numbers: &[u32]| numbers.iter().map(|&number| NodeId(number)).collect::<Vec<_>>();
        let mut ask = Queries::new();
        ask.push(NodeId(1), crate::event::Time::ZERO, node(&[2, 3]));
        ask.push(NodeId(4), crate::event::Time::ZERO, node(&[5, 6]));
        assert_eq!(told(&ask).iter().collect::<Vec<_>>(), node(&[1, 2, 4, 5]));
        ask.clear();
        for (source, destination) in [(1, 2), (7, 8), (4, 5), (9, 10)] {
            ask.push(NodeId(source), crate::event::Time::ZERO, node(&[destination]));
        }
        assert_eq!(told(&ask).iter().collect::<Vec<_>>(), node(&[1, 2, 4, 5]));
    }
}
