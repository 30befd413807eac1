//! What a run is for. It sets negatives, loss, selection and questions together.

use super::{RunConfig, SelectBy, TrainConfig};
use crate::error::{Error, Result};
use crate::model::registry::ModelKind;
use crate::model::{LSTEP, LSTEP_PAIR, Loss};
use crate::protocol::{EvalScope, Part, Protocol, Setting, Strategy};
use serde::{Deserialize, Serialize};

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Who is next among all? Trained, selected and reported by the rank of the true destination
    /// among all destinations.
    Ranking,
    /// The AP and AUC of published tables, against the negatives of a protocol.
    #[default]
    Benchmark,
}

/// Most destinations that a question is asked against. Streams with more of them ask against a
/// sample of this size.
const MOST_DESTINATIONS: usize = 20_000;
/// Events of a part that are asked.
const QUESTIONS: usize = 2_000;
/// Events that validation asks after every epoch, and destinations each is asked against.
const SELECTION: (usize, usize) = (1_000, 1_000);

impl Purpose {
    /// The model that is trained unless another is named: the one that ranks best, or the paper's.
    pub(super) fn model(self) -> &'static str {
        match self {
            Purpose::Ranking => LSTEP_PAIR.name(),
            Purpose::Benchmark => LSTEP.name(),
        }
    }

    pub(super) fn is_benchmark(&self) -> bool {
        *self == Purpose::Benchmark
    }

    /// Lays what follows from it over the defaults of a model. Random negatives are those that a
    /// ranking meets. A softmax over ten of them ranks as well and takes three times as long
    /// (docs/experiments/019-ranking-loss.md). A running mean of the weights gains on wikipedia what
    /// it loses on a small stream, whose few steps it lags behind (022-ema-again.md).
    pub(super) fn apply(self, config: &mut RunConfig) -> Result<()> {
        config.purpose = self;
        if self == Purpose::Benchmark {
            return Ok(());
        }
        let own_questions = match &mut config.protocol {
            Protocol::Stream(stream) => {
                stream.per_event = MOST_DESTINATIONS;
                stream.questions = Some(QUESTIONS);
                true
            }
            Protocol::Tgb(_) => false,
            Protocol::Dyglib(_) => {
                return Err(Error::setting(
                    "protocol",
                    "dyglib",
                    "it asks against one negative, which is no ranking: take the purpose \
                     benchmark, or the protocol stream",
                ));
            }
        };
        let train = &mut config.train;
        *train = TrainConfig {
            loss: Loss::Bce,
            negatives: 1,
            source_historical: 0.0,
            historical: 0.0,
            novel: 0.0,
            select: vec![Strategy::Random],
            select_by: SelectBy::Mrr,
            select_questions: own_questions.then_some(SELECTION.0),
            select_negatives: own_questions.then_some(SELECTION.1),
            ema: 0.0,
            ..train.clone()
        };
        Ok(())
    }
}

impl std::fmt::Display for Purpose {
    /// As the user writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Purpose::Ranking => "ranking",
            Purpose::Benchmark => "benchmark",
        })
    }
}

impl std::str::FromStr for Purpose {
    type Err = Error;

    fn from_str(name: &str) -> Result<Purpose> {
        match name {
            "ranking" => Ok(Purpose::Ranking),
            "benchmark" => Ok(Purpose::Benchmark),
            _ => Err(Error::setting("for", name, "choose ranking or benchmark")),
        }
    }
}

impl RunConfig {
    /// Everything that is asked of the test part when training is over.
    pub fn scope(&self) -> EvalScope {
        match self.purpose {
            Purpose::Benchmark => self.protocol.full_scope(),
            Purpose::Ranking => self.protocol.scope(&EvalScope {
                parts: vec![Part::Test],
                settings: vec![Setting::Transductive],
                strategies: vec![Strategy::Random],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{DataConfig, SettingsBuilder};

    fn builder() -> SettingsBuilder {
        RunConfig::builder(DataConfig { events: "events.csv".into(), ..DataConfig::default() })
    }

    #[test]
    fn ranking_sets_model_negatives_loss_selection_and_questions_together() {
        let config = builder().purpose(Purpose::Ranking).build().expect("known");
        assert_eq!((config.purpose, config.model.name()), (Purpose::Ranking, "lstep-pair"));
        assert_eq!((config.train.historical, config.train.select_by), (0.0, SelectBy::Mrr));
        assert_eq!(config.train.ema, 0.0);
        assert!(config.train.check().is_ok());
        let Protocol::Stream(stream) = &config.protocol else { panic!("stream") };
        assert_eq!((stream.per_event, stream.questions), (MOST_DESTINATIONS, Some(QUESTIONS)));
        assert_eq!(config.scope().strategies, [Strategy::Random]);
        let benchmark = builder().build().expect("known");
        assert_eq!((benchmark.purpose, benchmark.model.name()), (Purpose::Benchmark, "lstep"));
        assert_eq!(benchmark.scope(), benchmark.protocol.full_scope());
    }

    #[test]
    fn a_key_goes_before_the_purpose_and_the_file_of_a_run_brings_its_own() {
        let keys = ["train.negatives=3".to_string()];
        let config = builder().purpose(Purpose::Ranking).set(&keys).build().expect("known");
        assert_eq!((config.train.negatives, config.train.select_by), (3, SelectBy::Mrr));
        let again = builder().file("config.toml", &config.to_toml()).build().expect("known");
        assert_eq!(again, config);
        let by_key = builder().set(&["purpose=ranking".to_string()]).build().expect("known");
        assert_eq!(by_key, builder().purpose(Purpose::Ranking).build().expect("known"));
        assert!(builder().set(&["purpose=rank".to_string()]).build().is_err());
    }

    #[test]
    fn one_negative_is_no_ranking() {
        let refused = builder().purpose(Purpose::Ranking).protocol("dyglib").build();
        let error = refused.expect_err("one negative").to_string();
        assert!(error.contains("dyglib") && error.contains("benchmark"), "{error}");
        let tgb = builder().purpose(Purpose::Ranking).protocol("tgb").build().expect("ranked");
        assert_eq!(
            (tgb.train.select_negatives, tgb.scope().strategies),
            (None, vec![Strategy::Tgb])
        );
    }
}
