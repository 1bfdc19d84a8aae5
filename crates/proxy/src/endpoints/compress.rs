//! `POST /v1/compress`: takes a conversation, and returns the window that we would send. The form
//! is one that gateways already call.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, SavedTokens};
use trimtab_wire::scan::{BodyScan, detect_messages};

use super::{NO_MEMORY, NO_STORE, compress_rows};
use crate::conversation::branch::OutgoingBody;
use crate::conversation::store_state::OpenedStore;
use crate::request::context::RequestContext;
use crate::request::plan::{ManagedRequest, PlanningJob, plan, planning_bytes};
use crate::resources::deadline::{self, WorkFailure};
use crate::resources::memory_budget::Reservation;
use crate::transport::body::ProxyBody;

/// The error for a body that is not a conversation.
const NOT_UNDERSTOOD: &str =
    "the body is no conversation\nhint: send {\"messages\": [...], \"model\": \"...\"}";

/// The reply to a gateway.
#[derive(Serialize)]
pub(super) struct CompressReply<'a> {
    /// The messages as they are in the body. Parsing them would take many times their size, and
    /// write their numbers in another way.
    messages: &'a RawValue,
    tokens_before: u64,
    tokens_after: u64,
    tokens_saved: i64,
    compression_ratio: f64,
    ccr_hashes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl<'a> CompressReply<'a> {
    /// The reply with the messages of a body, their tokens before and after, and the hashes of the
    /// outputs that are not shown whole.
    pub(super) fn new(
        dialect: Dialect,
        body: &'a [u8],
        (before, after): (u64, u64),
        hashes: Vec<String>,
        session: Option<&'a str>,
    ) -> Option<Self> {
        let scan = BodyScan::new(body, dialect).ok()?;
        Some(Self {
            messages: serde_json::from_str(scan.json(scan.request().list)).ok()?,
            tokens_before: before,
            tokens_after: after,
            tokens_saved: SavedTokens::of_changed(before, after, None, None).saved(),
            compression_ratio: if before == 0 {
                1.0
            } else {
                after as f64 / before as f64
            },
            ccr_hashes: hashes,
            session,
        })
    }

    /// The reply as JSON.
    pub(super) fn write(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

pub(super) async fn answer(context: RequestContext, mut body: Bytes) -> Response<ProxyBody> {
    // Everything that reads the body runs on other threads, because a long one takes a while.
    let read = body.clone();
    let reading = spawn_blocking(move || Some((detect_messages(&read)?, planning_bytes(&read, 0))));
    let Ok(Some((dialect, needed))) = reading.await else {
        return context.refuse(StatusCode::BAD_REQUEST, NOT_UNDERSTOOD);
    };
    let Some(opened) = context.shared.store_state.usable() else {
        return context.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_STORE);
    };
    let mut memory = context.reservation();
    if !memory.grow_for_work(needed) {
        return context.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_MEMORY);
    }
    if dialect == Dialect::Responses {
        let read = body.clone();
        if let Ok(Some(named)) = spawn_blocking(move || with_input(&read)).await {
            body = Bytes::from(named);
        }
    }
    // Shared with the planning thread, which may go on for a while after its deadline.
    let memory = Arc::new(memory);
    let compressed = compress(&context, opened, (dialect, &body), Arc::clone(&memory)).await;
    let Ok(compressed) = compressed else {
        return context.refuse(StatusCode::INTERNAL_SERVER_ERROR, "planning failed");
    };
    let reply = if compressed.is_some() {
        compressed
    } else {
        let reading = spawn_blocking(move || unchanged(dialect, &body));
        reading.await.ok().flatten()
    };
    match reply {
        Some(reply) => {
            // The reply is counted until the client has read it.
            let mut memory = context.reservation();
            memory.set(reply.capacity());
            context.reply_text("application/json", memory.attach(reply))
        }
        None => context.refuse(StatusCode::BAD_REQUEST, NOT_UNDERSTOOD),
    }
}

/// The body with the items of Responses under their own name, if a gateway calls them `messages`.
fn with_input(body: &[u8]) -> Option<Vec<u8>> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let messages = fields.remove("messages")?;
    fields.insert("input".to_owned(), messages);
    serde_json::to_vec(&fields).ok()
}

/// The reply with a smaller conversation, as JSON; none if it stays as it is.
async fn compress(
    context: &RequestContext,
    opened: Arc<OpenedStore>,
    (dialect, body): (Dialect, &Bytes),
    memory: Arc<Reservation>,
) -> Result<Option<String>, WorkFailure> {
    let limits = context.settings.config.limits;
    let tenant = context.tenant.clone().ok();
    // A caller that nobody knows shares nothing, so nothing is stored for it. A small body has
    // nothing to trim.
    let Some(tenant) = tenant.filter(|_| body.len() >= limits.session_bytes) else {
        return Ok(None);
    };
    // Without a place to plan, the conversation comes back unchanged.
    let Ok(permit) = Arc::clone(&context.shared.plans).try_acquire_owned() else {
        return Ok(None);
    };
    let job = PlanningJob::new(context, opened, dialect, tenant, body.clone());
    let planning = deadline::run_in_turn(&context.shared.turns, limits.plan_time(), move || {
        let _held = (permit, memory);
        if compress_rows::wants_rows(dialect, &job.body) {
            compress_rows::compressed(&job)
        } else {
            let planned = plan(job).ok();
            planned.and_then(|(managed, planned)| compressed(&managed, &planned.outgoing))
        }
    });
    match planning.await {
        Err(WorkFailure::Slow) => Ok(None),
        planned => planned,
    }
}

/// The window and its savings, as JSON.
fn compressed(managed: &ManagedRequest, outgoing: &OutgoingBody) -> Option<String> {
    let body = outgoing.body.as_ref().unwrap_or(&managed.job.body);
    let refs = managed
        .with_branch(|branch| Ok(branch.shown_refs()?))
        .ok()?;
    let (dialect, session) = (managed.job.dialect, Some(managed.session.as_str()));
    CompressReply::new(dialect, body, outgoing.sizes.tokens, refs, session)?.write()
}

/// The reply with an unchanged conversation, as JSON.
fn unchanged(dialect: Dialect, body: &[u8]) -> Option<String> {
    let tokens = prompt_tokens(dialect, body)?;
    CompressReply::new(dialect, body, (tokens, tokens), Vec::new(), None)?.write()
}

/// The estimated tokens of a body's messages and tools, for an unknown model.
fn prompt_tokens(dialect: Dialect, body: &[u8]) -> Option<u64> {
    let scan = BodyScan::new(body, dialect).ok()?;
    // Not `scan.message(at)` for each position: an entry of Messages can contain many messages, and
    // would be parsed for each of them.
    let messages = scan.messages(0).flatten();
    let messages: Measure = messages.map(|message| Measure::of(&message)).sum();
    Some((messages + Measure::of_text(&scan.tools_in_prompt())).tokens())
}
