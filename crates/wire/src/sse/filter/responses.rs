//! Rewrites the events of Responses.

use super::super::responses::is_call;
use super::{EventEdit, EventVerdict, StreamRewriter, number};
use crate::json::{elements, pick, text_of};

/// The maximum size of the parts that are kept for the event that repeats them.
const MAX_SEEN: usize = 8 << 20;

impl StreamRewriter {
    pub(super) fn responses(&mut self, json: &str) -> EventVerdict {
        let names = [
            "type",
            "output_index",
            "sequence_number",
            "item",
            "response",
        ];
        let Some([type_name, index, sequence, item, response]) = pick(json, names) else {
            return EventVerdict::Pass;
        };
        let type_name = type_name.unwrap_or_default();
        let mut edit = EventEdit::new(json);
        if let Some(index) = index {
            let seen = if type_name == "\"response.output_item.added\"" {
                let called = item.and_then(called);
                self.begin(number(Some(index)), called.as_deref())
            } else {
                self.index(number(Some(index)))
            };
            let Some(seen) = seen else {
                return EventVerdict::Hide;
            };
            edit.set(index, &seen.to_string());
        }
        self.keep_id(response.and_then(id), &mut edit);
        drop_tools(response, |name| self.is_hidden(name), &mut edit);
        match type_name {
            "\"response.created\"" | "\"response.in_progress\"" | "\"response.queued\""
                if self.goes_on =>
            {
                return EventVerdict::Hide;
            }
            "\"response.output_item.done\"" => self.keep(item.unwrap_or_default()),
            "\"response.completed\"" | "\"response.incomplete\"" => {
                if self.hides && !self.shows {
                    self.hold();
                }
                self.repeat(response.unwrap_or_default(), &mut edit);
                let usage = response.and_then(|response| pick(response, ["usage"]));
                let usage = usage.and_then(|[usage]| usage);
                self.note_usage(usage, Vec::new(), &mut edit);
            }
            _ => {}
        }
        if let Some(sequence) = sequence {
            let next = self.next_sequence.unwrap_or(number(Some(sequence)));
            edit.set(sequence, &next.to_string());
            // A held-back event may never be sent.
            self.next_sequence = Some(next + u64::from(self.held_end.is_none()));
        }
        edit.end()
    }

    /// Keeps a part that the client saw.
    fn keep(&mut self, item: &str) {
        if self.seen_bytes + item.len() <= MAX_SEEN {
            self.seen_bytes += item.len();
            self.shown_parts.push(item.to_owned());
        }
    }

    /// The last event repeats all parts: only those that the client saw may be in it.
    fn repeat(&mut self, response: &str, edit: &mut EventEdit<'_>) {
        let output = pick(response, ["output"]).and_then(|[output]| output);
        let Some(output) = output else { return };
        if self.goes_on {
            // The event has only the parts of the last answer, but the client saw those of all
            // answers.
            return edit.set(output, &format!("[{}]", self.shown_parts.join(",")));
        }
        for item in elements(output) {
            if called(item).is_some_and(|name| self.is_hidden(&name)) {
                edit.drop_element(output, item);
            }
        }
    }
}

/// A complete answer of Responses without the tools `hidden`; none if it repeats none of them.
///
/// The provider repeats the tools of the request in its answer. The client should find only its own
/// there.
///
/// ```
/// # use trimtab_wire::sse::without_repeated_tools;
/// let answer = r#"{"tools":[{"name":"read"},{"name":"ours"}]}"#;
/// let shown = without_repeated_tools(answer, &["ours"]).unwrap();
/// assert_eq!(shown, r#"{"tools":[{"name":"read"}]}"#);
/// assert_eq!(without_repeated_tools(&shown, &["ours"]), None);
/// ```
pub fn without_repeated_tools(answer: &str, hidden: &[&str]) -> Option<String> {
    let mut edit = EventEdit::new(answer);
    drop_tools(Some(answer), |name| hidden.contains(&name), &mut edit);
    match edit.end() {
        EventVerdict::Rewrite(json) => Some(json),
        _ => None,
    }
}

/// Removes hidden tools from those that a response repeats.
fn drop_tools(response: Option<&str>, is_hidden: impl Fn(&str) -> bool, edit: &mut EventEdit<'_>) {
    let tools = response.and_then(|response| pick(response, ["tools"]));
    let Some(tools) = tools.and_then(|[tools]| tools) else {
        return;
    };
    for tool in elements(tools) {
        let name = pick(tool, ["name"]).and_then(|[name]| text_of(name));
        if name.is_some_and(|name| is_hidden(&name)) {
            edit.drop_element(tools, tool);
        }
    }
}

/// The id of an answer.
fn id(response: &str) -> Option<&str> {
    pick(response, ["id"])?.first().copied().flatten()
}

/// The called tool, if the entry is a call. Calls of built-in tools have no name.
fn called(item: &str) -> Option<String> {
    let [name] = pick(item, ["name"])?;
    is_call(item).then(|| text_of(name).unwrap_or_default())
}
