//! `cargo +nightly fuzz run report`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::report(bytes);
});
