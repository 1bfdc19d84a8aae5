//! Shows one message in full.

use std::fmt::Write as _;

use trimtab_model::{Message, Part};

use crate::ui::style;
use crate::ui::visible::visible_lines;

/// The message at position `at`, part by part.
pub(super) fn text(at: usize, message: &Message) -> String {
    let strong = style::STRONG;
    let role = format!("{:?}", message.role).to_lowercase();
    let mut text = format!("{strong}message {at}, {role}{strong:#}\n");
    for part in &message.parts {
        let (head, body) = shown(part);
        let dim = style::DIM;
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{dim}[{}]{dim:#}", visible_lines(&head));
        let body = visible_lines(&body);
        text.push_str(&body);
        if !body.is_empty() && !body.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// The kind of a part, and its text.
fn shown(part: &Part) -> (String, String) {
    match part {
        Part::Text(text) => ("text".to_owned(), text.text.clone()),
        Part::Reasoning(thought) => ("thought".to_owned(), thought.text.clone()),
        Part::Call(call) => (
            format!("call {} of {}", call.id, call.name),
            call.arguments.clone(),
        ),
        Part::Output(output) => (
            format!("output of {}", output.call_id),
            output.text().into_owned(),
        ),
        Part::Media(media) => (format!("{:?}", media.kind).to_lowercase(), String::new()),
        Part::Opaque(opaque) => ("other".to_owned(), opaque.raw.as_str().to_owned()),
    }
}
