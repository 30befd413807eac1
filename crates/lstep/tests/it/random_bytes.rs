//! The entry points of the fuzz targets, on random bytes and on good files with random faults.

#[path = "../../../../fuzz/src/lib.rs"]
mod fuzz;

use lstep::checkpoint::Checkpoint;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{write_csv, write_events};
use lstep::settings::{DataConfig, RunConfig};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// One way to spoil a file, at a place that is a share of its length.
#[derive(Debug, Clone)]
enum Fault {
    Set(u16, u8),
    Insert(u16, Vec<u8>),
    Remove(u16, u8),
    Cut(u16),
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        4 => (any::<u16>(), any::<u8>()).prop_map(|(place, byte)| Fault::Set(place, byte)),
        2 => (any::<u16>(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(place, bytes)| Fault::Insert(place, bytes)),
        2 => (any::<u16>(), 1u8..20).prop_map(|(place, count)| Fault::Remove(place, count)),
        1 => any::<u16>().prop_map(Fault::Cut),
    ];
    prop::collection::vec(fault, 0..4)
}

fn spoil(good: &[u8], faults: &[Fault]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for fault in faults {
        let at = |place: u16| bytes.len() * usize::from(place) / (1 << 16);
        match *fault {
            Fault::Set(place, byte) => {
                let at = at(place);
                bytes.iter_mut().skip(at).take(1).for_each(|there| *there = byte);
            }
            Fault::Insert(place, ref more) => {
                let at = at(place);
                bytes.splice(at..at, more.iter().copied());
            }
            Fault::Remove(place, count) => {
                let at = at(place);
                let end = bytes.len().min(at + usize::from(count));
                bytes.drain(at..end);
            }
            Fault::Cut(place) => bytes.truncate(at(place)),
        }
    }
    bytes
}

/// An entry point, and a good file for it.
type Target = (fn(&[u8]), Vec<u8>);

static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let settings = SyntheticConfig {
        nodes: 30,
        events: 60,
        features: 2,
        habits: 0.0,
        ..SyntheticConfig::default()
    };
    let data = generate(&settings).expect("a stream");
    let mut csv = vec![0];
    write_csv(&mut csv, &data, b',').expect("memory");
    let folder = tempfile::tempdir().expect("a folder");
    let (events, state) = (folder.path().join("x.parquet"), folder.path().join("x.safetensors"));
    write_events(&events, &data).expect("written");
    let mut checkpoint = Checkpoint::default();
    checkpoint.push_f32("weight", vec![0.5; 12]);
    checkpoint.push_u64("events", vec![1, 2, 3]);
    checkpoint.notes.insert("settings".into(), "{\"a\": 1}".into());
    checkpoint.write(&state).expect("written");
    let npy = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let mut npy = npy.to_vec();
    npy.resize(10 + 0x76, b' ');
    npy.extend([0; 16]);
    let config = RunConfig::builder(DataConfig::default()).build().expect("defaults");
    let pickles = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tgb");
    let read = |path: &Path| std::fs::read(path).expect("a file");
    vec![
        (fuzz::csv, csv),
        (fuzz::npy, npy),
        (fuzz::parquet, read(&events)),
        (fuzz::pickle, read(&pickles.join("numpy2_protocol4.pkl"))),
        (fuzz::checkpoint, read(&state)),
        (fuzz::settings, config.to_toml().into_bytes()),
    ]
});

#[test]
fn good_files_are_read() {
    assert!(TARGETS.iter().all(|(_, good)| !good.is_empty()));
    for (target, good) in TARGETS.iter() {
        target(good);
    }
    let checkpoint = &TARGETS[4].1;
    let mut sealed = checkpoint.clone();
    Checkpoint::seal(&mut sealed);
    assert!(&sealed == checkpoint, "a good file is sealed already");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_entry_point_panics_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (target, _) in TARGETS.iter() {
            target(&bytes);
        }
    }

    #[test]
    fn no_entry_point_panics_on_a_spoilt_file(faults in faults()) {
        for (target, good) in TARGETS.iter() {
            target(&spoil(good, &faults));
        }
    }
}
