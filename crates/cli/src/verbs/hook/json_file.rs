//! Edits single members of a JSON file. All others keep their order and their bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object whose members keep their order and their bytes.
#[derive(Debug, Default)]
pub(super) struct OrderedObject(Vec<(String, Box<RawValue>)>);

impl OrderedObject {
    /// Parses an object.
    pub(super) fn parse(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }

    /// The JSON of a member.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut members = self.0.iter();
        let member = members.find(|(known, _)| known == name);
        member.map(|(_, value)| value.get())
    }

    /// Replaces a member, or adds it at the end.
    pub(super) fn set(&mut self, name: &str, json: String) -> serde_json::Result<()> {
        let value = RawValue::from_string(json)?;
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// True if it has no members.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As JSON, one member per line, indented for `depth` levels.
    pub(super) fn write(&self, depth: usize) -> String {
        let members = self.0.iter().map(|(name, value)| {
            let name = serde_json::Value::from(name.as_str());
            format!("{name}: {}", value.get())
        });
        block(members, ['{', '}'], depth)
    }
}

/// A list as JSON, one entry per line, indented for `depth` levels.
pub(super) fn write_list(entries: &[&str], depth: usize) -> String {
    block(
        entries.iter().map(|&entry| entry.to_owned()),
        ['[', ']'],
        depth,
    )
}

fn block(lines: impl Iterator<Item = String>, [open, close]: [char; 2], depth: usize) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return format!("{open}{close}");
    }
    let (outer, inner) = ("  ".repeat(depth), "  ".repeat(depth + 1));
    let lines = lines.join(&format!(",\n{inner}"));
    format!("{open}\n{inner}{lines}\n{outer}{close}")
}

impl<'de> Deserialize<'de> for OrderedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = OrderedObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(OrderedObject(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_bytes() {
        let mut object = OrderedObject::parse("{\"z\": [1,  2.50], \"a\": {\"b\":1}}").unwrap();
        object.set("m", "true".to_owned()).unwrap();
        object.set("a", "{}".to_owned()).unwrap();
        assert_eq!(
            object.write(0),
            "{\n  \"z\": [1,  2.50],\n  \"a\": {},\n  \"m\": true\n}"
        );
    }
}
