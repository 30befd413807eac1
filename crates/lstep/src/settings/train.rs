//! How to train: the `[train]` table of a run.

use crate::error::{Error, Result};
use crate::model::{Loss, OptimizerConfig};
use crate::protocol::Strategy;
use lstep_tensor::{AdamConfig, Matmul};
use serde::{Deserialize, Serialize};

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
    /// After how many batches Adam's step size is down to a half, above 0; it stays as it is if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<f64>,
    /// Largest norm of all gradients together, above 0; not clipped if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// What a running mean of the weights keeps of itself at every batch, in [0, 1). The mean is
    /// what is validated and asked, and steadier than the weights of the last batch; with 0 it is
    /// these.
    #[serde(alias = "average", skip_serializing_if = "is_zero")]
    pub ema: f64,
    /// How layers multiply while they learn: `exact`, in f32; or `split`, each number as two of
    /// eight bits. On processors with a matrix unit for them (`amx_bf16` among the flags of Linux's
    /// /proc/cpuinfo) wide layers learn faster so, GraphMixer's by a tenth to a third; on others
    /// everything is several times slower.
    #[serde(with = "MatmulName", alias = "products", skip_serializing_if = "is_f32")]
    pub matmul: Matmul,
    /// Into how many lanes a batch is cut, from 1 to 64; the model's own choice if absent. Each lane
    /// has dropout and gradients of its own, which are added along a fixed tree, so the number
    /// decides the last bits of every weight; the numbers of threads and of ranks never do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<usize>,
    /// Seed of initial weights and of training's negatives.
    pub seed: u64,
    /// Share of training's negatives that are pairs which met earlier in training, not in the same
    /// step, in [0, 1]. The others have the event's source and a random destination, as in all
    /// published experiments.
    #[serde(skip_serializing_if = "is_zero")]
    pub historical: f64,
    /// Share of training's negatives that are pairs which met for the first time lately: among the
    /// newest eighth of all pairs that have met. Together with `historical` at most 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub novel: f64,
    /// What is minimised: `bce`, `bpr`, `softmax` or `all-pairs`.
    #[serde(skip_serializing_if = "is_default")]
    pub loss: Loss,
    /// Negatives of each event, from 1 to 1,000.
    #[serde(skip_serializing_if = "is_one")]
    pub negatives: usize,
    /// Share of training's negatives that are earlier partners of the event's own source, in [0, 1].
    /// Together with `historical` and `novel` at most 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub source_historical: f64,
    /// The kinds of negatives that validation asks about; selection follows the mean over them.
    pub select: Vec<Strategy>,
    /// What selection compares: `ap` (with AUC, as DyGLib does) or `mrr`. TGB's negatives are always
    /// selected by MRR.
    #[serde(skip_serializing_if = "is_default")]
    pub select_by: SelectBy,
    /// Validation after an epoch asks at most this many events; as many as the protocol says if
    /// absent. Only the protocol `stream` lets them be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_questions: Option<usize>,
    /// Validation after an epoch asks each event against this many negatives; as many as the
    /// protocol says if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_negatives: Option<usize>,
}

/// What decides which epoch is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectBy {
    /// AP and AUC have both to be as good, as in DyGLib.
    #[default]
    Ap,
    /// The mean reciprocal rank of the true destination among its negatives.
    Mrr,
}

/// The kinds of products as settings name them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Matmul", rename_all = "lowercase")]
enum MatmulName {
    #[serde(alias = "exact")]
    F32,
    #[serde(alias = "split")]
    Bf16x2,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_f32(products: &Matmul) -> bool {
    *products == Matmul::F32
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(count: &usize) -> bool {
    *count == 1
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
            ema: 0.0,
            matmul: Matmul::F32,
            lanes: None,
            seed: 0,
            historical: 0.0,
            novel: 0.0,
            loss: Loss::default(),
            negatives: 1,
            source_historical: 0.0,
            select: vec![Strategy::Random],
            select_by: SelectBy::default(),
            select_questions: None,
            select_negatives: None,
        }
    }
}

impl TrainConfig {
    /// How weights follow gradients.
    pub fn optimizer(&self) -> OptimizerConfig {
        let adam = AdamConfig { learning_rate: self.learning_rate, ..AdamConfig::default() };
        OptimizerConfig {
            adam,
            clip: self.clip,
            ema: self.ema,
            matmul: self.matmul,
            loss: self.loss,
            lanes: self.lanes,
        }
    }

