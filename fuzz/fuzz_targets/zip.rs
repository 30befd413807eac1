//! `cargo +nightly fuzz run zip`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::zip(bytes);
});
