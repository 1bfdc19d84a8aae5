//! Marks: how something was spelled, if the model has no field for it.
//!
//! Readers leave marks so that writing restores the original; no writer sends one. See
//! [`trimtab_model::marks`].

use trimtab_model::{ExtraFields, RawJson, marks};

/// On a part or message: its `type` in the dialect.
pub(crate) const TYPE: &str = "trimtab:type";
/// On reasoning, a message or a call: the field that contained it.
pub(crate) const FIELD: &str = "trimtab:field";
/// On a message: it was part of the previous message.
pub(crate) const JOINED: &str = "trimtab:joined";
/// On a message or output without text: the original content field.
pub(crate) const CONTENT: &str = "trimtab:content";
/// The value of [`CONTENT`] if there was no such field.
const ABSENT: &str = "absent";
/// On an output: it names no call.
pub(crate) const NAMELESS: &str = "trimtab:nameless";
/// On an output: its content was a list although a string would do.
pub(crate) const LIST: &str = "trimtab:list";
/// On a call or output: its original JSON, because it has an unusual form.
pub(crate) const RAW: &str = "trimtab:raw";
/// On the first text of an answer: the fields of its message.
pub(crate) const ITEM: &str = "trimtab:item";

/// The value of mark `name`.
pub(crate) fn get<'a>(extra: &'a ExtraFields, name: &str) -> Option<&'a str> {
    extra
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// The value of mark `name`, if it is a text.
pub(crate) fn text(extra: &ExtraFields, name: &str) -> Option<String> {
    get(extra, name).and_then(|json| serde_json::from_str(json).ok())
}

/// True if mark `name` is there.
pub(crate) fn has(extra: &ExtraFields, name: &str) -> bool {
    get(extra, name).is_some()
}

/// True if the content field was missing.
pub(crate) fn is_absent(extra: &ExtraFields) -> bool {
    text(extra, CONTENT).as_deref() == Some(ABSENT)
}

/// Sets mark `name` to `value`.
pub(crate) fn set(extra: &mut ExtraFields, name: &str, value: RawJson) {
    extra.push((name.to_owned(), value));
}

/// Sets mark `name`, which needs no value.
pub(crate) fn set_flag(extra: &mut ExtraFields, name: &str) {
    set(extra, name, RawJson::of(&true));
}

/// Records that the content field was missing.
pub(crate) fn set_absent(extra: &mut ExtraFields) {
    set_text(extra, CONTENT, ABSENT);
}

/// True if `extra` has marks only, or nothing.
pub(crate) fn only_marks(extra: &ExtraFields) -> bool {
    extra.iter().all(|(name, _)| marks::is_mark(name))
}

/// Sets mark `name` to a text.
pub(crate) fn set_text(extra: &mut ExtraFields, name: &str, value: &str) {
    set(extra, name, RawJson::of(value));
}
