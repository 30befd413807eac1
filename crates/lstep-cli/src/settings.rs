//! `lstep settings`: every key with its default and a sentence; and `lstep words`.

use crate::say;
use anyhow::Result;
use clap::Args;
use lstep::settings::{SettingInfo, common_settings, model_settings};

/// List settings: of every run, or of a model.
///
/// Each can be given by `--set KEY=VALUE`, or in a file for `--config`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep settings                    how to read, split, ask and train
  lstep settings lstep-pair         the model's own
  lstep settings tgn --json")]
pub struct Settings {
    /// A model by its name
    #[arg(value_name = "MODEL")]
    model: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Settings {
    /// Prints the settings.
    pub fn run(&self) -> Result<()> {
        let settings = match &self.model {
            Some(model) => model_settings(model)?,
            None => common_settings(),
        };
        if self.json {
            return say(serde_json::to_string_pretty(&settings)?);
        }
        settings.iter().try_for_each(|setting| say(shown(setting)))?;
        match self.model {
            Some(_) => say("How to train it: lstep settings"),
            None => say("A model's own: lstep settings MODEL"),
        }
    }
}

/// A setting on lines of at most 80 columns.
fn shown(setting: &SettingInfo) -> String {
    let SettingInfo { key, default, unit, about } = setting;
    let default = default.as_deref().unwrap_or("none");
    let unit = unit.map_or(String::new(), |unit| format!(" ({unit})"));
    format!("{key} = {default}{unit}\n{}", wrapped(about, 76, "    "))
}

/// Words on lines of at most so many columns.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

/// What the words of this program mean.
#[derive(Args)]
#[command(after_help = WORDS)]
pub struct Words {}

impl Words {
    /// Prints them.
    pub fn run(&self) -> Result<()> {
        say(WORDS)
    }
}

/// The vocabulary on one screen of 80 columns.
const WORDS: &str = "\
event        a source, a destination and a time: who met whom when
candidate    a destination that is asked about
negative     a candidate that is not the true one
  random       any destination
  historical   a pair that has met before, but not now
  inductive    a pair that met first after training
step         consecutive events that are asked about together, then revealed
state        what past events leave in a model: counts, positions, memories
weights      what a model has learned; they stay when the state goes on
split        train, validation and test, one after the other in time
transductive all events of a part
inductive    events with a node that training does not know
visibility   what a question sees: event (all before its time), step (nothing
             of its own step) or strict (earlier times only, in the state, too)
protocol     how a stream is split, stepped and asked: stream, dyglib, tgb
ap, auc      how well true pairs stand above negatives: 1 is best; of chance,
             with one negative for each, 0.5
mrr          mean of 1/rank of the true candidate among its negatives
hits@10      share of questions whose true candidate is among the first ten
ndcg@10      as hits@10, but a hit counts the more the higher it stands
score        higher is likelier; only the order counts
probability  if the source has an event then, how likely it is with this
             destination and no other; calibrated on validation
ece, brier   how far probabilities are from what came true; 0 is best
run          a folder with settings, weights, numbers and a report
exported     a model in one file, with its state and events
counting     a model without weights: edgebank, poptrack, heuristics
law          a change that may not change a score; `lstep audit` checks them
newcomer     a node that no event names yet";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_80_columns_and_24_to_30_lines() {
        assert!(WORDS.lines().all(|line| line.chars().count() <= 80));
        assert!(WORDS.lines().count() <= 32);
        let long = "word ".repeat(60);
        assert!(wrapped(&long, 76, "    ").lines().all(|line| line.len() <= 80));
    }
}
