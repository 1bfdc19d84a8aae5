//! Source files: how they begin and end, and what they define.
//!
//! Words that look like errors mean nothing here, so they count for nothing.

use super::lines::Lines;
use super::select::Wave;

/// Lines it takes to judge.
const FEWEST: usize = 5;

/// True if nearly every line starts with its number, as tools that read files print them.
pub(super) fn is_listing(head: &[&str]) -> bool {
    let lines: Vec<&str> = head
        .iter()
        .copied()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let numbered = lines
        .iter()
        .filter(|line| unnumbered(line).is_some())
        .count();
    lines.len() >= FEWEST && numbered * 10 >= lines.len() * 8
}

/// True if most lines end or start as lines of programs do.
pub(super) fn is_source(head: &[&str]) -> bool {
    let lines: Vec<&str> = head
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect();
    let telling = |line: &&&str| {
        let comment = ["//", "/*", "* ", "#"]
            .iter()
            .any(|start| line.starts_with(start));
        line.ends_with(['{', '}', ';', ',', '(']) || comment || defines(line)
    };
    lines.len() >= FEWEST && lines.iter().filter(telling).count() * 10 >= lines.len() * 7
}

/// A numbered line without its number.
fn unnumbered(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == inner.len() {
        return None;
    }
    ["→", "\t", ": ", "| ", "  "]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
}

const KEYWORDS: [&str; 24] = [
    "fn ",
    "pub ",
    "func ",
    "def ",
    "class ",
    "type ",
    "struct ",
    "enum ",
    "trait ",
    "impl ",
    "interface ",
    "export ",
    "function ",
    "async ",
    "module ",
    "mod ",
    "package ",
    "public ",
    "private ",
    "protected ",
    "static ",
    "import ",
    "from ",
    "use ",
];
/// Of those, what brings names in instead of defining them.
const IMPORTS: usize = 3;
/// Deeper indentation is inside a definition.
const DEEPEST: usize = 4;

fn defines(line: &str) -> bool {
    KEYWORDS.iter().any(|word| line.starts_with(word))
}

fn in_outline(line: &str) -> bool {
    let line = unnumbered(line).unwrap_or(line);
    let inner = line.trim_start();
    let shallow = line.len() - inner.len() <= DEEPEST;
    let words = KEYWORDS.iter().take(KEYWORDS.len() - IMPORTS);
    shallow && words.into_iter().any(|word| inner.starts_with(word))
}

pub(super) fn waves<'a>(lines: &'a Lines<'_>) -> Vec<Wave<'a>> {
    let count = lines.len();
    let outline = move || (0..count).filter(|at| in_outline(lines.get(*at)));
    vec![
        Wave::new(50, outline()),
        Wave::new(65, 0..count),
        Wave::new(75, (0..count).rev()),
        Wave::new(95, outline()),
        Wave::new(100, 0..count),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_and_bare_source_are_code() {
        let listing = [
            "     1→package a",
            "     2→",
            "     3→import (",
            "     4→\t\"fmt\"",
            "     5→)",
            "     6→x",
        ];
        assert!(is_listing(&listing));
        let source = [
            "import a;",
            "class B {",
            "  int c;",
            "  // why",
            "}",
            "done",
        ];
        assert!(is_source(&source) && !is_listing(&source));
        let prose = [
            "It was late.",
            "Nobody came.",
            "The end",
            "was near",
            "again",
        ];
        assert!(!is_source(&prose) && !is_listing(&prose));
    }

    #[test]
    fn the_outline_is_what_is_defined_at_the_top() {
        assert!(in_outline("    12→func Run() error {") && in_outline("  pub fn run()"));
        assert!(!in_outline("            def inner():") && !in_outline("import os"));
    }
}
