//! From TGB's files and rule to passes over the stream.

use super::{Generator, TgbColumns};
use crate::disk::path_text;
use crate::error::{Error, InputFault, Result};
use crate::event::{Names, NodeId};
use crate::protocol::negative::evenly;
use crate::protocol::numbered::Numbered;
use crate::protocol::step::by_events;
use crate::protocol::{
    DEFAULT_SPLIT, DEFAULT_STEP, EvalPass, EvalScope, Negatives, Part, QuerySet, Setting, Split,
    StepRule, Strategy, Subject, Ties, Visibility, cut,
};
use crate::read::pickle::{self, NegativeLists};
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

/// The Temporal Graph Benchmark's protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TgbProtocol {
    /// Events in a step, at least 1. 200 in the benchmark's examples.
    #[serde(deserialize_with = "by_events")]
    pub step: u32,
    /// What questions may see. The leaderboard holds results of `step` and of `event`, which are
    /// not comparable.
    pub visibility: Visibility,
    /// Negatives for each event where they are generated, at least 1; as many as there are if there
    /// are fewer.
    pub per_event: usize,
    /// At most this many events of a part are asked, spread evenly over it; all of them if absent,
    /// as in the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<usize>,
    /// The dataset's name, with which its files begin.
    pub dataset: String,
    /// Folder with the benchmark's own negatives, `NAME_val_ns.pkl` and `NAME_test_ns.pkl`, perhaps
    /// with a version.
    #[serde(default, with = "path_text::option")]
    pub folder: Option<PathBuf>,
    /// The order of events that share a time. The benchmark's is that of the file.
    #[serde(default, skip_serializing_if = "Ties::is_file")]
    pub ties: Ties,
}

/// Negatives per event that the benchmark asks for; for tgbl-wiki and tgbl-lastfm that is all there
/// are.
const PER_EVENT: [(&str, usize); 9] = [
    ("tgbl-wiki", 12_000),
    ("tgbl-review", 100),
    ("tgbl-coin", 20),
    ("tgbl-comment", 20),
    ("tgbl-flight", 20),
    ("tgbl-enron", 1_000),
    ("tgbl-uci", 1_000),
    ("tgbl-subreddit", 1_000),
    ("tgbl-lastfm", 2_000),
];

impl TgbProtocol {
    /// The benchmark's settings for a dataset, and 100 negatives an event for one that it does not
    /// have.
    pub fn for_dataset(dataset: &str, folder: Option<PathBuf>) -> TgbProtocol {
        let per_event =
            PER_EVENT.iter().find(|known| known.0 == dataset).map_or(100, |known| known.1);
        TgbProtocol {
            step: DEFAULT_STEP,
            visibility: Visibility::Step,
            per_event,
            questions: None,
            dataset: dataset.to_string(),
            folder,
            ties: Ties::File,
        }
    }

    /// Whether a dataset is one of the benchmark's, by its name.
    pub fn has(dataset: &str) -> bool {
        dataset.starts_with("tgbl-")
    }

    /// The split: time quantiles, and no node is held out.
    pub fn split(&self, subject: Subject<'_>) -> Result<Split> {
        Split::chronological(subject.events, DEFAULT_SPLIT.0, DEFAULT_SPLIT.1)
    }

    /// One pass over validation and test, as the stream runs on, or validation alone.
    pub fn passes(
        &self,
        subject: Subject<'_>,
        split: &Split,
        asked: &EvalScope,
    ) -> Result<Vec<EvalPass>> {
        if self.step == 0 || self.per_event == 0 || self.questions == Some(0) {
            return Err(Error::setting("step, per-event or questions", 0, "each is at least 1"));
        }
        if asked.settings != [Setting::Transductive] {
            return Err(Error::setting(
                "setting",
                "inductive",
                "the benchmark asks about all events only",
            ));
        }
        let numbered = Columned::new(subject);
        let steps_of = |part| {
            cut(subject.events, split.range(part), StepRule::Events(self.step), self.visibility)
        };
        let validation = steps_of(Part::Validation);
        let test =
            if asked.parts.contains(&Part::Test) { steps_of(Part::Test) } else { Vec::new() };
        let mut query_sets = Vec::new();
        for (part, lists) in self.lists(&numbered, split, &asked.parts)? {
            let range = split.range(part);
            let mut chosen = evenly(self.questions.unwrap_or(range.len()), range.len());
            let numbers: Vec<u32> = range.filter(|_| chosen()).collect();
            let mut negatives = numbered.negatives(&lists, numbers.iter().copied())?;
            negatives.generated = self.file(part).is_none() && !numbered.asks_all(self.per_event);
            let steps = [(Part::Validation, &validation), (Part::Test, &test)].into_iter();
            let asked = steps.flat_map(|(of, steps)| {
                let numbers = if of == part { &numbers[..] } else { &[] };
                steps.iter().map(|step| {
                    let place = |number| numbers.partition_point(|&asked| asked < number);
                    numbers[place(step.start)..place(step.end)].to_vec()
                })
            });
            query_sets.push(QuerySet::new(
                part,
                Setting::Transductive,
                Strategy::Tgb,
                asked,
                negatives,
            )?);
        }
        let steps = validation.iter().chain(&test).map(|step| step.clone().collect());
        Ok(vec![EvalPass::new(steps, query_sets, self.visibility, false)?])
    }

