//! Rewrites the events of Chat Completions.

use super::{EventEdit, EventVerdict, StreamRewriter, number};
use crate::json::{elements, pick, text_of};

/// Whether a delta names the role of the answer.
enum NamedRole {
    Absent,
    First,
    Again,
}

impl StreamRewriter {
    pub(super) fn chat(&mut self, json: &str) -> EventVerdict {
        let Some([id, choices, usage]) = pick(json, ["id", "choices", "usage"]) else {
            return EventVerdict::Pass;
        };
        let mut edit = EventEdit::new(json);
        self.keep_id(id, &mut edit);
        self.note_usage(usage, Vec::new(), &mut edit);
        let mut says = usage.is_some_and(|usage| usage != "null");
        let mut stops = false;
        let mut hid = false;
        let mut repeats = false;
        for choice in choices.into_iter().flat_map(elements) {
            let Some([delta, stop]) = pick(choice, ["delta", "finish_reason"]) else {
                continue;
            };
            stops |= stop.is_some_and(|stop| stop != "null");
            let Some(delta) = delta else { continue };
            hid |= self.calls(delta, &mut edit);
            match self.role(delta, &mut edit) {
                NamedRole::Absent => {}
                NamedRole::First => says = true,
                NamedRole::Again => repeats = true,
            }
            says |= says_more(delta);
        }
        // The event with the usage has an empty list of choices and belongs to the end of the
        // answer.
        let nothing_else = choices.is_some_and(|choices| elements(choices).next().is_none());
        // Without its hidden parts the event would say nothing.
        if (hid || repeats) && !says && !stops && !edit.calls_left {
            return EventVerdict::Hide;
        }
        if (stops || nothing_else) && self.hides && !self.shows {
            self.hold();
            stop_by_itself(choices, &mut edit);
        }
        edit.end()
    }

    /// A stream names its role once, because clients append a second one.
    fn role(&mut self, delta: &str, edit: &mut EventEdit<'_>) -> NamedRole {
        if !matches!(pick(delta, ["role"]), Some([Some(_)])) {
            return NamedRole::Absent;
        }
        if !std::mem::replace(&mut self.role_named, true) || !self.goes_on {
            return NamedRole::First;
        }
        edit.drop_field(delta, "role");
        NamedRole::Again
    }

    /// Hides and renumbers the calls of a delta; true if one was hidden.
    fn calls(&mut self, delta: &str, edit: &mut EventEdit<'_>) -> bool {
        let Some([Some(list)]) = pick(delta, ["tool_calls"]) else {
            return false;
        };
        let (mut hid, mut left) = (false, false);
        for call in elements(list) {
            // Calls of tools that take free text are in `custom`.
            let Some([index, function, custom]) = pick(call, ["index", "function", "custom"])
            else {
                continue;
            };
            let name = function.or(custom).and_then(|json| pick(json, ["name"]));
            let name = name.and_then(|[name]| text_of(name));
            let name = name.filter(|name| !name.is_empty());
            let known = self.indices.contains_key(&number(index));
            let seen = match name {
                // Only the first piece of a call has its name; the index identifies the later
                // pieces.
                Some(name) if !known => self.begin(number(index), Some(&name)),
                _ => self.index(number(index)),
            };
            if let (Some(seen), Some(index)) = (seen, index) {
                left = true;
                edit.set(index, &seen.to_string());
            } else {
                hid = true;
                edit.drop_element(list, call);
            }
        }
        if hid && !left {
            edit.drop_field(delta, "tool_calls");
        }
        edit.calls_left |= left;
        hid
    }
}

/// A client must not wait for a call that it does not see.
fn stop_by_itself(choices: Option<&str>, edit: &mut EventEdit<'_>) {
    for choice in choices.into_iter().flat_map(elements) {
        if let Some([Some(stop)]) = pick(choice, ["finish_reason"])
            && stop == "\"tool_calls\""
        {
            edit.set(stop, "\"stop\"");
        }
    }
}

/// True if a delta contains more than calls.
fn says_more(delta: &str) -> bool {
    let names = ["content", "reasoning_content", "reasoning", "refusal"];
    let fields = pick(delta, names).into_iter().flatten().flatten();
    let mut said = fields.filter(|json| !matches!(*json, "null" | "\"\""));
    said.next().is_some()
}
