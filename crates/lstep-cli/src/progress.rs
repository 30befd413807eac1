//! Progress on a terminal; silence in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar over a number of candidates, shown only if standard error is a terminal and the work takes a moment.
pub fn candidates(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {percent:>3} %  {human_pos} candidates, {per_sec}, {eta} left",
    )
    .expect("the template is constant");
    ProgressBar::with_draw_target(None, target()).with_style(style).with_prefix(name.to_string())
}

/// A bar over the events of an epoch, shown only on a terminal.
pub fn epoch() -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} %  {msg}, {per_sec}, {eta} left")
        .expect("the template is constant");
    ProgressBar::with_draw_target(None, target()).with_style(style)
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() }
}

/// A turning sign while something of unknown length goes on, shown only on a terminal.
pub fn busy(what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target()).with_message(what.to_string());
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

/// A bar over a whole grid, shown only on a terminal.
pub fn grid() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} %  {msg}").expect("the template is constant");
    ProgressBar::with_draw_target(None, target()).with_style(style)
}
