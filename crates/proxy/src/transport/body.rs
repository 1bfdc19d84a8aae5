//! Bodies of requests and answers: read within limits, held back, joined again, or watched for
//! idle time.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::time::{Instant, Sleep};

use crate::resources::memory_budget::Reservation;
use crate::resources::reserved_buffer::ReservedBuffer;

/// An error of a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The type of all bodies.
pub(crate) type ProxyBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body of these bytes.
pub(crate) fn full_body(bytes: impl Into<Bytes>) -> ProxyBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The body of an answer. It fails if nothing arrives for `idle`; no other timer limits an answer.
pub(crate) fn from_upstream(incoming: Incoming, idle: Duration) -> ProxyBody {
    IdleLimitedBody::sent_by("upstream", incoming, idle).boxed_unsync()
}

/// A body that was read up to a limit.
pub(crate) enum CollectedBody {
    /// All of it.
    Whole(Bytes),
    /// It is longer, broke off, or exceeds the memory: the bytes read, and the rest or the error.
    Longer(Bytes, ProxyBody),
}

/// Reads a body up to a small number of bytes, without a reservation.
pub(crate) async fn collect(body: ProxyBody, limit: usize) -> CollectedBody {
    receive(body, limit, (None, 0), |_| ()).await.into()
}

/// Reads a body up to a number of bytes, into memory that is reserved while it grows.
pub(crate) async fn collect_reserved(
    body: ProxyBody,
    limit: usize,
    memory: Reservation,
) -> CollectedBody {
    receive(body, limit, (Some(memory), 0), |_| ()).await.into()
}

impl From<ReceivedBody> for CollectedBody {
    fn from(received: ReceivedBody) -> Self {
        match received {
            ReceivedBody::Whole(bytes) => Self::Whole(bytes),
            ReceivedBody::TooLong(read, rest) | ReceivedBody::NoMemory(read, rest) => {
                Self::Longer(read, rest)
            }
            ReceivedBody::Broken(read, error) => Self::Longer(read, failing_body(error)),
        }
    }
}

/// A received body.
pub(crate) enum ReceivedBody {
    /// All of it.
    Whole(Bytes),
    /// It exceeds the limit: the bytes read, and the rest.
    TooLong(Bytes, ProxyBody),
    /// There is no memory for it: the bytes read, and the rest.
    NoMemory(Bytes, ProxyBody),
    /// It broke off: the bytes read, and the error.
    Broken(Bytes, BoxError),
}

/// Reads a body up to `limit` bytes, into reserved memory if there is a reservation. `spare` bytes per
/// byte must be free besides. `seen` gets each piece.
pub(crate) async fn receive(
    mut body: ProxyBody,
    limit: usize,
    (memory, spare): (Option<Reservation>, usize),
    mut seen: impl FnMut(&[u8]),
) -> ReceivedBody {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // A body that announces too many bytes streams through at once, without reading any of it.
    if expected > limit {
        return ReceivedBody::TooLong(Bytes::new(), body);
    }
    let mut buffer = ReservedBuffer::new(memory, spare);
    while let Some(frame) = body.frame().await {
        let data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            // Trailers; neither requests nor answers of these APIs need them.
            Ok(Err(_)) => continue,
            Err(error) => return ReceivedBody::Broken(buffer.freeze(), error),
        };
        seen(&data);
        // The piece is in memory already, so it is kept even if there is no room: it has to be
        // forwarded.
        let has_room = buffer.reserve(data.len()).await;
        buffer.push(data, expected);
        if buffer.len() > limit {
            return ReceivedBody::TooLong(buffer.freeze(), body);
        }
        if !has_room {
            return ReceivedBody::NoMemory(buffer.freeze(), body);
        }
    }
    ReceivedBody::Whole(buffer.freeze())
}

/// A body that consists only of an error.
pub(crate) fn failing_body(error: BoxError) -> ProxyBody {
    StreamBody::new(FailingBody(Some(error))).boxed_unsync()
}

struct FailingBody(Option<BoxError>);

