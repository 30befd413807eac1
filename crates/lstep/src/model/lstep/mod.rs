//! L-STEP: learnable spatial-temporal positional encoding.
//!
//! Tieu et al., "Learnable Spatial-Temporal Positional Encoding for Link Prediction", ICML 2025.
//! Every node has a position, [d_P], at every step. Before a step its position is approximated from
//! its last L ones by a learnable filter in the frequency domain (Eqs. transform_pe, approx_pe);
//! two nodes are encoded from their recent events and the positions around them (Eqs. node_encoding
//! to temporal_rep) and a link is predicted (Eq. link_prediction); once the step is revealed,
//! positions are updated with the encoder's own layers (Eq. pe_updated) and stored.
//!
//! Every node that is looked at is filtered alike. The authors' released code filters only
//! endpoints of true events, from which a scorer can read the label; here the law "the other rows
//! of the step change no score" guards against it.
//!
//! `docs/equations.md` maps equations to functions and tests.

mod approximation;
mod attention;
mod bound;
mod config;
mod describe;
mod digest;
mod encode;
mod folded;
mod gather;
mod kind;
mod loss;
#[cfg(test)]
mod oracle;
mod pair;
mod pairs;
mod parameters;
mod position;
mod predict;
mod released_leak;

pub use bound::{FilterBound, Movement};
pub use config::{Aggregation, LstepConfig, Scope, Start, Variant};
pub use kind::{LSTEP, LSTEP_PAIR, LstepKind};
pub use pair::PairConfig;
pub use position::{Positions, Run};
pub(crate) use released_leak::ReleasedLeak;

use super::scratch::{FeatureWidths, ScratchPool};
use super::trainer::{Learner, TrainBatch, TrainContext};
use super::{Diagnostic, Model, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::NodeSet;
use crate::event::{Event, NodeId};
use crate::graph::{Meeting, Past, Revealed, Seed};
use crate::nn::spectrum::{laplacian_positions, random_walk_positions};
use crate::query::{Queries, Scores};
use approximation::Approximations;
use digest::Digests;
use encode::Forward;
use folded::{Folded, LastFolded};
use gather::Gathered;
use lstep_tensor::{Parameters, Workspace};
use pair::PairMemory;
use pairs::Pairs;
use parameters::Weights;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The model: settings and weights.
pub struct Lstep {
    config: LstepConfig,
    parameters: Parameters,
    weights: Weights,
    scratch: ScratchPool<Scratch>,
    folded: LastFolded,
}

/// What passing events leave behind.
#[derive(Debug, Clone)]
pub struct LstepState {
    positions: Positions,
    approximations: Approximations,
    digests: Digests,
    /// The nodes that have interacted.
    met: NodeSet,
    /// What is known of pairs, where the model is told about them.
    pairs: Option<PairMemory>,
}

impl LstepState {
    /// The positions of all nodes.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    fn follow(&mut self, step: &[Event], snapshot: Option<Snapshot>) {
        touched(step).iter().for_each(|node| {
            self.met.insert(node);
        });
        if let Some(Snapshot { nodes, vectors }) = snapshot {
            self.positions.push_snapshot(&nodes, &vectors);
            self.approximations.forget();
        }
        if !step.is_empty() {
            self.digests.forget();
        }
        if let Some(pairs) = &mut self.pairs {
            pairs.observe(step);
        }
    }
}

/// The positions that some nodes get after a step.
struct Snapshot {
    nodes: Vec<NodeId>,
    vectors: Vec<f32>,
}

/// The nodes of a step's events.
fn touched(step: &[Event]) -> NodeSet {
    step.iter().flat_map(|event| [event.source, event.destination]).collect()
}

/// Working memory of a call.
#[derive(Default)]
struct Scratch {
    workspace: Workspace,
    gathered: Gathered,
    /// What digests are made from.
    digesting: Gathered,
    runs: Vec<Run>,
}

/// Nodes updated at once: enough to fill the cores, few enough to stay in cache.
const AT_ONCE: usize = 2_048;

/// Pairs scored at once: few enough to stay in cache. Where there are more, threads share the
/// pieces. Questions with few candidates each have nodes in common and what has to be computed for
/// them, so more of them are taken together.
const PAIRS_AT_ONCE: usize = 512;
const CANDIDATES_AT_ONCE: usize = 256;

