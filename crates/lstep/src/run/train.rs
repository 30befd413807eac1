//! The training loop: epochs of lessons, selection on validation, early stopping, and everything that is needed to go on.
//!
//! Every epoch starts from the same initial state and goes through the training events in order; the state then streams on into
//! validation. Training has a log of its own that holds only what may train, so held-out nodes cannot be met in anybody's
//! history. All draws are keyed by seed, epoch and step: an epoch that is done again is the same epoch.

use super::evaluate::Outcome;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::event::{Event, Events, NodeId, pair_key};
use crate::graph::EventLog;
use crate::model::{Lesson, Negative, Optimiser, Pupil};
use crate::protocol::{NodeSet, Split, StepRule, Strategy, Visibility, cut};
use lstep_tensor::{AdamConfig, Products};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How to train. Defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Most epochs, at least 1.
    pub epochs: u32,
    /// Epochs without improvement after which training stops, at least 1.
    pub patience: u32,
    /// Adam's step size, above 0.
    pub learning_rate: f64,
    /// After how many lessons Adam's step size is down to a half, above 0; it stays as it is if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<f64>,
    /// Largest norm of all gradients together, above 0; not clipped if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// What a running mean of the weights keeps of itself at every lesson, in [0, 1). The mean is what is validated and asked, and steadier
    /// than the weights of the last lesson; with 0 it is these.
    #[serde(skip_serializing_if = "is_zero")]
    pub average: f64,
    /// How layers multiply while they learn: `exact`, in f32; or `split`, each number as two of eight bits. On processors with a matrix unit
    /// for them (`amx_bf16` among the flags of Linux's /proc/cpuinfo) wide layers learn faster so, GraphMixer's by a tenth to a third; on others
    /// everything is several times slower.
    #[serde(with = "ProductsName", skip_serializing_if = "is_exact")]
    pub products: Products,
    /// Seed of initial weights and of training's negatives.
    pub seed: u64,
    /// Share of training's negatives that are pairs which met earlier in training, not in the same step, in [0, 1]. The others have
    /// the event's source and a random destination, as in all published experiments.
    #[serde(skip_serializing_if = "is_zero")]
    pub historical: f64,
    /// Share of training's negatives that are pairs which met for the first time lately: among the newest eighth of all pairs that
    /// have met. Together with `historical` at most 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub novel: f64,
    /// The kinds of negatives that validation asks about; selection follows the mean over them.
    pub select: Vec<Strategy>,
}

