//! The likeliest destinations of many sources at once: `k` for each, batch after batch.
//!
//! Every source is scored against every candidate at one time. Pairs are asked in square tiles, so
//! that models which encode a node once per call encode it for many pairs. What is held in memory
//! is one batch, however many sources there are.

use super::explain::{Explainer, Explanation};
use super::scorer::Scorer;
use crate::error::{Error, Result};
use crate::event::{Name, Names, NodeId, NodeSet, Side, Time};
use crate::graph::Seed;
use crate::query::Queries;
use crate::read::{ColumnData, ColumnType, write_table};
use crate::results::Calibration;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

/// Pairs that are scored before their best are kept and the rest is forgotten. With 36 bytes for
/// each in flight, about 20 MB.
const PAIRS: usize = 1 << 19;

/// Sources and candidates on a side of a tile. A tile of 256 pairs is what L-STEP takes at once,
/// and has 32 nodes to encode instead of 257.
const TILE: usize = 16;

/// Sources whose tiles follow each other for one tile of candidates: models that take more at once
/// see 64 sources with the same candidates.
const GROUP: usize = 64;

/// Which destinations are wanted, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopK {
    /// How many destinations for each source.
    pub k: usize,
    /// The sources; all that have been a source if absent. One that no event names is a newcomer.
    pub sources: Option<Vec<String>>,
    /// The candidates; all that have been a destination if absent.
    pub candidates: Option<Vec<String>>,
    /// The time asked about, as the events write times; just after the last event if absent.
    pub at: Option<String>,
    /// Whether partners that a source has met already are left out.
    pub exclude_known: bool,
    /// Whether to say why, from the log.
    pub explain: bool,
}

impl Default for TopK {
    fn default() -> TopK {
        TopK {
            k: 10,
            sources: None,
            candidates: None,
            at: None,
            exclude_known: false,
            explain: false,
        }
    }
}

/// A [`TopK`] whose names and time have been found, ready to be answered.
pub struct Recommender<'a> {
    scorer: &'a Scorer,
    names: Cow<'a, Names>,
    sources: Vec<NodeId>,
    candidates: Vec<NodeId>,
    time: Time,
    k: usize,
    exclude_known: bool,
    explainer: Option<Explainer<'a>>,
}

/// One of the likeliest destinations of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// Who would act.
    pub source: NodeId,
    /// The place of the destination, from 1.
    pub rank: u32,
    /// With whom.
    pub destination: NodeId,
    /// The model's score; higher is likelier. Only the order counts.
    pub score: f64,
    /// How likely the source's event at the time asked is with this destination and no other, if
    /// the model is calibrated.
    pub probability: Option<f64>,
    /// Whether events name both; one that none names is scored as a newcomer.
    pub known: bool,
    /// Why, if that was asked.
    pub why: Option<Explanation>,
}

/// What a file of recommendations holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommended {
    /// Sources that were asked about.
    pub sources: usize,
    /// Those of them that no event names.
    pub new_sources: usize,
    /// Sources for which no candidate was left.
    pub without_any: usize,
    /// Candidates.
    pub candidates: usize,
    /// Pairs that were scored.
    pub pairs: u64,
    /// Rows that were written.
    pub rows: u64,
    /// The time asked about.
    pub at: String,
}

