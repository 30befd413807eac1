//! What every fuzz target does with its bytes. `crates/lstep/tests/it/random_bytes.rs` includes this
//! file and runs the same functions on random bytes, without a fuzzer.
//!
//! Each function must return, whatever the bytes are: no panic, and no more memory than follows
//! from their number.

use lstep::checkpoint::Checkpoint;
use lstep::read::{
    FeatureColumns, Format, ReadOptions, pickle, read_from, read_npy_from, write_csv,
};
use lstep::settings::RunConfig;

/// The bytes read as a table in a layout give a stream or a message, and what was read can be
/// written and read again. The first byte chooses layout and options.
pub fn csv(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
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
    let Ok(data) = read_from("fuzz.csv", bytes, &options) else { return };
    let mut text = Vec::new();
    write_csv(&mut text, &data, b',').expect("memory does not fail");
    let again = ReadOptions { bipartite: data.bipartite(), ..ReadOptions::default() };
    let again = read_from("fuzz.csv", &text[..], &again).expect("what was written is good");
    assert_eq!((again.events, again.names, again.clock), (data.events, data.names, data.clock));
}

/// The bytes read as NumPy's table of numbers, also after a magic number that is right.
pub fn npy(bytes: &[u8]) {
    let _ = read_npy_from("fuzz.npy", bytes);
    if let Some((length, rest)) = bytes.split_first() {
        let whole = [b"\x93NUMPY\x01\x00".as_slice(), &[*length, 0], rest].concat();
        let _ = read_npy_from("fuzz.npy", &whole[..]);
    }
}

/// The bytes read as Parquet, also between the magic numbers of such a file.
pub fn parquet(bytes: &[u8]) {
    let _ = read_from("fuzz.parquet", bytes, &ReadOptions::default());
    let whole = [b"PAR1".as_slice(), bytes, b"PAR1"].concat();
    let _ = read_from("fuzz.parquet", &whole[..], &ReadOptions::default());
}

/// The bytes read as TGB's pickle of negatives, also after a protocol that is right. What was read
/// can be written and read again.
pub fn pickle(bytes: &[u8]) {
    for whole in [bytes.to_vec(), [b"\x80\x04}".as_slice(), bytes].concat()] {
        let Ok(lists) = pickle::parse("fuzz.pkl", &whole) else { continue };
        let mut written = Vec::new();
        pickle::write(&lists, &mut written).expect("memory does not fail");
        let again = pickle::parse("fuzz.pkl", &written).expect("what was written is good");
        assert_eq!(again, lists);
    }
}

/// The bytes read as a checkpoint, and as one whose checksum is right: only such a one is parsed.
pub fn checkpoint(bytes: &[u8]) {
    let _ = Checkpoint::from_bytes("fuzz.safetensors", bytes);
    let mut sealed = bytes.to_vec();
    Checkpoint::seal(&mut sealed);
    let Ok(read) = Checkpoint::from_bytes("fuzz.safetensors", &sealed) else { return };
    for tensor in &read.tensors {
        assert!(read.tensor(&tensor.name).is_ok());
    }
}

/// The bytes read as the settings of a run. What was read can be written and read again.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(config) = RunConfig::from_toml("fuzz.toml", text) else { return };
    let again = RunConfig::from_toml("fuzz.toml", &config.to_toml()).expect("our own settings");
    assert_eq!(again.to_toml(), config.to_toml());
}
