//! A stream as the Temporal Graph Benchmark publishes one: an edge list, and the negatives of
//! validation and test as pickles.
//!
//! The edge list has tgbl-wiki's form, so ids count from 0 on each side without gaps: TGB draws
//! negatives from all integers between the first and the last destination.

use crate::disk::write_file;
use crate::error::{Error, Remedy, Result};
use crate::event::{Events, Names, NodeId, Side};
use crate::protocol::Subject;
use crate::protocol::tgb::TgbProtocol;
use crate::read::pickle;
use crate::read::{Dataset, Format, Layout, ReadOptions, dataset_name, read, write_as};
use crate::stream::Stream;
use std::path::{Path, PathBuf};

/// Writes `NAME_edgelist.csv`, `NAME_val_ns.pkl` and `NAME_test_ns.pkl`, with so many negatives for
/// each event, and gives their paths. No node may be both source and destination.
pub fn write_tgb(
    path: impl AsRef<Path>,
    data: &Dataset,
    per_event: Option<usize>,
) -> Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !file.ends_with(".csv") || !file.contains("_edgelist") || !is_wiki_like(path) {
        let remedy = "TGB's files are named NAME_edgelist.csv, for example tgbl-sample_edgelist.csv; the names of coin, review, \
                      comment and flight promise other columns";
        return Err(Error::setting("out", path.display(), remedy));
    }
    write_as(path, &numbered_from_zero(data)?, Layout::Jodie)?;
    // Negatives use the node numbers that a reader of the file assigns, so read it back first.
    let stream = Stream::from(read(path, &ReadOptions::default())?);
    let name = dataset_name(path);
    let mut protocol = TgbProtocol::for_dataset(&name, None);
    protocol.per_event = per_event.unwrap_or(protocol.per_event);
    let lists = protocol.generate(Subject { events: stream.log.events(), names: &stream.names })?;
    let mut files = vec![path.to_path_buf()];
    for (part, list) in ["val", "test"].into_iter().zip(&lists) {
        let file = path.with_file_name(format!("{name}_{part}_ns.pkl"));
        write_file(&file, |out| pickle::write(list, out))?;
        files.push(file);
    }
    Ok(files)
}

fn is_wiki_like(path: &Path) -> bool {
    matches!(Format::of_name(path), Format::TgbWiki | Format::Table)
}

/// The same events with ids from 0 on each side, in order of the old numbers.
fn numbered_from_zero(data: &Dataset) -> Result<Dataset> {
    let events = &data.events;
    let mut sides: Vec<Option<Side>> = vec![None; data.names.len()];
    let columns = [(Side::Source, events.sources()), (Side::Destination, events.destinations())];
    for (side, nodes) in columns {
        for &node in nodes {
            if sides[node.index()].replace(side).is_some_and(|before| before != side) {
                let problem =
                    "it is both source and destination, which tgbl-wiki's layout cannot say";
                let name = data.names.name(node);
                return Err(Error::refused("node", name, problem, Remedy::TwoKindsOfNodes));
            }
        }
    }
    let mut order: Vec<NodeId> = (0..data.names.len() as u32).map(NodeId).collect();
    order.sort_by_key(|&node| data.names.name(node));
    let mut next = [0_i64; 2];
    let mut ids = vec![0; data.names.len()];
    for node in order {
        let side = sides[node.index()].expect("every node has an event");
        ids[node.index()] = next[side as usize];
        next[side as usize] += 1;
    }
    let mut names = Names::new(true);
    let mut nodes = [Vec::with_capacity(events.len()), Vec::with_capacity(events.len())];
    for event in events.iter() {
        nodes[0].push(names.intern_integer(ids[event.source.index()], Side::Source)?);
        nodes[1].push(names.intern_integer(ids[event.destination.index()], Side::Destination)?);
    }
    let [sources, destinations] = nodes;
    let events =
        Events::new(sources, destinations, events.times().to_vec(), events.features().clone())?;
    Ok(Dataset { events, names, ..data.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EvalPass, EvalScope, Part, Setting, Strategy};
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn synthetic(sources: Option<u32>) -> Dataset {
        generate(&SyntheticConfig {
            nodes: 300,
            sources,
            events: 2_000,
            communities: 4,
            ..SyntheticConfig::default()
        })
        .expect("a stream")
    }

    #[test]
    fn what_is_written_is_read_with_its_negatives() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tgbl-sample_edgelist.csv");
        let files = write_tgb(&path, &synthetic(Some(200)), Some(30)).expect("two kinds of nodes");
        assert_eq!(files.len(), 3);
        let stream = Stream::from(read(&path, &ReadOptions::default()).expect("our own file"));
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        let asked = EvalScope {
            parts: vec![Part::Validation, Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Tgb],
        };
        let query_sets = |folder: Option<PathBuf>, per_event: usize| {
            let protocol =
                TgbProtocol { per_event, ..TgbProtocol::for_dataset("tgbl-sample", folder) };
            let split = protocol.split(subject).expect("three parts");
            protocol
                .passes(subject, &split, &asked)
                .expect("negatives for every event")
                .swap_remove(0)
        };
        // Another number than the files hold: whoever generates would not get the same lists.
        let (read, made) = (query_sets(Some(folder.path().into()), 7), query_sets(None, 7));
        assert_eq!(read.query_sets.len(), 2);
        for (query_set, count) in read
            .query_sets
            .iter()
            .map(|query_set| (query_set, 30))
            .chain(made.query_sets.iter().map(|query_set| (query_set, 7)))
        {
            assert_eq!(query_set.negatives().pairs(), count * query_set.asked().len());
        }
        let drawn = |pass: &EvalPass| pass.query_sets.iter().all(|set| set.negatives().generated);
        assert!(drawn(&made) && !drawn(&read));
        // Whoever asks about every destination draws nothing.
        assert!(!drawn(&query_sets(None, 1_000)) && drawn(&query_sets(None, 100)));
    }

    #[test]
    fn a_stream_of_one_kind_of_nodes_and_other_names_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |name: &str, data: &Dataset| {
            let error =
                write_tgb(folder.path().join(name), data, None).expect_err("refused").to_string();
            assert!(
                std::fs::read_dir(folder.path()).expect("a folder").next().is_none(),
                "nothing is left behind"
            );
            error
        };
        assert!(refused("tgbl-sample_edgelist.csv", &synthetic(None)).contains("`sources`"));
        assert!(refused("sample.csv", &synthetic(Some(200))).contains("NAME_edgelist.csv"));
        assert!(refused("tgbl-coin_edgelist.csv", &synthetic(Some(200))).contains("other columns"));
    }
}
