//! Tables of text: the first column to the left, the others to the right.

use super::Style;

/// A table that is being made.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    headed: bool,
}

/// Spaces between two columns.
const GAP: usize = 3;

impl Table {
    /// A table with these headings.
    pub fn with_head(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|text| (*text).to_owned()).collect()], headed: true }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Whether there is no row beside the headings.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= usize::from(self.headed)
    }

    /// The table's lines, each with its end.
    pub fn render(&self, style: Style) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for (place, row) in self.rows.iter().enumerate() {
            let line = render_row(row, &widths);
            let head = self.headed && place == 0;
            text.push_str(&if head { style.bold(&line) } else { line });
            text.push('\n');
        }
        text
    }
}

/// A row in columns of these widths, without a line end.
pub(crate) fn render_row(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, width_bytes)) in row.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width_bytes.saturating_sub(width(cell)));
        if column == 0 {
            line.push_str(cell);
            line.push_str(&padding);
        } else {
            line.push_str(&" ".repeat(GAP));
            line.push_str(&padding);
            line.push_str(cell);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Letters, each taken to be one column wide: units and figures are.
fn width(cell: &str) -> usize {
    cell.chars().count()
}
