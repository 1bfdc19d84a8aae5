//! Helpers for the tests of this folder.

use proptest::prelude::*;
use trimtab_model::{Dialect, Message, Part, Role};
use trimtab_testkit::bodies::{JsonStyle, talk};

/// A body that providers accept, in any dialect and spelling.
pub(crate) fn body(max: usize) -> impl Strategy<Value = (Dialect, String)> {
    let dialect = prop::sample::select(Dialect::ALL.to_vec());
    (dialect, talk(max), any::<u64>())
        .prop_map(|(dialect, talk, style)| (dialect, talk.body(dialect, JsonStyle(style))))
}

/// What matters of some messages: who says what, part by part.
pub(crate) fn gist(messages: &[Message]) -> Vec<(Role, String)> {
    let mut gist = Vec::new();
    for message in messages {
        for part in &message.parts {
            let text = match part {
                Part::Text(text) => format!("text {}", text.text),
                Part::Reasoning(reasoning) => format!("thought {}", reasoning.text),
                Part::Call(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
                Part::Output(output) => {
                    format!(
                        "output {} {} {}",
                        output.call_id,
                        output.is_error,
                        output.text()
                    )
                }
                Part::Media(media) => media.raw.as_str().to_owned(),
                Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
            };
            gist.push((message.role, text));
        }
    }
    gist
}
