//! Detects tables.

use crate::pattern::LazyRegex;

/// The number of rows that are examined, including the header.
const ROWS: usize = 12;
/// Fewer rows are not a table.
const FEWEST: usize = 3;

/// The number of header lines of a table; none if the text is not a table.
pub(super) fn header_lines(head: &[&str]) -> Option<usize> {
    let rows: Vec<&str> = head.iter().copied().take(ROWS).collect();
    // The text may end after these rows with a newline.
    let rows = rows.strip_suffix(&[""]).unwrap_or(&rows);
    if rows.len() < FEWEST {
        return None;
    }
    if is_markdown(rows) {
        return Some(2);
    }
    let separated = [',', '\t', ';', '|']
        .iter()
        .any(|mark| is_separated(rows, *mark));
    (separated || is_listing(rows) || is_aligned(rows)).then_some(1)
}

fn is_markdown(rows: &[&str]) -> bool {
    let rule = rows.get(1).map_or("", |rule| rule.trim());
    rule.contains("--") && rule.contains('|') && rule.chars().all(|c| "|-: +".contains(c))
}

/// True if every row has the same number of separators, outside quotes.
fn is_separated(rows: &[&str], mark: char) -> bool {
    let counts: Vec<usize> = rows.iter().map(|row| separators(row, mark)).collect();
    let first = counts.first().copied().unwrap_or(0);
    first > 0 && counts.iter().all(|count| *count == first)
}

fn separators(row: &str, mark: char) -> usize {
    let mut quoted = false;
    let outside = row.chars().filter(|c| {
        // A doubled quote inside a field toggles twice, which is right.
        quoted ^= *c == '"';
        *c == mark && !quoted
    });
    outside.count()
}

/// A line of `ls -l`.
static LISTED: LazyRegex = LazyRegex::new(r"^.[rwxsStT-]{9}[.+@]*(?: |$)");

fn is_listing(rows: &[&str]) -> bool {
    let starts = |row: &&str| row.starts_with("total ") || LISTED.is_match(row);
    rows.first().is_some_and(starts) && rows.iter().skip(1).all(|row| LISTED.is_match(row))
}

/// True for a header in capitals over columns, as `ps`, `df` and container tools print.
fn is_aligned(rows: &[&str]) -> bool {
    let Some((first, rest)) = rows.split_first() else {
        return false;
    };
    let names: Vec<&str> = first.split_whitespace().collect();
    let capital = |name: &&str| name.starts_with(|c: char| c.is_ascii_uppercase() || c == '%');
    names.len() >= 3
        && names.iter().filter(|name| capital(name)).count() * 3 >= names.len() * 2
        && (first.contains("  ") || names.iter().all(|name| name.to_uppercase() == *name))
        && rest
            .iter()
            .all(|row| row.split_whitespace().count() + 1 >= names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<usize> {
        let rows: Vec<&str> = text.split('\n').collect();
        header_lines(&rows)
    }

    #[test]
    fn tables_are_known_by_their_columns() {
        assert_eq!(of("a,b\n\"1,5\",2\n3,4\n"), Some(1));
        assert_eq!(of("a\tb\n1\t2\n3\t4"), Some(1));
        assert_eq!(of("| a | b |\n|---|--:|\n| 1 | 2 |"), Some(2));
        assert_eq!(
            of("total 8\n-rw-r--r-- 1 a a 1 x\ndrwxr-xr-x 2 a a 1 y"),
            Some(1)
        );
        assert_eq!(
            of("PID TTY TIME CMD\n 1 ? 0:00 init\n 2 ? 0:01 sh"),
            Some(1)
        );
        assert_eq!(
            of("NAME    READY   AGE\nweb     1/1     3d\ndb      0/1     2m"),
            Some(1)
        );
    }

    #[test]
    fn prose_is_no_table() {
        assert_eq!(of("One, two.\nThree.\nFour, five, six."), None);
        assert_eq!(of("a,b\n1,2"), None);
    }
}
