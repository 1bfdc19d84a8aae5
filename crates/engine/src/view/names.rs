//! The names in a text: paths, qualified names, ids, URLs.
//!
//! They are listed behind what is shown of an output, because later calls need them most.

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

/// What kind of name a run is, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    Path,
    Qualified,
    Joined,
    Mixed,
    /// Digits for the most part: an order, a booking, an account.
    Number,
}

/// A name is worth so much more each time that it stands in a text, up to so many times.
const TIMES_SCORE: i64 = 5;
const MOST_TIMES: i64 = 6;
/// A number names something only if it has so many digits.
const DIGITS: usize = 4;

/// The kind of a run; none if it is an ordinary word or a number.
fn kind(run: &str) -> Option<NameKind> {
    let inner = run.get(1..run.len().max(2) - 1).unwrap_or_default();
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters < 3 {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        // Times, dates and amounts have joints.
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

/// The names in `text`, in their order.
pub(crate) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    runs(text)
        .map(without_place)
        .filter(|run| kind(run).is_some())
}

/// True for a name that says something without the line that it stood in: a path, a qualified
/// name, an id.
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
pub(crate) fn list_names<'t>(names: impl IntoIterator<Item = &'t str>, bytes: usize) -> String {
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
pub(crate) fn ranked_names<'a>(text: &'a str, known: &NameSet) -> Vec<&'a str> {
    // Where each name stands first, and how often.
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
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, _, run)| run).collect()
}

/// A name without the line and column behind it: `src/main.rs:17:5` is `src/main.rs`, and so is
/// `src/main.rs-17-`, which is how lines around a match are printed.
fn without_place(run: &str) -> &str {
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
        && ending
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic());
    !folder.is_empty() && (1..=5).contains(&ending.len()) && letters
}

/// True if what is behind a joint is a line's number and the next joint.
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
