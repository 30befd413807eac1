//! Files that are whole or absent, and lines that are there once they are said to be.

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a text file, in place of an older one of that name if there is one; under its name it is
/// always whole.
pub fn write_text(path: impl AsRef<Path>, text: &str) -> Result<()> {
    replace(path.as_ref(), |out| out.write_all(text.as_bytes()))
}

/// Adds a line, without its end, to a text file, and returns when it is on the disk. Makes the file
/// if there is none.
pub fn append_line(path: impl AsRef<Path>, line: &str) -> Result<()> {
    let path = path.as_ref();
    let append = || {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // In one call, so that a kill does not leave half a line.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    };
    append().map_err(|error| Error::io(path, error))
}

/// Gives a whole file a second name, in place of an older file of that name if there is one. The
/// bytes are shared where the file system can do that, which is safe for files that are only ever
/// replaced, never changed.
pub(crate) fn duplicate(from: &Path, to: &Path) -> Result<()> {
    let linked = || {
        let partial = partial(to)?;
        let _ = fs::remove_file(&partial);
        fs::hard_link(from, &partial)?;
        fs::rename(&partial, to)
    };
    if linked().is_ok() {
        return Ok(());
    }
    let mut original = File::open(from).map_err(|error| Error::io(from, error))?;
    replace(to, |out| io::copy(&mut original, out).map(drop))
}

/// Where a file is written before it gets its name.
fn partial(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
    name.push(".partial");
    Ok(path.with_file_name(name))
}

/// Writes `.NAME.partial` beside the file, brings it to the disk and renames it. What a kill leaves
/// there the next call replaces.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let partial = partial(path).map_err(|error| Error::io(path, error))?;
    let attempt = || {
        let mut out = BufWriter::with_capacity(1 << 16, File::create(&partial)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, path)
    };
    attempt().map_err(|error| {
        let _ = fs::remove_file(&partial);
        Error::io(path, error)
    })?;
    // The new name, too, survives a power failure where folders can be synced; where not, the file
    // is whole all the same.
    if let Ok(folder) = File::open(
        partial.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")),
    ) {
        let _ = folder.sync_all();
    }
    Ok(())
}
