//! What every fuzz target does with its bytes. `crates/lstep-cli/tests/it/mutations` includes this
//! file and runs the same functions on good files with faults, without a fuzzer.
//!
//! Each function must return, whatever the bytes are: no panic, and no more memory than follows
//! from their number. It tells whether the bytes were read, so that tests can see that good files
//! are.
#![forbid(unsafe_code)]

// Archives are unpacked by the command, which is no library.
#[allow(dead_code, reason = "an entry point needs less of it than the command")]
#[path = "../../crates/lstep-cli/src/data/unpack.rs"]
mod unpack;

use lstep::checkpoint::Checkpoint;
use lstep::evaluation::Evaluation;
use lstep::event::{Name, NodeId, Time};
use lstep::protocol::tgb::TgbProtocol;
use lstep::protocol::{Part, Protocol};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{
    Dataset, FeatureColumns, Format, ReadOptions, pickle, read, read_from, read_npy_from, write_csv,
};
use lstep::results::EvaluationReport;
use lstep::serving::{Bundle, NewEvent, Scorer};
use lstep::settings::RunConfig;
use lstep::stream::Stream;
use serde::de::IgnoredAny;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// What a target does with its bytes.
pub type EntryPoint = fn(&[u8]) -> bool;

/// All targets by name.
pub const TARGETS: &[(&str, EntryPoint)] = &[
    ("csv", csv),
    ("npy", npy),
    ("parquet", parquet),
    ("dgb", dgb),
    ("node_features", node_features),
    ("pickle", pickle),
    ("tgb_negatives", tgb_negatives),
    ("negatives", negatives),
    ("checkpoint", checkpoint),
    ("bundle", bundle),
    ("settings", settings),
    ("report", report),
    ("zip", zip),
];

/// The bytes read as a table in a layout give a stream or a message, and what was read can be
/// written and read again. The first byte chooses layout and options.
pub fn csv(input: &[u8]) -> bool {
    let Some((&choice, bytes)) = input.split_first() else { return false };
    let format = [
        None,
        Some(Format::Table),
        Some(Format::Jodie),
        Some(Format::TgbWiki),
        Some(Format::TgbWeight),
        Some(Format::TgbComment),
        Some(Format::TgbFlight),
        Some(Format::Dgb),
    ][usize::from(choice % 8)];
    let options = ReadOptions {
        format,
        features: if choice & 8 == 0 { FeatureColumns::Automatic } else { FeatureColumns::All },
        bipartite: choice & 16 != 0,
        sort: choice & 32 != 0,
        header: (choice & 64 != 0).then_some(choice & 128 != 0),
        ..ReadOptions::default()
    };
    let Ok(data) = read_from("fuzz.csv", bytes, &options) else { return false };
    let mut text = Vec::new();
    write_csv(&mut text, &data, b',').expect("memory does not fail");
    let again = ReadOptions { bipartite: data.bipartite(), ..ReadOptions::default() };
    let again = read_from("fuzz.csv", &text[..], &again).expect("what was written is good");
    assert_eq!((again.events, again.names, again.clock), (data.events, data.names, data.clock));
    true
}

/// The bytes read as NumPy's table of numbers, also after a magic number that is right.
pub fn npy(bytes: &[u8]) -> bool {
    if let Some((length, rest)) = bytes.split_first() {
        let whole = [b"\x93NUMPY\x01\x00".as_slice(), &[*length, 0], rest].concat();
        let _ = read_npy_from("fuzz.npy", &whole[..]);
    }
    read_npy_from("fuzz.npy", bytes).is_ok()
}

/// The bytes read as Parquet, also between the magic numbers of such a file.
pub fn parquet(bytes: &[u8]) -> bool {
    let whole = [b"PAR1".as_slice(), bytes, b"PAR1"].concat();
    let _ = read_from("fuzz.parquet", &whole[..], &ReadOptions::default());
    read_from("fuzz.parquet", bytes, &ReadOptions::default()).is_ok()
}

/// The three files of DGB's layout: events, and features of events and of nodes beside them.
pub fn dgb(input: &[u8]) -> bool {
    let [events, of_events, of_nodes] = parts(input);
    let folder = folder_with(&[
        ("ml_fuzz.csv", events),
        ("ml_fuzz.npy", of_events),
        ("ml_fuzz_node.npy", of_nodes),
    ]);
    let options = ReadOptions { format: Some(Format::Dgb), ..ReadOptions::default() };
    read(folder.path().join("ml_fuzz.csv"), &options).is_ok()
}

