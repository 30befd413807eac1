//! The order of rooms in ARCHITECTURE.md is the order of the code.
//!
//! A room is a file or a folder of `src`. A room uses only rooms that stand above it in the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const MARK: &str = "<!-- room order: checked by tests/it/rooms.rs -->";

/// The rooms in ARCHITECTURE.md, lowest first.
fn order() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(path).expect("the repository has an ARCHITECTURE.md");
    let (_, block) = text.split_once(MARK).expect("ARCHITECTURE.md marks the order of rooms");
    let lines = block.trim_start().lines();
    lines.skip(1).take_while(|line| !line.starts_with("```")).map(str::to_string).collect()
}

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The path of a file's module below the crate's root: `read/npy.rs` is `[read, npy]`.
fn module(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let parts = parts.iter().map(|part| part.to_str().expect("UTF-8").to_string());
    parts.filter(|part| part != "mod").collect()
}

/// What a file says outside of tests and comments.
fn production(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    lines.map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The first names of a path's rest: of `{graph::{Past, Seed}, event}` they are graph and event.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (place, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                names.push(name(&group[start..place]));
                start = place + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The rooms that a module names, through `crate::` or through enough `super::`.
fn used(text: &str, module: &[String]) -> Vec<String> {
    let root = "super::".repeat(module.len());
    let mut names = Vec::new();
    for path in ["crate::", &root] {
        for (place, _) in text.match_indices(path) {
            let before = text[..place].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            names.extend(first_names(&text[place + path.len()..]));
        }
    }
    // Error and Result are exported at the root, too.
    let room =
        |name: String| if ["Error", "Result"].contains(&&*name) { "error".into() } else { name };
    names.into_iter().map(room).collect()
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = order();
    let height: BTreeMap<&str, usize> =
        order.iter().enumerate().map(|(height, room)| (room.as_str(), height)).collect();
    assert_eq!(height.len(), order.len(), "a room is listed twice: {order:?}");
    let mut rooms = BTreeSet::new();
    let mut upward = Vec::new();
    for path in sources(&src) {
        let file = path.strip_prefix(&src).expect("below src");
        let module = module(file);
        let test = module.iter().any(|part| part == "tests" || part.ends_with("_tests"));
        if module[0] == "lib" || test {
            continue;
        }
        let room = module[0].clone();
        let text = fs::read_to_string(&path).expect("UTF-8");
        for other in used(&production(&text), &module) {
            match (height.get(&*room), height.get(&*other)) {
                (Some(here), Some(there)) if there <= here => {}
                _ => upward.push(format!("{} uses {other}", file.display())),
            }
        }
        rooms.insert(room);
    }
    upward.dedup();
    assert_eq!(rooms, order.iter().cloned().collect(), "ARCHITECTURE.md lists all rooms of src");
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[test]
fn names_are_found_in_every_form_of_a_path() {
    let module = ["graph".to_string(), "past".to_string()];
    let text = "use crate::{event::{Event, Time}, error};\nuse super::log::EventLog;\n\
                use super::super::read::read;\nlet a: crate::rng::KeyedRng;\n$crate::metric";
    assert_eq!(used(text, &module), ["event", "error", "rng", "read"]);
}
