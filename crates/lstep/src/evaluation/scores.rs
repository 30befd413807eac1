//! Models that live elsewhere: the questions of an evaluation as a table, and scores that somebody
//! else gave them.
//!
//! A question is a source, a destination and a time. The table has no labels and its order tells
//! nothing. Scores come back for the same three columns, and are then a model like any other.

use crate::error::{Error, FaultKind, InputFault, Result};
use crate::event::{Clock, Event, Name, Names, NodeId, Side, Time, pair_key};
use crate::graph::{Past, Revealed};
use crate::model::{ModelConfig, ModelKind, Pace, Session, StreamInfo, registry};
use crate::query::{Queries, Scores};
use crate::read::{ColumnData, ColumnType, Picked, each_row, write_table};
use crate::stream::Stream;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use toml::Table;

/// A pair of nodes, and the bits of a time.
type Key = (u64, u64);

fn key(source: NodeId, destination: NodeId, time: Time) -> Key {
    (pair_key(source, destination), time.value().to_bits())
}

/// Keeps what it is asked and answers nothing of use.
#[derive(Debug, Clone, Default)]
pub(super) struct QuestionLog {
    asked: Arc<Mutex<FxHashSet<Key>>>,
}

impl Session for QuestionLog {
    fn pace(&self) -> Pace {
        Pace::Step
    }

    fn score(&self, _: Past<'_>, ask: &Queries) -> Result<Scores> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        for row in ask.rows() {
            asked.extend(row.candidates.iter().map(|&other| key(row.source, other, row.time)));
        }
        Scores::new(ask, vec![0.0; ask.pairs()])
    }

    fn observe(&mut self, _: Revealed<'_>, _: &[Event]) -> Result<()> {
        Ok(())
    }

    fn fork(&self) -> Box<dyn Session> {
        Box::new(self.clone())
    }
}

impl QuestionLog {
    /// Writes all questions, by time and then by node: which of them came true cannot be seen.
    pub fn write(&self, path: &Path, stream: &Stream) -> Result<u64> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked: Vec<(Time, NodeId, NodeId)> = asked
            .iter()
            .map(|&(pair, time)| {
                let time = Time::new(f64::from_bits(time)).expect("it was a time");
                (time, NodeId((pair >> 32) as u32), NodeId(pair as u32))
            })
            .collect();
        asked.sort_unstable_by(|a, b| {
            a.0.value().total_cmp(&b.0.value()).then((a.1, a.2).cmp(&(b.1, b.2)))
        });
        let Stream { names, clock, .. } = stream;
        let integers = names.are_integers();
        let id = if integers { ColumnType::Integer } else { ColumnType::Text };
        // Times are text where they are dates, as the file of events has them.
        let time = match clock {
            Clock::Iso8601 { .. } => ColumnType::Text,
            Clock::Integer { .. } => ColumnType::Integer,
            Clock::Float => ColumnType::Double,
        };
        let columns = [("source", id), ("destination", id), ("time", time)];
        let nodes = |nodes: &mut dyn Iterator<Item = NodeId>| match integers {
            true => ColumnData::Integers(
                nodes
                    .filter_map(|node| match names.name(node) {
                        Name::Integer(number) => Some(number),
                        Name::Text(_) => None,
                    })
                    .collect(),
            ),
            false => ColumnData::Texts(nodes.map(|node| names.name(node).to_string()).collect()),
        };
        write_table(path, &columns, |table| {
            for rows in asked.chunks(1 << 16) {
                let times = rows.iter().map(|row| row.0);
                let times = match clock {
                    Clock::Iso8601 { .. } => {
                        ColumnData::Texts(times.map(|time| clock.show(time)).collect())
                    }
                    Clock::Integer { origin } => ColumnData::Integers(
                        times.map(|time| time.value() as i64 + origin).collect(),
                    ),
                    Clock::Float => ColumnData::Doubles(times.map(Time::value).collect()),
                };
                table.write(vec![
                    nodes(&mut rows.iter().map(|row| row.1)),
                    nodes(&mut rows.iter().map(|row| row.2)),
                    times,
                ])?;
            }
            Ok(())
        })
    }
}

/// Scores that somebody else gave, by source, destination and time.
#[derive(Debug)]
struct ScoreTable {
    path: PathBuf,
    names: Names,
    clock: Clock,
    scores: FxHashMap<Key, f64>,
}

