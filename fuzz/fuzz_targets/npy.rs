//! Any bytes, read as a table of numbers, give a table or a message, in memory that follows the
//! bytes and not the header.
//!
//! `cargo +nightly fuzz run npy`

#![no_main]

use libfuzzer_sys::fuzz_target;
use lstep::read::read_npy_from;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_npy_from("fuzz.npy", bytes);
    // The same bytes after a header that is right as far as it goes: the fuzzer need not find the
    // magic number.
    let mut whole = b"\x93NUMPY\x01\x00".to_vec();
    if let Some((length, rest)) = bytes.split_first() {
        whole.extend([*length, 0]);
        whole.extend(rest);
        let _ = read_npy_from("fuzz.npy", &whole[..]);
    }
});
