//! The live feed: server-sent events that say what changed. Pages then ask for the data.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{self, Sender};

use crate::history::{CallHistory, MISSED};
use crate::records::record::RecordAction;
use crate::request::context::RequestContext;
use crate::transport::body::{BoxError, ProxyBody};

/// How often something is sent when nothing happens, so that both sides know the other is there.
const PING: Duration = Duration::from_secs(10);
/// How many groups of events wait for one screen.
const WAITING: usize = 16;

/// Answers with a feed that ends when the client goes or the proxy stops.
pub(super) fn answer(mut context: RequestContext) -> Response<ProxyBody> {
    let Some(events) = context.shared.history.subscribe() else {
        return context.refuse(StatusCode::SERVICE_UNAVAILABLE, "the proxy is stopping");
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(forward(Arc::clone(&context.shared.history), events, sender));
    let mut answer = Response::new(StreamBody::new(FeedEvents(receiver)).boxed_unsync());
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    context.pending_record.record.action = RecordAction::Answered;
    context.deliver(answer, None)
}

/// Gives a screen the events, until it goes or the proxy stops.
async fn forward(history: Arc<CallHistory>, mut events: Receiver<Bytes>, screen: Sender<Bytes>) {
    // A first event tells the page that it is connected.
    let mut next = Some(Bytes::from_static(
        b"retry: 1000\ndata: {\"type\":\"hello\"}\n\n",
    ));
    while let Some(event) = next {
        if screen.send(event).await.is_err() {
            break;
        }
        next = tokio::select! {
            event = events.recv() => match event {
                Ok(group) => Some(group),
                // The screen was too slow.
                Err(RecvError::Lagged(_)) => Some(Bytes::from_static(MISSED)),
                Err(RecvError::Closed) => None,
            },
            () = tokio::time::sleep(PING) => Some(Bytes::from_static(b": ping\n\n")),
            () = screen.closed() => None,
        };
    }
    drop(events);
    history.screen_left();
}

/// The events for one screen.
struct FeedEvents(mpsc::Receiver<Bytes>);

impl Stream for FeedEvents {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.poll_recv(context);
        next.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
