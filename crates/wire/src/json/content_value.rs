//! The value of a content field, parsed at once in simple cases.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{FieldName, JsonFields};

/// The value of a content field.
///
/// Most of a transcript is content. Scanning it first and parsing it later would cost another pass,
/// so the usual forms are parsed at once; a reader that meets another form starts again with
/// [`ContentValue::Raw`].
#[derive(Debug)]
pub(crate) enum ContentValue<'a> {
    /// Not parsed yet.
    Raw(&'a RawValue),
    /// Null.
    Null,
    /// An unescaped text.
    Text(String),
    /// A list of objects.
    List(Vec<ContentEntry<'a>>),
}

/// An object whose content field was parsed at once.
#[derive(Debug)]
pub(crate) struct ContentEntry<'a> {
    /// All other fields.
    pub(crate) fields: JsonFields<'a>,
    /// The content field, if there is one.
    pub(crate) content: Option<ContentValue<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContentEntryVisitor(PhantomData))
    }
}

struct ContentEntryVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ContentEntryVisitor<'a> {
    type Value = ContentEntry<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentEntry<'a>, A::Error> {
        let mut entry = ContentEntry {
            fields: JsonFields::default(),
            content: None,
        };
        while let Some(FieldName(name)) = map.next_key()? {
            if name == "content" {
                entry.content = Some(map.next_value()?);
            } else {
                entry.fields.push(name, map.next_value()?);
            }
        }
        Ok(entry)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentValueVisitor(PhantomData))
    }
}

struct ContentValueVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ContentValueVisitor<'a> {
    type Value = ContentValue<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list of objects or null")
    }

    fn visit_unit<E>(self) -> Result<ContentValue<'a>, E> {
        Ok(ContentValue::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<ContentValue<'a>, E> {
        Ok(ContentValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ContentValue<'a>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = seq.next_element()? {
            entries.push(entry);
        }
        Ok(ContentValue::List(entries))
    }
}
