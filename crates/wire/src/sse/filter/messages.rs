//! The events of Messages, rewritten.

use super::{Edit, Rewriter, Verdict, number, text};
use crate::json::pick;

impl Rewriter {
    pub(super) fn messages(&mut self, json: &str) -> Verdict {
        let names = ["type", "index", "content_block"];
        let Some([type_name, index, part]) = pick(json, names) else {
            return Verdict::Pass;
        };
        let seen = match type_name.unwrap_or_default() {
            "\"content_block_start\"" => {
                let called = part.and_then(called);
                self.begin(number(index), called.as_deref())
            }
            "\"content_block_delta\"" | "\"content_block_stop\"" => self.index(number(index)),
            "\"message_start\"" if self.goes_on => return Verdict::Hide,
            "\"message_delta\"" if self.hides && !self.shows => {
                self.hold();
                return ends(json);
            }
            "\"message_delta\"" | "\"message_stop\"" => return Verdict::End,
            _ => return Verdict::Pass,
        };
        let (Some(seen), Some(index)) = (seen, index) else {
            return Verdict::Hide;
        };
        let mut edit = Edit::new(json);
        edit.set(index, &seen.to_string());
        edit.end()
    }
}

/// The end of an answer whose calls the client does not see: it must not wait for one.
fn ends(json: &str) -> Verdict {
    let mut edit = Edit::new(json);
    let delta = pick(json, ["delta"]).and_then(|[delta]| delta);
    let stop = delta.and_then(|delta| pick(delta, ["stop_reason"]));
    if let Some([Some(stop)]) = stop
        && stop == "\"tool_use\""
    {
        edit.set(stop, "\"end_turn\"");
    }
    edit.end()
}

/// The tool that a part calls, if it is a call.
fn called(part: &str) -> Option<String> {
    let [type_name, name] = pick(part, ["type", "name"])?;
    text(name).filter(|_| type_name == Some("\"tool_use\""))
}
