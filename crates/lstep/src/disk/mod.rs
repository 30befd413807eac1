//! Files that are whole or absent, folders with one writer, and reads with a limit.
//!
//! Everything that is written goes through [`write_file`]: into a new file of a random name in the
//! same folder, to the disk, and then to its name. A write that fails, or that a kill ends, leaves
//! the last good file as it was. Links are replaced, never followed, and what is no file (a device,
//! a pipe, a folder) is never replaced.

#[cfg(test)]
pub(crate) mod faults;
mod lock;
pub mod path_text;
#[cfg(test)]
mod tests;

pub use lock::{FileLock, FolderLock};

use crate::error::{Error, InputFault, Result};
use std::fs::{self, File, FileType, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The most bytes of a file of settings that are read.
pub const SETTINGS_LIMIT: u64 = 4 << 20;
/// The most bytes of a report, or of another text that lstep writes, that are read.
pub const REPORT_LIMIT: u64 = 64 << 20;
/// The most bytes that are held of what has to be read whole and does not tell its length.
pub const STREAM_LIMIT: u64 = 1 << 30;

/// How the names of unfinished files begin and end. Between them is a random number.
const PARTIAL: (&str, &str) = (".lstep-", ".partial");

/// A file that is being written and does not have its name yet.
#[derive(Debug)]
pub struct FileWriter(BufWriter<Target>);

/// The file below the buffer, where tests inject faults.
#[derive(Debug)]
struct Target(File);

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        fallible()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A name that no file has yet; whatever gets it is removed again unless it is renamed.
struct Partial(PathBuf);

impl Partial {
    /// Makes a file of a random name in the folder of `path`, and locks it: a file that nobody
    /// locks is a leftover, which anybody may remove.
    fn create_beside(path: &Path) -> io::Result<(Partial, File)> {
        fallible()?;
        loop {
            let partial = Partial::beside(path);
            // `O_EXCL` neither follows a link nor opens what is there.
            let file = OpenOptions::new().write(true).create_new(true).open(&partial.0)?;
            match file.try_lock() {
                // Somebody took it for a leftover between the two calls.
                Ok(()) if !lock::is_named(&file, &partial.0) => {}
                Err(TryLockError::WouldBlock) => {}
                // Without locks nothing is taken for a leftover.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok((partial, file)),
            }
        }
    }

    /// A random name in the folder of `path`.
    fn beside(path: &Path) -> Partial {
        // Nobody can foresee the keys of `RandomState`, so nobody can be there first.
        let number = RandomState::new().build_hasher().finish();
        Partial(path.with_file_name(format!("{}{number:016x}{}", PARTIAL.0, PARTIAL.1)))
    }

    fn rename(&self, path: &Path) -> io::Result<()> {
        fallible()?;
        fs::rename(&self.0, path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing left under this name, except where both names were links
        // to one file: then a rename does nothing.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file, in place of an older one of that name if there is one; under its name it is
/// always whole.
///
/// # Errors
///
/// If the disk refuses, if `write` fails, or if the name belongs to something that is no file. The
/// older file is then as it was.
pub fn write_file(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut FileWriter) -> io::Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    check_replaceable(path)?;
    let failed = |error| Error::io(path, error);
    path.file_name().ok_or(io::ErrorKind::InvalidFilename.into()).map_err(failed)?;
    let attempt = || {
        let (partial, file) = Partial::create_beside(path)?;
        let file = Target(file);
        let mut out = FileWriter(BufWriter::with_capacity(1 << 16, file));
        write(&mut out)?;
        let Target(file) = out.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        fallible()?;
        file.sync_all()?;
        partial.rename(path)
    };
    attempt().map_err(failed)?;
    // The new name, too, survives a power failure where folders can be synced; where not, the file
    // is whole all the same.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes a text file as [`write_file`] does.
pub fn write_text(path: impl AsRef<Path>, text: &str) -> Result<()> {
    write_file(path, |out| out.write_all(text.as_bytes()))
}

/// Adds a line, without its end, to a text file, and returns when it is on the disk. Makes the file
/// if there is none. The file is written anew, so a failure leaves no half line: for short files.
pub fn append_line(path: impl AsRef<Path>, line: &str) -> Result<()> {
    let path = path.as_ref();
    write_file(path, |out| {
        match File::open(path) {
            Ok(mut before) => io::copy(&mut before, out).map(drop)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        writeln!(out, "{line}")
    })
}

/// Gives a whole file a second name, in place of an older file of that name if there is one. The
/// bytes are shared where the file system can do that, which is safe for files that are only ever
/// replaced, never changed.
pub(crate) fn duplicate(from: &Path, to: &Path) -> Result<()> {
    check_replaceable(to)?;
    let partial = Partial::beside(to);
    match fallible().and_then(|()| fs::hard_link(from, &partial.0)) {
        Ok(()) => partial.rename(to).map_err(|error| Error::io(to, error)),
        Err(_) => {
            let mut original = File::open(from).map_err(|error| Error::io(from, error))?;
            write_file(to, |out| io::copy(&mut original, out).map(drop))
        }
    }
}

/// Refuses a name that belongs to something that is no file. A link to a file counts as a file,
/// because the link itself is replaced.
pub fn check_replaceable(path: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    // Behind /dev/stdout may be a file, and still the name is not ours to take.
    if fs::canonicalize(folder_of(path)).is_ok_and(|folder| is_of_the_system(&folder)) {
        let problem = format!("is a name of the system in {}", folder_of(path).display());
        let problem = format!("{problem}, which is never replaced");
        let remedy = "name a file, or a name that nothing has yet";
        return Err(InputFault::new(path.display().to_string(), problem, remedy).into());
    }
    let kind = if found.is_symlink() {
        // A link that leads nowhere is replaced like one to a file.
        let Ok(behind) = fs::metadata(path) else { return Ok(()) };
        behind.file_type()
    } else {
        found.file_type()
    };
    let Some(name) = special(kind) else { return Ok(()) };
    let link = if found.is_symlink() { "a link to " } else { "" };
    let problem = format!("is {link}{name}, which is never replaced");
    let remedy = "name a file, or a name that nothing has yet";
    Err(InputFault::new(path.display().to_string(), problem, remedy).into())
}

/// Whether a folder holds devices and processes.
fn is_of_the_system(folder: &Path) -> bool {
    cfg!(unix)
        && (folder == Path::new("/dev")
            || ["/dev/fd", "/proc", "/sys"].iter().any(|system| folder.starts_with(system)))
}

/// What it is, if it is no file.
fn special(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("a named pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
    }
    Some("a device")
}

/// Reads a text file of at most `most` bytes.
///
/// # Errors
///
/// If the file cannot be read, is not UTF-8, or is longer, which also ends the reading of a device
/// without an end.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> Result<String> {
    let path = path.as_ref();
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(most + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| match io::Error::kind(&error) {
        // The last character may have been cut by the limit.
        io::ErrorKind::InvalidData if longer(path, most) => too_long(path, most),
        _ => Error::io(path, error),
    })?;
    if text.len() as u64 > most { Err(too_long(path, most)) } else { Ok(text) }
}

fn longer(path: &Path, most: u64) -> bool {
    fs::metadata(path).is_ok_and(|data| data.len() > most)
}

/// Says that a file has more bytes than are read of such a file.
pub fn too_long(path: &Path, most: u64) -> Error {
    let size = match most {
        most if most >= 1 << 20 => format!("{} MiB", most >> 20),
        most => format!("{most} bytes"),
    };
    let problem = format!("has more than {size}, the most that is read of such a file");
    InputFault::new(path.display().to_string(), problem, "give a file that lstep wrote").into()
}

/// Reads a file of at most `most` bytes; of a pipe or a device, which do not tell how long they
/// are, no more than [`STREAM_LIMIT`].
pub fn read_bytes(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let read = || {
        let file = File::open(path)?;
        let found = file.metadata()?;
        let most = if found.is_file() { most } else { most.min(STREAM_LIMIT) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        Ok((bytes, most))
    };
    let (bytes, most) = read().map_err(|error| Error::io(path, error))?;
    if bytes.len() as u64 > most { Err(too_long(path, most)) } else { Ok(bytes) }
}

/// Removes what earlier writers left in a folder when they were killed. What somebody is writing
/// just now is locked and stays. `alone` tells that nobody else may write into the folder.
fn remove_leftovers(folder: &Path, alone: bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.as_encoded_bytes();
        // Former versions wrote `.NAME.partial`.
        let start = if alone { "." } else { PARTIAL.0 };
        if !name.starts_with(start.as_bytes())
            || !name.ends_with(PARTIAL.1.as_bytes())
            || !entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        let left = match file.try_lock() {
            // A second name of a whole file is about to be renamed, and is not locked.
            Ok(()) => alone || !lock::has_other_names(&file),
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => alone,
        };
        if left {
            let _ = fs::remove_file(path);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Where a test may let the operating system refuse.
fn fallible() -> io::Result<()> {
    #[cfg(test)]
    faults::next()?;
    Ok(())
}
