//! The body of an answer on its way to the client. It completes the record of its request when
//! its last byte is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::records::record::{PendingRecord, Record};
use crate::resources::memory_budget::Reservation;
use crate::transport::body::{BoxError, ProxyBody};
use crate::transport::connections::OpenRequest;

/// Observes the bytes of an answer. It cannot delay them.
pub(crate) trait AnswerWatch: Send {
    /// The next bytes.
    fn data(&mut self, bytes: &Bytes);

    /// The answer has ended, completely or not. This is the last chance to add to its record.
    fn end(&mut self, whole: bool, record: &mut Record);
}

/// The maximum number of frames, and of their bytes, that wait to be observed.
const UNWATCHED: usize = 64;
const UNWATCHED_BYTES: usize = 64 << 10;

type PolledAnswer = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// A body that is observed while it passes.
pub(crate) struct ObservedBody {
    inner: ProxyBody,
    pending_record: PendingRecord,
    watch: Option<Box<dyn AnswerWatch>>,
    ended: bool,
    /// Frames that were given out and not observed yet. They are observed when the client has
    /// them, so that observing delays nothing.
    unwatched: Vec<Bytes>,
    /// True once the frames were flushed to the client.
    delivered: bool,
    /// An error that is given at the next poll, after the frames before it were flushed.
    error: Option<BoxError>,
    /// The request counts as open until this is dropped.
    _open: Option<(OpenRequest, Reservation)>,
}

impl ObservedBody {
    pub(crate) fn new(
        inner: ProxyBody,
        pending_record: PendingRecord,
        watch: Option<Box<dyn AnswerWatch>>,
        open: Option<(OpenRequest, Reservation)>,
    ) -> Self {
        let ended = inner.is_end_stream();
        let mut observed = Self {
            inner,
            pending_record,
            watch,
            ended: false,
            unwatched: Vec::new(),
            delivered: false,
            error: None,
            _open: open,
        };
        // hyper never polls an empty body, so it must end here.
        if ended {
            observed.end(true);
        }
        observed
    }

    /// Returns an error only at the next poll. hyper drops unflushed frames when it gets an error,
    /// so it needs one more poll to flush them.
    fn fail(&mut self, polled: PolledAnswer, context: &Context<'_>) -> PolledAnswer {
        let Poll::Ready(Some(Err(error))) = polled else {
            return polled;
        };
        self.pending_record.record.detail = error.to_string();
        self.end(false);
        self.error = Some(error);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn end(&mut self, whole: bool) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.watch_given();
        self.pending_record.record.cut = !whole;
        if let Some(mut watch) = self.watch.take() {
            watch.end(whole, &mut self.pending_record.record);
        }
    }

    /// Observes the delivered frames.
    fn watch_given(&mut self) {
        for data in self.unwatched.drain(..) {
            if let Some(watch) = &mut self.watch {
                watch.data(&data);
            }
        }
    }

    /// The upstream is idle. hyper flushes after this returns `Pending`, so frames are observed at
    /// the next poll.
    fn note_idle(&mut self, context: &Context<'_>) {
        if self.unwatched.is_empty() {
            return;
        }
        if std::mem::replace(&mut self.delivered, true) {
            self.watch_given();
        } else {
            context.waker().wake_by_ref();
        }
    }
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledAnswer {
        let this = &mut *self;
        if let Some(error) = this.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = Pin::new(&mut this.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                this.pending_record.record.bytes_out += bytes;
                if let (Some(data), true) = (frame.data_ref(), this.watch.is_some()) {
                    this.unwatched.push(data.clone());
                    this.delivered = false;
                }
                let waiting = this.unwatched.iter().map(Bytes::len);
                if this.unwatched.len() >= UNWATCHED || waiting.sum::<usize>() >= UNWATCHED_BYTES {
                    this.watch_given();
                }
                // hyper does not poll a body of known length again after its last frame.
                if this.inner.is_end_stream() {
                    this.end(true);
                }
            }
            Poll::Ready(None) => this.end(true),
            Poll::Ready(Some(Err(_))) => return this.fail(polled, context),
            Poll::Pending => this.note_idle(context),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

// The client went away, or the server stops: the record is still written, as cut off.
impl Drop for ObservedBody {
    fn drop(&mut self) {
        self.end(false);
    }
}
