//! Bars from the left, one below the other, each with its name and its value written out: for
//! times.

use super::chart::{Ink, WIDTH, escape, figure, svg};
use std::fmt::Write;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it is.
    pub name: String,
    /// How long it is.
    pub value: f64,
    /// Its value in words, written beside its name and shown on hovering.
    pub says: String,
}

/// A bar and the words above it.
const ROW: f64 = 36.0;
const TOP: f64 = 22.0;

/// The bars as a figure; `label` says what their length is, with its unit.
pub fn bars(title: &str, about: &str, label: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let mut drawing =
        format!("<text class=\"label across\" x=\"4\" y=\"13\">{}</text>", escape(label));
    for (row, bar) in bars.iter().enumerate() {
        let y = TOP + row as f64 * ROW;
        let length = (bar.value / longest * (WIDTH - 8.0)).max(1.0);
        let _ = write!(
            drawing,
            "<text class=\"label up\" x=\"4\" y=\"{:.1}\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"mark\" x=\"4\" y=\"{:.1}\" width=\"{length:.1}\" height=\"11\" rx=\"2\" style=\"fill:{}\">\
             <title>{}</title></rect>",
            y + 13.0,
            escape(&bar.name),
            WIDTH - 4.0,
            y + 13.0,
            escape(&bar.says),
            y + 18.0,
            Ink::Kind(0).variable(),
            escape(&format!("{}\n{}", bar.name, bar.says))
        );
    }
    figure(title, about, "", &svg(title, TOP + bars.len() as f64 * ROW + 6.0, &drawing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_width_and_names_are_escaped() {
        let bar = |name: &str, value| Bar { name: name.into(), value, says: format!("{value} s") };
        let drawn = bars("Time", "", "seconds", &[bar("<a>", 2.0), bar("b", 1.0)]);
        assert!(drawn.contains("width=\"412.0\"") && drawn.contains("width=\"206.0\""), "{drawn}");
        assert!(drawn.contains("&lt;a&gt;") && !drawn.contains("<a>"));
    }
}
