//! A request that may be managed: unpacked, decided on, sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use trimtab_model::Dialect;

use crate::asked::Asked;
use crate::body::{Body, full};
use crate::decode::decode;
use crate::exchange;
use crate::hashed::Hashed;
use crate::plan::{self, Decided, Pace, Work};
use crate::service;
use crate::watch::UsageWatch;

/// Compressed bodies up to this size are unpacked at once; larger ones off the thread.
const UNPACKED_AT_ONCE: usize = 16 << 10;

/// Answers a request whose body was read, and hashed meanwhile.
pub(crate) async fn manage(
    mut asked: Asked,
    dialect: Dialect,
    (came, hashed): (Bytes, Hashed),
) -> Response<Body> {
    asked.note.record.dialect = Some(dialect);
    let decided = match unpack(&asked, &came).await {
        Some(body) => decide(&asked, dialect, (body, hashed)).await,
        None => Decided::Pass {
            reason: "encoding",
            detail: String::new(),
            model: None,
        },
    };
    asked.note.record.plan_ms = asked.note.elapsed_ms();
    match decided {
        Decided::Manage(managed) => exchange::run(asked, *managed, came).await,
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

/// Sends a request as it came, and reads the usage from its answer.
async fn pass(
    mut asked: Asked,
    dialect: Dialect,
    model: Option<&str>,
    came: Bytes,
) -> Response<Body> {
    asked.note.record.model = model.unwrap_or_default().to_owned();
    asked.usage = Some(UsageWatch::new(dialect));
    service::pass(asked, dialect, model, full(came)).await
}

/// The body, unpacked. None if that is not possible or would be too much.
async fn unpack(asked: &Asked, came: &Bytes) -> Option<Bytes> {
    let limits = asked.settings.config.limits;
    if came.len() <= UNPACKED_AT_ONCE {
        let unpacked = decode(&asked.headers, came, &limits).ok()?;
        return Some(unpacked.unwrap_or_else(|| came.clone()));
    }
    if !asked.headers.contains_key(http::header::CONTENT_ENCODING) {
        return Some(came.clone());
    }
    let (headers, body) = (asked.headers.clone(), came.clone());
    let unpacking = tokio::task::spawn_blocking(move || decode(&headers, &body, &limits));
    let unpacked = unpacking.await.ok()?.ok()?;
    Some(unpacked.unwrap_or_else(|| came.clone()))
}

/// Decides within the limits of time and number; whatever fails lets the request pass.
async fn decide(asked: &Asked, dialect: Dialect, (body, hashed): (Bytes, Hashed)) -> Decided {
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
    let is_packed = asked.headers.contains_key(http::header::CONTENT_ENCODING);
    let work = Work {
        shared: Arc::clone(&asked.shared),
        settings: Arc::clone(&asked.settings),
        dialect,
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        tenant,
        body,
        hashed: (!is_packed).then_some(hashed),
    };
    let Ok(permit) = Arc::clone(&asked.shared.plans).try_acquire_owned() else {
        return failed("busy");
    };
    let deciding = match quickly(work) {
        Decided::Later(work) => tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work.decide(Pace::MayWait)
        }),
        decided => return decided,
    };
    match tokio::time::timeout(limits.plan_time(), deciding).await {
        Ok(Ok(decided)) => decided,
        Ok(Err(_)) => failed("panicked"),
        Err(_) => failed("slow"),
    }
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
