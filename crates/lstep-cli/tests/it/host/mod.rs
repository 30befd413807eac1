//! A host of one file on this machine: HTTP with ranges, that can cut a connection, change its
//! file, and remembers what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the host offers.
pub struct Offer {
    pub path: String,
    pub bytes: Vec<u8>,
    pub version: &'static str,
    /// Bytes after which the next connection is cut.
    pub cut_after: Option<usize>,
    /// Whether a wish for a range is heard.
    pub ranges: bool,
    /// What it waits after every 16 KiB.
    pub pause: Duration,
}

pub struct Host {
    pub address: String,
    offer: Arc<Mutex<Offer>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Host {
    /// Offers a file until the test ends.
    pub fn offering(name: &str, bytes: Vec<u8>) -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let offer = Offer {
            path: format!("/{name}"),
            bytes,
            version: "\"first\"",
            cut_after: None,
            ranges: true,
            pause: Duration::ZERO,
        };
        let (offer, asked) = (Arc::new(Mutex::new(offer)), Arc::new(Mutex::new(Vec::new())));
        let host = Host { address, offer: Arc::clone(&offer), asked: Arc::clone(&asked) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answered = answer(stream, &mut offer.lock().expect("no panic"), &asked);
                // Whoever hangs up early has what it wanted.
                drop(answered);
            }
        });
        host
    }

    pub fn change(&self, change: impl FnOnce(&mut Offer)) {
        change(&mut self.offer.lock().expect("no panic"));
    }

    /// The ranges that were asked for, one entry for each request; empty where none was.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn answer(
    mut stream: TcpStream,
    offer: &mut Offer,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_string();
    let (mut range, mut condition) = (String::new(), String::new());
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_lowercase().as_str() {
            "range" => range = value.trim().to_string(),
            "if-range" => condition = value.trim().to_string(),
            _ => {}
        }
    }
    asked.lock().expect("no panic").push(range.clone());
    if path.strip_prefix("/moved").is_some_and(|rest| rest == offer.path) {
        let (to, end) = (&offer.path, "Content-Length: 0\r\nConnection: close\r\n\r\n");
        return write!(stream, "HTTP/1.1 302 Found\r\nLocation: {to}\r\n{end}");
    }
    if path.strip_prefix("/circle").is_some_and(|rest| rest == offer.path) {
        let end = "Content-Length: 0\r\nConnection: close\r\n\r\n";
        return write!(stream, "HTTP/1.1 302 Found\r\nLocation: {path}\r\n{end}");
    }
    if path != offer.path {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let whole = offer.bytes.len();
    let start = range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-')?.parse::<usize>().ok());
    let start = start.filter(|_| offer.ranges && condition == offer.version);
    let (head, from) = match start {
        Some(start) if start >= whole => {
            let head = format!(
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{whole}\r\nContent-Length: 0\r\n"
            );
            (head, whole)
        }
        Some(start) => {
            let (last, count) = (whole - 1, whole - start);
            let range = format!(
                "Content-Range: bytes {start}-{last}/{whole}\r\nContent-Length: {count}\r\n"
            );
            (format!("HTTP/1.1 206 Partial Content\r\n{range}"), start)
        }
        None => (format!("HTTP/1.1 200 OK\r\nContent-Length: {whole}\r\n"), 0),
    };
    write!(stream, "{head}ETag: {}\r\nConnection: close\r\n\r\n", offer.version)?;
    let until = offer.cut_after.take().map_or(whole, |cut| whole.min(from + cut));
    for some in offer.bytes[from..until].chunks(16 << 10) {
        stream.write_all(some)?;
        if !offer.pause.is_zero() {
            std::thread::sleep(offer.pause);
        }
    }
    Ok(())
}
