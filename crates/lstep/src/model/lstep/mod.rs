//! L-STEP: learnable spatial-temporal positional encoding.
//!
//! Tieu et al., "Learnable Spatial-Temporal Positional Encoding for Link Prediction", ICML 2025.
//! Every node has a position, [d_P], at every step. Before a step its position is approximated from
//! its last L ones by a learnable filter in the frequency domain (Eqs. transform_pe, approx_pe);
//! two nodes are encoded from their recent events and the positions around them (Eqs. node_encoding
//! to temporal_rep) and a link is predicted (Eq. link_prediction, the [`Mlp`] head); once the step
//! is revealed, positions are updated with the encoder's own layers (Eq. pe_updated) and stored.
//!
//! Every node that is looked at is filtered alike. The authors' released code filters only
//! endpoints of true events, from which a scorer can read the label; here the law "the other rows
//! of the step change no score" guards against it.
//!
//! `docs/equations.md` maps equations to functions and tests.

mod attention;
mod bound;
#[cfg(test)]
mod choices;
mod config;
mod describe;
mod digest;
mod encode;
mod fold;
mod gather;
mod kind;
mod loss;
#[cfg(test)]
mod oracle;
mod parameters;
mod position;
mod released_leak;

pub use bound::{FilterBound, Movement};
pub use config::{Aggregation, LstepConfig, Scope, Start, Stored, Untouched, Variant};
pub use kind::{LSTEP, LSTEP_PAIR, LstepKind};
pub use position::{Positions, Run};
pub(crate) use released_leak::ReleasedLeak;

use super::batch::BatchOrder;
use super::cache::NodeCache;
use super::encoder::{
    Chunk, Compare, Encoded, ForwardContext, LossBatch, Mode, NodeEncoder, ObserveScratch,
};
use super::mlp::Mlp;
use super::scratch::FeatureWidths;
use super::{Composite, Diagnostic, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId, NodeSet};
use crate::graph::{Neighbour, Past, Revealed, Seed};
use crate::nn::spectrum::{laplacian_positions, random_walk_positions};
use digest::Digests;
use encode::{EncodedSeeds, Equations};
use fold::Parts;
use gather::Gathered;
use lstep_tensor::{Parameters, Tape, Var, Workspace};
use parameters::Weights;
use std::sync::Arc;

/// L-STEP, and `lstep-pair` where the settings have features of the pair.
pub type Lstep = Composite<LstepEncoder, Mlp>;

impl Lstep {
    /// A model with weights drawn from a seed.
    pub fn new(config: LstepConfig, seed: u64) -> Result<Lstep> {
        Composite::build(seed, |parameters| {
            let encoder = LstepEncoder::new(config, parameters)?;
            let config = &encoder.config;
            let mut head = Mlp::add(parameters, config.node_width).by_role();
            if let Some(pair) = &config.pair {
                head = head.with_features(parameters, pair, config.position_width);
            }
            Ok((encoder, head))
        })
    }
}

/// The encoder: settings and weights.
#[derive(Debug, Clone)]
pub struct LstepEncoder {
    config: LstepConfig,
    weights: Weights,
}

/// Approximate positions kept at most.
const MOST_APPROXIMATIONS: usize = 1 << 16;

/// What passing events leave behind.
#[derive(Debug, Clone)]
pub struct LstepState {
    positions: Positions,
    /// p~ of the nodes that were looked at since the last snapshot. Between two snapshots it
    /// depends on the node and the weights alone, so scoring, learning and the update share it.
    approximations: NodeCache<NodeId, Arc<[f32]>>,
    digests: Digests,
    /// The nodes that have interacted.
    met: NodeSet,
}

impl LstepState {
    /// The positions of all nodes.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }
}

/// The positions that some nodes get after a step.
pub struct Snapshot {
    nodes: Vec<NodeId>,
    vectors: Vec<f32>,
}

/// The nodes of a step's events.
fn touched(step: &[Event]) -> NodeSet {
    step.iter().flat_map(|event| [event.source, event.destination]).collect()
}

/// Working memory of a call.
#[derive(Default)]
pub struct LstepScratch {
    gathered: Gathered,
    /// What digests are made from.
    digesting: Gathered,
    /// The memory of the tape that digests are made with.
    workspace: Workspace,
    runs: Vec<Run>,
}

