//! Our own shape: keeps the beginning, the end and the errors of an output.
//!
//! An output is lines of text, whatever its format. What fits of it is shown in this order: first
//! and last lines, lines that name an error, the traces of these errors, and then lines from both
//! ends inward. Repeated lines, equal or equal except for numbers, come last.
//!
//! These properties hold for every text, every cap and every measure:
//!
//! - Text that fits is unchanged: the view is the same bytes.
//! - A view never exceeds its cap, including its marker, so cutting twice is the same as cutting
//!   once.
//! - Every line of a view is a whole line of the output, or the start and the end of one with the
//!   number of bytes missing between them, or one of ours: a gap (`[… lines 61-3351 left out]`) or,
//!   last, the marker that says how much is shown and which call returns the rest.
//! - Our lines are fixed words, numbers and the ref: they quote nothing of the output.
//! - If the cap is too small for the marker, a shorter one is used, and finally none.

mod lines;
mod selection;

use std::borrow::Cow;

use trimtab_model::Ref;

use super::errors::error_lines;
use super::figures::{grouped, human_size};
use super::placeholder::read_call;
use lines::TextLines;
use selection::LineSelection;

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

/// The number of attempts with a smaller selection, if the whole measured more than its pieces.
const ATTEMPTS: u32 = 6;

/// The view of `text` within the cap of `request`.
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
    if (request.measure)(text) <= request.cap {
        return Cow::Borrowed(text);
    }
    let lines = TextLines::new(text);
    let shown = some_lines(&lines, request);
    Cow::Owned(shown.unwrap_or_else(|| only_marker(&lines, request)))
}

/// The selected lines with the marker; none if no line fits beside the marker.
fn some_lines(lines: &TextLines<'_>, request: &CutRequest<'_>) -> Option<String> {
    // The marker is written last, when its figures are known. Its longest form is reserved before.
    // `1023.9 KB` is longer than the text of any smaller size.
    let longest = ShownCounts {
        lines: lines.len(),
        bytes: lines.text().len().max(1_048_500),
        first_missing: lines.len(),
    };
    let longest = marker(&longest, lines, request.stored);
    let reserve = (request.measure)(&longest).saturating_add(1);
    let mut room = request.cap.checked_sub(reserve)?;
    let errors = lines.numbers_of(error_lines(lines.text()));
    for _ in 0..ATTEMPTS {
        let mut selection = LineSelection::new(room, lines, request.measure);
        selection.fill(&errors);
        let (mut view, shown) = selection.render();
        if shown.lines == 0 {
            return None;
        }
        view.push_str(&marker(&shown, lines, request.stored));
        let size = (request.measure)(&view);
        if size <= request.cap {
            return Some(view);
        }
        // Token estimates are not additive, so the text can measure more than its lines. Give that
        // much less room the next time.
        room = room.checked_sub(size - request.cap)?;
    }
    None
}

/// How much of an output is shown.
#[derive(Default)]
struct ShownCounts {
    lines: usize,
    bytes: usize,
    /// The first line that is not shown in full, counted from 0.
    first_missing: usize,
}

/// Our last line: shown and total, and the call that returns the rest.
fn marker(shown: &ShownCounts, lines: &TextLines<'_>, stored: Option<&Ref>) -> String {
    let (some, all) = (grouped(shown.lines), grouped(lines.len()));
    let (some_bytes, all_bytes) = (human_size(shown.bytes), human_size(lines.text().len()));
    let rest = stored.map_or_else(
        // The caller may name a ref elsewhere, so this must be true in both cases.
        || "the rest is not in view".to_owned(),
        |stored| format!("the rest: {}", read_call(stored, shown.first_missing)),
    );
    format!("[trimtab: showing {some} of {all} lines ({some_bytes} of {all_bytes}); {rest}]")
}

/// Shows nothing of the output, only the longest marker that fits.
fn only_marker(lines: &TextLines<'_>, request: &CutRequest<'_>) -> String {
    let mut forms = vec![marker(&ShownCounts::default(), lines, request.stored)];
    if let Some(stored) = request.stored {
        let call = read_call(stored, 0);
        forms.push(format!("[trimtab: output left out; {call}]"));
        forms.push(format!("[trimtab: left out; ref={stored}]"));
    }
    forms.extend(["[trimtab: output left out]", "[left out]", "[…]"].map(str::to_owned));
    let fits = |form: &String| (request.measure)(form) <= request.cap;
    forms.into_iter().find(fits).unwrap_or_default()
}
