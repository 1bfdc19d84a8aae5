//! A body that passes unchanged while a `FrameWatch` sees its frames.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::transport::body::{BoxError, ProxyBody};

/// The result of polling a body.
pub(crate) type PolledFrame = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// Observes the frames of a body.
pub(crate) trait FrameWatch: Send + Unpin + 'static {
    /// Observes the result of a poll. `is_end` is true if nothing can follow.
    fn polled(&mut self, polled: &PolledFrame, is_end: bool);
}

/// The same body, observed by `watch`.
pub(crate) fn watched_body<B>(inner: B, watch: impl FrameWatch) -> ProxyBody
where
    B: HttpBody<Data = Bytes, Error = BoxError> + Send + Unpin + 'static,
{
    WatchedBody { inner, watch }.boxed_unsync()
}

struct WatchedBody<B, W> {
    inner: B,
    watch: W,
}

impl<B, W> HttpBody for WatchedBody<B, W>
where
    B: HttpBody<Data = Bytes, Error = BoxError> + Unpin,
    W: FrameWatch,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        // Asked after the poll: a body of known length is at its end with its last frame, and hyper
        // does not poll it again.
        let is_end = self.inner.is_end_stream();
        self.watch.polled(&polled, is_end);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