impl Scorer {
    /// Gets ready to tell the likeliest destinations of many sources.
    ///
    /// # Errors
    ///
    /// If the time cannot be read or is not after everything that was observed, or if there is
    /// nobody to ask about.
    pub fn recommender(&self, wanted: &TopK) -> Result<Recommender<'_>> {
        let (bundle, time) = (self.bundle(), self.time_asked(wanted.at.as_deref())?);
        if wanted.k == 0 {
            return Err(Error::setting("top", 0, "ask for at least one destination"));
        }
        let mut names = Cow::Borrowed(bundle.names());
        let mut nodes = |ids: &[String], side| {
            ids.iter()
                .map(|id| match names.find(id, side) {
                    Some(node) => Ok(node),
                    None => names.to_mut().intern(id, side),
                })
                .collect::<Result<Vec<NodeId>>>()
        };
        let sources = wanted.sources.as_deref().map(|ids| nodes(ids, Side::Source)).transpose()?;
        let candidates =
            wanted.candidates.as_deref().map(|ids| nodes(ids, Side::Destination)).transpose()?;
        let events = bundle.live.log().events();
        let all_sources = || events.sources().iter().copied().collect::<NodeSet>().iter().collect();
        let sources = sources.unwrap_or_else(all_sources);
        let mut candidates =
            candidates.unwrap_or_else(|| bundle.destinations.iter().collect::<Vec<NodeId>>());
        // Equal scores keep this order, so it does not depend on the order of a file.
        candidates.sort_unstable();
        candidates.dedup();
        let explainer = wanted.explain.then(|| Explainer::new(bundle, time));
        Ok(Recommender {
            scorer: self,
            names,
            sources,
            candidates,
            time,
            k: wanted.k,
            exclude_known: wanted.exclude_known,
            explainer,
        })
    }
}

