//! Reads JSON by borrowing and writes it by appending, without building a tree.
//!
//! A value is scanned once to find its end and unescaped only if its text is needed, so reading a
//! transcript costs about as much as checking its syntax.

pub(crate) mod cursor;
mod escape;
mod fields;
mod object;
mod pick;
pub(crate) mod span;
pub(crate) mod strings;
pub(crate) mod unscannable;

pub(crate) use fields::JsonFields;
pub(crate) use object::{ObjectWriter, array, quoted};
pub use pick::pick;
pub(crate) use pick::{elements, non_null, number, text_of, unquoted};

use std::borrow::Cow;

use serde::de::Deserialize;
use serde_json::value::RawValue;
use trimtab_model::RawJson;

/// The type of a value, known from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

/// The type of `raw`, which is known to be valid JSON.
pub(crate) fn type_of(raw: &RawValue) -> JsonType {
    match raw.get().as_bytes().first() {
        Some(b'"') => JsonType::Text,
        Some(b'{') => JsonType::Object,
        Some(b'[') => JsonType::List,
        Some(b't' | b'f') => JsonType::Bool,
        Some(b'n') => JsonType::Null,
        _ => JsonType::Number,
    }
}

/// The unescaped text, if `raw` is a string.
///
/// A lone surrogate, which some agents write when they cut a text, becomes U+FFFD.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        Some(Cow::Owned(escape::unescape(inner)))
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The unescaped text, owned.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    text(raw).map(Cow::into_owned)
}

/// The text of a string, or the JSON of anything else.
pub(crate) fn plain(raw: &RawValue) -> String {
    string(raw).unwrap_or_else(|| raw.get().to_owned())
}

/// The elements, if `raw` is a list.
pub(crate) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    parse(raw)
}

/// The fields, if `raw` is an object.
pub(crate) fn fields(raw: &RawValue) -> Option<JsonFields<'_>> {
    parse(raw)
}

/// Deserialises `raw` into a small type.
pub(crate) fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// An owned copy of `raw`.
pub(crate) fn owned(raw: &RawValue) -> RawJson {
    RawJson::from(raw.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn text_is_unescaped() {
        assert_eq!(text(&raw(r#""plain""#)).unwrap(), "plain");
        assert_eq!(
            text(&raw(r#""a\n\"b\" \u00e9""#)).unwrap(),
            "a\n\"b\" \u{e9}"
        );
        assert_eq!(text(&raw("12")), None);
        assert_eq!(text(&raw("null")), None);
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(text(&raw(r#""a\ud83d b""#)).unwrap(), "a\u{FFFD} b");
    }

    #[test]
    fn types_are_told_from_the_first_byte() {
        let types = ["null", "true", "-1", "\"\"", "[]", "{}"].map(|json| type_of(&raw(json)));
        let expected = [
            JsonType::Null,
            JsonType::Bool,
            JsonType::Number,
            JsonType::Text,
            JsonType::List,
            JsonType::Object,
        ];
        assert_eq!(types, expected);
    }
}
