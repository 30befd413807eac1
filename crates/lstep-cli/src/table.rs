//! Tables for people: columns aligned, numbers to the right.

use lstep::error::printable_line;

/// A table in the making.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts with the names of the columns.
    pub fn new<const N: usize>(columns: [&str; N]) -> Table {
        Table::with_columns(columns.map(String::from).to_vec())
    }

    /// Starts with names of columns that are not known beforehand.
    pub fn with_columns(columns: Vec<String>) -> Table {
        Table { rows: vec![columns] }
    }

    /// Adds a row with as many cells as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        // A name with the end of a line in it would look like a row.
        self.rows.push(cells.iter().map(|cell| printable_line(cell).into_owned()).collect());
    }

    /// The table as lines of text; a column of numbers is aligned to the right.
    pub fn show(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let numeric = |column: usize| {
            let cells = self.rows[1..].iter().map(|row| row[column].as_str());
            cells.clone().any(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
                && cells
                    .into_iter()
                    .all(|cell| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit()))
        };
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = (0..columns)
                .map(|column| {
                    let (cell, width) = (&row[column], width(column));
                    if numeric(column) {
                        format!("{cell:>width$}")
                    } else {
                        format!("{cell:<width$}")
                    }
                })
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
            if number == 0 {
                let rules: Vec<String> =
                    (0..columns).map(|column| "-".repeat(width(column))).collect();
                text.push_str(&rules.join("  "));
                text.push('\n');
            }
        }
        text
    }
    /// The table as a LaTeX `tabular`, for booktabs.
    pub fn latex(&self) -> String {
        let escaped = |cell: &String| -> String {
            let mut text = String::with_capacity(cell.len());
            for letter in cell.chars() {
                match letter {
                    '\\' => text.push_str("\\textbackslash{}"),
                    '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                        text.push('\\');
                        text.push(letter);
                    }
                    '~' => text.push_str("\\textasciitilde{}"),
                    '^' => text.push_str("\\textasciicircum{}"),
                    other => text.push(other),
                }
            }
            text
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().map(escaped).collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let columns = "r".repeat(self.rows[0].len().saturating_sub(1));
        let mut text = format!("\\begin{{tabular}}{{l{columns}}}\n\\toprule\n");
        text.push_str(&line(&self.rows[0]));
        text.push_str("\\midrule\n");
        self.rows[1..].iter().for_each(|row| text.push_str(&line(row)));
        text.push_str("\\bottomrule\n\\end{tabular}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(["model", "ap"]);
        table.row(vec!["a".into(), "0.5".into()]);
        table.row(vec!["longer".into(), "10.25".into()]);
        let latex = table.latex();
        assert!(latex.starts_with("\\begin{tabular}{lr}\n\\toprule\nmodel & ap \\\\\n"), "{latex}");
        assert_eq!(table.show(), "model      ap\n------  -----\na         0.5\nlonger  10.25\n");
    }
}
