//! Test runs and builds: the outcome at the end, the failures, and how it began.

use super::lines::Lines;
use super::plain::{both_ends, details};
use super::select::Wave;

/// How lines of test runs and builds start.
const STARTS: [&str; 22] = [
    "running ",
    "test result:",
    "=== RUN",
    "--- FAIL",
    "--- PASS",
    "FAIL",
    "PASS",
    "ok  \t",
    "collected ",
    "Tests:",
    "Test Suites:",
    "BUILD ",
    "[INFO] ",
    "[ERROR] ",
    "make: ",
    "make[",
    "npm ERR!",
    "error[E",
    "   Compiling ",
    "    Finished ",
    "> Task :",
    "##[",
];

/// Lines it takes to be sure.
const ENOUGH: usize = 2;

pub(super) fn is_log<'a>(sample: impl Iterator<Item = &'a str>) -> bool {
    let telling = sample.filter(|line| {
        let framed = line.starts_with("====") && line.trim_end().ends_with("====");
        let test = line.starts_with("test ") && line.contains(" ... ");
        framed || test || STARTS.iter().any(|start| line.starts_with(start))
    });
    telling.take(ENOUGH).count() == ENOUGH
}

pub(super) fn waves<'a>(lines: &'a Lines<'_>, marks: &'a [usize]) -> Vec<Wave<'a>> {
    let count = lines.len();
    vec![
        Wave::new(5, 0..count),
        Wave::new(30, (0..count).rev()),
        Wave::new(60, both_ends(marks)),
        Wave::new(85, details(lines, marks)),
        Wave::new(90, 0..count),
        Wave::new(100, (0..count).rev()),
    ]
}
