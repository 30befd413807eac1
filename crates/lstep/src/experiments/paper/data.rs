//! Where the paper's datasets are on this machine, and where to get those that are not.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of a file of events in a folder of its own, best first.
const FILES: [&str; 5] =
    ["events.csv.gz", "events.csv.zst", "events.csv", "events.parquet", "events.tsv.gz"];

/// The file of events in a folder: `events.csv.gz` and the like, DGB's `ml_NAME.csv`, TGB's
/// `NAME_edgelist.csv`.
pub fn stream_in(folder: &Path) -> Option<PathBuf> {
    let named = FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    named.or_else(|| {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.into_iter().find(|path| path.is_file() && is_benchmark_file(path))
    })
}

fn is_benchmark_file(path: &Path) -> bool {
    let name =
        path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    plain.ends_with(".csv") && (plain.starts_with("ml_") || plain.contains("_edgelist"))
}

/// The events of a dataset below a folder, in a folder of its name in any spelling (`canparl`,
/// `CanParl`, `tgbl_coin`), or beside others as `ml_NAME.csv`.
pub fn find_events(data: &Path, dataset: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(data).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let name = |path: &PathBuf| {
        path.file_name().map(|name| plain(&name.to_string_lossy())).unwrap_or_default()
    };
    let wanted = plain(dataset);
    let folders = entries.iter().filter(|path| path.is_dir() && name(path) == wanted);
    let file =
        |path: &&PathBuf| path.is_file() && is_benchmark_file(path) && name(path).contains(&wanted);
    folders
        .filter_map(|folder| stream_in(folder))
        .next()
        .or_else(|| entries.iter().find(file).cloned())
}

/// A name without case, blanks and signs.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    if plain == "contact" { "contacts".into() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_found_in_our_layout_and_in_dgbs() {
        let data = tempfile::tempdir().expect("a folder");
        let put = |path: &str| {
            let path = data.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, "").expect("written");
            path
        };
        let uci = put("uci/events.csv.gz");
        let canparl = put("CanParl/ml_CanParl.csv");
        put("CanParl/ml_CanParl.npy");
        let contacts = put("Contacts/ml_Contacts.csv");
        let coin = put("tgbl_coin/tgbl-coin_edgelist_v2.csv");
        assert_eq!(find_events(data.path(), "uci"), Some(uci));
        assert_eq!(find_events(data.path(), "canparl"), Some(canparl));
        assert_eq!(find_events(data.path(), "contacts"), Some(contacts));
        assert_eq!(find_events(data.path(), "tgbl-coin"), Some(coin));
        assert_eq!(find_events(data.path(), "enron"), None);
        assert_eq!(find_events(&data.path().join("nowhere"), "enron"), None);
    }
}
