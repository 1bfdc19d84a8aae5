//! A tree as JSON again, shortened.

use std::fmt::Write as _;

use trimtab_model::work;

use super::super::{Cut, clip};
use super::tree::Node;
use crate::view::figures::{first_bytes, grouped};
use crate::view::structure;

/// How much of a tree is shown.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Elements of a list; an object shows a few more members.
    pub(super) items: usize,
    /// Bytes of a string.
    pub(super) string: usize,
    /// How a longer string is shortened.
    pub(super) strings: StringCut,
    /// Levels below the root.
    pub(super) depth: usize,
    /// Rendering is broken off once it is longer than this.
    pub(super) ceiling: usize,
}

/// How a string that is too long is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringCut {
    /// Its start is shown.
    Start,
    /// It is cut like an output of its own: by its lines, errors first.
    Structure,
}

impl Bounds {
    /// A record has more fields than a list needs examples.
    fn members(self) -> usize {
        if self.items == 0 {
            0
        } else {
            self.items.saturating_mul(4).saturating_add(4)
        }
    }
}

/// What of the output was shown.
#[derive(Clone, Copy, Default)]
pub(super) struct Rendered {
    pub(super) scalars: usize,
    pub(super) bytes: usize,
    pub(super) chars: usize,
}

/// The key of the member that says what an object leaves out.
const GAP: &str = "\"[…]\"";
/// The key of the member that holds the marker.
const MARKER: &str = "\"[trimtab]\"";

/// The root without its end, every element on a line of its own.
pub(super) fn open(root: &Node<'_>, bounds: Bounds, rendered: &mut Rendered) -> String {
    let mut out = Writer {
        out: String::new(),
        bounds,
        rendered,
    };
    match root {
        Node::Array(items) => out.array(items, 0),
        Node::Object(members) => out.object(members, 0),
        Node::Scalar(scalar) => out.scalar(scalar),
    }
    out.out
}

/// Adds the marker as the last element or member, and the end.
pub(super) fn close(root: &Node<'_>, out: &mut String, marker: &str) {
    if !out.ends_with(['[', '{']) {
        out.push_str(",\n");
    }
    let marker = serde_json::Value::from(marker).to_string();
    if let Node::Object(_) = root {
        let _ = write!(out, "{MARKER}:{marker}}}");
    } else {
        let _ = write!(out, "{marker}]");
    }
}

struct Writer<'a> {
    out: String,
    bounds: Bounds,
    rendered: &'a mut Rendered,
}

impl Writer<'_> {
    fn node(&mut self, node: &Node<'_>, depth: usize) {
        work::step(1);
        match node {
            Node::Scalar(scalar) => self.scalar(scalar),
            Node::Array(items) if items.is_empty() => self.out.push_str("[]"),
            Node::Object(members) if members.is_empty() => self.out.push_str("{}"),
            Node::Array(items) if depth > self.bounds.depth => self.elided(items.len(), "element"),
            Node::Object(members) if depth > self.bounds.depth => {
                self.elided(members.len(), "member");
            }
            Node::Array(items) => {
                self.array(items, depth);
                self.out.push(']');
            }
            Node::Object(members) => {
                self.object(members, depth);
                self.out.push('}');
            }
        }
    }

    fn array(&mut self, items: &[Node<'_>], depth: usize) {
        self.out.push('[');
        for (at, item) in items.iter().take(self.bounds.items).enumerate() {
            if self.out.len() > self.bounds.ceiling {
                return;
            }
            self.comma(at > 0, depth);
            self.node(item, depth + 1);
        }
        let missing = items.len().saturating_sub(self.bounds.items);
        if missing > 0 {
            self.comma(self.bounds.items > 0, depth);
            self.elided(missing, "element");
        }
    }

    fn object(&mut self, members: &[(&str, Node<'_>)], depth: usize) {
        self.out.push('{');
        let mut shown = 0;
        // Members with our own keys come from an earlier cut; a second one would hide the first.
        let foreign = members
            .iter()
            .filter(|(key, _)| *key != GAP && *key != MARKER);
        for (key, node) in foreign.take(self.bounds.members()) {
            if self.out.len() > self.bounds.ceiling {
                return;
            }
            self.comma(shown > 0, depth);
            self.piece(key);
            self.out.push(':');
            self.node(node, depth + 1);
            shown += 1;
        }
        if members.len() > shown {
            self.comma(shown > 0, depth);
            self.out.push_str(GAP);
            self.out.push(':');
            self.elided(members.len() - shown, "member");
        }
    }

    fn comma(&mut self, wanted: bool, depth: usize) {
        if wanted {
            self.out.push_str(if depth == 0 { ",\n" } else { "," });
        }
    }

    fn elided(&mut self, count: usize, noun: &str) {
        let plural = if count == 1 { "" } else { "s" };
        let _ = write!(self.out, "\"[… {} more {noun}{plural}]\"", grouped(count));
    }

    fn scalar(&mut self, scalar: &str) {
        if scalar.starts_with('"') && scalar.len() > self.bounds.string.saturating_add(2) {
            self.shortened(scalar);
        } else {
            self.rendered.scalars += 1;
            self.piece(scalar);
        }
    }

    /// A string that is too long.
    fn shortened(&mut self, scalar: &str) {
        work::step_text(scalar);
        // Half of a surrogate pair is no text that could be cut.
        let Ok(text) = serde_json::from_str::<String>(scalar) else {
            return self.elided(scalar.len(), "byte");
        };
        if self.bounds.strings == StringCut::Structure && text.contains('\n') {
            self.structure_of(&text);
        } else {
            self.start_of(&text);
        }
    }

    /// The start of a text, cut where nothing is torn apart, and how much is missing.
    fn start_of(&mut self, text: &str) {
        let most = first_bytes(text, self.bounds.string).len();
        let kept = clip::safe_before(text, most)
            .and_then(|at| text.get(..at))
            .unwrap_or_default();
        self.rendered.scalars += 1;
        self.rendered.bytes += kept.len();
        self.rendered.chars += kept.chars().count();
        let missing = grouped(text.len().saturating_sub(kept.len()));
        let marked = format!("{kept}[… {missing} more bytes]");
        self.out
            .push_str(&serde_json::Value::from(marked).to_string());
    }

    /// The lines of a text that are worth most. The marker of the whole output has its ref.
    fn structure_of(&mut self, text: &str) {
        let bytes = |text: &str| text.len() as u64;
        let how = Cut {
            cap: self.bounds.string as u64,
            measure: &bytes,
            stored: None,
        };
        let view = structure::cut(text, &how);
        self.rendered.scalars += 1;
        self.rendered.bytes += view.shown.bytes;
        self.rendered.chars += view.shown.chars;
        let text = serde_json::Value::from(view.text.into_owned());
        self.out.push_str(&text.to_string());
    }

    fn piece(&mut self, text: &str) {
        work::step_text(text);
        self.rendered.bytes += text.len();
        self.rendered.chars += text.chars().count();
        self.out.push_str(text);
    }
}
