//! Settings under a dataset's name: those of the paper for L-STEP, those of DyGLib's tables for the
//! systems it compares with.

use crate::error::{Error, Result};
use crate::model::{
    DyGFormerConfig, GraphMixerConfig, LstepConfig, ModelConfig, Sampling, TgnConfig,
};
use crate::protocol::dyglib::DyglibProtocol;
use crate::protocol::tgb::TgbProtocol;
use crate::protocol::{Protocol, StepRule, Strategy, StreamProtocol};
use crate::settings::TrainConfig;
use crate::settings::{DataConfig, RunConfig};
use std::path::PathBuf;

/// The settings of all systems for a dataset.
struct Preset {
    name: &'static str,
    lstep: LstepPreset,
    graphmixer: GraphMixerPreset,
    tgn: TgnPreset,
    dygformer: DyGFormerPreset,
}

/// The paper's table "Configurations": L, t_gap, K, batch size, d_P.
struct LstepPreset {
    snapshots: usize,
    gap: f64,
    recent: usize,
    step: u32,
    position_width: usize,
}

/// DyGLib's best configurations: K, dropout, which neighbours.
struct GraphMixerPreset {
    recent: usize,
    dropout: f64,
    sampling: Sampling,
}

/// DyGLib's best configurations: dropout, which neighbours.
struct TgnPreset {
    dropout: f64,
    sampling: Sampling,
}

/// DyGLib's best configurations: longest history, patch, dropout.
struct DyGFormerPreset {
    longest: usize,
    patch: usize,
    dropout: f64,
}

const fn lstep(snapshots: usize, gap: f64, recent: usize, step: u32) -> LstepPreset {
    LstepPreset { snapshots, gap, recent, step, position_width: 172 }
}

const fn mixer(recent: usize, dropout: f64, sampling: Sampling) -> GraphMixerPreset {
    GraphMixerPreset { recent, dropout, sampling }
}

const fn tgn(dropout: f64, sampling: Sampling) -> TgnPreset {
    TgnPreset { dropout, sampling }
}

const fn former(longest: usize, patch: usize, dropout: f64) -> DyGFormerPreset {
    DyGFormerPreset { longest, patch, dropout }
}

/// Events of a step in DyGLib's experiments, for all its systems and datasets.
const DYGLIB_STEP: u32 = 200;

/// The 13 datasets of the tables. TGB's three are not in them: L-STEP takes Wikipedia's or the most
/// common values, the others Wikipedia's or their own most common values.
const PRESETS: [Preset; 16] = {
    use Sampling::{Recent, Uniform};
    [
        row(
            "wikipedia",
            lstep(100, 1000.0, 15, 128),
            mixer(30, 0.5, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.1),
        ),
        row(
            "reddit",
            lstep(100, 1000.0, 20, 200),
            mixer(10, 0.5, Recent),
            tgn(0.1, Recent),
            former(64, 2, 0.2),
        ),
        row(
            "mooc",
            lstep(100, 2000.0, 30, 128),
            mixer(20, 0.4, Recent),
            tgn(0.2, Recent),
            former(256, 8, 0.1),
        ),
        row(
            "lastfm",
            lstep(100, 1000.0, 30, 128),
            mixer(10, 0.0, Recent),
            tgn(0.3, Recent),
            former(512, 16, 0.1),
        ),
        row(
            "enron",
            lstep(100, 1000.0, 20, 64),
            mixer(20, 0.5, Recent),
            tgn(0.0, Recent),
            former(256, 8, 0.0),
        ),
        row(
            "socialevo",
            LstepPreset { position_width: 72, ..lstep(100, 1000.0, 20, 128) },
            mixer(20, 0.3, Recent),
            tgn(0.0, Recent),
            former(32, 1, 0.1),
        ),
        row(
            "uci",
            lstep(200, 500.0, 30, 100),
            mixer(20, 0.4, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.1),
        ),
        row(
            "flights",
            lstep(100, 1000.0, 30, 128),
            mixer(20, 0.2, Recent),
            tgn(0.1, Recent),
            former(256, 8, 0.1),
        ),
        row(
            "canparl",
            lstep(20, 2.0, 10, 64),
            mixer(20, 0.2, Uniform),
            tgn(0.3, Uniform),
            former(2048, 64, 0.1),
        ),
        row(
            "uslegis",
            lstep(50, 2.0, 10, 200),
            mixer(20, 0.4, Recent),
            tgn(0.1, Recent),
            former(256, 8, 0.0),
        ),
        row(
            "untrade",
            lstep(200, 6.0, 30, 200),
            mixer(20, 0.1, Uniform),
            tgn(0.2, Recent),
            former(256, 8, 0.0),
        ),
        row(
            "unvote",
            lstep(100, 10.0, 20, 128),
            mixer(20, 0.0, Uniform),
            tgn(0.1, Uniform),
            former(128, 4, 0.2),
        ),
        row(
            "contacts",
            lstep(200, 10.0, 20, 128),
            mixer(20, 0.1, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.0),
        ),
        row(
            "tgbl-wiki",
            lstep(100, 1000.0, 15, 128),
            mixer(30, 0.5, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.1),
        ),
        row(
            "tgbl-review",
            lstep(100, 1000.0, 20, 200),
            mixer(20, 0.1, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.1),
        ),
        row(
            "tgbl-coin",
            lstep(100, 1000.0, 20, 200),
            mixer(20, 0.1, Recent),
            tgn(0.1, Recent),
            former(32, 1, 0.1),
        ),
    ]
};