/// The kinds of products as settings name them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Products", rename_all = "lowercase")]
enum ProductsName {
    Exact,
    Split,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_exact(products: &Products) -> bool {
    *products == Products::Exact
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Default for TrainConfig {
    fn default() -> TrainConfig {
        TrainConfig {
            epochs: 200,
            patience: 10,
            learning_rate: 1e-4,
            half_life: None,
            clip: None,
            average: 0.0,
            products: Products::Exact,
            seed: 0,
            historical: 0.0,
            novel: 0.0,
            select: vec![Strategy::Random],
        }
    }
}

impl TrainConfig {
    /// How weights follow gradients.
    pub fn optimiser(&self) -> Optimiser {
        let adam = AdamConfig { learning_rate: self.learning_rate, ..AdamConfig::default() };
        Optimiser { adam, clip: self.clip, average: self.average, products: self.products }
    }

    /// Whether layers are to multiply as this processor can only do slowly.
    pub fn multiplies_slowly(&self) -> bool {
        self.products == Products::Split && !lstep_tensor::has_matrix_unit()
    }

    /// Refuses values that training cannot have.
    pub fn check(&self) -> Result<()> {
        for (setting, value) in [("train.epochs", self.epochs), ("train.patience", self.patience)] {
            if value == 0 {
                return Err(Error::setting(setting, 0, "it has to be at least 1"));
            }
        }
        let shares = [self.historical, self.novel, self.historical + self.novel];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            let value = format!("{} and {}", self.historical, self.novel);
            return Err(Error::setting(
                "train.historical and train.novel",
                value,
                "they are shares: together at most 1",
            ));
        }
        if self.select.is_empty() {
            return Err(Error::setting(
                "train.select",
                "[]",
                "name at least one kind of negatives, for example [\"random\"]",
            ));
        }
        if let Some((place, double)) =
            self.select.iter().enumerate().find(|(place, kind)| self.select[..*place].contains(kind))
        {
            return Err(Error::setting(
                "train.select",
                format!("{double}, again at place {place}"),
                "name every kind once",
            ));
        }
        if !(0.0..1.0).contains(&self.average) {
            return Err(Error::setting("train.average", self.average, "it has to be at least 0 and below 1"));
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !positive(self.learning_rate) {
            return Err(Error::setting("train.learning_rate", self.learning_rate, "it has to be above 0"));
        }
        if let Some(lessons) = self.half_life.filter(|lessons| !positive(*lessons)) {
            return Err(Error::setting("train.half_life", lessons, "it has to be above 0; leave it out for no decay"));
        }
        if let Some(clip) = self.clip.filter(|clip| !positive(*clip)) {
            return Err(Error::setting("train.clip", clip, "it has to be above 0; leave it out for no clipping"));
        }
        Ok(())
    }
}

impl EpochReport {
    /// Average precision on validation against random negatives where it asks about them, else the mean over what it asks.
    pub fn ap_on_random(&self) -> f64 {
        let random = self.validation.iter().find(|row| row.negatives == Strategy::Random);
        random.map_or(self.validation_ap, |row| row.ap)
    }
}

/// What an epoch did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Its number, from 1.
    pub epoch: u32,
    /// Mean loss over its steps.
    pub loss: f64,
    /// Average precision on validation, the mean over steps.
    pub validation_ap: f64,
    /// ROC-AUC on validation, the mean over steps.
    pub validation_auc: f64,
    /// The same for each kind of negatives, where validation asks about several and the numbers above are means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<ValidationRow>,
    /// Mean reciprocal rank on validation, where an event has more than one negative; under protocol `tgb` it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_mrr: Option<f64>,
    /// Whether it is the best so far.
    pub improved: bool,
    /// Time for learning.
    pub train_seconds: f64,
    /// Training events in a second.
    pub train_events_per_second: f64,
    /// Time for validation.
    pub validation_seconds: f64,
    /// Candidates scored in a second of validation.
    pub validation_pairs_per_second: f64,
}

/// Validation with one kind of negatives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationRow {
    /// Which.
    pub negatives: Strategy,
    /// Average precision, the mean over steps.
    pub ap: f64,
    /// ROC-AUC, the mean over steps.
    pub auc: f64,
}

/// How much better than the best an epoch's MRR has to be, as a share of the best: TGB's tolerance.
const MRR_TOLERANCE: f64 = 1e-6;

/// Which epoch is kept, and when to stop.
///
/// Each benchmark's own rule. TGB's negatives: an epoch is an improvement if its MRR is above the best stored by more than one part
/// in a million. All others, as in DyGLib: if AP and AUC, means over the kinds of negatives asked, are both at least as good as the best
/// stored.
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
    pub fn take(&mut self, epoch: u32, validation: &[Outcome]) -> bool {
        let (ap, auc) = mean_quality(validation);
        // TGB's negatives are asked alone.
        let mrr =
            validation.first().filter(|outcome| outcome.strategy == Strategy::Tgb).and_then(|outcome| outcome.mrr);
        let improved = match mrr {
            Some(mrr) => self.best_mrr.is_none_or(|best| mrr - best > MRR_TOLERANCE * best),
            None => self.best.is_none_or(|best| ap >= best.0 && auc >= best.1),
        };
        if improved {
            *self = Selection { best: Some((ap, auc)), best_mrr: mrr, best_epoch: epoch, waited: 0 };
        } else {
            self.waited += 1;
        }
        improved
    }
}

