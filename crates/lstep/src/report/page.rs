//! The page around the charts: one file of HTML that needs nothing else, light and dark, on a desk
//! and on a phone.
//!
//! All texts are given plainly and are escaped here; only charts, which escape for themselves, come
//! as markup.

use super::chart::escape;
use super::words::explained;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page in the making.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    body: String,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    text: String,
    class: &'static str,
}

impl Cell {
    /// Words, to the left.
    pub fn words(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "" }
    }

    /// A name or a time, to the left and on one line.
    pub fn name(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "name" }
    }

    /// Many words, which need room.
    pub fn list(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "list" }
    }

    /// A number, to the right.
    pub fn number(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "number" }
    }

    /// A number, marked by its place among those it is compared with: 0 is the best, 1 the second.
    pub fn ranked(text: impl Into<String>, place: usize) -> Cell {
        Cell {
            text: text.into(),
            class: ["number best", "number second"].get(place).copied().unwrap_or("number"),
        }
    }
}

/// A table in the making: names of columns, rows, and which rows are those of the run itself.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<(String, bool)>,
    rows: Vec<(bool, Vec<Cell>)>,
}

impl Table {
    /// Adds a column of words.
    #[must_use]
    pub fn words(mut self, name: &str) -> Table {
        self.columns.push((name.into(), false));
        self
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn numbers(mut self, name: &str) -> Table {
        self.columns.push((name.into(), true));
        self
    }

    /// Adds a row; `ours` makes it stand out.
    pub fn row(&mut self, ours: bool, cells: Vec<Cell>) {
        self.rows.push((ours, cells));
    }

    fn draw(&self) -> String {
        let mut text = String::from("<div class=\"scroll\"><table><thead><tr>");
        for (name, number) in &self.columns {
            let class = if *number { " class=\"number\"" } else { "" };
            let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", explained(name));
        }
        text.push_str("</tr></thead><tbody>");
        for (ours, cells) in &self.rows {
            text.push_str(if *ours { "<tr class=\"ours\">" } else { "<tr>" });
            for cell in cells {
                let said = if cell.class.is_empty() { explained } else { escape };
                let _ = write!(text, "<td class=\"{}\">{}</td>", cell.class, said(&cell.text));
            }
            text.push_str("</tr>");
        }
        text + "</tbody></table></div>\n"
    }
}

impl Page {
    /// A page with its title and a sentence below it.
    pub fn new(title: &str, subtitle: &str) -> Page {
        let body = format!(
            "<header><div><h1>{}</h1><p class=\"soft\">{}</p></div><button id=\"theme\" type=\"button\">Colours</button></header>\n",
            escape(title),
            escape(subtitle)
        );
        Page { title: title.into(), body }
    }

    /// Numbers that count most, each with what it is; the first stands out.
    pub fn cards(&mut self, cards: &[(String, String)]) {
        self.body.push_str("<div class=\"cards\">");
        for (place, (number, about)) in cards.iter().enumerate() {
            let class = if place == 0 { "card main" } else { "card" };
            let _ = write!(
                self.body,
                "<div class=\"{class}\"><b>{}</b><span>{}</span></div>",
                escape(number),
                explained(about)
            );
        }
        self.body.push_str("</div>\n");
    }

    /// A section's heading and a sentence about it.
    pub fn section(&mut self, title: &str, about: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(title));
        if !about.is_empty() {
            self.paragraph(about);
        }
    }

    /// A heading within a section.
    pub fn heading(&mut self, title: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(title));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", explained(text));
    }

    /// Something a reader has to know before believing a number.
    pub fn warning(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"warning\">{}</p>", explained(text));
    }

    /// Something that is as it should be.
    pub fn fine(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"fine\">{}</p>", explained(text));
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&table.draw());
    }

    /// Charts side by side, as many as there is room for.
    pub fn charts(&mut self, charts: impl IntoIterator<Item = String>) {
        self.body.push_str("<div class=\"charts\">");
        charts.into_iter().for_each(|chart| self.body.push_str(&chart));
        self.body.push_str("</div>\n");
    }

    /// Text as it is, folded away under a summary.
    pub fn folded(&mut self, summary: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(summary),
            escape(text)
        );
    }

    /// Text as it is.
    pub fn verbatim(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre>{}</pre>", escape(text));
    }

    /// The whole file.
    pub fn finish(self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" \
             href=\"data:,\"><title>{}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n{}<footer>Made by lstep {}. This file \
             is complete in itself. Hover, tap, or use the arrow keys on a chart for its values, and on \
             a dotted word for its meaning.</footer></main>\n<div id=\"tip\" \
             role=\"status\"></div>\n<script>\n{SCRIPT}</script></body></html>\n",
            escape(&self.title),
            self.body,
            env!("CARGO_PKG_VERSION")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_page_is_escaped() {
        let bad = "<img src=x onerror=alert(1)>";
        let mut page = Page::new(bad, bad);
        page.cards(&[(bad.into(), bad.into())]);
        page.section(bad, bad);
        page.heading(bad);
        page.warning(bad);
        page.fine(bad);
        let mut table = Table::default().words(bad).numbers(bad);
        table.row(true, vec![Cell::words(bad), Cell::ranked(bad, 0)]);
        page.table(&table);
        page.folded(bad, bad);
        page.verbatim(bad);
        let text = page.finish();
        assert!(!text.contains("<img"), "{text}");
        assert_eq!(text.matches("&lt;img").count(), 17);
    }

    #[test]
    fn a_page_asks_the_network_for_nothing() {
        let text = Page::new("t", "s").finish();
        let without_namespace = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_namespace.contains("http"), "{text}");
        assert!(!text.contains("src=") && !text.contains("@import") && !text.contains("url("));
    }
}