impl Recommender<'_> {
    /// The names of all nodes that answers speak of, newcomers included.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The sources in the order of the answers.
    pub fn sources(&self) -> &[NodeId] {
        &self.sources
    }

    /// The candidates.
    pub fn candidates(&self) -> &[NodeId] {
        &self.candidates
    }

    /// The time asked about, as the events write times.
    pub fn at(&self) -> String {
        self.scorer.bundle().clock().show(self.time)
    }

    /// Answers, source after source in the order of [`Recommender::sources`], the likeliest
    /// destination first. `take` gets the answers of some sources and how many sources these are.
    ///
    /// A source is no candidate for itself unless it has met itself.
    pub fn run(
        &self,
        mut take: impl FnMut(usize, Vec<Recommendation>) -> Result<()>,
    ) -> Result<()> {
        let width = self.candidates.len();
        let batch = (PAIRS / width.max(1)).clamp(1, 1 << 14);
        // Whole groups of sources make whole tiles.
        let batch = if batch > GROUP { batch / GROUP * GROUP } else { batch };
        let mut ask = Queries::new();
        let mut scores = vec![0.0; batch.min(self.sources.len()) * width];
        for sources in self.sources.chunks(batch) {
            self.score(sources, &mut ask, &mut scores)?;
            let found: Vec<Vec<Recommendation>> = sources
                .par_iter()
                .zip(scores.par_chunks(width.max(1)))
                .map(|(&source, scores)| self.best(source, scores))
                .collect();
            take(sources.len(), found.into_iter().flatten().collect())?;
        }
        Ok(())
    }

    /// Writes all answers to a file, in the format of its name. `watch` is told how many sources
    /// are done, after every batch.
    ///
    /// Columns: `source`, `rank`, `destination`, `score`, `probability` if the model is calibrated,
    /// `known`, and with explanations `met`, `recent_sources` and `why`.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        mut watch: impl FnMut(usize) -> Result<()>,
    ) -> Result<Recommended> {
        let id = match self.names.are_integers() {
            true => ColumnType::Integer,
            false => ColumnType::Text,
        };
        let mut columns = vec![
            ("source", id),
            ("rank", ColumnType::Integer),
            ("destination", id),
            ("score", ColumnType::Double),
        ];
        columns.extend(self.curve().map(|_| ("probability", ColumnType::Double)));
        columns.push(("known", ColumnType::Boolean));
        if self.explainer.is_some() {
            columns.extend([
                ("met", ColumnType::Integer),
                ("recent_sources", ColumnType::Integer),
                ("why", ColumnType::Text),
            ]);
        }
        let (mut done, mut answered) = (0, 0);
        let rows = write_table(path, &columns, |table| {
            self.run(|sources, found| {
                answered += found.iter().filter(|row| row.rank == 1).count();
                table.write(self.columns_of(&found))?;
                done += sources;
                watch(done)
            })
        })?;
        let known = self.scorer.bundle().names().len();
        Ok(Recommended {
            sources: self.sources.len(),
            new_sources: self.sources.iter().filter(|node| node.index() >= known).count(),
            without_any: self.sources.len() - answered,
            candidates: self.candidates.len(),
            pairs: self.sources.len() as u64 * self.candidates.len() as u64,
            rows,
            at: self.at(),
        })
    }

    /// From scores to probabilities, if the model has such a curve.
    fn curve(&self) -> Option<&Calibration> {
        self.scorer.bundle().about().calibration.as_ref()
    }

    /// Scores some sources against all candidates: a row of scores for each source.
    fn score(&self, sources: &[NodeId], ask: &mut Queries, scores: &mut [f64]) -> Result<()> {
        let width = self.candidates.len();
        ask.clear();
        each_row_of_tiles(sources.len(), width, |source, from, to| {
            let candidates = self.candidates[from..to].iter().copied();
            ask.push(sources[source], self.time, candidates);
        });
        let found = self.scorer.bundle().live.score(ask)?;
        let mut rest = found.values();
        each_row_of_tiles(sources.len(), width, |source, from, to| {
            let (row, later) = rest.split_at(to - from);
            scores[source * width + from..source * width + to].copy_from_slice(row);
            rest = later;
        });
        Ok(())
    }

    /// The best of a source's candidates.
    fn best(&self, source: NodeId, scores: &[f64]) -> Vec<Recommendation> {
        let bundle = self.scorer.bundle();
        let log = bundle.live.log();
        let met: FxHashSet<NodeId> = log
            .past(log.len() as u32)
            .history(Seed::new(source, self.time))
            .iter()
            .map(|neighbour| neighbour.node())
            .collect();
        let wanted = |candidate: NodeId| match met.contains(&candidate) {
            true => !self.exclude_known,
            false => candidate != source,
        };
        let mut best: BinaryHeap<Reverse<Place>> = BinaryHeap::with_capacity(self.k.min(1024) + 1);
        for (&score, &node) in scores.iter().zip(&self.candidates) {
            let place = Place { score, node };
            if best.len() == self.k {
                let worst = best.peek().expect("k is at least 1");
                if place < worst.0 || !wanted(node) {
                    continue;
                }
                best.pop();
            } else if !wanted(node) {
                continue;
            }
            best.push(Reverse(place));
        }
        let known = |node: NodeId| node.index() < bundle.names().len();
        let ranked = best.into_sorted_vec().into_iter().zip(1..);
        ranked
            .map(|(Reverse(Place { score, node }), rank)| Recommendation {
                source,
                rank,
                destination: node,
                score,
                probability: self.curve().map(|curve| curve.probability(score)),
                known: known(source) && known(node),
                why: self.explainer.as_ref().map(|explainer| explainer.explain(source, node)),
            })
            .collect()
    }

    /// Answers as columns of a table.
    fn columns_of(&self, found: &[Recommendation]) -> Vec<ColumnData> {
        let ids = |node: fn(&Recommendation) -> NodeId| match self.names.are_integers() {
            true => ColumnData::Integers(
                found
                    .iter()
                    .map(|row| match self.names.name(node(row)) {
                        Name::Integer(number) => number,
                        Name::Text(_) => unreachable!("all ids are integers"),
                    })
                    .collect(),
            ),
            false => ColumnData::Texts(
                found.iter().map(|row| self.names.name(node(row)).to_string()).collect(),
            ),
        };
        let mut columns = vec![
            ids(|row| row.source),
            ColumnData::Integers(found.iter().map(|row| i64::from(row.rank)).collect()),
            ids(|row| row.destination),
            ColumnData::Doubles(found.iter().map(|row| row.score).collect()),
        ];
        if self.curve().is_some() {
            let said = found.iter().filter_map(|row| row.probability);
            columns.push(ColumnData::Doubles(said.collect()));
        }
        columns.push(ColumnData::Booleans(found.iter().map(|row| row.known).collect()));
        if self.explainer.is_some() {
            let why = || found.iter().filter_map(|row| row.why.as_ref());
            columns.extend([
                ColumnData::Integers(why().map(|why| i64::from(why.met)).collect()),
                ColumnData::Integers(why().map(|why| i64::from(why.recent_sources)).collect()),
                ColumnData::Texts(why().map(|why| why.words.clone()).collect()),
            ]);
        }
        columns
    }
}

