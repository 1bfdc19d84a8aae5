//! Rewrites the events of Messages.

use super::{EventEdit, EventVerdict, StreamRewriter, number};
use crate::json::{pick, text_of};

/// The figures of the prompt, which the first event of an answer has and the last one may lack.
const PROMPT_FIGURES: [&str; 4] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "cache_read_input_tokens",
];

impl StreamRewriter {
    pub(super) fn messages(&mut self, json: &str) -> EventVerdict {
        let names = ["type", "index", "content_block"];
        let Some([type_name, index, part]) = pick(json, names) else {
            return EventVerdict::Pass;
        };
        let seen = match type_name.unwrap_or_default() {
            "\"content_block_start\"" => {
                let called = part.and_then(called);
                self.begin(number(index), called.as_deref())
            }
            "\"content_block_delta\"" | "\"content_block_stop\"" => self.index(number(index)),
            // The client has had a start. Its prompt figures are kept for the end, where clients
            // read them again.
            "\"message_start\"" if self.goes_on => {
                self.prompt_figures = prompt_figures(json).unwrap_or_default();
                return EventVerdict::Hide;
            }
            "\"message_delta\"" => return self.ends(json),
            "\"message_stop\"" => return EventVerdict::End,
            _ => return EventVerdict::Pass,
        };
        let (Some(seen), Some(index)) = (seen, index) else {
            return EventVerdict::Hide;
        };
        let mut edit = EventEdit::new(json);
        edit.set(index, &seen.to_string());
        edit.end()
    }

    /// Handles the event with the stop reason. If the client does not see the calls of the answer,
    /// it must not wait for one.
    fn ends(&mut self, json: &str) -> EventVerdict {
        let mut edit = EventEdit::new(json);
        let [delta, usage] = pick(json, ["delta", "usage"]).unwrap_or_default();
        let stop = delta.and_then(|delta| pick(delta, ["stop_reason"]));
        if self.hides && !self.shows {
            self.hold();
            if let Some([Some(stop)]) = stop
                && stop == "\"tool_use\""
            {
                edit.set(stop, "\"end_turn\"");
            }
        }
        let given = usage.and_then(|usage| pick(usage, PROMPT_FIGURES));
        let given = given.unwrap_or_default();
        let missing = self.prompt_figures.iter().filter(|(name, _)| {
            let mut both = PROMPT_FIGURES.iter().zip(&given);
            both.any(|(known, value)| known == name && value.is_none())
        });
        self.note_usage(usage, missing.cloned().collect(), &mut edit);
        edit.end()
    }
}

/// The figures of the prompt in the first event of an answer.
fn prompt_figures(json: &str) -> Option<Vec<(&'static str, String)>> {
    let [message] = pick(json, ["message"])?;
    let [usage] = pick(message?, ["usage"])?;
    let values = pick(usage?, PROMPT_FIGURES)?;
    let figures = PROMPT_FIGURES.into_iter().zip(values);
    Some(
        figures
            .filter_map(|(name, value)| Some((name, value?.to_owned())))
            .collect(),
    )
}

/// The called tool, if the part is a call.
fn called(part: &str) -> Option<String> {
    let [type_name, name] = pick(part, ["type", "name"])?;
    text_of(name).filter(|_| type_name == Some("\"tool_use\""))
}
