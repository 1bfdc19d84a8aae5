//! Diffs: which files, which hunks, and then what changed in each.

use super::lines::Lines;
use super::select::Wave;

/// Changed lines of every hunk that come before the rest of any.
const OF_EACH: usize = 8;

pub(super) fn is_diff(head: &[&str]) -> bool {
    let unified = head.windows(3).any(|three| match three {
        [old, new, hunk] => {
            old.starts_with("--- ") && new.starts_with("+++ ") && hunk.starts_with("@@")
        }
        _ => false,
    });
    unified || head.iter().any(|line| line.starts_with("diff --git "))
}

/// What a line of a diff is. `---` and `+++` only name files outside hunks, but a changed line
/// that looks like them does no harm among the headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    File,
    Hunk,
    Changed,
    Other,
}

fn role(line: &str) -> Role {
    let file = [
        "diff ",
        "--- ",
        "+++ ",
        "rename ",
        "deleted file",
        "new file",
        "Binary files",
    ];
    if file.iter().any(|start| line.starts_with(start)) {
        Role::File
    } else if line.starts_with("@@") {
        Role::Hunk
    } else if line.starts_with(['+', '-']) {
        Role::Changed
    } else {
        Role::Other
    }
}

pub(super) fn waves<'a>(lines: &'a Lines<'_>) -> Vec<Wave<'a>> {
    let count = lines.len();
    let of = move |wanted: Role| (0..count).filter(move |at| role(lines.get(*at)) == wanted);
    vec![
        // What stands before the diff: how the command went.
        Wave::new(10, 0..count),
        Wave::new(55, of(Role::File)),
        Wave::new(75, of(Role::Hunk)),
        Wave::new(95, first_changes(lines)),
        Wave::new(100, of(Role::Changed)),
        Wave::new(100, 0..count),
    ]
}

fn first_changes<'a>(lines: &'a Lines<'_>) -> impl Iterator<Item = usize> + 'a {
    let mut changes = 0;
    (0..lines.len()).filter(move |at| match role(lines.get(*at)) {
        Role::Changed => {
            changes += 1;
            changes <= OF_EACH
        }
        Role::Hunk => {
            changes = 0;
            false
        }
        Role::File | Role::Other => false,
    })
}
