//! `cargo +nightly fuzz run tgb_negatives`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::tgb_negatives(bytes);
});
