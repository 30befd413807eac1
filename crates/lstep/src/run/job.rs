//! Whole jobs: from a dataset and settings to a report.

use super::evaluate::{Watch, evaluate, facts, train_observing};
use super::inspect::Portrait;
use super::report::{EvaluationReport, InspectReport, ResultRow};
use crate::checkpoint::replace;
use crate::error::{Error, Result};
use crate::event::{Clock, Events, Names, Side, Time};
use crate::graph::EventLog;
use crate::model::{Memory, ModelConfig};
use crate::protocol::{
    Asked, Exam, Protocol, Sheet, Strategy, Subject, negatives_sha256, read_negatives, write_negatives,
};
use crate::read::Dataset;
use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The portrait of a dataset with what its file says about itself.
pub fn inspect(dataset: &Dataset) -> InspectReport {
    let time = |place: Option<&Time>| place.map_or(serde_json::Value::Null, |&time| shown(&dataset.clock, time));
    InspectReport {
        dataset: dataset.name.clone(),
        portrait: Portrait::of(&dataset.events, &dataset.node_features),
        first_time: time(dataset.events.times().first()),
        last_time: time(dataset.events.times().last()),
        separate_ids: dataset.names.separated(),
        integer_ids: dataset.names.are_integers(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    }
}

/// A time as JSON would have it: a number where the file has numbers, else text.
fn shown(clock: &Clock, time: Time) -> serde_json::Value {
    let text = clock.show(time);
    serde_json::from_str::<serde_json::Number>(&text).map_or(serde_json::Value::String(text), serde_json::Value::Number)
}

/// A dataset with its log, ready to be asked about.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The dataset's name.
    pub name: String,
    /// Its events.
    pub log: EventLog,
    /// Its nodes' names.
    pub names: Names,
    /// How its times are written.
    pub clock: Clock,
}

impl Stream {
    /// Events in memory, without node features. Nodes are called by their numbers, times are decimals.
    pub fn new(name: impl Into<String>, events: Events) -> Result<Stream> {
        let mut names = Names::default();
        for node in 0..events.node_bound() {
            names.intern_integer(node as i64, Side::Source)?;
        }
        Ok(Stream { name: name.into(), log: EventLog::new(events), names, clock: Clock::Float })
    }
}

impl From<Dataset> for Stream {
    fn from(dataset: Dataset) -> Stream {
        Stream {
            name: dataset.name,
            log: EventLog::new(dataset.events).with_node_features(dataset.node_features),
            names: dataset.names,
            clock: dataset.clock,
        }
    }
}

/// Who takes the exam.
#[derive(Debug, Clone, PartialEq)]
pub enum Contender {
    /// One model for all negatives.
    Fixed(ModelConfig),
    /// EdgeBank with the memory that the published table uses for this dataset and each kind of negatives.
    PublishedEdgeBank {
        /// The dataset's name.
        dataset: String,
    },
}

impl Contender {
    pub(super) fn for_sheet(&self, strategy: Strategy) -> Result<ModelConfig> {
        match self {
            Contender::Fixed(model) => Ok(model.clone()),
            Contender::PublishedEdgeBank { dataset } => {
                Ok(ModelConfig::EdgeBank { memory: Memory::published(dataset, strategy)? })
            }
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Fixed(model) => model.fmt(f),
            Contender::PublishedEdgeBank { .. } => f.write_str("edgebank (published)"),
        }
    }
}

/// An evaluation of models that need no training.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// How to ask.
    pub protocol: Protocol,
    /// What to ask.
    pub asked: Asked,
    /// Whom to ask.
    pub contenders: Vec<Contender>,
    /// A folder to read the negatives from instead of drawing them.
    pub read_negatives: Option<PathBuf>,
    /// A folder to write the negatives to.
    pub write_negatives: Option<PathBuf>,
}

impl Evaluation {
    /// Runs it. `watch` is called with the contender's name and how much of its exam is done.
    pub fn run(&self, stream: &Stream, watch: &dyn Fn(&str, u64, u64)) -> Result<EvaluationReport> {
        let log = &stream.log;
        let subject = Subject { events: log.events(), names: &stream.names };
        let split = self.protocol.split(subject)?;
        let mut exams = self.protocol.exams(subject, &split, &self.asked)?;
        if let Some(folder) = &self.read_negatives {
            exams
                .iter_mut()
                .flat_map(|exam| &mut exam.sheets)
                .try_for_each(|sheet| exchange(sheet, folder, subject))?;
        }
        if let Some(folder) = &self.write_negatives {
            exams.iter().flat_map(|exam| &exam.sheets).try_for_each(|sheet| keep(sheet, folder, subject))?;
        }
        let hash = |sheet: &Sheet| negatives_sha256(sheet, subject.events, subject.names);
        let hashes: Vec<Vec<String>> = exams.iter().map(|exam| exam.sheets.iter().map(hash).collect()).collect();
        let facts = facts(log, &split);
        let mut results = Vec::new();
        for contender in &self.contenders {
            let name = contender.to_string();
            for (exam, hashes) in exams.iter().zip(&hashes) {
                for (model, sheets) in self.groups(contender, exam)? {
                    let mut session = model.open(&facts)?;
                    train_observing(session.as_mut(), log, &split, self.protocol.step())?;
                    let told: &Watch<'_> = &|done, of| watch(&name, done, of);
                    let outcomes = if sheets.len() == exam.sheets.len() {
                        evaluate(session.as_mut(), log, exam, told)?
                    } else {
                        evaluate(session.as_mut(), log, &exam.only(&sheets), told)?
                    };
                    for (outcome, sheet) in outcomes.into_iter().zip(sheets) {
                        let negatives = exam.sheets[sheet].negatives();
                        results.push(ResultRow::new(model.clone(), outcome, hashes[sheet].clone(), negatives));
                    }
                }
            }
        }
        let names: Vec<String> = self.contenders.iter().map(ToString::to_string).collect();
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

    /// The models a contender sends, each with the sheets it answers.
    fn groups(&self, contender: &Contender, exam: &Exam) -> Result<Vec<(ModelConfig, Vec<usize>)>> {
        let mut groups: Vec<(ModelConfig, Vec<usize>)> = Vec::new();
        for (place, sheet) in exam.sheets.iter().enumerate() {
            let model = contender.for_sheet(sheet.strategy)?;
            match groups.iter_mut().find(|group| group.0 == model) {
                Some(group) => group.1.push(place),
                None => groups.push((model, vec![place])),
            }
        }
        Ok(groups)
    }
}

fn exchange(sheet: &mut Sheet, folder: &Path, subject: Subject<'_>) -> Result<()> {
    let path = folder.join(sheet.file_name());
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    let name = path.display().to_string();
    let negatives = read_negatives(&name, BufReader::new(file), sheet, subject.events, subject.names)?;
    sheet.replace_negatives(negatives)
}

fn keep(sheet: &Sheet, folder: &Path, subject: Subject<'_>) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    replace(&folder.join(sheet.file_name()), |out| write_negatives(sheet, subject.events, subject.names, out))
}