    /// Whether layers are to multiply as this processor can only do slowly.
    pub fn multiplies_slowly(&self) -> bool {
        self.matmul == Matmul::Bf16x2 && !lstep_tensor::has_matrix_unit()
    }

    /// Refuses values that training cannot have.
    pub fn check(&self) -> Result<()> {
        for (setting, value) in [("train.epochs", self.epochs), ("train.patience", self.patience)] {
            if value == 0 {
                return Err(Error::setting(setting, 0, "it has to be at least 1"));
            }
        }
        let shares = [self.historical, self.novel, self.source_historical];
        let together = shares.iter().sum();
        if !shares.iter().chain([&together]).all(|share| (0.0..=1.0).contains(share)) {
            let [historical, novel, source_historical] = shares;
            return Err(Error::setting(
                "train.historical, train.novel and train.source_historical",
                format!("{historical}, {novel} and {source_historical}"),
                "they are shares: together at most 1",
            ));
        }
        if !(1..=1_000).contains(&self.negatives) {
            let remedy = "it has to be from 1 to 1,000";
            return Err(Error::setting("train.negatives", self.negatives, remedy));
        }
        if self.loss.compares_in_rows() && self.historical + self.novel > 0.0 {
            return Err(Error::setting(
                "train.historical and train.novel",
                format!("{} and {}", self.historical, self.novel),
                "this train.loss compares candidates of one source, and these are pairs of other \
                 sources: set both to 0, or take train.source_historical",
            ));
        }
        for (setting, value) in [
            ("train.select_questions", self.select_questions),
            ("train.select_negatives", self.select_negatives),
        ] {
            if value == Some(0) {
                return Err(Error::setting(setting, 0, "it has to be at least 1"));
            }
        }
        if self.select.is_empty() {
            return Err(Error::setting(
                "train.select",
                "[]",
                "name at least one kind of negatives, for example [\"random\"]",
            ));
        }
        if let Some((place, double)) = self
            .select
            .iter()
            .enumerate()
            .find(|(place, kind)| self.select[..*place].contains(kind))
        {
            return Err(Error::setting(
                "train.select",
                format!("{double}, again at place {place}"),
                "name every kind once",
            ));
        }
        if !(0.0..1.0).contains(&self.ema) {
            return Err(Error::setting(
                "train.ema",
                self.ema,
                "it has to be at least 0 and below 1",
            ));
        }
        if let Some(lanes) = self.lanes.filter(|lanes| !(1..=64).contains(lanes)) {
            return Err(Error::setting("train.lanes", lanes, "it has to be from 1 to 64"));
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !positive(self.learning_rate) {
            return Err(Error::setting(
                "train.learning_rate",
                self.learning_rate,
                "it has to be above 0",
            ));
        }
        if let Some(batches) = self.half_life.filter(|batches| !positive(*batches)) {
            return Err(Error::setting(
                "train.half_life",
                batches,
                "it has to be above 0; leave it out for no decay",
            ));
        }
        if let Some(clip) = self.clip.filter(|clip| !positive(*clip)) {
            return Err(Error::setting(
                "train.clip",
                clip,
                "it has to be above 0; leave it out for no clipping",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_products_are_set_by_name_and_the_default_is_not_written() {
        let of = |text: &str| toml::from_str::<TrainConfig>(text);
        let split = of("matmul = \"bf16x2\"").expect("a kind of products");
        assert_eq!((split.matmul, split.optimizer().matmul), (Matmul::Bf16x2, Matmul::Bf16x2));
        assert_eq!(of(&toml::to_string(&split).expect("plain data")).expect("read back"), split);
        assert!(!toml::to_string(&TrainConfig::default()).expect("plain data").contains("matmul"));
        let refusal = of("matmul = \"bf16\"").expect_err("no such kind").to_string();
        assert!(refusal.contains("`f32`") && refusal.contains("`bf16x2`"), "{refusal}");
    }

    #[test]
    fn settings_are_also_known_by_their_former_names() {
        let of = |text: &str| toml::from_str::<TrainConfig>(text).expect("known settings");
        assert_eq!(of("products = \"split\"\naverage = 0.5"), of("matmul = \"bf16x2\"\nema = 0.5"));
        assert_eq!(of("products = \"exact\""), TrainConfig::default());
    }
}