impl ScoreTable {
    fn read(path: &Path, stream: &Stream) -> Result<ScoreTable> {
        let file = path.display().to_string();
        let fault = |line: u64, column: &str, value: &str, problem: &str, remedy: &str| {
            let fault = InputFault::new(&file, problem, remedy.to_string());
            Error::from(fault.line(line).column(column).value(value))
        };
        const COLUMNS: [&str; 4] = ["source", "destination", "time", "score"];
        let pick = |header: &[String]| {
            let place = |name: &&'static str| {
                header.iter().position(|column| column.eq_ignore_ascii_case(name)).ok_or(*name)
            };
            let found: std::result::Result<Vec<usize>, &'static str> =
                COLUMNS.iter().map(place).collect();
            found.map(Picked::columns).map_err(|missing| {
                let problem = format!("has no column {missing} among {}", header.join(", "));
                let remedy = "give the columns of the questions and a column score";
                InputFault::new(&file, problem, remedy).kind(FaultKind::Columns).into()
            })
        };
        let mut scores = FxHashMap::default();
        each_row(path, pick, |line, cells| {
            let node = |place: usize, side| {
                stream.names.find(&cells[place], side).ok_or_else(|| {
                    let remedy = "score the questions as they were written";
                    fault(line, COLUMNS[place], &cells[place], "is a node of no event", remedy)
                })
            };
            let (source, destination) = (node(0, Side::Source)?, node(1, Side::Destination)?);
            let time = stream.clock.parse(&cells[2]).ok_or_else(|| {
                let remedy = "write times as the questions have them";
                fault(line, "time", &cells[2], "is no time of the events", remedy)
            })?;
            let score: Option<f64> = cells[3].parse().ok().filter(|score: &f64| score.is_finite());
            let score = score.ok_or_else(|| {
                fault(line, "score", &cells[3], "is no finite number", "give a number to each row")
            })?;
            match scores.insert(key(source, destination, time), score) {
                Some(before) if before != score => {
                    let problem = format!("is the second score of a question that has {before}");
                    Err(fault(line, "score", &cells[3], &problem, "give each question one score"))
                }
                _ => Ok(()),
            }
        })?;
        let (names, clock) = (stream.names.clone(), stream.clock);
        Ok(ScoreTable { path: path.to_path_buf(), names, clock, scores })
    }
}

/// A table of scores in the place of a model.
#[derive(Clone)]
struct ScoreSession(Arc<ScoreTable>);

impl Session for ScoreSession {
    fn pace(&self) -> Pace {
        Pace::Step
    }

    fn score(&self, _: Past<'_>, ask: &Queries) -> Result<Scores> {
        let ScoreTable { path, names, clock, scores } = &*self.0;
        let mut values = Vec::with_capacity(ask.pairs());
        for row in ask.rows() {
            for &candidate in row.candidates {
                let Some(&score) = scores.get(&key(row.source, candidate, row.time)) else {
                    let problem = format!(
                        "has no score for source {}, destination {} at {}",
                        names.name(row.source),
                        names.name(candidate),
                        clock.show(row.time)
                    );
                    let remedy = "score every question, written with the same settings";
                    return Err(InputFault::new(path.display().to_string(), problem, remedy).into());
                };
                values.push(score);
            }
        }
        Scores::new(ask, values)
    }

    fn observe(&mut self, _: Revealed<'_>, _: &[Event]) -> Result<()> {
        Ok(())
    }

    fn fork(&self) -> Box<dyn Session> {
        Box::new(self.clone())
    }
}

/// The kind of a model of which only the scores are known.
struct ScoredKind {
    name: &'static str,
    /// While an evaluation runs.
    table: Mutex<Option<Arc<ScoreTable>>>,
}

impl ModelKind for ScoredKind {
    type Settings = Table;

    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        "scores from a file"
    }

    fn learns(&self) -> bool {
        false
    }

    fn defaults(&self) -> Table {
        Table::new()
    }

    fn check(&self, _: &Table) -> Result<()> {
        Ok(())
    }

    fn open(&self, _: &Table, _: &StreamInfo) -> Result<Box<dyn Session>> {
        match &*self.table.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(table) => Ok(Box::new(ScoreSession(Arc::clone(table)))),
            None => Err(Error::setting("model", self.name, "its scores are in no file any more")),
        }
    }
}

/// The scores of a file under a name, for as long as they are evaluated.
pub(super) struct Scored {
    kind: &'static ScoredKind,
}

impl Scored {
    /// Reads scores for the questions of a stream.
    pub fn read(name: &str, path: &Path, stream: &Stream) -> Result<Scored> {
        if registry::find(name).is_some() || name == "all" {
            let remedy = "there is a model of that name: choose another";
            return Err(Error::setting("name", name, remedy));
        }
        if name.is_empty() || name.contains(|letter: char| letter.is_control()) {
            return Err(Error::setting("name", format!("{name:?}"), "give it a name to be read"));
        }
        let table = Mutex::new(Some(Arc::new(ScoreTable::read(path, stream)?)));
        // A kind lives as long as the program, as reports may. The scores do not.
        let name: &'static str = Box::leak(name.to_string().into_boxed_str());
        Ok(Scored { kind: Box::leak(Box::new(ScoredKind { name, table })) })
    }

    pub fn model(&self) -> ModelConfig {
        ModelConfig::new(self.kind, Table::new())
    }
}

impl Drop for Scored {
    fn drop(&mut self) {
        *self.kind.table.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
