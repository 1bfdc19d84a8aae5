//! Renders a tree as shortened JSON.

use std::fmt::Write as _;

use trimtab_model::work;

use super::super::{CutRequest, clip};
use super::tree::{JsonEntry, JsonList, Tree};
use crate::view::figures::{first_bytes, grouped};
use crate::view::shape::bytes;
use crate::view::structure;

/// The limits of a rendering.
#[derive(Clone, Copy)]
pub(super) struct RenderLimits {
    /// Elements of a list; an object shows a few more members.
    pub(super) items: usize,
    /// Bytes of a string.
    pub(super) string: usize,
    /// True to cut a longer string like an output, by its lines; otherwise its start is shown.
    pub(super) by_structure: bool,
    /// Levels below the root.
    pub(super) depth: usize,
}

impl RenderLimits {
    /// All levels, and the start of longer strings.
    pub(super) fn new(items: usize, string: usize) -> Self {
        Self {
            items,
            string,
            by_structure: false,
            depth: usize::MAX,
        }
    }

    /// The number of members of an object: a record has more fields than a list needs examples.
    fn members(self) -> usize {
        if self.items == 0 {
            0
        } else {
            self.items.saturating_mul(4).saturating_add(4)
        }
    }
}

/// The key of the member that counts omitted members.
const GAP: &str = "\"[…]\"";
/// The key of the member that contains the marker.
const MARKER: &str = "\"[trimtab]\"";

/// Renders the root without its end, with every element on a line of its own. None if that is
/// longer than `ceiling`, where rendering stops.
pub(super) fn open<'a>(
    tree: &'a Tree<'a>,
    bounds: RenderLimits,
    ceiling: usize,
) -> Option<RenderedJson<'a>> {
    let mut rendered = RenderedJson {
        tree,
        text: String::new(),
        scalars: 0,
        bytes: 0,
        bounds,
        ceiling,
    };
    match tree.root() {
        JsonEntry::Array(items) => rendered.array(items, 0),
        JsonEntry::Object(members) => rendered.object(members, 0),
        JsonEntry::Scalar(scalar) => rendered.scalar(scalar),
    }
    Some(rendered).filter(|rendered| rendered.text.len() <= ceiling)
}

/// A rendering so far, and how much of the output it shows.
pub(super) struct RenderedJson<'a> {
    tree: &'a Tree<'a>,
    pub(super) text: String,
    pub(super) scalars: usize,
    pub(super) bytes: usize,
    bounds: RenderLimits,
    ceiling: usize,
}

impl RenderedJson<'_> {
    /// Adds the marker as the last element or member, and the end.
    pub(super) fn close(&mut self, marker: &str) {
        // The root is still open, so an opening bracket at the end means that it has no elements.
        if !self.text.ends_with(['[', '{']) {
            self.text.push_str(",\n");
        }
        let marker = serde_json::Value::from(marker);
        let _ = match self.tree.root() {
            JsonEntry::Object(_) => write!(self.text, "{MARKER}:{marker}}}"),
            _ => write!(self.text, "{marker}]"),
        };
    }

    fn value(&mut self, value: JsonEntry<'_>, depth: usize) {
        work::step(1);
        match value {
            JsonEntry::Scalar(scalar) => self.scalar(scalar),
            JsonEntry::Array(items) if items.count == 0 => self.text.push_str("[]"),
            JsonEntry::Object(members) if members.count == 0 => self.text.push_str("{}"),
            JsonEntry::Array(items) if depth > self.bounds.depth => {
                self.elided(items.count as usize, "element");
            }
            JsonEntry::Object(members) if depth > self.bounds.depth => {
                self.elided(members.count as usize, "member");
            }
            JsonEntry::Array(items) => {
                self.array(items, depth);
                self.text.push(']');
            }
            JsonEntry::Object(members) => {
                self.object(members, depth);
                self.text.push('}');
            }
        }
    }

    fn array(&mut self, items: JsonList, depth: usize) {
        self.text.push('[');
        for item in self.tree.entries(items).take(self.bounds.items) {
            // Too long already. The caller discards it.
            if self.text.len() > self.ceiling {
                return;
            }
            self.comma(depth);
            self.value(item, depth + 1);
        }
        let missing = (items.count as usize).saturating_sub(self.bounds.items);
        if missing > 0 {
            self.comma(depth);
            self.elided(missing, "element");
        }
    }

    fn object(&mut self, members: JsonList, depth: usize) {
        self.text.push('{');
        let mut missing = members.count as usize;
        let mut entries = self.tree.entries(members);
        // Members with our own keys come from an earlier cut. Two equal keys would hide one of
        // them.
        let foreign = std::iter::from_fn(|| match entries.next()? {
            JsonEntry::Scalar(key) => Some((key, entries.next()?)),
            JsonEntry::Array(_) | JsonEntry::Object(_) => None,
        })
        .filter(|(key, _)| *key != GAP && *key != MARKER);
        for (key, value) in foreign.take(self.bounds.members()) {
            if self.text.len() > self.ceiling {
                return;
            }
            self.comma(depth);
            self.piece(key);
            self.text.push(':');
            self.value(value, depth + 1);
            missing -= 1;
        }
        if missing > 0 {
            self.comma(depth);
            self.text.push_str(GAP);
            self.text.push(':');
            self.elided(missing, "member");
        }
    }

    /// Writes a comma, unless a list or an object was just opened.
    fn comma(&mut self, depth: usize) {
        if !self.text.ends_with(['[', '{']) {
            self.text.push_str(if depth == 0 { ",\n" } else { "," });
        }
    }

    fn elided(&mut self, count: usize, noun: &str) {
        let plural = if count == 1 { "" } else { "s" };
        let _ = write!(self.text, "\"[… {} more {noun}{plural}]\"", grouped(count));
    }

    fn scalar(&mut self, scalar: &str) {
        // Two bytes for the quotes.
        let is_short = scalar.len() <= self.bounds.string.saturating_add(2);
        if is_short || !scalar.starts_with('"') {
            self.scalars += 1;
            return self.piece(scalar);
        }
        work::step_text(scalar);
        // A lone half of a surrogate pair is not valid text.
        let Ok(text) = serde_json::from_str::<String>(scalar) else {
            return self.elided(scalar.len(), "byte");
        };
        let (shown, shown_bytes) = self.shortened(&text);
        self.scalars += 1;
        self.bytes += shown_bytes;
        let _ = write!(self.text, "{}", serde_json::Value::from(shown));
    }

    /// Shortens a long string: its best lines, or its start up to a safe place. Returns the number
    /// of shown bytes, too. The marker of the whole output names the ref.
    fn shortened(&self, text: &str) -> (String, usize) {
        if self.bounds.by_structure && text.contains('\n') {
            let request = CutRequest {
                cap: self.bounds.string as u64,
                measure: &bytes,
                stored: None,
            };
            let shorter = structure::shorter(text, &request);
            return (shorter.text, shorter.shown_bytes);
        }
        let most = first_bytes(text, self.bounds.string).len();
        let kept = clip::safe_before(text, most).and_then(|at| text.get(..at));
        let kept = kept.unwrap_or_default();
        let missing = grouped(text.len().saturating_sub(kept.len()));
        (format!("{kept}[… {missing} more bytes]"), kept.len())
    }

    fn piece(&mut self, text: &str) {
        work::step_text(text);
        self.bytes += text.len();
        self.text.push_str(text);
    }
}
