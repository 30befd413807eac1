//! L-STEP: learnable spatial-temporal positional encoding.
//!
//! Tieu et al., "Learnable Spatial-Temporal Positional Encoding for Link Prediction", ICML 2025. Every node has a position,
//! [d_P], at every step. Before a step its position is approximated from its last L ones by a learnable filter in the frequency
//! domain (Eqs. transform_pe, approx_pe); two nodes are encoded from their recent events and the positions around them
//! (Eqs. node_encoding to temporal_rep) and a link is predicted (Eq. link_prediction); once the step is revealed, positions
//! are updated with the encoder's own layers (Eq. pe_updated) and stored.
//!
//! Every node that is looked at is filtered alike. The authors' released code filters only endpoints of true events, from which
//! a scorer can read the label; here the law "the other rows of the step change no score" guards against it.
//!
//! `docs/equations.md` maps equations to functions and tests.

mod approximation;
mod attention;
mod bound;
mod config;
mod describe;
mod encode;
mod folded;
mod gather;
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
pub use pair::PairConfig;
pub use position::{Positions, Run};
pub(crate) use released_leak::ReleasedLeak;

use super::learn::{Learner, Lesson};
use super::room::{FeatureWidths, Rooms};
use super::{Exhibit, Facts, Model};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::nn::spectrum::{laplacian_positions, random_walk_positions};
use crate::protocol::{NodeSet, Queries, Scores};
use approximation::Approximations;
use encode::Encoder;
use folded::{Folded, LastFolded};
use gather::Gathered;
use lstep_tensor::{Draw, Gradients, Parameters, Tape, Workspace};
use pair::PairMemory;
use pairs::Pairs;
use parameters::Weights;
use std::sync::Arc;

/// The model: settings and weights.
pub struct Lstep {
    config: LstepConfig,
    parameters: Parameters,
    weights: Weights,
    rooms: Rooms<Room>,
    folded: LastFolded,
}

/// What passing events leave behind.
#[derive(Debug, Clone)]
pub struct LstepState {
    positions: Positions,
    approximations: Approximations,
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
struct Room {
    workspace: Workspace,
    gathered: Gathered,
    runs: Vec<Run>,
}

/// Seeds encoded at once when scoring, and nodes updated at once: enough to fill the cores, few enough to stay in cache.
const AT_ONCE: usize = 2_048;

impl Clone for Lstep {
    fn clone(&self) -> Lstep {
        Lstep {
            config: self.config.clone(),
            parameters: self.parameters.clone(),
            weights: self.weights,
            rooms: Rooms::default(),
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
        Ok(Lstep { config, parameters, weights, rooms: Rooms::default(), folded: LastFolded::default() })
    }

    /// The settings.
    pub fn config(&self) -> &LstepConfig {
        &self.config
    }

    fn encoder(&self) -> Encoder<'_> {
        Encoder { config: &self.config, weights: &self.weights, version: self.parameters.version(), folded: None }
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
            let window = if past.node_feature_width() > 0 { past.within(seed, self.config.gap) } else { &[] };
            gathered.neighbours(window);
        }
        number
    }

    /// The seeds of a lesson, and nothing else, gathered.
    fn gather_lesson(&self, gathered: &mut Gathered, past: Past<'_>, lesson: Lesson<'_>) -> Asked {
        gathered.clear();
        let mut asked = Asked::default();
        for (event, &negative) in lesson.events.iter().zip(lesson.negatives) {
            let mut number = |node| self.gather(gathered, past, Seed { node, time: event.time });
            let source = number(event.source);
            asked.sources.push(source);
            asked.destinations.push(number(event.destination));
            asked.negatives.push(number(negative.destination));
            asked.negative_sources.push(if negative.source == event.source { source } else { number(negative.source) });
        }
        let seed = |node, event: &Event| Seed { node, time: event.time };
        asked.told.extend(lesson.events.iter().map(|event| (seed(event.source, event), event.destination)));
        let negatives = lesson.events.iter().zip(lesson.negatives);
        asked.told.extend(negatives.map(|(event, negative)| (seed(negative.source, event), negative.destination)));
        asked
    }

    fn fits(&self, past: Past<'_>) -> Result<()> {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }.check(past)
    }

    /// Positions of the first step's nodes, from the graph of its events.
    fn initial(&self, nodes: &[NodeId], step: &[Event]) -> Vec<f32> {
        let place = |node: NodeId| nodes.binary_search(&node).expect("every node of the step") as u32;
        let edges: Vec<(u32, u32)> = step.iter().map(|event| (place(event.source), place(event.destination))).collect();
        match self.config.start {
            Start::Laplacian => laplacian_positions(nodes.len(), &edges, self.config.position_width),
            Start::RandomWalk => random_walk_positions(nodes.len(), &edges, self.config.position_width),
            Start::Zeros => vec![0.0; nodes.len() * self.config.position_width],
        }
    }

