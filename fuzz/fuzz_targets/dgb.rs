//! `cargo +nightly fuzz run dgb`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::dgb(bytes);
});
