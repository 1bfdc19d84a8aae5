//! Elements of an opencode session.

use trimtab_model::{Call, Message, Output, Part, RawJson, Role};

use super::patch::{Patch, copied};
use super::pen::{Names, New, Pen, name};
use crate::json::{self, Fields, Object, array, quoted, string};
use crate::transcript::own;

/// Spells elements of a session.
#[derive(Default)]
pub(super) struct OpenCode {
    /// The names of elements that were used again.
    used: std::collections::HashSet<String>,
}

impl Pen for OpenCode {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<Fields<'_>>(unit).ok()?;
        let mut patch = Patch::new(unit);
        for part in fields.list("parts")? {
            let Some(part) = json::fields(part) else {
                continue;
            };
            let id = part.get("callID").and_then(string);
            let shown = outputs
                .iter()
                .find(|output| Some(&output.call_id) == id.as_ref());
            let (Some(shown), Some(state)) = (shown, part.fields("state")) else {
                continue;
            };
            let name = if shown.is_error { "error" } else { "output" };
            patch.replace(state.get(name)?, &quoted(&shown.text()));
        }
        Some(patch.end())
    }

    fn write(&mut self, run: &[New<'_>], _: &Names<'_>) -> Vec<String> {
        let mut written = Vec::new();
        for (at, new) in run.iter().enumerate() {
            let behind = run.iter().skip(at + 1);
            let outputs: Vec<&Output> = behind
                .take_while(|next| next.message.role == Role::Tool)
                .flat_map(|next| next.message.outputs())
                .collect();
            match new.message.role {
                // Written with its call.
                Role::Tool => {}
                Role::Assistant => written.push(self.element(new, "assistant", &outputs)),
                Role::System | Role::User => written.push(self.element(new, "user", &[])),
            }
        }
        written
    }

    fn joins_outputs(&self) -> bool {
        true
    }
}

impl OpenCode {
    fn element(&mut self, new: &New<'_>, role: &str, outputs: &[&Output]) -> String {
        let like = new.like();
        let fields = serde_json::from_str::<Fields<'_>>(like).unwrap_or_default();
        let info = fields.fields("info").unwrap_or_default();
        let same = info.text("role").is_some_and(|own| own == role);
        let old = new.is_old() && same;
        let own = info.get("id").and_then(string);
        let own = own.filter(|id| old && self.used.insert(id.clone()));
        let id = own.unwrap_or_else(|| format!("msg_{}", name(like, new.number, new.message)));
        let is_session = |name: &str| matches!(name, "sessionID" | "time");
        let own_field = |name: &str| !matches!(name, "id" | "role" | "summary");
        let info = copied(&info, |name| is_session(name) || (old && own_field(name)))
            .text("role", role)
            .text("id", &id);
        Object::new()
            .raw("info", &info.end())
            .raw("parts", &parts(new.message, outputs))
            .maybe(
                own::FIELD,
                own::mark(new.message).filter(|_| role == "user"),
            )
            .end()
    }
}

fn parts(message: &Message, outputs: &[&Output]) -> String {
    let plain = |type_name: &str, text: &str| {
        let object = Object::new().text("type", type_name);
        object.text("text", text).end()
    };
    array(message.parts.iter().map(|part| match part {
        Part::Text(text) => plain("text", &text.text),
        Part::Reasoning(thought) => plain("reasoning", &thought.text),
        Part::Media(media) => media.raw.as_str().to_owned(),
        Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
        Part::Output(output) => plain("text", &output.text()),
        Part::Call(call) => {
            let output = outputs.iter().find(|output| output.call_id == call.id);
            tool(call, output.copied())
        }
    }))
}

fn tool(call: &Call, output: Option<&Output>) -> String {
    let input = match RawJson::parse(&call.arguments) {
        Ok(_) => call.arguments.trim().to_owned(),
        Err(_) => Object::new().text("arguments", &call.arguments).end(),
    };
    let (status, name) = match output {
        Some(output) if output.is_error => ("error", "error"),
        Some(_) => ("completed", "output"),
        None => ("running", ""),
    };
    let state = Object::new().text("status", status).raw("input", &input);
    let state = state.maybe(name, output.map(|output| quoted(&output.text())));
    Object::new()
        .text("type", "tool")
        .text("callID", &call.id)
        .text("tool", &call.name)
        .raw("state", &state.end())
        .end()
}
