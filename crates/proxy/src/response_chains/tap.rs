//! Reads the answer of a conversation that the provider keeps while it passes to the client.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::{NextLink, ResponseChains};
use crate::transport::body::ProxyBody;
use crate::transport::decompress::decode_error;
use crate::transport::watched_body::{FrameWatch, PolledFrame, watched_body};
use trimtab_wire::answer::{LONGEST_ANSWER, is_event_stream, may_name};
use trimtab_wire::json::pick;
use trimtab_wire::sse::{EventFrame, EventFrames};

/// Remembers an answer. This happens before the client has its end, because the next request may
/// follow at once.
pub(crate) struct AnswerTap {
    chains: Arc<ResponseChains>,
    /// What to remember with the answer; none once that is done.
    next: Option<NextLink>,
}

impl AnswerTap {
    pub(crate) fn new(chains: &Arc<ResponseChains>, next: NextLink) -> Self {
        Self {
            chains: Arc::clone(chains),
            next: Some(next),
        }
    }

    /// The body of an answer with these headers, read while it passes.
    pub(crate) fn attach(self, headers: &HeaderMap, body: ProxyBody) -> ProxyBody {
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_packed = headers.contains_key(CONTENT_ENCODING);
        // A compressed stream cannot be read event by event. A compressed document is decompressed
        // at its end.
        let form = if is_event_stream(kind) && !is_packed {
            TappedForm::Stream(Box::new(EventFrames::new(LONGEST_ANSWER)))
        } else if kind.starts_with("application/json") {
            TappedForm::Whole(headers.clone(), Vec::new())
        } else {
            return body;
        };
        watched_body(body, TappedBody { tap: self, form })
    }

    fn read_event(&mut self, frame: &EventFrame<'_>) {
        // Most events are deltas. A search for the name is much cheaper than parsing each of them.
        if let EventFrame::Data(event) = frame
            && may_name(event, &["response.completed"])
            && let Ok(event) = str::from_utf8(event)
            && let Some([Some(r#""response.completed""#), Some(response)]) =
                pick(event, ["type", "response"])
        {
            self.remember(response);
        }
    }

    fn remember(&mut self, response: &str) {
        if let Some(next) = self.next.take() {
            self.chains.remember(next, response);
        }
    }
}

enum TappedForm {
    Stream(Box<EventFrames>),
    Whole(HeaderMap, Vec<u8>),
    /// Too long to be remembered.
    Unread,
}

struct TappedBody {
    tap: AnswerTap,
    form: TappedForm,
}

impl TappedBody {
    fn data(&mut self, data: &Bytes) {
        let tap = &mut self.tap;
        match &mut self.form {
            TappedForm::Unread => {}
            TappedForm::Stream(frames) => frames.push(data, |frame| tap.read_event(&frame)),
            TappedForm::Whole(_, body) if body.len() + data.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(data);
            }
            TappedForm::Whole(..) => self.form = TappedForm::Unread,
        }
    }

    fn end(&mut self) {
        let (headers, body) = match std::mem::replace(&mut self.form, TappedForm::Unread) {
            TappedForm::Whole(headers, body) => (headers, body),
            TappedForm::Stream(mut frames) => {
                let tap = &mut self.tap;
                return frames.finish(|frame| tap.read_event(&frame));
            }
            TappedForm::Unread => return,
        };
        let body = Bytes::from(body);
        let body = decode_error(&headers, &body).unwrap_or(body);
        if let Ok(response) = std::str::from_utf8(&body) {
            self.tap.remember(response);
        }
    }
}

impl FrameWatch for TappedBody {
    fn polled(&mut self, polled: &PolledFrame, is_end: bool) {
        let Poll::Ready(frame) = polled else { return };
        if let Some(Ok(frame)) = frame
            && let Some(data) = frame.data_ref()
        {
            self.data(data);
        }
        // hyper may stop polling after a frame that is known to be the last.
        if frame.is_none() || is_end {
            self.end();
        }
    }
}