/// A table of features of the nodes of a good stream. The first byte chooses its form.
pub fn node_features(input: &[u8]) -> bool {
    let Some((&choice, bytes)) = input.split_first() else { return false };
    let name = ["nodes.csv", "nodes.parquet", "nodes.npy"][usize::from(choice % 3)];
    let folder = folder_with(&[(name, bytes)]);
    let options =
        ReadOptions { node_features: Some(folder.path().join(name)), ..ReadOptions::default() };
    read_from("fuzz.csv", &letters()[..], &options).is_ok()
}

/// The bytes read as TGB's pickle of negatives, also after a protocol that is right. What was read
/// can be written and read again.
pub fn pickle(bytes: &[u8]) -> bool {
    let mut read = false;
    for whole in [[b"\x80\x04}".as_slice(), bytes].concat(), bytes.to_vec()] {
        let lists = pickle::parse("fuzz.pkl", &whole);
        read = lists.is_ok();
        let Ok(lists) = lists else { continue };
        let mut written = Vec::new();
        pickle::write(&lists, &mut written).expect("memory does not fail");
        let again = pickle::parse("fuzz.pkl", &written).expect("what was written is good");
        assert_eq!(again, lists);
    }
    read
}

/// TGB's files: an edge list, and the negatives of its test part, which are then asked.
pub fn tgb_negatives(input: &[u8]) -> bool {
    let [events, lists] = parts(input);
    let folder =
        folder_with(&[("tgbl-fuzz_edgelist.csv", events), ("tgbl-fuzz_test_ns.pkl", lists)]);
    let path = folder.path().join("tgbl-fuzz_edgelist.csv");
    let Ok(data) = read(path, &ReadOptions::default()) else { return false };
    let protocol = TgbProtocol::for_dataset("tgbl-fuzz", Some(folder.path().into()));
    asked(&Stream::from(data), |evaluation| evaluation.protocol(Protocol::Tgb(protocol)))
}

/// A file of negatives for a good stream, which are then asked.
pub fn negatives(bytes: &[u8]) -> bool {
    let folder = folder_with(&[("test-transductive-random.csv", bytes)]);
    asked(&STREAM, |evaluation| evaluation.read_negatives(folder.path()))
}

/// The bytes read as a checkpoint, and as one whose checksum is right: only such a one is parsed.
pub fn checkpoint(bytes: &[u8]) -> bool {
    let _ = Checkpoint::from_bytes("fuzz.safetensors", bytes);
    let sealed = sealed(bytes);
    let Ok(read) = Checkpoint::from_bytes("fuzz.safetensors", &sealed) else { return false };
    for tensor in &read.tensors {
        assert!(read.tensor(&tensor.name).is_ok());
    }
    true
}

/// The bytes read as an exported model whose checksum is right. What was read scores, observes an
/// event and scores again.
pub fn bundle(bytes: &[u8]) -> bool {
    let Ok(bundle) = Bundle::from_bytes("fuzz.lstep", &sealed(bytes)) else { return false };
    let mut scorer = Scorer::from(bundle);
    let names = scorer.bundle().names();
    let source = names.name(NodeId(0)).to_string();
    let destination = names.name(NodeId(names.len() as u32 - 1)).to_string();
    let _ = scorer.top(&source, None, 5);
    let event = NewEvent {
        source: Name::Text(&source),
        destination: Name::Text(&destination),
        time: Time::new(1e9).expect("finite"),
        features: &[],
        node_features: [&[]; 2],
    };
    let _ = scorer.observe(&[event]);
    let _ = scorer.top(&source, None, 5);
    true
}

/// The bytes read as the settings of a run. What was read can be written and read again.
pub fn settings(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(config) = RunConfig::from_toml("fuzz.toml", text) else { return false };
    let again = RunConfig::from_toml("fuzz.toml", &config.to_toml()).expect("our own settings");
    assert_eq!(again.to_toml(), config.to_toml());
    let _ = (config.model.check(), config.train.check(), config.data.options());
    true
}

