//! The positional loss, Eq. loss_func_pe, and the total, Eq. loss_func.

use super::{LstepEncoder, LstepScratch};
use crate::model::encoder::{Encoded, LossBatch};
use lstep_tensor::{Tape, Var};

impl LstepEncoder {
    /// Eq. loss_func_pe: the mean distance of p~ between the nodes of an event, less `alpha_neg`
    /// times that between the nodes of a negative. Nothing without positions.
    pub(super) fn positional_loss(
        &self,
        tape: &mut Tape<'_>,
        encoded: &Encoded,
        batch: LossBatch<'_>,
        scratch: &LstepScratch,
    ) -> Option<Var> {
        let approximate = encoded.compare.as_ref()?.vectors;
        let (sources, candidates) = (batch.pairs.sources(), batch.pairs.candidates());
        let positives: Vec<usize> =
            (0..batch.positives).map(|event| batch.positive(event)).collect();
        let negatives: Vec<usize> =
            (0..batch.positives).flat_map(|event| batch.negatives(event)).collect();
        let mut side = |seeds: &[u32], places: &[usize]| {
            let own = |&place: &usize| scratch.gathered.own[seeds[place] as usize];
            let rows = tape.indices(places.iter().map(own));
            tape.gather(approximate, rows)
        };
        let (u, v) = (side(sources, &positives), side(candidates, &positives));
        let n = side(candidates, &negatives);
        let same = positives.iter().map(|&p| sources[p]).eq(negatives.iter().map(|&p| sources[p]));
        let m = if same { u } else { side(sources, &negatives) };
        let (met, not_met) = (tape.row_distance(u, v), tape.row_distance(m, n));
        let (met, not_met) = (tape.mean(met), tape.mean(not_met));
        let not_met = tape.scale(not_met, self.config.alpha_neg as f32);
        Some(tape.sub(met, not_met))
    }

    /// Eq. loss_func: (1 - alpha_pe) L_lp + alpha_pe L_pe.
    pub(super) fn weighted(&self, tape: &mut Tape<'_>, prediction: Var, position: Var) -> Var {
        let alpha = self.config.alpha_pe as f32;
        let (a, b) = (tape.scale(prediction, 1.0 - alpha), tape.scale(position, alpha));
        tape.add(a, b)
    }
}
