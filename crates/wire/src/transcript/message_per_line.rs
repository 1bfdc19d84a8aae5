//! Conversations with one message per line.

use serde_json::value::RawValue;

use super::form::dialect_of_message;
use super::reader::TranscriptLog;
use super::thread::{MessageOrigin, ReadConversation, note_origins};
use super::{Conversation, TranscriptForm};
use crate::json::JsonFields;
use crate::{chat, messages, responses};

/// A conversation with one message per line, in any dialect.
#[derive(Default)]
pub(super) struct MessagePerLine {
    gatherer: responses::MessageGatherer,
    form: Option<TranscriptForm>,
    origins: Vec<MessageOrigin>,
}

impl TranscriptLog for MessagePerLine {
    fn line(&mut self, unit: usize, line: &str) -> Result<(), serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(line)?;
        let fields: JsonFields = serde_json::from_str(line)?;
        let form = dialect_of_message(&fields);
        let before = self.gatherer.messages.len();
        // The first line that has a feature of one dialect decides for lines that fit all of them.
        self.form = self.form.or(form);
        match form.or(self.form) {
            Some(TranscriptForm::Responses) => self.gatherer.push(raw),
            Some(TranscriptForm::Messages) => {
                self.gatherer.end_answer();
                self.gatherer.messages.extend(messages::from_fields(fields));
            }
            _ if fields.has("role") => {
                self.gatherer.end_answer();
                self.gatherer.messages.push(chat::from_fields(fields));
            }
            _ => return Ok(()),
        }
        self.origins
            .extend(note_origins(&self.gatherer.messages, before, unit));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<ReadConversation> {
        let mut read = Conversation::new(self.form.unwrap_or_default());
        read.messages = self.gatherer.messages;
        vec![ReadConversation {
            conversation: read,
            origins: self.origins,
            taken_back: Vec::new(),
        }]
    }
}
