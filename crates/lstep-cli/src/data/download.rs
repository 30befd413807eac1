//! A file over HTTP that can be cut off at any byte and goes on from there.
//!
//! Bytes go into `NAME.part`; the caller gives the file its name when it has checked it. A part
//! goes on with a `Range` that holds only for the version it began with (`If-Range`): if the host
//! has another file by now, or knows no ranges, it starts anew.

use anyhow::{Context, Result, anyhow, bail};
use indicatif::ProgressBar;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderMap, Response};

/// How long a host may be silent before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most bytes of a host's record about its files.
const LONGEST_RECORD: u64 = 16 << 20;

/// A download that is complete but has not been checked.
pub struct Part {
    /// Where its bytes are.
    pub path: PathBuf,
    /// How many were there already.
    pub resumed_from: u64,
}

impl Part {
    /// Removes it with its note, so that the next download starts anew.
    pub fn discard(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(version_file(&self.path));
    }

    /// Gives it its name.
    pub fn finish(self, path: &Path) -> Result<()> {
        let _ = fs::remove_file(version_file(&self.path));
        fs::rename(&self.path, path).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Downloads a file, or what is missing of it, into `part`. `page` is where people can look for it.
pub fn download(url: &str, part: PathBuf, page: &str, bar: &ProgressBar) -> Result<Part> {
    let agent = agent();
    let have = fs::metadata(&part).map_or(0, |data| data.len());
    let version = fs::read_to_string(version_file(&part)).ok().filter(|_| have > 0);
    let mut request = agent.get(url);
    if let Some(version) = &version {
        request = request.header("Range", format!("bytes={have}-")).header("If-Range", version);
    }
    let response = request.call().map_err(|error| unreachable(url, page, error))?;
    let status = response.status().as_u16();
    let (start, total) = match status {
        200 => (0, number(response.headers(), "content-length")),
        206 => match range(response.headers()) {
            Some((start, total)) if start == have => (start, total),
            other => bail!(
                "{url} answers with bytes from {other:?} where {have} was asked: remove {}",
                part.display()
            ),
        },
        // Nothing lies behind the last byte: the part was whole when the connection was cut.
        416 if range_size(response.headers()) == Some(have) => {
            return Ok(Part { path: part, resumed_from: have });
        }
        416 => {
            bail!("{url} has fewer bytes than {}: remove that file and fetch again", part.display())
        }
        _ => return Err(refused(url, page, &response)),
    };
    if start == 0 {
        keep_version(&part, response.headers())?;
    }
    bar.set_length(total.unwrap_or(0));
    bar.set_position(start);
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(start == 0)
        .append(start > 0)
        .open(&part)
        .with_context(|| format!("cannot write {}", part.display()))?;
    let got = start + copy(response, &mut file, &part, bar, url)?;
    match total {
        Some(total) if got < total => {
            bail!(
                "the connection to {url} was cut after {got} of {total} bytes: the same command goes on from there"
            )
        }
        _ => Ok(Part { path: part, resumed_from: start }),
    }
}

/// Copies the body; what came before a cut is on the disk.
fn copy(
    response: Response<ureq::Body>,
    file: &mut File,
    part: &Path,
    bar: &ProgressBar,
    url: &str,
) -> Result<u64> {
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut got = 0;
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                file.sync_data().ok();
                let kept = fs::metadata(part).map_or(0, |data| data.len());
                bail!(
                    "the connection to {url} was cut after {kept} bytes ({error}): the same command goes on from there"
                )
            }
        };
        file.write_all(&buffer[..count])
            .with_context(|| format!("cannot write {}", part.display()))?;
        got += count as u64;
        bar.inc(count as u64);
    }
    file.sync_data().with_context(|| format!("cannot write {}", part.display()))?;
    Ok(got)
}

/// What a host says about a file: its text.
pub fn text(url: &str, page: &str) -> Result<String> {
    let mut response = agent().get(url).call().map_err(|error| unreachable(url, page, error))?;
    if response.status() != 200 {
        return Err(refused(url, page, &response));
    }
    response
        .body_mut()
        .with_config()
        .limit(LONGEST_RECORD)
        .read_to_string()
        .with_context(|| format!("cannot read {url}"))
}

fn agent() -> Agent {
    Agent::config_builder()
        // A status is judged here, where the address and the remedy are known.
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE))
        .build()
        .new_agent()
}

fn unreachable(url: &str, page: &str, error: ureq::Error) -> anyhow::Error {
    anyhow!(
        "cannot reach {url} ({error}): check the network and the address; a copy from elsewhere is taken with --from, and the \
         dataset is described at {page}"
    )
}

fn refused(url: &str, page: &str, response: &Response<ureq::Body>) -> anyhow::Error {
    anyhow!(
        "{url} answers {}: the file may have moved; look for it at {page} and give its address with --from",
        response.status()
    )
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// `bytes 500-999/1000`: the first byte, and the size of the whole if it is told.
fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get("content-range")?.to_str().ok()?;
    let (span, whole) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    Some((span.split_once('-')?.0.parse().ok()?, whole.parse().ok()))
}

/// `bytes */1000`: the size of the whole.
fn range_size(headers: &HeaderMap) -> Option<u64> {
    headers.get("content-range")?.to_str().ok()?.trim().strip_prefix("bytes */")?.parse().ok()
}

fn version_file(part: &Path) -> PathBuf {
    let mut name = part.as_os_str().to_owned();
    name.push(".version");
    PathBuf::from(name)
}

/// Notes which version of the file the part belongs to; without a note it cannot go on.
fn keep_version(part: &Path, headers: &HeaderMap) -> Result<()> {
    let path = version_file(part);
    // A weak tag does not promise equal bytes.
    let tag =
        headers.get("etag").and_then(|tag| tag.to_str().ok()).filter(|tag| !tag.starts_with("W/"));
    let version = tag.or_else(|| headers.get("last-modified").and_then(|date| date.to_str().ok()));
    match version {
        Some(version) => {
            fs::write(&path, version).with_context(|| format!("cannot write {}", path.display()))
        }
        None => {
            let _ = fs::remove_file(&path);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            ureq::http::HeaderName::from_static(name),
            value.parse().expect("a header"),
        )])
    }

    #[test]
    fn ranges_are_read_or_refused() {
        assert_eq!(range(&headers("content-range", "bytes 500-999/1000")), Some((500, Some(1000))));
        assert_eq!(range(&headers("content-range", "bytes 500-999/*")), Some((500, None)));
        assert_eq!(range_size(&headers("content-range", "bytes */1000")), Some(1000));
        for text in ["", "bytes", "bytes x-y/z", "lines 1-2/3"] {
            assert_eq!(range(&headers("content-range", text)), None, "{text}");
        }
    }
}
