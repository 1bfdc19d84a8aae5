//! Messages that stand on a line each.

use serde_json::value::RawValue;

use super::form::dialect_of_message;
use super::reader::Log;
use super::{Conversation, Form};
use crate::{chat, json, messages, responses};

/// One conversation whose messages stand on a line each, in any dialect.
#[derive(Default)]
pub(super) struct Loose {
    gatherer: responses::Gatherer,
    form: Option<Form>,
}

impl Log for Loose {
    fn line(&mut self, raw: &RawValue) {
        let Some(fields) = json::fields(raw) else {
            return;
        };
        let form = dialect_of_message(&fields);
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
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Conversation> {
        let mut read = Conversation::new(self.form.unwrap_or(Form::Chat));
        read.messages = self.gatherer.messages;
        vec![read]
    }
}
