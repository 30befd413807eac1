//! Charts as SVG, drawn here: no script is needed to see them, and no network.
//!
//! A [`Plot`] is layers over two axes. Colours are variables of the page's style, so that light and
//! dark are one drawing; every mark that has a value carries it as `<title>`, which the page's
//! script turns into hover values. All texts are given plainly and are escaped here.

use super::scale::{Axis, Scale};
use std::fmt::Write;

/// Width of the drawing; the page scales it down to a phone's width, where its letters are still
/// readable.
pub(super) const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
/// Scratch for the labels of the second axis, at least.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
/// About the width of a letter of the labels.
const LETTER: f64 = 6.7;

/// Text that can stand anywhere in HTML.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Which colour, of those that colour-blind people can tell apart as well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ink {
    /// One of the colours for kinds of things, from 0.
    Kind(usize),
    /// One of the five colours from few to many, from 0.
    Amount(usize),
    /// For what is there to compare with.
    Muted,
}

impl Ink {
    pub(super) fn variable(self) -> String {
        match self {
            Ink::Kind(place) => format!("var(--kind{})", place % 6),
            Ink::Amount(place) => format!("var(--amount{})", place.min(4)),
            Ink::Muted => "var(--muted)".into(),
        }
    }

    /// Kinds differ by dashes, too.
    fn dashes(self) -> &'static str {
        match self {
            Ink::Kind(place) => ["", "6 3", "2 3", "9 3 2 3", "4 2", "8 2 2 2 2 2"][place % 6],
            Ink::Amount(_) => "",
            Ink::Muted => "4 4",
        }
    }
}

/// A place with what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Where on the first axis.
    pub x: f64,
    /// Where on the second axis.
    pub y: f64,
    /// The values in words, shown on hovering.
    pub says: String,
}

impl Mark {
    /// A place with what it means.
    pub fn new(x: f64, y: f64, says: String) -> Mark {
        Mark { x, y, says }
    }
}

#[derive(Debug, Clone)]
enum Layer {
    Line { marks: Vec<Mark>, ink: Ink, dots: bool },
    Band { at: Vec<f64>, low: Vec<f64>, high: Vec<f64>, ink: Ink },
    Dots { marks: Vec<Mark>, ink: Ink, radius: f64 },
    Lettered { mark: Mark, ink: Ink, letter: char },
    Moves { moves: Vec<(f64, f64, f64, f64)>, ink: Ink },
    Columns { marks: Vec<Mark>, half: f64, ink: Ink },
    Rule { from: (f64, f64), to: (f64, f64) },
}

/// A chart in the making.
#[derive(Debug, Clone)]
pub struct Plot {
    title: String,
    about: String,
    across: Axis,
    up: Axis,
    layers: Vec<Layer>,
    legend: Vec<(String, Ink, Symbol)>,
}

/// How a legend shows what it names.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Symbol {
    Line,
    Patch,
    Dot,
    Letter(char),
}

impl Plot {
    /// An empty chart. `about` says how to read it.
    pub fn new(title: &str, about: &str, across: Axis, up: Axis) -> Plot {
        let (title, about) = (title.to_string(), about.to_string());
        Plot { title, about, across, up, layers: Vec::new(), legend: Vec::new() }
    }

    /// Adds a line through marks, with a dot at each if there are few.
    #[must_use]
    pub fn line(mut self, name: &str, ink: Ink, marks: Vec<Mark>) -> Plot {
        self.legend.push((name.into(), ink, Symbol::Line));
        let dots = marks.len() <= 40;
        self.layers.push(Layer::Line { marks, ink, dots });
        self
    }

    /// Adds an area between two curves.
    #[must_use]
    pub fn band(
        mut self,
        name: &str,
        ink: Ink,
        at: Vec<f64>,
        low: Vec<f64>,
        high: Vec<f64>,
    ) -> Plot {
        self.legend.push((name.into(), ink, Symbol::Patch));
        self.layers.push(Layer::Band { at, low, high, ink });
        self
    }

    /// Adds dots.
    #[must_use]
    pub fn dots(mut self, name: &str, ink: Ink, radius: f64, marks: Vec<Mark>) -> Plot {
        self.legend.push((name.into(), ink, Symbol::Dot));
        self.layers.push(Layer::Dots { marks, ink, radius });
        self
    }