/// Some candidates of a question.
struct RowChunk {
    row: usize,
    candidates: Range<usize>,
}

/// All pairs asked, in order, cut into pieces to be scored at once. Scores do not depend on the
/// cuts.
fn pieces(ask: &Queries) -> Vec<Vec<RowChunk>> {
    let (mut pieces, mut piece, mut pairs) = (Vec::new(), Vec::new(), 0);
    for row in 0..ask.len() {
        let count = ask.row(row).candidates.len();
        // Parts of nearly the same size, so that threads end together.
        let parts = count.div_ceil(CANDIDATES_AT_ONCE);
        for part in 0..parts {
            let candidates = part * count / parts..(part + 1) * count / parts;
            if parts > 1 || pairs + candidates.len() > PAIRS_AT_ONCE {
                pieces.extend(Some(std::mem::take(&mut piece)).filter(|piece| !piece.is_empty()));
                pairs = 0;
            }
            pairs += candidates.len();
            piece.push(RowChunk { row, candidates });
        }
    }
    pieces.extend(Some(piece).filter(|piece| !piece.is_empty()));
    pieces
}

impl Clone for Lstep {
    fn clone(&self) -> Lstep {
        Lstep {
            config: self.config.clone(),
            parameters: self.parameters.clone(),
            weights: self.weights,
            scratch: ScratchPool::default(),
            folded: LastFolded::default(),
        }
    }
}

impl Lstep {
    /// A model with weights drawn from a seed.
    pub fn new(config: LstepConfig, seed: u64) -> Result<Lstep> {
        config.check()?;
        let mut parameters = Parameters::new(seed);
        let weights = Weights::add(&mut parameters, &config);
        Ok(Lstep {
            config,
            parameters,
            weights,
            scratch: ScratchPool::default(),
            folded: LastFolded::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &LstepConfig {
        &self.config
    }

    fn encoder(&self) -> Forward<'_> {
        Forward {
            config: &self.config,
            weights: &self.weights,
            version: self.parameters.version(),
            folded: None,
        }
    }

    /// The layers that scoring takes together, for features as wide as those of the past.
    fn folded(&self, past: Past<'_>) -> Arc<Folded> {
        let width = past.node_feature_width();
        let make = || Folded::new(&self.config, &self.parameters, &self.weights, width);
        self.folded.get((self.parameters.version(), width), make)
    }

    /// The seed's number among those gathered; its meetings are looked up if it is new.
    fn gather(&self, gathered: &mut Gathered, past: Past<'_>, seed: Seed) -> u32 {
        let (number, new) = gathered.seed(seed);
        if new {
            let recent = past.recent(seed, self.config.recent);
            gathered.meetings(recent, self.config.recent, |meeting| seed.time.since(meeting.time));
            gathered.neighbours(self.window(past, seed));
        }
        number
    }

    /// The logits of a piece's pairs.
    fn score_piece(
        &self,
        room: &mut Scratch,
        past: Past<'_>,
        state: &LstepState,
        encoder: &Forward<'_>,
        ask: &Queries,
        piece: &[RowChunk],
    ) -> Vec<f64> {
        // Taken out, so that the rest of the room can be used beside it.
        let mut gathered = std::mem::take(&mut room.gathered);
        gathered.clear();
        let (mut pairs, mut wanted) = (Pairs::default(), Vec::new());
        for RowChunk { row, candidates } in piece {
            let asked = ask.row(*row);
            let mut number = |node| {
                let seed = Seed { node, time: asked.time };
                self.gather_to_score(&mut gathered, &mut wanted, past, seed)
            };
            let source = number(asked.source);
            for &candidate in &asked.candidates[candidates.clone()] {
                pairs.push(source, number(candidate), (asked.seed(), candidate));
            }
        }
        let digested = self.sums_events().then(|| self.digests(room, past, state, &wanted));
        let mut tape = room.workspace.infer(&self.parameters);
        let encoded = match &digested {
            Some(digested) => encoder.encode_digests(&mut tape, past, &gathered, digested),
            None => encoder.encode(&mut tape, past, &gathered, state, &mut room.runs),
        };
        let logits = encoder.predict(&mut tape, (past, &gathered, state), &encoded, &pairs);
        let logits = tape.value(logits).iter_rows().map(|logit| f64::from(logit[0])).collect();
        room.gathered = gathered;
        logits
    }

    /// Whether the K events of a seed enter as sums, so that a digest can stand for them.
    fn sums_events(&self) -> bool {
        self.config.aggregation == Aggregation::Mlp
    }

    /// The seed's number among those gathered; what is needed to score is looked up if it is new.
    fn gather_to_score<'p>(
        &self,
        gathered: &mut Gathered,
        wanted: &mut Vec<(Seed, &'p [Meeting])>,
        past: Past<'p>,
        seed: Seed,
    ) -> u32 {
        if !self.sums_events() {
            return self.gather(gathered, past, seed);
        }
        let (number, new) = gathered.seed(seed);
        if new {
            wanted.push((seed, past.recent(seed, self.config.recent)));
            gathered.neighbours(self.window(past, seed));
        }
        number
    }

    /// The meetings of Eq. node_encoding, which nobody needs where nodes have no features.
    fn window<'p>(&self, past: Past<'p>, seed: Seed) -> &'p [Meeting] {
        if past.node_feature_width() > 0 { past.within(seed, self.config.gap) } else { &[] }
    }

