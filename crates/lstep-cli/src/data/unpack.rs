//! Zip archives, unpacked into one folder, whatever folders they name.
//!
//! The `zip` crate does the work: Zenodo's archive of Reddit is packed with Deflate64, which a
//! reader of our own on flate2 would have to bring along. Only a file's last name is used, so an
//! archive can put nothing anywhere else; one that tries is refused before a byte is written. So is
//! one with more files, or more bytes in them, than any dataset has, and one that holds a file of
//! its own name.

use anyhow::{Context, Result, bail};
use lstep::disk::write_file;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Most files of an archive.
const MOST_FILES: usize = 10_000;
/// Most bytes that an archive's files may have together: far beyond any dataset of the catalogue.
const MOST_BYTES: u64 = 64 << 30;

/// Whether a file begins as a zip archive does.
pub fn is_zip(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut head)).is_ok()
        && head == *b"PK\x03\x04"
}

/// Unpacks all files of an archive into a folder and gives their paths. Each is whole under its
/// name or absent.
pub fn unpack(archive: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    unpack_within(archive, folder, MOST_FILES, MOST_BYTES)
}

fn unpack_within(archive: &Path, folder: &Path, files: usize, bytes: u64) -> Result<Vec<PathBuf>> {
    let shown = archive.display();
    let broken = || format!("{shown} is no whole zip archive: remove it and fetch again");
    let file = File::open(archive).with_context(|| format!("cannot read {shown}"))?;
    let mut zip = ZipArchive::new(BufReader::new(file)).with_context(broken)?;
    if zip.len() > files {
        bail!(
            "{shown} holds {} files, and at most {files} are unpacked: unpack it by hand",
            zip.len()
        );
    }
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let mut claimed = 0u64;
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).with_context(broken)?;
        let name = entry.name().with_context(broken)?.into_owned();
        if entry.is_symlink() {
            bail!("{shown} holds {name:?}, which is a link: such an archive is not unpacked");
        }
        if leads_out(&name) {
            bail!(
                "{shown} holds {name:?}, which leads out of its folder: such an archive is not unpacked"
            );
        }
        let last = name.rsplit(SEPARATORS).next().unwrap_or_default().to_string();
        // Folders, and what other systems add to archives.
        if entry.is_dir()
            || last.starts_with('.')
            || name.split(SEPARATORS).any(|part| part == "__MACOSX")
        {
            continue;
        }
        // Such files would take the place of the archive, or of what is kept beside it.
        if archive.file_name().is_some_and(|own| is_beside(own, &last)) {
            bail!("{shown} holds {last:?}, which is a name of its own: unpack it by hand");
        }
        claimed = claimed.saturating_add(entry.size());
        if claimed > bytes {
            bail!(
                "{shown} holds more than {bytes} bytes, the most that is unpacked: unpack it by hand"
            );
        }
        if wanted.insert(last.clone(), index).is_some() {
            bail!("{shown} holds two files named {last:?}: unpack it by hand");
        }
    }
    let mut files = Vec::new();
    for (name, index) in wanted {
        let path = folder.join(&name);
        let written = write_file(&path, |out| {
            let mut entry = zip.by_index(index).map_err(io::Error::from)?;
            // What is there counts, not what is claimed.
            let claimed = entry.size();
            // Reading to the end checks the archive's own sum.
            if io::copy(&mut entry.by_ref().take(claimed + 1), out)? > claimed {
                let problem = format!("it has more than the {claimed} bytes that it claims");
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            Ok(())
        });
        written.with_context(|| format!("cannot unpack {name:?} of {shown}"))?;
        files.push(path);
    }
    Ok(files)
}

/// Whether a name is that of the archive, or of a note beside it. Some file systems know no case.
fn is_beside(archive: &OsStr, name: &str) -> bool {
    let own = archive.to_string_lossy().to_lowercase();
    let name = name.to_lowercase();
    name == own
        || ["sha256", "part", "part.version"].iter().any(|end| name == format!("{own}.{end}"))
}

/// What parts folders, whichever system packed.
const SEPARATORS: [char; 2] = ['/', '\\'];

/// Whether a name begins at the root or at a drive, or climbs.
fn leads_out(name: &str) -> bool {
    name.starts_with(SEPARATORS)
        || name.contains(':')
        || name.split(SEPARATORS).any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
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
        for name in
            ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "..\\evil.csv", "C:\\evil.csv"]
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
        let directory =
            bytes.windows(4).position(|place| place == b"PK\x01\x02").expect("a directory");
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
        assert!(
            unpack(&path, folder.path()).expect_err("refused").to_string().contains("two files")
        );
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
        let directory =
            bytes.windows(4).position(|place| place == b"PK\x01\x02").expect("a directory");
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
}
