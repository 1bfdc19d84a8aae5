//! Detects the format of a text by its first and last lines.

use super::{json, table};
use crate::pattern::LazyRegex;
use crate::view::figures::first_bytes;

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFormat {
    /// One JSON object or array.
    Json,
    /// Rows under a header.
    Table {
        /// The number of lines of the header.
        header: usize,
    },
    /// A unified diff.
    Diff,
    /// The output of a test run or a build.
    Log,
    /// A source file, with or without line numbers.
    Code,
    /// Search results, each with its path and line number.
    Hits,
    /// Anything else that has lines.
    Plain,
}

/// The number of lines at the start and at the end that are examined.
const SAMPLE: usize = 80;
/// This many lines of test runs and builds make a log.
const LOG_LINES: usize = 2;
/// Only this many bytes of a line are searched for a path.
const LONGEST_HIT: usize = 400;

/// A search result: `src/main.rs:12:`, and lines around it: `src/main.rs-13-`.
static HIT: LazyRegex = LazyRegex::new(r"^\S*?[./]\S*?(?::[0-9]+:|-[0-9]+-)");
/// A line with its number, as tools that read files print them.
static NUMBERED: LazyRegex = LazyRegex::new(r"^\s*[0-9]+(?:→|\t|: |\| |  )");
/// Ends and beginnings of source lines, except for definitions.
static SOURCE: LazyRegex = LazyRegex::new(r"[{};,(]$|^(?://|/\*|\* |#|(?:import|from|use) )");
/// A definition. Deeper indentation is inside a definition.
static DEFINITION: LazyRegex = LazyRegex::new(
    r"(?x) ^\s{0,4}(?: fn|pub|func|def|class|type|struct|enum|trait|impl|interface|export
    |function|async|module|mod|package|public|private|protected|static)\ ",
);
/// Beginnings of lines of test runs and builds.
static LOG_LINE: LazyRegex = LazyRegex::new(
    r"(?x) ^(?: running\ | test\ result: | ===\ RUN | ---\ FAIL | ---\ PASS | FAIL | PASS
    | ok\ \ \t | collected\ | Tests: | Test\ Suites: | BUILD\ | \[INFO\]\ | \[ERROR\]\ | make(?::\ |\[)
    | npm\ ERR! | error\[E | \ {3}Compiling\ | \ {4}Finished\ | >\ Task\ : | \#\#\[
    | ={4}(?:.*={4}|=*)\s*$ | test(?:\ .*)?\ \.\.\.\ )",
);

/// The format of `text`, judged by its first and last lines; JSON is parsed completely.
///
/// ```
/// use trimtab_engine::view::structure::{OutputFormat, detect};
///
/// assert_eq!(detect(r#"{"a": [1, 2]}"#), OutputFormat::Json);
/// assert_eq!(detect("id,name\n1,a\n2,b\n"), OutputFormat::Table { header: 1 });
/// assert_eq!(detect("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), OutputFormat::Diff);
/// assert_eq!(detect("running 2 tests\ntest a ... ok\ntest b ... FAILED\n"), OutputFormat::Log);
/// assert_eq!(detect("a.rs:1:x\na.rs:7:x\nb.rs:2:x\nb.rs:3:x\n"), OutputFormat::Hits);
/// assert_eq!(detect("hello"), OutputFormat::Plain);
/// ```
pub fn detect(text: &str) -> OutputFormat {
    if json::parse(text).is_some() {
        return OutputFormat::Json;
    }
    detect_lines(text)
}

/// The format of a text that is not JSON.
pub(super) fn detect_lines(text: &str) -> OutputFormat {
    let head: Vec<&str> = text.split('\n').take(SAMPLE).collect();
    let tail = text.rsplit('\n').take(SAMPLE);
    let logged = head.iter().copied().chain(tail);
    let logged = logged.filter(|line| LOG_LINE.is_match(line));
    // From the most specific format to the least: a diff contains source lines, and hits of a
    // search can look like table rows.
    if is_diff(&head) {
        OutputFormat::Diff
    } else if most_lines_are(&head, 4, 8, |line| hit_path(line).is_some()) {
        OutputFormat::Hits
    } else if most_lines_are(&head, 5, 8, |line| NUMBERED.is_match(line)) {
        OutputFormat::Code
    } else if let Some(header) = table::header_lines(&head) {
        OutputFormat::Table { header }
    } else if logged.take(LOG_LINES).count() == LOG_LINES {
        OutputFormat::Log
    } else if most_lines_are(&head, 5, 7, |line| is_source(line.trim())) {
        OutputFormat::Code
    } else {
        OutputFormat::Plain
    }
}

fn is_diff(head: &[&str]) -> bool {
    let unified = head.windows(3).any(|three| match three {
        [old, new, hunk] => {
            old.starts_with("--- ") && new.starts_with("+++ ") && hunk.starts_with("@@")
        }
        _ => false,
    });
    unified || head.iter().any(|line| line.starts_with("diff --git "))
}

/// True if there are at least `enough` lines that are not blank, and this many tenths of them
/// match.
fn most_lines_are(
    lines: &[&str],
    enough: usize,
    tenths: usize,
    is_one: impl Fn(&str) -> bool,
) -> bool {
    let lines = lines.iter().filter(|line| !line.trim().is_empty());
    let count = lines.clone().count();
    count >= enough && lines.filter(|line| is_one(line)).count() * 10 >= count * tenths
}

fn is_source(line: &str) -> bool {
    SOURCE.is_match(line) || DEFINITION.is_match(line)
}

/// The path of a search result.
pub(super) fn hit_path(line: &str) -> Option<&str> {
    let found = HIT.find_at(first_bytes(line, LONGEST_HIT), 0)?;
    let found = found.as_str().strip_suffix([':', '-'])?;
    let found = found.trim_end_matches(|c: char| c.is_ascii_digit());
    found.strip_suffix([':', '-'])
}

/// True for a definition at or near the top level of a source file.
pub(super) fn is_definition(line: &str) -> bool {
    let number = NUMBERED.find_at(line, 0).map_or(0, |number| number.end());
    line.get(number..)
        .is_some_and(|line| DEFINITION.is_match(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_and_bare_source_are_code() {
        let listing =
            "     1→package a\n     2→\n     3→import (\n     4→\t\"fmt\"\n     5→)\n     6→x";
        assert_eq!(detect(listing), OutputFormat::Code);
        let source = "import a;\nclass B {\n  int c;\n  // why\n}\ndone";
        assert_eq!(detect(source), OutputFormat::Code);
        let prose = "It was late.\nNobody came.\nThe end\nwas near\nagain";
        assert_eq!(detect(prose), OutputFormat::Plain);
    }

    #[test]
    fn definitions_are_found_at_the_top_only() {
        assert!(is_definition("    12→func Run() error {") && is_definition("  pub fn run()"));
        assert!(!is_definition("            def inner():") && !is_definition("import os"));
    }

    #[test]
    fn lines_of_test_runs_and_builds_are_known() {
        for line in [
            "running 2 tests",
            "ok  \tpkg\t0.1s",
            "make: *** [all]",
            "   Compiling a v1",
            "##[group]",
            "==== failures ====",
            "=====",
            "test a ... ok",
        ] {
            assert!(LOG_LINE.is_match(line), "{line}");
        }
        for line in ["a running test", "test it", "== x ==", "# heading"] {
            assert!(!LOG_LINE.is_match(line), "{line}");
        }
    }
}
