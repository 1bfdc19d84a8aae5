//! Fits the items of a section into its room.

use std::collections::{BTreeMap, HashSet};

use crate::budget::cut_level;
use crate::view::figures::{first_bytes, last_bytes};

/// The prefixes of the first and the further lines of an item.
const FIRST: &str = "- ";
const FURTHER: &str = "  ";
/// Marks a cut inside a text.
const CUT: &str = " \u{2026} ";
/// A text is not cut to fewer bytes than this. Others are left out instead.
const LEAST: usize = 120;

/// What somebody said.
pub(super) struct Said {
    pub(super) text: String,
    /// True for an answer, which says what was found or decided.
    pub(super) is_answer: bool,
}

/// A line about something, perhaps with lines that belong to it.
pub(super) struct Item {
    pub(super) text: String,
    /// What it counts as if it is left out.
    pub(super) kind: String,
}

/// An item as it is written. Its further lines are indented, so that none looks like a title.
pub(super) fn item(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("{FIRST}{}", lines.join(&format!("\n{FURTHER}")))
}

/// What was said, within `bytes`, with long texts cut to one length. If even that is too much,
/// texts are left out: those that a newer one repeats except for numbers, as in "step 4 is done",
/// then the oldest ones that are no answers, then the oldest answers.
pub(super) fn said_within(said: &[Said], bytes: usize) -> Vec<String> {
    let items = said.iter().enumerate().rev();
    let items = items.map(|(at, said)| (at, said.is_answer, item(&said.text)));
    let mut newest_first: Vec<(usize, bool, String)> = items.collect();
    let least = |item: &String| item.len().min(LEAST) + 1;
    let whole: usize = newest_first.iter().map(|(.., item)| least(item)).sum();
    let mut seen = HashSet::new();
    newest_first.retain(|(.., item)| whole <= bytes || seen.insert(without_digits(item)));
    // A stable sort: the answers first, each kind still newest first.
    newest_first.sort_by_key(|(_, is_answer, _)| !is_answer);
    let mut left = bytes;
    let fitting = newest_first.into_iter().take_while(|(.., item)| {
        let rest = left.checked_sub(least(item));
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let mut kept: Vec<(usize, bool, String)> = fitting.collect();
    kept.sort_unstable();
    let sizes = kept.iter().map(|(.., item)| item.len() + 1).collect();
    let level = cut_level(sizes, bytes).max(LEAST);
    kept.iter().map(|(.., item)| within(item, level)).collect()
}

/// Two texts that differ only in numbers are repetitions.
pub(super) fn without_digits(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// Keeps two thirds of `bytes` from the beginning and the rest from the end.
fn within(item: &str, bytes: usize) -> String {
    if item.len() < bytes {
        return item.to_owned();
    }
    let left = bytes.saturating_sub(CUT.len() + 1);
    let head = first_bytes(item, left * 2 / 3).trim_end();
    let tail = last_bytes(item, left - left * 2 / 3).trim_start();
    format!("{head}{CUT}{tail}")
}

/// The newest items within `bytes`, in their order. The older ones become one line.
pub(super) fn newest_that_fit(items: &[Item], bytes: usize) -> Vec<String> {
    let whole: usize = items.iter().map(|item| item.text.len() + 1).sum();
    let reserve = if whole <= bytes {
        0
    } else {
        older(items).len() + 1
    };
    let mut left = bytes.saturating_sub(reserve);
    let newest = items.iter().rev().take_while(|item| {
        let rest = left.checked_sub(item.text.len() + 1);
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let (omitted, kept) = items.split_at(items.len() - newest.count());
    if kept.is_empty() {
        return Vec::new();
    }
    let joined = (!omitted.is_empty()).then(|| older(omitted));
    let kept = kept.iter().map(|item| item.text.clone());
    joined.into_iter().chain(kept).collect()
}

/// A line that counts items by their kind.
fn older(items: &[Item]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(&item.kind).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts = counts.iter().take(MOST_KINDS);
    let counts: Vec<String> = counts
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!("{FIRST}older: {}", counts.join(", "))
}

/// The kinds that are counted in a line about older items.
const MOST_KINDS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Said {
        Said {
            text: text.to_owned(),
            is_answer: true,
        }
    }

    #[test]
    fn answer_outlives_newer_words_that_differ_by_numbers_only() {
        let decided = answer("I decided to keep the old parser, because of its messages.");
        let steps = (1..40).map(|step| answer(&format!("Step {step} is done, I go on.")));
        let all: Vec<Said> = std::iter::once(decided).chain(steps).collect();
        let some = said_within(&all, 400).join("\n");
        assert!(some.contains("keep the old parser") && some.contains("Step 39"));
        assert!(!some.contains("Step 12"), "{some}");
        let whole = said_within(&all, 4_000).join("\n");
        assert!(whole.contains("Step 12"), "{whole}");
    }

    #[test]
    fn answers_outlive_announcements() {
        let announced = |name: &str| Said {
            text: format!("Now I look at {name}, {}", "x".repeat(90)),
            is_answer: false,
        };
        let all = [
            answer("The bug is in the lexer."),
            announced("a"),
            announced("b"),
        ];
        let some = said_within(&all, 160).join("\n");
        assert!(
            some.contains("in the lexer") && some.contains("look at b"),
            "{some}"
        );
        assert!(!some.contains("look at a"), "{some}");
    }

    #[test]
    fn long_texts_are_cut_before_old_ones_go() {
        let long = format!("begin {} end", "x".repeat(5_000));
        let all = ["the decision", &long, "the newest"].map(answer);
        let some = said_within(&all, 400).join("\n");
        assert!(some.len() < 400, "{some}");
        for kept in ["- the decision", "- begin x", "x end", "- the newest"] {
            assert!(some.contains(kept), "{kept} in {some}");
        }
        assert_eq!(said_within(&all, 30), ["- the newest"]);
    }

    #[test]
    fn older_items_are_counted_by_kind() {
        let of = |at: usize| Item {
            text: format!("- item {at}"),
            kind: if at.is_multiple_of(3) { "read" } else { "bash" }.to_owned(),
        };
        let all: Vec<Item> = (0..9).map(of).collect();
        let some = newest_that_fit(&all, 45);
        assert_eq!(some, ["- older: 4 bash, 3 read", "- item 7", "- item 8"]);
        assert_eq!(newest_that_fit(&all, 5), [""; 0]);
        assert_eq!(newest_that_fit(&all[..2], 20), ["- item 0", "- item 1"]);
    }
}
