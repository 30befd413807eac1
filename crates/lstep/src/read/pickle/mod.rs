//! TGB's files of negatives: a Python pickle of one dictionary, read without executing anything.
//!
//! A pickle is a program for a small stack machine, and Python's own reader calls whatever the
//! program names. The machine here knows only the operations such a file needs and the few numpy
//! names of an allow-list; any other name is refused. What a file claims (sizes, counts) is checked
//! against the bytes it has before anything is allocated, and memory stays within a constant factor
//! of the file. Protocols 2 to 5, numpy 1 and 2.

mod lists;
mod machine;
mod number;

use crate::disk::read_bytes;
use crate::error::{InputFault, Result};
pub use lists::{NegativeLists, Positive};
use std::io::{self, Write};
use std::path::Path;

/// The most bytes of a file of negatives. Those of tgbl-flight have about 1 GB.
const LARGEST: u64 = 16 << 30;

/// Reads a file of negatives.
///
/// Refuses what is not a dictionary from (source, destination, time) to an array of destinations.
pub fn read(path: impl AsRef<Path>) -> Result<NegativeLists> {
    let path = path.as_ref();
    let bytes = read_bytes(path, LARGEST)?;
    parse(&path.display().to_string(), &bytes)
}

/// Reads the bytes of a file of negatives; `file` is named in errors.
pub fn parse(file: &str, bytes: &[u8]) -> Result<NegativeLists> {
    machine::run(bytes).map_err(|(place, problem)| {
        let problem = format!("is not a file of negatives: at byte {place}, {problem}");
        let remedy =
            "give a NAME_val_ns.pkl or NAME_test_ns.pkl as the Temporal Graph Benchmark makes it";
        InputFault::new(file, problem, remedy).into()
    })
}

/// Writes a file of negatives that py-tgb and [`read`] can load.
///
/// Protocol 4. Arrays are made by the public `numpy.frombuffer`, which every numpy has under that
/// name.
pub fn write(negatives: &NegativeLists, mut out: impl Write) -> io::Result<()> {
    out.write_all(b"\x80\x04}")?;
    // Remembered as 0 and 1, for every array.
    out.write_all(b"cnumpy\nfrombuffer\nq\x000\x8c\x03<i8q\x010")?;
    for ((source, destination, time), list) in negatives.iter() {
        for number in [source, destination, time] {
            out.write_all(b"\x8a\x08")?;
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(b"\x87h\x00\x8e")?;
        out.write_all(&(8 * list.len() as u64).to_le_bytes())?;
        for id in list {
            out.write_all(&id.to_le_bytes())?;
        }
        out.write_all(b"h\x01\x86Rs")?;
    }
    out.write_all(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a program.
    fn fault(program: &[u8]) -> String {
        parse("a.pkl", program).expect_err("not a file of negatives").to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut negatives = NegativeLists::default();
        negatives.insert((1, 2, 3), vec![4, -5, i64::MAX]);
        negatives.insert((i64::MIN, 0, 1 << 40), vec![]);
        let mut bytes = Vec::new();
        write(&negatives, &mut bytes).expect("memory");
        assert_eq!(parse("a.pkl", &bytes).expect("our own file"), negatives);
    }

    #[test]
    fn a_name_outside_the_list_is_refused_by_name() {
        let message = fault(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
        assert!(
            message.starts_with("a.pkl: is not a file of negatives: at byte 2, it names os.system"),
            "{message}"
        );
        assert!(
            fault(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.").contains("it names builtins.eval")
        );
        assert!(fault(b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.").contains("it names numpy.load"));
    }

    #[test]
    fn every_cut_of_a_file_is_refused() {
        let mut negatives = NegativeLists::default();
        negatives.insert((1, 2, 3), vec![4, 5]);
        let mut bytes = Vec::new();
        write(&negatives, &mut bytes).expect("memory");
        for end in 0..bytes.len() {
            assert!(parse("a.pkl", &bytes[..end]).is_err(), "cut at {end}");
        }
        bytes.push(b'.');
        assert!(fault(&bytes).contains("more bytes follow"));
    }

    #[test]
    fn a_claimed_size_beyond_the_file_is_refused_before_it_is_allocated() {
        assert!(fault(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.").contains("the file ends"));
        assert!(fault(b"\x80\x04B\xff\xff\xff\xff.").contains("the file ends"));
        assert!(fault(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.").contains("the file ends"));
        assert!(fault(b"\x80\x04K\x01r\xff\xff\xff\xff.").contains("remembers"));
    }

    #[test]
    fn deep_nesting_costs_nothing_and_is_refused() {
        let mut program = b"\x80\x04)".to_vec();
        program.extend([0x85].repeat(1_000_000));
        program.push(b'.');
        assert!(fault(&program).contains("no dictionary"));
    }

    #[test]
    fn one_buffer_cannot_become_many_arrays() {
        // A thousand bytes, taken a hundred times as an array: more ids than the file has bytes.
        let mut program =
            b"\x80\x04}cnumpy\nfrombuffer\nq\x000\x8c\x02i1q\x010B\xe8\x03\x00\x00".to_vec();
        program.extend([7; 1000]);
        program.extend(b"q\x020");
        for key in 0..100 {
            program.extend([b'K', key, b'K', 1, b'K', 1, 0x87]);
            program.extend(b"h\x00h\x02h\x01\x86Rs");
        }
        program.push(b'.');
        assert!(fault(&program).contains("more ids than the file has bytes"));
    }

    #[test]
    fn wrong_keys_and_values_are_refused() {
        assert!(fault(b"\x80\x04.").contains("pops"));
        assert!(fault(b"\x80\x04K\x01.").contains("no dictionary"));
        assert!(fault(b"\x80\x04}}.").contains("second dictionary"));
        assert!(fault(b"\x80\x04}K\x01K\x02s.").contains("key"));
        assert!(fault(b"\x80\x04}K\x01K\x02K\x03\x87K\x04s.").contains("array"));
        assert!(
            fault(b"\x80\x04}G\x3f\xf8\x00\x00\x00\x00\x00\x00K\x02K\x03\x87K\x04s.")
                .contains("1.5 is not an integer")
        );
        assert!(fault(b"\x80\x04]").contains("operation 0x5d"));
        assert!(fault(b"\x80\x06}.").contains("protocol 6"));
        assert!(fault(b"}.").contains("begin"));
    }
}