    /// What a step changes: the first one gives positions to its nodes, a later one updates them. Nothing if the step is empty or
    /// the variant has no positions.
    fn snapshot(&self, known: Revealed<'_>, state: &LstepState, step: &[Event]) -> Option<Snapshot> {
        let &now = step.last()?;
        if self.config.variant == Variant::NoPosition {
            return None;
        }
        let touched = touched(step);
        let first = state.positions.snapshots() == 0;
        let nodes: Vec<NodeId> = match self.config.scope {
            Scope::All if !first => {
                state.met.iter().chain(touched.iter().filter(|&node| !state.met.contains(node))).collect()
            }
            _ => touched.iter().collect(),
        };
        if first {
            let vectors = self.initial(&nodes, step);
            return Some(Snapshot { nodes, vectors });
        }
        let mut vectors = Vec::with_capacity(nodes.len() * self.config.position_width);
        self.rooms.with(|room| {
            for some in nodes.chunks(AT_ONCE) {
                self.updated(room, known, state, now, some, &mut vectors);
            }
        });
        Some(Snapshot { nodes, vectors })
    }

    /// Eq. pe_updated for some nodes at the time of the step's last event, appended to `vectors`.
    fn updated(
        &self,
        room: &mut Room,
        known: Revealed<'_>,
        state: &LstepState,
        now: Event,
        nodes: &[NodeId],
        vectors: &mut Vec<f32>,
    ) {
        let Room { workspace, gathered, runs } = room;
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

    fn begin(&self, facts: &Facts) -> LstepState {
        let positions = Positions::new(self.config.position_width, self.config.snapshots);
        let pairs = self.config.pair.as_ref().map(|pair| PairMemory::new(pair, facts));
        LstepState { positions, approximations: Approximations::default(), met: NodeSet::default(), pairs }
    }

    /// Logits, whose order is that of the probabilities and which never saturate.
    fn score(&self, past: Past<'_>, state: &LstepState, ask: &Queries) -> Result<Scores> {
        self.fits(past)?;
        let folded = self.folded(past);
        let encoder = Encoder { folded: Some(&folded), ..self.encoder() };
        let mut values = Vec::with_capacity(ask.pairs());
        self.rooms.with(|room| {
            let mut row = 0;
            let mut candidate = 0;
            while row < ask.len() {
                let Room { workspace, gathered, runs } = room;
                gathered.clear();
                let mut pairs = Pairs::default();
                while row < ask.len() && gathered.seeds() < AT_ONCE {
                    let asked = ask.row(row);
                    let source = self.gather(gathered, past, asked.seed());
                    while candidate < asked.candidates.len() && gathered.seeds() < AT_ONCE {
                        let seed = Seed { node: asked.candidates[candidate], time: asked.time };
                        pairs.push(source, self.gather(gathered, past, seed), (asked.seed(), seed.node));
                        candidate += 1;
                    }
                    if candidate == asked.candidates.len() {
                        (row, candidate) = (row + 1, 0);
                    }
                }
                let mut tape = workspace.infer(&self.parameters);
                let encoded = encoder.encode(&mut tape, past, gathered, state, runs);
                let logits = encoder.predict(&mut tape, (past, gathered, state), &encoded, &pairs);
                let logits = tape.value(logits);
                values.extend((0..logits.rows()).map(|pair| f64::from(logits.row(pair)[0])));
            }
        });
        Scores::new(ask, values)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut LstepState, step: &[Event]) -> Result<()> {
        let snapshot = self.snapshot(known, state, step);
        state.follow(step, snapshot);
        Ok(())
    }

    fn describe(&self, state: &LstepState) -> Vec<Exhibit> {
        self.exhibits(state)
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
        lesson: Lesson<'_>,
        draw: Draw,
        workspace: &mut Workspace,
        gradients: &mut Gradients,
    ) -> Result<Option<f64>> {
        self.loss_beside(past, state, lesson, draw, workspace, gradients, || ()).map(|(loss, ())| loss)
    }

    /// Gradients and new positions both follow from the approximate positions, not from each other.
    fn loss_and_observe(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &mut LstepState,
        lesson: Lesson<'_>,
        draw: Draw,
        workspace: &mut Workspace,
        gradients: &mut Gradients,
    ) -> Result<Option<f64>> {
        let snapshot = || self.snapshot(known, state, lesson.events);
        let (loss, snapshot) = self.loss_beside(past, state, lesson, draw, workspace, gradients, snapshot)?;
        state.follow(lesson.events, snapshot);
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

    fn load_state(&self, facts: &Facts, checkpoint: &mut Checkpoint<'_>) -> Result<LstepState> {
        let mut state = self.begin(facts);
        state.positions.load(checkpoint)?;
        state.met = checkpoint.u32("state.met")?.iter().map(|&node| NodeId(node)).collect();
        if let Some(pairs) = &mut state.pairs {
            pairs.load(checkpoint)?;
        }
        Ok(state)
    }
}

/// Numbers of the seeds that a lesson is about.
#[derive(Default)]
struct Asked {
    sources: Vec<u32>,
    destinations: Vec<u32>,
    negatives: Vec<u32>,
    negative_sources: Vec<u32>,
    /// The pairs of all events, then of all negatives.
    told: Vec<(Seed, NodeId)>,
}

/// The three losses on the tape, and what they were made from.
#[cfg_attr(not(test), expect(dead_code, reason = "training needs the total only; the oracle compares all"))]
struct Losses<'a> {
    prediction: lstep_tensor::Var,
    position: Option<lstep_tensor::Var>,
    total: lstep_tensor::Var,
    encoded: encode::Encoded<'a>,
    logits: lstep_tensor::Var,
}

impl Lstep {
    /// Eq. loss_func: (1 - alpha_pe) L_lp + alpha_pe L_pe; without positions L_lp alone. The first step only gives the initial
    /// positions. While gradients are made, `beside` runs.
    #[expect(clippy::too_many_arguments, reason = "what a loss needs, and what runs beside it")]
    fn loss_beside<T: Send>(
        &self,
        past: Past<'_>,
        state: &LstepState,
        lesson: Lesson<'_>,
        draw: Draw,
        workspace: &mut Workspace,
        gradients: &mut Gradients,
        beside: impl FnOnce() -> T + Send,
    ) -> Result<(Option<f64>, T)> {
        self.fits(past)?;
        let first_step = self.config.variant != Variant::NoPosition && state.positions.snapshots() == 0;
        if lesson.events.is_empty() || first_step {
            return Ok((None, beside()));
        }
        Ok(self.rooms.with(|room| {
            let Room { gathered, runs, .. } = room;
            let asked = self.gather_lesson(gathered, past, lesson);
            let mut tape = workspace.train(&self.parameters, draw);
            let losses = self.losses(&mut tape, past, gathered, state, runs, &asked);
            let loss = f64::from(tape.scalar(losses.total));
            let ((), beside) = rayon::join(|| tape.backward(losses.total, gradients), beside);
            (Some(loss), beside)
        }))
    }

