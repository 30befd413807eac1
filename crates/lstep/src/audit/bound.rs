//! The paper's theorem on a trained model: how far approximate positions really moved, beside the
//! bound from the filter.
//!
//! The model goes on from the end of training through validation and test. At every step the move
//! of p~ is measured for each node that has a position, and compared with the theorem's bound and
//! with the one that needs no slow change (`model/lstep/bound.rs`).

use crate::error::{Error, Result};
use crate::event::NodeId;
use crate::model::{FilterBound, Learner, Lstep, LstepConfig, Model, Variant};
use crate::training::RunFolder;
use crate::training::TrainedRun;
use serde::Serialize;

/// The theorem on one run.
#[derive(Debug, Clone, Serialize)]
pub struct BoundReport {
    /// The dataset's name.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// What the filter says.
    pub filter: FilterBound,
    /// Steps of validation and test over which moves were measured.
    pub steps: usize,
    /// Moves measured: nodes times the steps at which they had a position.
    pub moves: usize,
    /// Moves above the theorem's bound.
    pub above_bound: usize,
    /// The median over all moves of how far stored positions went, relative to their length: what
    /// "slowly changing" means here.
    pub median_share: f64,
    /// One entry for each node, the busiest first.
    pub nodes: Vec<NodeBound>,
}

/// The theorem on one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeBound {
    /// The node as the file names it.
    pub node: String,
    /// Its events in the whole stream.
    pub events: usize,
    /// Steps over which its moves were measured.
    pub steps: usize,
    /// Its largest move.
    pub largest_move: f64,
    /// Its mean move.
    pub mean_move: f64,
    /// The theorem's bound at its largest move.
    pub bound: f64,
    /// The bound from the kernel and the stored positions' own steps, at its largest move.
    pub direct_bound: f64,
    /// Whether no move of it is above the theorem's bound.
    pub holds: bool,
}

/// Measures the moves of at most `most` nodes, taken evenly from the busiest to the least busy.
/// `watch` gets steps done, of how many.
pub fn bound(folder: &RunFolder, most: usize, watch: &dyn Fn(u64, u64)) -> Result<BoundReport> {
    let trained = TrainedRun::open(folder)?;
    let (model, mut state) = open(&trained)?;
    let filter = FilterBound::of(&model);
    let log = &trained.stream().log;
    let nodes = sample(&trained, most);
    let mut tallies = vec![Extremes::default(); nodes.len()];
    let mut shares = Vec::new();
    let mut of = 0;
    trained.steps_after_training(|_, _| {
        of += 1;
        Ok(())
    })?;
    let mut steps = 0;
    trained.steps_after_training(|end, events| {
        let before = state.clone();
        model.observe(log.revealed(end), &mut state, events)?;
        let placed: Vec<usize> = (0..nodes.len())
            .filter(|&place| before.encoder().positions().latest(nodes[place].0).is_some())
            .collect();
        let some: Vec<NodeId> = placed.iter().map(|&place| nodes[place].0).collect();
        for (&place, movement) in
            placed.iter().zip(filter.movements(&model, before.encoder(), state.encoder(), &some))
        {
            tallies[place].take(movement.moved, movement.bound, movement.direct);
            shares.push(share(
                before.encoder().positions().latest(nodes[place].0).expect("placed"),
                state.encoder().positions().latest(nodes[place].0).expect("placed before"),
            ));
        }
        steps += 1;
        watch(steps as u64, of);
        Ok(())
    })?;
    shares.sort_unstable_by(f32::total_cmp);
    let rows = nodes.iter().zip(&tallies).filter(|(_, tally)| tally.steps > 0);
    Ok(BoundReport {
        dataset: trained.stream().name.clone(),
        model: trained.config().model.to_string(),
        filter,
        steps,
        moves: shares.len(),
        above_bound: tallies.iter().map(|tally| tally.above).sum(),
        median_share: shares.get(shares.len() / 2).copied().map_or(0.0, f64::from),
        nodes: rows.map(|((node, events), tally)| tally.row(&trained, *node, *events)).collect(),
    })
}

/// The model itself, not as any model: the theorem speaks of its weights.
fn open(trained: &TrainedRun) -> Result<(Lstep, <Lstep as Model>::State)> {
    let config = &trained.config().model;
    let Some(settings) =
        config.settings::<LstepConfig>().filter(|settings| settings.variant != Variant::NoPosition)
    else {
        return Err(Error::setting(
            "model",
            config,
            "the theorem is about L-STEP's positions: name a run that has them",
        ));
    };
    let mut model = Lstep::new(settings.clone(), 0)?;
    let mut checkpoint = trained.checkpoint()?;
    let names: Vec<String> =
        model.parameters().iter().map(|parameter| parameter.name.to_string()).collect();
    let asked = if trained.config().train.ema > 0.0 { "average" } else { "weight" };
    for name in &names {
        model.parameters_mut().load(name, checkpoint.f32(&format!("{asked}.{name}"))?)?;
    }
    let state = model.load_state(trained.info(), &mut checkpoint)?;
    Ok((model, state))
}

/// Some nodes with their number of events, the busiest first.
fn sample(trained: &TrainedRun, most: usize) -> Vec<(NodeId, usize)> {
    let counts = trained.stream().log.events().participation();
    let nodes = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
    let mut nodes: Vec<(NodeId, usize)> =
        nodes.map(|(node, count)| (NodeId(node as u32), count as usize)).collect();
    nodes.sort_by_key(|&(node, count)| (std::cmp::Reverse(count), node));
    let every = nodes.len().div_ceil(most.max(1)).max(1);
    nodes.into_iter().step_by(every).collect()
}

/// How far a stored position went, as a share of its length before.
fn share(before: &[f32], after: &[f32]) -> f32 {
    let length = before.iter().map(|x| x * x).sum::<f32>().sqrt();
    let went = before.iter().zip(after).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
    if length > 0.0 { went / length } else { 0.0 }
}

#[derive(Debug, Clone, Copy, Default)]
struct Extremes {
    steps: usize,
    sum: f64,
    largest: f64,
    bound: f64,
    direct: f64,
    above: usize,
}

impl Extremes {
    fn take(&mut self, moved: f64, bound: f64, direct: f64) {
        if self.steps == 0 || moved > self.largest {
            (self.largest, self.bound, self.direct) = (moved, bound, direct);
        }
        self.steps += 1;
        self.sum += moved;
        self.above += usize::from(moved > bound);
    }

    fn row(&self, trained: &TrainedRun, node: NodeId, events: usize) -> NodeBound {
        NodeBound {
            node: trained.stream().names.name(node).to_string(),
            events,
            steps: self.steps,
            largest_move: self.largest,
            mean_move: self.sum / self.steps as f64,
            bound: self.bound,
            direct_bound: self.direct,
            holds: self.above == 0,
        }
    }
}
