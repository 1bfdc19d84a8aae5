//! JSON that is kept verbatim and never interpreted.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A piece of JSON kept as its original text: key order, number spelling and escapes survive.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Accepts `text` if it is one JSON value.
    ///
    /// ```
    /// # use trimtab_model::RawJson;
    /// assert_eq!(RawJson::parse("1.50").unwrap().as_str(), "1.50");
    /// assert!(RawJson::parse("{").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self)
    }

    /// The JSON of a serialisable value; `null` if it cannot be written as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        serde_json::value::to_raw_value(value)
            .map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed value.
    pub fn to_value(&self) -> serde_json::Value {
        // The text was checked when the value was created, so this fails only for JSON that a
        // `Value` cannot hold: very deep nesting, or a number out of range.
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

// Compares texts, not values: two spellings of one value are different bytes on the wire.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Serialised as a string that contains the JSON text: parts are an internally tagged enum, which
/// cannot contain raw JSON in any serde format.
impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Unknown fields of a message or part, in their original order.
pub type ExtraFields = Vec<(String, RawJson)>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Media, MediaKind, Message, Part, Role};

    #[test]
    fn a_message_with_raw_json_is_read_back() {
        let raw = RawJson::parse(r#"{"type":"image","n":1.50}"#).unwrap();
        let mut message = Message::new(
            Role::User,
            vec![Part::Media(Media {
                kind: MediaKind::Image,
                raw: raw.clone(),
            })],
        );
        message.meta.extra.push(("x".to_owned(), raw));
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
    }
}
