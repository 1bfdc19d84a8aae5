//! Writes parts of a message in an opencode session.

use trimtab_model::{Call, Message, Output, Part, RawJson};

use super::form_writer::arguments;
use super::patch::copied;
use crate::json::{JsonFields, ObjectWriter, quoted};

/// Generates the ids of the parts of one message.
pub(super) struct PartIds<'a> {
    /// The id of the message.
    pub(super) message: &'a str,
    /// The id of the session.
    pub(super) session: &'a str,
    /// Distinguishes messages.
    pub(super) number: usize,
}

impl PartIds<'_> {
    /// Completes the part at `place` in its message. Parts are ordered by their ids.
    fn complete(&self, part: ObjectWriter, place: usize) -> String {
        let stem = self.message.split_once('_').map_or("", |(_, stem)| stem);
        // The stem of the message's id comes first, so that parts sort like their messages.
        let id = format!("prt_{stem}{:06}{place:06}", self.number);
        part.text("id", &id)
            .text("messageID", self.message)
            .text("sessionID", self.session)
            .end()
    }
}

/// The parts of a message, with outputs in their calls. `info` contains the times.
pub(super) fn parts(
    message: &Message,
    outputs: &[&Output],
    ids: &PartIds<'_>,
    info: &JsonFields<'_>,
) -> Vec<String> {
    let time = info.fields("time").and_then(|time| time.number("created"));
    let time = time.unwrap_or_default();
    let spelled = message.parts.iter().map(|part| match part {
        Part::Text(text) => plain("text", &text.text),
        Part::Reasoning(thought) => {
            let time = ObjectWriter::new().raw("start", &time.to_string()).end();
            plain("reasoning", &thought.text).raw("time", &time)
        }
        Part::Media(media) => given(&media.raw),
        Part::Opaque(opaque) => given(&opaque.raw),
        // An output without its call has no place in this form, so its text is kept.
        Part::Output(output) => plain("text", &output.text()),
        Part::Call(call) => {
            let output = outputs.iter().find(|output| output.call_id == call.id);
            tool(call, output.copied(), time)
        }
    });
    spelled
        .enumerate()
        .map(|(place, part)| ids.complete(part, place))
        .collect()
}

fn plain(type_name: &str, text: &str) -> ObjectWriter {
    ObjectWriter::new()
        .text("type", type_name)
        .text("text", text)
}

/// The original part without its ids, because it may be in another message now.
fn given(raw: &RawJson) -> ObjectWriter {
    let fields = serde_json::from_str::<JsonFields<'_>>(raw.as_str()).unwrap_or_default();
    copied(&fields, |name| {
        !matches!(name, "id" | "messageID" | "sessionID")
    })
}

fn tool(call: &Call, output: Option<&Output>, time: u64) -> ObjectWriter {
    let input = arguments(call);
    let state = |status: &str| {
        ObjectWriter::new()
            .text("status", status)
            .raw("input", &input)
    };
    let start = ObjectWriter::new().raw("start", &time.to_string());
    let state = match output {
        // The form has no other state for a call without an output.
        None => state("running").raw("time", &start.end()),
        Some(output) => {
            let done = start.raw("end", &time.to_string()).end();
            let text = quoted(&output.text());
            if output.is_error {
                state("error").raw("error", &text).raw("time", &done)
            } else {
                state("completed")
                    .raw("output", &text)
                    .text("title", &call.name)
                    .raw("metadata", "{}")
                    .raw("time", &done)
            }
        }
    };
    ObjectWriter::new()
        .text("type", "tool")
        .text("callID", &call.id)
        .text("tool", &call.name)
        .raw("state", &state.end())
}
