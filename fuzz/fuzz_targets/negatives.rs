//! `cargo +nightly fuzz run negatives`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::negatives(bytes);
});