/// AP and AUC as means over kinds of negatives.
pub fn mean_quality(outcomes: &[Outcome]) -> (f64, f64) {
    let mean = |number: fn(&Outcome) -> f64| outcomes.iter().map(number).sum::<f64>() / outcomes.len().max(1) as f64;
    (mean(|outcome| outcome.ap), mean(|outcome| outcome.auc))
}

/// The events that may train, in a log of their own, cut into steps.
pub struct Course {
    log: EventLog,
    steps: Vec<Range<u32>>,
    destinations: Vec<NodeId>,
    /// All pairs in the order in which they first met, and how many of them each step may draw from.
    pairs: Vec<Negative>,
    known: Vec<u32>,
    visibility: Visibility,
    seed: u64,
    half_life: Option<f64>,
    historical: f64,
    novel: f64,
}

impl Course {
    /// The course of a split.
    pub fn new(
        log: &EventLog,
        split: &Split,
        rule: StepRule,
        visibility: Visibility,
        train: &TrainConfig,
    ) -> Result<Course> {
        let all = log.events();
        let mut events = Events::empty(all.features().width());
        for event in all.iter().take(split.train.end as usize).filter(|event| split.trains(*event)) {
            let features = all.features().row(event.number as usize);
            events.push(event.source, event.destination, event.time, features)?;
        }
        let destinations: NodeSet = events.destinations().iter().copied().collect();
        let steps = cut(&events, 0..events.len() as u32, rule, visibility);
        let (pairs, known) =
            if train.historical + train.novel > 0.0 { first_meetings(&events, &steps) } else { Default::default() };
        let log = EventLog::new(events).with_node_features(log.node_features().clone());
        Ok(Course {
            log,
            steps,
            destinations: destinations.iter().collect(),
            pairs,
            known,
            visibility,
            seed: train.seed,
            half_life: train.half_life,
            historical: train.historical,
            novel: train.novel,
        })
    }

    /// How many events it has.
    pub fn events(&self) -> usize {
        self.log.len()
    }

    /// How many steps it has.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Teaches one step of an epoch; tells its loss, if there was one.
    pub fn teach(&self, pupil: &mut dyn Pupil, epoch: u32, step: usize) -> Result<Option<f64>> {
        let span = self.steps[step].clone();
        let events: Vec<Event> = span.clone().map(|number| self.log.events().at(number as usize)).collect();
        let mut draw = Draw::new(&[self.seed, 0x7ea, u64::from(epoch), step as u64]);
        let negatives = self.negatives(&events, step, &mut draw);
        let horizon = if self.visibility == Visibility::Step { span.start } else { span.end };
        let mask = lstep_tensor::Draw { seed: self.seed, step: u64::from(epoch) << 32 | step as u64 };
        let lesson = Lesson { events: &events, negatives: &negatives };
        if let Some(half_life) = self.half_life {
            let before = u64::from(epoch - 1) * self.steps.len() as u64 + step as u64;
            pupil.slow_down(0.5f64.powf(before as f64 / half_life));
        }
        pupil.learn(self.log.past(horizon), self.log.revealed(span.end), lesson, mask)
    }

    /// One negative for each event of a step.
    fn negatives(&self, events: &[Event], step: usize, draw: &mut Draw) -> Vec<Negative> {
        let pool = &self.destinations;
        let random = |draw: &mut Draw, event: &Event| Negative {
            source: event.source,
            destination: pool[draw.below(pool.len() as u64) as usize],
        };
        let Some(&known) = self.known.get(step).filter(|known| **known > 0) else {
            return events.iter().map(|event| random(draw, event)).collect();
        };
        let met: FxHashSet<u64> = events.iter().map(|event| pair_key(event.source, event.destination)).collect();
        let lately = known - known.div_ceil(8);
        let negative = |event: &Event| {
            let kind = draw.unit();
            if kind >= self.historical + self.novel {
                return random(draw, event);
            }
            let from = if kind < self.historical { 0 } else { lately };
            // A pair that meets in this very step is no negative; a few tries find another, if there is one.
            for _ in 0..4 {
                let pair = self.pairs[(from + draw.below(u64::from(known - from)) as u32) as usize];
                if !met.contains(&pair_key(pair.source, pair.destination)) {
                    return pair;
                }
            }
            random(draw, event)
        };
        events.iter().map(negative).collect()
    }

