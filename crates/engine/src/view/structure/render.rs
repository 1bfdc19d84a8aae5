//! The chosen lines as text.

use trimtab_model::Ref;

use super::fold::Folds;
use super::lines::Lines;
use super::marker::{self, Tally};
use super::select::{Selection, clipped};
use crate::view::Size;

/// The text of a selection with its gaps and its marker, and how much it shows.
pub(super) fn render(
    lines: &Lines<'_>,
    folds: &Folds,
    selection: &Selection,
    stored: Option<&Ref>,
) -> (String, Size) {
    let mut text = String::new();
    let mut shown = Size::default();
    let mut next = 0;
    let gaps = selection.gaps();
    for gap in &gaps {
        for at in next..gap.start {
            line(&mut text, &mut shown, lines, at, selection.clip(at));
        }
        text.push_str(&marker::gap(gap, folds));
        next = gap.end;
    }
    for at in next..lines.len() {
        line(&mut text, &mut shown, lines, at, selection.clip(at));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let clipped = (0..lines.len()).find(|at| selection.clip(*at).is_some());
    let missing = gaps
        .first()
        .map(|gap| gap.start)
        .into_iter()
        .chain(clipped)
        .min();
    let tally = Tally {
        shown: shown.lines,
        total: lines.len(),
        noun: "lines",
        shown_bytes: shown.bytes,
        total_bytes: lines.text().len(),
        offset: missing.unwrap_or(0),
    };
    text.push_str(&marker::full(&tally, stored));
    (text, shown)
}

fn line(out: &mut String, shown: &mut Size, lines: &Lines<'_>, at: usize, clip: Option<usize>) {
    let whole = lines.whole(at);
    let kept = clip.and_then(|bytes| whole.get(..bytes)).unwrap_or(whole);
    shown.lines += 1;
    shown.bytes += kept.len();
    shown.chars += kept.chars().count();
    match clip {
        Some(bytes) => out.push_str(&clipped(lines.get(at), bytes)),
        None => out.push_str(whole),
    }
}
