//! Documents whose conversation is a list: elements are removed and inserted, and the rest stays.

use serde_json::value::RawValue;

use super::form_writer::FormWriter;
use super::layout::{END, UnitFate, lay_out};
use super::patch::JsonPatch;
use crate::json;
use crate::splice::SentMessage;
use crate::transcript::thread::ReadConversation;

/// Writes the document with the new window in place of `list`.
pub(super) fn write(
    text: &str,
    list: &RawValue,
    reads: &[ReadConversation],
    windows: &[Vec<SentMessage>],
    pen: &mut dyn FormWriter,
) -> Vec<u8> {
    let elements: Vec<&str> = json::elements(list.get()).collect();
    let unit = |number: usize| elements.get(number).copied().unwrap_or("{}");
    let laid = lay_out(reads, windows, &unit, pen);
    let mut kept: Vec<String> = Vec::new();
    for (number, element) in elements.iter().enumerate() {
        kept.extend(laid.new.get(&number).into_iter().flatten().cloned());
        match laid.fate(number) {
            UnitFate::Kept => kept.push((*element).to_owned()),
            UnitFate::Shown(text) => kept.push(text),
            UnitFate::Removed | UnitFate::Rewritten => {}
        }
    }
    kept.extend(laid.new.get(&END).into_iter().flatten().cloned());
    // The layout of the original list is kept, so that a pretty-printed file stays readable.
    let (head, gap, tail) = spaces(list.get(), &elements);
    let mut patch = JsonPatch::new(text);
    patch.replace(list, &format!("[{head}{}{tail}]", kept.join(&gap)));
    patch.end().into_bytes()
}

/// The text before, between and after the elements of a list.
fn spaces(list: &str, elements: &[&str]) -> (String, String, String) {
    let offset = |part: &str| (part.as_ptr() as usize).wrapping_sub(list.as_ptr() as usize);
    let between = |from: usize, to: usize| list.get(from..to).unwrap_or_default().to_owned();
    let Some((first, end)) = elements.first().zip(elements.last()) else {
        return (String::new(), ",".to_owned(), String::new());
    };
    let head = between(1, offset(first));
    let tail = between(offset(end) + end.len(), list.len().saturating_sub(1));
    let gap = match elements {
        [one, two, ..] => between(offset(one) + one.len(), offset(two)),
        _ => format!(",{head}"),
    };
    (head, gap, tail)
}
