//! What training minimises: a loss over the logits of events and of their negatives.

use super::encoder::LossBatch;
use lstep_tensor::{Tape, Var};

/// A loss over the pairs of a batch, as a mean over its events, so that pieces of a batch can be
/// added up.
pub trait Objective: Clone + Send + Sync + 'static {
    /// The loss, a scalar on the tape. `logits` is [pairs, 1].
    fn loss(&self, tape: &mut Tape<'_>, logits: Var, batch: LossBatch<'_>) -> Var;
}

/// Binary cross-entropy, the mean over all pairs: what the field's systems minimise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bce;

impl Objective for Bce {
    fn loss(&self, tape: &mut Tape<'_>, logits: Var, batch: LossBatch<'_>) -> Var {
        let labels = tape.input(batch.pairs.len(), 1, |labels| {
            (0..batch.positives).for_each(|event| labels[batch.positive(event)] = 1.0);
        });
        tape.cross_entropy(logits, labels)
    }
}

/// Bayesian personalised ranking (Rendle et al., UAI 2009): the mean of -log sigmoid(s - n) over
/// every event, score s, and each of its negatives, score n.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bpr;

impl Objective for Bpr {
    fn loss(&self, tape: &mut Tape<'_>, logits: Var, batch: LossBatch<'_>) -> Var {
        let negatives: Vec<(usize, usize)> = (0..batch.positives)
            .flat_map(|event| batch.negatives(event).map(move |place| (event, place)))
            .collect();
        let chosen = negatives.iter().map(|(event, _)| batch.positive(*event) as u32);
        let positive = tape.indices(chosen);
        let positive = tape.gather(logits, positive);
        let negative = tape.indices(negatives.iter().map(|(_, place)| *place as u32));
        let negative = tape.gather(logits, negative);
        let margin = tape.sub(positive, negative);
        let labels = tape.input(negatives.len(), 1, |labels| labels.fill(1.0));
        tape.cross_entropy(margin, labels)
    }
}
