//! Finds the names in a text: paths, qualified names, ids, URLs.
//!
//! They are listed after what is shown of an output, because later calls need them most.

use std::collections::{HashMap, HashSet};

/// The minimum length of a name in bytes.
const LENGTH: usize = 6;
/// The maximum length. Longer runs are data.
const LONGEST: usize = 120;

/// The runs of characters in `text` that may be names.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_inside(c))
        .filter(|run| (LENGTH..=LONGEST).contains(&run.len()))
}

fn is_inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | ':' | '-')
}

/// Kinds of names, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    Path,
    Qualified,
    Joined,
    Mixed,
    /// Mostly digits: the number of an order, a booking, an account.
    Number,
}

/// Each occurrence of a name adds to its score, up to a number of occurrences.
const TIMES_SCORE: i64 = 5;
const MOST_TIMES: i64 = 6;
/// A number with fewer digits does not identify anything.
const DIGITS: usize = 4;

/// The kind of a run; none if it is an ordinary word or a number.
fn kind(run: &str) -> Option<NameKind> {
    // A sign at the start or the end, as in `.name` or `end.`, joins nothing.
    let inner = run.get(1..run.len().max(2) - 1).unwrap_or_default();
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters < 3 {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        // Times, dates and amounts contain signs.
        let is_number = digits >= DIGITS && letters + digits == run.len();
        return is_number.then_some(NameKind::Number);
    }
    if inner.contains('/') {
        Some(NameKind::Path)
    } else if inner.contains('.') {
        Some(NameKind::Qualified)
    } else if inner.contains(['_', '-', ':']) {
        Some(NameKind::Joined)
    } else {
        let upper = inner.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = run.bytes().any(|byte| byte.is_ascii_lowercase());
        let digit = run.bytes().any(|byte| byte.is_ascii_digit());
        ((upper && lower) || digit).then_some(NameKind::Mixed)
    }
}

/// The names in `text`, in order.
pub(crate) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    runs(text)
        // Without its line number, a path is the same name wherever it is mentioned.
        .map(without_place)
        .filter(|run| kind(run).is_some())
}

/// True for a name that is useful without its line: a path, a qualified name, an id.
pub(crate) fn stands_alone(name: &str) -> bool {
    kind(name).is_some_and(|kind| kind != NameKind::Mixed)
}

/// A set of names.
#[derive(Default)]
pub(crate) struct NameSet(HashSet<String>);

impl NameSet {
    /// Adds the names of `text`.
    pub(crate) fn add(&mut self, text: &str) {
        for run in names_in(text) {
            // Look up first: a known name needs no copy.
            if !self.0.contains(run) {
                self.0.insert(run.to_owned());
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The beginning of a list of names.
pub(crate) const NAMES: &str = "\nin it: ";

/// The first of these names that fit `bytes`, without those that are part of another.
pub(crate) fn list_names<'t>(names: impl IntoIterator<Item = &'t str>, bytes: usize) -> String {
    let mut list = String::new();
    for name in names {
        // A shorter name may still fit, so the search goes on.
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

/// The names of `text` that are not in `known`, most useful first.
pub(crate) fn ranked_names<'a>(text: &'a str, known: &NameSet) -> Vec<&'a str> {
    // The first position and the number of occurrences of each name.
    let mut seen: HashMap<&str, (usize, i64)> = HashMap::new();
    for (at, run) in runs(text).map(without_place).enumerate() {
        seen.entry(run).or_insert((at, 0)).1 += 1;
    }
    let mut found: Vec<(i64, usize, &str)> = seen
        .into_iter()
        .filter(|(run, _)| run.len() >= LENGTH && !known.has(run))
        .filter_map(|(run, (at, times))| {
            let often = TIMES_SCORE * times.min(MOST_TIMES);
            Some((score(run, kind(run)?) + often, at, run))
        })
        .collect();
    // Equal scores keep the order of the text, so that the result does not depend on the hash map.
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, _, run)| run).collect()
}

/// Removes a line and column from a name: `src/main.rs:17:5` becomes `src/main.rs`, and so does
/// `src/main.rs-17-`, the form in which search tools print lines around a match.
fn without_place(run: &str) -> &str {
    // In a URL, a colon and digits are a port.
    if run.contains("://") {
        return run;
    }
    let digit = |rest: &str| {
        rest.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit())
    };
    let places = run.match_indices([':', '-']).filter(|(at, joint)| {
        let (before, behind) = (run.get(..*at), run.get(at + 1..));
        let line = behind.is_some_and(digit);
        // A dash is ambiguous, so it needs a file extension before it: `utf-8` is no line 8.
        line && (*joint == ":" || (before.is_some_and(ends_a_file) && behind.is_some_and(is_line)))
    });
    let cut = places.map(|(at, _)| at).next();
    cut.and_then(|at| run.get(..at)).unwrap_or(run)
}

/// True for a path that ends with a file extension.
fn ends_a_file(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let letters = ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic());
    !folder.is_empty() && (1..=5).contains(&ending.len()) && letters
}

/// True if a line number and the next sign follow.
fn is_line(behind: &str) -> bool {
    let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with('-') || rest.is_empty()
}

fn score(run: &str, kind: NameKind) -> i64 {
    let base = match kind {
        NameKind::Path => 40,
        NameKind::Qualified => 36,
        NameKind::Joined => 22,
        NameKind::Mixed => 14,
        NameKind::Number => 0,
    };
    let length = match run.len() {
        10..=60 => 10,
        61.. if kind == NameKind::Path => 10,
        _ => 0,
    };
    base + length
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
        let found = ranked_names(text, &NameSet::default());
        assert_eq!(found, ["mia_li_3668", "1008292230", "W2378156"]);
    }
}
