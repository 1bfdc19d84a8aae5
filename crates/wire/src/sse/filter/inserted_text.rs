//! Writes our own part into a stream.

use trimtab_model::Dialect;

use super::StreamRewriter;
use crate::json::{ObjectWriter, array, quoted};

/// The id prefix of our own parts in Responses.
const ITEM: &str = "msg_trimtab_";

impl StreamRewriter {
    pub(super) fn insert_text(&mut self, text: &str, out: &mut Vec<u8>) {
        match self.dialect {
            Dialect::Chat => self.say_in_chat(text, out),
            Dialect::Messages => self.say_in_messages(text, out),
            Dialect::Responses => self.say_in_responses(text, out),
        }
    }

    fn say_in_chat(&mut self, text: &str, out: &mut Vec<u8>) {
        let delta = ObjectWriter::new().text("content", text).end();
        let choice = ObjectWriter::new().raw("index", "0").raw("delta", &delta);
        let choice = choice.raw("finish_reason", "null").end();
        let chunk = ObjectWriter::new()
            .maybe("id", self.id.as_deref().map(quoted))
            .text("object", "chat.completion.chunk")
            .raw("choices", &array([choice]));
        write(None, &chunk.end(), out);
    }

    fn say_in_messages(&mut self, text: &str, out: &mut Vec<u8>) {
        let index = self.next_index.to_string();
        self.next_index += 1;
        let event = |name: &str| ObjectWriter::new().text("type", name).raw("index", &index);
        let part = ObjectWriter::new()
            .text("type", "text")
            .text("text", "")
            .end();
        let delta = ObjectWriter::new()
            .text("type", "text_delta")
            .text("text", text);
        let start = event("content_block_start").raw("content_block", &part);
        write(Some("content_block_start"), &start.end(), out);
        let delta = event("content_block_delta").raw("delta", &delta.end());
        write(Some("content_block_delta"), &delta.end(), out);
        write(
            Some("content_block_stop"),
            &event("content_block_stop").end(),
            out,
        );
    }

    fn say_in_responses(&mut self, text: &str, out: &mut Vec<u8>) {
        let index = self.next_index;
        self.next_index += 1;
        let id = format!("{ITEM}{index}");
        let part = |text: &str| {
            let part = ObjectWriter::new()
                .text("type", "output_text")
                .text("text", text);
            part.raw("annotations", "[]").end()
        };
        let item = |status: &str, content: &[String]| {
            let item = ObjectWriter::new().text("type", "message").text("id", &id);
            let item = item.text("status", status).text("role", "assistant");
            item.raw("content", &array(content)).end()
        };
        let done = item("completed", &[part(text)]);
        // Clients of this dialect expect all events of an item, from its start to its end.
        let mut send = |name: &str, field: &str, json: &str, inside: bool| {
            let sequence = self.next_sequence.unwrap_or(0);
            let event = ObjectWriter::new()
                .text("type", name)
                .raw("sequence_number", &sequence.to_string())
                .raw("output_index", &index.to_string());
            let event = if inside {
                event.text("item_id", &id).raw("content_index", "0")
            } else {
                event
            };
            self.next_sequence = Some(sequence + 1);
            write(Some(name), &event.raw(field, json).end(), out);
        };
        let quoted = quoted(text);
        let begun = item("in_progress", &[]);
        send("response.output_item.added", "item", &begun, false);
        send("response.content_part.added", "part", &part(""), true);
        send("response.output_text.delta", "delta", &quoted, true);
        send("response.output_text.done", "text", &quoted, true);
        send("response.content_part.done", "part", &part(text), true);
        send("response.output_item.done", "item", &done, false);
        // The last event of the answer repeats all parts, so it must have this one too.
        self.shown_parts.push(done);
    }
}

fn write(event: Option<&str>, json: &str, out: &mut Vec<u8>) {
    if let Some(event) = event {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(event.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(json.as_bytes());
    out.extend_from_slice(b"\n\n");
}
