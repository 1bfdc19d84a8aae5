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

impl Said {
    pub(super) fn answer(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_answer: true,
        }
    }
}

/// A line about something, perhaps with lines that belong to it.
pub(super) struct Item {
    pub(super) text: String,
    /// What it counts as if it is left out.
    pub(super) kind: String,
}

/// The items of a section, as they are written.
pub(super) struct Section(Vec<String>);

impl Section {
    /// The bytes that it takes with its title; none without items.
    pub(super) fn bytes(&self, title: &str) -> usize {
        let items: usize = self.0.iter().map(|item| item.len() + 1).sum();
        if items == 0 {
            0
        } else {
            items + title.len() + 1
        }
    }

    pub(super) fn text(&self, title: &str) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("{title}\n{}", self.0.join("\n"))
    }
}

/// An item as it is written. Its further lines are indented, so that none looks like a title.
pub(super) fn item(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("{FIRST}{}", lines.join(&format!("\n{FURTHER}")))
}

/// What was said, within `bytes`, with long texts cut to one length. If even that is too much,
/// texts are left out: those that a newer one repeats except for numbers, as in "step 4 is done",
/// then the oldest ones that are no answers, then the oldest answers.
pub(super) fn said_within(said: &[Said], bytes: usize) -> Section {
    let items: Vec<String> = said.iter().map(|said| item(&said.text)).collect();
    let least = |item: &String| item.len().min(LEAST) + 1;
    let all_fit = items.iter().map(least).sum::<usize>() <= bytes;
    let mut seen = HashSet::new();
    let mut newest_first: Vec<usize> = (0..items.len()).rev().collect();
    newest_first.retain(|at| {
        let without_digits = |item: &String| item.replace(|c: char| c.is_ascii_digit(), "");
        all_fit
            || items
                .get(*at)
                .is_some_and(|item| seen.insert(without_digits(item)))
    });
    // A stable sort: the answers first, each kind still newest first.
    newest_first.sort_by_key(|at| said.get(*at).is_some_and(|said| !said.is_answer));
    let mut left = bytes;
    let fitting = newest_first.into_iter().take_while(|at| {
        let rest = items
            .get(*at)
            .and_then(|item| left.checked_sub(least(item)));
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let mut kept: Vec<usize> = fitting.collect();
    kept.sort_unstable();
    let kept: Vec<&String> = kept.into_iter().filter_map(|at| items.get(at)).collect();
    let sizes = kept.iter().map(|item| item.len() + 1).collect();
    let level = cut_level(sizes, bytes).max(LEAST);
    Section(kept.into_iter().map(|item| within(item, level)).collect())
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
pub(super) fn newest_that_fit(items: &[Item], bytes: usize) -> Section {
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
        return Section(Vec::new());
    }
    let joined = (!omitted.is_empty()).then(|| older(omitted));
    Section(
        joined
            .into_iter()
            .chain(kept.iter().map(|item| item.text.clone()))
            .collect(),
    )
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

    fn answers(texts: &[&str]) -> Vec<Said> {
        texts.iter().map(|text| Said::answer(text)).collect()
    }

    fn shown(section: &Section) -> String {
        section.text("T")
    }

    #[test]
    fn answer_outlives_newer_words_that_differ_by_numbers_only() {
        let decided = Said::answer("I decided to keep the old parser, because of its messages.");
        let steps = (1..40).map(|step| Said::answer(&format!("Step {step} is done, I go on.")));
        let all: Vec<Said> = std::iter::once(decided).chain(steps).collect();
        let some = shown(&said_within(&all, 400));
        assert!(some.contains("keep the old parser") && some.contains("Step 39"));
        assert!(!some.contains("Step 12"), "{some}");
        let whole = shown(&said_within(&all, 4_000));
        assert!(whole.contains("Step 12"), "{whole}");
    }

    #[test]
    fn answers_outlive_announcements() {
        let announced = |name: &str| Said {
            text: format!("Now I look at {name}, {}", "x".repeat(90)),
            is_answer: false,
        };
        let all = [
            Said::answer("The bug is in the lexer."),
            announced("a"),
            announced("b"),
        ];
        let some = shown(&said_within(&all, 160));
        assert!(
            some.contains("in the lexer") && some.contains("look at b"),
            "{some}"
        );
        assert!(!some.contains("look at a"), "{some}");
    }

    #[test]
    fn long_texts_are_cut_before_old_ones_go() {
        let long = format!("begin {} end", "x".repeat(5_000));
        let all = answers(&["the decision", &long, "the newest"]);
        let some = said_within(&all, 400);
        assert!(some.bytes("T") <= 400 + 2, "{}", some.bytes("T"));
        for kept in ["- the decision", "- begin x", "x end", "- the newest"] {
            assert!(shown(&some).contains(kept), "{kept} in {}", shown(&some));
        }
        assert_eq!(shown(&said_within(&all, 30)), "T\n- the newest");
    }

    #[test]
    fn older_items_are_counted_by_kind() {
        let of = |at: usize| Item {
            text: format!("- item {at}"),
            kind: if at.is_multiple_of(3) { "read" } else { "bash" }.to_owned(),
        };
        let all: Vec<Item> = (0..9).map(of).collect();
        let some = shown(&newest_that_fit(&all, 45));
        assert_eq!(some, "T\n- older: 4 bash, 3 read\n- item 7\n- item 8");
        assert_eq!(shown(&newest_that_fit(&all, 5)), "");
        assert_eq!(
            shown(&newest_that_fit(&all[..2], 20)),
            "T\n- item 0\n- item 1"
        );
    }
}
