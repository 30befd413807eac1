//! `cargo +nightly fuzz run node_features`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::node_features(bytes);
});
