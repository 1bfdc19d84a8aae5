//! A whole conversation, scanned once down to the fields of its messages.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::json::{FieldName, JsonFields};

/// A JSON value that may be a conversation.
pub(super) enum ScannedConversation<'a> {
    /// A list of objects.
    List(Vec<JsonFields<'a>>),
    /// An object, with the elements of its `messages` if it has them.
    Object(JsonFields<'a>, Option<Vec<JsonFields<'a>>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for ScannedConversation<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConversationVisitor(PhantomData))
    }
}

struct ConversationVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ConversationVisitor<'a> {
    type Value = ScannedConversation<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages, or an object around one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = seq.next_element()? {
            entries.push(entry);
        }
        Ok(ScannedConversation::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = JsonFields::default();
        let mut entries = None;
        while let Some(FieldName(name)) = map.next_key()? {
            if name == "messages" {
                entries = Some(map.next_value()?);
            } else {
                fields.push(name, map.next_value()?);
            }
        }
        Ok(ScannedConversation::Object(fields, entries))
    }
}
