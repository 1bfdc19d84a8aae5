//! The names in a text: paths, qualified names, ids, URLs.
//!
//! They are listed behind what is shown of an output, because later calls need them most.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// A name has at least so many bytes.
const LENGTH: usize = 6;
/// And at most so many: what is longer is data.
const LONGEST: usize = 120;

/// The runs of characters in `text` that may be names.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_inside(c))
        .filter(|run| (LENGTH..=LONGEST).contains(&run.len()))
}

fn is_inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | ':' | '-')
}

/// A number names something only if it has so many digits.
const DIGITS: usize = 4;

/// How useful a name is; none if the run is an ordinary word or a number. Paths are worth most,
/// then qualified names, joined ones and mixed ones. What is digits for the most part comes last: an
/// order, a booking, an account.
fn worth(run: &str) -> Option<u32> {
    let inner = run.get(1..run.len().max(2) - 1).unwrap_or_default();
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let by_kind = if letters < 3 {
        // Times, dates and amounts have joints.
        (digits >= DIGITS && letters + digits == run.len()).then_some(0)
    } else if inner.contains('/') {
        Some(40)
    } else if inner.contains('.') {
        Some(36)
    } else if inner.contains(['_', '-', ':']) {
        Some(22)
    } else {
        let upper = inner.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = run.bytes().any(|byte| byte.is_ascii_lowercase());
        ((upper && lower) || digits > 0).then_some(14)
    };
    let by_length = if (10..=60).contains(&run.len()) {
        10
    } else {
        0
    };
    by_kind.map(|by_kind| by_kind + by_length)
}

/// The names in `text`, in their order.
pub(crate) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    runs(text)
        .map(without_place)
        .filter(|run| worth(run).is_some())
}

/// A set of names.
#[derive(Default)]
pub(crate) struct Known(HashSet<String>);

impl Known {
    /// Adds the names of `text`.
    pub(crate) fn add(&mut self, text: &str) {
        for run in names_in(text) {
            if !self.0.contains(run) {
                self.0.insert(run.to_owned());
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The line before a list of names.
pub(crate) const NAMES: &str = "\nin it: ";

/// The first of these names within so many bytes, without those that are part of another.
pub(crate) fn listed<'t>(names: impl IntoIterator<Item = &'t str>, bytes: usize) -> String {
    let mut list = String::new();
    for name in names {
        if list.len() + name.len() + 1 > bytes || list.contains(name) {
            continue;
        }
        if !list.is_empty() {
            list.push(' ');
        }
        list.push_str(name);
    }
    list
}

/// The names of `text` that `known` does not have, most useful first.
pub(crate) fn ranked<'a>(text: &'a str, known: &Known) -> Vec<&'a str> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (at, run) in runs(text).map(without_place).enumerate() {
        seen.entry(run).or_insert(at);
    }
    let new = seen.into_iter();
    let new = new.filter(|(run, _)| run.len() >= LENGTH && !known.has(run));
    let mut found: Vec<(Reverse<u32>, usize, &str)> = new
        .filter_map(|(run, at)| Some((Reverse(worth(run)?), at, run)))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, run)| run).collect()
}

/// A name without the line and column behind it: `src/main.rs:17:5` is `src/main.rs`, and so is
/// `src/main.rs-17-`, which is how lines around a match are printed.
fn without_place(run: &str) -> &str {
    if run.contains("://") {
        return run;
    }
    let places = run.match_indices([':', '-']).filter(|(at, joint)| {
        let (before, behind) = (run.get(..*at), run.get(at + 1..));
        let line = behind.is_some_and(|behind| behind.starts_with(|c: char| c.is_ascii_digit()));
        line && (*joint == ":" || (before.is_some_and(ends_a_file) && behind.is_some_and(is_line)))
    });
    let cut = places.map(|(at, _)| at).next();
    cut.and_then(|at| run.get(..at)).unwrap_or(run)
}

/// True for a path up to the ending of a file.
fn ends_a_file(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let letters = ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.starts_with(|c: char| c.is_ascii_alphabetic());
    !folder.is_empty() && (1..=5).contains(&ending.len()) && letters
}

/// True if what is behind a joint is a line's number and the next joint.
fn is_line(behind: &str) -> bool {
    let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with('-') || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_behind_a_path_are_left_off() {
        for (run, name) in [
            ("src/main.rs:17:5", "src/main.rs"),
            ("src/main.rs-17-", "src/main.rs"),
            ("src/main.rs-17-fn", "src/main.rs"),
            ("app/frontend-7d4b-x2x8p", "app/frontend-7d4b-x2x8p"),
            ("docs/issue-950-composite", "docs/issue-950-composite"),
            ("lib/v1.2-3-beta", "lib/v1.2-3-beta"),
            ("https://a.b:8080/c", "https://a.b:8080/c"),
            ("fetch-depth:", "fetch-depth:"),
        ] {
            assert_eq!(without_place(run), name);
        }
    }

    #[test]
    fn numbers_come_last_and_times_do_not_come() {
        let text =
            "at 2024-05-15T15:00:01 order W2378156 for mia_li_3668, 0.12345678, item 1008292230";
        let found = ranked(text, &Known::default());
        assert_eq!(found, ["mia_li_3668", "1008292230", "W2378156"]);
    }
}
