//! `/v1/compress` for gateways that send only some rows of a conversation, and expect one row back
//! for each.
//!
//! Outputs may come without their calls, so there is no conversation to plan. Each output is shown
//! on its own. Its view depends on nothing else, so it is the same in every request.

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use trimtab::session::Setup;
use trimtab::single_output::show_output;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Output, Part, Role};
use trimtab_store::{SessionId, Store};
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::{BodyChange, splice};

use super::compress::CompressReply;
use crate::conversation::client_sessions;
use crate::request::plan::PlanningJob;

/// Shorter outputs are not replaced, in bytes.
const LEAST_OUTPUT: usize = 1_000;
/// The assumed window of an unknown model, in tokens.
const USUAL_WINDOW: u64 = 100_000;
/// Rows are not shortened later, when there are more of them. So each is shown as if the window
/// were smaller by this factor.
const SHARE: u64 = 8;
/// The length of a ref in hexadecimal digits.
const HASH_LENGTH: usize = 20;

/// True if a request wants one row for each of its rows: it says so, or it contains outputs without
/// any answer, so it cannot be a whole conversation.
pub(super) fn wants_rows(dialect: Dialect, body: &[u8]) -> bool {
    let Ok(scan) = BodyScan::new(body, dialect) else {
        return false;
    };
    let has_answer = (0..scan.len()).any(|at| scan.role(at) == Some(Role::Assistant));
    let has_output = (0..scan.len()).any(|at| scan.role(at) == Some(Role::Tool));
    (has_output && !has_answer) || asks_for_rows(body)
}

/// True if the request has `"rows": true`.
fn asks_for_rows(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Asked {
        #[serde(default)]
        rows: bool,
    }
    serde_json::from_slice(body).is_ok_and(|asked: Asked| asked.rows)
}

/// The rows with short views of the outputs, as JSON.
pub(super) fn compressed(job: &PlanningJob) -> Option<String> {
    let scan = BodyScan::new(&job.body, job.dialect).ok()?;
    let (store, session, setup) = (&*job.opened.store, session(job, &scan)?, setup(job, &scan));
    let (mut changes, mut hashes, mut saved) = (Vec::new(), Vec::new(), Measure::default());
    let mut before = Measure::of_text(&scan.tools_in_prompt());
    for (message, came) in scan.messages(0).enumerate() {
        let came = came?;
        before += Measure::of(&came);
        for (part, output) in long_outputs(&came) {
            let Some((shown, hash)) = view(store, &session, &setup, output) else {
                continue;
            };
            // Only the texts differ, so measuring the whole message again is not needed.
            let [came, shown_now] = [output, &shown].map(|one| Measure::of_text(&one.text()));
            saved += came - shown_now;
            changes.push(BodyChange::Show {
                message,
                part,
                output: shown,
            });
            hashes.push(hash);
        }
    }
    let body = splice(&scan, &changes).ok()?.body;
    let tokens = (before.tokens(), (before - saved).tokens());
    let session = Some(session.as_str());
    CompressReply::new(job.dialect, &body, tokens, hashes, session)?.write()
}

/// The outputs of a message that are worth storing, with their indexes.
fn long_outputs(message: &Message) -> impl Iterator<Item = (usize, &Output)> {
    let parts = message.parts.iter().enumerate();
    parts.filter_map(|(at, part)| match part {
        Part::Output(output) if output.text().len() >= LEAST_OUTPUT => Some((at, output)),
        _ => None,
    })
}

/// A short view of an output and the hash that reads it back; none if it is shown whole.
fn view(
    store: &dyn Store,
    session: &SessionId,
    setup: &Setup,
    output: &Output,
) -> Option<(Output, String)> {
    let text = output.text();
    let tool = output.tool.as_deref().unwrap_or_default();
    let call = (output.call_id.as_str(), tool);
    let shown = show_output(store, session, setup, call, &text).ok()?;
    let hash = hash_of(shown.stored.id())?;
    if !shown.shortened {
        return None;
    }
    let call = format!("headroom_retrieve({{\"hash\":\"{hash}\"}})");
    let shown = shown.with_read_command(|_| call.clone());
    let view = Output {
        content: vec![Part::text(shown)],
        ..output.clone()
    };
    // The view with its command can be longer than a short output.
    (view.text().len() < text.len()).then_some((view, hash))
}

/// The session of a conversation, identified by its first row.
fn session(job: &PlanningJob, scan: &BodyScan<'_>) -> Option<SessionId> {
    let first = scan.message(0)?;
    let first = serde_json::to_vec(&first).ok()?;
    let name = job.opened.keys.name(&job.tenant, &[b"rows", &first]);
    let name = client_sessions::name(&job.tenant, job.dialect, &name);
    SessionId::new(name).ok()
}

fn setup(job: &PlanningJob, scan: &BodyScan<'_>) -> Setup {
    let settings = &job.settings;
    let model = scan.model().unwrap_or_default();
    let rule = settings.routes.rule(&model);
    let preset = rule.and_then(|rule| rule.preset.as_deref());
    let preset = preset.unwrap_or(&settings.config.preset);
    let policy = settings.policy(preset).cloned().unwrap_or_default();
    let mut setup = Setup::new(policy);
    let window = rule.and_then(|rule| rule.window);
    setup.limits.window = Some(window.unwrap_or(USUAL_WINDOW) / SHARE);
    // The gateway offers a tool of its own, which the view names.
    setup.retrieval = None;
    setup
}

/// A ref as the hexadecimal digits that gateways expect.
fn hash_of(id: &str) -> Option<String> {
    let bytes = BASE32_NOPAD.decode(id.to_ascii_uppercase().as_bytes());
    Some(HEXLOWER.encode(&bytes.ok()?))
}

/// The ref that was written as hexadecimal digits.
pub(super) fn ref_of_hash(hash: &str) -> Option<String> {
    let hash = Some(hash).filter(|hash| hash.len() == HASH_LENGTH)?;
    let bytes = HEXLOWER.decode(hash.to_ascii_lowercase().as_bytes()).ok()?;
    Some(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_names_its_ref() {
        let id = "abcdefgh234567qr";
        let hash = hash_of(id).unwrap();
        assert_eq!(hash.len(), HASH_LENGTH);
        assert_eq!(ref_of_hash(&hash).unwrap(), id);
        assert_eq!(ref_of_hash(id), None);
    }
}
