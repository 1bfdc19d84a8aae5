//! Archives outputs: above a number of visible ones, the oldest are hidden from the model, and a
//! summary or a digest represents them (design `archive`).

use std::borrow::Borrow;
use std::fmt::Write as _;

use trimtab_model::rounds::PartPosition;
use trimtab_model::{Message, MessageKind, Output};

use crate::decide::summary::conversation::{head_and_tail, one_line, said_by};
use crate::decide::summary::requests::SummaryRequest;
use crate::normalise::Slot;
use crate::plan::Edit;
use crate::quote::escaped;
use crate::quote::{fenced, quoted};
use crate::view::{WindowOutputs, placeholder};

/// The characters of an output that the summariser gets.
pub(crate) const SUMMARY_INPUT: usize = 12_000;
/// The characters of the summariser's answer that are used.
const SUMMARY_LIMIT: usize = 1_200;
/// The characters of an output in a summary without a model.
const EXCERPT_LIMIT: usize = 800;
/// The characters of an output in a digest.
const DIGEST_LIMIT: usize = 200;

/// The messages with the oldest visible outputs beyond the newest `cutoff`, without those before
/// number `from`; none if the cutoff is 0. A message is archived only if all of its outputs are.
pub fn excess<M: Borrow<Message>>(
    outputs: &WindowOutputs<'_, M>,
    cutoff: usize,
    from: usize,
) -> Vec<usize> {
    if cutoff == 0 {
        return Vec::new();
    }
    let mut left = outputs.places_from(from).count().saturating_sub(cutoff);
    let mut archived = Vec::new();
    // One more than needed shows whether the last message has further outputs, which must then all
    // stay.
    let places: Vec<PartPosition> = outputs.places_from(from).take(left + 1).collect();
    for of_message in places.chunk_by(|one, other| one.message == other.message) {
        let Some(rest) = left.checked_sub(of_message.len()).filter(|_| left > 0) else {
            break;
        };
        left = rest;
        archived.extend(of_message.first().map(|place| place.message));
    }
    archived
}

/// The edits that archive the messages of the `slots` at `over`, and their outputs, each with the
/// name of its tool.
pub(crate) fn archived(
    outputs: &WindowOutputs<'_, Slot>,
    slots: &[Slot],
    over: &[usize],
) -> (Vec<Edit>, Vec<Output>) {
    let messages = over.iter().filter_map(|at| slots.get(*at)?.source.in_log());
    let edits = messages.map(|message| Edit::Archive { message });
    let outputs = over.iter().flat_map(|at| outputs.named_in(*at));
    (edits.collect(), outputs.collect())
}

/// The message that represents one archived output: what a model wrote about it, or an excerpt as a
/// quotation. With `can_retrieve`, its last line names the call that retrieves the output.
pub fn tool_summary(output: &Output, written: Option<&str>, can_retrieve: bool) -> Message {
    let status = if output.is_error { "error" } else { "ok" };
    let tool = tool_name(output);
    let written = written.map(str::trim).filter(|written| !written.is_empty());
    let id = &output.call_id;
    let head = format!("[Tool output summary]\nTool: {tool}\nCall ID: {id}\nStatus: {status}\n");
    let text = if let Some(written) = written {
        head + &written.chars().take(SUMMARY_LIMIT).collect::<String>()
    } else {
        let shown = head_and_tail(said_by(&output.text()), EXCERPT_LIMIT);
        let said = format!("Tool \"{tool}\" finished with status {status}. Output excerpt:");
        fenced(&format!("{head}{said}\n{shown}"))
    };
    stands_for_outputs(text + &retrieval_line(output, can_retrieve))
}

/// The line that names the call which retrieves an output; empty if there is none.
fn retrieval_line(output: &Output, can_retrieve: bool) -> String {
    let stored = output.stored.as_ref().filter(|_| can_retrieve);
    stored.map_or_else(String::new, |stored| {
        format!("\n{}", placeholder::retrieval_hint(stored))
    })
}

/// The instructions for the summary of an output.
const SUMMARY_PROMPT: &str = "\
Summarise this tool output so that the work can go on without it. Keep what was found out, \
exact paths, names, numbers and error texts, and say what failed. Leave out what only repeats. \
Write plain text, at most 1,200 characters, and nothing else.";

/// The request for the text that [`tool_summary`] gets as `written`: the output, cut, between tags
/// that nothing in it can close.
pub fn summary_request(output: &Output, max_output: u64) -> SummaryRequest {
    let status = if output.is_error { "error" } else { "ok" };
    let tool = escaped(tool_name(output));
    let text = head_and_tail(said_by(&output.text()), SUMMARY_INPUT);
    let asked = format!(
        "{SUMMARY_PROMPT}\n\nTool: {tool}\nStatus: {status}\n<output>\n{}\n</output>",
        escaped(&text)
    );
    SummaryRequest {
        messages: vec![Message::user(asked)],
        max_output,
    }
}

/// The message that represents all outputs archived in one compaction: a quoted line for each, and
/// with `can_retrieve` a second one with the call that retrieves it.
pub fn digest<'o>(outputs: impl Iterator<Item = &'o Output>, can_retrieve: bool) -> Message {
    let mut text = fenced("[Compaction tool digest]");
    for output in outputs {
        let status = if output.is_error { "error" } else { "ok" };
        let line = one_line(said_by(&output.text()), DIGEST_LIMIT);
        // Writing into a String cannot fail.
        let line = quoted(&format!("- {} ({status}): {line}", tool_name(output)));
        let _ = write!(text, "\n{line}{}", retrieval_line(output, can_retrieve));
    }
    stands_for_outputs(text)
}

fn tool_name(output: &Output) -> &str {
    output
        .tool
        .as_deref()
        .filter(|tool| !tool.is_empty())
        .unwrap_or("unknown")
}

fn stands_for_outputs(text: String) -> Message {
    let mut message = Message::user(text).with_kind(MessageKind::ToolSummary);
    message.meta.agent_visible = Some(true);
    message.meta.user_visible = Some(false);
    message
}

#[cfg(test)]
mod tests {
    use trimtab_model::{CALLER, Call, RawJson};

    use super::*;

    #[test]
    fn outputs_for_programs_do_not_count() {
        let mut by_program = Call::new("p", "read", "{}");
        let caller = RawJson::parse(r#"{"type":"program","caller_id":"p"}"#).unwrap();
        by_program.extra.push((CALLER.to_owned(), caller));
        let calls = ["a", "b", "c"].map(|id| Call::new(id, "read", "{}"));
        let mut log = Vec::new();
        for call in [by_program].into_iter().chain(calls) {
            let output = Message::output(call.id.as_str(), "x");
            log.extend([Message::assistant("").with_call(call), output]);
        }
        let outputs = WindowOutputs::of(&log);
        assert_eq!(excess(&outputs, 1, 0), [3, 5]);
        // The output for the program is in front of this message.
        assert_eq!(excess(&outputs, 1, 2), [3, 5]);
    }

    #[test]
    fn a_model_is_given_a_clipped_output_that_closes_no_tag() {
        let text = format!("</output>{}END", "z".repeat(20_000));
        let request = summary_request(&Output::new("c", text), 400);
        let asked = request.messages[0].text().into_owned();
        assert_eq!(asked.matches("</output>").count(), 1);
        assert!(asked.contains("END") && asked.contains("Tool: unknown\nStatus: ok"));
        assert!(asked.chars().count() < SUMMARY_INPUT + 600);
        assert_eq!((request.messages.len(), request.max_output), (1, 400));
    }
}
