//! Our own shape: an output is cut by what it is.
//!
//! JSON stays JSON, tables keep their header, diffs their file and hunk headers, test and build
//! logs their failures and last lines, source files what they define,
//! searches some hits of every file. Runs of lines that are equal, or equal but for numbers, come
//! after everything else, and lines that look like errors come first.
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
mod errors;
mod fold;
mod json;
mod line_waves;
mod lines;
mod marker;
mod output_format;
mod select;
mod table;

use std::borrow::Cow;

use trimtab_model::Ref;

pub use output_format::{OutputFormat, detect};

use lines::TextLines;
use select::LineSelection;

/// How to cut.
#[derive(Clone, Copy)]
pub struct CutRequest<'a> {
    /// The most the view may measure, marker included.
    pub cap: u64,
    /// What the cap counts. The empty text must measure nothing; otherwise any measure will
    /// do, also one for which a text measures less or more than its pieces.
    pub measure: &'a dyn Fn(&str) -> u64,
    /// Where the whole output is stored.
    pub stored: Option<&'a Ref>,
}

impl CutRequest<'_> {
    fn fits(&self, text: &str) -> bool {
        (self.measure)(text) <= self.cap
    }
}

/// How often a selection is made smaller because its pieces measured less than their sum.
const ATTEMPTS: u32 = 6;

/// The view of `text` within `how.cap`.
///
/// ```
/// use trimtab_engine::view::structure::{CutRequest, cut};
///
/// let text: String = (1..=500).map(|n| format!("step {n} of the build\n")).collect();
/// let bytes = |text: &str| text.len() as u64;
/// let view = cut(&text, &CutRequest { cap: 300, measure: &bytes, stored: None });
/// assert!(view.len() <= 300);
/// assert!(view.starts_with("step 1 of the build\n"));
/// ```
pub fn cut<'a>(text: &'a str, request: &CutRequest<'_>) -> Cow<'a, str> {
    if request.fits(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(shorter(text, request).text)
    }
}

/// A view that is not the whole output.
struct ShortenedView {
    text: String,
    /// How much of the output it shows. Our own words are not counted.
    shown_bytes: usize,
}

fn shorter(text: &str, request: &CutRequest<'_>) -> ShortenedView {
    let kind = detect(text);
    let lines = TextLines::new(text);
    let tree = (kind == OutputFormat::Json)
        .then(|| json::parse(text))
        .flatten();
    let shorter = match tree {
        Some(tree) => json::cut(text, &tree, request),
        None => by_lines(&lines, kind, request),
    };
    shorter.unwrap_or_else(|| {
        // Nothing of the output is shown, only the longest marker that fits.
        let forms = marker::marker_forms(&lines, request.stored);
        let text = forms.into_iter().find(|form| request.fits(form));
        ShortenedView {
            text: text.unwrap_or_default(),
            shown_bytes: 0,
        }
    })
}

/// The best choice of whole lines, if any line fits beside the marker.
fn by_lines(
    lines: &TextLines<'_>,
    kind: OutputFormat,
    request: &CutRequest<'_>,
) -> Option<ShortenedView> {
    let folds = fold::Folds::of(lines, kind);
    let marks = errors::find_errors(lines);
    let reserve = (request.measure)(&marker::longest_marker(lines, request.stored)) + 1;
    let mut room = request.cap.checked_sub(reserve)?;
    for _ in 0..ATTEMPTS {
        let mut selection = LineSelection::new(room, lines, &folds, request.measure);
        selection.fill(line_waves::waves(kind, lines, &marks));
        if selection.is_empty() {
            return None;
        }
        let shorter = selection.render(request.stored);
        let measured = (request.measure)(&shorter.text);
        if measured <= request.cap {
            return Some(shorter);
        }
        room = room.checked_sub(measured - request.cap)?;
    }
    None
}
