//! What a search found: some hits from every file come before all hits from one.

use super::lines::Lines;
use super::select::Wave;
use crate::view::figures::first_bytes;

/// Lines it takes to judge.
const FEWEST: usize = 4;
/// Paths are looked for in this many bytes of a line.
const LONGEST: usize = 400;
/// Hits of every file that come before the rest of any.
const OF_EACH: usize = 3;

/// True if nearly every line starts with a path and a line number.
pub(super) fn is_hits(head: &[&str]) -> bool {
    let lines: Vec<&str> = head
        .iter()
        .copied()
        .filter(|line| !line.is_empty())
        .collect();
    let hits = lines.iter().filter(|line| path(line).is_some()).count();
    lines.len() >= FEWEST && hits * 10 >= lines.len() * 8
}

/// The path of a line like `src/main.rs:12:` or `src/main.rs-13-`.
fn path(line: &str) -> Option<&str> {
    let line = first_bytes(line, LONGEST);
    let mut ends = line.match_indices([':', '-']);
    ends.find_map(|(at, mark)| {
        let (path, rest) = line.split_at_checked(at)?;
        let rest = rest.strip_prefix(mark)?;
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = behind.len() < rest.len() && behind.starts_with(mark);
        let name = !path.is_empty() && !path.contains(char::is_whitespace);
        (numbered && name && path.contains(['.', '/'])).then_some(path)
    })
}

pub(super) fn waves<'a>(lines: &'a Lines<'_>) -> Vec<Wave<'a>> {
    let count = lines.len();
    vec![
        Wave::new(10, 0..count),
        Wave::new(50, first_hits(lines, 1)),
        Wave::new(85, first_hits(lines, OF_EACH)),
        Wave::new(90, (0..count).rev()),
        Wave::new(100, 0..count),
    ]
}

/// The first `most` hits of each run of lines with one path.
fn first_hits<'a>(lines: &'a Lines<'_>, most: usize) -> impl Iterator<Item = usize> + 'a {
    let (mut file, mut seen) = (None, 0);
    (0..lines.len()).filter(move |at| {
        let Some(path) = path(lines.get(*at)) else {
            return false;
        };
        seen = if file == Some(path) { seen + 1 } else { 1 };
        file = Some(path);
        seen <= most
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_known_by_path_and_number() {
        assert_eq!(path("src/a.rs:12:let x = 1;"), Some("src/a.rs"));
        assert_eq!(path("my-dir/a.rs-13-}"), Some("my-dir/a.rs"));
        assert_eq!(path("2026-11-15 12:01:02 up"), None);
        assert_eq!(path("note: 12: x"), None);
    }
}
