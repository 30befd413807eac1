//! `cargo +nightly fuzz run csv`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::csv(bytes);
});
