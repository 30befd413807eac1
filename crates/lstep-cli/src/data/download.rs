//! A file over HTTP that can be cut off at any byte and goes on from there.
//!
//! Bytes go into `NAME.part`; the caller gives the file its name when it has checked it. A part
//! goes on with a `Range` that holds only for the version it began with (`If-Range`): if the host
//! has another file by now, or knows no ranges, it starts anew. What comes over https is not
//! continued over http, a file has a limit of size, and a transfer has to keep a pace.

use anyhow::{Context, Result, anyhow, bail};
use indicatif::ProgressBar;
use lstep::disk::{check_replaceable, read_text, write_text};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{HeaderMap, Response};

/// How long a host may be silent before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// A transfer that gives less than this many bytes in [`PATIENCE`] is given up. At 1 KiB/s a
/// megabyte takes a quarter of an hour; whoever sends less keeps a process waiting rather than
/// sending a file. The part is kept, so a line that is slow only now loses nothing.
const LEAST: u64 = 60 << 10;

/// Most bytes of a host's record about its files.
const LONGEST_RECORD: u64 = 16 << 20;

/// Most bytes of a file where the catalogue does not say how many it has.
const LARGEST: u64 = 16 << 30;

/// Most bytes of a note about a file.
const LONGEST_NOTE: u64 = 4096;

/// Most addresses that lead from one to the next.
const REDIRECTS: usize = 10;

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
        check_replaceable(path)?;
        fs::rename(&self.path, path).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Downloads a file, or what is missing of it, into `part`. `page` is where people can look for it,
/// `size` is how many bytes it has, if that is known.
pub fn download(
    url: &str,
    part: PathBuf,
    page: &str,
    size: Option<u64>,
    bar: &ProgressBar,
) -> Result<Part> {
    // A link, a pipe or a device of this name is not ours.
    let found = fs::symlink_metadata(&part).ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        bail!("{} is no file: remove it and fetch again", part.display());
    }
    let have = found.map_or(0, |found| found.len());
    let version = read_text(version_file(&part), LONGEST_NOTE).ok().filter(|_| have > 0);
    let mut headers = Vec::new();
    if let Some(version) = version {
        headers = vec![("Range", format!("bytes={have}-")), ("If-Range", version)];
    }
    let most = size.unwrap_or(LARGEST);
    let response = get(url, &headers, page)?;
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
    if total.is_some_and(|total| total > most) {
        bail!(too_large(url, most));
    }
    if start == 0 {
        // A new file, so that nothing is followed or emptied that somebody put there meanwhile.
        let _ = fs::remove_file(&part);
        keep_version(&part, response.headers())?;
    }
    bar.set_length(total.unwrap_or(0));
    bar.set_position(start);
    let mut file = OpenOptions::new()
        .create_new(start == 0)
        .append(true)
        .open(&part)
        .with_context(|| format!("cannot write {}", part.display()))?;
    let body = response.into_body().into_reader().take((most - start.min(most)) + 1);
    let got = start + copy(Paced::new(body), &mut file, &part, bar, url)?;
    if got > most {
        drop(file);
        Part { path: part, resumed_from: start }.discard();
        bail!(too_large(url, most));
    }
    match total {
        Some(total) if got < total => {
            bail!(
                "the connection to {url} was cut after {got} of {total} bytes: the same command goes on from there"
            )
        }
        _ => Ok(Part { path: part, resumed_from: start }),
    }
}

fn too_large(url: &str, most: u64) -> String {
    format!(
        "{url} has more than the {most} bytes that are expected: see whether there is a new version, download it by hand and give \
         the file with --from"
    )
}

/// A body that has to keep a pace. A host that sends a byte now and then is never silent for long.
struct Paced<R> {
    body: R,
    /// When the bytes that count now began to come, and how many came since.
    since: Instant,
    got: u64,
    least: u64,
    within: Duration,
}

impl<R: Read> Paced<R> {
    fn new(body: R) -> Paced<R> {
        Paced { body, since: Instant::now(), got: 0, least: LEAST, within: PATIENCE }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        self.got += count as u64;
        if count > 0 && self.since.elapsed() >= self.within {
            if self.got < self.least {
                let (got, least, seconds) = (self.got, self.least, self.within.as_secs());
                let problem = format!(
                    "only {got} bytes came in {seconds} s, and {least} are the least that is \
                     waited for"
                );
                return Err(io::Error::new(ErrorKind::TimedOut, problem));
            }
            (self.since, self.got) = (Instant::now(), 0);
        }
        Ok(count)
    }
}

