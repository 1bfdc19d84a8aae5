//! Aligns rows in columns.

use super::clipped::clipped;
use super::visible::visible;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Aligns `rows` in columns, with spaces between them. Line breaks in a cell are escaped.
///
/// ```
/// use trimtab_cli::ui::columns::{Align, lined_up};
/// let rows = [["a", "10"], ["bcd", "9"]].map(|row| row.map(str::to_owned));
/// assert_eq!(lined_up(&rows, [Align::Left, Align::Right]), "a    10\nbcd   9\n");
/// ```
pub fn lined_up<const N: usize>(rows: &[[String; N]], align: [Align; N]) -> String {
    lined_up_within(rows, align, None)
}

/// The same in lines of at most `width` characters, if it is known. Columns that do not fit follow
/// below, behind the first column again. A long first column is cut.
///
/// ```
/// use trimtab_cli::ui::columns::{Align, lined_up_within};
/// let rows = [["name", "one", "two"], ["a", "1", "2"]].map(|row| row.map(str::to_owned));
/// let text = lined_up_within(&rows, [Align::Left; 3], Some(10));
/// assert_eq!(text, "name  one\na     1\n\nname  two\na     2\n");
/// ```
pub fn lined_up_within<const N: usize>(
    rows: &[[String; N]],
    align: [Align; N],
    width: Option<usize>,
) -> String {
    let width = width.unwrap_or(usize::MAX);
    let visible_row = |row: &[String; N]| {
        let mut row = row.each_ref().map(|cell| visible(cell).into_owned());
        if let Some(first) = row.first_mut() {
            *first = clipped(first, width / 2).into_owned();
        }
        row
    };
    let rows: Vec<[String; N]> = rows.iter().map(visible_row).collect();
    let columns: Vec<TableColumn<'_>> = align
        .into_iter()
        .enumerate()
        .map(|(number, align)| TableColumn::new(&rows, number, align))
        .collect();
    let Some((first, others)) = columns.split_first() else {
        return String::new();
    };
    let mut tables = Vec::new();
    let mut table = vec![first];
    for column in others {
        let used: usize = table.iter().map(|column| column.width + GAP).sum();
        if used + column.width > width && table.len() > 1 {
            tables.push(table_text(&table));
            table = vec![first];
        }
        table.push(column);
    }
    tables.push(table_text(&table));
    tables.join("\n")
}

/// The spaces between two columns.
const GAP: usize = 2;

struct TableColumn<'a> {
    cells: Vec<&'a str>,
    width: usize,
    align: Align,
}

impl<'a> TableColumn<'a> {
    fn new<const N: usize>(rows: &'a [[String; N]], number: usize, align: Align) -> Self {
        let cells = rows.iter().filter_map(|row| row.get(number));
        let cells: Vec<&str> = cells.map(String::as_str).collect();
        let widths = cells.iter().map(|cell| cell.chars().count());
        Self {
            width: widths.max().unwrap_or_default(),
            cells,
            align,
        }
    }
}

fn table_text(columns: &[&TableColumn<'_>]) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut text = String::new();
    for row in 0..rows {
        let mut line = String::new();
        for column in columns {
            let cell = column.cells.get(row).copied().unwrap_or_default();
            let room = " ".repeat(column.width - cell.chars().count());
            match column.align {
                Align::Left => line.extend([cell, &*room]),
                Align::Right => line.extend([&*room, cell]),
            }
            line.push_str(&" ".repeat(GAP));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
