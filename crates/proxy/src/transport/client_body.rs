//! The body of a request as its client sends it. A fault in it is remembered, so that the answer
//! names the client as the cause and not the upstream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use hyper::body::Incoming;

use crate::transport::body::{BoxError, IdleLimitedBody, IdleTimeout, ProxyBody};
use crate::transport::connections::Connection;
use crate::transport::watched_body::{FrameWatch, PolledFrame, watched_body};

/// The fault of a request body, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyFault(Arc<OnceLock<(StatusCode, String)>>);

impl BodyFault {
    /// The status and the text of the answer.
    pub(crate) fn get(&self) -> Option<&(StatusCode, String)> {
        self.0.get()
    }

    fn note(&self, error: &BoxError) {
        let fault = if error.is::<IdleTimeout>() {
            let why = format!(
                "the request body did not go on: {error}\n\
                 hint: limits.body_idle_ms is how long the proxy waits"
            );
            (StatusCode::REQUEST_TIMEOUT, why)
        } else {
            let why = format!(
                "the request body is broken or was cut off: {error}\n\
                 hint: send as many bytes as content-length says, or whole chunks"
            );
            (StatusCode::BAD_REQUEST, why)
        };
        // The first fault is the one that counts.
        self.0.set(fault).unwrap_or(());
    }
}

/// Watches the body of a client. Reading fails if nothing arrives for too long.
pub(crate) struct ClientBody {
    fault: BodyFault,
    /// Its bytes so far.
    bytes: Arc<AtomicU64>,
    connection: Option<Arc<Connection>>,
}

impl ClientBody {
    /// The body, and its fault, which is set later. Its bytes are added to `bytes`.
    pub(crate) fn wrap(
        incoming: Incoming,
        limit: Duration,
        bytes: Arc<AtomicU64>,
        connection: Option<Arc<Connection>>,
    ) -> (ProxyBody, BodyFault) {
        let fault = BodyFault::default();
        let body = IdleLimitedBody::sent_by("the client", incoming, limit);
        let watch = Self {
            fault: fault.clone(),
            bytes,
            connection,
        };
        (watched_body(body, watch), fault)
    }

    /// Reports the progress of the client to the connection.
    fn note_progress(&self, polled: &PolledFrame, is_end: bool) {
        let Some(connection) = &self.connection else {
            return;
        };
        let mut progress = connection.progress();
        match polled {
            // Only now does somebody wait for the client. Before that, we may be the slow side.
            Poll::Pending => progress.begin_body(Instant::now()),
            Poll::Ready(Some(Ok(_))) if is_end => progress.end_body(),
            Poll::Ready(Some(Ok(frame))) => {
                progress.note_body_bytes(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(Some(Err(_)) | None) => progress.end_body(),
        }
    }
}

// A body that is dropped unread, for example after a refusal, is not waited for any more.
impl Drop for ClientBody {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.progress().end_body();
        }
    }
}

impl FrameWatch for ClientBody {
    fn polled(&mut self, polled: &PolledFrame, is_end: bool) {
        self.note_progress(polled, is_end);
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Poll::Ready(Some(Err(error))) => self.fault.note(error),
            _ => {}
        }
    }
}
