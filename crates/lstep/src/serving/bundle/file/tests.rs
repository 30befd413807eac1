use super::*;
use crate::checkpoint::spoil;
use crate::event::Name;
use crate::model::registry;
use crate::rng::KeyedRng;
use crate::serving::fixture::{bundle, tiny};
use crate::serving::{NewEvent, Scorer};
use std::fs;
use std::path::PathBuf;

fn bits(scorer: &Scorer) -> Vec<(String, u64)> {
    let top = scorer.top("4", None, 100).expect("scored");
    top.into_iter().map(|row| (row.destination, row.score.to_bits())).collect()
}

/// A file that is gone with its folder.
struct Place {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("model.lstep");
    Place { _folder: folder, file }
}

/// What is said about a file that was made up by hand, and whose digest is right.
fn refusal(bundle: &Bundle, change: impl FnOnce(&mut Checkpoint<'_>)) -> String {
    let mut file = bundle.checkpoint();
    change(&mut file);
    match Bundle::of_file("model.lstep".into(), file) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was read"),
    }
}

fn replace<'a>(file: &mut Checkpoint<'a>, name: &str, values: Values<'a>) {
    let tensor = file.tensors.iter_mut().find(|tensor| tensor.name == name);
    let tensor = tensor.unwrap_or_else(|| panic!("no {name}"));
    (tensor.shape, tensor.values) = (vec![values.len()], values);
}

/// The names of the models that learn.
fn learned() -> Vec<&'static str> {
    let learned = registry::MODELS.iter().filter(|kind| kind.learns());
    learned.map(|kind| kind.name()).collect()
}

/// The names of all models.
fn models() -> Vec<&'static str> {
    registry::MODELS.iter().map(|kind| kind.name()).collect()
}

#[test]
fn every_model_comes_back_and_goes_on_to_the_bit() {
    for name in models() {
        let (made, place) = (Scorer::from(bundle(name)), place());
        made.bundle().write(&place.file).expect("written");
        let mut read = Scorer::open(&place.file).expect("read");
        assert_eq!(bits(&read), bits(&made), "{name}");
        assert_eq!(read.bundle().about(), made.bundle().about());
        assert_eq!(read.bundle().names(), made.bundle().names());
        let event = |source, destination, time| NewEvent {
            source: Name::Integer(source),
            destination: Name::Text(destination),
            time: time_of(time).expect("finite"),
            features: &[],
            node_features: [&[]; 2],
        };
        let step = [event(4, "7", 600.0), event(77, "eve", 600.5), event(5, "77", 601.0)];
        let mut made = made;
        for scorer in [&mut made, &mut read] {
            scorer.observe(&step).expect("observed");
        }
        assert_eq!(bits(&read), bits(&made), "{name}");
        // Written once more, with a name that has made all ids text.
        read.bundle().write(&place.file).expect("written");
        let again = Scorer::open(&place.file).expect("read");
        assert_eq!(bits(&again), bits(&made), "{name}");
        assert_eq!(again.bundle().names(), made.bundle().names());
        assert_eq!((again.bundle().events(), again.bundle().about().run_events), (603, 600));
    }
}

#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let (bundle, [one, other]) = (tiny(), [place(), place()]);
    bundle.write(&one.file).expect("written");
    Bundle::read(&one.file).expect("read").write(&other.file).expect("written");
    assert!(fs::read(&one.file).expect("read") == fs::read(&other.file).expect("read"));
}

