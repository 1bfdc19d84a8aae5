//! Line-by-line differences of a file.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// After this time the rest is shown as removed and added, because a user is waiting.
const PATIENCE: Duration = Duration::from_millis(500);

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine<'t> {
    /// In both texts.
    Same(&'t str),
    /// Only in the old text.
    Removed(&'t str),
    /// Only in the new text.
    Added(&'t str),
    /// Omitted lines of both texts.
    Gap,
}

/// The changed lines, each with some context.
pub(crate) fn diff<'t>(before: &'t str, after: &'t str) -> Vec<DiffLine<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let deadline = Instant::now() + PATIENCE;
    let changes = capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline));
    let mut shown = Vec::new();
    let mut next = 0;
    for group in group_diff_ops(changes, CONTEXT) {
        for change in group {
            let (removed, added) = (change.old_range(), change.new_range());
            if removed.start > next {
                shown.push(DiffLine::Gap);
            }
            next = removed.end;
            let removed = old.get(removed).unwrap_or_default().iter();
            if change.tag() == DiffTag::Equal {
                shown.extend(removed.map(|line| DiffLine::Same(line)));
                continue;
            }
            shown.extend(removed.map(|line| DiffLine::Removed(line)));
            let added = new.get(added).unwrap_or_default().iter();
            shown.extend(added.map(|line| DiffLine::Added(line)));
        }
    }
    if old.len() > next {
        shown.push(DiffLine::Gap);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(before: &str, after: &str) -> String {
        let line = |line: &DiffLine<'_>| match line {
            DiffLine::Same(line) => format!(" {line}\n"),
            DiffLine::Removed(line) => format!("-{line}\n"),
            DiffLine::Added(line) => format!("+{line}\n"),
            DiffLine::Gap => "~\n".to_owned(),
        };
        diff(before, after).iter().map(line).collect()
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let before = (1..=20).fold(String::new(), |text, n| text + &format!("line {n}\n"));
        let after = before.replace("line 10\n", "line ten\n");
        assert_eq!(
            rendered(&before, &after),
            "~\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n~\n"
        );
        assert_eq!(rendered("", "a\nb\n"), "+a\n+b\n");
        assert_eq!(rendered("a\n", "a\n"), "~\n");
        assert_eq!(rendered("a\nb\n", ""), "-a\n-b\n");
    }

    #[test]
    fn moved_line_is_removed_and_added() {
        assert_eq!(rendered("a\nb\nc\n", "b\nc\na\n"), "-a\n b\n c\n+a\n");
        // Repeated lines are no anchors, but both ends are.
        assert_eq!(rendered("x\nx\ny\nx\n", "x\nx\nx\n"), " x\n x\n-y\n x\n");
    }

    #[test]
    fn diff_without_gaps_reproduces_both_texts() {
        let (before, after) = ("a\nb\nc\nd\nb\n", "b\na\nd\nd\ne\n");
        let lines = diff(before, after);
        let side = |wanted: fn(&DiffLine<'_>) -> bool| -> String {
            let text = |line: &DiffLine<'_>| match line {
                DiffLine::Same(line) | DiffLine::Removed(line) | DiffLine::Added(line) => {
                    format!("{line}\n")
                }
                DiffLine::Gap => String::new(),
            };
            lines.iter().filter(|line| wanted(line)).map(text).collect()
        };
        assert_eq!(side(|line| !matches!(line, DiffLine::Added(_))), before);
        assert_eq!(side(|line| !matches!(line, DiffLine::Removed(_))), after);
    }
}
