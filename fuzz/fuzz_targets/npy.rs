//! `cargo +nightly fuzz run npy`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::npy(bytes);
});
