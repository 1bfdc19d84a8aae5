//! The plain sizes of a message, the input of every design's heuristic.

use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Call, Media, Message, Opaque, Part, part, work};

/// The length of some text in both units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// UTF-8 bytes.
    pub bytes: u32,
    /// Unicode scalar values.
    pub chars: u32,
}

/// The sizes of a message, or the sum over several. Sums stop at `u32::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSizes {
    /// Text, and the text of outputs.
    pub text: Length,
    /// Readable reasoning.
    pub reasoning: Length,
    /// Names of called tools.
    pub names: Length,
    /// Arguments of calls.
    pub arguments: Length,
    /// Bytes of the tags of media and unknown parts in the text projection.
    pub tags: u32,
    /// Original bytes of media and unknown parts.
    pub raw: u32,
    /// Bytes of the ids of calls.
    pub call_ids: u32,
    /// Bytes of the ids that outputs answer.
    pub output_ids: u32,
    /// Number of calls.
    pub calls: u32,
    /// Number of outputs.
    pub outputs: u32,
    /// Number of images, documents and sounds.
    pub media: u32,
    /// Number of messages.
    pub messages: u32,
    /// Names, descriptions and schemas of tool definitions.
    pub tool_fields: Length,
    /// Number of tool definitions.
    pub tools: u32,
}

/// A countable item of a message.
pub(super) enum MeasuredItem<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Call(&'a Call),
    /// An output; its content follows as separate items.
    Output(&'a str),
    Media(&'a Media),
    Opaque(&'a Opaque),
}

/// Visits the parts of a message and the parts of its outputs.
pub(super) fn walk<'a>(parts: &'a [Part], see: &mut impl FnMut(MeasuredItem<'a>)) {
    work::step(parts.len());
    for part in parts {
        match part {
            Part::Text(text) => see(MeasuredItem::Text(&text.text)),
            Part::Reasoning(reasoning) => see(MeasuredItem::Reasoning(&reasoning.text)),
            Part::Media(media) => see(MeasuredItem::Media(media)),
            Part::Call(call) => see(MeasuredItem::Call(call)),
            Part::Opaque(opaque) => see(MeasuredItem::Opaque(opaque)),
            Part::Output(output) => {
                see(MeasuredItem::Output(&output.call_id));
                walk(&output.content, see);
            }
        }
    }
}

impl Length {
    /// The length of a text.
    pub fn of(text: &str) -> Self {
        work::step_text(text);
        // Most texts are ASCII, and that is faster to tell than to count characters.
        let chars = if text.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        };
        Self {
            bytes: clamped(text.len()),
            chars: clamped(chars),
        }
    }
}

impl MessageSizes {
    /// All bytes that a request must carry for it, without JSON syntax.
    pub fn bytes(&self) -> u64 {
        let texts = [self.text, self.reasoning, self.names, self.arguments];
        let texts: u64 = texts.iter().map(|text| u64::from(text.bytes)).sum();
        texts + u64::from(self.raw) + u64::from(self.call_ids) + u64::from(self.output_ids)
    }

    /// The sizes of one message.
    pub fn of(message: &Message) -> Self {
        let mut sizes = Self::of_parts(&message.parts);
        sizes.messages = 1;
        sizes
    }

    pub(super) fn of_parts(parts: &[Part]) -> Self {
        let mut sizes = Self::default();
        walk(parts, &mut |item| sizes.add_item(&item));
        // Only one design counts tags, and they come from the text projection, which `walk` does
        // not see.
        sizes.tags = tags(parts);
        sizes
    }

    /// Adds the JSON of tool definitions of any dialect: a list, or one definition.
    pub(super) fn add_tools(&mut self, json: &str) {
        let tools = serde_json::from_str(json).unwrap_or(Value::Null);
        let tools = match tools {
            Value::Array(tools) => tools,
            tool => vec![tool],
        };
        work::step(tools.len());
        for tool in tools.iter().filter(|tool| tool.is_object()) {
            self.tools = self.tools.saturating_add(1);
            for value in [
                field(tool, "name"),
                field(tool, "description"),
                schema(tool),
            ] {
                self.tool_fields += match value {
                    Value::Null => Length::default(),
                    Value::String(text) => Length::of(text),
                    // The length of compact JSON does not depend on the order of its keys.
                    schema => Length::of(&schema.to_string()),
                };
            }
        }
    }

    pub(super) fn add_item(&mut self, item: &MeasuredItem<'_>) {
        match item {
            MeasuredItem::Text(text) => self.text += Length::of(text),
            MeasuredItem::Reasoning(text) => self.reasoning += Length::of(text),
            MeasuredItem::Media(media) => {
                self.media = self.media.saturating_add(1);
                self.raw = self.raw.saturating_add(clamped(media.raw.as_str().len()));
            }
            MeasuredItem::Opaque(opaque) => {
                self.raw = self.raw.saturating_add(clamped(opaque.raw.as_str().len()));
            }
            MeasuredItem::Call(call) => {
                self.calls = self.calls.saturating_add(1);
                self.call_ids = self.call_ids.saturating_add(clamped(call.id.len()));
                self.names += Length::of(&call.name);
                self.arguments += Length::of(&call.arguments);
            }
            MeasuredItem::Output(id) => {
                self.outputs = self.outputs.saturating_add(1);
                self.output_ids = self.output_ids.saturating_add(clamped(id.len()));
            }
        }
    }
}

/// Bytes of the tags in the text projection of some parts.
fn tags(parts: &[Part]) -> u32 {
    parts.iter().fold(0, |sum, part| {
        let tag = match part {
            Part::Media(_) | Part::Opaque(_) => {
                clamped(part::project(std::slice::from_ref(part)).len())
            }
            Part::Output(output) => tags(&output.content),
            Part::Text(_) | Part::Reasoning(_) | Part::Call(_) => 0,
        };
        sum.saturating_add(tag)
    })
}

/// A size, clamped to its stored type.
pub(super) fn clamped(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

impl AddAssign for Length {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.chars = self.chars.saturating_add(other.chars);
    }
}

impl SubAssign for Length {
    fn sub_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.chars = self.chars.saturating_sub(other.chars);
    }
}

impl MessageSizes {
    fn combine(
        &mut self,
        other: &Self,
        lengths: fn(&mut Length, Length),
        number: fn(u32, u32) -> u32,
    ) {
        lengths(&mut self.text, other.text);
        lengths(&mut self.reasoning, other.reasoning);
        lengths(&mut self.names, other.names);
        lengths(&mut self.arguments, other.arguments);
        self.tags = number(self.tags, other.tags);
        self.raw = number(self.raw, other.raw);
        self.call_ids = number(self.call_ids, other.call_ids);
        self.output_ids = number(self.output_ids, other.output_ids);
        self.calls = number(self.calls, other.calls);
        self.outputs = number(self.outputs, other.outputs);
        self.media = number(self.media, other.media);
        self.messages = number(self.messages, other.messages);
        lengths(&mut self.tool_fields, other.tool_fields);
        self.tools = number(self.tools, other.tools);
    }
}

impl AddAssign for MessageSizes {
    fn add_assign(&mut self, other: Self) {
        self.combine(&other, Length::add_assign, u32::saturating_add);
    }
}

impl SubAssign for MessageSizes {
    fn sub_assign(&mut self, other: Self) {
        self.combine(&other, Length::sub_assign, u32::saturating_sub);
    }
}

/// A field of a tool definition, which is one level deeper in Chat Completions.
fn field<'a>(tool: &'a Value, name: &str) -> &'a Value {
    let outer = tool.get(name);
    outer
        .or_else(|| tool.get("function")?.get(name))
        .unwrap_or(&Value::Null)
}

