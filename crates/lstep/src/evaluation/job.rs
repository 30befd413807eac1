//! Evaluation as one job: from a stream and models to a report.

use crate::checkpoint::replace;
use crate::error::{Error, Result};
use crate::evaluation::scores::{QuestionLog, Scored};
use crate::evaluation::{
    OpenSession, ScoreLog, against, evaluate, evaluate_recording, ties, train_observing, unwatched,
};
use crate::model::{ModelConfig, StreamInfo};
use crate::protocol::{
    EvalPass, EvalScope, Part, Plan, Protocol, QuerySet, Setting, Strategy, StreamProtocol,
    Subject, negatives_sha256, read_negatives, write_negatives,
};
use crate::results::{AgainstCounting, EvaluationReport, MANY_TIES, ResultRow};
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
    scores: Vec<(String, PathBuf)>,
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
            scores: Vec::new(),
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

    /// Adds a model of which only the scores are known: a table with the columns `source`,
    /// `destination`, `time` and `score`, for all that [`Evaluation::write_questions`] wrote.
    pub fn scores(mut self, name: &str, path: impl Into<PathBuf>) -> Evaluation<'a> {
        self.scores.push((name.to_string(), path.into()));
        self
    }

    /// Writes all questions of the evaluation to a table with the columns `source`, `destination`
    /// and `time`, in the format of its name, and gives how many there are. Nothing tells which of
    /// them came true.
    pub fn write_questions(mut self, path: impl AsRef<Path>) -> Result<u64> {
        let source: &'a Stream = self.stream;
        let protocol = self.protocol.clone();
        let stream = source.under(&protocol)?;
        let (_, passes) = self.passes(&stream)?;
        let mut asked = QuestionLog::default();
        for pass in &passes {
            evaluate(&mut asked, &stream.log, pass, &mut unwatched)?;
        }
        asked.write(path.as_ref(), &stream)
    }

    /// The split and the passes that ask everything, with the negatives of files where there are
    /// any.
    fn passes(&mut self, stream: &Stream) -> Result<(Plan, Vec<EvalPass>)> {
        let scope = EvalScope {
            parts: std::mem::take(&mut self.parts),
            settings: std::mem::take(&mut self.settings),
            strategies: self
                .negatives
                .take()
                .unwrap_or_else(|| vec![self.protocol.own_negatives().unwrap_or(Strategy::Random)]),
        };
        let subject = Subject { events: stream.log.events(), names: &stream.names };
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
        Ok((plan, passes))
    }

    /// Runs every model through every pass of the protocol.
    pub fn run(mut self) -> Result<EvaluationReport> {
        let source: &'a Stream = self.stream;
        let protocol = self.protocol.clone();
        let stream = source.under(&protocol)?;
        let Stream { log, names, .. } = stream.as_ref();
        let scored = std::mem::take(&mut self.scores);
        let scored: Vec<Scored> = scored
            .iter()
            .map(|(name, path)| Scored::read(name, path, &stream))
            .collect::<Result<_>>()?;
        if self.models.is_empty() && scored.is_empty() {
            return Err(Error::setting("model", "missing", "name at least one model"));
        }
        let subject = Subject { events: log.events(), names };
        let (plan, passes) = self.passes(&stream)?;
        let hash =
            |query_set: &QuerySet| negatives_sha256(query_set, subject.events, subject.names);
        let hashes: Vec<Vec<String>> =
            passes.iter().map(|pass| pass.query_sets.iter().map(hash).collect()).collect();
        let info = info(log, plan.split());
        let mut results = Vec::new();
        // Scores are kept only where somebody's are compared.
        let mut records: Vec<ScoreLog> = Vec::new();
        let own: Vec<EvaluatedModel> =
            scored.iter().map(|scored| EvaluatedModel::Fixed(scored.model())).collect();
        for model in self.models.iter().chain(&own) {
            let name = model.to_string();
            let watch = &mut self.on_progress;
            let mut watch = |done, of| watch(EvalProgress { model: &name, done, of });
            for (pass, hashes) in passes.iter().zip(&hashes) {
                for (model, query_sets) in groups(model, pass)? {
                    let mut session = model.open(&info)?;
                    train_observing(session.as_mut(), log, plan.split(), self.protocol.step())?;
                    let some;
                    let asked = if query_sets.len() == pass.query_sets.len() {
                        pass
                    } else {
                        some = pass.only(&query_sets);
                        &some
                    };
                    let mut kept = match scored.is_empty() {
                        true => Vec::new(),
                        false => ScoreLog::of_pass(asked),
                    };
                    let session = session.as_mut();
                    let outcomes = evaluate_recording(session, log, asked, &mut watch, &mut kept)?;
                    records.extend(kept);
                    for (outcome, query_set) in outcomes.into_iter().zip(query_sets) {
                        let hash = hashes[query_set].clone();
                        let negatives = pass.query_sets[query_set].negatives();
                        results.push(ResultRow::new(model.clone(), outcome, hash, negatives));
                    }
                }
            }
        }
        let against_counting = against_others(&results, &records, &own);
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
        let models: Vec<String> = self.models.iter().chain(&own).map(ToString::to_string).collect();
        Ok(EvaluationReport {
            model: models.join(", "),
            results,
            against_counting,
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

/// For each query set of a model of which only the scores are known, the best of the other models
/// and how far it is from that one.
fn against_others(
    results: &[ResultRow],
    records: &[ScoreLog],
    own: &[EvaluatedModel],
) -> Vec<AgainstCounting> {
    let is_own = |row: &ResultRow| own.contains(&EvaluatedModel::Fixed(row.model.clone()));
    let rows = || results.iter().zip(records);
    let compared = rows().filter(|(row, _)| is_own(row)).filter_map(|(row, record)| {
        let question = |row: &ResultRow| (row.part, row.setting, row.negatives);
        let others = rows().filter(|(other, _)| !is_own(other) && question(other) == question(row));
        let (rival, rivals) =
            others.max_by(|a, b| a.0.headline().1.total_cmp(&b.0.headline().1))?;
        against((row, record), (rival, rivals))
    });
    compared.collect()
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
