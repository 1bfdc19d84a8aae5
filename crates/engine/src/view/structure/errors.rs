//! Lines that look like errors, and the lines that belong to them.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, Span, packed};

use super::lines::Lines;

/// What an error line has in it: as it stands here, with a capital, or all in capitals.
const WORDS: [&str; 20] = [
    "error",
    "fail",
    "fatal",
    "panic",
    "exception",
    "traceback",
    "denied",
    "refused",
    "abort",
    "segmentation fault",
    "segfault",
    "assert",
    "timed out",
    "not found",
    "no such file",
    "cannot ",
    "unable to",
    "undefined",
    "caused by",
    "killed",
];

/// Looks for all words at once, many bytes at a time where the machine can.
static FINDER: LazyLock<Option<Finder>> = LazyLock::new(Finder::new);

enum Finder {
    Wide(packed::Searcher),
    Plain(AhoCorasick),
}

impl Finder {
    fn new() -> Option<Self> {
        let spelled = || WORDS.iter().flat_map(|word| spellings(word));
        let wide = packed::Config::new().builder().extend(spelled()).build();
        wide.map(Self::Wide)
            .or_else(|| AhoCorasick::new(spelled()).ok().map(Self::Plain))
    }

    /// Where the next word at or behind byte `from` is.
    fn next(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match self {
            Self::Wide(finder) => finder
                .find_in(text.as_bytes(), Span::from(from..text.len()))
                .map(|hit| hit.range()),
            Self::Plain(finder) => finder
                .find(Input::new(text).range(from..))
                .map(|hit| hit.range()),
        }
    }
}

fn spellings(word: &str) -> [String; 3] {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let capital = first.into_iter().chain(letters).collect();
    [word.to_owned(), capital, word.to_uppercase()]
}

/// The lines that look like errors, in order.
pub(super) fn find(lines: &Lines<'_>) -> Vec<usize> {
    let Some(finder) = FINDER.as_ref() else {
        return Vec::new();
    };
    let text = lines.text();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(hit) = finder.next(text, from) {
        let line = lines.holding(hit.start);
        let start = lines.end(line) - lines.whole(line).len();
        if !counts(lines.get(line), hit.start - start, hit.end - start) {
            from = hit.end;
            continue;
        }
        if !passed(lines.get(line)) {
            found.push(line);
        }
        from = lines.end(line);
    }
    found
}

/// True unless the word is part of a longer name or is denied.
fn counts(line: &str, from: usize, to: usize) -> bool {
    let before = line.get(..from).unwrap_or_default();
    let word = line.get(from..to).unwrap_or_default();
    let after = line.get(to..).unwrap_or_default();
    let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
    let inside = before
        .chars()
        .next_back()
        .is_some_and(|c| matches!(c, '_' | '-' | '/' | '.') || (c.is_alphanumeric() && !capital));
    if inside || after.starts_with(['_', '/', '.', '-']) {
        return false;
    }
    let last = before.split_whitespace().next_back();
    !last.is_some_and(|last| ["0", "no", "without", "zero"].contains(&last))
}

/// True for the line of a check that went well, whatever its name says.
fn passed(line: &str) -> bool {
    let end = line.trim_end();
    let ends = [" ok", "PASSED", ": 0"]
        .iter()
        .any(|word| end.ends_with(word));
    ends || ["(pass)", "✓", "✔", "--- PASS", "PASS "]
        .iter()
        .any(|word| line.contains(word))
}

/// The most lines that are taken to belong to one error.
const LONGEST_TRACE: usize = 60;

/// How many lines behind line `at` belong to the error in it: stack frames, source excerpts.
pub(super) fn trace(lines: &Lines<'_>, at: usize) -> usize {
    let mut belonging = 0;
    while belonging < LONGEST_TRACE {
        let next = at + belonging + 1;
        if next >= lines.len() || !belongs(lines, next) {
            break;
        }
        belonging += 1;
    }
    // What ends a Python traceback is the exception itself.
    let ends = lines.get(at).starts_with("Traceback") && at + belonging + 1 < lines.len();
    belonging + usize::from(ends)
}

fn belongs(lines: &Lines<'_>, at: usize) -> bool {
    let line = lines.get(at);
    let inner = line.trim_start();
    if inner.trim_end().is_empty() {
        return false;
    }
    let indented = inner.len() < line.len();
    let frame = [
        "at ",
        "File \"",
        "#",
        "stack backtrace:",
        "Caused by",
        "goroutine ",
        "... ",
    ]
    .iter()
    .any(|start| inner.starts_with(start));
    let excerpt = line.as_bytes().windows(2).take(8).any(|two| two == b" |");
    // Go writes a function and, indented below it, its place.
    let named = lines.get(at + 1).starts_with('\t') && inner.ends_with(')');
    indented || frame || excerpt || named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_finders_find_the_same() {
        let spelled = || WORDS.iter().flat_map(|word| spellings(word));
        let plain = Finder::Plain(AhoCorasick::new(spelled()).unwrap());
        let text = "x".repeat(100) + "an ERROR, then Timed out and so on: killed";
        let (mut from, mut found) = (0, 0);
        while let Some(hit) = plain.next(&text, from) {
            assert_eq!(Finder::new().unwrap().next(&text, from), Some(hit.clone()));
            (from, found) = (hit.end, found + 1);
        }
        assert_eq!(found, 3);
    }

    fn found(text: &str) -> Vec<usize> {
        find(&Lines::new(text))
    }

    #[test]
    fn errors_are_told_from_names_and_from_their_absence() {
        assert_eq!(
            found("ok\nERROR: disk\nValueError: x\nmake: *** failed\n"),
            [1, 2, 3]
        );
        let fine = "0 errors\nno failures\ntest error_handling ... ok\nsrc/errors.rs\nfailed: 0\n(pass) throws an error\n";
        assert_eq!(found(fine), [] as [usize; 0]);
    }

    #[test]
    fn stack_frames_belong_to_their_error() {
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 1\n    f()\nKeyError: 'x'\nnext";
        assert_eq!(trace(&Lines::new(python), 0), 3);
        let java = "Exception in thread\n\tat a.b(C.java:1)\n\tat d.e(F.java:2)\ndone";
        assert_eq!(trace(&Lines::new(java), 0), 2);
        let rust = "error[E0308]: mismatched\n --> a.rs:1:2\n  |\n12 | let x\n  | ^^^\n\nwarning";
        assert_eq!(trace(&Lines::new(rust), 0), 4);
    }
}