fn schema(tool: &Value) -> &Value {
    match field(tool, "parameters") {
        Value::Null => field(tool, "input_schema"),
        schema => schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MediaKind, Output, RawJson, Role};

    #[test]
    fn sizes_see_every_part_once() {
        let mut output = Output::new("c1", "añb");
        output.content.push(Part::Media(Media {
            kind: MediaKind::Image,
            raw: RawJson::of(&1),
        }));
        let message = Message::new(
            Role::Assistant,
            vec![
                Part::text("né"),
                Part::reasoning("hm"),
                Part::Call(Call::new("id1", "rún", "{}")),
                Part::Output(output),
            ],
        );
        let sizes = MessageSizes::of(&message);
        assert_eq!(sizes.text, Length { bytes: 7, chars: 5 });
        assert_eq!(sizes.reasoning, Length { bytes: 2, chars: 2 });
        assert_eq!(sizes.names, Length { bytes: 4, chars: 3 });
        assert_eq!(sizes.arguments.bytes, 2);
        assert_eq!((sizes.call_ids, sizes.output_ids), (3, 2));
        assert_eq!(
            (sizes.calls, sizes.outputs, sizes.media, sizes.messages),
            (1, 1, 1, 1)
        );
        assert_eq!((sizes.tags, sizes.raw, sizes.bytes()), (7, 1, 21));
        assert_eq!(
            message.text().len(),
            (sizes.text.bytes + sizes.tags) as usize,
            "text and tags are the projection"
        );
    }

    #[test]
    fn added_sizes_can_be_subtracted() {
        let (one, two) = (
            MessageSizes::of(&Message::user("one")),
            MessageSizes::of(&Message::user("two, too")),
        );
        let mut sum = one;
        sum += two;
        sum -= one;
        assert_eq!(sum, two);
    }
}
