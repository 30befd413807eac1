use super::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::fs;

fn tensor<'a>(name: &str, shape: &[usize], values: Values<'a>) -> Tensor<'a> {
    Tensor { name: name.to_owned(), shape: shape.to_vec(), values }
}

/// All types, an empty tensor, a scalar, and floats that arithmetic would change.
fn sample() -> Checkpoint<'static> {
    let odd = [0x7fc0_1234, 0x7f80_0001, 0x8000_0000, 1, 0xff80_0000, 0xffff_ffff];
    let odd_f64 = [0x7ff0_0000_0000_0001, 0x8000_0000_0000_0000, 1];
    Checkpoint {
        tensors: vec![
            tensor("weights", &[2, 3], Values::F32(odd.map(f32::from_bits).to_vec().into())),
            tensor("empty", &[4, 0], Values::F32(vec![].into())),
            tensor("step", &[], Values::U64(vec![u64::MAX].into())),
            tensor("nodes", &[2], Values::U32(vec![7, u32::MAX].into())),
            tensor("none", &[0], Values::U64(vec![].into())),
            tensor("best", &[3, 1], Values::F64(odd_f64.map(f64::from_bits).to_vec().into())),
        ],
        notes: [("config", "{\"a\": \"é \\\" \\\\\"}"), ("version", "0.1.0"), ("", "")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
    }
}

fn bytes(checkpoint: &Checkpoint<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    checkpoint.emit(&checkpoint.header("a").expect("sound"), &mut bytes).expect("memory takes all");
    bytes
}

fn parse(bytes: &[u8]) -> Result<Checkpoint<'static>> {
    Checkpoint::parse(Path::new("run/a.safetensors"), std::io::Cursor::new(bytes))
}

fn refusal(bytes: &[u8]) -> String {
    let error = parse(bytes).expect_err("the file is wrong");
    assert!(matches!(error, Error::Input(_)));
    error.to_string()
}

/// Equality of bits, where `PartialEq` has its own mind about NaN and -0.0.
fn same(left: &Checkpoint<'_>, right: &Checkpoint<'_>) -> bool {
    let bits = |values: &Values<'_>| match values {
        Values::F32(values) => values.iter().map(|value| u64::from(value.to_bits())).collect(),
        Values::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
        Values::U32(values) => values.iter().map(|&value| u64::from(value)).collect(),
        Values::U64(values) => values.to_vec(),
        Values::U8(values) => values.iter().map(|&value| u64::from(value)).collect(),
    };
    let parts = |checkpoint: &Checkpoint<'_>| -> Vec<(String, Vec<usize>, Dtype, Vec<u64>)> {
        let part =
            |t: &Tensor<'_>| (t.name.clone(), t.shape.clone(), t.values.kind(), bits(&t.values));
        checkpoint.tensors.iter().map(part).collect()
    };
    left.notes == right.notes && parts(left) == parts(right)
}

/// Puts the SHA-256 that a file should have into its place.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let place = layout::HEAD - 64..layout::HEAD;
    let hex = hex(&[&bytes[..place.start], &bytes[place.end..]].concat());
    bytes[place].copy_from_slice(hex.as_bytes());
    bytes
}

