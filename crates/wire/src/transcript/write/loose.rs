//! Writes conversations with one message per line.

use trimtab_model::{Message, Output, RawJson, Role};

use super::pen::{Names, New, Pen};
use crate::json::{Object, array};
use crate::transcript::Form;
use crate::{chat, messages, responses};

/// Writes messages of a dialect. Its writers are lossless, so changed messages are rewritten.
pub(super) struct Loose(pub(super) Form);

impl Pen for Loose {
    fn show(&self, _: &str, _: &[&Output]) -> Option<String> {
        None
    }

    fn write(&mut self, run: &[New<'_>], _: &Names<'_>) -> Vec<String> {
        let one = |new: &New<'_>| self.lines(new.message);
        run.iter().flat_map(one).collect()
    }
}

impl Loose {
    fn lines(&self, message: &Message) -> Vec<String> {
        let one = std::slice::from_ref(message);
        let written = match self.0 {
            Form::Messages if message.role == Role::System => return vec![system(message)],
            Form::Messages => messages::write_request(one).messages,
            Form::Responses => responses::write_input(one),
            _ => chat::write_message(message),
        };
        let text = |raw: RawJson| raw.as_str().to_owned();
        written.into_iter().map(text).collect()
    }
}

/// A system message as a message among others.
fn system(message: &Message) -> String {
    Object::new()
        .text("role", "system")
        .raw(
            "content",
            &array(message.parts.iter().map(messages::write_part)),
        )
        .end()
}