#[test]
fn a_file_that_is_cut_off_or_altered_is_refused() {
    let place = place();
    tiny().write(&place.file).expect("written");
    let whole = fs::read(&place.file).expect("read");
    let refused = |bytes: &[u8]| {
        fs::write(&place.file, bytes).expect("written");
        let error = Bundle::read(&place.file).err().expect("refused").to_string();
        assert!(error.contains("model.lstep"), "{error}");
        error
    };
    for length in 0..whole.len() {
        assert!(refused(&whole[..length]).contains("not a whole checkpoint"), "{length} bytes");
    }
    for at in (0..whole.len()).step_by(3) {
        let mut altered = whole.clone();
        altered[at] ^= 1 << (at % 8);
        refused(&altered);
    }
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let message = refusal(&tiny(), |file| drop(file.notes.remove("bundle")));
    assert!(message.contains("is a checkpoint of training"), "{message}");
    let message = refusal(&tiny(), |file| drop(file.notes.insert("bundle".into(), "2".into())));
    assert!(message.contains("layout 2"), "{message}");
}

#[test]
fn what_a_made_up_file_says_is_checked() {
    let bundle = tiny();
    let nodes = bundle.names.len();
    let set = |name: &'static str, values: Values<'static>, words: &str| {
        let message = refusal(&bundle, |file| replace(file, name, values));
        assert!(message.contains(words), "{name}: {message}");
        assert!(message.contains("model.lstep"), "{name}: {message}");
    };
    let u64s = |values: &[u64]| Values::U64(values.to_vec().into());
    let u32s = |values: Vec<u32>| Values::U32(values.into());
    let f64s = |values: Vec<f64>| Values::F64(values.into());
    let events = bundle.events();
    set("events.first", u64s(&[3]), "begins with event 3");
    set("events.first", u64s(&[]), "one is needed");
    set("info.nodes", u64s(&[99]), "99 nodes");
    set("info.training", f64s(vec![1.0]), "first and last time");
    set("info.silence", f64s(vec![0.0; 6]), "silences");
    set("info.training", f64s(vec![5.0, 1.0]), "earlier");
    set("info.training", f64s(vec![0.0, f64::NAN]), "a time that is NaN");
    set("events.sources", u32s(vec![nodes as u32; events]), "names for");
    set("events.sources", u32s(vec![0; events - 1]), "have to be equal");
    set("events.destinations", u32s(vec![u32::MAX; events]), "names for");
    set("events.times", f64s(vec![f64::INFINITY; events]), "a time that is inf");
    set("events.times", f64s((0..events).rev().map(|n| n as f64).collect()), "before event");
    set("events.times", f64s(vec![]), "no events");
    set("candidates", u32s(vec![1, 0]), "candidates");
    set("candidates", u32s(vec![]), "candidates");
    set("candidates", u32s(vec![u32::MAX]), "names for");
    set("names.integers", u64s(&[1; 3]), "it is there twice");
    set("events.features", Values::F32(vec![0.0; 3].into()), "no table");
    set("model.positions.newest", u32s(vec![1 << 20]), "stored positions");
    set("model.positions.free", u32s(vec![1 << 20]), "stored positions");
    set("model.positions.expiring", u32s(vec![1, 2, 1 << 20]), "stored positions");
    set("model.positions.snapshots", u32s(vec![0]), "stored positions");
    let message = refusal(&bundle, |file| drop(file.notes.insert("clock".into(), "{}".into())));
    assert!(message.contains("clock"), "{message}");
    let message = refusal(&bundle, |file| drop(file.notes.insert("settings".into(), "x".into())));
    assert!(message.contains("configuration"), "{message}");
    for name in ["bundle", "settings", "clock", "dataset", "stream", "version"] {
        let message = refusal(&bundle, |file| drop(file.notes.remove(name)));
        assert!(name == "bundle" || message.contains(&format!("no note {name:?}")), "{message}");
    }
    // Texts that are cut in the wrong places, and sides that are none.
    let texts = |bytes: &'static [u8], ends: Vec<u64>, sides: &'static [u8]| {
        refusal(&bundle, |file| {
            file.tensors.retain(|tensor| tensor.name != "names.integers");
            file.push_u8("names.texts", bytes);
            file.push_u64("names.ends", ends);
            file.push_u8("names.sides", sides);
        })
    };
    assert!(texts(b"ab\xff", vec![1, 2, 3], &[0; 3]).contains("UTF-8"));
    assert!(texts("aä".as_bytes(), vec![1, 2, 3], &[0; 3]).contains("wrong places"));
    assert!(texts(b"abc", vec![2, 1, 3], &[0; 3]).contains("wrong places"));
    assert!(texts(b"abc", vec![1, 2, u64::MAX], &[0; 3]).contains("wrong places"));
    assert!(texts(b"abc", vec![1, 2], &[0; 2]).contains("wrong places"));
    assert!(texts(b"abc", vec![1, 2, 3], &[0; 2]).contains("sides"));
    assert!(texts(b"abc", vec![1, 2, 3], &[0, 1, 2]).contains("side 2"));
}

