//! Checks that the library's texts name no flag and no command: those belong to `lstep-cli`.

use std::fs;
use std::path::{Path, PathBuf};

/// The subcommands of `lstep`, as a text might name them.
const COMMANDS: [&str; 13] = [
    "data", "inspect", "generate", "evaluate", "train", "score", "export", "audit", "report",
    "bound", "compare", "sweep", "paper",
];

#[test]
fn no_text_of_the_library_names_a_flag_or_a_command() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 100, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("a source file");
        for (line, text) in literals(&source) {
            if names_flag(&text) || names_command(&text) {
                found.push(format!("{}:{line}: {text:?}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The files that hold no tests only.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().unwrap_or_default();
        if stem == "tests" || stem == "wording" {
            continue;
        }
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// `--` before a letter, except in a variable of CSS.
fn names_flag(text: &str) -> bool {
    text.match_indices("--").any(|(place, _)| {
        text[place + 2..].starts_with(|letter: char| letter.is_ascii_lowercase())
            && !text[..place].ends_with("var(")
            && !text[..place].ends_with('-')
    })
}

fn names_command(text: &str) -> bool {
    text.match_indices("lstep ").any(|(place, found)| {
        let next = text[place + found.len()..].split(|c: char| !c.is_ascii_lowercase()).next();
        text[..place].ends_with('`') || next.is_some_and(|word| COMMANDS.contains(&word))
    })
}

/// The string literals of a source file with their lines, up to its unit tests. Comments are left
/// out.
fn literals(source: &str) -> Vec<(usize, String)> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or(source);
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if let Some(hashes) = raw_start(bytes, at) {
            let open = at + hashes + 2;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = source[open..].find(&close).expect("a raw string ends");
            found.push((open, source[open..open + length].to_string()));
            at = open + length + close.len();
        } else if bytes[at] == b'"' {
            let mut end = at + 1;
            while bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            found.push((at, source[at + 1..end].to_string()));
            at = end + 1;
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            at += rest[1..].find('\'').expect("a character ends") + 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    let line = |place: usize| 1 + source[..place].matches('\n').count();
    found.into_iter().map(|(place, text)| (line(place), text)).collect()
}

/// The hashes of a raw string that begins here.
fn raw_start(bytes: &[u8], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|place| bytes[place]);
    if bytes[at] != b'r' || before.is_some_and(|byte| byte.is_ascii_alphanumeric() && byte != b'b')
    {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

#[test]
fn flags_and_commands_are_found_in_texts_and_not_in_comments() {
    let source = "// --flag\n/* `lstep train` */ let a = \"pass --sort\"; let q = '\"';\n\
                  let b = r#\"use `lstep evaluate`\"#; let c = \"var(--ink) -- \\\" x\";";
    let texts = literals(source);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert_eq!(texts[0], (2, "pass --sort".into()));
    assert!(names_flag(&texts[0].1) && names_command(&texts[1].1));
    assert!(!names_flag(&texts[2].1) && !names_command("written by lstep here"));
    assert!(names_command("go on with: lstep train RUN"));
}