/// A file whose SHA-256 is right, with an entry, tensors and data of any kind.
fn forged(entry: &str, tensors: &str, data: &[u8]) -> Vec<u8> {
    let zeros = "0".repeat(64);
    let header =
        format!(r#"{{"__metadata__":{{"lstep":"{{\"sha256\":\"{zeros}\"{entry}}}"}}{tensors}}}"#);
    sealed([&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_checkpoint_comes_back_from_the_disk_to_the_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.safetensors");
    for checkpoint in [Checkpoint::default(), sample()] {
        checkpoint.write(&path).expect("written");
        assert!(same(&Checkpoint::read(&path).expect("read"), &checkpoint));
        assert_eq!(fs::read(&path).expect("read"), bytes(&checkpoint));
    }
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "nothing temporary is left"
    );
}

#[test]
fn the_bytes_of_a_file_are_fixed() {
    // A file of format 1 stays readable: if this changes, so must the format's number.
    assert_eq!(
        hex(&bytes(&sample())),
        "683619f720920c33042e09ec0b157cee57f2b58c577e97a10e285338fa0b3b14"
    );
    assert!((0..20).all(|_| bytes(&sample()) == bytes(&sample())));
}

#[test]
fn the_format_is_one_that_other_programs_read() {
    let bytes = bytes(&sample());
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("a safetensors file");
    assert_eq!(file.len(), 6);
    assert_eq!(file.tensor("nodes").expect("there").data(), [7, 0, 0, 0, 255, 255, 255, 255]);
    let data = bytes.len() - file.iter().map(|(_, view)| view.data().len()).sum::<usize>();
    assert_eq!(data % 8, 0, "values are aligned");
}

#[test]
fn any_bit_turned_over_is_refused() {
    let mut bytes = bytes(&sample());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            refusal(&bytes);
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_or_with_something_added_is_refused() {
    let mut bytes = bytes(&sample());
    for length in 0..bytes.len() {
        assert!(refusal(&bytes[..length]).contains("is not a whole checkpoint"), "{length}");
    }
    bytes.push(0);
    assert!(refusal(&bytes).contains("cut off or altered"));
}

#[test]
fn a_refusal_names_file_fault_and_remedy() {
    assert_eq!(
        refusal(b""),
        "run/a.safetensors: is not a whole checkpoint: it is empty; \
         copy it again from where it came, or go on from another checkpoint"
    );
    assert_eq!(
        refusal(b"source,destination,time\n1,2,3\n"),
        "run/a.safetensors: is not a checkpoint of lstep; give the file that a run of lstep wrote"
    );
}

#[test]
fn a_safetensors_file_of_another_program_is_refused() {
    let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  "#;
    let file = [&(header.len() as u64).to_le_bytes(), header.as_slice(), &[0; 4]].concat();
    assert!(safetensors::SafeTensors::deserialize(&file).is_ok());
    assert!(refusal(&file).contains("is not a checkpoint of lstep"));
}

#[test]
fn a_checkpoint_of_a_later_format_says_so() {
    let later = forged(r#",\"format\":2,\"parts\":7"#, "", &[]);
    assert!(
        refusal(&later)
            .contains("is a checkpoint of format 2, this version of lstep reads format 1")
    );
}

#[test]
fn a_header_made_up_by_hand_is_refused_without_panic_or_large_allocation() {
    let entry = |order: &str| format!(r#",\"format\":1,\"order\":[{order}],\"notes\":{{}}"#);
    let x = |dtype: &str, shape: &str, to: &str| {
        format!(r#","x":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[0,{to}]}}"#)
    };
    let (named, max) = (entry(r#"\"x\""#), "18446744073709551615");
    assert!(parse(&forged(&named, &x("F32", "1", "4"), &[0; 4])).is_ok(), "the forger is able");
    let wrong = [
        forged("", "", &[]),
        forged(&named, "", &[]),
        forged(&entry(""), &x("F32", "1", "4"), &[0; 4]),
        forged(&entry(r#"\"x\",\"x\""#), &x("F32", "1", "4"), &[0; 4]),
        forged(&named, &x("I8", "4", "4"), &[0; 4]),
        forged(&named, &x("F32", "1", "4"), &[0; 3]),
        forged(&named, &x("F32", "1", "4"), &[0; 5]),
        forged(&named, &x("F32", "4611686018427387904", "4"), &[0; 4]),
        forged(&named, &x("I8", max, max), &[0; 4]),
        forged(&named, r#","x":3"#, &[]),
        forged(&named, ",", &[]),
    ];
    for (number, file) in wrong.iter().enumerate() {
        assert!(refusal(file).contains("does not describe its contents"), "{number}");
    }
    // A length of the header beyond the file, and beyond what can be allocated.
    for length in [1 << 20, u64::MAX] {
        let mut file = forged(&named, &x("F32", "1", "4"), &[0; 4]);
        file[..8].copy_from_slice(&length.to_le_bytes());
        assert!(refusal(&sealed(file)).contains("does not describe its contents"));
    }
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().join("absent"), folder.path().to_owned()] {
        let error = Checkpoint::read(&path).expect_err("not a file");
        assert!(
            matches!(error, Error::Io { .. })
                && error.to_string().contains(&path.display().to_string())
        );
    }
}

#[cfg(unix)]
#[test]
fn of_a_file_without_end_only_the_beginning_is_read() {
    assert!(
        Checkpoint::read("/dev/zero")
            .expect_err("foreign")
            .to_string()
            .contains("is not a checkpoint of lstep")
    );
}

#[test]
fn lookups_say_what_is_missing_or_of_another_type() {
    let sample = sample();
    assert_eq!(sample.u32("nodes").expect("there"), [7, u32::MAX]);
    assert_eq!(sample.u64("step").expect("there"), [u64::MAX]);
    assert_eq!(sample.f32("weights").expect("there").len(), 6);
    assert_eq!(sample.f64("best").expect("there").len(), 3);
    assert_eq!(sample.note("version").expect("there"), "0.1.0");
    let message = |error: Error| error.to_string();
    assert!(message(sample.f32("bias").expect_err("absent")).contains("has no tensor \"bias\""));
    assert!(
        message(sample.f32("nodes").expect_err("u32")).contains("has \"nodes\" as U32, not as F32")
    );
    assert!(message(sample.note("seed").expect_err("absent")).contains("has no note \"seed\""));
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.safetensors");
    let one = |name: &str, shape: &[usize]| tensor(name, shape, Values::U32(vec![1, 2].into()));
    let big = usize::MAX / 2;
    for tensors in [
        vec![one("x", &[2]), one("x", &[2])],
        vec![one("__metadata__", &[2])],
        vec![one("x", &[3])],
        vec![one("x", &[big, 4])],
    ] {
        let wrong = Checkpoint { tensors, notes: BTreeMap::new() };
        assert!(matches!(wrong.write(&path), Err(Error::Input(_))));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[cfg(unix)]
#[test]
fn a_killed_writer_leaves_a_whole_file() {
    const PATH: &str = "LSTEP_TEST_CHECKPOINT_WRITER";
    let large = |step| Checkpoint {
        tensors: vec![tensor("x", &[1 << 18], Values::U64(vec![step; 1 << 18].into()))],
        notes: BTreeMap::new(),
    };
    if let Some(path) = std::env::var_os(PATH) {
        return (0..100_000).for_each(|step| large(step).write(&path).expect("written"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.safetensors");
    for round in 0..8 {
        large(u64::MAX).write(&path).expect("what a kill leaves is no obstacle");
        let mut writer = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "checkpoint::tests::a_killed_writer_leaves_a_whole_file"])
            .env(PATH, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        let step = || Checkpoint::read(&path).expect("whole").u64("x").expect("there")[0];
        while step() == u64::MAX {
            assert!(
                writer.try_wait().expect("asked").is_none(),
                "the writer runs until it is killed"
            );
        }
        std::thread::sleep(std::time::Duration::from_millis(3 * round));
        writer.kill().expect("killed");
        writer.wait().expect("ended");
        assert_ne!(step(), u64::MAX);
    }
}

fn values() -> impl Strategy<Value = Values<'static>> {
    prop_oneof![
        prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..9)
            .prop_map(|values| Values::F32(values.into())),
        prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 0..9)
            .prop_map(|values| Values::F64(values.into())),
        prop::collection::vec(any::<u32>(), 0..9).prop_map(|values| Values::U32(values.into())),
        prop::collection::vec(any::<u64>(), 0..9).prop_map(|values| Values::U64(values.into())),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|values| Values::U8(values.into())),
    ]
}

fn checkpoints() -> impl Strategy<Value = Checkpoint<'static>> {
    let tensors = prop::collection::btree_map(any::<String>(), (values(), 0..3usize), 0..6);
    let tensors = tensors.prop_map(|drawn| {
        let shaped = |(name, (values, ones)): (String, (Values<'static>, usize))| {
            tensor(&name, &[vec![1; ones], vec![values.len()]].concat(), values)
        };
        drawn.into_iter().map(shaped).collect::<Vec<_>>()
    });
    (tensors.prop_shuffle(), prop::collection::btree_map(any::<String>(), any::<String>(), 0..4))
        .prop_map(|(tensors, notes)| Checkpoint { tensors, notes })
}

proptest! {
    #[test]
    fn every_checkpoint_comes_back(checkpoint in checkpoints()) {
        let back = parse(&bytes(&checkpoint)).expect("just written");
        prop_assert!(same(&back, &checkpoint));
    }

    #[test]
    fn every_byte_counts(checkpoint in checkpoints(), at in any::<prop::sample::Index>(), change in 1..=255u8) {
        let mut bytes = bytes(&checkpoint);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        refusal(&bytes);
    }
}
