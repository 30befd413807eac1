//! Any bytes, read as a table in any layout, give a checked stream or a message, and what was read
//! can be written and read again.
//!
//! `cargo +nightly fuzz run csv`

#![no_main]

use libfuzzer_sys::fuzz_target;
use lstep::read::{FeatureColumns, Format, ReadOptions, read_from, write_csv};

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
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
});
