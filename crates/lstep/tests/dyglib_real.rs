//! DyGLib's protocol on real streams, against a plain Python implementation (`fixtures/dyglib/reference.py`).
//!
//! The streams are not part of the repository: `LSTEP_DATA` names the folder that holds `NAME/events.csv.gz`. Without it,
//! or without a stream, the test says so and passes.

use flate2::read::GzDecoder;
use lstep::metric::StepMeans;
use lstep::protocol::dyglib::{Columns, Part, Sampler, Split, Strategy, quantile};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

const BATCH: usize = 200;
const STRATEGIES: [(&str, Strategy); 3] =
    [("random", Strategy::Random), ("historical", Strategy::Historical), ("inductive", Strategy::Inductive)];
const PARTS: [(&str, Part); 4] =
    [("val", Part::Val), ("new_val", Part::NewVal), ("test", Part::Test), ("new_test", Part::NewTest)];

struct Stream {
    sources: Vec<i64>,
    destinations: Vec<i64>,
    times: Vec<f64>,
}

impl Stream {
    /// Reads the first three columns: source, destination, time.
    fn read(name: &str) -> Option<Stream> {
        let Some(folder) = std::env::var_os("LSTEP_DATA") else {
            eprintln!("skipped, LSTEP_DATA is not set: {name}");
            return None;
        };
        let path = Path::new(&folder).join(name).join("events.csv.gz");
        let Ok(file) = std::fs::File::open(&path) else {
            eprintln!("skipped, there is no {}", path.display());
            return None;
        };
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
        let mut stream = Stream { sources: Vec::new(), destinations: Vec::new(), times: Vec::new() };
        for line in text.lines().skip(1) {
            let mut fields = line.split(',');
            let mut field = || fields.next().expect("three columns");
            stream.sources.push(field().parse().expect("an id"));
            stream.destinations.push(field().parse().expect("an id"));
            stream.times.push(field().parse().expect("a time"));
        }
        Some(stream)
    }

    fn columns(&self) -> Columns<'_> {
        Columns::new(&self.sources, &self.destinations, &self.times).expect("a stream in order")
    }
}

fn fixture(text: &str) -> serde_json::Map<String, Value> {
    serde_json::from_str(text).expect("the fixture is JSON")
}

fn first_batch(stream: &Stream, split: &Split, part: Part, strategy: Strategy) -> Vec<(i64, i64)> {
    let mut sampler = Sampler::new(stream.columns(), split, part, strategy).expect("events");
    let mut pairs = sampler.negatives(&part.events(split)[..BATCH]).expect("negatives");
    pairs.truncate(5);
    pairs
}

#[test]
fn the_published_split_of_uci_comes_out() {
    let Some(stream) = Stream::read("uci") else { return };
    assert_eq!(stream.times.len(), 59835);
    let split = Split::new(stream.columns()).expect("late nodes");
    assert_eq!((split.val_time, split.test_time), (3834800.6, 6714558.300000001));
    assert_eq!(split.sampled.len(), 189);
    assert_eq!(split.sampled[..5], [1875, 1874, 615, 1550, 1512]);
    let mut sorted = split.sampled.clone();
    sorted.sort_unstable();
    let json = format!("{sorted:?}");
    assert!(hex(&Sha256::digest(json)).starts_with("2220eff1bca482e1"));
    assert_eq!([split.train.len(), split.val.len(), split.test.len()], [34352, 8975, 8976]);
    assert_eq!([split.new_val.len(), split.new_test.len()], [5002, 5932]);
    let nodes: FxHashSet<i64> =
        split.train.iter().flat_map(|&row| [stream.sources[row], stream.destinations[row]]).collect();
    assert_eq!((nodes.len(), split.new_nodes.len()), (1370, 529));
}

#[test]
fn the_published_negatives_of_uci_come_out() {
    let Some(stream) = Stream::read("uci") else { return };
    let split = Split::new(stream.columns()).expect("late nodes");
    let first = |part, strategy| first_batch(&stream, &split, part, strategy);
    let destinations = |part| first(part, Strategy::Random).iter().map(|pair| pair.1).collect::<Vec<_>>();
    assert_eq!(destinations(Part::Val), [559, 34, 1048, 1670, 214]);
    assert_eq!(destinations(Part::Test), [1315, 66, 89, 1859, 1406]);
    assert_eq!(first(Part::Test, Strategy::Historical), [(1441, 840), (204, 81), (525, 73), (588, 540), (323, 753)]);
    for strategy in [Strategy::Historical, Strategy::Inductive] {
        assert_eq!(
            first(Part::NewTest, strategy),
            [(271, 1771), (1236, 1069), (1557, 219), (1875, 1791), (1785, 1246)]
        );
    }
}

