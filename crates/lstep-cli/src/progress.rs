//! Progress on a terminal; silence in a pipe.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use lstep::error::printable_line;
use std::fmt::Write;
use std::io::IsTerminal;

/// A bar over a number of candidates, shown only if standard error is a terminal and the work takes
/// a moment.
pub fn candidates(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {percent:>3} %  {human_pos} candidates, {rate} a second, {eta} left",
    )
    .expect("the template is constant")
    .with_key("rate", whole_rate);
    ProgressBar::with_draw_target(None, target()).with_style(style).with_prefix(name.to_string())
}

/// A bar over the events of an epoch with a line about the whole training below it, shown only on a
/// terminal.
pub fn epoch() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {percent:>3} %  {rate} a second, {eta} left\n{msg}",
    )
    .expect("the template is constant")
    .with_key("rate", whole_rate);
    ProgressBar::with_draw_target(None, target()).with_style(style)
}

/// A bar over the sources that are answered, shown only on a terminal.
pub fn sources(count: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{wide_bar} {percent:>3} %  {human_pos} of {human_len} sources, {eta} left",
    )
    .expect("the template is constant");
    ProgressBar::with_draw_target(Some(count as u64), target()).with_style(style)
}

/// A bar over the bytes of a download, shown only on a terminal.
pub fn bytes(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    )
    .expect("the template is constant");
    ProgressBar::with_draw_target(None, target()).with_style(style).with_prefix(name.to_string())
}

/// Done in a second, without the four digits behind the point that `per_sec` has.
fn whole_rate(state: &ProgressState, out: &mut dyn Write) {
    // A terminal that cannot be written to shows nothing anyway.
    let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(8)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// A turning sign while something of unknown length goes on, shown only on a terminal.
pub fn busy(what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target())
        .with_message(printable_line(what).into_owned());
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

/// A bar over a whole grid, shown only on a terminal.
pub fn grid() -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} %  {msg}")
        .expect("the template is constant");
    ProgressBar::with_draw_target(None, target()).with_style(style)
}
