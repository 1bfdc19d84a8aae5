//! A request that may be managed: unpacked, decided on, sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_ENCODING;
use tokio::task::spawn_blocking;
use trimtab_model::Dialect;

use crate::answer::usage_watch::UsageWatch;
use crate::conversation::store_state::OpenedStore;
use crate::exchange;
use crate::prefix_cache::prefix_hash::Hashed;
use crate::request::context::Asked;
use crate::request::plan::{self, Decided, Pace, Work};
use crate::request::plan_memory::planning_bytes;
use crate::resources::deadline;
use crate::resources::memory_budget::Reservation;
use crate::response_chains::AnswerTap;
use crate::transport::body::{Body, full};
use crate::transport::decompress::{NotDecoded, decode};

/// Compressed bodies up to this size are unpacked at once; larger ones off the thread.
const UNPACKED_AT_ONCE: usize = 16 << 10;
/// Answers a request whose body was read, and hashed meanwhile.
pub(crate) async fn manage(
    mut asked: Asked,
    opened: Arc<OpenedStore>,
    dialect: Dialect,
    (came, hashed): (Bytes, Hashed),
) -> Response<Body> {
    asked.note.record.dialect = Some(dialect);
    let memory = asked.planning.take();
    let decided = match unpack(&asked, &came).await {
        Ok(body) => {
            let whole = whole_conversation(&mut asked, dialect, &body);
            let hashed = whole.is_none().then_some(hashed);
            let body = (whole.unwrap_or(body), hashed);
            decide(&asked, opened, dialect, body, memory).await
        }
        Err(reason) => {
            drop(memory);
            Decided::Pass {
                reason,
                detail: String::new(),
                model: None,
            }
        }
    };
    asked.note.record.plan_ms = asked.note.elapsed_ms();
    match decided {
        Decided::Manage(managed) => Box::pin(exchange::run(asked, *managed, came)).await,
        Decided::Pass {
            reason,
            detail,
            model,
        } => {
            asked.note.because(reason);
            asked.note.record.detail = detail;
            pass(asked, dialect, model.as_deref(), came).await
        }
        Decided::Later(_) => {
            asked.note.because("slow");
            pass(asked, dialect, None, came).await
        }
    }
}

/// The body of the whole conversation, where the client sent only a part of it and the rest was
/// seen here.
fn whole_conversation(asked: &mut Asked, dialect: Dialect, body: &Bytes) -> Option<Bytes> {
    let tenant = asked.tenant.as_ref().ok()?;
    if dialect != Dialect::Responses {
        return None;
    }
    let read = asked.shared.chains.read(tenant.as_str(), body);
    asked.tap = read
        .next
        .map(|next| AnswerTap::new(&asked.shared.chains, next));
    read.whole
}

/// Sends a request as it came, and reads the usage from its answer.
async fn pass(
    mut asked: Asked,
    dialect: Dialect,
    model: Option<&str>,
    came: Bytes,
) -> Response<Body> {
    asked.note.record.model = model.unwrap_or_default().to_owned();
    asked.usage = Some(UsageWatch::new(dialect));
    asked.pass(dialect, model, full(came)).await
}

/// The body, unpacked; or why it is not, if that is not possible or would be too much.
async fn unpack(asked: &Asked, came: &Bytes) -> Result<Bytes, &'static str> {
    if !asked.headers.contains_key(CONTENT_ENCODING) {
        return Ok(came.clone());
    }
    let limits = asked.settings.config.limits;
    let permit = asked.shared.unpacking.acquire();
    let Ok(Ok(_permit)) = tokio::time::timeout(limits.plan_time(), permit).await else {
        return Err("busy");
    };
    let memory = asked.reservation();
    let unpacked = if came.len() <= UNPACKED_AT_ONCE {
        decode(&asked.headers, came, &limits, memory)
    } else {
        let (headers, body) = (asked.headers.clone(), came.clone());
        let unpacking = spawn_blocking(move || decode(&headers, &body, &limits, memory));
        unpacking.await.map_err(|_| "panicked")?
    };
    let unpacked = unpacked.map_err(NotDecoded::reason)?;
    Ok(unpacked.unwrap_or_else(|| came.clone()))
}

/// Decides within the limits of time and number; whatever fails lets the request pass.
async fn decide(
    asked: &Asked,
    opened: Arc<OpenedStore>,
    dialect: Dialect,
    (body, hashed): (Bytes, Option<Hashed>),
    memory: Option<Reservation>,
) -> Decided {
    let limits = asked.settings.config.limits;
    if body.len() < limits.session_bytes {
        let decided = catch_unwind(|| plan::small(dialect, &body));
        return decided.unwrap_or_else(|_| failed("panicked"));
    }
    let tenant = match &asked.tenant {
        Ok(tenant) => tenant.clone(),
        Err(unknown) => {
            let decided = catch_unwind(|| plan::without_tenant(dialect, &body, &unknown.detail));
            return decided.unwrap_or_else(|_| failed("panicked"));
        }
    };
    let is_packed = asked.headers.contains_key(CONTENT_ENCODING);
    let work = Work {
        is_pieced: hashed.is_none(),
        hashed: hashed.filter(|_| !is_packed),
        ..Work::new(asked, opened, dialect, tenant, body)
    };
    let Ok(permit) = Arc::clone(&asked.shared.plans).try_acquire_owned() else {
        return failed("busy");
    };
    let mut memory = memory.unwrap_or_else(|| asked.reservation());
    if !memory.grow_to(planning_bytes(&work.body)) {
        return failed("memory");
    }
    let permit = (permit, memory);
    let work = match quickly(work) {
        Decided::Later(work) => work,
        decided => return decided,
    };
    let turns = &asked.shared.turns;
    let deciding = deadline::in_turn(turns, limits.plan_time(), move || {
        let _permit = permit;
        work.decide(Pace::MayWait)
    });
    let decided = deciding.await;
    decided.unwrap_or_else(|unfinished| failed(unfinished.reason()))
}

/// Decides here and now if that is quick: waking another thread often takes longer.
fn quickly(work: Work) -> Decided {
    if !work.may_be_quick() {
        return Decided::Later(Box::new(work));
    }
    // What it leaves half done is read from the store again: see `Family::branches`.
    let decided = catch_unwind(AssertUnwindSafe(|| work.decide(Pace::Quick)));
    decided.unwrap_or_else(|_| failed("panicked"))
}

fn failed(reason: &'static str) -> Decided {
    Decided::Pass {
        reason,
        detail: format!("planning: {reason}"),
        model: None,
    }
}
