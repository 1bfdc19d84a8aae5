//! Conversations with one message per line.

use serde_json::value::RawValue;

use super::form::dialect_of_message;
use super::reader::Log;
use super::thread::{Origin, Read, came};
use super::{Conversation, Form};
use crate::json::Fields;
use crate::{chat, messages, responses};

/// A conversation with one message per line, in any dialect.
#[derive(Default)]
pub(super) struct Loose {
    gatherer: responses::Gatherer,
    form: Option<Form>,
    origins: Vec<Origin>,
}

impl Log for Loose {
    fn line(&mut self, unit: usize, line: &str) -> Result<(), serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(line)?;
        let fields: Fields = serde_json::from_str(line)?;
        let form = dialect_of_message(&fields);
        let before = self.gatherer.messages.len();
        self.form = self.form.or(form);
        match form.or(self.form) {
            Some(Form::Responses) => self.gatherer.push(raw),
            Some(Form::Messages) => {
                self.gatherer.pause();
                self.gatherer.messages.extend(messages::from_fields(fields));
            }
            _ if fields.has("role") => {
                self.gatherer.pause();
                self.gatherer.messages.push(chat::from_fields(fields));
            }
            _ => return Ok(()),
        }
        self.origins
            .extend(came(&self.gatherer.messages, before, unit));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Read> {
        let mut read = Conversation::new(self.form.unwrap_or(Form::Chat));
        read.messages = self.gatherer.messages;
        vec![Read {
            conversation: read,
            origins: self.origins,
        }]
    }
}
