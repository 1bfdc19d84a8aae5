//! A body whose bytes are counted while it passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use crate::transport::body::Body;
use crate::transport::watched_body::{FrameWatch, PolledFrame, watched};

/// The same body, whose bytes are added to `total`.
pub(crate) fn counted(inner: Body, total: Arc<AtomicU64>) -> Body {
    watched(inner, ByteCounter(total))
}

struct ByteCounter(Arc<AtomicU64>);

impl FrameWatch for ByteCounter {
    fn polled(&mut self, polled: &PolledFrame, _is_end: bool) {
        if let Poll::Ready(Some(Ok(frame))) = polled {
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}
