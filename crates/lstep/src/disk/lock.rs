//! One writer for each folder.

use super::remove_leftovers;
use crate::error::{Error, InputFault, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file that is locked. It is empty, and goes with the lock, except where a process is killed.
const NAME: &str = ".lock";

/// The right to write into a folder, until it is dropped. The operating system takes it back when
/// the process ends, however it ends. Readers need none.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    path: PathBuf,
}

impl FolderLock {
    /// Locks a folder that exists, and removes what an earlier writer left unfinished in it.
    ///
    /// # Errors
    ///
    /// If another process, or another part of this one, writes into it.
    pub fn acquire(folder: impl AsRef<Path>) -> Result<FolderLock> {
        let folder = folder.as_ref();
        let path = folder.join(NAME);
        loop {
            let file = open(&path).map_err(|error| Error::io(&path, error))?;
            match file.try_lock() {
                // Whoever had the lock may have removed the file after it was opened here: then
                // others lock another file of that name.
                Ok(()) if !is_named(&file, &path) => continue,
                Ok(()) => remove_leftovers(folder),
                Err(TryLockError::WouldBlock) => {
                    let problem = "another process is writing into this folder";
                    let remedy = "wait until it has ended, or stop it, or choose another folder";
                    let fault = InputFault::new(folder.display().to_string(), problem, remedy);
                    return Err(Error::incompatible(fault));
                }
                // A file system without locks does not keep anybody from working.
                Err(TryLockError::Error(error)) if is_unsupported(&error) => {}
                Err(TryLockError::Error(error)) => return Err(Error::io(path, error)),
            }
            return Ok(FolderLock { _file: file, path });
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Where files cannot be told apart, the file stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether an open file still has its name.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(opened), Ok(named)) => of(opened) == of(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> bool {
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
