//! What training minimises: a loss over the logits of events and of their negatives.

use super::encoder::LossBatch;
use lstep_tensor::{Tape, Var};
use serde::{Deserialize, Serialize};

/// A loss over the pairs of a batch, as a mean, so that pieces of a batch can be added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Binary cross-entropy, the mean over all pairs: what the field's systems minimise.
    #[default]
    Bce,
    /// Bayesian personalised ranking (Rendle et al., UAI 2009): the mean of -log sigmoid(s - n) over
    /// every event, score s, and each of its negatives, score n.
    Bpr,
    /// Cross-entropy of the softmax over an event and its negatives: the event is to come first
    /// among them. What is equal for all candidates of a source, such as how active the source is,
    /// cancels.
    Softmax,
    /// The mean of -log sigmoid(s - n) over every event and the negatives of all events of the
    /// piece: scores of different sources become comparable, as AUC asks.
    AllPairs,
}

impl Loss {
    /// Whether an event may only be compared with negatives of its own source.
    pub fn compares_in_rows(self) -> bool {
        matches!(self, Loss::Bpr | Loss::Softmax)
    }

    /// The loss, a scalar on the tape. `logits` is [pairs, 1].
    pub fn of(self, tape: &mut Tape<'_>, logits: Var, batch: LossBatch<'_>) -> Var {
        let events = 0..batch.positives;
        match self {
            Loss::Bce => {
                let labels = tape.input(batch.pairs.len(), 1, |labels| {
                    events.for_each(|event| labels[batch.positive(event)] = 1.0);
                });
                tape.cross_entropy(logits, labels)
            }
            Loss::Softmax => {
                let rows = events.flat_map(|event| {
                    std::iter::once(batch.positive(event)).chain(batch.negatives(event))
                });
                let rows = tape.indices(rows.map(|place| place as u32));
                let rows = tape.gather(logits, rows);
                tape.softmax_cross_entropy(rows, batch.pairs.len() / batch.positives)
            }
            Loss::Bpr => {
                let pairs = events.flat_map(|event| {
                    batch.negatives(event).map(move |negative| (batch.positive(event), negative))
                });
                margins(tape, logits, pairs.collect())
            }
            Loss::AllPairs => {
                let negatives = || (0..batch.positives).flat_map(|event| batch.negatives(event));
                let pairs = events
                    .map(|event| batch.positive(event))
                    .flat_map(|event| negatives().map(move |negative| (event, negative)));
                margins(tape, logits, pairs.collect())
            }
        }
    }
}

/// The mean of -log sigmoid(s - n) over pairs of places.
fn margins(tape: &mut Tape<'_>, logits: Var, pairs: Vec<(usize, usize)>) -> Var {
    let positive = tape.indices(pairs.iter().map(|(event, _)| *event as u32));
    let positive = tape.gather(logits, positive);
    let negative = tape.indices(pairs.iter().map(|(_, negative)| *negative as u32));
    let negative = tape.gather(logits, negative);
    let margin = tape.sub(positive, negative);
    let labels = tape.input(pairs.len(), 1, |labels| labels.fill(1.0));
    tape.cross_entropy(margin, labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::Seed;
    use crate::model::PairBatch;
    use crate::model::batch::BatchOrder;
    use lstep_tensor::{DropoutKey, Parameters, Workspace};

    /// The logits of two events, each with two negatives.
    const ROWS: [[f64; 3]; 2] = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]];

    fn softplus(x: f64) -> f64 {
        x.exp().ln_1p()
    }

    /// The loss of the rows whose pairs stand in an order.
    fn loss(loss: Loss, order: BatchOrder) -> f64 {
        let mut pairs = PairBatch::default();
        (0..6).for_each(|pair| pairs.push(Seed::new(NodeId(pair), Time::ZERO), NodeId(9)));
        let [a, b] = ROWS.map(|row| row.map(|logit| logit as f32));
        let logits = match order {
            BatchOrder::ByEvent => [a[0], a[1], a[2], b[0], b[1], b[2]],
            BatchOrder::PositivesFirst => [a[0], b[0], a[1], a[2], b[1], b[2]],
        };
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.train(&parameters, DropoutKey::default());
        let logits = tape.constant(6, 1, &logits);
        let of = loss.of(&mut tape, logits, LossBatch { pairs: &pairs, order, positives: 2 });
        f64::from(tape.scalar(of))
    }

    #[test]
    fn every_loss_is_its_formula_in_both_orders() {
        let margins = |pairs: &[(f64, f64)]| {
            pairs.iter().map(|(s, n)| softplus(n - s)).sum::<f64>() / pairs.len() as f64
        };
        let own = |row: [f64; 3]| [(row[0], row[1]), (row[0], row[2])];
        let negatives = ROWS.iter().flat_map(|row| row[1..].to_vec());
        let all: Vec<(f64, f64)> = ROWS
            .iter()
            .flat_map(|row| negatives.clone().map(move |negative| (row[0], negative)))
            .collect();
        let bce = ROWS.iter().flatten().map(|z| softplus(*z)).sum::<f64>()
            - ROWS.iter().map(|row| row[0]).sum::<f64>();
        let softmax = |row: &[f64; 3]| row.iter().map(|z| z.exp()).sum::<f64>().ln() - row[0];
        for (kind, expected) in [
            (Loss::Bce, bce / 6.0),
            (Loss::Bpr, margins(&ROWS.map(own).concat())),
            (Loss::Softmax, ROWS.iter().map(softmax).sum::<f64>() / 2.0),
            (Loss::AllPairs, margins(&all)),
        ] {
            for order in [BatchOrder::ByEvent, BatchOrder::PositivesFirst] {
                let found = loss(kind, order);
                assert!((found - expected).abs() < 1e-6, "{kind:?} {order:?}: {found} {expected}");
            }
        }
    }
}
