//! What changes in a file, line by line.

use std::collections::HashMap;

/// How many lines are shown around a change.
const CONTEXT: usize = 3;

/// A line of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiffLine<'t> {
    /// In both.
    Same(&'t str),
    /// Only in what is there.
    Removed(&'t str),
    /// Only in what would be there.
    Added(&'t str),
    /// Lines of both that are not shown.
    Gap,
}

/// The lines that change, each with a few around it. Lines that occur once on both sides hold
/// the rest in place, so that the time is that of sorting, whatever the files are.
pub(super) fn diff<'t>(before: &'t str, after: &'t str) -> Vec<DiffLine<'t>> {
    let (before, after): (Vec<&str>, Vec<&str>) = (lines(before), lines(after));
    let mut all = Vec::with_capacity(before.len() + after.len());
    let (mut left, mut right) = (0, 0);
    for (old, new) in anchors(&before, &after) {
        between(part(&before, left, old), part(&after, right, new), &mut all);
        all.extend(before.get(old).map(|line| DiffLine::Same(line)));
        (left, right) = (old + 1, new + 1);
    }
    between(
        part(&before, left, before.len()),
        part(&after, right, after.len()),
        &mut all,
    );
    shortened(&all)
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn part<'l, 't>(lines: &'l [&'t str], from: usize, to: usize) -> &'l [&'t str] {
    lines.get(from..to).unwrap_or_default()
}

/// Lines without an anchor: what they begin and end with alike stays, the rest is exchanged.
fn between<'t>(before: &[&'t str], after: &[&'t str], all: &mut Vec<DiffLine<'t>>) {
    let pairs = before.iter().zip(after);
    let head = pairs.take_while(|(old, new)| old == new).count();
    let (begin, before) = before.split_at(head);
    let (_, after) = after.split_at(head);
    let pairs = before.iter().rev().zip(after.iter().rev());
    let tail = pairs.take_while(|(old, new)| old == new).count();
    let (removed, end) = before.split_at(before.len() - tail);
    let (added, _) = after.split_at(after.len() - tail);
    all.extend(begin.iter().map(|line| DiffLine::Same(line)));
    all.extend(removed.iter().map(|line| DiffLine::Removed(line)));
    all.extend(added.iter().map(|line| DiffLine::Added(line)));
    all.extend(end.iter().map(|line| DiffLine::Same(line)));
}

/// Pairs of lines that occur once on both sides, as many as are in the same order.
fn anchors(before: &[&str], after: &[&str]) -> Vec<(usize, usize)> {
    let (left, right) = (once(before), once(after));
    let mut pairs: Vec<(usize, usize)> = left
        .iter()
        .filter_map(|(line, old)| Some((*old, *right.get(line)?)))
        .collect();
    pairs.sort_unstable();
    longest_rising(&pairs)
}

/// The lines that occur once, with their places.
fn once<'t>(lines: &[&'t str]) -> HashMap<&'t str, usize> {
    let mut places: HashMap<&str, Option<usize>> = HashMap::new();
    for (at, line) in lines.iter().copied().enumerate() {
        let place = places.entry(line);
        place.and_modify(|place| *place = None).or_insert(Some(at));
    }
    let places = places.into_iter();
    places.filter_map(|(line, at)| Some((line, at?))).collect()
}

/// The longest part of `pairs` in which the second numbers rise: patience sorting.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The pile tops, by place in `pairs`, and what each pair stands on.
    let mut tops: Vec<usize> = Vec::new();
    let mut below: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let second = |at: &usize| pairs.get(*at).map_or(0, |(_, new)| *new);
    for (at, (_, new)) in pairs.iter().enumerate() {
        let pile = tops.partition_point(|top| second(top) < *new);
        below.push(pile.checked_sub(1).and_then(|pile| tops.get(pile).copied()));
        match tops.get_mut(pile) {
            Some(top) => *top = at,
            None => tops.push(at),
        }
    }
    let mut rising = Vec::with_capacity(tops.len());
    let mut next = tops.last().copied();
    while let Some(at) = next {
        rising.extend(pairs.get(at));
        next = below.get(at).copied().flatten();
    }
    rising.reverse();
    rising
}

/// Without the lines that are far from every change.
fn shortened<'t>(all: &[DiffLine<'t>]) -> Vec<DiffLine<'t>> {
    let is_same = |line: &DiffLine<'_>| matches!(line, DiffLine::Same(_));
    let mut shown = vec![false; all.len()];
    for (at, _) in all.iter().enumerate().filter(|(_, line)| !is_same(line)) {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(all.len());
        for near in shown.get_mut(around).into_iter().flatten() {
            *near = true;
        }
    }
    let mut short = Vec::new();
    for (line, is_shown) in all.iter().zip(&shown) {
        if *is_shown {
            short.push(*line);
        } else if short.last() != Some(&DiffLine::Gap) {
            short.push(DiffLine::Gap);
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> String {
        let line = |line: &DiffLine<'_>| match line {
            DiffLine::Same(line) => format!(" {line}\n"),
            DiffLine::Removed(line) => format!("-{line}\n"),
            DiffLine::Added(line) => format!("+{line}\n"),
            DiffLine::Gap => "~\n".to_owned(),
        };
        diff(before, after).iter().map(line).collect()
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let before = (1..=20).fold(String::new(), |text, n| text + &format!("line {n}\n"));
        let after = before.replace("line 10\n", "line ten\n");
        assert_eq!(
            told(&before, &after),
            "~\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n~\n"
        );
        assert_eq!(told("", "a\nb\n"), "+a\n+b\n");
        assert_eq!(told("a\n", "a\n"), "~\n");
        assert_eq!(told("a\nb\n", ""), "-a\n-b\n");
    }

    #[test]
    fn a_line_that_moved_is_removed_and_added() {
        assert_eq!(told("a\nb\nc\n", "b\nc\na\n"), "-a\n b\n c\n+a\n");
        // Lines that repeat hold nothing in place, but both ends do.
        assert_eq!(told("x\nx\ny\nx\n", "x\nx\nx\n"), " x\n x\n-y\n x\n");
    }

    #[test]
    fn both_sides_can_be_made_again_from_a_diff_without_gaps() {
        let (before, after) = ("a\nb\nc\nd\nb\n", "b\na\nd\nd\ne\n");
        let lines = diff(before, after);
        let side = |wanted: fn(&DiffLine<'_>) -> bool| -> String {
            let text = |line: &DiffLine<'_>| match line {
                DiffLine::Same(line) | DiffLine::Removed(line) | DiffLine::Added(line) => {
                    format!("{line}\n")
                }
                DiffLine::Gap => String::new(),
            };
            lines.iter().filter(|line| wanted(line)).map(text).collect()
        };
        assert_eq!(side(|line| !matches!(line, DiffLine::Added(_))), before);
        assert_eq!(side(|line| !matches!(line, DiffLine::Removed(_))), after);
    }
}