    /// The steps of an epoch that are left, from `progress` on. After each step `watch` sees how far it is, and says whether to go
    /// on; tells whether the epoch is complete.
    pub fn go_on(
        &self,
        pupil: &mut dyn Pupil,
        progress: &mut Progress,
        watch: &mut (dyn FnMut(&Progress, u64) -> bool + Send),
    ) -> Result<bool> {
        if progress.step == 0 {
            pupil.restart();
        }
        lstep_tensor::awake(|| {
            while (progress.step as usize) < self.steps.len() {
                if let Some(loss) = self.teach(pupil, progress.epoch, progress.step as usize)? {
                    if !loss.is_finite() {
                        return Err(Error::setting("the loss", loss, "lower train.learning_rate or set train.clip"));
                    }
                    progress.loss_sum += loss;
                    progress.lessons += 1;
                }
                let done = u64::from(self.steps[progress.step as usize].end);
                progress.step += 1;
                if !watch(progress, done) && (progress.step as usize) < self.steps.len() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// All pairs in the order in which they first met, and how many of them met before each step.
fn first_meetings(events: &Events, steps: &[Range<u32>]) -> (Vec<Negative>, Vec<u32>) {
    let (mut seen, mut pairs, mut known) = (FxHashSet::default(), Vec::new(), Vec::with_capacity(steps.len()));
    for step in steps {
        known.push(pairs.len() as u32);
        for event in step.clone().map(|number| events.at(number as usize)) {
            if seen.insert(pair_key(event.source, event.destination)) {
                pairs.push(Negative { source: event.source, destination: event.destination });
            }
        }
    }
    (pairs, known)
}

/// How far an epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch's number, from 1.
    pub epoch: u32,
    /// Its next step, from 0.
    pub step: u32,
    /// Sum of the losses so far.
    pub loss_sum: f64,
    /// Steps that had a loss.
    pub lessons: u32,
}

impl Progress {
    /// Before an epoch's first step.
    pub fn start(epoch: u32) -> Progress {
        Progress { epoch, step: 0, loss_sum: 0.0, lessons: 0 }
    }

    /// Mean loss so far.
    pub fn loss(&self) -> f64 {
        self.loss_sum / f64::from(self.lessons.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;
    use crate::model::{LstepConfig, ModelConfig, Optimiser};
    use crate::protocol::{Part, Setting};
    use crate::read::synthetic::{SyntheticConfig, generate};
    use crate::run::evaluate::facts;
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn progress_and_selection_are_read_back_to_the_bit(loss in 0.0f64..100.0, ap in 0.0f64..1.0, auc in 0.0f64..1.0) {
            let progress = Progress { epoch: 3, step: 7, loss_sum: loss, lessons: 6 };
            let note = serde_json::to_string(&progress).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<Progress>(&note).expect("read back"), progress);
            let selection = Selection { best: Some((ap, auc)), best_mrr: Some(loss), best_epoch: 2, waited: 1 };
            let note = serde_json::to_string(&selection).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<Selection>(&note).expect("read back"), selection);
        }
    }

    #[test]
    fn products_are_set_by_name_and_the_default_is_not_written() {
        let of = |text: &str| toml::from_str::<TrainConfig>(text);
        let split = of("products = \"split\"").expect("a kind of products");
        assert_eq!((split.products, split.optimiser().products), (Products::Split, Products::Split));
        assert_eq!(of(&toml::to_string(&split).expect("plain data")).expect("read back"), split);
        assert!(!toml::to_string(&TrainConfig::default()).expect("plain data").contains("products"));
        assert!(of("products = \"bf16\"").expect_err("no such kind").to_string().contains("`exact` or `split`"));
    }

    #[test]
    fn the_step_size_halves_as_lessons_pass() {
        let stream = SyntheticConfig { nodes: 40, events: 400, ..SyntheticConfig::default() };
        let log = EventLog::new(generate(&stream).expect("a stream").events);
        let split = Split::chronological(log.events(), 0.7, 0.85).expect("three parts");
        let model = ModelConfig::Lstep(LstepConfig { position_width: 4, snapshots: 4, ..LstepConfig::default() });
        let weights = |pupil: &dyn Pupil| {
            let mut checkpoint = Checkpoint::default();
            pupil.save(&mut checkpoint);
            checkpoint.f32("weight.merge.weight").expect("a layer").to_vec()
        };
        // How far the second epoch moves a layer's weights.
        let moved = |half_life: Option<f64>| {
            let train = TrainConfig { half_life, ..TrainConfig::default() };
            let course = Course::new(&log, &split, StepRule::Events(50), Visibility::Event, &train).expect("events");
            let optimiser = Optimiser::default();
            let mut pupil = model.pupil(&facts(&log, &split), 0, optimiser).expect("a model");
            let mut epoch = |epoch| {
                course.go_on(pupil.as_mut(), &mut Progress::start(epoch), &mut |_, _| true).expect("an epoch");
                weights(pupil.as_ref())
            };
            let (first, second) = (epoch(1), epoch(2));
            first.iter().zip(&second).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        // An epoch has six lessons, so the second begins at a sixteenth and ends at a hundredth.
        let (whole, less) = (moved(None), moved(Some(1.5)));
        assert!(whole > 1e-4 && less > 0.002 * whole && less < 0.1 * whole, "{whole} {less}");
    }

    fn validated(strategy: Strategy, ap: f64, auc: f64, mrr: Option<f64>) -> Outcome {
        Outcome {
            part: Part::Validation,
            setting: Setting::Transductive,
            strategy,
            ap,
            auc,
            ap_pooled: ap,
            auc_pooled: auc,
            mrr,
            hits_10: None,
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
        assert!(selection.take(1, &[tgb(0.9, 0.5)]));
        assert!(!selection.take(2, &[tgb(0.99, 0.5)]), "an equal rank is no improvement");
        assert!(!selection.take(3, &[tgb(0.99, 0.5 * (1.0 + 0.5e-6))]), "within TGB's tolerance");
        assert_eq!(selection.waited, 2);
        assert!(selection.take(4, &[tgb(0.1, 0.6)]));
        assert_eq!((selection.best_mrr, selection.best_epoch, selection.waited), (Some(0.6), 4, 0));
    }

    #[test]
    fn elsewhere_both_areas_have_to_be_as_good_and_ties_count() {
        let mut selection = Selection::default();
        let drawn = |ap: f64, auc: f64, mrr: f64| validated(Strategy::Random, ap, auc, Some(mrr));
        assert!(selection.take(1, &[drawn(0.8, 0.8, 0.9)]));
        assert!(!selection.take(2, &[drawn(0.9, 0.7, 0.9)]));
        assert!(selection.take(3, &[drawn(0.8, 0.8, 0.1)]));
        assert_eq!((selection.best_mrr, selection.best_epoch), (None, 3));
    }

    #[test]
    fn a_note_of_an_older_run_is_read() {
        let note = r#"{"best":[0.5,0.25],"best_epoch":3,"waited":1}"#;
        let selection: Selection = serde_json::from_str(note).expect("an older note");
        assert_eq!(selection, Selection { best: Some((0.5, 0.25)), best_mrr: None, best_epoch: 3, waited: 1 });
    }
}