/// Copies the body; what came before a cut is on the disk.
fn copy(
    mut body: impl Read,
    file: &mut File,
    part: &Path,
    bar: &ProgressBar,
    url: &str,
) -> Result<u64> {
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
    let response = get(url, &[], page)?;
    if response.status() != 200 {
        return Err(refused(url, page, &response));
    }
    let mut text = String::new();
    let body = response.into_body().into_reader().take(LONGEST_RECORD);
    Paced::new(body).read_to_string(&mut text).with_context(|| format!("cannot read {url}"))?;
    Ok(text)
}

/// Asks for an address, and for those that it leads to. They are followed here, where one that
/// leads from https to http is refused: what comes then could be anybody's.
fn get(url: &str, headers: &[(&str, String)], page: &str) -> Result<Response<ureq::Body>> {
    let agent = agent();
    let mut address = url.to_string();
    for _ in 0..=REDIRECTS {
        let mut request = agent.get(&address);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = request.call().map_err(|error| unreachable(&address, page, error))?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let next = response.headers().get("location").and_then(|next| next.to_str().ok());
        address = followed(&address, next.unwrap_or_default(), page)?;
    }
    bail!("{url} leads on more than {REDIRECTS} times: look for the file at {page}")
}

/// The address that a redirection leads to, if it may be followed.
fn followed(address: &str, next: &str, page: &str) -> Result<String> {
    let Some(next) = resolved(address, next) else {
        bail!("{address} leads to {next:?}, which is no address: look for the file at {page}");
    };
    if is_https(address) && !is_https(&next) {
        bail!(
            "{address} leads to {next}, from https to http, where anybody could answer: look for the file at {page} and give its \
             address with --from"
        );
    }
    Ok(next)
}

fn is_https(address: &str) -> bool {
    address.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"))
}

/// Where a redirection leads: a whole address, one of the same host, or one beside the first.
fn resolved(address: &str, next: &str) -> Option<String> {
    let scheme = |text: &str| text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if let Some(found) = scheme(next).filter(|_| !next.starts_with('/')) {
        return ["http", "https"].contains(&&*found).then(|| next.to_string());
    }
    let own = scheme(address)?;
    let rest = &address[own.len() + 3..];
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    Some(match next {
        next if next.starts_with("//") => format!("{own}:{next}"),
        next if next.starts_with('/') => format!("{own}://{host}{next}"),
        next => {
            let path = path.split(['?', '#']).next().unwrap_or_default();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let between = if folder.is_empty() { "" } else { "/" };
            format!("{own}://{host}/{folder}{between}{next}")
        }
    })
}

fn agent() -> Agent {
    Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
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
            // One that is longer is not kept, and the part starts anew.
            let short: String = version.chars().take(LONGEST_NOTE as usize / 4).collect();
            Ok(write_text(&path, &short)?)
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
    fn redirections_are_whole_of_the_same_host_or_beside() {
        let from = "https://host.org/a/b.zip?c=/d";
        for (next, expected) in [
            ("https://other.org/x", Some("https://other.org/x")),
            ("http://other.org/x", Some("http://other.org/x")),
            ("//other.org/x", Some("https://other.org/x")),
            ("/x?back=http://y", Some("https://host.org/x?back=http://y")),
            ("x", Some("https://host.org/a/x")),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(resolved(from, next).as_deref(), expected, "{next}");
        }
        assert_eq!(resolved("http://host", "x").as_deref(), Some("http://host/x"));
        assert!(followed(from, "//other.org/x", "page").is_ok());
        let error = followed(from, "HTTP://other.org/x", "page").expect_err("refused").to_string();
        assert!(error.contains("from https to http"), "{error}");
        assert!(followed("http://host.org/x", "http://other.org/x", "page").is_ok());
        assert!(is_https("HTTPS://host") && !is_https("http://host") && !is_https("https"));
    }

    /// A host that sends a byte at a time.
    struct Trickle(Duration);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            buffer[0] = 1;
            Ok(1)
        }
    }

    #[test]
    fn a_transfer_that_trickles_is_given_up_and_what_came_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let part = folder.path().join("x.part");
        let mut file = File::create(&part).expect("made");
        let (least, within) = (1_000, Duration::from_millis(30));
        let paced = |body| Paced { least, within, ..Paced::new(body) };
        let body = paced(Trickle(Duration::from_millis(2)));
        let bar = ProgressBar::hidden();
        let error = copy(body, &mut file, &part, &bar, "http://slow").expect_err("given up");
        let error = error.to_string();
        for word in ["http://slow", "only", "1000 are the least", "goes on from there"] {
            assert!(error.contains(word), "{word}: {error}");
        }
        let kept = fs::metadata(&part).expect("kept").len();
        assert!(kept > 0 && error.contains(&format!("after {kept} bytes")), "{kept}: {error}");
        // A pause is no trickle: what came before it counts.
        let mut steady = Paced { least: 1, ..paced(Trickle(within)) };
        assert!((0..5).all(|_| steady.read(&mut [0; 8]).is_ok()));
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
