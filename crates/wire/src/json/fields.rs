//! The fields of an object in order, with unparsed values.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use trimtab_model::{ExtraFields, marks};

use super::{JsonType, owned, string, text, type_of};

/// The fields of an object, in their original order.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonFields<'a> {
    /// The value of `key`; the last one if there are duplicates, as in every JSON parser.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    }

    /// True if there is a field `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Removes `key` and returns its value. Overridden duplicates are removed too: as unknown
    /// fields they would be written after it and override it in turn.
    pub(crate) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let last = self.get(key)?;
        self.0.retain(|(name, _)| name != key);
        Some(last)
    }

    /// Removes `key` if `wanted` accepts it.
    pub(crate) fn take_if<T>(
        &mut self,
        key: &str,
        wanted: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Option<T> {
        let found = wanted(self.get(key)?)?;
        self.take(key);
        Some(found)
    }

    /// Removes `key` if it is a string.
    pub(crate) fn take_string(&mut self, key: &str) -> Option<String> {
        self.take_if(key, string)
    }

    /// Removes `key` if it is `true`; `false` stays an unknown field, so that it is written back.
    pub(crate) fn take_true(&mut self, key: &str) -> bool {
        self.take_if(key, |raw| (raw.get() == "true").then_some(()))
            .is_some()
    }

    /// The text of `key`, if it is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(text)
    }

    /// The text of a field, owned.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        self.get(key).and_then(string)
    }

    /// The fields of `key`, if it is an object.
    pub(crate) fn fields(&self, key: &str) -> Option<JsonFields<'a>> {
        self.get(key).and_then(super::fields)
    }

    /// The elements of `key`, if it is a list.
    pub(crate) fn list(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(super::list)
    }

    /// The number in `key`, if it is one.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(super::parse)
    }

    /// True if `key` is there and true.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "true")
    }

    /// The type of the value of `key`.
    pub(crate) fn type_of(&self, key: &str) -> Option<JsonType> {
        self.get(key).map(type_of)
    }

    /// True if no field is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// The remaining fields, owned and without overridden duplicates. Those whose names begin like
    /// our marks are renamed, so that they are not taken for marks.
    pub(crate) fn into_extra(self) -> ExtraFields {
        // From the end, so that the last of several fields with one name wins; a set keeps this
        // linear.
        let mut seen = HashSet::new();
        let last = |(name, _): &&(Cow<'a, str>, _)| seen.insert(name.clone());
        let mut extra: ExtraFields = (self.0.iter().rev().filter(last))
            .map(|(name, value)| (marks::kept_name(name).into_owned(), owned(value)))
            .collect();
        extra.reverse();
        extra
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonFieldsVisitor(PhantomData))
    }
}

struct JsonFieldsVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for JsonFieldsVisitor<'a> {
    type Value = JsonFields<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields<'a>, A::Error> {
        let mut fields = Vec::with_capacity(4);
        while let Some(FieldName(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(JsonFields(fields))
    }
}

/// A field's name, borrowed unless it contains escapes.
#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_spelling() {
        let json = r#"{"z": 1.50, "a": {"x" : 1}, "\u006e": null}"#;
        let mut fields: JsonFields = serde_json::from_str(json).unwrap();
        assert_eq!(fields.names().collect::<Vec<_>>(), ["z", "a", "n"]);
        assert!(fields.take("a").is_some());
        let extra = fields.into_extra();
        let spelled: Vec<_> = extra
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(spelled, [("z", "1.50"), ("n", "null")]);
    }

    #[test]
    fn the_last_of_a_name_is_the_one_that_counts() {
        let mut fields: JsonFields = serde_json::from_str(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        assert_eq!(fields.take("a").unwrap().get(), "3");
        assert_eq!(fields.names().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn false_stays_where_it_is() {
        let mut fields: JsonFields = serde_json::from_str(r#"{"a": false, "b": true}"#).unwrap();
        assert!(!fields.take_true("a") && fields.take_true("b"));
        assert!(fields.has("a") && !fields.has("b"));
    }
}
