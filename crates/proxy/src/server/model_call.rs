//! A request that calls a model: recognised by its path, read into memory, and planned on a
//! thread of its own. `server::dispatch` calls these steps in this order; whatever fails here
//! makes the request pass unchanged, with the reason in its record.

use std::panic::catch_unwind;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_ENCODING;
use tokio::task::spawn_blocking;
use trimtab_model::Dialect;
use trimtab_wire::scan::detect;

use crate::config::ProxyMode;
use crate::conversation::store_state::OpenedStore;
use crate::prefix_cache::prefix_hash::PrefixHash;
use crate::request::bypass_reason::{self, Unmanaged};
use crate::request::context::RequestContext;
use crate::request::plan::{self, ManagedRequest, PLANNING_PER_BYTE, PlannedSend, PlanningJob};
use crate::resources::deadline;
use crate::response_chains::{AnswerTap, stored_link};
use crate::routing::spoken_dialects::SpokenDialects;
use crate::transport::body::{ProxyBody, ReceivedBody, receive, rejoined_body};
use crate::transport::decompress::{NotDecoded, decode};
use crate::transport::headers;

/// Compressed bodies up to this size are decompressed on the thread that serves the connection.
const DECOMPRESSED_AT_ONCE: usize = 16 << 10;

/// Planning gets its time once more for each such number of bytes that it needs, so that a long body
/// that is new can be planned: 30 MB of text take about a second.
const BYTES_PER_PLAN_TIME: usize = 64 << 20;

/// A request that calls a model and may be managed.
pub(crate) struct ModelCall {
    pub(crate) dialect: Dialect,
    opened: Arc<OpenedStore>,
}

impl ModelCall {
    /// Recognises a call by its method, path and headers. Otherwise returns the reason why the
    /// request passes, and the dialects that its client may speak.
    pub(crate) fn recognise(
        context: &RequestContext,
    ) -> Result<Self, (&'static str, SpokenDialects)> {
        // Other methods on these paths carry no messages: `GET /v1/chat/completions` lists stored
        // answers.
        let by_path = detect(b"", &context.path).filter(|_| context.method == Method::POST);
        let Some(dialect) = by_path else {
            return Err(("endpoint", SpokenDialects::by_client(&context.headers)));
        };
        // `detect` takes the path of a token count for one of Messages, but a count is no turn of a
        // conversation.
        let reason = if bypass_reason::is_token_count(&context.path) {
            "count"
        } else if headers::mode(&context.headers) == Some(ProxyMode::Bypass) {
            "bypass"
        } else if let Some(opened) = context.shared.store_state.usable() {
            return Ok(Self { dialect, opened });
        } else {
            "store"
        };
        Err((reason, dialect.into()))
    }
}

/// The body of a call.
pub(crate) struct ReadBody {
    /// The original bytes, still compressed if they were.
    pub(crate) received: Bytes,
    /// The hash that was computed while it arrived.
    hashed: PrefixHash,
}

/// Reads the body of a call. If it is too long or there is no memory, returns the reason and the
/// whole body to pass on; `None` if the body broke off.
pub(crate) async fn read_body(
    context: &mut RequestContext,
    call: &ModelCall,
    body: ProxyBody,
) -> Result<ReadBody, Option<(&'static str, ProxyBody)>> {
    let limit = context.settings.config.limits.body_bytes;
    // Hashed piece by piece while it arrives: the hash is ready with the last byte and adds no
    // latency.
    let mut prefix_hash = PrefixHash::new(call.opened.keys.fingerprint_key());
    let seen = |piece: &[u8]| prefix_hash.add(piece);
    let memory = (Some(context.reservation()), PLANNING_PER_BYTE);
    match receive(body, limit, memory, seen).await {
        ReceivedBody::Whole(received) => {
            // A body that is too long or breaks off leaves it unset, so it does not count as a call
            // to a model.
            context.pending_record.record.dialect = Some(call.dialect);
            Ok(ReadBody {
                received,
                hashed: prefix_hash,
            })
        }
        ReceivedBody::Broken(..) => Err(None),
        ReceivedBody::TooLong(read, rest) => {
            Err(Some(("body-too-long", rejoined_body(read, rest))))
        }
        ReceivedBody::NoMemory(read, rest) => Err(Some(("memory", rejoined_body(read, rest)))),
    }
}

/// Plans a call within the limits of time, concurrency and memory.
pub(crate) async fn plan(
    context: &mut RequestContext,
    call: &ModelCall,
    read: ReadBody,
) -> Result<(ManagedRequest, PlannedSend), Unmanaged> {
    let planned = match decompressed(context, &read.received).await {
        Ok(body) => plan_body(context, call, body, read).await,
        Err(reason) => Err(Unmanaged::because(reason)),
    };
    context.pending_record.record.plan_ms = context.pending_record.elapsed_ms();
    planned
}

