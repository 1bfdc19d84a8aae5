//! Where a conversation that the provider keeps continues, if the client knows its last answer under
//! another id, or does not know all calls in it.
//!
//! An answer that the client sees as one may be several responses of the provider, and calls of our
//! tools are hidden from it. The provider rejects a request that continues a response with an
//! unanswered call. As long as the conversation is in memory, it is sent completely. After a restart
//! only the provider has it, so what it lacks is kept in the store.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trimtab_model::{Dialect, Output};
use trimtab_store::{Result, SessionId, Stream};
use trimtab_wire::scan::BodyScan;

use crate::access::Tenant;
use crate::conversation::client_sessions;
use crate::conversation::hidden_rounds;
use crate::conversation::store_state::OpenedStore;
use crate::resources::memory_budget::Reservation;

/// Where the provider continues after an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLink {
    /// The session of the conversation, next to which the outputs of our calls are stored.
    pub(crate) session: String,
    /// The id of the provider's last response.
    pub(crate) last: String,
    /// The ids of our calls in it. They have no outputs there.
    pub(crate) calls: Vec<String>,
}

/// The place of a link. Its name ends like those of pending calls, which are no conversations
/// either.
fn place(opened: &OpenedStore, tenant: &Tenant, response: &str) -> Result<SessionId> {
    let name = opened
        .keys
        .name(tenant, &[b"response", response.as_bytes()]);
    let name = client_sessions::name(tenant, Dialect::Responses, &name);
    SessionId::new(format!("{name}/kept"))
}

impl StoredLink {
    /// Stores the link for the response that the client knows.
    pub(crate) fn keep(&self, opened: &OpenedStore, tenant: &Tenant, response: &str) -> Result<()> {
        let place = place(opened, tenant, response)?;
        let store = opened.store.as_ref();
        // As a child of the session it is removed with it.
        store.link(&place, &SessionId::new(self.session.clone())?)?;
        let entry = serde_json::to_vec(self).unwrap_or_default();
        let position = store.position(&place, Stream::Log)?;
        store.append(&place, Stream::Log, position, &[&entry])?;
        Ok(())
    }

    fn find(opened: &OpenedStore, tenant: &Tenant, response: &str) -> Result<Option<Self>> {
        let place = place(opened, tenant, response)?;
        let store = opened.store.as_ref();
        let Some(newest) = store.position(&place, Stream::Log)?.checked_sub(1) else {
            return Ok(None);
        };
        let entries = store.read(&place, Stream::Log, newest, 1)?;
        let entry = entries.first();
        Ok(entry.and_then(|entry| serde_json::from_slice(entry).ok()))
    }

    /// The outputs of its calls; none if they were removed.
    fn outputs(&self, opened: &OpenedStore) -> Result<Option<Vec<Output>>> {
        if self.calls.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let session = SessionId::new(self.session.clone())?;
        let kept = hidden_rounds::newest(opened.store.as_ref(), &session)?;
        let ids = |pending: &hidden_rounds::PendingOwnCalls| {
            pending
                .calls
                .iter()
                .map(|(_, call)| &call.id)
                .eq(&self.calls)
        };
        Ok(kept.into_iter().rev().find(ids).map(|found| found.outputs))
    }
}

/// A request that continues an answer with a stored link, as the provider needs it. None if there is
/// no link, or no memory.
pub(crate) fn continued(
    opened: &OpenedStore,
    tenant: &Tenant,
    body: &[u8],
    memory: Reservation,
) -> Option<Bytes> {
    let scan = BodyScan::new(body, Dialect::Responses).ok()?;
    let named = scan.string(scan.request().session.previous_response_id)?;
    // If the store fails, the request passes as it came.
    let link = StoredLink::find(opened, tenant, &named).ok()??;
    let outputs = link.outputs(opened).ok()??;
    with_link(&scan, &link.last, &outputs, memory)
}

/// The request with the id of the provider's last response, and with the outputs of our calls.
fn with_link(
    scan: &BodyScan<'_>,
    last: &str,
    outputs: &[Output],
    mut memory: Reservation,
) -> Option<Bytes> {
    let request = scan.request();
    let text = std::str::from_utf8(scan.body()).ok()?;
    let came = scan.json(request.list);
    let item = |output: &Output| {
        json!({"type": "function_call_output", "call_id": output.call_id, "output": output.text()})
            .to_string()
    };
    let mut items: Vec<String> = outputs.iter().map(item).collect();
    // `input` may be a plain string, which stands for one user message.
    items.push(match came.strip_prefix('[') {
        Some(rest) => rest.trim().strip_suffix(']')?.trim().to_owned(),
        None => format!("{{\"role\":\"user\",\"content\":{came}}}"),
    });
    items.retain(|item| !item.is_empty());
    let (input, last) = (format!("[{}]", items.join(",")), json!(last).to_string());
    if !memory.grow(text.len() + 2 * input.len() + last.len()) {
        return None;
    }
    let mut changes = [
        (request.list, input.as_str()),
        (request.session.previous_response_id, last.as_str()),
    ];
    changes.sort_unstable_by_key(|(span, _)| span.range().start);
    let body = super::replaced(text, &changes)?;
    memory.set(body.capacity());
    Some(memory.attach(body))
}