    fn fits(&self, past: Past<'_>) -> Result<()> {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }.check(past)
    }

    /// Positions of the first step's nodes, from the graph of its events.
    fn initial(&self, nodes: &[NodeId], step: &[Event]) -> Vec<f32> {
        let place =
            |node: NodeId| nodes.binary_search(&node).expect("every node of the step") as u32;
        let edges: Vec<(u32, u32)> =
            step.iter().map(|event| (place(event.source), place(event.destination))).collect();
        match self.config.start {
            Start::Laplacian => {
                laplacian_positions(nodes.len(), &edges, self.config.position_width)
            }
            Start::RandomWalk => {
                random_walk_positions(nodes.len(), &edges, self.config.position_width)
            }
            Start::Zeros => vec![0.0; nodes.len() * self.config.position_width],
        }
    }

    /// What a step changes: the first one gives positions to its nodes, a later one updates them.
    /// Nothing if the step is empty or the variant has no positions.
    fn snapshot(
        &self,
        known: Revealed<'_>,
        state: &LstepState,
        step: &[Event],
    ) -> Option<Snapshot> {
        let &now = step.last()?;
        if self.config.variant == Variant::NoPosition {
            return None;
        }
        let touched = touched(step);
        let first = state.positions.snapshots() == 0;
        let nodes: Vec<NodeId> = match self.config.scope {
            Scope::All if !first => state
                .met
                .iter()
                .chain(touched.iter().filter(|&node| !state.met.contains(node)))
                .collect(),
            _ => touched.iter().collect(),
        };
        if first {
            let vectors = self.initial(&nodes, step);
            return Some(Snapshot { nodes, vectors });
        }
        let mut vectors = Vec::with_capacity(nodes.len() * self.config.position_width);
        self.scratch.with(|room| {
            for some in nodes.chunks(AT_ONCE) {
                self.updated(room, known, state, now, some, &mut vectors);
            }
        });
        Some(Snapshot { nodes, vectors })
    }

    /// Eq. pe_updated for some nodes at the time of the step's last event, appended to `vectors`.
    fn updated(
        &self,
        room: &mut Scratch,
        known: Revealed<'_>,
        state: &LstepState,
        now: Event,
        nodes: &[NodeId],
        vectors: &mut Vec<f32>,
    ) {
        let Scratch { workspace, gathered, runs, .. } = room;
        gathered.clear();
        for &node in nodes {
            gathered.seed(Seed { node, time: now.time });
            let latest = known.latest(node, self.config.recent);
            gathered.meetings(latest, self.config.recent, |meeting| now.time.since(meeting.time));
            gathered.neighbours(&[]);
        }
        let mut tape = workspace.infer(&self.parameters);
        let approximate = self.encoder().approximate(&mut tape, gathered, state, runs);
        let updated = self.encoder().updated(&mut tape, gathered, approximate);
        tape.value(updated).iter_rows().for_each(|vector| vectors.extend_from_slice(vector));
    }
}

impl Model for Lstep {
    type State = LstepState;

    fn begin(&self, info: &StreamInfo) -> LstepState {
        let positions = Positions::new(self.config.position_width, self.config.snapshots);
        let pairs = self.config.pair.as_ref().map(|pair| PairMemory::new(pair, info));
        LstepState {
            positions,
            approximations: Approximations::default(),
            digests: Digests::default(),
            met: NodeSet::default(),
            pairs,
        }
    }