    /// The negatives of validation and test by the benchmark's rule, whatever its files say.
    pub fn generate(&self, subject: Subject<'_>) -> Result<[NegativeLists; 2]> {
        let made = TgbProtocol { folder: None, ..self.clone() };
        let lists = made.lists(
            &Columned::new(subject),
            &self.split(subject)?,
            &[Part::Validation, Part::Test],
        )?;
        Ok(<[(Part, NegativeLists); 2]>::try_from(lists)
            .expect("two parts were asked for")
            .map(|(_, list)| list))
    }

    /// The file of the benchmark's own negatives of a part, if there is one.
    pub fn file(&self, part: Part) -> Option<PathBuf> {
        self.folder.as_deref().and_then(|folder| negatives_file(folder, &self.dataset, part))
    }

    /// The benchmark's own lists for each part asked about, or ones made by its rule where it has
    /// none.
    fn lists(
        &self,
        numbered: &Columned,
        split: &Split,
        parts: &[Part],
    ) -> Result<Vec<(Part, NegativeLists)>> {
        let mut lists = Vec::new();
        let mut made = None;
        for &part in parts {
            let list = match self.file(part) {
                Some(path) => pickle::read(path)?,
                None => {
                    // One stream of draws runs through both parts, so both are made.
                    let (validation, test) = match made.take() {
                        Some(both) => both,
                        None => {
                            let mut generator = numbered.generator(split, self.per_event)?;
                            let mut next =
                                |part| generator.next_part(numbered.columns(split.range(part)));
                            (next(Part::Validation)?, next(Part::Test)?)
                        }
                    };
                    let list =
                        if part == Part::Validation { validation.clone() } else { test.clone() };
                    made = Some((validation, test));
                    list
                }
            };
            lists.push((part, list));
        }
        Ok(lists)
    }
}

/// The file of a part's negatives in a folder, whatever its version.
fn negatives_file(folder: &Path, dataset: &str, part: Part) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let start = format!("{dataset}_{}_ns", if part == Part::Validation { "val" } else { "test" });
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            name.starts_with(&start) && name.ends_with(".pkl")
        })
        .collect();
    files.sort();
    files.pop()
}

/// The stream with the ids and whole times that TGB gives it.
struct Columned {
    numbered: Numbered,
    times: Vec<i64>,
}

impl Columned {
    fn new(subject: Subject<'_>) -> Columned {
        let times = subject.events.times().iter().map(|time| time.value() as i64).collect();
        let mut columned = Columned { numbered: Numbered::new(subject, Names::tgb_number), times };
        // The rule draws any number between two destinations. The benchmark's own ids have no gaps
        // there; others are closed up.
        if !columned.destinations().all(|id| columned.numbered.nodes.contains_key(&id)) {
            columned.numbered = Numbered::closed_up(subject, Names::tgb_number);
        }
        columned
    }

    /// All numbers from the least destination to the largest.
    fn destinations(&self) -> RangeInclusive<i64> {
        let least = self.numbered.destinations.iter().min().copied().unwrap_or(0);
        least..=self.numbered.destinations.iter().max().copied().unwrap_or(0)
    }

    /// Whether the rule asks about every destination whatever it draws, as it does on tgbl-wiki: a
    /// list made here is then the benchmark's own.
    fn asks_all(&self, per_event: usize) -> bool {
        // Half of a list are destinations of the source's past.
        self.destinations().take(per_event / 2 + 1).count() <= per_event / 2
    }

    fn columns(&self, range: Range<u32>) -> TgbColumns<'_> {
        let range = range.start as usize..range.end as usize;
        TgbColumns {
            sources: &self.numbered.sources[range.clone()],
            destinations: &self.numbered.destinations[range.clone()],
            times: &self.times[range],
        }
    }

    fn generator(&self, split: &Split, per_event: usize) -> Result<Generator> {
        Generator::new(self.columns(split.train.clone()), self.destinations(), per_event)
    }

    fn negatives(
        &self,
        lists: &NegativeLists,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Negatives> {
        let mut negatives = Negatives::of_destinations();
        for number in numbers {
            let place = number as usize;
            let (source, destination, time) = (
                self.numbered.sources[place],
                self.numbered.destinations[place],
                self.times[place],
            );
            let fault = |problem: String| {
                InputFault::new(
                    "TGB's negatives",
                    problem,
                    "use the file of this dataset and version, or none",
                )
            };
            let list = lists.of(source, destination, time).ok_or_else(|| {
                fault(format!("have no list for event {number}, ({source}, {destination}, {time})"))
            })?;
            let nodes: Result<Vec<NodeId>> = list
                .iter()
                .map(|id| {
                    let unknown = || {
                        fault(format!(
                            "name node {id} for event {number}, which the stream does not have"
                        ))
                    };
                    self.numbered.nodes.get(id).copied().ok_or_else(|| unknown().into())
                })
                .collect();
            negatives.push_destinations(nodes?);
        }
        Ok(negatives)
    }
}
