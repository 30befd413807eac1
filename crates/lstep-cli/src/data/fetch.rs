//! `lstep data fetch`: from a name to files that `lstep inspect` reads.
//!
//! Download, check, give the file its name, keep its SHA-256 beside it, unpack. Whatever is
//! interrupted, the same command goes on; what does not give the checksum gets no name.

use super::digest::{self, FileDigest};
use super::download::{self, Part, download};
use super::unpack;
use crate::front::said;
use crate::{progress, say};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use lstep::data::{Catalogue, Checksum, Entry};
use lstep::disk::{FolderLock, path_text, write_file};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Download a dataset, check it and unpack it.
///
/// The files are put into a folder of the dataset's name. A download that was cut goes on where it
/// stopped; one that does not give the known checksum is refused. Where no checksum is known, that
/// of the first download is kept, and later ones have to give it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep data fetch uci --to data                then: lstep inspect data/uci/ml_uci.csv
  lstep data fetch tgbl-wiki                    with TGB's negatives, for --protocol tgb
  lstep data fetch uci --from https://mirror.example/dgb/
  lstep data fetch uci --from ~/Downloads/uci.zip --checksum md5:0123456789abcdef0123456789abcdef")]
pub struct Fetch {
    /// The dataset, as in `lstep data list`
    #[arg(value_name = "NAME")]
    name: String,

    /// Folder in which the dataset's own folder is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,

    /// Take the file from another address, from a folder of another host, or from a file that is
    /// here
    #[arg(long, value_name = "URL")]
    from: Option<PathBuf>,

    /// What the file has to give, instead of what the catalogue says: md5:HEX or sha256:HEX
    #[arg(long, value_name = "CHECKSUM")]
    checksum: Option<Checksum>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Who says what the file has to give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Witness {
    /// The command line.
    EvalScope,
    Catalogue,
    /// The host's record of its files.
    Host,
    /// The first download here.
    Kept,
    Nobody,
}

#[derive(Serialize)]
struct Fetched<'a> {
    name: &'a str,
    address: String,
    #[serde(serialize_with = "path_text::serialize")]
    archive: PathBuf,
    bytes: u64,
    sha256: String,
    checksum: Checksum,
    checked_against: Witness,
    resumed_from: u64,
    downloaded: bool,
    #[serde(serialize_with = "path_text::list::serialize")]
    files: Vec<PathBuf>,
    #[serde(serialize_with = "path_text::serialize")]
    events: PathBuf,
    licence: &'a str,
    source: &'a str,
}

impl Fetch {
    /// Fetches, checks, unpacks, prints.
    pub fn run(&self) -> Result<()> {
        let catalogue = Catalogue::embedded();
        let entry = catalogue.find(&self.name)?;
        let fetched = self.fetch(entry)?;
        if self.json {
            return say(serde_json::to_string_pretty(&fetched)?);
        }
        let how = match fetched.checked_against {
            Witness::EvalScope => "as asked for",
            Witness::Catalogue => "as the catalogue says",
            Witness::Host => "as the host says",
            Witness::Kept => "as at the first download",
            Witness::Nobody => "known to nobody before; kept for the next time",
        };
        say(format!(
            "{}: {} bytes, sha256 {} ({how})",
            fetched.archive.display(),
            fetched.bytes,
            fetched.sha256
        ))?;
        for file in fetched.files.iter().filter(|file| **file != fetched.archive) {
            say(format!("  {}", file.display()))?;
        }
        say(format!("Licence: {}. Source: {}", entry.licence, entry.source))?;
        say(format!(
            "Now: lstep inspect {}{}",
            fetched.events.display(),
            if entry.sort { " --sort" } else { "" }
        ))
    }

