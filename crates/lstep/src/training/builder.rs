//! Training as one job: from a stream and a model's name to a trained run.

use super::{RunFolder, TrainEvent, TrainedRun, TrainingRun};
use crate::error::{Error, Result};
use crate::model::ModelConfig;
use crate::protocol::Protocol;
use crate::settings::{DataConfig, Purpose, RunConfig, difference};
use crate::stream::Stream;
use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Training of one model on one stream.
///
/// ```no_run
/// use lstep::protocol::EvalScope;
/// use lstep::training::Training;
/// # use lstep::read::synthetic::{SyntheticConfig, generate};
/// # use lstep::stream::Stream;
/// # let stream = Stream::from(generate(&SyntheticConfig::default())?);
///
/// let trained = Training::new(&stream).model("lstep-pair")?.set("train.epochs", 3).run()?;
/// let report = trained.evaluate(&EvalScope::default())?;
/// println!("test AP {:.4}", report.results[0].ap);
/// # Ok::<(), lstep::Error>(())
/// ```
///
/// The run lives in memory. With [`Training::folder`] it is also kept on disk: the same program
/// started again goes on where it stopped, and [`TrainedRun::open_with`] opens it later.
#[must_use = "training does nothing until it is run"]
pub struct Training<'a> {
    stream: Cow<'a, Stream>,
    data: DataConfig,
    model: Option<ModelConfig>,
    preset: Option<String>,
    purpose: Option<Purpose>,
    protocol: Option<Protocol>,
    keys: Vec<String>,
    folder: Option<RunFolder>,
    on_progress: Box<dyn FnMut(TrainEvent<'_>) -> ControlFlow<()> + Send + 'a>,
}

impl<'a> Training<'a> {
    /// Training on a stream. A trained run holds its stream, so a borrowed one is copied; give the
    /// stream itself if it is not needed elsewhere.
    pub fn new(stream: impl Into<Cow<'a, Stream>>) -> Training<'a> {
        Training {
            stream: stream.into(),
            data: DataConfig::default(),
            model: None,
            preset: None,
            purpose: None,
            protocol: None,
            keys: Vec::new(),
            folder: None,
            on_progress: Box::new(|_| ControlFlow::Continue(())),
        }
    }

    /// The model, by its name in `lstep::model::registry`, whose first is the default. A counting
    /// model makes a run that has a state and no weights.
    pub fn model(self, name: &str) -> Result<Training<'a>> {
        let model = ModelConfig::of_run(name)?;
        Ok(self.model_config(model))
    }

    /// The model with its settings.
    pub fn model_config(mut self, model: ModelConfig) -> Training<'a> {
        self.model = Some(model);
        self
    }

    /// The settings that the model's authors used for a dataset.
    pub fn preset(mut self, dataset: impl Into<String>) -> Training<'a> {
        self.preset = Some(dataset.into());
        self
    }

    /// What the run is for; a benchmark unless it is said.
    pub fn purpose(mut self, purpose: Purpose) -> Training<'a> {
        self.purpose = Some(purpose);
        self
    }

    /// How the stream is split, stepped and asked about.
    pub fn protocol(mut self, protocol: impl Into<Protocol>) -> Training<'a> {
        self.protocol = Some(protocol.into());
        self
    }

    /// Sets one value by its path, such as `train.epochs` or `model.recent`. Unknown paths are
    /// refused when training starts.
    pub fn set(mut self, path: &str, value: impl fmt::Display) -> Training<'a> {
        self.keys.push(format!("{path}={value}"));
        self
    }

    /// Where the stream was read from. A run in a folder notes it, so that it can be opened and
    /// resumed without the stream at hand.
    pub fn data(mut self, data: DataConfig) -> Training<'a> {
        self.data = data;
        self
    }

    /// Keeps the run in a folder. If there is a run in it already, training goes on with that one,
    /// which must have the same settings and the same stream.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Training<'a> {
        self.folder = Some(RunFolder::new(path));
        self
    }

    /// Calls a function after every step and every epoch. [`ControlFlow::Break`] ends training with
    /// [`Error::Interrupted`]; a run in a folder is saved first.
    pub fn on_progress(
        mut self,
        watch: impl FnMut(TrainEvent<'_>) -> ControlFlow<()> + Send + 'a,
    ) -> Training<'a> {
        self.on_progress = Box::new(watch);
        self
    }

    /// All settings, resolved.
    pub fn config(&self) -> Result<RunConfig> {
        let mut builder = RunConfig::builder(self.data.clone())
            .preset(self.preset.as_deref())
            .purpose(self.purpose);
        if let Some(model) = &self.model {
            builder = builder.model_config(model.clone());
        }
        let mut config = builder.build()?;
        if let Some(protocol) = &self.protocol {
            config.protocol = protocol.clone();
        }
        config.with_keys(&self.keys)
    }

    /// A run that has not begun its first step, or that resumes. It can be stopped, looked at and
    /// continued; the function of [`Training::on_progress`] is not called.
    pub fn start(self) -> Result<TrainingRun> {
        let config = self.config()?;
        let stream = self.stream.into_owned();
        match self.folder {
            None => TrainingRun::begin_in_memory(config, stream),
            Some(folder) if folder.holds_a_run() => resume_like(config, stream, folder),
            Some(folder) => TrainingRun::begin(config, stream, folder),
        }
    }

    /// Trains until the last epoch, or until validation has not improved for `train.patience`
    /// epochs, and gives the best epoch.
    pub fn run(mut self) -> Result<TrainedRun> {
        let unwatched = Box::new(|_: TrainEvent<'_>| ControlFlow::Continue(()));
        let mut watch = std::mem::replace(&mut self.on_progress, unwatched);
        let mut run = self.start()?;
        if run.run(&mut watch)? { run.into_trained() } else { Err(Error::Interrupted) }
    }
}

