//! One writer for each folder, and for each file that stands alone.

use super::{folder_of, remove_leftovers};
use crate::error::{Error, InputFault, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// The file that is locked. It is empty, and goes with the lock, except where a process is killed.
const NAME: &str = ".lock";

/// The right to write into a folder, until it is dropped. The operating system takes it back when
/// the process ends, however it ends. Readers need none.
#[derive(Debug)]
pub struct FolderLock {
    lock: Lock,
}

/// What is said where a folder has another writer.
const BUSY: (&str, &str) = (
    "another process is writing into this folder",
    "wait until it has ended, or stop it, or choose another folder",
);

impl FolderLock {
    /// Locks a folder that exists, and removes what an earlier writer left unfinished in it.
    ///
    /// # Errors
    ///
    /// If another process, or another part of this one, writes into it.
    pub fn acquire(folder: impl AsRef<Path>) -> Result<FolderLock> {
        let folder = folder.as_ref();
        FolderLock::try_acquire(folder)?.ok_or_else(|| FolderLock::busy(folder))
    }

    /// The same; nothing if somebody else writes into the folder.
    pub fn try_acquire(folder: impl AsRef<Path>) -> Result<Option<FolderLock>> {
        let folder = folder.as_ref();
        let Some(lock) = Lock::acquire(folder.join(NAME))? else { return Ok(None) };
        if lock.held {
            remove_leftovers(folder, true);
        }
        Ok(Some(FolderLock { lock }))
    }

    /// What is said where a folder has another writer.
    pub(crate) fn busy(folder: &Path) -> Error {
        busy(folder, BUSY)
    }

    /// Whether others are kept out. A file system without locks keeps nobody from working, so
    /// whoever relies on a lock has to ask.
    pub fn keeps_others_out(&self) -> bool {
        self.lock.held
    }
}

fn busy(what: &Path, (problem, remedy): (&str, &'static str)) -> Error {
    Error::incompatible(InputFault::new(what.display().to_string(), problem, remedy))
}

/// The right to write a file that stands alone in somebody's folder, until it is dropped. Other
/// files there may be written meanwhile.
#[derive(Debug)]
pub struct FileLock {
    _lock: Lock,
}

impl FileLock {
    /// Locks the name of a file, which need not be there yet, and removes what killed writers left
    /// unfinished in its folder.
    ///
    /// # Errors
    ///
    /// If another process, or another part of this one, writes the file.
    pub fn acquire(path: impl AsRef<Path>) -> Result<FileLock> {
        let path = path.as_ref();
        // The file's own name may be as long as names can be.
        let mut hash = DefaultHasher::new();
        path.file_name().hash(&mut hash);
        let name = format!(".lstep-{:016x}.lock", hash.finish());
        let problem = "another process is writing this file";
        let remedy = "wait until it has ended, or stop it, or choose another file";
        let lock = Lock::acquire(folder_of(path).join(name))?;
        let lock = lock.ok_or_else(|| busy(path, (problem, remedy)))?;
        remove_leftovers(folder_of(path), false);
        Ok(FileLock { _lock: lock })
    }
}

/// A locked file.
#[derive(Debug)]
struct Lock {
    _file: File,
    path: PathBuf,
    /// Whether nobody else can have it. A file system without locks does not keep anybody from
    /// working.
    held: bool,
}

impl Lock {
    /// Makes a file and locks it; nothing if somebody else has it locked.
    fn acquire(path: PathBuf) -> Result<Option<Lock>> {
        loop {
            let file = open(&path).map_err(|error| Error::io(&path, error))?;
            let held = match file.try_lock() {
                // Whoever had the lock may have removed the file after it was opened here: then
                // others lock another file of that name.
                Ok(()) if !is_named(&file, &path) => continue,
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) if is_unsupported(&error) => false,
                Err(TryLockError::Error(error)) => return Err(Error::io(path, error)),
            };
            return Ok(Some(Lock { _file: file, path, held }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Where files cannot be told apart, the file stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether an open file still has its name.
#[cfg(unix)]
pub(super) fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(opened), Ok(named)) => of(opened) == of(named),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(super) fn is_named(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether an open file has a second name.
#[cfg(unix)]
pub(super) fn has_other_names(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|data| data.nlink() > 1)
}

#[cfg(not(unix))]
pub(super) fn has_other_names(_: &File) -> bool {
    true
}

fn open(path: &Path) -> io::Result<File> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
                let problem = "is no file, though lstep locks the folder with it: remove it";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            match OpenOptions::new().write(true).open(path) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => open(path),
                opened => opened,
            }
        }
        opened => opened,
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    /// ENOLCK: a network file system without a lock service.
    const NO_LOCKS: i32 = 37;
    error.kind() == io::ErrorKind::Unsupported
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(NO_LOCKS))
}
