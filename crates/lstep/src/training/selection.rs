//! Which epoch is kept, and when training stops.

use crate::model::ModelConfig;
use crate::protocol::Strategy;
use crate::results::{EpochReport, Outcome};
use crate::settings::{RunConfig, SelectBy};
use serde::{Deserialize, Serialize};

/// How much better than the best an epoch's MRR has to be, as a share of the best: TGB's tolerance.
const MRR_TOLERANCE: f64 = 1e-6;

/// Which epoch is kept, and when to stop.
///
/// Each benchmark's own rule. TGB's negatives, and others where `train.select_by` says `mrr`: an
/// epoch is an improvement if its MRR is above the best stored by more than one part in a million.
/// All others, as in DyGLib: if AP and AUC, means over the kinds of negatives asked, are both at
/// least as good as the best stored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Selection {
    /// AP and AUC of the best epoch.
    pub best: Option<(f64, f64)>,
    /// MRR of the best epoch, where it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_mrr: Option<f64>,
    /// The best epoch's number.
    pub best_epoch: u32,
    /// Epochs since.
    pub waited: u32,
}

impl Selection {
    /// Takes in an epoch by its answers on validation; says whether it is the best so far.
    pub fn take(&mut self, epoch: u32, validation: &[Outcome], by: SelectBy) -> bool {
        let (ap, auc) = mean_quality(validation);
        let by_rank = |outcome: &Outcome| match by {
            SelectBy::Mrr => true,
            SelectBy::Ap => outcome.negatives == Strategy::Tgb,
        };
        let mrr = if validation.iter().all(by_rank) { mean_mrr(validation) } else { None };
        let improved = match mrr {
            Some(mrr) => self.best_mrr.is_none_or(|best| mrr - best > MRR_TOLERANCE * best),
            None => self.best.is_none_or(|best| ap >= best.0 && auc >= best.1),
        };
        if improved {
            *self =
                Selection { best: Some((ap, auc)), best_mrr: mrr, best_epoch: epoch, waited: 0 };
        } else {
            self.waited += 1;
        }
        improved
    }
}

/// AP and AUC as means over kinds of negatives.
pub fn mean_quality(outcomes: &[Outcome]) -> (f64, f64) {
    let mean = |number: fn(&Outcome) -> f64| {
        outcomes.iter().map(number).sum::<f64>() / outcomes.len().max(1) as f64
    };
    (mean(|outcome| outcome.ap), mean(|outcome| outcome.auc))
}

/// MRR as a mean over kinds of negatives; nothing where one was not ranked.
pub fn mean_mrr(outcomes: &[Outcome]) -> Option<f64> {
    let sum: f64 = outcomes.iter().map(|outcome| outcome.mrr).sum::<Option<f64>>()?;
    Some(sum / outcomes.len().max(1) as f64)
}

/// The most epochs, where the last of them was the best so far: training was stopped while it still
/// gained.
pub fn stopped_while_gaining(config: &RunConfig, epochs: &[EpochReport]) -> Option<u32> {
    let (last, most) = (epochs.last()?, config.train.epochs);
    let learns = ModelConfig::learned(config.model.name()).is_ok();
    (learns && last.improved && last.epoch >= most).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Part, Setting};
    use crate::training::Progress;
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn progress_and_selection_are_read_back_to_the_bit(loss in 0.0f64..100.0, ap in 0.0f64..1.0, auc in 0.0f64..1.0) {
            let progress = Progress { epoch: 3, step: 7, loss_sum: loss, batches: 6 };
            let note = serde_json::to_string(&progress).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<Progress>(&note).expect("read back"), progress);
            let selection = Selection { best: Some((ap, auc)), best_mrr: Some(loss), best_epoch: 2, waited: 1 };
            let note = serde_json::to_string(&selection).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<Selection>(&note).expect("read back"), selection);
        }
    }

    fn validated(negatives: Strategy, ap: f64, auc: f64, mrr: Option<f64>) -> Outcome {
        Outcome {
            part: Part::Validation,
            setting: Setting::Transductive,
            negatives,
            ap,
            auc,
            ap_pooled: ap,
            auc_pooled: auc,
            mrr,
            hits_10: None,
            hits_1: None,
            ndcg_10: None,
            events: 1,
            steps: 1,
            pairs: 2,
            seconds: 0.0,
        }
    }

    #[test]
    fn under_tgb_the_rank_selects_whatever_the_areas_say() {
        let mut selection = Selection::default();
        let tgb = |areas: f64, mrr: f64| validated(Strategy::Tgb, areas, areas, Some(mrr));
        assert!(selection.take(1, &[tgb(0.9, 0.5)], SelectBy::Ap));
        assert!(
            !selection.take(2, &[tgb(0.99, 0.5)], SelectBy::Ap),
            "an equal rank is no improvement"
        );
        assert!(
            !selection.take(3, &[tgb(0.99, 0.5 * (1.0 + 0.5e-6))], SelectBy::Ap),
            "within TGB's tolerance"
        );
        assert_eq!(selection.waited, 2);
        assert!(selection.take(4, &[tgb(0.1, 0.6)], SelectBy::Ap));
        assert_eq!((selection.best_mrr, selection.best_epoch, selection.waited), (Some(0.6), 4, 0));
    }

    #[test]
    fn the_rank_selects_where_it_is_to() {
        let mut selection = Selection::default();
        let drawn = |areas: f64, mrr: f64| validated(Strategy::Random, areas, areas, Some(mrr));
        assert!(selection.take(1, &[drawn(0.8, 0.5)], SelectBy::Mrr));
        assert!(!selection.take(2, &[drawn(0.9, 0.4)], SelectBy::Mrr));
        assert!(selection.take(3, &[drawn(0.1, 0.5), drawn(0.1, 0.75)], SelectBy::Mrr));
        assert_eq!((selection.best_mrr, selection.best_epoch), (Some(0.625), 3));
    }

    #[test]
    fn elsewhere_both_areas_have_to_be_as_good_and_ties_count() {
        let mut selection = Selection::default();
        let drawn = |ap: f64, auc: f64, mrr: f64| validated(Strategy::Random, ap, auc, Some(mrr));
        assert!(selection.take(1, &[drawn(0.8, 0.8, 0.9)], SelectBy::Ap));
        assert!(!selection.take(2, &[drawn(0.9, 0.7, 0.9)], SelectBy::Ap));
        assert!(selection.take(3, &[drawn(0.8, 0.8, 0.1)], SelectBy::Ap));
        assert_eq!((selection.best_mrr, selection.best_epoch), (None, 3));
    }

    #[test]
    fn a_note_of_an_older_run_is_read() {
        let note = r#"{"best":[0.5,0.25],"best_epoch":3,"waited":1}"#;
        let selection: Selection = serde_json::from_str(note).expect("an older note");
        assert_eq!(
            selection,
            Selection { best: Some((0.5, 0.25)), best_mrr: None, best_epoch: 3, waited: 1 }
        );
    }
}
