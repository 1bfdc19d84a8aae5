//! Our own shape: an output is cut by what it is.
//!
//! JSON stays JSON, tables keep their header, diffs their file and hunk headers, test and build
//! logs their failures and last lines, source files what they define,
//! searches some hits of every file. Runs of lines that are equal, or equal but for numbers, come after everything else,
//! and lines that look like errors come first.
//!
//! What holds for every text, every cap and every measure:
//!
//! - what fits is not touched: the view is the same bytes;
//! - a view never measures more than its cap, marker included, so cutting twice is cutting
//!   once;
//! - every line of a view is a whole line of the output, or the start of one that says how
//!   many bytes are missing, or one of ours: a gap (`[… lines 61-3351 left out]`) or, last, the
//!   marker that says how much is shown and which call gets the rest;
//! - our lines are fixed words, numbers and the ref: they quote nothing of the output;
//! - where the cap is too small for the marker, a shorter one is used, and in the end none.
//!
//! For JSON the whole view is one JSON value, with white space left out. Left-out elements are
//! a final string `[… 12 more elements]`, left-out members a final member `"[…]": "[… 3 more
//! members]"`, the rest of a string is `[… 512 more bytes]` at its end, and the marker is the
//! last element, or the last member with the key `[trimtab]`. Everything else in it is in the
//! output, numbers in the same spelling. JSON that is nested deeper than 120 levels is cut as
//! lines.

mod clip;
mod code;
mod diff;
mod errors;
mod fold;
mod hits;
mod json;
mod kind;
mod lines;
mod log;
mod marker;
mod plain;
mod render;
mod select;
mod table;

use std::fmt;

use trimtab_model::Ref;

pub use kind::{Kind, detect};

use super::{Size, View};
use lines::Lines;
use marker::Tally;
use select::{Room, Wave, select};

/// How to cut.
#[derive(Clone, Copy)]
pub struct Cut<'a> {
    /// The most the view may measure, marker included.
    pub cap: u64,
    /// What the cap counts. The empty text must measure nothing; otherwise any measure will
    /// do, also one for which a text measures less or more than its pieces.
    pub measure: &'a dyn Fn(&str) -> u64,
    /// Where the whole output is stored.
    pub stored: Option<&'a Ref>,
}

impl fmt::Debug for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cut")
            .field("cap", &self.cap)
            .field("stored", &self.stored)
            .finish_non_exhaustive()
    }
}

impl Cut<'_> {
    fn fits(&self, text: &str) -> bool {
        (self.measure)(text) <= self.cap
    }
}

/// How often a selection is made smaller because its pieces measured less than their sum.
const ATTEMPTS: u32 = 6;

/// The view of `text` within `how.cap`.
///
/// ```
/// use trimtab_engine::view::structure::{Cut, cut};
///
/// let text: String = (1..=500).map(|n| format!("step {n} of the build\n")).collect();
/// let bytes = |text: &str| text.len() as u64;
/// let view = cut(&text, &Cut { cap: 300, measure: &bytes, stored: None });
/// assert!(view.text.len() <= 300);
/// assert!(view.text.starts_with("step 1 of the build\n"));
/// ```
pub fn cut<'a>(text: &'a str, how: &Cut<'_>) -> View<'a> {
    if how.fits(text) {
        return View::whole(text);
    }
    let kind = detect(text);
    let lines = Lines::new(text);
    let view = match (kind, json::tree(text, kind)) {
        (Kind::Json, Some(root)) => json::cut(text, &root, how),
        _ => by_lines(&lines, kind, how),
    };
    view.unwrap_or_else(|| least(&lines, how))
}

/// The best choice of whole lines, if any line fits beside the marker.
fn by_lines<'a>(lines: &Lines<'a>, kind: Kind, how: &Cut<'_>) -> Option<View<'a>> {
    let folds = fold::Folds::of(lines, kind);
    let marks = errors::find(lines);
    let reserve = (how.measure)(&marker::longest(lines, how.stored)) + 1;
    let mut room = how.cap.checked_sub(reserve)?;
    for _ in 0..ATTEMPTS {
        let mut waves = waves(kind, lines, &marks);
        let within = Room::new(room, lines, &folds, how.measure);
        let selection = select(lines, &folds, &mut waves, &within);
        if selection.is_empty() {
            return None;
        }
        let (text, shown) = render::render(lines, &folds, &selection, how.stored);
        let measured = (how.measure)(&text);
        if measured <= how.cap {
            return Some(View::cut(lines.text(), text, shown));
        }
        room = room.checked_sub(measured - how.cap)?;
    }
    None
}

fn waves<'a>(kind: Kind, lines: &'a Lines<'_>, marks: &'a [usize]) -> Vec<Wave<'a>> {
    match kind {
        Kind::Diff => diff::waves(lines),
        Kind::Table { header } => table::waves(lines, header, marks),
        Kind::Log => log::waves(lines, marks),
        Kind::Code => code::waves(lines),
        Kind::Hits => hits::waves(lines),
        Kind::Json | Kind::Plain => plain::waves(lines, marks),
    }
}

/// The view that shows nothing of the output: the longest marker that fits.
fn least<'a>(lines: &Lines<'a>, how: &Cut<'_>) -> View<'a> {
    let tally = Tally {
        shown: 0,
        total: lines.len(),
        noun: "lines",
        shown_bytes: 0,
        total_bytes: lines.text().len(),
        offset: 0,
    };
    let forms = marker::forms(&tally, how.stored);
    let text = forms
        .into_iter()
        .find(|form| how.fits(form))
        .unwrap_or_default();
    View::cut(lines.text(), text, Size::default())
}
