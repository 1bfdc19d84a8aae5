//! The names in a text: paths, qualified names, ids, URLs.

use std::collections::{HashMap, HashSet};

/// A name has at least so many bytes.
const LENGTH: usize = 6;
/// And at most so many: what is longer is data.
const LONGEST: usize = 120;

/// The runs of characters in `text` that may be names.
pub(super) fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_inside(c))
        .filter(|run| (LENGTH..=LONGEST).contains(&run.len()))
}

fn is_inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | ':' | '-')
}

/// What kind of name a run is, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Path,
    Qualified,
    Joined,
    Mixed,
}

/// The kind of a run; none if it is an ordinary word or a number.
pub(super) fn kind(run: &str) -> Option<Kind> {
    let inner = run.get(1..run.len().max(2) - 1).unwrap_or_default();
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters < 3 {
        return None;
    }
    if inner.contains('/') {
        Some(Kind::Path)
    } else if inner.contains('.') {
        Some(Kind::Qualified)
    } else if inner.contains(['_', '-', ':']) {
        Some(Kind::Joined)
    } else {
        let upper = inner.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = run.bytes().any(|byte| byte.is_ascii_lowercase());
        let digit = run.bytes().any(|byte| byte.is_ascii_digit());
        ((upper && lower) || digit).then_some(Kind::Mixed)
    }
}

/// Names that the window shows anyway.
#[derive(Default)]
pub(super) struct Known(HashSet<String>);

impl Known {
    pub(super) fn add(&mut self, text: &str) {
        for run in runs(text)
            .map(without_place)
            .filter(|run| kind(run).is_some())
        {
            if !self.0.contains(run) {
                self.0.insert(run.to_owned());
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The names of `text` that `known` does not have, most useful first.
pub(super) fn ranked<'a>(text: &'a str, known: &Known) -> Vec<&'a str> {
    let mut seen: HashMap<&str, (u32, usize)> = HashMap::new();
    for (at, run) in runs(text).map(without_place).enumerate() {
        seen.entry(run).or_insert((0, at)).0 += 1;
    }
    let mut found: Vec<(i64, usize, &str)> = seen
        .into_iter()
        .filter(|(run, _)| run.len() >= LENGTH && !known.has(run))
        .filter_map(|(run, (_, at))| Some((score(run, kind(run)?), at, run)))
        .collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, _, run)| run).collect()
}

/// A name without the line and column behind it: `src/main.rs:17:5` is `src/main.rs`.
fn without_place(run: &str) -> &str {
    if run.contains("://") {
        return run;
    }
    let digit = |rest: &str| rest.bytes().next().is_none_or(|byte| byte.is_ascii_digit());
    let cut = run
        .match_indices(':')
        .find(|(at, _)| run.get(at + 1..).is_some_and(digit));
    cut.and_then(|(at, _)| run.get(..at)).unwrap_or(run)
}

fn score(run: &str, kind: Kind) -> i64 {
    let base = match kind {
        Kind::Path => 40,
        Kind::Qualified => 36,
        Kind::Joined => 22,
        Kind::Mixed => 14,
    };
    let length = match run.len() {
        10..=60 => 10,
        _ => 0,
    };
    base + length
}