impl fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Training")
            .field("stream", &self.stream.name)
            .field("model", &self.model)
            .field("keys", &self.keys)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Goes on with the run in a folder, if it is the one that would be begun there.
fn resume_like(config: RunConfig, stream: Stream, folder: RunFolder) -> Result<TrainingRun> {
    let shown = folder.path().display().to_string();
    let run = TrainingRun::resume_with(folder, stream)?;
    let model = config.model.widened_for(run.feature_widths());
    let wanted = RunConfig { data: run.config().data.clone(), model, ..config };
    match difference(&wanted, run.config()) {
        None => Ok(run),
        Some(other) => {
            let remedy = format!("it holds a run with other settings ({other}): name another one");
            Err(Error::setting("folder", shown, remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::EvalScope;
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn stream() -> Stream {
        let config = SyntheticConfig { nodes: 60, events: 600, ..SyntheticConfig::default() };
        Stream::from(generate(&config).expect("a stream"))
    }

    fn training(stream: &Stream) -> Training<'_> {
        let training = Training::new(stream).model("graphmixer").expect("known");
        training.set("train.epochs", 2).set("protocol.step", 50).set("model.layers", 1)
    }

    fn scores(trained: &TrainedRun) -> Vec<u64> {
        let report = trained.evaluate(&EvalScope::default()).expect("evaluated");
        report.results.iter().flat_map(|row| [row.ap.to_bits(), row.auc.to_bits()]).collect()
    }

    #[test]
    fn a_run_in_memory_has_the_numbers_of_one_in_a_folder() {
        let stream = stream();
        let place = tempfile::tempdir().expect("a folder");
        let in_memory = training(&stream).run().expect("trained");
        let in_folder = training(&stream).folder(place.path().join("run")).run().expect("trained");
        assert_eq!(scores(&in_memory), scores(&in_folder));
        // The state after training is used up by the first evaluation, and there again.
        assert_eq!(scores(&in_memory), scores(&in_folder));
        let report = in_memory.evaluate(&EvalScope::default()).expect("evaluated");
        assert_eq!(report.training.expect("epochs are kept").epochs, 2);
    }

    #[test]
    fn training_that_was_interrupted_goes_on_from_its_folder() {
        let stream = stream();
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("run");
        let mut steps = 0;
        let stopped = training(&stream)
            .folder(&folder)
            .on_progress(|_| {
                steps += 1;
                if steps < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .run();
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let resumed = training(&stream).folder(&folder).run().expect("the rest");
        assert_eq!(scores(&resumed), scores(&training(&stream).run().expect("trained")));
        let other = training(&stream).set("train.seed", 9).folder(&folder).run();
        let error = other.err().expect("another run").to_string();
        assert!(error.contains("other settings") && error.contains("train.seed"), "{error}");
    }

    #[test]
    fn what_a_run_is_for_settles_what_the_settings_builder_settles_for_it() {
        let stream = stream();
        let ranking = training(&stream).purpose(Purpose::Ranking).config().expect("known");
        let built = RunConfig::builder(DataConfig::default())
            .model("graphmixer")
            .purpose(Purpose::Ranking)
            .set(&["train.epochs=2", "protocol.step=50", "model.layers=1"].map(String::from))
            .build()
            .expect("known");
        assert_eq!(ranking, built);
        assert_eq!(training(&stream).config().expect("known").purpose, Purpose::Benchmark);
    }

    #[test]
    fn a_run_in_memory_without_an_epoch_has_nothing_to_open() {
        let stream = stream();
        let run = training(&stream).start().expect("begun");
        assert!(run.into_trained().is_err());
    }
}