    /// Eqs. loss_func_lp (binary cross-entropy over true events and negatives), loss_func_pe (2-norms) and loss_func.
    fn losses<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
        asked: &Asked,
    ) -> Losses<'t> {
        let encoded = self.encoder().encode(tape, past, gathered, state, runs);
        self.losses_of(tape, (past, gathered, state), asked, encoded)
    }

    /// The same for seeds that are encoded already.
    fn losses_of<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        (past, gathered, state): (Past<'_>, &Gathered, &LstepState),
        asked: &Asked,
        encoded: encode::Encoded<'t>,
    ) -> Losses<'t> {
        let events = asked.sources.len();
        let mut pairs = Pairs::default();
        let sources = asked.sources.iter().chain(&asked.negative_sources);
        let candidates = asked.destinations.iter().chain(&asked.negatives);
        for ((&source, &candidate), &told) in sources.zip(candidates).zip(&asked.told) {
            pairs.push(source, candidate, told);
        }
        let logits = self.encoder().predict(tape, (past, gathered, state), &encoded, &pairs);
        let labels = tape.input(2 * events, 1, |labels| labels[..events].fill(1.0));
        let prediction = tape.cross_entropy(logits, labels);
        let Some(approximate) = encoded.approximate else {
            return Losses { prediction, position: None, total: prediction, encoded, logits };
        };
        let mut side = |seeds: &[u32]| {
            let rows = tape.indices(seeds.iter().map(|&seed| gathered.own[seed as usize]));
            tape.gather(approximate, rows)
        };
        let (u, v, n) = (side(&asked.sources), side(&asked.destinations), side(&asked.negatives));
        let m = if asked.sources == asked.negative_sources { u } else { side(&asked.negative_sources) };
        let (met, not_met) = (tape.row_distance(u, v), tape.row_distance(m, n));
        let (met, not_met) = (tape.mean(met), tape.mean(not_met));
        let not_met = tape.scale(not_met, self.config.alpha_neg as f32);
        let position = tape.sub(met, not_met);
        let alpha = self.config.alpha_pe as f32;
        let (a, b) = (tape.scale(prediction, 1.0 - alpha), tape.scale(position, alpha));
        let total = tape.add(a, b);
        Losses { prediction, position: Some(position), total, encoded, logits }
    }
}
