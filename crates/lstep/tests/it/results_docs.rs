//! The pages of docs/results hold what the committed JSON says: the pages of grids, and the tables
//! between markers.
//!
//! A table is what stands between `<!-- numbers: METRIC SETTING: MODELS -->` and
//! `<!-- end of numbers -->`. Its numbers are those of the grids that `docs/results/numbers.json`
//! lists, else the earlier ones in that file, whose grids were not kept; `published` adds the best
//! figure of others. One command writes the pages anew:
//!
//! ```text
//! LSTEP_WRITE=1 cargo test -p lstep --test it -- results_docs
//! ```

use lstep::experiments::{Comparison, Metric, comparison_markdown};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    /// Files in `grids`, in the order in which their datasets are shown.
    grids: Vec<String>,
    /// The datasets of a table.
    datasets: Vec<String>,
    /// Names of models as tables show them.
    titles: Vec<(String, String)>,
    earlier: Vec<Earlier>,
    published: Vec<Published>,
}

/// A number whose grid was not kept, as a table shows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Earlier {
    dataset: String,
    model: String,
    metric: String,
    setting: String,
    negatives: String,
    mean: f64,
    deviation: Option<f64>,
    #[serde(rename = "commit")]
    _commit: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    dataset: String,
    metric: String,
    setting: String,
    negatives: String,
    mean: f64,
    system: String,
}

/// A mean and its deviation in percent.
type Figure = (f64, Option<f64>);

struct Sources {
    numbers: Numbers,
    grids: Vec<Comparison>,
}

impl Sources {
    fn read(folder: &Path) -> Sources {
        let numbers = fs::read_to_string(folder.join("numbers.json")).expect("numbers.json");
        let numbers: Numbers = serde_json::from_str(&numbers).expect("numbers.json has its shape");
        let grids = numbers.grids.iter().map(|file| grid(&folder.join("grids").join(file)));
        Sources { grids: grids.collect(), numbers }
    }

    fn figure(
        &self,
        [metric, setting, negatives]: [&str; 3],
        dataset: &str,
        model: &str,
    ) -> Option<Figure> {
        let in_grid = |grid: &Comparison| {
            let table = grid.tables().into_iter().find(|table| {
                table.metric.key() == metric
                    && table.setting.to_string() == setting
                    && table.negatives.to_string() == negatives
            })?;
            let place = table.models.iter().position(|known| known == model)?;
            let row = table.rows.iter().find(|row| row.dataset == dataset)?;
            let spread = row.cells[place].clone()?;
            let deviation = (spread.count > 1).then_some(100.0 * spread.deviation);
            Some((100.0 * spread.mean, deviation))
        };
        let earlier = || {
            let found = self.numbers.earlier.iter().find(|row| {
                row.dataset == dataset
                    && row.model == model
                    && row.metric == metric
                    && row.setting == setting
                    && row.negatives == negatives
            })?;
            Some((found.mean, found.deviation))
        };
        self.grids.iter().find_map(in_grid).or_else(earlier)
    }

