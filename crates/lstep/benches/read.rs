//! How fast streams are made, written and read: events per second and the most memory the process
//! has held.
//!
//! `cargo bench -p lstep --bench read`; `LSTEP_BENCH_EVENTS` and `LSTEP_BENCH_NODES` set the size
//! (1,000,000 events on 32,000 nodes), `LSTEP_BENCH_FILES` which formats are tried
//! (`csv,csv.gz,csv.zst,parquet,text.csv`). Each is read three times; the best counts.
//! `LSTEP_BENCH_KEEP` names a folder that keeps the files; `LSTEP_BENCH_INPUT` names a file that is
//! read and nothing else done, so that the peak is that of reading.

use lstep::event::Side;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{ReadOptions, read, write_events};
use std::time::Instant;

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Most memory held so far, in MiB, where the operating system tells.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}

fn report(what: &str, events: usize, seconds: f64, bytes: Option<u64>) {
    let size =
        bytes.map_or(String::new(), |bytes| format!("{:8.1} MiB,", bytes as f64 / 1_048_576.0));
    let rate = events as f64 / seconds / 1e6;
    eprintln!(
        "{what:<16}{seconds:8.3} s,{rate:8.2} million events/s,{size} peak {:.0} MiB",
        peak_memory()
    );
}

fn main() {
    let events = setting("LSTEP_BENCH_EVENTS", 1_000_000);
    let nodes = setting("LSTEP_BENCH_NODES", 32_000);
    let files = std::env::var("LSTEP_BENCH_FILES")
        .unwrap_or_else(|_| "csv,csv.gz,csv.zst,parquet,text.csv".into());
    let folder = tempfile::tempdir().expect("a temporary folder");
    if let Ok(path) = std::env::var("LSTEP_BENCH_INPUT") {
        let start = Instant::now();
        let data = read(&path, &ReadOptions::default()).expect("a good file");
        report(
            "read",
            data.events.len(),
            start.elapsed().as_secs_f64(),
            std::fs::metadata(&path).ok().map(|data| data.len()),
        );
        return;
    }
    let config = SyntheticConfig {
        events,
        nodes,
        communities: nodes / 100 + 1,
        ..SyntheticConfig::default()
    };
    let start = Instant::now();
    let mut data = generate(&config).expect("good settings");
    report("generate", data.events.len(), start.elapsed().as_secs_f64(), None);
    for ending in files.split(',') {
        let path = folder.path().join(format!("events.{ending}"));
        if ending == "text.csv" {
            let names = std::mem::take(&mut data.names);
            for name in names.iter() {
                data.names.intern(&format!("user-{name}"), Side::Source).expect("room for all");
            }
        }
        let start = Instant::now();
        write_events(&path, &data).expect("room on the disk");
        let size = std::fs::metadata(&path).expect("what was written").len();
        report(
            &format!("write {ending}"),
            data.events.len(),
            start.elapsed().as_secs_f64(),
            Some(size),
        );
        let times = (0..3).map(|_| {
            let start = Instant::now();
            let again = read(&path, &ReadOptions::default()).expect("what was written");
            let seconds = start.elapsed().as_secs_f64();
            assert_eq!(again.events.len(), data.events.len());
            seconds
        });
        report(
            &format!("read {ending}"),
            data.events.len(),
            times.fold(f64::INFINITY, f64::min),
            Some(size),
        );
        if let Ok(kept) = std::env::var("LSTEP_BENCH_KEEP") {
            std::fs::copy(&path, std::path::Path::new(&kept).join(format!("events.{ending}")))
                .expect("room on the disk");
        }
    }
}