    /// Adds one dot with a letter in it, for things that are too many for colours.
    #[must_use]
    pub fn lettered(mut self, name: &str, ink: Ink, letter: char, mark: Mark) -> Plot {
        self.legend.push((name.into(), ink, Symbol::Letter(letter)));
        self.layers.push(Layer::Lettered { mark, ink, letter });
        self
    }

    /// Adds lines from old places to new ones, without names.
    #[must_use]
    pub fn moves(mut self, ink: Ink, moves: Vec<(f64, f64, f64, f64)>) -> Plot {
        self.layers.push(Layer::Moves { moves, ink });
        self
    }

    /// Adds columns from zero, each `half` to both sides of its place.
    #[must_use]
    pub fn columns(mut self, name: &str, ink: Ink, half: f64, marks: Vec<Mark>) -> Plot {
        self.legend.push((name.into(), ink, Symbol::Patch));
        self.layers.push(Layer::Columns { marks, half, ink });
        self
    }

    /// Adds a thin line to compare with; a name puts it into the legend.
    #[must_use]
    pub fn rule(mut self, name: Option<&str>, from: (f64, f64), to: (f64, f64)) -> Plot {
        self.legend.extend(name.map(|name| (name.to_string(), Ink::Muted, Symbol::Line)));
        self.layers.push(Layer::Rule { from, to });
        self
    }

    /// The chart as a figure of HTML.
    pub fn draw(&self) -> String {
        let frame = Frame::new(
            self,
            self.across.fit(self.layers.iter().flat_map(|layer| layer.values(false))),
            self.up.fit(self.layers.iter().flat_map(|layer| layer.values(true))),
        );
        let mut drawing = String::new();
        frame.axes(&mut drawing);
        for layer in &self.layers {
            frame.layer(&mut drawing, layer);
        }
        figure(&self.title, &self.about, &legend(&self.legend), &svg(&self.title, HEIGHT, &drawing))
    }
}

/// A drawing with the width that all have.
pub(super) fn svg(title: &str, height: f64, drawing: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\" tabindex=\"0\">{drawing}</svg>",
        escape(title)
    )
}

/// A figure: title, explanation, legend, drawing.
pub(super) fn figure(title: &str, about: &str, legend: &str, svg: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!("<p>{}</p>", escape(about)) };
    format!(
        "<figure class=\"chart\"><figcaption><h3>{}</h3>{about}</figcaption>{legend}{svg}</figure>\n",
        escape(title)
    )
}

fn legend(entries: &[(String, Ink, Symbol)]) -> String {
    if entries.len() < 2 {
        return String::new();
    }
    let mut text = String::from("<ul class=\"legend\">");
    for (name, ink, symbol) in entries {
        let colour = ink.variable();
        let shape = match symbol {
            Symbol::Line => format!(
                "<path d=\"M0 6H22\" style=\"stroke:{colour};stroke-width:2.5\" stroke-dasharray=\"{}\"/>",
                ink.dashes()
            ),
            Symbol::Patch => {
                format!(
                    "<rect x=\"3\" width=\"16\" height=\"12\" style=\"fill:{colour}\" opacity=\"0.6\"/>"
                )
            }
            Symbol::Dot => format!("<circle cx=\"11\" cy=\"6\" r=\"5\" style=\"fill:{colour}\"/>"),
            Symbol::Letter(letter) => format!(
                "<circle cx=\"11\" cy=\"6\" r=\"6\" style=\"fill:{colour}\"/><text class=\"letter\" x=\"11\" y=\"9.5\" \
                 text-anchor=\"middle\">{letter}</text>"
            ),
        };
        let _ = write!(
            text,
            "<li><svg class=\"swatch\" viewBox=\"0 0 22 12\" aria-hidden=\"true\">{shape}</svg>{}</li>",
            escape(name)
        );
    }
    text + "</ul>"
}

