//! Finds lines that look like errors, and the lines that belong to them.

use super::lines::TextLines;
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

/// The lines that look like errors, in order.
pub(in crate::view) fn find_errors(lines: &TextLines<'_>) -> Vec<usize> {
    let text = lines.text();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(hit) = ERROR_WORD.find_at(text, from) {
        let line = lines.line_at_byte(hit.start());
        let start = lines.end(line) - lines.line_with_newline(line).len();
        // The next word of the same line may still count.
        if !is_error_word(lines.get(line), hit.start() - start, hit.end() - start) {
            from = hit.end();
            continue;
        }
        if !PASSED.is_match(lines.get(line)) {
            found.push(line);
        }
        // One word decides about its line, so continue with the next line.
        from = lines.end(line);
    }
    found
}

/// False if the word is part of a longer name or is negated, as in `0 errors`.
fn is_error_word(line: &str, from: usize, to: usize) -> bool {
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

/// The maximum number of lines that belong to one error.
const LONGEST_TRACE: usize = 60;

/// The number of lines after line `at` that belong to its error: stack frames, source excerpts.
pub(in crate::view) fn trace_length(lines: &TextLines<'_>, at: usize) -> usize {
    let mut belonging = 0;
    while belonging < LONGEST_TRACE {
        let next = at + belonging + 1;
        if next >= lines.len() || !belongs_to_error(lines, next) {
            break;
        }
        belonging += 1;
    }
    // A Python traceback ends with the exception itself.
    let ends = lines.get(at).starts_with("Traceback") && at + belonging + 1 < lines.len();
    belonging + usize::from(ends)
}

fn belongs_to_error(lines: &TextLines<'_>, at: usize) -> bool {
    let line = lines.get(at);
    let inner = line.trim_start();
    if inner.trim_end().is_empty() {
        return false;
    }
    let indented = inner.len() < line.len();
    let frame = FRAME.is_match(line);
    // Compilers print source excerpts as `12 | code`.
    let excerpt = line.as_bytes().windows(2).take(8).any(|two| two == b" |");
    // Go prints a function and, indented below it, its location.
    let named = lines.get(at + 1).starts_with('\t') && inner.ends_with(')');
    indented || frame || excerpt || named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        find_errors(&TextLines::new(text))
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
        assert_eq!(trace_length(&TextLines::new(python), 0), 3);
        let java = "Exception in thread\n\tat a.b(C.java:1)\n\tat d.e(F.java:2)\ndone";
        assert_eq!(trace_length(&TextLines::new(java), 0), 2);
        let rust = "error[E0308]: mismatched\n --> a.rs:1:2\n  |\n12 | let x\n  | ^^^\n\nwarning";
        assert_eq!(trace_length(&TextLines::new(rust), 0), 4);
    }
}
