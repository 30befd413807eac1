//! The `lstep` command: inspect, train, evaluate and compare on streams of timed interactions; and
//! its `train` for processes that train one model together, which `lstep-mpi` starts.
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
mod evaluation;
mod export;
mod front;
mod generate;
mod grid;
mod inspect;
mod interrupt;
mod launch;
mod paper;
mod plan;
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
mod worker;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use interrupt::Stopped;
use lstep::model::{Exchange, Ranks};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

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
  lstep plan events.csv --model tgn --ranks 1,8 is more than one machine worth it?
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
    Plan(Box<plan::Plan>),
    Paper(Box<paper::Paper>),
    Settings(settings::Settings),
    Words(settings::Words),
    /// Print the completion script of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// `lstep-mpi train`: one model, trained by several processes that MPI has started.
///
/// Every process observes every event and computes its lanes of every batch (`train.lanes`, at least
/// one for each); MPI only moves bytes. The weights are those of `lstep train` to the bit, whatever
/// the number of processes, which is a power of two. The first process alone writes the run, which
/// `lstep` opens, and any number of processes goes on with.
#[derive(Parser)]
#[command(name = "lstep-mpi", version, after_help = RANK_EXAMPLES)]
struct LstepOnRanks {
    #[command(subcommand)]
    command: RankCommand,

    /// Threads of each process; all cores that it is bound to by default. No result depends on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const RANK_EXAMPLES: &str = "\
Examples:
  mpirun -n 8 lstep-mpi train events.csv --model dygformer --step 2000 --set train.lanes=8 --out run
  mpirun -n 4 lstep-mpi train --resume run      any number of ranks up to the run's lanes
  lstep train --resume run                      or one process, without MPI
  lstep plan events.csv --model dygformer --ranks 1,8,64 --set train.lanes=64     is it worth it?";

#[derive(Subcommand)]
enum RankCommand {
    Train(Box<train::Train>),
}

/// The `lstep` command.
pub fn main() -> ExitCode {
    ExitCode::from(end(run(Lstep::parse())))
}

/// The command of one of several processes that train a model together, as `lstep-mpi` starts them:
/// `train` with its flags.
pub fn train_on_ranks(
    arguments: impl IntoIterator<Item = OsString>,
    exchange: impl Exchange + 'static,
) -> RankEnd {
    let (rank, parsed) = (exchange.rank(), LstepOnRanks::try_parse_from(arguments));
    QUIET.store(rank > 0, Ordering::Relaxed);
    let lstep = match parsed {
        Ok(lstep) => lstep,
        // All say the same.
        Err(error) => {
            if rank == 0 {
                let _ = error.print();
            }
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return RankEnd { code, together: true };
        }
    };
    let trained = || {
        set_threads(lstep.threads)?;
        let RankCommand::Train(train) = &lstep.command;
        train.run_on_ranks(Box::new(Ranks::new(exchange)?))?;
        Ok(true)
    };
    let ended: Result<bool> = trained();
    let failed = ended.as_ref().is_err_and(|error| error.downcast_ref::<Stopped>().is_none());
    if failed && rank > 0 {
        // The first mostly fails alike, and says it better.
        std::thread::sleep(std::time::Duration::from_secs(1));
        QUIET.store(false, Ordering::Relaxed);
    }
    RankEnd { together: !failed, code: end(ended) }
}

/// How the command of one of several processes ended.
#[derive(Debug, Clone, Copy)]
pub struct RankEnd {
    /// The exit code.
    pub code: u8,
    /// Whether the others end, too: they are done, stopped at the same step, or were called alike.
    /// If not, they wait for this process, and the job has to be ended.
    pub together: bool,
}

/// Says how a command ended; gives the exit code.
fn end(ended: Result<bool>) -> u8 {
    match ended {
        Ok(true) => 0,
        Ok(false) => 1,
        // A reader that closes the pipe early, like `head`, has what it wanted.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            if let Some(stopped) = error.downcast_ref::<Stopped>() {
                tell(stopped);
                return interrupt::code();
            }
            if let Some(lstep::Error::Interrupted) = error.downcast_ref() {
                tell("Stopped.");
                return interrupt::code();
            }
            tell(format!("lstep: {}", front::said(&error)));
            2
        }
    }
}

fn set_threads(threads: Option<u16>) -> Result<()> {
    if let Some(threads) = threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    Ok(())
}

/// Runs the command; tells whether the answer is yes.
fn run(lstep: Lstep) -> Result<bool> {
    set_threads(lstep.threads)?;
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
        Some(Command::Compare(compare)) => return compare.run(),
        Some(Command::Sweep(sweep)) => sweep.run()?,
        Some(Command::Plan(plan)) => plan.run()?,
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

/// Whether this is not the first of several processes, which alone talks.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints a line of everything else; work goes on when nobody reads it.
fn tell(line: impl std::fmt::Display) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
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
        LstepOnRanks::command().debug_assert();
    }
}
