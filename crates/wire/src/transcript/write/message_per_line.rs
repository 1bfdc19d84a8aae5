//! Writes conversations with one message per line.

use trimtab_model::{Message, Output, RawJson, Role};

use super::form_writer::{FormWriter, NewMessage};
use crate::json::{ObjectWriter, array};
use crate::transcript::TranscriptForm;
use crate::{chat, messages, responses};

/// Writes messages of a dialect. Its writers are lossless, so changed messages are rewritten.
pub(super) struct MessagePerLineWriter(pub(super) TranscriptForm);

impl FormWriter for MessagePerLineWriter {
    fn show(&self, _: &str, _: &[&Output]) -> Option<String> {
        None
    }

    fn write(&mut self, new: &NewMessage<'_>) -> Vec<String> {
        let message = new.message;
        let one = std::slice::from_ref(message);
        let written = match self.0 {
            TranscriptForm::Messages if message.role == Role::System => {
                // `write_request` would move it to the `system` field, which a line does not have.
                return vec![system(message)];
            }
            TranscriptForm::Messages => messages::write_request(one).messages,
            TranscriptForm::Responses => responses::write_input(one),
            _ => chat::write_message(message),
        };
        let text = |raw: RawJson| raw.as_str().to_owned();
        written.into_iter().map(text).collect()
    }
}

/// A system message as a message among others.
fn system(message: &Message) -> String {
    ObjectWriter::new()
        .text("role", "system")
        .raw(
            "content",
            &array(message.parts.iter().map(messages::write_part)),
        )
        .end()
}