    /// Logits, whose order is that of the probabilities and which never saturate.
    fn score(&self, past: Past<'_>, state: &LstepState, ask: &Queries) -> Result<Scores> {
        self.fits(past)?;
        let folded = self.folded(past);
        let encoder = Forward { folded: Some(&folded), ..self.encoder() };
        let pieces = pieces(ask);
        let score = |piece: &Vec<RowChunk>| {
            self.scratch.with(|room| self.score_piece(room, past, state, &encoder, ask, piece))
        };
        let values: Vec<Vec<f64>> = lstep_tensor::awake(|| pieces.par_iter().map(score).collect());
        let values = values.concat();
        Scores::new(ask, values)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut LstepState, step: &[Event]) -> Result<()> {
        let snapshot = self.snapshot(known, state, step);
        state.follow(step, snapshot);
        Ok(())
    }

    fn describe(&self, state: &LstepState) -> Vec<Diagnostic> {
        self.diagnostics(state)
    }
}

impl Learner for Lstep {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn loss(
        &self,
        past: Past<'_>,
        state: &LstepState,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<Option<f64>> {
        self.loss_beside(past, state, batch, context, || ()).map(|(loss, ())| loss)
    }

    /// Gradients and new positions both follow from the approximate positions, not from each other.
    fn loss_and_observe(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &mut LstepState,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<Option<f64>> {
        let snapshot = || self.snapshot(known, state, batch.events);
        let (loss, snapshot) = self.loss_beside(past, state, batch, context, snapshot)?;
        state.follow(batch.events, snapshot);
        Ok(loss)
    }

    fn save_state<'a>(&self, state: &'a LstepState, checkpoint: &mut Checkpoint<'a>) {
        state.positions.save(checkpoint);
        let met: Vec<u32> = state.met.iter().map(|node| node.0).collect();
        checkpoint.push_u32("state.met", met);
        if let Some(pairs) = &state.pairs {
            pairs.save(checkpoint);
        }
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<LstepState> {
        let mut state = self.begin(info);
        state.positions.load(checkpoint)?;
        state.met = checkpoint.u32("state.met")?.iter().map(|&node| NodeId(node)).collect();
        if let Some(pairs) = &mut state.pairs {
            pairs.load(checkpoint)?;
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    /// Scores by going over each seed's events, with the layers apart or multiplied together.
    pub fn over_events(
        model: &Lstep,
        past: Past<'_>,
        state: &LstepState,
        ask: &Queries,
        folded: Option<&Folded>,
    ) -> Vec<f64> {
        let (mut gathered, mut pairs) = (Gathered::default(), Pairs::default());
        gathered.clear();
        for row in ask.rows() {
            let mut number =
                |node| model.gather(&mut gathered, past, Seed { node, time: row.time });
            let source = number(row.source);
            for &candidate in row.candidates {
                pairs.push(source, number(candidate), (row.seed(), candidate));
            }
        }
        let encoder = Forward { folded, ..model.encoder() };
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&model.parameters);
        let encoded = encoder.encode(&mut tape, past, &gathered, state, &mut Vec::new());
        let logits = encoder.predict(&mut tape, (past, &gathered, state), &encoded, &pairs);
        tape.value(logits).iter_rows().map(|logit| f64::from(logit[0])).collect()
    }

    #[test]
    fn pieces_are_all_pairs_in_order_and_long_questions_are_cut_evenly() {
        let counts = [1, 0, 600, 2, 256, 257, 3, 255, 250, 300];
        let mut ask = Queries::new();
        for count in counts {
            ask.push(NodeId(0), Time::ZERO, (0..count).map(NodeId));
        }
        let pieces = pieces(&ask);
        let pairs =
            |piece: &Vec<RowChunk>| piece.iter().map(|part| part.candidates.len()).sum::<usize>();
        assert_eq!(
            pieces.iter().map(pairs).collect::<Vec<_>>(),
            [1, 200, 200, 458, 128, 387, 250, 150, 150]
        );
        let all = pieces
            .iter()
            .flatten()
            .flat_map(|part| part.candidates.clone().map(|place| (part.row, place)));
        let asked = (0..counts.len())
            .flat_map(|row| (0..counts[row] as usize).map(move |place| (row, place)));
        assert!(all.eq(asked));
    }
}