impl Layer {
    /// All numbers on one axis, to find its range.
    fn values(&self, up: bool) -> Vec<f64> {
        let of = |marks: &[Mark]| -> Vec<f64> {
            marks.iter().map(|mark| if up { mark.y } else { mark.x }).collect()
        };
        match self {
            Layer::Line { marks, .. } | Layer::Dots { marks, .. } => of(marks),
            Layer::Lettered { mark, .. } => of(std::slice::from_ref(mark)),
            Layer::Columns { marks, half, .. } => {
                let mut values = of(marks);
                match up {
                    true => values.push(0.0),
                    false => values = values.iter().flat_map(|x| [x - half, x + half]).collect(),
                }
                values
            }
            Layer::Band { at, low, high, .. } => {
                if up {
                    low.iter().chain(high).copied().collect()
                } else {
                    at.clone()
                }
            }
            Layer::Moves { moves, .. } => {
                moves.iter().flat_map(|m| if up { [m.1, m.3] } else { [m.0, m.2] }).collect()
            }
            Layer::Rule { from, to } => {
                if up {
                    vec![from.1, to.1]
                } else {
                    vec![from.0, to.0]
                }
            }
        }
    }
}

/// A plot with the ends of its axes.
struct Frame<'p> {
    plot: &'p Plot,
    x: (f64, f64),
    y: (f64, f64),
    /// Where the second axis stands: right of its longest label.
    left: f64,
}

