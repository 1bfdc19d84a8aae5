//! Lines that look like errors, and the lines that belong to them.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};

use super::lines::Lines;

/// What an error line has in it, in any case.
const WORDS: [&str; 22] = [
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
    "unresolved",
    "caused by",
    "killed",
    "out of memory",
];

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(WORDS)
        .ok()
});

/// The lines that look like errors, in order.
pub(super) fn find(lines: &Lines<'_>) -> Vec<usize> {
    let Some(finder) = FINDER.as_ref() else {
        return Vec::new();
    };
    let text = lines.text();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(hit) = finder.find(Input::new(text).range(from..)) {
        let line = lines.holding(hit.start());
        let start = lines.end(line) - lines.whole(line).len();
        if is_error(lines.get(line), hit.start() - start, hit.end() - start) {
            found.push(line);
            from = lines.end(line);
        } else {
            from = hit.end();
        }
    }
    found
}

/// True unless the word is part of a longer name, is denied, or stands in a line that passed.
fn is_error(line: &str, from: usize, to: usize) -> bool {
    let before = line.get(..from).unwrap_or_default();
    let word = line.get(from..to).unwrap_or_default();
    let after = line.get(to..).unwrap_or_default();
    let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
    let inside = before
        .chars()
        .next_back()
        .is_some_and(|c| matches!(c, '_' | '-' | '/' | '.') || (c.is_alphanumeric() && !capital));
    let goes_on = after.starts_with(['_', '/', '.', '-']);
    let denied = ["0", "no", "without", "zero"]
        .iter()
        .any(|none| before.split_whitespace().next_back() == Some(none));
    let end = line.trim_end();
    let passed = end.ends_with(" ok") || end.ends_with("PASSED") || end.ends_with(": 0");
    !(inside || goes_on || denied || passed)
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
    let excerpt = line.find(" |").is_some_and(|bar| bar < 8);
    // Go writes a function and, indented below it, its place.
    let named = lines.get(at + 1).starts_with('\t') && inner.ends_with(')');
    indented || frame || excerpt || named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        find(&Lines::new(text))
    }

    #[test]
    fn errors_are_told_from_names_and_from_their_absence() {
        assert_eq!(
            found("ok\nERROR: disk\nValueError: x\nmake: *** failed\n"),
            [1, 2, 3]
        );
        let fine = "0 errors\nno failures\ntest error_handling ... ok\nsrc/errors.rs\nfailed: 0\n";
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
