//! Renders Markdown tables in columns.

use crate::ui::style::{self, TextStyle};

/// The separator of two columns.
const BETWEEN: &str = "  ";

/// The raw rows of a table.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable(Vec<String>);

impl MarkdownTable {
    /// Adds a row.
    pub(super) fn push(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }

    /// Renders the table in columns, or as a list if it is too wide, or verbatim if it is not a
    /// table.
    pub(super) fn take(&mut self, width: usize) -> Vec<(TextStyle, String)> {
        let lines = std::mem::take(&mut self.0);
        let mut rows: Vec<Vec<String>> = lines.iter().map(|line| cells(line)).collect();
        let is_table = rows.get(1).is_some_and(|row| is_rule(row));
        if !is_table {
            let raw = lines.into_iter();
            return raw.map(|line| (TextStyle::Plain, line + "\n")).collect();
        }
        rows.remove(1);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let all = widths.iter().sum::<usize>() + BETWEEN.len() * columns.saturating_sub(1);
        if all > width {
            return listed(&rows);
        }
        in_columns(&rows, &widths)
    }
}

fn in_columns(rows: &[Vec<String>], widths: &[usize]) -> Vec<(TextStyle, String)> {
    let line = |row: &Vec<String>| {
        let padded = widths.iter().enumerate().map(|(column, width)| {
            let cell = row.get(column).map_or("", String::as_str);
            format!("{cell:<width$}")
        });
        let line = padded.collect::<Vec<_>>().join(BETWEEN);
        format!("{}\n", line.trim_end())
    };
    let rule: Vec<String> = widths
        .iter()
        .map(|width| "\u{2500}".repeat(*width))
        .collect();
    let mut shown: Vec<(TextStyle, String)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at == 0 {
            shown.push((style::STRONG, line(row)));
            shown.push((style::DIM, format!("{}\n", rule.join(BETWEEN))));
        } else {
            shown.push((TextStyle::Plain, line(row)));
        }
    }
    // A style never continues on the next line.
    let split = |(look, line): (TextStyle, String)| {
        let text = line.trim_end_matches('\n').to_owned();
        [(look, text), (TextStyle::Plain, "\n".to_owned())]
    };
    shown.into_iter().flat_map(split).collect()
}

/// Each row as lines of `heading: cell`.
fn listed(rows: &[Vec<String>]) -> Vec<(TextStyle, String)> {
    let mut rows = rows.iter();
    let headings = rows.next().cloned().unwrap_or_default();
    let mut shown = Vec::new();
    for (at, row) in rows.enumerate() {
        if at > 0 {
            shown.push((TextStyle::Plain, "\n".to_owned()));
        }
        for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let heading = headings.get(column).map_or("", String::as_str);
            shown.push((style::STRONG, format!("{heading}: ")));
            shown.push((TextStyle::Plain, format!("{cell}\n")));
        }
    }
    shown
}

/// The cells of a row, without marks of bold text and code.
fn cells(line: &str) -> Vec<String> {
    let bare = line.trim();
    let bare = bare.strip_prefix('|').unwrap_or(bare);
    let bare = bare.strip_suffix('|').unwrap_or(bare);
    // Hides escaped bars from the split below.
    let bare = bare.replace("\\|", "\u{0}");
    let cell = |cell: &str| {
        let mut cell = cell.trim().replace('\u{0}', "|");
        for mark in ["**", "`"] {
            // An odd number of marks does not form pairs, so they are text.
            if cell.matches(mark).count() % 2 == 0 {
                cell = cell.replace(mark, "");
            }
        }
        cell
    };
    bare.split('|').map(cell).collect()
}

/// True for the separator row below the headings.
fn is_rule(row: &[String]) -> bool {
    let is_dashes = |cell: &String| {
        let bare = cell.trim_matches(':');
        !bare.is_empty() && bare.chars().all(|c| c == '-')
    };
    !row.is_empty() && row.iter().all(is_dashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str], width: usize) -> String {
        let mut table = MarkdownTable::default();
        for line in lines {
            table.push(line);
        }
        table
            .take(width)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn wide_tables_become_lists() {
        let lines = [
            "| name | what |",
            "|:--|--:|",
            "| `a` | **first** |",
            "| longer | x \\| y |",
        ];
        assert_eq!(
            shown(&lines, 40),
            "name    what\n\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}  \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\na       first\nlonger  x | y\n"
        );
        assert_eq!(
            shown(&lines, 9),
            "name: a\nwhat: first\n\nname: longer\nwhat: x | y\n"
        );
        assert_eq!(shown(&["| no", "| table"], 40), "| no\n| table\n");
    }
}
