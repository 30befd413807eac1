//! The label leak of the authors' released code, for the audit that shows what it is worth, and for
//! nothing else.
//!
//! The released code filters the positions of the nodes of a step's true events and leaves all
//! others as they were stored. A sampled negative is then mostly unfiltered, and the scorer learns
//! to tell that apart. [`ReleasedLeak`] is an [`Lstep`] with that fault. No setting leads here,
//! only the crate can make one, and it cannot be saved.

use super::encode::Encoded;
use super::gather::Gathered;
use super::pairs::Pairs;
use super::{Lstep, LstepConfig, LstepState, Run, Scratch};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::event::NodeSet;
use crate::graph::{Past, Revealed, Seed};
use crate::model::{Learner, Model, StreamInfo, TrainBatch, TrainContext};
use crate::query::{Queries, Scores};
use lstep_tensor::{Parameters, Tape};

/// L-STEP that filters only the endpoints of true events.
#[derive(Clone)]
pub struct ReleasedLeak {
    honest: Lstep,
}

impl ReleasedLeak {
    /// A model with weights drawn from a seed: those that an honest one begins with.
    pub fn new(config: LstepConfig, seed: u64) -> Result<ReleasedLeak> {
        Ok(ReleasedLeak { honest: Lstep::new(config, seed)? })
    }

    /// The encoder's equations, with the stored position wherever a node is not among the `told`.
    fn encode<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
        told: &NodeSet,
    ) -> Encoded<'_> {
        let encoder = self.honest.encoder();
        let filtered = encoder.approximate(tape, gathered, state, runs);
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
        encoder.encode_at(tape, past, gathered, Some(mixed))
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

impl Model for ReleasedLeak {
    type State = LstepState;

    fn begin(&self, info: &StreamInfo) -> LstepState {
        self.honest.begin(info)
    }

    fn score(&self, past: Past<'_>, state: &LstepState, ask: &Queries) -> Result<Scores> {
        self.honest.fits(past)?;
        let told = told(ask);
        let values = self.honest.scratch.with(|Scratch { workspace, gathered, runs, .. }| {
            gathered.clear();
            let mut pairs = Pairs::default();
            for row in ask.rows() {
                for &node in row.candidates {
                    let source = self.honest.gather(gathered, past, row.seed());
                    let candidate =
                        self.honest.gather(gathered, past, Seed { node, time: row.time });
                    pairs.push(source, candidate, (row.seed(), node));
                }
            }
            let mut tape = workspace.infer(&self.honest.parameters);
            let encoded = self.encode(&mut tape, past, gathered, state, runs, &told);
            let logits =
                self.honest.encoder().predict(&mut tape, (past, gathered, state), &encoded, &pairs);
            tape.value(logits).to_vec().into_iter().map(f64::from).collect()
        });
        Scores::new(ask, values)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut LstepState, step: &[Event]) -> Result<()> {
        self.honest.observe(known, state, step)
    }
}

impl Learner for ReleasedLeak {
    fn parameters(&self) -> &Parameters {
        self.honest.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.honest.parameters_mut()
    }

    fn loss(
        &self,
        past: Past<'_>,
        state: &LstepState,
        batch: TrainBatch<'_>,
        TrainContext { dropout_key, matmul, workspace, gradients }: TrainContext<'_>,
    ) -> Result<Option<f64>> {
        self.honest.fits(past)?;
        if batch.events.is_empty() || state.positions.snapshots() == 0 {
            return Ok(None);
        }
        let told: NodeSet =
            batch.events.iter().flat_map(|event| [event.source, event.destination]).collect();
        let loss = self.honest.scratch.with(|Scratch { gathered, runs, .. }| {
            let asked = self.honest.gather_batch(gathered, past, batch);
            let mut tape =
                workspace.train(&self.honest.parameters, dropout_key).with_matmul(matmul);
            let encoded = self.encode(&mut tape, past, gathered, state, runs, &told);
            let losses = self.honest.losses_of(&mut tape, (past, gathered, state), &asked, encoded);
            let loss = f64::from(tape.scalar(losses.total));
            tape.backward(losses.total, gradients);
            loss
        });
        Ok(Some(loss))
    }

    /// # Panics
    /// Always: a leaking model in a file could be taken for an honest one.
    fn save_state<'a>(&self, _: &'a LstepState, _: &mut Checkpoint<'a>) {
        panic!(
            "a model with the released leak is never saved: the audit that trains it forgets it"
        );
    }

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<LstepState> {
        Err(Error::setting(
            "model",
            "with the released leak",
            "it is never saved: train an honest one",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::laws::{Check, Law, check_model};
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
        let leaking = |info: &StreamInfo| Ok(open(ReleasedLeak::new(small(), 1)?, info));
        let honest = |info: &StreamInfo| Ok(open(Lstep::new(small(), 1)?, info));
        let broken = check_model(&leaking, &leaking, &log, Check::default()).expect("checked");
        assert!(broken.iter().any(|breach| breach.law == Law::OtherRows), "{broken:?}");
        assert_eq!(check_model(&honest, &honest, &log, Check::default()).expect("checked"), []);
    }

    #[test]
    #[should_panic(expected = "never saved")]
    fn a_leaking_model_cannot_be_saved() {
        let info =
            StreamInfo { nodes: 2, training: (crate::event::Time::ZERO, crate::event::Time::ZERO) };
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