impl<'p> Frame<'p> {
    fn new(plot: &'p Plot, x: (f64, f64), y: (f64, f64)) -> Frame<'p> {
        let longest =
            plot.up.tick_labels(y, 5).iter().map(|tick| tick.1.chars().count()).max().unwrap_or(0);
        Frame { plot, x, y, left: LEFT.max(longest as f64 * LETTER + 10.0) }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.plot.across.place(self.x, value) * (WIDTH - self.left - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.plot.up.place(self.y, value) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, out: &mut String) {
        let (left, right, bottom) = (self.left, WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in self.plot.up.tick_labels(self.y, 5) {
            let y = self.y(value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                escape(&label)
            );
        }
        for (value, label) in self.across_ticks() {
            let x = self.x(value);
            let half = label.chars().count() as f64 * LETTER / 2.0;
            // A label at the edge ends there instead of being cut off.
            let (at, anchor) =
                if x + half > WIDTH { (WIDTH - 1.0, "end") } else { (x.max(half), "middle") };
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {bottom}v4\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"{anchor}\">{}</text>",
                bottom + 17.0,
                escape(&label)
            );
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{left:.1} {TOP}V{bottom}H{right}\"/><text class=\"label up\" x=\"4\" y=\"13\">{}</text>\
             <text class=\"label across\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            escape(&self.plot.up.label),
            (left + right) / 2.0,
            HEIGHT - 7.0,
            escape(&self.plot.across.label)
        );
    }

    /// As many ticks as have room for their labels.
    fn across_ticks(&self) -> Vec<(f64, String)> {
        let room = WIDTH - self.left - RIGHT;
        for most in (1..=7).rev() {
            let ticks = self.plot.across.tick_labels(self.x, most);
            let longest = ticks.iter().map(|tick| tick.1.chars().count()).max().unwrap_or(0) as f64
                * LETTER
                + 8.0;
            if longest * ticks.len() as f64 <= room
                || matches!(self.plot.across.scale, Scale::Names(_))
            {
                return ticks;
            }
        }
        Vec::new()
    }

    fn layer(&self, out: &mut String, layer: &Layer) {
        match layer {
            Layer::Line { marks, ink, dots } => {
                let path: Vec<String> = marks
                    .iter()
                    .map(|mark| format!("{:.1} {:.1}", self.x(mark.x), self.y(mark.y)))
                    .collect();
                if !path.is_empty() {
                    let _ = write!(
                        out,
                        "<path class=\"line\" style=\"stroke:{}\" stroke-dasharray=\"{}\" d=\"M{}\"/>",
                        ink.variable(),
                        ink.dashes(),
                        path.join("L")
                    );
                }
                self.circles(out, marks, *ink, if *dots { 2.6 } else { 0.0 });
            }
            Layer::Dots { marks, ink, radius } => self.circles(out, marks, *ink, *radius),
            Layer::Lettered { mark, ink, letter } => {
                self.circles(out, std::slice::from_ref(mark), *ink, 7.5);
                let _ = write!(
                    out,
                    "<text class=\"letter\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{letter}</text>",
                    self.x(mark.x),
                    self.y(mark.y) + 3.6
                );
            }
            Layer::Band { at, low, high, ink } => {
                let there = at
                    .iter()
                    .zip(high)
                    .map(|(x, y)| format!("{:.1} {:.1}", self.x(*x), self.y(*y)));
                let back = at
                    .iter()
                    .zip(low)
                    .rev()
                    .map(|(x, y)| format!("{:.1} {:.1}", self.x(*x), self.y(*y)));
                let path: Vec<String> = there.chain(back).collect();
                let _ = write!(
                    out,
                    "<path class=\"band\" style=\"fill:{}\" d=\"M{}Z\"/>",
                    ink.variable(),
                    path.join("L")
                );
            }
            Layer::Moves { moves, ink } => {
                let mut path = String::new();
                for &(x0, y0, x1, y1) in moves {
                    let _ = write!(
                        path,
                        "M{:.1} {:.1}L{:.1} {:.1}",
                        self.x(x0),
                        self.y(y0),
                        self.x(x1),
                        self.y(y1)
                    );
                }
                let _ = write!(
                    out,
                    "<path class=\"moves\" style=\"stroke:{}\" d=\"{path}\"/>",
                    ink.variable()
                );
            }
            Layer::Columns { marks, half, ink } => {
                let context = self.y(0.0_f64.clamp(self.y.0, self.y.1));
                for mark in marks {
                    let (x0, x1, y) =
                        (self.x(mark.x - half), self.x(mark.x + half), self.y(mark.y));
                    let _ = write!(
                        out,
                        "<rect class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" style=\"fill:{}\" \
                         opacity=\"0.6\"><title>{}</title></rect>",
                        x0,
                        y.min(context),
                        (x1 - x0).max(0.5),
                        (context - y).abs(),
                        ink.variable(),
                        escape(&mark.says)
                    );
                }
            }
            Layer::Rule { from, to } => {
                let _ = write!(
                    out,
                    "<path class=\"rule\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
                    self.x(from.0),
                    self.y(from.1),
                    self.x(to.0),
                    self.y(to.1)
                );
            }
        }
    }

    /// Circles that carry their values; those of radius zero are seen only on hovering.
    fn circles(&self, out: &mut String, marks: &[Mark], ink: Ink, radius: f64) {
        for mark in marks {
            let _ = write!(
                out,
                "<circle class=\"mark\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" style=\"fill:{}\"><title>{}</title></circle>",
                self.x(mark.x),
                self.y(mark.y),
                ink.variable(),
                escape(&mark.says)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let marks = vec![Mark::new(0.0, 0.5, "half <b>".into()), Mark::new(1.0, 1.0, "all".into())];
        Plot::new("A & B", "about", Axis::new("time (s)"), Axis::between("share", 0.0, 1.0))
            .line("<script>alert(1)</script>", Ink::Kind(0), marks.clone())
            .dots("other", Ink::Kind(1), 3.0, marks)
    }

    #[test]
    fn a_chart_has_a_title_labels_a_legend_and_values_and_all_texts_are_escaped() {
        let drawn = plot().draw();
        assert!(drawn.contains("<h3>A &amp; B</h3>"));
        assert!(drawn.contains("class=\"label across\"") && drawn.contains("time (s)"));
        assert!(drawn.contains("class=\"label up\"") && drawn.contains(">share<"));
        assert!(drawn.contains("<title>half &lt;b&gt;</title>"));
        assert!(drawn.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert!(!drawn.contains("<script"), "{drawn}");
    }

    #[test]
    fn the_lowest_value_is_at_the_bottom_and_the_first_at_the_left() {
        let plot = plot();
        let frame = Frame::new(&plot, (0.0, 1.0), (0.0, 1.0));
        assert_eq!((frame.x(0.0), frame.x(1.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!((frame.y(0.0), frame.y(1.0)), (HEIGHT - BOTTOM, TOP));
    }

    #[test]
    fn long_labels_of_the_second_axis_push_it_to_the_right() {
        let plot = Plot::new("t", "", Axis::new("x"), Axis::between("y", 0.38451, 0.38609));
        let frame = Frame::new(&plot, (0.0, 1.0), (0.38451, 0.38609));
        assert!(frame.left > LEFT, "room for 0.3850: {}", frame.left);
    }

    #[test]
    fn no_label_is_cut_off_at_the_right_edge() {
        let axis = Axis::between("when", 0.0, 1.0)
            .with_ticks(vec![(0.0, "2026-01-01".into()), (1.0, "2026-12-31".into())]);
        let drawn = Plot::new("t", "", axis, Axis::new("y")).draw();
        assert!(drawn.contains("text-anchor=\"end\">2026-12-31"), "{drawn}");
    }
}