#[test]
fn every_negative_of_every_part_and_strategy_is_that_of_python() {
    for (name, expected) in fixture(include_str!("fixtures/dyglib/negatives_sha256.json")) {
        let Some(stream) = Stream::read(&name) else { continue };
        let columns = stream.columns();
        let split = Split::new(columns).expect("late nodes");
        assert_eq!(split.val_time, expected["val_time"].as_f64().expect("a time"), "{name}");
        assert_eq!(split.test_time, expected["test_time"].as_f64().expect("a time"), "{name}");
        assert_eq!(split.train.len() as u64, expected["events"]["train"], "{name}");
        assert_eq!(split.new_nodes.len() as u64, expected["new_nodes"], "{name}");
        let sampled: Vec<u8> = split.sampled.iter().flat_map(|node| node.to_le_bytes()).collect();
        assert_eq!(hex(&Sha256::digest(sampled)), expected["sampled_sha256"], "{name}");
        for (word, strategy) in STRATEGIES {
            for (part_word, part) in PARTS {
                let expected = expected["negatives_sha256"][word][part_word].as_str();
                let mut sampler = match Sampler::new(columns, &split, part, strategy) {
                    Ok(sampler) => sampler,
                    Err(error) => {
                        assert_eq!(expected, None, "{name} {word} {part_word}: {error}");
                        continue;
                    }
                };
                let mut digest = Sha256::new();
                for batch in part.events(&split).chunks(BATCH) {
                    for (source, destination) in sampler.negatives(batch).expect("negatives") {
                        digest.update(source.to_le_bytes());
                        digest.update(destination.to_le_bytes());
                    }
                }
                assert_eq!(Some(hex(&digest.finalize()).as_str()), expected, "{name} {word} {part_word}");
            }
        }
    }
}

/// EdgeBank here is as plain as in the script: what is tested is that negatives and areas give its numbers.
#[test]
fn edgebank_has_the_numbers_of_python() {
    for (name, expected) in fixture(include_str!("fixtures/dyglib/edgebank_reference.json")) {
        let Some(stream) = Stream::read(&name) else { continue };
        let columns = stream.columns();
        let split = Split::new(columns).expect("late nodes");
        let mut samplers = STRATEGIES
            .map(|(word, strategy)| (word, Sampler::new(columns, &split, Part::Test, strategy).expect("events")));
        let mut means: FxHashMap<(&str, &str), StepMeans> = FxHashMap::default();
        let pair = |row: usize| (stream.sources[row], stream.destinations[row]);
        let mut known: Vec<usize> = split.train.iter().chain(&split.val).copied().collect();
        for batch in split.test.chunks(BATCH) {
            let positives: Vec<(i64, i64)> = batch.iter().map(|&row| pair(row)).collect();
            let memories = memories(&stream, &known);
            for (word, sampler) in &mut samplers {
                let pairs = [positives.clone(), sampler.negatives(batch).expect("negatives")].concat();
                let labels: Vec<bool> = (0..pairs.len()).map(|place| place < batch.len()).collect();
                for (memory, edges) in &memories {
                    let scores: Vec<f64> = pairs.iter().map(|pair| f64::from(u8::from(edges.contains(pair)))).collect();
                    means.entry((memory, word)).or_default().add(&scores, &labels).expect("two classes");
                }
            }
            known.extend(batch);
        }
        for ((memory, word), means) in &means {
            let (mean, expected) = (means.mean().expect("batches"), &expected[memory][word]);
            for (area, key) in [(mean.average_precision, "ap"), (mean.roc_auc, "auc")] {
                let python = expected[key].as_f64().expect("a number");
                assert!((area - python).abs() < 2e-9, "{name} {memory} {word} {key}: {area} is not {python}");
            }
        }
        assert_eq!(means.len(), 12);
    }
}

fn memories(stream: &Stream, known: &[usize]) -> [(&'static str, FxHashSet<(i64, i64)>); 4] {
    let times: Vec<f64> = known.iter().map(|&row| stream.times[row]).collect();
    let last = times[times.len() - 1];
    let mut seen: FxHashMap<(i64, i64), Vec<f64>> = FxHashMap::default();
    let mut order = Vec::new();
    for &row in known {
        let pair = (stream.sources[row], stream.destinations[row]);
        let moments = seen.entry(pair).or_default();
        if moments.is_empty() {
            order.push(pair);
        }
        moments.push(stream.times[row]);
    }
    let since = |start: f64| {
        order.iter().filter(|pair| *seen[pair].last().expect("seen at least once") >= start).copied().collect()
    };
    let gap = |moments: &Vec<f64>| (moments[moments.len() - 1] - moments[0]) / (moments.len() - 1) as f64;
    let gaps: f64 = order.iter().map(|pair| &seen[pair]).filter(|moments| moments.len() > 1).map(gap).sum();
    let threshold = known.len() as f64 / seen.len() as f64;
    [
        ("unlimited", order.iter().copied().collect()),
        ("fixed_proportion", since(quantile(&times, 0.85).expect("a history"))),
        ("repeat_interval", since(last - gaps / seen.len() as f64)),
        ("repeat_threshold", order.iter().filter(|pair| seen[pair].len() as f64 >= threshold).copied().collect()),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
