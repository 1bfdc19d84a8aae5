//! Writes elements of an opencode session.
//!
//! `opencode import` rejects a session in which a message or a part lacks a field that opencode
//! itself writes, and it orders both by their ids.

use trimtab_model::{Output, Role};

use super::form_writer::{FormWriter, NewMessage, name, output_of, with_outputs};
use super::opencode_parts::{PartIds, parts};
use super::patch::{JsonPatch, copied};
use crate::json::{self, JsonFields, ObjectWriter, array, quoted};
use crate::transcript::private_marks;

/// The number of leading digits of an id that encode its time; ids are ordered by them.
const TIME_DIGITS: usize = 12;
/// The rest of our own ids, which sorts after all ids that opencode makes at the same time.
const LAST_OF_ITS_TIME: &str = "zzzzzzzz";
/// The default agent of opencode.
const DEFAULT_AGENT: &str = "build";

/// Writes elements of a session.
#[derive(Default)]
pub(super) struct OpenCodeWriter {
    /// The ids of elements that were reused.
    used: std::collections::HashSet<String>,
}

impl FormWriter for OpenCodeWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        let mut patch = JsonPatch::new(unit);
        for part in fields.list("parts")? {
            let Some(part) = json::fields(part) else {
                continue;
            };
            let shown = output_of(outputs, &part, "callID");
            let (Some(shown), Some(state)) = (shown, part.fields("state")) else {
                continue;
            };
            let name = if shown.is_error { "error" } else { "output" };
            patch.replace(state.get(name)?, &quoted(&shown.text()));
        }
        Some(patch.end())
    }

    fn write(&mut self, run: &[NewMessage<'_>]) -> Vec<String> {
        let write = |(new, outputs): (&NewMessage<'_>, Vec<&Output>)| match new.message.role {
            Role::Assistant => self.element(new, "assistant", &outputs),
            Role::System | Role::User | Role::Tool => self.element(new, "user", &[]),
        };
        with_outputs(run).map(write).collect()
    }

    fn joins_outputs(&self) -> bool {
        true
    }
}

impl OpenCodeWriter {
    fn element(&mut self, new: &NewMessage<'_>, role: &str, outputs: &[&Output]) -> String {
        let fields = serde_json::from_str::<JsonFields<'_>>(new.like()).unwrap_or_default();
        let like = fields.fields("info").unwrap_or_default();
        let same = like.text("role").is_some_and(|own| own == role);
        let old = new.is_old() && same;
        let own = like.string("id");
        // At another position the id would be out of order.
        let own = own.filter(|id| old && !new.has_moved && self.used.insert(id.clone()));
        let id = own.unwrap_or_else(|| made_id(new));
        let own_field = |name: &str| !matches!(name, "id" | "role" | "summary");
        let info = if old {
            copied(&like, own_field)
        } else {
            made_info(&like, role)
        };
        let info = info.text("role", role).text("id", &id);
        let session = like.string("sessionID").unwrap_or_default();
        let ids = PartIds {
            message: &id,
            session: &session,
            number: new.number,
        };
        let mark = private_marks::mark(new.message, new.behind).filter(|_| role == "user");
        ObjectWriter::new()
            .raw("info", &info.end())
            .raw("parts", &array(parts(new.message, outputs, &ids, &like)))
            .maybe(private_marks::FIELD, mark)
            .end()
    }
}

/// An id that sorts between the neighbours of the new element.
fn made_id(new: &NewMessage<'_>) -> String {
    let near = new.near.and_then(|unit| {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        fields.fields("info")?.string("id")
    });
    let digits = near.as_deref().and_then(|id| {
        let (_, id) = id.split_once('_')?;
        u64::from_str_radix(id.get(..TIME_DIGITS)?, 16).ok()
    });
    // An id of another shape has no time that could be counted from.
    let Some(time) = digits else {
        return format!("msg_{}", name(new.like(), new.number, new.message));
    };
    let time = if new.is_last {
        // Behind all others if nothing follows, else just before the element that follows.
        time.saturating_add(1)
    } else {
        time.saturating_sub(1)
    };
    format!("msg_{time:012x}{LAST_OF_ITS_TIME}{:06}", new.number)
}

/// The fields of every message, copied from a neighbour.
fn made_info(near: &JsonFields<'_>, role: &str) -> ObjectWriter {
    let raw = |name: &str| near.get(name).map(|raw| raw.get().to_owned());
    let agent = raw("agent").or_else(|| raw("mode"));
    let agent = agent.unwrap_or_else(|| quoted(DEFAULT_AGENT));
    let near_model = near.fields("model").unwrap_or_default();
    let of_model = |name: &str| {
        let raw = near_model.get(name).or_else(|| near.get(name));
        raw.map_or_else(|| quoted(""), |raw| raw.get().to_owned())
    };
    let (provider, model) = (of_model("providerID"), of_model("modelID"));
    let info = copied(near, |name| name == "sessionID").raw("agent", &agent);
    let created = near.fields("time").and_then(|time| time.number("created"));
    let created = created.unwrap_or_default().to_string();
    let time = ObjectWriter::new().raw("created", &created);
    if role == "user" {
        let model = ObjectWriter::new()
            .raw("providerID", &provider)
            .raw("modelID", &model);
        return info.raw("time", &time.end()).raw("model", &model.end());
    }
    let parent = raw("parentID").or_else(|| raw("id"));
    info.raw("time", &time.raw("completed", &created).end())
        .raw("parentID", &parent.unwrap_or_else(|| quoted("")))
        .raw("mode", &agent)
        .raw("providerID", &provider)
        .raw("modelID", &model)
        .raw(
            "path",
            &raw("path").unwrap_or_else(|| r#"{"cwd":"/","root":"/"}"#.to_owned()),
        )
        .raw("cost", "0")
        .raw(
            "tokens",
            r#"{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}"#,
        )
}
