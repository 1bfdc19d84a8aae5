//! The lists and objects that change.

use std::collections::BTreeMap;

use super::edits::ByteEdits;
use super::members::ContainerMembers;
use crate::json::cursor::JsonCursor;
use crate::json::quoted;
use crate::scan::Span;

/// The lists and objects that change, by their positions.
#[derive(Debug)]
pub(crate) struct Containers<'a> {
    text: &'a str,
    /// The list of messages, which is most of the body.
    list: Span,
    changed: BTreeMap<Span, ContainerMembers>,
}

impl<'a> Containers<'a> {
    pub(crate) fn new(text: &'a str, list: Span) -> Self {
        Self {
            text,
            list,
            changed: BTreeMap::new(),
        }
    }

    /// The members of the list or object at `container`.
    pub(crate) fn at(&mut self, container: Span) -> &mut ContainerMembers {
        let (text, list) = (self.text, self.list);
        self.changed
            .entry(container)
            .or_insert_with(|| ContainerMembers::read(text, container, list))
    }

    /// Removes the element of `list` that contains `span`.
    pub(crate) fn drop_element(&mut self, list: Span, span: Span) {
        let members = self.at(list);
        if let Some(index) = members.position(span) {
            members.drop_members(index..index + 1);
        }
    }

    /// Removes every field `name` of `object`.
    pub(crate) fn drop_field(&mut self, object: Span, name: &str) {
        // Every one: the last of several fields with one name counts, and removing only that one
        // would bring an earlier one back.
        for field in fields(self.text, object, self.list) {
            if field.name == name {
                self.drop_element(object, field.span);
            }
        }
    }

    /// Adds a field to `object`, after all others.
    pub(crate) fn add_field(&mut self, object: Span, name: &str, json: &str) {
        let members = self.at(object);
        members.add(members.len(), format!("{}:{json}", quoted(name)));
    }

    pub(crate) fn write(self, edits: &mut ByteEdits) {
        for members in self.changed.into_values() {
            members.write(edits);
        }
    }
}

/// A field of an object.
pub(crate) struct ObjectField {
    pub(crate) name: String,
    /// The field, including its name.
    pub(crate) span: Span,
    pub(crate) value: Span,
}

/// The fields of the object at `object`; a value at `known` is not scanned again.
pub(crate) fn fields(text: &str, object: Span, known: Span) -> Vec<ObjectField> {
    let mut found = Vec::new();
    let mut cursor = JsonCursor::at(text, object.start as usize);
    if cursor.peek() != Some(b'{') {
        return found;
    }
    let Ok(mut open) = cursor.open() else {
        return found;
    };
    while let Ok(Some(key)) = cursor.field(&mut open) {
        let Ok(value) = cursor.value_or(known) else {
            break;
        };
        found.push(ObjectField {
            name: key.name.into_owned(),
            span: Span::new(key.start, value.end as usize),
            value,
        });
    }
    found
}

/// The value of the last field `name` of the object at `object`; a value at `known` is not scanned
/// again.
pub(crate) fn value_of(text: &str, object: Span, name: &str, known: Span) -> Option<Span> {
    let fields = fields(text, object, known);
    let found = fields.into_iter().rfind(|field| field.name == name);
    found.map(|field| field.value)
}
