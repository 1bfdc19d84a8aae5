//! Replaces single values of a JSON text; everything else stays identical.

use serde_json::value::RawValue;

use crate::json::{JsonFields, ObjectWriter};
use crate::scan::Span;
use crate::splice::edits::ByteEdits;

/// A text with replacements.
pub(super) struct JsonPatch<'a> {
    text: &'a str,
    edits: ByteEdits,
}

impl<'a> JsonPatch<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            edits: ByteEdits::default(),
        }
    }

    /// Replaces a value, which is a slice of the text.
    pub(super) fn replace(&mut self, value: &RawValue, with: &str) {
        let span = Span::of_slice(self.text, value.get());
        debug_assert_eq!(span.of(self.text), value.get());
        self.edits.replace(span, with);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    pub(super) fn end(self) -> String {
        let bytes = self.edits.apply(self.text);
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// An object with some of the original fields of another one.
pub(super) fn copied(fields: &JsonFields<'_>, take: impl Fn(&str) -> bool) -> ObjectWriter {
    let mut object = ObjectWriter::new();
    for name in fields.names().filter(|name| take(name)) {
        if let Some(value) = fields.get(name) {
            object = object.raw(name, value.get());
        }
    }
    object
}
