//! `cargo +nightly fuzz run parquet`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lstep_fuzz::parquet(bytes);
});
