//! Whole jobs: from a dataset and settings to a report.

use crate::checkpoint::replace;
use crate::error::{Error, Result};
use crate::evaluation::{Watch, evaluate, train_observing};
use crate::model::ModelConfig;
use crate::protocol::{
    EvalPass, EvalScope, Protocol, QuerySet, Strategy, Subject, negatives_sha256, read_negatives,
    write_negatives,
};
use crate::results::{EvaluationReport, ResultRow};
use crate::settings::published;
use crate::stream::Stream;
use crate::stream::info;
use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Who takes the pass.
#[derive(Debug, Clone, PartialEq)]
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

/// An evaluation of models that need no training.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// How to ask.
    pub protocol: Protocol,
    /// What to ask.
    pub asked: EvalScope,
    /// Whom to ask.
    pub models: Vec<EvaluatedModel>,
    /// A folder to read the negatives from instead of drawing them.
    pub read_negatives: Option<PathBuf>,
    /// A folder to write the negatives to.
    pub write_negatives: Option<PathBuf>,
}

impl Evaluation {
    /// Runs it. `watch` is called with the model's name and how much of its pass is done.
    pub fn run(&self, stream: &Stream, watch: &dyn Fn(&str, u64, u64)) -> Result<EvaluationReport> {
        let log = &stream.log;
        let subject = Subject { events: log.events(), names: &stream.names };
        let split = self.protocol.split(subject)?;
        let mut passes = self.protocol.passes(subject, &split, &self.asked)?;
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
        let info = info(log, &split);
        let mut results = Vec::new();
        for model in &self.models {
            let name = model.to_string();
            for (pass, hashes) in passes.iter().zip(&hashes) {
                for (model, query_sets) in self.groups(model, pass)? {
                    let mut session = model.open(&info)?;
                    train_observing(session.as_mut(), log, &split, self.protocol.step())?;
                    let told: &Watch<'_> = &|done, of| watch(&name, done, of);
                    let outcomes = if query_sets.len() == pass.query_sets.len() {
                        evaluate(session.as_mut(), log, pass, told)?
                    } else {
                        evaluate(session.as_mut(), log, &pass.only(&query_sets), told)?
                    };
                    for (outcome, query_set) in outcomes.into_iter().zip(query_sets) {
                        let negatives = pass.query_sets[query_set].negatives();
                        results.push(ResultRow::new(
                            model.clone(),
                            outcome,
                            hashes[query_set].clone(),
                            negatives,
                        ));
                    }
                }
            }
        }
        let names: Vec<String> = self.models.iter().map(ToString::to_string).collect();
        Ok(EvaluationReport {
            dataset: stream.name.clone(),
            nodes: stream.names.len(),
            events: log.len(),
            protocol: self.protocol.name().to_string(),
            protocol_settings: self.protocol.clone(),
            model: names.join(", "),
            results,
            settings: None,
            training: None,
            threads: rayon::current_num_threads(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        })
    }

    /// The models a model sends, each with the query_sets it answers.
    fn groups(
        &self,
        model: &EvaluatedModel,
        pass: &EvalPass,
    ) -> Result<Vec<(ModelConfig, Vec<usize>)>> {
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
