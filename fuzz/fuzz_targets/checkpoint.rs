//! `cargo +nightly fuzz run checkpoint`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::checkpoint(bytes);
});
