//! Zip archives, unpacked into one folder, whatever folders they name.
//!
//! The `zip` crate does the work: Zenodo's archive of Reddit is packed with Deflate64, which a
//! reader of our own on flate2 would have to bring along. Only a file's last name is used, so an
//! archive can put nothing anywhere else; one that tries is refused before a byte is written.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Whether a file begins as a zip archive does.
pub fn is_zip(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut head)).is_ok()
        && head == *b"PK\x03\x04"
}

/// Unpacks all files of an archive into a folder and gives their paths. Each is whole under its
/// name or absent.
pub fn unpack(archive: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let shown = archive.display();
    let broken = || format!("{shown} is no whole zip archive: remove it and fetch again");
    let file = File::open(archive).with_context(|| format!("cannot read {shown}"))?;
    let mut zip = ZipArchive::new(BufReader::new(file)).with_context(broken)?;
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
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
        if wanted.insert(last.clone(), index).is_some() {
            bail!("{shown} holds two files named {last:?}: unpack it by hand");
        }
    }
    let mut files = Vec::new();
    for (name, index) in wanted {
        let path = folder.join(&name);
        let partial = folder.join(format!(".{name}.partial"));
        let written = zip.by_index(index).map_err(io::Error::from).and_then(|mut entry| {
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
            // Reading to the end checks the archive's own sum.
            io::copy(&mut entry, &mut out)?;
            out.flush()?;
            fs::rename(&partial, &path)
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&partial);
            return Err(error)
                .with_context(|| format!("cannot unpack {name} of {shown} to {}", path.display()));
        }
        files.push(path);
    }
    Ok(files)
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
