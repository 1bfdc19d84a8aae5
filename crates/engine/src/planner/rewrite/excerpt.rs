//! Makes excerpts: the lines and names of an output that stay when it is no longer new.
//!
//! Lines are chosen by what later calls needed in recorded sessions: definitions, errors, the first
//! and the last lines, lines with names that the agent has used, and lines with names that occur
//! nowhere else in the window. Names without their line come last.

use std::collections::HashSet;

use trimtab_model::{Output, Ref};

use crate::budget::percent;
use crate::facts;
use crate::observation::shown_as;
use crate::view::figures::first_bytes;
use crate::view::names::{self, NameSet};
use crate::view::placeholder::read_call;

/// The beginning of an excerpt.
const HEAD: &str = "[trimtab: output shortened";
/// Marks missing lines.
const GAP: &str = "\u{2026}";
/// Longer lines are cut to this many bytes.
const LONGEST_LINE: usize = 400;
/// A line with fewer letters and digits carries no information.
const LEAST_LETTERS: usize = 4;
/// This many lines at the beginning and at the end of an output show what it is.
const FIRST_LINES: usize = 3;
const LAST_LINES: usize = 2;
/// The values of a line and of the names in it, in tenths of a new name.
const DEFINITION: u64 = 10;
const ERROR: u64 = 10;
const EDGE: u64 = 5;
const USED_NAME: u64 = 20;
const NEW_NAME: u64 = 10;
/// Further used or new names do not increase the value of a line.
const MOST_USED: usize = 2;
const MOST_NEW: usize = 3;

/// The first words of definitions, headings and diffs.
const DEFINITIONS: &str = "fn pub def class func function struct enum trait impl interface type \
    const let var module package import from use export async static private public protected \
    diff # ##";
/// The beginning of a hunk.
const HUNK: &str = "@@";

/// What the window shows and what the agent has used. The values of names depend on both.
pub(super) struct NameInterest {
    /// Names that the window shows anyway.
    pub(super) shown: NameSet,
    /// Names that the user or the model wrote.
    pub(super) used: NameSet,
}

/// The bytes of an output that are kept, and the percentage of them for names without their line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExcerptBudget {
    pub(super) bytes: usize,
    pub(super) names_percent: u64,
}

/// True for an output that is already an excerpt.
pub(super) fn is_excerpt(output: &Output) -> bool {
    output.trimmed && output.text().starts_with(HEAD)
}

/// The bytes of an excerpt besides the kept text.
pub(super) fn overhead_bytes(stored: &Ref) -> usize {
    HEAD.len() + read_call(stored, 0).len() + 40
}

/// Shows an output as an excerpt of `text`, its full text. The names that it shows count as known
/// afterwards.
pub(super) fn excerpt(
    output: &Output,
    text: &str,
    allowed: ExcerptBudget,
    interest: &mut NameInterest,
) -> Option<Output> {
    let stored = output.stored.as_ref()?;
    let kept = kept_text(text, allowed, interest);
    interest.shown.add(&kept);
    let lines = text.lines().count();
    let call = read_call(stored, 0);
    let head = format!("{HEAD} ({lines} lines); all of it: {call}]");
    let shown = if kept.is_empty() {
        head
    } else {
        format!("{head}\n{kept}")
    };
    shown_as(output, shown)
}

/// The lines and names of `text` to keep.
pub(super) fn kept_text(text: &str, allowed: ExcerptBudget, interest: &NameInterest) -> String {
    let for_names = percent(allowed.bytes as u64, allowed.names_percent.min(100));
    let for_names = usize::try_from(for_names).unwrap_or(allowed.bytes);
    let mut kept = best_lines(text, allowed.bytes - for_names, interest);
    let left = allowed
        .bytes
        .saturating_sub(kept.len() + names::NAMES.len());
    let mut known = NameSet::default();
    known.add(&kept);
    let found = names::ranked_names(text, &interest.shown);
    // Names in the kept lines need no second mention.
    let found = found.into_iter().filter(|name| !known.has(name));
    // Names that the agent has used come first.
    let (used, others): (Vec<&str>, Vec<&str>) = found.partition(|name| interest.used.has(name));
    let listed = names::list_names(used.into_iter().chain(others), left);
    if !listed.is_empty() {
        kept.push_str(names::NAMES);
        kept.push_str(&listed);
    }
    kept.trim_start_matches('\n').to_owned()
}

/// The lines with the highest values within `bytes`, in their original order.
fn best_lines(text: &str, bytes: usize, interest: &NameInterest) -> String {
    let all: Vec<&str> = text.lines().map(str::trim_end).collect();
    let errors = error_lines(text);
    let mut ranked: Vec<(f64, usize)> = Vec::new();
    for (at, line) in all.iter().enumerate() {
        let is_edge = at < FIRST_LINES || at + LAST_LINES >= all.len();
        let by_place = EDGE * u64::from(is_edge) + ERROR * u64::from(errors.contains(&at));
        let worth = line_value(line, by_place, interest);
        if worth > 0.0 {
            ranked.push((worth, at));
        }
    }
    // Equal values keep the order of the text, so that the result is deterministic.
    ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut left = bytes;
    let mut chosen: Vec<usize> = Vec::new();
    for (_, at) in ranked {
        let length = all.get(at).map_or(0, |line| line.len().min(LONGEST_LINE));
        // Most chosen lines have no chosen neighbour, so count a gap with each.
        // A shorter line of less value may still fit.
        let Some(rest) = left.checked_sub(length + GAP.len() + 2) else {
            continue;
        };
        left = rest;
        chosen.push(at);
    }
    chosen.sort_unstable();
    render_lines(&all, &chosen)
}