/// Goes over a table of sources and candidates tile by tile; `row` gets a source and a range of
/// candidates.
fn each_row_of_tiles(sources: usize, width: usize, mut row: impl FnMut(usize, usize, usize)) {
    for group in (0..sources).step_by(GROUP) {
        let group_end = sources.min(group + GROUP);
        for from in (0..width).step_by(TILE) {
            let to = width.min(from + TILE);
            (group..group_end).for_each(|source| row(source, from, to));
        }
    }
}

/// A candidate among others: better if its score is higher, or equal and it comes first.
#[derive(Debug, Clone, Copy)]
struct Place {
    score: f64,
    node: NodeId,
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        self.score.total_cmp(&other.score).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::fixture;

    fn answers(scorer: &Scorer, wanted: &TopK) -> Vec<Recommendation> {
        let mut all = Vec::new();
        let recommender = scorer.recommender(wanted).expect("ready");
        let run = recommender.run(|_, found| {
            all.extend(found);
            Ok(())
        });
        run.expect("answered");
        all
    }

    #[test]
    fn the_best_of_many_sources_are_those_of_sorting_all_scores() {
        for model in ["lstep-pair", "jodie"] {
            let scorer = Scorer::from(fixture::bundle(model));
            let log = scorer.bundle().live.log();
            let all = answers(&scorer, &TopK { k: 4, ..TopK::default() });
            let recommender = scorer.recommender(&TopK::default()).expect("ready");
            assert_eq!(all.len(), 4 * recommender.sources().len());
            for rows in all.chunks(4) {
                let source = rows[0].source;
                let history = log.past(u32::MAX).history(Seed::new(source, recommender.time));
                let met_itself = history.iter().any(|neighbour| neighbour.node() == source);
                let mut ask = Queries::new();
                let others = recommender.candidates().iter().copied();
                let others: Vec<NodeId> =
                    others.filter(|&node| node != source || met_itself).collect();
                ask.push(source, recommender.time, others.iter().copied());
                let scores = scorer.bundle().live.score(&ask).expect("scored");
                let mut plain: Vec<(f64, NodeId)> =
                    scores.values().iter().copied().zip(others).collect();
                plain.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let found: Vec<(f64, NodeId)> =
                    rows.iter().map(|row| (row.score, row.destination)).collect();
                assert_eq!(found, plain[..4], "{model}, source {source:?}");
                assert!(rows.iter().zip(1..).all(|(row, rank)| row.rank == rank && row.known));
            }
        }
    }

    #[test]
    fn partners_that_were_met_can_be_left_out() {
        let scorer = Scorer::from(fixture::bundle("lstep-pair"));
        let log = scorer.bundle().live.log();
        let wanted = TopK { k: 30, exclude_known: true, ..TopK::default() };
        for row in answers(&scorer, &wanted) {
            let seed = Seed::new(row.source, Time::new(1e6).expect("finite"));
            let mut history = log.past(u32::MAX).history(seed).iter();
            assert!(history.all(|neighbour| neighbour.node() != row.destination), "{row:?}");
        }
    }

    #[test]
    fn newcomers_are_answered_and_marked() {
        let scorer = Scorer::from(fixture::bundle("lstep-pair"));
        let ids = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
        let wanted = TopK {
            k: 2,
            sources: ids(&["3", "zoe"]),
            candidates: ids(&["7", "8", "never"]),
            ..TopK::default()
        };
        let found = answers(&scorer, &wanted);
        assert_eq!(found.len(), 4);
        let recommender = scorer.recommender(&wanted).expect("ready");
        for row in found {
            let name = |node| recommender.names().name(node).to_string();
            let new = name(row.source) == "zoe" || name(row.destination) == "never";
            assert_eq!(row.known, !new, "{row:?}");
        }
    }

    #[test]
    fn the_size_of_a_batch_changes_nothing() {
        // More sources than a group of tiles, and candidates that fill no tile.
        let mut seen = vec![0; 150 * 37];
        each_row_of_tiles(150, 37, |source, from, to| {
            (from..to).for_each(|candidate| seen[source * 37 + candidate] += 1);
        });
        assert!(seen.iter().all(|&times| times == 1));
    }
}
