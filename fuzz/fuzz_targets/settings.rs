//! `cargo +nightly fuzz run settings`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::settings(bytes);
});