    /// The table that a marker asks for.
    fn table(&self, marker: &str) -> String {
        let (what, rest) = marker.split_once(": ").expect("METRIC SETTING: MODELS");
        let (metric, setting) = what.trim().split_once(' ').expect("METRIC SETTING");
        let (models, published) = match rest.split_once(';') {
            Some((models, more)) => {
                assert_eq!(more.trim(), "published", "only that can come after the models");
                (models, true)
            }
            None => (rest, false),
        };
        let models: Vec<&str> = models.split(',').map(str::trim).collect();
        let title = |model: &str| {
            let known = self.numbers.titles.iter().find(|(name, _)| name == model);
            known.map_or_else(|| format!("`{model}`"), |(_, title)| title.clone())
        };
        let titles: Vec<String> = models.iter().map(|model| title(model)).collect();
        let more = if published { " best published | above by |" } else { "" };
        let rule = if published { "---|---:|" } else { "" };
        let mut text = format!("| | negatives | {} |{more}\n", titles.join(" | "));
        text += &format!("|---|---|{}{rule}\n", "---:|".repeat(models.len()));
        for dataset in &self.numbers.datasets {
            let mut first = true;
            for negatives in ["random", "historical", "inductive"] {
                let asked = [metric, setting, negatives];
                let figures: Vec<Option<Figure>> =
                    models.iter().map(|model| self.figure(asked, dataset, model)).collect();
                if figures.iter().all(Option::is_none) {
                    continue;
                }
                let best = figures.iter().flatten().map(|figure| figure.0).fold(0.0, f64::max);
                let shown = figures.iter().map(|figure| match figure {
                    Some(figure) if figure.0 == best => format!("**{}**", show(*figure)),
                    Some(figure) => show(*figure),
                    None => String::new(),
                });
                let shown: Vec<String> = shown.collect();
                let name = if std::mem::take(&mut first) { dataset.as_str() } else { "" };
                text += &format!("| {name} | {negatives} | {} |", shown.join(" | "));
                if published {
                    text += &self.published(asked, dataset, best);
                }
                text += "\n";
            }
        }
        text
    }

    fn published(
        &self,
        [metric, setting, negatives]: [&str; 3],
        dataset: &str,
        own: f64,
    ) -> String {
        let found = self.numbers.published.iter().find(|row| {
            row.dataset == dataset
                && row.metric == metric
                && row.setting == setting
                && row.negatives == negatives
        });
        // Numbers are compared as they are shown.
        let cents = |value: f64| (100.0 * value).round();
        found.map_or(" | |".to_string(), |row| {
            let above = (cents(own) - cents(row.mean)) / 100.0;
            let above = if above == 0.0 { "0.00".into() } else { format!("{above:+.2}") };
            format!(" {:.2} ({}) | {above} |", row.mean, row.system)
        })
    }
}

fn show((mean, deviation): Figure) -> String {
    Metric::Ap.show_figure(mean / 100.0, deviation.map(|deviation| deviation / 100.0))
}

fn grid(path: &Path) -> Comparison {
    let text = fs::read_to_string(path).unwrap_or_else(|_| panic!("{}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const BEGIN: &str = "<!-- numbers: ";
const END: &str = "<!-- end of numbers -->";

/// A page with its tables made anew.
fn renewed(page: &str, sources: &Sources) -> String {
    let (mut text, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (marker, after) = after.split_once(" -->\n").expect("a marker ends on its line");
        let (_, after) = after.split_once(END).expect("a table has an end");
        text += &format!("{before}{BEGIN}{marker} -->\n{}{END}", sources.table(marker));
        rest = after;
    }
    text + rest
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

#[test]
fn pages_hold_what_the_committed_json_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let sources = Sources::read(&folder);
    let mut pages: Vec<(PathBuf, String)> = Vec::new();
    for json in files(&folder.join("grids"), "json") {
        pages.push((json.with_extension("md"), comparison_markdown(&grid(&json))));
    }
    for page in files(&folder, "md") {
        let text = fs::read_to_string(&page).expect("a page");
        let made = renewed(&text, &sources);
        pages.push((page, made));
    }
    assert!(pages.iter().any(|(_, text)| text.contains(BEGIN)), "some page has a table");
    let mut stale = Vec::new();
    for (page, made) in pages {
        let found = fs::read_to_string(&page).unwrap_or_default();
        if found != made {
            let lines = found.lines().zip(made.lines()).find(|(old, new)| old != new);
            let line = lines.map_or_else(
                || "its length".to_string(),
                |(old, new)| format!("{old}\n  is now\n{new}"),
            );
            stale.push(format!("{}: {line}", page.display()));
            if std::env::var_os("LSTEP_WRITE").is_some() {
                fs::write(&page, made).expect("written");
            }
        }
    }
    if std::env::var_os("LSTEP_WRITE").is_some() {
        return;
    }
    assert!(
        stale.is_empty(),
        "write them anew with LSTEP_WRITE=1 cargo test -p lstep --test it -- \
         results_docs:\n{}",
        stale.join("\n")
    );
}
