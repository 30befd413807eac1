//! Evaluation as one job: from a stream and models to a report.

use crate::checkpoint::replace;
use crate::error::{Error, Result};
use crate::evaluation::{OpenSession, evaluate, ties, train_observing};
use crate::model::{ModelConfig, StreamInfo};
use crate::protocol::{
    EvalPass, EvalScope, Part, Protocol, QuerySet, Setting, Strategy, StreamProtocol, Subject,
    negatives_sha256, read_negatives, write_negatives,
};
use crate::results::{EvaluationReport, MANY_TIES, ResultRow};
use crate::settings::published;
use crate::stream::Stream;
use crate::stream::info;
use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Which model an evaluation runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EvaluatedModel {
    /// One model for all negatives.
    Fixed(ModelConfig),
    /// A model with the settings behind its published numbers for a dataset and each kind of
    /// negatives.
    Published {
        /// The model.
        model: ModelConfig,
        /// The dataset's name.
        dataset: String,
    },
}

impl From<ModelConfig> for EvaluatedModel {
    fn from(model: ModelConfig) -> EvaluatedModel {
        EvaluatedModel::Fixed(model)
    }
}

impl EvaluatedModel {
    pub(crate) fn for_query_set(&self, strategy: Strategy) -> Result<ModelConfig> {
        match self {
            EvaluatedModel::Fixed(model) => Ok(model.clone()),
            EvaluatedModel::Published { model, dataset } => published(model, dataset, strategy),
        }
    }
}

impl fmt::Display for EvaluatedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluatedModel::Fixed(model) => model.fmt(f),
            EvaluatedModel::Published { model, .. } => write!(f, "{} (published)", model.name()),
        }
    }
}

/// How far an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct EvalProgress<'a> {
    /// The model that is evaluated now.
    pub model: &'a str,
    /// Candidates it has scored in this pass.
    pub done: u64,
    /// Candidates of the pass.
    pub of: u64,
}

/// An evaluation of models that need no training.
///
/// ```
/// use lstep::evaluation::Evaluation;
/// use lstep::protocol::Strategy;
/// # use lstep::read::synthetic::{SyntheticConfig, generate};
/// # use lstep::stream::Stream;
/// # let config = SyntheticConfig { events: 3_000, habits: 0.0, ..SyntheticConfig::default() };
/// # let stream = Stream::from(generate(&config)?);
///
/// let report = Evaluation::new(&stream)
///     .model("edgebank")?
///     .model("poptrack")?
///     .negatives([Strategy::Random, Strategy::Historical])
///     .run()?;
/// assert_eq!(report.results.len(), 4);
/// # Ok::<(), lstep::Error>(())
/// ```
///
/// What is not chosen is usual: the stream protocol, all events of the test part, and random
/// negatives, or the protocol's own.
#[must_use = "an evaluation does nothing until it is run"]
pub struct Evaluation<'a> {
    stream: &'a Stream,
    protocol: Protocol,
    parts: Vec<Part>,
    settings: Vec<Setting>,
    negatives: Option<Vec<Strategy>>,
    models: Vec<EvaluatedModel>,
    read_negatives: Option<PathBuf>,
    write_negatives: Option<PathBuf>,
    on_progress: Box<dyn FnMut(EvalProgress<'_>) -> ControlFlow<()> + 'a>,
}

impl<'a> Evaluation<'a> {
    /// An evaluation on a stream, so far without models.
    pub fn new(stream: &'a Stream) -> Evaluation<'a> {
        Evaluation {
            stream,
            protocol: Protocol::Stream(StreamProtocol::default()),
            parts: vec![Part::Test],
            settings: vec![Setting::Transductive],
            negatives: None,
            models: Vec::new(),
            read_negatives: None,
            write_negatives: None,
            on_progress: Box::new(|_| ControlFlow::Continue(())),
        }
    }

    /// Adds a model by the name that the command line knows it by, such as `edgebank`.
    pub fn model(self, name: &str) -> Result<Evaluation<'a>> {
        let model: ModelConfig = name.parse()?;
        Ok(self.models([model]))
    }