    fn fetch<'a>(&self, entry: &'a Entry) -> Result<Fetched<'a>> {
        let folder = self.to.join(&entry.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let _writing = FolderLock::acquire(&folder)?;
        let archive = folder.join(entry.archive());
        let address = self.address(entry);
        let there = archive.exists();
        let (expected, witness) = self.expected(entry, &archive, there)?;
        let mut resumed_from = 0;
        let digest = if there {
            let digest = FileDigest::of(&archive)?;
            let remedy =
                "remove it to download it again, or give the right checksum with --checksum";
            digest
                .check(&archive.display().to_string(), &expected)
                .map_err(|error| anyhow!("{}: {remedy}", said(&error)))?;
            digest
        } else {
            let part = obtain(&address, self.local(), &folder, entry)?;
            resumed_from = part.resumed_from;
            let digest = FileDigest::of(&part.path)?;
            if let Err(error) = digest.check(&address, &expected) {
                part.discard();
                bail!(
                    "{}: nothing was kept; fetch again, or see at {} whether there is a new version and give its checksum with \
                     --checksum",
                    said(&error),
                    entry.source
                );
            }
            part.finish(&archive)?;
            digest
        };
        let events = folder.join(&entry.file);
        let files = match self.opened(entry, &archive, &folder, &events) {
            Ok(files) => files,
            Err(error) if there => {
                bail!(
                    "{}; the file was there before: remove {} to fetch it anew",
                    said(&error),
                    archive.display()
                )
            }
            Err(error) => {
                // Nobody vouches for it, and under this name it would be taken for the dataset.
                if witness == Witness::Nobody {
                    fs::remove_file(&archive)
                        .with_context(|| format!("cannot remove {}", archive.display()))?;
                }
                bail!("{}", said(&error));
            }
        };
        digest::keep(&archive, &digest.sha256)?;
        let bytes = fs::metadata(&archive).map_or(0, |data| data.len());
        Ok(Fetched {
            name: &entry.name,
            address,
            archive,
            bytes,
            sha256: digest.sha256,
            checksum: expected,
            checked_against: witness,
            resumed_from,
            downloaded: !there,
            files,
            events,
            licence: &entry.licence,
            source: &entry.source,
        })
    }

    /// The files of an archive, which have to be those of the dataset.
    fn opened(
        &self,
        entry: &Entry,
        archive: &Path,
        folder: &Path,
        events: &Path,
    ) -> Result<Vec<PathBuf>> {
        let files = if unpack::is_zip(archive) {
            unpacked(archive, folder)?
        } else if archive.extension().is_some_and(|end| end == "zip") {
            bail!(
                "what {} gives is not a zip archive, as {} is",
                self.address(entry),
                entry.archive()
            );
        } else {
            vec![archive.to_path_buf()]
        };
        if !events.exists() {
            let shown: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            bail!(
                "{} is not in the archive, which has {}: inspect one of those",
                entry.file,
                shown.join(", ")
            );
        }
        Ok(files)
    }

    /// Where the file comes from.
    fn address(&self, entry: &Entry) -> String {
        let Some(from) = &self.from else { return entry.url.clone() };
        let from = from.to_string_lossy();
        match is_address(&from) && !from.ends_with(entry.archive()) {
            true => format!("{}/{}", from.trim_end_matches('/'), entry.archive()),
            false => from.into_owned(),
        }
    }

    /// The file that is here, where --from names one.
    fn local(&self) -> Option<&Path> {
        self.from.as_deref().filter(|from| !is_address(&from.to_string_lossy()))
    }

    /// What the file has to give, and who says so: the nearest one that knows.
    fn expected(&self, entry: &Entry, archive: &Path, there: bool) -> Result<(Checksum, Witness)> {
        if let Some(checksum) =
            self.checksum.clone().filter(|checksum| *checksum != Checksum::Unknown)
        {
            return Ok((checksum, Witness::EvalScope));
        }
        if entry.checksum != Checksum::Unknown {
            return Ok((entry.checksum.clone(), Witness::Catalogue));
        }
        let kept = digest::kept(archive)?;
        if kept != Checksum::Unknown {
            return Ok((kept, Witness::Kept));
        }
        // A mirror's own record would only say that the mirror agrees with itself.
        if let Some(record) = entry.record.as_deref().filter(|_| self.from.is_none() && !there) {
            match download::text(record, &entry.source)
                .and_then(|text| recorded(&text, entry.archive()))
            {
                Ok(checksum) => return Ok((checksum, Witness::Host)),
                Err(error) => {
                    crate::tell(format!("The host's checksum could not be had: {}", said(&error)));
                }
            }
        }
        Ok((Checksum::Unknown, Witness::Nobody))
    }
}

fn is_address(from: &str) -> bool {
    from.starts_with("http://") || from.starts_with("https://")
}

/// Downloads into the part file, or copies a file that is here.
fn obtain(address: &str, local: Option<&Path>, folder: &Path, entry: &Entry) -> Result<Part> {
    let path = folder.join(format!("{}.part", entry.archive()));
    if let Some(local) = local {
        let mut file = fs::File::open(local).with_context(|| {
            format!("cannot read {address}: --from takes http://, https:// or a file that is here")
        })?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            bail!("{address} is no file: --from takes http://, https:// or a file that is here");
        }
        write_file(&path, |out| std::io::copy(&mut file, out).map(drop))?;
        return Ok(Part { path, resumed_from: 0 });
    }
    let bar = progress::bytes(entry.archive());
    // A mirror may have packed the same files otherwise.
    let size = entry.size.filter(|_| address == entry.url);
    let part = download(address, path, &entry.source, size, &bar);
    bar.finish_and_clear();
    part
}

fn unpacked(archive: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let busy = progress::busy(&format!("unpacking {}", archive.display()));
    let files = unpack::unpack(archive, folder);
    busy.finish_and_clear();
    files
}

/// The checksum of a file in Zenodo's record of its files.
fn recorded(text: &str, archive: &str) -> Result<Checksum> {
    let record: serde_json::Value =
        serde_json::from_str(text).context("the host's record is not JSON")?;
    let files = record["files"].as_array().context("the host's record has no list of files")?;
    let file = files.iter().find(|file| file["key"] == archive);
    let checksum = file.and_then(|file| file["checksum"].as_str());
    Ok(checksum
        .with_context(|| format!("the host's record has no checksum of {archive}"))?
        .parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_record_tells_the_checksum_of_each_file() {
        let digits = "0123456789abcdef0123456789abcdef";
        let text = format!(
            r#"{{"files": [{{"key": "enron.zip", "size": 1, "checksum": "md5:{}"}}, {{"key": "uci.zip", "checksum": "md5:{digits}"}}]}}"#,
            "0".repeat(32)
        );
        assert_eq!(
            recorded(&text, "uci.zip").expect("in the record"),
            Checksum::Md5(digits.into())
        );
        for (text, archive) in
            [(text.as_str(), "wikipedia.zip"), ("{}", "uci.zip"), ("<html>", "uci.zip")]
        {
            assert!(recorded(text, archive).is_err());
        }
    }
}
