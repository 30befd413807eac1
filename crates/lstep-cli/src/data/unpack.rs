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

pub(super) fn unpack_within(
    archive: &Path,
    folder: &Path,
    files: usize,
    bytes: u64,
) -> Result<Vec<PathBuf>> {
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
