//! Aligns rows in columns.

use super::visible::visible;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Aligns `rows` in columns, with two spaces between them. Line breaks in a cell are escaped.
///
/// ```
/// use trimtab_cli::ui::columns::{Align, lined_up};
/// let rows = [["a", "10"], ["bcd", "9"]].map(|row| row.map(str::to_owned));
/// assert_eq!(lined_up(&rows, [Align::Left, Align::Right]), "a    10\nbcd   9\n");
/// ```
pub fn lined_up<const N: usize>(rows: &[[String; N]], align: [Align; N]) -> String {
    let visible_row = |row: &[String; N]| row.each_ref().map(|cell| visible(cell).into_owned());
    let rows: Vec<[String; N]> = rows.iter().map(visible_row).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(widths).zip(align) {
            let gap = " ".repeat(width - cell.chars().count());
            match align {
                Align::Left => line.extend([cell, &*gap, "  "]),
                Align::Right => line.extend([&*gap, cell, "  "]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
