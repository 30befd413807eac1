//! `cargo +nightly fuzz run bundle`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::bundle(bytes);
});
