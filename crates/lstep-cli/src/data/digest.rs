//! Checksums of files, and those that are kept beside them.

use anyhow::{Context, Result, bail};
use lstep::data::Checksum;
use lstep::disk::{SETTINGS_LIMIT, read_text, write_text};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a file's bytes give.
pub struct FileDigest {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    md5: String,
}

impl FileDigest {
    /// Reads the whole file.
    pub fn of(path: &Path) -> Result<FileDigest> {
        let busy = crate::progress::busy(&format!("checking {}", path.display()));
        let digest = read(path).with_context(|| format!("cannot read {}", path.display()));
        busy.finish_and_clear();
        digest
    }

    /// Refuses a file that is not the one expected. `what` is the file as the message calls it.
    pub fn check(&self, what: &str, expected: &Checksum) -> Result<()> {
        let found = match expected {
            Checksum::Unknown => return Ok(()),
            Checksum::Md5(_) => Checksum::Md5(self.md5.clone()),
            Checksum::Sha256(_) => Checksum::Sha256(self.sha256.clone()),
        };
        if found == *expected {
            return Ok(());
        }
        bail!("{what} gives {found} where {expected} is expected")
    }
}

fn read(path: &Path) -> std::io::Result<FileDigest> {
    let mut file = File::open(path)?;
    let (mut sha256, mut md5) = (Sha256::new(), md5::Md5::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        sha256.update(&buffer[..count]);
        md5.update(&buffer[..count]);
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FileDigest { sha256: hex(&sha256.finalize()), md5: hex(&md5.finalize()) })
}

/// Keeps a file's SHA-256 beside it, as `sha256sum --check` reads it.
pub fn keep(path: &Path, sha256: &str) -> Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(write_text(beside(path), &format!("{sha256}  {name}\n"))?)
}

/// The SHA-256 that was kept beside a file.
pub fn kept(path: &Path) -> Result<Checksum> {
    let beside = beside(path);
    if !beside.exists() {
        return Ok(Checksum::Unknown);
    }
    let text = read_text(&beside, SETTINGS_LIMIT)?;
    let digits = text.split_whitespace().next().unwrap_or_default();
    format!("sha256:{digits}")
        .parse()
        .with_context(|| format!("{} is no checksum: remove it", beside.display()))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    PathBuf::from(name)
}