impl Stream for FailingBody {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

/// A body whose last byte is sent only after `ready` succeeds, so that nobody has the complete body
/// before. It fails if `ready` fails.
pub(crate) fn held_body(
    bytes: Bytes,
    ready: impl Future<Output = Result<(), BoxError>> + Send + 'static,
) -> ProxyBody {
    HeldBody {
        bytes,
        ready: Some(Box::pin(ready)),
    }
    .boxed_unsync()
}

type ReadyFuture = dyn Future<Output = Result<(), BoxError>> + Send;

struct HeldBody {
    bytes: Bytes,
    ready: Option<Pin<Box<ReadyFuture>>>,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(ready) = &mut this.ready {
            match ready.as_mut().poll(context) {
                Poll::Ready(Ok(())) => this.ready = None,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                // `ready` has registered the waker, so the task is polled again when it is done.
                Poll::Pending if this.bytes.len() <= 1 => return Poll::Pending,
                Poll::Pending => {
                    let most = this.bytes.split_to(this.bytes.len() - 1);
                    return Poll::Ready(Some(Ok(Frame::data(most))));
                }
            }
        }
        let rest = std::mem::take(&mut this.bytes);
        Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        // hyper reads this once, before the first frame, and sends it as the length.
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// A body with bytes that were already read put back at its beginning.
pub(crate) fn rejoined_body(read: Bytes, rest: ProxyBody) -> ProxyBody {
    if read.is_empty() {
        return rest;
    }
    RejoinedBody {
        read: Some(read),
        unread: rest,
    }
    .boxed_unsync()
}

struct RejoinedBody {
    read: Option<Bytes>,
    unread: ProxyBody,
}

impl HttpBody for RejoinedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(read) = self.read.take() {
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        Pin::new(&mut self.unread).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none() && self.unread.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.as_ref().map_or(0, |read| read.len() as u64);
        let rest = self.unread.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

/// Nothing came for too long.
#[derive(Debug, Error)]
#[error("{sender} sent nothing for {limit:?}")]
pub(crate) struct IdleTimeout {
    sender: &'static str,
    limit: Duration,
}

/// A body that fails if nothing arrives for too long while somebody waits for it.
pub(crate) struct IdleLimitedBody<B> {
    inner: B,
    sender: &'static str,
    limit: Duration,
    /// When the current wait started. Time without a waiting reader does not count.
    waiting: Option<Instant>,
    /// A timer at or before the deadline, once somebody had to wait. Moving it for every event
    /// would cost more than checking late.
    alarm: Option<Pin<Box<Sleep>>>,
    /// The task that the timer wakes.
    wakes: Option<Waker>,
}

impl<B> IdleLimitedBody<B> {
    /// Watches a body that `sender` sends.
    pub(crate) fn sent_by(sender: &'static str, inner: B, limit: Duration) -> Self {
        Self {
            inner,
            sender,
            limit,
            waiting: None,
            alarm: None,
            wakes: None,
        }
    }
}

impl<B> HttpBody for IdleLimitedBody<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        // The time starts when somebody waits. A client that reads slowly must not make the
        // upstream look idle.
        let since = *this.waiting.get_or_insert_with(Instant::now);
        let sleep = || Box::pin(tokio::time::sleep_until(since + this.limit));
        let alarm = this.alarm.get_or_insert_with(sleep);
        let is_set = this
            .wakes
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()));
        // A timer that is set for this waker needs no second poll, which is the case for almost
        // every event.
        if is_set && !alarm.is_elapsed() {
            return Poll::Pending;
        }
        this.wakes = Some(context.waker().clone());
        while alarm.as_mut().poll(context).is_ready() {
            if since.elapsed() >= this.limit {
                let (who, limit) = (this.sender, this.limit);
                return Poll::Ready(Some(Err(IdleTimeout { sender: who, limit }.into())));
            }
            // The alarm was set for an earlier wait, in which something came in time.
            alarm.as_mut().reset(since + this.limit);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_is_too_long_is_given_back_whole() {
        let long = rejoined_body(Bytes::from_static(b"ab"), full_body("cdef"));
        let CollectedBody::Longer(read, rest) = collect(long, 3).await else {
            panic!("it is longer");
        };
        let whole = rejoined_body(read, rest)
            .collect()
            .await
            .unwrap()
            .to_bytes();
        assert_eq!(whole, "abcdef");
    }

    #[tokio::test]
    async fn a_short_body_is_read_whole() {
        let body = rejoined_body(Bytes::from_static(b"ab"), full_body("cd"));
        let CollectedBody::Whole(bytes) = collect(body, 4).await else {
            panic!("it is not longer");
        };
        assert_eq!(bytes, "abcd");
    }

    #[tokio::test]
    async fn read_part_of_a_broken_body_is_passed_on() {
        let body = rejoined_body(Bytes::from_static(b"ab"), failing_body("gone".into()));
        let CollectedBody::Longer(read, mut rest) = collect(body, 9).await else {
            panic!("it is not whole");
        };
        assert_eq!(read, "ab");
        assert!(rest.frame().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_held_body_is_not_whole_before_its_time() {
        let (now, ready) = tokio::sync::oneshot::channel::<()>();
        let mut body = held_body(Bytes::from_static(b"abc"), async { Ok(ready.await?) });
        assert_eq!(body.size_hint().exact(), Some(3));
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "ab");
        let waiting = tokio::time::timeout(Duration::from_millis(5), body.frame());
        assert!(waiting.await.is_err());
        now.send(()).unwrap();
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(last, "c");
        assert!(body.frame().await.is_none() && body.is_end_stream());

        let failed = held_body(Bytes::from_static(b"abc"), async { Err("no room".into()) });
        assert!(failed.collect().await.is_err());
        let ready = held_body(Bytes::from_static(b"abc"), async { Ok(()) });
        assert_eq!(ready.collect().await.unwrap().to_bytes(), "abc");
    }

    #[tokio::test]
    async fn silence_is_an_error() {
        let never = StreamBody::new(Never).boxed_unsync();
        let error = IdleLimitedBody::sent_by("upstream", never, Duration::from_millis(5));
        let error = error.boxed_unsync().frame().await;
        assert!(error.unwrap().is_err());
    }

    struct Never;

    impl Stream for Never {
        type Item = Result<Frame<Bytes>, BoxError>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }
}
