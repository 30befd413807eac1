//! The `lstep` command: inspect, train, evaluate and compare on streams of timed interactions.
//!
//! Exit codes: 0 done, 1 the answer is no, 2 failed, 130 stopped by Ctrl-C and saved (143 by SIGTERM,
//! 129 by SIGHUP). Results go to standard output, everything else to standard error.
#![forbid(unsafe_code)]

mod args;
mod audit;
mod bound;
mod compare;
mod comparison;
mod data;
mod demo;
mod evaluate;
mod export;
mod front;
mod generate;
mod grid;
mod inspect;
mod interrupt;
mod paper;
mod progress;
mod report;
mod runs;
mod score;
mod settings;
mod sweep;
mod table;
mod train;
mod update;
mod verdict;
mod watch;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

/// Temporal link prediction that can be trusted: who will interact with whom next?
///
/// Without a command, makes the sample stream, inspects it, trains L-STEP and lstep-pair on it for
/// about a minute and shows them next to the counting models. Exit codes: 0 done, 1 the answer is
/// no, 2 failed, 130 stopped by Ctrl-C and saved (143 by SIGTERM, 129 by SIGHUP).
#[derive(Parser)]
#[command(name = "lstep", version, after_help = EXAMPLES)]
struct Lstep {
    #[command(subcommand)]
    command: Option<Command>,

    /// Threads to compute with; all cores by default. No result depends on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  lstep                                         the sample stream, from data to table
  lstep data fetch uci --to data                a public dataset; `lstep data list` shows all
  lstep inspect events.csv.gz                   what is in a file
  lstep evaluate events.csv --model edgebank    how far counting gets
  lstep train events.csv --out run              learn who is next; --preset uci for a benchmark
  lstep evaluate run                            its numbers on the test part
  lstep score run --source 17 --top 10          who is next
  lstep score run --all --out recs.parquet      ten for everybody, in a file
  lstep export run model.lstep                  the model in one file, for `lstep score` anywhere
  lstep watch run new.csv                       is it as good on newer events?
  lstep update run new.csv                      its state follows them
  lstep report run                              run/report.html anew
  lstep compare events.csv --models lstep,tgn,edgebank --seeds 0..2 --out grid
  lstep paper transductive-random --quick       published figures beside measured ones
  lstep generate sample.csv --events 50000      a stream with planted habits";

#[derive(Subcommand)]
enum Command {
    Data(data::Data),
    Inspect(inspect::Inspect),
    Generate(generate::Generate),
    Evaluate(Box<evaluate::Evaluate>),
    Train(Box<train::Train>),
    Score(score::Score),
    Export(export::Export),
    Update(update::Update),
    Watch(watch::Watch),
    Runs(runs::Runs),
    Audit(audit::Audit),
    Report(report::Report),
    Bound(bound::Bound),
    Compare(Box<compare::Compare>),
    Sweep(Box<sweep::Sweep>),
    Paper(Box<paper::Paper>),
    Settings(settings::Settings),
    Words(settings::Words),
    /// Print the completion script of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    match run(Lstep::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // A reader that closes the pipe early, like `head`, has what it wanted.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(stopped) = error.downcast_ref::<interrupt::Stopped>() {
                tell(stopped);
                return ExitCode::from(interrupt::code());
            }
            if let Some(lstep::Error::Interrupted) = error.downcast_ref() {
                tell("Stopped.");
                return ExitCode::from(interrupt::code());
            }
            tell(format!("lstep: {}", front::said(&error)));
            ExitCode::from(2)
        }
    }
}

/// Runs the command; tells whether the answer is yes.
fn run(lstep: Lstep) -> Result<bool> {
    if let Some(threads) = lstep.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    match lstep.command {
        None => demo::run()?,
        Some(Command::Data(data)) => data.run()?,
        Some(Command::Inspect(inspect)) => inspect.run()?,
        Some(Command::Generate(generate)) => generate.run()?,
        Some(Command::Evaluate(evaluate)) => evaluate.run()?,
        Some(Command::Train(train)) => train.run()?,
        Some(Command::Score(score)) => score.run()?,
        Some(Command::Export(export)) => export.run()?,
        Some(Command::Update(update)) => update.run()?,
        Some(Command::Watch(watch)) => return watch.run(),
        Some(Command::Runs(runs)) => runs.run()?,
        Some(Command::Audit(audit)) => return audit.run(),
        Some(Command::Report(report)) => report.run()?,
        Some(Command::Bound(bound)) => bound.run()?,
        Some(Command::Compare(compare)) => compare.run()?,
        Some(Command::Sweep(sweep)) => sweep.run()?,
        Some(Command::Paper(paper)) => paper.run()?,
        Some(Command::Settings(settings)) => settings.run()?,
        Some(Command::Words(words)) => words.run()?,
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Lstep::command(), "lstep", &mut script);
            std::io::stdout().write_all(&script)?;
        }
    }
    Ok(true)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Prints a line of the result.
fn say(line: impl std::fmt::Display) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", harmless(&line.to_string()))?;
    Ok(())
}

/// Prints a line of everything else; work goes on when nobody reads it.
fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(&line.to_string()));
}

/// Text in which names that others chose cannot move the cursor or change colours. The escape is
/// that of JSON, so JSON stays what it was.
fn harmless(text: &str) -> Cow<'_, str> {
    let special = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if special(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_as_json_does() {
        assert_eq!(harmless("a\u{1b}[2J\tb\n\u{7f}"), "a\\u001b[2J\tb\n\\u007f");
        let json = harmless("\"\u{9b}\"").into_owned();
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), "\u{9b}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Lstep::command().debug_assert();
    }
}