#[test]
fn a_model_whose_weights_or_state_do_not_fit_is_refused() {
    for name in models() {
        let bundle = bundle(name);
        let of_model: Vec<String> =
            bundle.model().tensors.into_iter().map(|tensor| tensor.name).collect();
        for tensor in of_model.iter().map(|tensor| format!("model.{tensor}")) {
            // Models of earlier versions have none, and draw the codes of walks by number.
            if tensor == "model.walks.born" {
                continue;
            }
            refusal(&bundle, |file| file.tensors.retain(|other| other.name != tensor));
            if tensor.starts_with("model.weight.") {
                refusal(&bundle, |file| {
                    replace(file, &tensor, Values::F32(vec![0.5; 3].into()));
                });
            }
        }
    }
}

#[test]
fn settings_of_a_larger_model_are_refused_before_it_takes_memory() {
    for name in learned() {
        let message = refusal(&bundle(name), |file| {
            let settings = file.notes.get_mut("settings").expect("settings");
            let lines = settings.lines().map(|line| match line.split_once("_width = ") {
                Some((width, _)) => format!("{width}_width = 16384\n"),
                None => format!("{line}\n"),
            });
            *settings = lines.collect();
        });
        assert!(message.contains("settings describe a model of"), "{name}: {message}");
    }
    assert!(spoil::peak_memory().is_none_or(|bytes| bytes < 1 << 30));
}

/// A digest tells that nobody altered what somebody wrote, and not that it can be. Every number may
/// be refused or used; nothing may panic, hang or take memory without bounds.
#[test]
fn a_single_number_that_was_changed_never_hurts() {
    let (mut read, mut refused) = (0, 0);
    for (number, name) in models().into_iter().enumerate() {
        let bundle = bundle(name);
        let mut draw = KeyedRng::new(&[0x5b01, number as u64]);
        for round in 0..420 {
            let mut file = bundle.checkpoint();
            // A model has far more weights than other numbers, or none.
            let weights = round % 10 == 0 && learned().contains(&name);
            let changed = spoil::change_one(&mut file, &mut draw, |tensor| {
                tensor.starts_with("model.weight.") == weights
            });
            let started = std::time::Instant::now();
            let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let Ok(bundle) = Bundle::of_file("model.lstep".into(), file) else { return false };
                let mut scorer = Scorer::from(bundle);
                let source = scorer.bundle().names().name(NodeId(4)).to_string();
                let _ = scorer.top(&source, None, 100);
                let times = scorer.bundle().live.log().events().times();
                let time = times.last().copied().expect("events");
                let event = |source, destination| NewEvent {
                    source: Name::Integer(source),
                    destination: Name::Integer(destination),
                    time,
                    features: &[],
                    node_features: [&[]; 2],
                };
                let _ = scorer.observe(&[event(4, 7), event(5, 1), event(7, 31)]);
                let _ = scorer.top(&source, None, 100);
                true
            }));
            let used = used.unwrap_or_else(|_| panic!("{name}: {changed}"));
            assert!(started.elapsed().as_secs() < 10, "{name}: {changed}");
            if used { read += 1 } else { refused += 1 }
        }
    }
    assert!(read + refused >= 2_000 && refused > 300, "{read} read, {refused} refused");
    assert!(spoil::peak_memory().is_none_or(|bytes| bytes < 1 << 30));
}