    /// Adds models with settings of their own.
    pub fn models(
        mut self,
        models: impl IntoIterator<Item: Into<EvaluatedModel>>,
    ) -> Evaluation<'a> {
        self.models.extend(models.into_iter().map(Into::into));
        self
    }

    /// How the stream is split, stepped and asked about.
    pub fn protocol(mut self, protocol: impl Into<Protocol>) -> Evaluation<'a> {
        self.protocol = protocol.into();
        self
    }

    /// Which parts of the stream are asked about; the test part if nothing is said.
    pub fn parts(mut self, parts: impl IntoIterator<Item = Part>) -> Evaluation<'a> {
        self.parts = parts.into_iter().collect();
        self
    }

    /// Which events of a part are asked about; all of them, the transductive setting, if nothing is
    /// said.
    pub fn settings(mut self, settings: impl IntoIterator<Item = Setting>) -> Evaluation<'a> {
        self.settings = settings.into_iter().collect();
        self
    }

    /// Against which negatives; random ones if nothing is said, or the protocol's own.
    pub fn negatives(mut self, strategies: impl IntoIterator<Item = Strategy>) -> Evaluation<'a> {
        self.negatives = Some(strategies.into_iter().collect());
        self
    }

    /// Parts, settings and negatives at once.
    pub fn scope(self, scope: EvalScope) -> Evaluation<'a> {
        self.parts(scope.parts).settings(scope.settings).negatives(scope.strategies)
    }

    /// Reads the negatives from the files of a folder instead of drawing them.
    pub fn read_negatives(mut self, folder: impl Into<PathBuf>) -> Evaluation<'a> {
        self.read_negatives = Some(folder.into());
        self
    }

    /// Writes the negatives into a folder.
    pub fn write_negatives(mut self, folder: impl Into<PathBuf>) -> Evaluation<'a> {
        self.write_negatives = Some(folder.into());
        self
    }

    /// Calls a function after every step. [`ControlFlow::Break`] ends the evaluation with
    /// [`Error::Interrupted`].
    pub fn on_progress(
        mut self,
        watch: impl FnMut(EvalProgress<'_>) -> ControlFlow<()> + 'a,
    ) -> Evaluation<'a> {
        self.on_progress = Box::new(watch);
        self
    }

    /// Runs every model through every pass of the protocol.
    pub fn run(mut self) -> Result<EvaluationReport> {
        let stream = self.stream.under(&self.protocol)?;
        let Stream { log, names, .. } = stream.as_ref();
        if self.models.is_empty() {
            return Err(Error::setting("model", "missing", "name at least one model"));
        }
        let scope = EvalScope {
            parts: std::mem::take(&mut self.parts),
            settings: std::mem::take(&mut self.settings),
            strategies: self
                .negatives
                .take()
                .unwrap_or_else(|| vec![self.protocol.own_negatives().unwrap_or(Strategy::Random)]),
        };
        let subject = Subject { events: log.events(), names };
        let plan = self.protocol.plan(subject)?;
        let mut passes = plan.passes(subject, &scope)?;
        if let Some(folder) = &self.read_negatives {
            passes
                .iter_mut()
                .flat_map(|pass| &mut pass.query_sets)
                .try_for_each(|query_set| exchange(query_set, folder, subject))?;
        }
        if let Some(folder) = &self.write_negatives {
            passes
                .iter()
                .flat_map(|pass| &pass.query_sets)
                .try_for_each(|query_set| keep(query_set, folder, subject))?;
        }
        let hash =
            |query_set: &QuerySet| negatives_sha256(query_set, subject.events, subject.names);
        let hashes: Vec<Vec<String>> =
            passes.iter().map(|pass| pass.query_sets.iter().map(hash).collect()).collect();
        let info = info(log, plan.split());
        let mut results = Vec::new();
        for model in &self.models {
            let name = model.to_string();
            let watch = &mut self.on_progress;
            let mut watch = |done, of| watch(EvalProgress { model: &name, done, of });
            for (pass, hashes) in passes.iter().zip(&hashes) {
                for (model, query_sets) in groups(model, pass)? {
                    let mut session = model.open(&info)?;
                    train_observing(session.as_mut(), log, plan.split(), self.protocol.step())?;
                    let outcomes = if query_sets.len() == pass.query_sets.len() {
                        evaluate(session.as_mut(), log, pass, &mut watch)?
                    } else {
                        evaluate(session.as_mut(), log, &pass.only(&query_sets), &mut watch)?
                    };
                    for (outcome, query_set) in outcomes.into_iter().zip(query_sets) {
                        let hash = hashes[query_set].clone();
                        let negatives = pass.query_sets[query_set].negatives();
                        results.push(ResultRow::new(model.clone(), outcome, hash, negatives));
                    }
                }
            }
        }
        let usual = self.protocol.own_negatives().unwrap_or(Strategy::Random);
        let opened = |model: &EvaluatedModel| {
            let model = model.for_query_set(usual)?;
            Ok(move |info: &StreamInfo| model.open(info))
        };
        let opened = self.models.iter().map(opened).collect::<Result<Vec<_>>>()?;
        let named: Vec<(String, &OpenSession<'_>)> = (self.models.iter().zip(&opened))
            .map(|(model, opened)| (model.to_string(), opened as &OpenSession<'_>))
            .collect();
        let watch = &mut self.on_progress;
        let mut watch = |done, of| watch(EvalProgress { model: "order of ties", done, of });
        let ties = ties(&stream, &self.protocol, &named, MANY_TIES, &mut watch)?;
        let models: Vec<String> = self.models.iter().map(ToString::to_string).collect();
        Ok(EvaluationReport {
            model: models.join(", "),
            results,
            ties,
            ..EvaluationReport::about(self.stream, &self.protocol)
        })
    }
}

impl fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("stream", &self.stream.name)
            .field("protocol", &self.protocol)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// The models behind a model, each with the query sets it answers.
fn groups(model: &EvaluatedModel, pass: &EvalPass) -> Result<Vec<(ModelConfig, Vec<usize>)>> {
    let mut groups: Vec<(ModelConfig, Vec<usize>)> = Vec::new();
    for (place, query_set) in pass.query_sets.iter().enumerate() {
        let model = model.for_query_set(query_set.strategy)?;
        match groups.iter_mut().find(|group| group.0 == model) {
            Some(group) => group.1.push(place),
            None => groups.push((model, vec![place])),
        }
    }
    Ok(groups)
}

fn exchange(query_set: &mut QuerySet, folder: &Path, subject: Subject<'_>) -> Result<()> {
    let path = folder.join(query_set.file_name());
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    let name = path.display().to_string();
    let negatives =
        read_negatives(&name, BufReader::new(file), query_set, subject.events, subject.names)?;
    query_set.replace_negatives(negatives)
}

fn keep(query_set: &QuerySet, folder: &Path, subject: Subject<'_>) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    replace(&folder.join(query_set.file_name()), |out| {
        write_negatives(query_set, subject.events, subject.names, out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn stream() -> Stream {
        let config = SyntheticConfig { nodes: 60, events: 900, ..SyntheticConfig::default() };
        Stream::from(generate(&config).expect("a stream"))
    }

    #[test]
    fn an_evaluation_ends_when_the_watcher_breaks() {
        let stream = stream();
        let mut calls = 0;
        let ended = Evaluation::new(&stream)
            .model("edgebank")
            .expect("known")
            .protocol(StreamProtocol {
                step: crate::protocol::StepRule::Events(10),
                ..Default::default()
            })
            .on_progress(|progress| {
                assert!(progress.done <= progress.of);
                calls += 1;
                if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .run();
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
        assert_eq!(calls, 3);
    }

    #[test]
    fn an_evaluation_without_models_is_refused() {
        assert!(Evaluation::new(&stream()).run().is_err());
        assert!(Evaluation::new(&stream()).model("no such model").is_err());
    }
}
