//! `cargo +nightly fuzz run pickle`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::pickle(bytes);
});