/// Nodes updated at once: enough to fill the cores, few enough to stay in cache.
const AT_ONCE: usize = 2_048;

impl LstepEncoder {
    /// The encoder with weights added to the parameters.
    pub fn new(config: LstepConfig, parameters: &mut Parameters) -> Result<LstepEncoder> {
        config.check()?;
        let weights = Weights::add(parameters, &config);
        Ok(LstepEncoder { config, weights })
    }

    /// The settings.
    pub fn config(&self) -> &LstepConfig {
        &self.config
    }

    fn equations(&self, parameters: &Parameters, fold: bool) -> Equations<'_> {
        let version = parameters.version();
        Equations { config: &self.config, weights: &self.weights, version, fold }
    }

    /// Looks up the recent events and the window of every seed.
    fn gather(&self, gathered: &mut Gathered, past: Past<'_>, seeds: &[Seed]) {
        gathered.clear();
        for &seed in seeds {
            gathered.seed(seed);
            gathered.recent(
                past.recent(seed, self.config.recent),
                self.config.recent,
                |neighbour| seed.time().since(neighbour.time()),
            );
            gathered.window(self.window(past, seed));
        }
    }

    /// Encodes seeds by going over each one's events.
    fn encode_events<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        state: &'t LstepState,
        equations: Equations<'_>,
        seeds: &[Seed],
        LstepScratch { gathered, runs, .. }: &mut LstepScratch,
    ) -> EncodedSeeds {
        self.gather(gathered, past, seeds);
        equations.encode(tape, past, gathered, state, runs)
    }

    /// Whether the K events of a seed enter as sums, so that a digest can stand for them.
    fn sums_events(&self) -> bool {
        self.config.aggregation == Aggregation::Mlp
    }

    /// The neighbours of Eq. node_encoding, which nobody needs where nodes have no features.
    fn window<'p>(&self, past: Past<'p>, seed: Seed) -> &'p [Neighbour] {
        if past.node_feature_width() > 0 { past.within(seed, self.config.gap) } else { &[] }
    }

    /// Positions of the first step's nodes, from the graph of its events.
    ///
    /// The graph's nodes are in the order in which the step names them. In the order of their
    /// numbers, signs and the bases of repeated eigenvalues would depend on the numbering.
    fn initial(&self, nodes: &[NodeId], step: &[Event]) -> Vec<f32> {
        let mut places = vec![u32::MAX; nodes.len()];
        let mut named = 0;
        let mut place = |node: NodeId| {
            let at = nodes.binary_search(&node).expect("every node of the step");
            if places[at] == u32::MAX {
                places[at] = named;
                named += 1;
            }
            places[at]
        };
        let edges: Vec<(u32, u32)> =
            step.iter().map(|event| (place(event.source), place(event.destination))).collect();
        let width = self.config.position_width;
        let by_place = self.initial_by_place(nodes.len(), &edges);
        places.iter().flat_map(|&at| &by_place[at as usize * width..][..width]).copied().collect()
    }

    fn initial_by_place(&self, nodes: usize, edges: &[(u32, u32)]) -> Vec<f32> {
        match self.config.start {
            Start::Laplacian => laplacian_positions(nodes, edges, self.config.position_width),
            Start::RandomWalk => random_walk_positions(nodes, edges, self.config.position_width),
            Start::Zeros => vec![0.0; nodes * self.config.position_width],
        }
    }

    /// Eq. pe_updated for some nodes at the time of the step's last event, appended to `vectors`.
    fn updated(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &LstepState,
        (now, nodes): (Event, &[NodeId]),
        scratch: &mut ObserveScratch<LstepScratch>,
        vectors: &mut Vec<f32>,
    ) {
        let ObserveScratch { workspace, lists: LstepScratch { gathered, runs, .. }, .. } = scratch;
        gathered.clear();
        for &node in nodes {
            gathered.seed(Seed::new(node, now.time));
            let latest = known.latest(node, self.config.recent);
            gathered
                .recent(latest, self.config.recent, |neighbour| now.time.since(neighbour.time()));
            gathered.window(&[]);
        }
        let mut tape = workspace.infer(parameters);
        let equations = self.equations(parameters, false);
        let approximate = equations.approximate(&mut tape, gathered, state, runs);
        let updated = equations.updated(&mut tape, gathered, approximate);
        tape.value(updated).iter_rows().for_each(|vector| vectors.extend_from_slice(vector));
    }
}

