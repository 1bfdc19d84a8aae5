//! Our own shape: cuts an output by its format.
//!
//! JSON stays JSON, tables keep their header, diffs their file and hunk headers, test and build
//! logs their failures and last lines, source files their definitions, searches some hits of every
//! file. Lines that look like errors come first; repeated lines, equal or equal except for numbers,
//! come last.
//!
//! These properties hold for every text, every cap and every measure:
//!
//! - Text that fits is unchanged: the view is the same bytes.
//! - A view never exceeds its cap, including its marker, so cutting twice is the same as cutting
//!   once.
//! - Every line of a view is a whole line of the output, or the start of one with the number of
//!   missing bytes, or one of ours: a gap (`[… lines 61-3351 left out]`) or, last, the marker that
//!   says how much is shown and which call returns the rest.
//! - Our lines are fixed words, numbers and the ref: they quote nothing of the output.
//! - If the cap is too small for the marker, a shorter one is used, and finally none.
//!
//! For JSON the whole view is one JSON value, without white space. Omitted elements become a final
//! string `[… 12 more elements]`, omitted members a final member `"[…]": "[… 3 more members]"`, the
//! rest of a string becomes `[… 512 more bytes]` at its end, and the marker is the last element, or
//! the last member with the key `[trimtab]`. Everything else is in the output, with numbers spelled
//! as there. JSON that is nested deeper than 120 levels is cut as lines.

mod clip;
mod fitting;
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

/// The parameters of a cut.
#[derive(Clone, Copy)]
pub struct CutRequest<'a> {
    /// The maximum measure of the view, including its marker.
    pub cap: u64,
    /// The unit of the cap. The empty text must measure zero; otherwise any measure is allowed,
    /// even one where a text measures less or more than its pieces.
    pub measure: &'a dyn Fn(&str) -> u64,
    /// The ref of the full output.
    pub stored: Option<&'a Ref>,
}

impl CutRequest<'_> {
    fn fits(&self, text: &str) -> bool {
        (self.measure)(text) <= self.cap
    }

    fn measured(&self, text: String, shown_bytes: usize) -> ShortenedView {
        ShortenedView {
            size: (self.measure)(&text),
            text,
            shown_bytes,
        }
    }
}

/// The number of attempts with a smaller selection, if the whole measured more than its pieces.
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

/// The same for JSON; none if `text` is not JSON.
pub fn cut_json<'a>(text: &'a str, request: &CutRequest<'_>) -> Option<Cow<'a, str>> {
    let tree = json::parse(text)?;
    Some(if request.fits(text) {
        Cow::Borrowed(text)
    } else {
        let view = json::cut(text, &tree, request);
        Cow::Owned(view.unwrap_or_else(|| only_marker(text, request)).text)
    })
}

/// A view that omits something.
struct ShortenedView {
    text: String,
    /// The bytes of the output that it shows, without our own words.
    shown_bytes: usize,
    /// The measure of `text`.
    size: u64,
}

fn shorter(text: &str, request: &CutRequest<'_>) -> ShortenedView {
    let shorter = match json::parse(text) {
        Some(tree) => json::cut(text, &tree, request),
        None => by_lines(text, request),
    };
    shorter.unwrap_or_else(|| only_marker(text, request))
}

/// Shows nothing of the output, only the longest marker that fits.
fn only_marker(text: &str, request: &CutRequest<'_>) -> ShortenedView {
    let forms = marker::marker_forms(&TextLines::new(text), request.stored);
    let text = forms.into_iter().find(|form| request.fits(form));
    request.measured(text.unwrap_or_default(), 0)
}

/// The best selection of whole lines, if any line fits next to the marker.
fn by_lines(text: &str, request: &CutRequest<'_>) -> Option<ShortenedView> {
    let kind = output_format::detect_lines(text);
    let lines = &TextLines::new(text);
    let folds = fold::Folds::of(lines, kind);
    let marks = if line_waves::wants_errors(kind) {
        lines.errors()
    } else {
        Vec::new()
    };
    // The marker is written last, when its figures are known. Its longest form is reserved before.
    let reserve = (request.measure)(&marker::longest_marker(lines, request.stored)) + 1;
    let mut room = request.cap.checked_sub(reserve)?;
    for _ in 0..ATTEMPTS {
        let mut selection = LineSelection::new(room, lines, &folds, request.measure);
        selection.fill(line_waves::waves(kind, lines, &marks));
        if selection.is_empty() {
            return None;
        }
        let (text, shown_bytes) = selection.render(request.stored);
        let shorter = request.measured(text, shown_bytes);
        if shorter.size <= request.cap {
            return Some(shorter);
        }
        // Token estimates are not additive, so the text can measure more than its lines. Give that
        // much less room the next time.
        room = room.checked_sub(shorter.size - request.cap)?;
    }
    None
}
