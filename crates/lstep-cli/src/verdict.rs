//! What to make of a trained run: the verdict, the best counting model, and the next command.

use crate::settings::wrapped;
use lstep::protocol::Part;
use lstep::results::{EvaluationReport, Summary, Verdict};
use lstep::settings::Purpose;
use std::path::Path;

/// A run's summary, in which `RUN` and `EVENTS` stand for its folder and its file: where these are
/// changes no report. Nothing where it was not compared with counting models.
pub fn summary(report: &EvaluationReport) -> Option<Summary> {
    let settings = report.settings.as_ref()?;
    // TGB's reports show validation first; a verdict is about test, where it was asked.
    let all = &report.against_counting;
    let against = all.iter().find(|against| against.part == Part::Test).or(all.first())?;
    let row = report.results.iter().find(|row| row.part == against.part)?;
    let metric = against.metric.to_uppercase();
    let value = against.value + against.difference;
    let (low, high) = against.own?;
    let among = match settings.purpose {
        Purpose::Ranking => {
            let each = row.pairs / row.events.max(1);
            format!(" against {each} destinations for each of {} {} events", row.events, row.part)
        }
        Purpose::Benchmark => {
            format!(", {} setting, {} negatives", against.setting, against.negatives)
        }
    };
    let verdict = format!(
        "{} has {metric} {value:.4} (95 % interval {low:.4} to {high:.4}){among}: {} counting, by \
         {:+.4} ({:+.4} to {:+.4})",
        report.model, against.verdict, against.difference, against.low, against.high
    );
    let counting = format!("{} has {metric} {:.4}", against.model, against.value);
    let next = match against.verdict {
        Verdict::Worse => {
            // Signals joined by `+` are a name, a name with its settings in brackets is none.
            let label = against.model.to_string();
            let name = if label.contains(' ') { against.model.name() } else { &label };
            format!(
                "counting is better here, so use it: lstep train EVENTS --model {name} --out counting"
            )
        }
        Verdict::Better | Verdict::NotToldApart => {
            "lstep score RUN --all --top 10 --out recommendations.parquet".to_string()
        }
    };
    Some(Summary { verdict, counting, next })
}

/// The summary as three lines, with the run's folder and file in the command; sentences are folded
/// where a width is given.
pub fn lines(summary: &Summary, run: &str, events: &Path, width: Option<usize>) -> String {
    let Summary { verdict, counting, next } = summary;
    let events = shell_word(&events.display().to_string());
    let next = next.replace(" RUN ", &format!(" {} ", shell_word(run)));
    let next = next.replace(" EVENTS ", &format!(" {events} "));
    let indent = " ".repeat(16);
    let folded = |text: &str| match width {
        Some(width) => wrapped(text, width - indent.len(), &indent).trim_start().to_string(),
        None => text.to_string(),
    };
    let (verdict, counting) = (folded(verdict), folded(counting));
    format!("Verdict:        {verdict}\nBest counting:  {counting}\nNext:           {next}")
}

/// A path as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