/// The bytes read as the report of an evaluation, also without its digest.
pub fn report(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let path = Path::new("fuzz.json");
    let bare = text.replacen("\"digest\"", "\"digest of another\"", 1);
    if let Ok(report) = EvaluationReport::from_json(path, &bare) {
        EvaluationReport::from_json(path, &report.to_json()).expect("what was written is good");
    }
    EvaluationReport::from_json(path, text).is_ok()
}

/// The bytes unpacked as an archive: every file that comes of it is in the folder, and nothing
/// that was there is changed.
pub fn zip(bytes: &[u8]) -> bool {
    let outer = folder_with(&[("precious", b"1"), ("fuzz.zip", bytes)]);
    let (archive, inner) = (outer.path().join("fuzz.zip"), outer.path().join("data"));
    fs::create_dir(&inner).expect("a folder");
    let unpacked = unpack::unpack(&archive, &inner);
    let _ = unpack::is_zip(&archive);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    assert_eq!(names(outer.path()).len(), 3, "a file beside the folder");
    assert_eq!(fs::read(outer.path().join("precious")).expect("there"), b"1");
    assert!(fs::read(&archive).expect("there") == bytes, "the archive was changed");
    for path in unpacked.iter().flatten() {
        assert!(path.parent() == Some(&inner) && path.is_file(), "{}", path.display());
    }
    unpacked.is_ok()
}

/// Joins the files of a target that takes several: each but the last after its length.
pub fn join(files: &[&[u8]]) -> Vec<u8> {
    let (last, others) = files.split_last().expect("at least one file");
    let mut joined = Vec::new();
    for file in others {
        joined.extend((file.len() as u32).to_le_bytes());
        joined.extend(*file);
    }
    joined.extend(*last);
    joined
}

/// The files that [`join`] joined; whatever the lengths say, every byte is in one of them.
fn parts<const N: usize>(mut bytes: &[u8]) -> [&[u8]; N] {
    let mut files = [&[] as &[u8]; N];
    for file in &mut files[..N - 1] {
        let (length, rest) = bytes.split_first_chunk().unwrap_or((&[0; 4], bytes));
        let length = rest.len().min(u32::from_le_bytes(*length) as usize);
        (*file, bytes) = rest.split_at(length);
    }
    files[N - 1] = bytes;
    files
}

/// The bytes of a checkpoint with the length of its header and the digest repaired, so that a
/// fault is not found by these alone.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    if let Some((_, rest)) = bytes.split_first_chunk::<8>() {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        if let Some(Ok(_)) = values.next() {
            let (header, values) = rest.split_at(values.byte_offset());
            let length = header.len().next_multiple_of(8);
            let padding = values.iter().take(7).take_while(|byte| **byte == b' ').count();
            sealed = (length as u64).to_le_bytes().to_vec();
            sealed.extend(header);
            sealed.resize(8 + length, b' ');
            sealed.extend(&values[padding..]);
        }
    }
    Checkpoint::seal(&mut sealed);
    sealed
}

fn folder_with(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("written");
    }
    folder
}

/// Whether EdgeBank can be asked about the test part.
fn asked<'a>(stream: &'a Stream, with: impl FnOnce(Evaluation<'a>) -> Evaluation<'a>) -> bool {
    let evaluation = Evaluation::new(stream).model("edgebank").expect("a model that is known");
    with(evaluation).parts([Part::Test]).run().is_ok()
}

/// A small stream, whose nodes are 1 to 4 and bear numbers.
fn letters() -> Vec<u8> {
    let rows = (0..20).map(|n| format!("{},{},{n}\n", n % 4 + 1, (n + 1) % 4 + 1));
    ["source,destination,time\n".to_string()].into_iter().chain(rows).collect::<String>().into()
}

/// The stream that [`negatives`] asks about.
pub static STREAM: LazyLock<Stream> = LazyLock::new(|| Stream::from(small_stream(None)));

/// A generated stream of a few events, perhaps with two kinds of nodes.
pub fn small_stream(sources: Option<u32>) -> Dataset {
    let config = SyntheticConfig {
        nodes: 30,
        sources,
        events: 120,
        features: 2,
        communities: 4,
        habits: 0.0,
        ..SyntheticConfig::default()
    };
    generate(&config).expect("a stream")
}