fn render_lines(all: &[&str], chosen: &[usize]) -> String {
    let mut text = String::new();
    let mut next = 0;
    for at in chosen {
        if *at > next {
            text.push_str(GAP);
            text.push('\n');
        }
        next = at + 1;
        let line = all.get(*at).copied().unwrap_or_default();
        text.push_str(first_bytes(line, LONGEST_LINE));
        text.push('\n');
    }
    if next < all.len() && !text.is_empty() {
        text.push_str(GAP);
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// The numbers of lines that look like errors, from 0.
fn error_lines(text: &str) -> HashSet<usize> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1))
        .collect();
    let mut lines = HashSet::new();
    facts::errors(text, &mut |fact| {
        // `starts` begins with 0, so at least one start is at or before the fact.
        lines.insert(starts.partition_point(|start| *start <= fact.at) - 1);
    });
    lines
}

/// The value of a line relative to its length. `by_place` is the value of its position.
fn line_value(line: &str, by_place: u64, interest: &NameInterest) -> f64 {
    let said = line.trim_start();
    let letters = said.bytes().filter(u8::is_ascii_alphanumeric);
    // Later calls never need a closing brace.
    if said.is_ascii() && letters.take(LEAST_LETTERS).count() < LEAST_LETTERS {
        return 0.0;
    }
    let (mut used, mut new) = (0, 0);
    // Very long lines are data. Their first names are enough to judge them.
    for name in names::names_in(first_bytes(said, LONGEST_LINE * 5)) {
        used += usize::from(interest.used.has(name));
        new += usize::from(!interest.shown.has(name));
    }
    let first = said.split_once(' ').map_or("", |(first, _)| first);
    let is_definition =
        said.starts_with(HUNK) || DEFINITIONS.split_whitespace().any(|word| word == first);
    let worth = by_place
        + DEFINITION * u64::from(is_definition)
        + USED_NAME * used.min(MOST_USED) as u64
        + NEW_NAME * new.min(MOST_NEW) as u64;
    // Per byte, long lines are worth less. An exponent below 1 keeps short lines from always
    // winning.
    let length = (said.len().min(LONGEST_LINE) + 20) as f64;
    worth as f64 / length.powf(0.7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interest(known: &str, used: &str) -> NameInterest {
        let mut interest = NameInterest {
            shown: NameSet::default(),
            used: NameSet::default(),
        };
        interest.shown.add(known);
        interest.used.add(used);
        interest
    }

    fn source() -> String {
        let mut text = String::from("use std::fs;\n");
        for at in 0..200 {
            text += "    plain words of line ";
            text += &at.to_string();
            text += " and nothing more\n";
        }
        text.push_str("fn read_settings(path: &Path) -> Settings {\n");
        text.push_str("error: cannot open settings.toml\n}\n");
        text
    }

    #[test]
    fn definitions_and_errors_stay_in_their_order_and_braces_go() {
        let allowed = ExcerptBudget {
            bytes: 300,
            names_percent: 0,
        };
        let kept = kept_text(&source(), allowed, &interest("", ""));
        let lines: Vec<&str> = kept.lines().filter(|line| *line != GAP).collect();
        assert_eq!(lines.first(), Some(&"use std::fs;"));
        assert!(
            lines.contains(&"fn read_settings(path: &Path) -> Settings {"),
            "{kept}"
        );
        assert_eq!(lines.last(), Some(&"error: cannot open settings.toml"));
        assert!(kept.len() <= 300, "{}", kept.len());
    }

    #[test]
    fn lines_with_names_that_the_agent_used_come_first() {
        let line = |at: usize| format!("let value_{at} = table.column_{at};\n");
        let text: String = (0..100).map(line).collect();
        let allowed = ExcerptBudget {
            bytes: 120,
            names_percent: 0,
        };
        let used = kept_text(&text, allowed, &interest("", "table.column_57"));
        assert!(used.contains("let value_57 = table.column_57;"), "{used}");
    }

    #[test]
    fn names_that_the_window_shows_are_not_listed_again() {
        let allowed = ExcerptBudget {
            bytes: 200,
            names_percent: 100,
        };
        let text = "src/first_file.rs src/second_file.rs";
        let kept = kept_text(text, allowed, &interest("src/first_file.rs", ""));
        assert!(kept.contains("src/second_file.rs"), "{kept}");
        assert!(!kept.contains("src/first_file.rs"), "{kept}");
    }
}