/// A number in steps of 2^-40. Sums of them do not depend on the order, as sums of `f64` do.
fn fixed(x: f32) -> i128 {
    (f64::from(x) * (1u64 << 40) as f64) as i128
}

impl LstepEncoder {
    /// Brings the new positions of a step to the form in which they are stored.
    fn bring_to_form(&self, vectors: &mut [f32]) {
        let width = self.config.position_width;
        if self.config.stored == Stored::AsIs {
            return;
        }
        if self.config.stored == Stored::Centred {
            let mut sums = vec![0i128; width];
            for vector in vectors.chunks_exact(width) {
                sums.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += fixed(x));
            }
            let share = 1.0 / ((1u64 << 40) as f64 * (vectors.len() / width) as f64);
            for vector in vectors.chunks_exact_mut(width) {
                let both = vector.iter_mut().zip(&sums);
                both.for_each(|(x, &sum)| *x = (f64::from(*x) - sum as f64 * share) as f32);
            }
        }
        for vector in vectors.chunks_exact_mut(width) {
            let squares: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let size = (squares / width as f64).sqrt();
            // What rounding left of nothing is nothing.
            let factor = if size > 1e-6 { 1.0 / size } else { 0.0 };
            vector.iter_mut().for_each(|x| *x = (f64::from(*x) * factor) as f32);
        }
    }
}

/// What a call encodes, as heads take it.
fn handed_over(encoded: EncodedSeeds, gathered: &Gathered) -> Encoded {
    let EncodedSeeds { approximate, by_seed, hidden } = encoded;
    let compare = approximate
        .map(|vectors| Compare { vectors, rows: (!by_seed).then(|| gathered.own.clone()) });
    Encoded { hidden: Some(hidden), compare, ..Encoded::default() }
}

impl NodeEncoder for LstepEncoder {
    type State = LstepState;
    type Scratch = LstepScratch;
    type Ahead = Option<Snapshot>;

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    /// A training batch is taken whole, since its nodes' positions are filtered once for all.
    fn chunk(&self, mode: Mode) -> Chunk {
        match mode {
            Mode::Train => Chunk { seeds: usize::MAX, pairs: usize::MAX },
            Mode::Score => Chunk { seeds: usize::MAX, pairs: 256 },
        }
    }

    fn order(&self) -> BatchOrder {
        BatchOrder::PositivesFirst
    }

    fn init(&self, _: &StreamInfo) -> LstepState {
        LstepState {
            positions: Positions::new(self.config.position_width, self.config.snapshots)
                .lasting(self.config.untouched != Untouched::Zero),
            approximations: NodeCache::new(MOST_APPROXIMATIONS),
            digests: digest::empty(),
            met: NodeSet::default(),
        }
    }

