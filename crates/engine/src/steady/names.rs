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
    let inner = run.get(1..run.len().saturating_sub(1)).unwrap_or_default();
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
        for run in runs(text).filter(|run| kind(run).is_some()) {
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
    for (at, run) in runs(text).enumerate() {
        seen.entry(run).or_insert((0, at)).0 += 1;
    }
    let mut found: Vec<(i64, usize, &str)> = seen
        .into_iter()
        .filter(|(run, _)| !known.has(run))
        .filter_map(|(run, (count, at))| Some((score(run, kind(run)?, count), at, run)))
        .collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, _, run)| run).collect()
}

fn score(run: &str, kind: Kind, count: u32) -> i64 {
    let base = match kind {
        Kind::Path => 40,
        Kind::Qualified => 30,
        Kind::Joined => 20,
        Kind::Mixed => 5,
    };
    let length = match run.len() {
        0..=9 => 0,
        10..=40 => 10,
        _ => 0,
    };
    base + length + i64::from(count.min(4))
}