const fn row(
    name: &'static str,
    lstep: LstepPreset,
    graphmixer: GraphMixerPreset,
    tgn: TgnPreset,
    dygformer: DyGFormerPreset,
) -> Preset {
    Preset { name, lstep, graphmixer, tgn, dygformer }
}

impl Preset {
    fn find(name: &str) -> Result<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<&str> = preset_names().collect();
            Error::unknown("preset", name, known)
        })
    }

    /// Puts the dataset's settings into a model; tells how many events a step has.
    fn fill(&self, model: &mut ModelConfig) -> u32 {
        match model {
            // One rule for all datasets: a name changes nothing.
            ModelConfig::Lstep(LstepConfig { pair: Some(_), .. }) => DYGLIB_STEP,
            ModelConfig::Lstep(LstepConfig { snapshots, gap, recent, position_width, .. }) => {
                (*snapshots, *gap) = (self.lstep.snapshots, self.lstep.gap);
                (*recent, *position_width) = (self.lstep.recent, self.lstep.position_width);
                self.lstep.step
            }
            ModelConfig::GraphMixer(GraphMixerConfig { recent, dropout, sampling, .. }) => {
                (*recent, *dropout) = (self.graphmixer.recent, self.graphmixer.dropout);
                *sampling = self.graphmixer.sampling;
                DYGLIB_STEP
            }
            ModelConfig::Tgn(TgnConfig { dropout, sampling, .. }) => {
                (*dropout, *sampling) = (self.tgn.dropout, self.tgn.sampling);
                DYGLIB_STEP
            }
            ModelConfig::DyGFormer(DyGFormerConfig { longest, patch, dropout, .. }) => {
                (*longest, *patch) = (self.dygformer.longest, self.dygformer.patch);
                *dropout = self.dygformer.dropout;
                DYGLIB_STEP
            }
            ModelConfig::EdgeBank { .. }
            | ModelConfig::PopTrack { .. }
            | ModelConfig::Heuristic { .. } => DYGLIB_STEP,
        }
    }

    fn protocol(&self, step: u32, data: &DataConfig) -> Protocol {
        if self.name.starts_with("tgbl-") {
            let folder = data.events.parent().map(PathBuf::from);
            return Protocol::Tgb(TgbProtocol {
                step,
                ..TgbProtocol::for_dataset(self.name, folder)
            });
        }
        Protocol::Dyglib(DyglibProtocol { step })
    }
}

/// The names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

/// How the experiments behind a model's published numbers were trained.
fn training(model: &ModelConfig) -> TrainConfig {
    match model {
        ModelConfig::Lstep(LstepConfig { pair: Some(_), .. }) => TrainConfig {
            epochs: 30,
            patience: 5,
            learning_rate: 1e-3,
            clip: Some(1.0),
            historical: 0.12,
            novel: 0.08,
            select: vec![Strategy::Random, Strategy::Historical, Strategy::Inductive],
            ..TrainConfig::default()
        },
        ModelConfig::Lstep(_) => TrainConfig::default(),
        _ => TrainConfig { epochs: 100, patience: 20, ..TrainConfig::default() },
    }
}

impl RunConfig {
    /// The defaults of a model for a stream of unknown kind, or those of a preset and its protocol.
    pub fn start(
        data: DataConfig,
        mut model: ModelConfig,
        preset: Option<&str>,
    ) -> Result<RunConfig> {
        let protocol = match preset {
            Some(name) => {
                let preset = Preset::find(name)?;
                let step = preset.fill(&mut model);
                preset.protocol(step, &data)
            }
            None => Protocol::Stream(StreamProtocol {
                step: StepRule::Events(200),
                ..StreamProtocol::default()
            }),
        };
        let train = training(&model);
        Ok(RunConfig { data, protocol, model, train })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_of_every_model_reads_back_from_its_toml() {
        for name in preset_names() {
            for model in ModelConfig::LEARNED {
                let model = ModelConfig::learned(model).expect("every name is known");
                let data = DataConfig { events: "events.csv".into(), ..DataConfig::default() };
                let config = RunConfig::start(data, model, Some(name)).expect("known");
                let read =
                    RunConfig::from_toml("config.toml", &config.to_toml()).expect("read back");
                assert_eq!(read, config, "{name}");
            }
        }
    }

    #[test]
    fn a_preset_that_is_not_there_is_refused_with_those_that_are() {
        let model = ModelConfig::Lstep(LstepConfig::default());
        let error = RunConfig::start(DataConfig::default(), model, Some("ucy"))
            .expect_err("no such dataset");
        assert!(error.to_string().contains("uci"), "{error}");
    }
}