    /// The first step only gives the initial positions.
    fn is_ready(&self, state: &LstepState) -> bool {
        self.config.variant == Variant::NoPosition || state.positions.snapshots() > 0
    }

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t LstepState,
        seeds: &[Seed],
        scratch: &mut LstepScratch,
    ) -> Encoded {
        let equations = self.equations(context.parameters, context.folds());
        let past = context.past;
        let encoded = if context.tape.is_training() || !self.sums_events() {
            self.encode_events(context.tape, past, state, equations, seeds, scratch)
        } else {
            let digested = self.digests(context.parameters, past, state, seeds, scratch);
            equations.encode_digests(context.tape, past, &scratch.gathered, &digested)
        };
        handed_over(encoded, &scratch.gathered)
    }

    fn folds(&self) -> bool {
        true
    }

    fn fold(&self, tape: &mut Tape<'_>, past: Past<'_>, weight: Var) -> (Var, Var) {
        let parts = Parts::new(&self.config, past.node_feature_width());
        fold::fold(tape, &self.config, &self.weights, &parts, weight)
    }

    fn total_loss(
        &self,
        tape: &mut Tape<'_>,
        prediction: Var,
        encoded: &Encoded,
        batch: LossBatch<'_>,
        scratch: &LstepScratch,
    ) -> Var {
        match self.positional_loss(tape, encoded, batch, scratch) {
            Some(position) => self.weighted(tape, prediction, position),
            None => prediction,
        }
    }

    /// What a step changes: the first one gives positions to its nodes, a later one updates them.
    /// Nothing if the step is empty or the variant has no positions.
    fn ahead(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &LstepState,
        step: &[Event],
        scratch: &mut ObserveScratch<LstepScratch>,
    ) -> Option<Snapshot> {
        let &now = step.last()?;
        if self.config.variant == Variant::NoPosition {
            return None;
        }
        let touched = touched(step);
        let first = state.positions.snapshots() == 0;
        let mut nodes: Vec<NodeId> = match self.config.scope {
            Scope::All if !first => state
                .met
                .iter()
                .chain(touched.iter().filter(|&node| !state.met.contains(node)))
                .collect(),
            _ => touched.iter().collect(),
        };
        if first {
            let mut vectors = self.initial(&nodes, step);
            self.bring_to_form(&mut vectors);
            return Some(Snapshot { nodes, vectors });
        }
        let mut vectors = Vec::with_capacity(nodes.len() * self.config.position_width);
        for some in nodes.chunks(AT_ONCE) {
            self.updated(parameters, known, state, (now, some), scratch, &mut vectors);
        }
        if self.config.untouched == Untouched::Approximate {
            let updated: NodeSet = nodes.iter().copied().collect();
            let others: Vec<NodeId> = state.met.iter().filter(|&n| !updated.contains(n)).collect();
            vectors.extend(self.approximate_positions(parameters, state, &others));
            nodes.extend(others);
        }
        self.bring_to_form(&mut vectors);
        Some(Snapshot { nodes, vectors })
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        state: &mut LstepState,
        step: &[Event],
        snapshot: Option<Snapshot>,
        _: &mut ObserveScratch<LstepScratch>,
    ) {
        touched(step).iter().for_each(|node| {
            state.met.insert(node);
        });
        if let Some(Snapshot { nodes, vectors }) = snapshot {
            state.positions.push_snapshot(&nodes, &vectors);
            state.approximations.clear();
        }
        if !step.is_empty() {
            state.digests.clear();
        }
    }

    fn save_state<'a>(&self, state: &'a LstepState, checkpoint: &mut Checkpoint<'a>) {
        state.positions.save(checkpoint);
        let met: Vec<u32> = state.met.iter().map(|node| node.0).collect();
        checkpoint.push_u32("state.met", met);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<LstepState> {
        let mut state = self.init(info);
        state.positions.load(checkpoint)?;
        state.met = checkpoint.nodes("state.met")?.into_iter().collect();
        Ok(state)
    }

    fn describe(&self, parameters: &Parameters, state: &LstepState) -> Vec<Diagnostic> {
        self.diagnostics(parameters, state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::composite::{CompositeState, pairs_of};
    use super::super::encoder::PairHead;
    use super::super::{Learner, PairBatch};
    use super::*;
    use crate::query::Queries;

    /// A way to score that digests and folded layers are compared with.
    #[derive(Clone, Copy, PartialEq)]
    pub enum Way {
        /// Over the events, with the layers apart.
        Events,
        /// Over the events, with the layers multiplied together.
        EventsFolded,
    }

    /// Scores without digests.
    pub fn scores_by(
        model: &Lstep,
        past: Past<'_>,
        state: &CompositeState<LstepEncoder, Mlp>,
        ask: &Queries,
        way: Way,
    ) -> Vec<f64> {
        let (encoder, head, parameters) = (model.encoder(), model.head(), model.parameters());
        let fold = way == Way::EventsFolded;
        let prepared = head.prepare(encoder, parameters, past);
        let mut pairs = PairBatch::default();
        pairs_of(ask).for_each(|(source, candidate)| pairs.push(source, candidate));
        let mut scratch = LstepScratch::default();
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(parameters);
        let equations = encoder.equations(parameters, fold);
        let encoded = encoder.encode_events(
            &mut tape,
            past,
            &state.encoder,
            equations,
            pairs.seeds(),
            &mut scratch,
        );
        let encoded = handed_over(encoded, &scratch.gathered);
        let first_layer = prepared.as_ref().filter(|_| fold);
        let mut context = ForwardContext { tape: &mut tape, past, parameters, key: 0, first_layer };
        let logits = PairHead::<LstepEncoder>::logits(
            head,
            &mut context,
            &state.head,
            &encoded,
            &pairs,
            fold.then_some(&prepared),
            &mut (),
        );
        tape.value(logits).iter_rows().map(|logit| f64::from(logit[0])).collect()
    }
}
