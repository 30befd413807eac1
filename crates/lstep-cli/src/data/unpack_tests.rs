//! Archives as they come, and as somebody would make them to do harm. Apart from `unpack.rs`,
//! which the fuzz targets include.

use super::unpack::{unpack, unpack_within};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

fn archive(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    let path = folder.join("a.zip");
    let mut zip = zip::ZipWriter::new(File::create(&path).expect("a file"));
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).expect("an entry");
        zip.write_all(text.as_bytes()).expect("written");
    }
    zip.finish().expect("written");
    path
}

#[test]
fn folders_are_dropped_and_what_systems_add_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("uci/ml_uci.csv", "u,i,ts\n"),
        ("__MACOSX/uci/._ml_uci.csv", "x"),
        ("uci/.DS_Store", "x"),
    ];
    let path = archive(folder.path(), &files);
    let unpacked = unpack(&path, folder.path()).expect("a good archive");
    assert_eq!(unpacked, [folder.path().join("ml_uci.csv")]);
    assert_eq!(fs::read_to_string(&unpacked[0]).expect("unpacked"), "u,i,ts\n");
}

#[test]
fn an_archive_that_leads_out_of_its_folder_is_refused_before_anything_is_written() {
    for name in ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "..\\evil.csv", "C:\\evil.csv"]
    {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("inner");
        fs::create_dir(&folder).expect("a folder");
        // The writer would mend such a name: it is put in afterwards, at both places that hold
        // it.
        let harmless = "@".repeat(name.len());
        let path = archive(&folder, &[("good.csv", "1"), (&harmless, "2")]);
        let mut bytes = fs::read(&path).expect("read");
        for place in 0..bytes.len() - name.len() {
            if bytes[place..].starts_with(harmless.as_bytes()) {
                bytes[place..place + name.len()].copy_from_slice(name.as_bytes());
            }
        }
        fs::write(&path, bytes).expect("written");
        let error = unpack(&path, &folder).expect_err("refused").to_string();
        assert!(error.contains("leads out of its folder"), "{name}: {error}");
        assert!(!folder.join("good.csv").exists() && !outer.path().join("evil.csv").exists());
    }
}

/// Without matches of 258 bytes or from further than 32 KiB both methods give the same bits, so
/// the method's number is all that has to be changed: behind the eighth byte of the entry's own
/// header, and behind the tenth of the one at the archive's end.
#[test]
fn a_file_packed_with_deflate64_is_unpacked_as_reddit_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "one, two, one, two, three, one, two, three, four";
    let path = archive(folder.path(), &[("x.csv", text)]);
    let mut bytes = fs::read(&path).expect("read");
    let directory = bytes.windows(4).position(|place| place == b"PK\x01\x02").expect("a directory");
    for place in [8, directory + 10] {
        assert_eq!(bytes[place], 8, "packed with Deflate");
        bytes[place] = 9;
    }
    fs::write(&path, bytes).expect("written");
    let unpacked = unpack(&path, folder.path()).expect("a method that is known");
    assert_eq!(fs::read_to_string(&unpacked[0]).expect("unpacked"), text);
}

#[test]
fn two_files_of_one_name_and_a_cut_archive_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = archive(folder.path(), &[("a/x.csv", "1"), ("b/x.csv", "2")]);
    assert!(unpack(&path, folder.path()).expect_err("refused").to_string().contains("two files"));
    let bytes = fs::read(archive(folder.path(), &[("x.csv", "12345")])).expect("read");
    fs::write(&path, &bytes[..bytes.len() - 9]).expect("written");
    assert!(
        unpack(&path, folder.path())
            .expect_err("refused")
            .to_string()
            .contains("no whole zip archive")
    );
}

#[test]
fn an_archive_does_not_overwrite_itself_or_its_notes() {
    for name in ["a.zip", "x/A.ZIP", "a.zip.sha256", "a.zip.part"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = archive(folder.path(), &[("good.csv", "1"), (name, "2")]);
        let before = fs::read(&path).expect("read");
        let error = unpack(&path, folder.path()).expect_err("refused").to_string();
        assert!(error.contains("a name of its own"), "{error}");
        assert_eq!(fs::read(&path).expect("read"), before);
        assert!(!folder.path().join("good.csv").exists());
    }
}

#[test]
fn an_archive_of_too_many_files_or_bytes_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = archive(folder.path(), &[("x.csv", "12345"), ("y.csv", "123456")]);
    for (files, bytes, words) in [(1, 100, "at most 1 "), (2, 10, "more than 10 bytes")] {
        let refused = unpack_within(&path, folder.path(), files, bytes).expect_err("too much");
        assert!(refused.to_string().contains(words), "{refused}");
        assert!(!folder.path().join("x.csv").exists());
    }
    assert_eq!(unpack_within(&path, folder.path(), 2, 11).expect("as much").len(), 2);
}

/// Both places that say how long the file is are changed; the packed bytes give more.
#[test]
fn a_file_that_is_longer_than_it_claims_is_refused_and_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = archive(folder.path(), &[("x.csv", &"0".repeat(100_000))]);
    let mut bytes = fs::read(&path).expect("read");
    let directory = bytes.windows(4).position(|place| place == b"PK\x01\x02").expect("a directory");
    for place in [22, directory + 24] {
        assert_eq!(bytes[place..place + 4], 100_000u32.to_le_bytes());
        bytes[place..place + 4].copy_from_slice(&9u32.to_le_bytes());
    }
    fs::write(&path, bytes).expect("written");
    assert!(unpack(&path, folder.path()).is_err());
    assert!(!folder.path().join("x.csv").exists());
}

#[test]
fn a_damaged_file_is_refused_and_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = archive(
        folder.path(),
        &[("x.csv", "a text that is long enough to be packed, packed, packed")],
    );
    let mut bytes = fs::read(&path).expect("read");
    // Behind the entry's own header of 30 bytes and its name.
    bytes[30 + 5 + 4] ^= 0xff;
    fs::write(&path, bytes).expect("written");
    assert!(unpack(&path, folder.path()).is_err());
    assert!(!folder.path().join("x.csv").exists());
}