async fn plan_body(
    context: &mut RequestContext,
    call: &ModelCall,
    body: Bytes,
    read: ReadBody,
) -> Result<(ManagedRequest, PlannedSend), Unmanaged> {
    let is_compressed = context.headers.contains_key(CONTENT_ENCODING);
    let full_body = whole_conversation(context, call, &body).await;
    let partial = full_body.as_ref().map(|_| body.clone());
    let body = full_body.unwrap_or(body);
    let (dialect, limits) = (call.dialect, context.settings.config.limits);
    // Small bodies have nothing to trim. They are read for their model's name only.
    if body.len() < limits.session_bytes {
        let small = catch_unwind(|| plan::decide_small_body(dialect, &body));
        return Err(small.unwrap_or_else(|_| Unmanaged::failed("panicked")));
    }
    let tenant = match &context.tenant {
        Ok(tenant) => tenant.clone(),
        Err(unknown) => {
            let detail = unknown.detail.clone();
            // On another thread, because the body may be long.
            let decide = move || plan::decide_without_tenant(dialect, &body, &detail);
            let passes = spawn_blocking(decide).await;
            return Err(passes.unwrap_or_else(|_| Unmanaged::failed("panicked")));
        }
    };
    // The hash is of the received bytes, so it is useless for a body that was decompressed or
    // completed.
    let hashed = if partial.is_some() {
        // Hashed here, because a completed body is as long as its conversation, and only its new
        // part shall need memory like a new body.
        let (opened, body) = (Arc::clone(&call.opened), body.clone());
        let hashing = move || PrefixHash::of(opened.keys.fingerprint_key(), &body);
        spawn_blocking(hashing).await.ok()
    } else {
        Some(read.hashed).filter(|_| !is_compressed)
    };
    let mut job = PlanningJob {
        partial,
        hashed,
        ..PlanningJob::new(context, Arc::clone(&call.opened), dialect, tenant, body)
    };
    // Do not queue: a request that waits for a place holds its body in memory.
    let permit = Arc::clone(&context.shared.plans).try_acquire_owned();
    let permit = permit.map_err(|_| Unmanaged::failed("busy"))?;
    // Memory is reserved together with the turn, so that requests that wait hold only their body. If
    // it is short, the request passes unchanged, which needs none.
    let (mut memory, needed) = (context.reservation(), job.find_known_prefix());
    let times = u32::try_from(1 + needed / BYTES_PER_PLAN_TIME).unwrap_or(u32::MAX);
    let (turns, time) = (
        &context.shared.turns,
        limits.plan_time().saturating_mul(times),
    );
    let turn = deadline::turn_with_memory(turns, time, &mut memory, needed).await;
    let Some(turn) = turn else {
        return Err(Unmanaged::failed("memory"));
    };
    let planning = deadline::run_within(turn.time_left, move || {
        // Planning goes on after its deadline until it sees the flag, and holds its place until
        // then.
        let _held = (permit, memory, turn);
        plan::plan(job)
    });
    let planned = planning.await;
    planned.unwrap_or_else(|unfinished| Err(Unmanaged::failed(unfinished.reason())))
}

/// The body with the whole conversation, if the client sent only a part of it and the rest passed
/// through this proxy.
async fn whole_conversation(
    context: &mut RequestContext,
    call: &ModelCall,
    body: &Bytes,
) -> Option<Bytes> {
    let tenant = context.tenant.as_ref().ok()?.clone();
    if call.dialect != Dialect::Responses {
        return None;
    }
    let (opened, body) = (Arc::clone(&call.opened), body.clone());
    let chains = Arc::clone(&context.shared.chains);
    let (memory, more) = (context.reservation(), context.reservation());
    // On another thread: a long body is scanned and written again. If that panics, the request
    // passes like one whose beginning was not seen.
    let reading = spawn_blocking(move || {
        let read = chains.read(tenant.as_str(), &body, memory);
        let is_whole = read.full_body.is_some();
        let continued = (!is_whole).then(|| stored_link::continued(&opened, &tenant, &body, more));
        (read, continued.flatten())
    });
    let (read, continued) = reading.await.unwrap_or_default();
    context.tap = read
        .next
        .map(|next| AnswerTap::new(&context.shared.chains, next));
    context.continued = continued;
    read.full_body
}

/// The decompressed body, or the reason why it passes unchanged.
async fn decompressed(context: &RequestContext, received: &Bytes) -> Result<Bytes, &'static str> {
    if !context.headers.contains_key(CONTENT_ENCODING) {
        return Ok(received.clone());
    }
    let limits = context.settings.config.limits;
    // A small compressed body can become a large one, so few are unpacked at a time.
    let permit = context.shared.unpacking.acquire();
    let Ok(Ok(_permit)) = tokio::time::timeout(limits.plan_time(), permit).await else {
        return Err("busy");
    };
    let memory = context.reservation();
    let body = if received.len() <= DECOMPRESSED_AT_ONCE {
        decode(&context.headers, received, &limits, memory)
    } else {
        // Decompression of a larger body would keep the other connections of this thread waiting.
        let (headers, body) = (context.headers.clone(), received.clone());
        let decoding = spawn_blocking(move || decode(&headers, &body, &limits, memory));
        decoding.await.map_err(|_| "panicked")?
    };
    let body = body.map_err(NotDecoded::reason)?;
    Ok(body.unwrap_or_else(|| received.clone()))
}
