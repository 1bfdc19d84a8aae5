//! Finds errors in a text: the lines that name them, with the lines of their traces.

use std::ops::Range;

use memchr::{memchr, memrchr};
use trimtab_model::work;

use crate::pattern::LazyRegex;

/// The words of error lines: in lower case, capitalised, or in capitals.
static ERROR_WORD: LazyRegex = LazyRegex::new(
    "error|fail|fatal|panic|exception|traceback|denied|refused|abort|segmentation fault|segfault\
     |assert|timed out|not found|no such file|cannot |unable to|undefined|caused by|killed\
     |Error|Fail|Fatal|Panic|Exception|Traceback|Denied|Refused|Abort|Segmentation fault|Segfault\
     |Assert|Timed out|Not found|No such file|Cannot |Unable to|Undefined|Caused by|Killed\
     |ERROR|FAIL|FATAL|PANIC|EXCEPTION|TRACEBACK|DENIED|REFUSED|ABORT|SEGMENTATION FAULT|SEGFAULT\
     |ASSERT|TIMED OUT|NOT FOUND|NO SUCH FILE|CANNOT |UNABLE TO|UNDEFINED|CAUSED BY|KILLED",
);
/// The marks of a check that passed, whatever its name says.
static PASSED: LazyRegex = LazyRegex::new(r"(?: ok|PASSED|: 0)\s*$|\(pass\)|✓|✔|--- PASS|PASS ");
/// Beginnings of lines of a stack trace.
static FRAME: LazyRegex =
    LazyRegex::new(r#"^\s*(?:at |File "|#|stack backtrace:|Caused by|goroutine |\.\.\. )"#);
/// The maximum number of lines that belong to one error.
const LONGEST_TRACE: usize = 60;

/// The errors of `text`, in order: byte ranges of whole lines, each a line that names an error with
/// the lines of its trace. Errors that touch are one range.
pub(crate) fn error_lines(text: &str) -> Vec<Range<usize>> {
    let named = naming_lines(text);
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, line) in named.iter().enumerate() {
        let next = named.get(at + 1).map_or(text.len(), |next| next.start);
        let end = trace_end(text, line, next);
        match found.last_mut().filter(|last| last.end == line.start) {
            Some(last) => last.end = end,
            None => found.push(line.start..end),
        }
    }
    found
}

/// The lines that name an error.
fn naming_lines(text: &str) -> Vec<Range<usize>> {
    work::step_text(text);
    let mut named = Vec::new();
    let (mut from, mut line) = (0, 0..0);
    while let Some(hit) = ERROR_WORD.find_at(text, from) {
        if hit.start() >= line.end {
            line = line_at(text, hit.start());
        }
        if !is_error_word(text, &line, &hit.range()) {
            // The next word of the same line may still count.
            from = hit.end();
            continue;
        }
        // One word decides about its line, so continue with the next line.
        from = line.end;
        if !PASSED.is_match(without_newline(text, &line)) {
            named.push(line.clone());
        }
    }
    named
}

/// The line that contains byte `at`, with its newline.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let (before, after) = text.as_bytes().split_at_checked(at).unwrap_or_default();
    let start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    start..memchr(b'\n', after).map_or(text.len(), |newline| at + newline + 1)
}

fn without_newline<'a>(text: &'a str, line: &Range<usize>) -> &'a str {
    let line = text.get(line.clone()).unwrap_or_default();
    line.strip_suffix('\n').unwrap_or(line)
}

/// False if the word is part of a longer name or is negated, as in `0 errors`.
fn is_error_word(text: &str, line: &Range<usize>, word: &Range<usize>) -> bool {
    let before = text.get(line.start..word.start).unwrap_or_default();
    let after = text.get(word.end..line.end).unwrap_or_default();
    let word = text.get(word.clone()).unwrap_or_default();
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

/// The end of the lines that belong to the error in `line`: stack frames, source excerpts.
///
/// The next error, at byte `next`, ends them: its own lines follow. So no line is examined twice.
fn trace_end(text: &str, line: &Range<usize>, next: usize) -> usize {
    let mut end = line.end;
    for _ in 0..LONGEST_TRACE {
        let following = line_at(text, end);
        if end >= next || !belongs_to_error(text, &following) {
            break;
        }
        end = following.end;
    }
    // A Python traceback ends with the exception itself.
    let is_traceback = without_newline(text, line).starts_with("Traceback");
    if is_traceback && end < next {
        end = line_at(text, end).end;
    }
    end
}

fn belongs_to_error(text: &str, at: &Range<usize>) -> bool {
    let line = without_newline(text, at);
    let inner = line.trim_start();
    if inner.is_empty() {
        return false;
    }
    let indented = inner.len() < line.len();
    let frame = FRAME.is_match(line);
    // Compilers print source excerpts as `12 | code`.
    let excerpt = line.as_bytes().windows(2).take(8).any(|two| two == b" |");
    // Go prints a function and, indented below it, its location.
    let next_is_indented = text.as_bytes().get(at.end) == Some(&b'\t');
    indented || frame || excerpt || (next_is_indented && inner.ends_with(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let found = error_lines(text).into_iter();
        found.map(|lines| text.get(lines).unwrap()).collect()
    }

    #[test]
    fn errors_are_told_from_names_and_from_their_absence() {
        assert_eq!(
            found("ok\nERROR: disk\nfine\nValueError: x"),
            ["ERROR: disk\n", "ValueError: x"]
        );
        assert_eq!(
            found("make: *** failed\nconnection refused\nend\n"),
            ["make: *** failed\nconnection refused\n"]
        );
        let fine = "0 errors\nno failures\ntest error_handling ... ok\nsrc/errors.rs\nfailed: 0\n(pass) throws an error\n";
        assert_eq!(found(fine), [] as [&str; 0]);
    }

    #[test]
    fn stack_frames_belong_to_their_error() {
        let python =
            "Traceback (most recent call last):\n  File \"a.py\", line 1\n    f()\nKeyError: 'x'\n";
        assert_eq!(found(&format!("{python}next")), [python]);
        let java = "Exception in thread\n\tat a.b(C.java:1)\n\tat d.e(F.java:2)\n";
        assert_eq!(found(&format!("start\n{java}done")), [java]);
        let rust = "error[E0308]: mismatched\n --> a.rs:1:2\n  |\n12 | let x\n  | ^^^\n";
        assert_eq!(found(&format!("{rust}\nwarning")), [rust]);
        let go = "panic: x\nmain.f(0x1)\n\t/a.go:7\n";
        assert_eq!(found(&format!("{go}exit")), [go]);
    }

    #[test]
    fn a_trace_has_at_most_sixty_lines() {
        let text = format!("Error: x\n{}", "  at y\n".repeat(100));
        assert_eq!(
            found(&text),
            [format!("Error: x\n{}", "  at y\n".repeat(LONGEST_TRACE))]
        );
    }
}
