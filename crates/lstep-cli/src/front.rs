//! How the command says the library's errors: arguments are flags, and jobs are subcommands.

use lstep::error::{Argument, Front, Remedy, printable};
use std::fmt::Write;

/// The command line.
pub struct CommandLine;

impl Front for CommandLine {
    fn argument(&self, argument: Argument) -> String {
        match argument {
            Argument::Source => "--src".into(),
            Argument::Destination => "--dst".into(),
            other => format!("--{}", other.name().replace('_', "-")),
        }
    }

    fn assigned(&self, argument: Argument, value: &str) -> String {
        format!("{} {value}", self.argument(argument))
    }

    fn setting(&self, key: &str, value: &str) -> String {
        format!("--set {key}={value}")
    }

    fn remedy(&self, remedy: &Remedy) -> Option<String> {
        Some(match remedy {
            Remedy::EvaluateInstead => "use `lstep evaluate EVENTS` instead".into(),
            Remedy::NameRun => "name a folder that `lstep train` made".into(),
            Remedy::MovedEvents(folder) => {
                format!("put it back, or tell where it is now: lstep update {folder} FILE")
            }
            Remedy::ResumeRun(folder) => format!("go on with: lstep train --resume {folder}"),
            Remedy::RepeatComparison => "make it anew with lstep compare --resume".into(),
            _ => return None,
        })
    }
}

/// An error with everything that led to it, on one line.
pub fn said(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        if !text.is_empty() {
            text.push_str(": ");
        }
        // Writing to a String does not fail.
        let _ = match cause.downcast_ref::<lstep::Error>() {
            Some(error) => write!(text, "{}", error.display_with(&CommandLine)),
            None => write!(text, "{cause}"),
        };
    }
    printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use clap::CommandFactory;

    #[test]
    fn every_argument_is_a_flag_of_some_command() {
        fn flags(command: &clap::Command, found: &mut Vec<String>) {
            let long = command.get_arguments().filter_map(|flag| flag.get_long());
            found.extend(long.map(|flag| format!("--{flag}")));
            command.get_subcommands().for_each(|inner| flags(inner, found));
        }
        let mut found = Vec::new();
        flags(&crate::Lstep::command(), &mut found);
        for argument in Argument::ALL {
            let flag = CommandLine.argument(argument);
            assert!(found.contains(&flag), "{flag}");
        }
        assert!(found.contains(&"--set".to_string()));
    }

    #[test]
    fn errors_name_flags_wherever_they_are_in_the_chain() {
        let refused = || lstep::Error::setting("negatives", "tgb", Remedy::UseProtocol("tgb"));
        let plain = anyhow::Error::from(refused());
        assert_eq!(said(&plain), "negatives is tgb: they belong to --protocol tgb");
        let wrapped = Err::<(), _>(refused()).context("cannot ask").expect_err("wrapped");
        assert_eq!(said(&wrapped), "cannot ask: negatives is tgb: they belong to --protocol tgb");
    }

    #[test]
    fn settings_and_jobs_are_said_as_commands() {
        let say = |remedy: Remedy| remedy.render(&CommandLine);
        assert_eq!(
            say(Remedy::ShorterSteps(2)),
            "set fewer events, for example --set protocol.step=2"
        );
        assert_eq!(
            say(Remedy::ResumeRun("runs/a".into())),
            "go on with: lstep train --resume runs/a"
        );
        assert!(say(Remedy::HoldOutNodes).contains("--held-out 0.1 of an evaluation"));
        assert!(say(Remedy::CheckLayout).contains("--src, --dst and --time"));
    }
}
