//! Writes our own lines: fixed words, numbers and the ref.

use std::ops::Range;

use trimtab_model::Ref;

use super::fold::{Folds, Likeness};
use super::lines::TextLines;
use crate::view::figures::{grouped, human_size};
use crate::view::placeholder::read_call;

/// How much of an output is shown.
pub(super) struct ShownCounts {
    pub(super) shown: usize,
    pub(super) total: usize,
    /// The counted unit.
    pub(super) noun: &'static str,
    pub(super) shown_bytes: usize,
    pub(super) total_bytes: usize,
    /// The first omitted line, counted from 0.
    pub(super) offset: usize,
}

impl ShownCounts {
    /// The counts for some lines and bytes of `lines`.
    pub(super) fn of_lines(
        lines: &TextLines<'_>,
        shown: usize,
        bytes: usize,
        offset: usize,
    ) -> Self {
        Self {
            shown,
            total: lines.len(),
            noun: "lines",
            shown_bytes: bytes,
            total_bytes: lines.text().len(),
            offset,
        }
    }
}

/// The marker: shown and total, and the call that returns the rest.
pub(super) fn full_marker(tally: &ShownCounts, stored: Option<&Ref>) -> String {
    let (shown, total) = (grouped(tally.shown), grouped(tally.total));
    let (shown_bytes, total_bytes) = (human_size(tally.shown_bytes), human_size(tally.total_bytes));
    let noun = tally.noun;
    let rest = stored.map_or_else(
        // The caller may name a ref elsewhere, so this must be true in both cases.
        || "the rest is not in view".to_owned(),
        |stored| format!("the rest: {}", read_call(stored, tally.offset)),
    );
    format!("[trimtab: showing {shown} of {total} {noun} ({shown_bytes} of {total_bytes}); {rest}]")
}

/// A marker at least as long as any for this text.
pub(super) fn longest_marker(lines: &TextLines<'_>, stored: Option<&Ref>) -> String {
    let count = lines.len();
    // `1023.9 KB` is longer than the text of any smaller size.
    let bytes = lines.text().len().max(1_048_500);
    full_marker(
        &ShownCounts::of_lines(lines, count, bytes, count.max(1)),
        stored,
    )
}

/// The markers for a view that shows nothing, longest first.
pub(super) fn marker_forms(lines: &TextLines<'_>, stored: Option<&Ref>) -> Vec<String> {
    let mut forms = vec![full_marker(&ShownCounts::of_lines(lines, 0, 0, 0), stored)];
    if let Some(stored) = stored {
        let call = read_call(stored, 0);
        forms.push(format!("[trimtab: output left out; {call}]"));
        forms.push(format!("[trimtab: left out; ref={stored}]"));
    }
    forms.extend(["[trimtab: output left out]", "[left out]", "[…]"].map(str::to_owned));
    forms
}

/// The line that represents the omitted lines of `gap`.
pub(super) fn gap_line(gap: &Range<usize>, folds: &Folds) -> String {
    let (first, last) = (gap.start + 1, gap.end);
    let like = match folds.likeness(gap) {
        Some(Likeness::Equal) => format!(", all equal to line {}", gap.start),
        Some(Likeness::ButForNumbers) => format!(", like line {} but for numbers", gap.start),
        None => String::new(),
    };
    if first == last {
        format!("[… line {first} left out{like}]\n")
    } else {
        format!("[… lines {first}-{last} left out{like}]\n")
    }
}

/// A gap line at least as long as any in a text of `lines` lines.
pub(super) fn longest_gap(lines: usize, folds: &Folds) -> String {
    let like = if folds.is_empty() {
        String::new()
    } else {
        format!(", like line {lines} but for numbers")
    };
    format!("[… lines {lines}-{lines} left out{like}]\n")
}

/// The note after the shown start of a line.
pub(super) fn more_of_line(bytes: usize) -> String {
    format!(" [… {} bytes more in this line]", grouped(bytes))
}
