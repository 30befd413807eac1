//! A stream that lies in several files: those that were named, and the parts in a folder.

use super::Result;
use super::options::{Format, without_compression};
use crate::error::{Error, FaultKind, InputFault};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that paths stand for, in the order in which they are read. A folder stands for the
/// parts in it, in the order of their names, those of `key=value` folders included. Files that
/// begin with `.` or `_` are none, as on Hadoop.
///
/// # Errors
///
/// If a folder cannot be read, holds no parts, or holds files of several kinds.
pub fn part_files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(parts_of(path)?);
        } else {
            files.push(path.to_path_buf());
        }
    }
    Ok(files)
}

/// What the names of parts end in.
const ENDINGS: [&str; 8] = ["csv", "tsv", "txt", "jsonl", "ndjson", "json", "parquet", "pq"];

fn parts_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    look(folder, &mut found)?;
    found.sort();
    let fault = |problem: String, remedy: &str| {
        let shown = folder.display().to_string();
        Error::from(InputFault::new(shown, problem, remedy).kind(FaultKind::Missing))
    };
    // A folder may be about one stream and hold more than its events.
    let is_events = |(_, file): &&(String, PathBuf)| {
        let name = file.file_name().map(|name| name.to_string_lossy().to_lowercase());
        name.is_some_and(|name| name.starts_with("events."))
    };
    let mut events = found.iter().filter(is_events);
    if let (Some((_, file)), None) = (events.next(), events.next()) {
        return Ok(vec![file.clone()]);
    }
    let Some((ending, _)) = found.first() else {
        let problem = format!("is a folder without files that end in {}", ENDINGS.join(", "));
        return Err(fault(problem, "name a file, or a folder with the parts of a table"));
    };
    if let Some((other, _)) = found.iter().find(|(other, _)| other != ending) {
        let problem = format!("is a folder with files that end in {ending} and in {other}");
        return Err(fault(problem, "name the files that are meant"));
    }
    let layout = |file: &PathBuf| Format::of_name(file);
    if let Some((_, file)) = found.iter().find(|(_, file)| {
        found.len() > 1 && !matches!(layout(file), Format::Table | Format::Parquet)
    }) {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let problem = format!("is a folder of several files, and {name} is no part of a table");
        return Err(fault(problem, "name the file that is meant"));
    }
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// Adds the parts in a folder with their endings.
fn look(folder: &Path, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    let failed = |error| Error::io(folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            if name.contains('=') {
                look(&path, found)?;
            }
            continue;
        }
        let lower = name.to_lowercase();
        let ending = without_compression(&lower).rsplit_once('.').map_or("", |(_, ending)| ending);
        if ENDINGS.contains(&ending) {
            found.push((ending.to_string(), path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{ReadOptions, read};

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("it is below")).expect("made");
            fs::write(path, text).expect("written");
        }
        folder
    }

    #[test]
    fn a_folder_of_parts_is_one_stream() {
        let parts = folder(&[
            ("day=2/part-0.csv", "user,item,ts\nb,y,3\n"),
            ("day=1/part-0.csv", "user,item,ts\na,x,1\n"),
            ("day=1/part-1.csv", "ts,user,item\n2,a,y\n"),
            ("_SUCCESS", ""),
            (".part-0.csv.crc", "x"),
            ("notes.md", "no part"),
        ]);
        let data = read(parts.path(), &ReadOptions::default()).expect("a stream");
        assert_eq!(data.events.len(), 3);
        let names: Vec<String> =
            data.events.iter().map(|event| data.names.name(event.source).to_string()).collect();
        assert_eq!(names, ["a", "a", "b"]);
    }

    #[test]
    fn files_that_were_named_are_read_in_that_order() {
        let parts = folder(&[("a.csv", "u,i,ts\n1,2,10\n"), ("b.csv", "u,i,ts\n1,3,20\n")]);
        let [a, b] = ["a.csv", "b.csv"].map(|name| parts.path().join(name));
        let both = |first: &Path, then: &Path, sort| {
            let options =
                ReadOptions { more: vec![then.to_path_buf()], sort, ..ReadOptions::default() };
            read(first, &options)
        };
        let data = both(&a, &b, false).expect("in order");
        assert_eq!(data.events.len(), 2);
        let error = both(&b, &a, false).expect_err("not in order").to_string();
        assert!(error.contains("a.csv, line 2") && error.contains("sort"), "{error}");
        assert_eq!(both(&b, &a, true).expect("sorted").events, data.events);
    }

    #[test]
    fn a_folder_that_could_mean_several_things_is_refused() {
        let mixed = folder(&[("a.csv", "u,i,ts\n1,2,1\n"), ("b.parquet", "")]);
        let error = read(mixed.path(), &ReadOptions::default()).expect_err("two kinds");
        assert!(error.to_string().contains("csv and in parquet"), "{error}");
        let none = folder(&[("readme.md", "")]);
        let error = read(none.path(), &ReadOptions::default()).expect_err("no parts");
        assert!(error.to_string().contains("folder without files"), "{error}");
        let layouts = folder(&[("ml_a.csv", ""), ("ml_b.csv", "")]);
        let error = read(layouts.path(), &ReadOptions::default()).expect_err("two streams");
        assert!(error.to_string().contains("ml_a.csv is no part"), "{error}");
        let one = folder(&[("events.csv", "u,i,ts\n1,2,1\n"), ("negatives.csv", "")]);
        assert_eq!(read(one.path(), &ReadOptions::default()).expect("events").events.len(), 1);
        let other = folder(&[("a.csv", "u,i,ts\n1,2,1\n"), ("b.csv", "u,i,ts,w\n1,2,1,2\n")]);
        let error = read(other.path(), &ReadOptions::default()).expect_err("other columns");
        assert!(error.to_string().contains("same columns"), "{error}");
    }
}
