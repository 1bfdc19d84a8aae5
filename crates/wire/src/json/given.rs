//! The value of a content field, parsed at once in simple cases.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fields, Name};

/// The value of a content field.
///
/// Most of a transcript is content. Scanning it first and parsing it later would cost another pass,
/// so the usual forms are parsed at once; a reader that meets another form starts again with
/// [`Given::Raw`].
#[derive(Debug)]
pub(crate) enum Given<'a> {
    /// Not parsed yet.
    Raw(&'a RawValue),
    /// Null.
    Null,
    /// An unescaped text.
    Text(String),
    /// A list of objects.
    List(Vec<Entry<'a>>),
}

/// An object whose content field was parsed at once.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// All other fields.
    pub(crate) fields: Fields<'a>,
    /// The content field, if there is one.
    pub(crate) content: Option<Given<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor(PhantomData))
    }
}

struct EntryVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for EntryVisitor<'a> {
    type Value = Entry<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'a>, A::Error> {
        let mut entry = Entry {
            fields: Fields::default(),
            content: None,
        };
        while let Some(Name(name)) = map.next_key()? {
            if name == "content" {
                entry.content = Some(map.next_value()?);
            } else {
                entry.fields.push(name, map.next_value()?);
            }
        }
        Ok(entry)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Given<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor(PhantomData))
    }
}

struct GivenVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for GivenVisitor<'a> {
    type Value = Given<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list of objects or null")
    }

    fn visit_unit<E>(self) -> Result<Given<'a>, E> {
        Ok(Given::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<Given<'a>, E> {
        Ok(Given::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Given<'a>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = seq.next_element()? {
            entries.push(entry);
        }
        Ok(Given::List(entries))
    }
}
