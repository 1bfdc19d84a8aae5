//! Reads the answer of a conversation that the provider keeps while it passes to the client.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Chains, NextLink};
use crate::answer::events::Events;
use crate::answer::events::LONGEST_ANSWER;
use crate::transport::body::Body;
use crate::transport::decompress::decode_error;
use crate::transport::watched_body::{FrameWatch, PolledFrame, watched};

/// Remembers an answer. It does so before the client has the end of it: the next request may
/// come at once.
pub(crate) struct AnswerTap {
    chains: Arc<Chains>,
    /// What is remembered with the answer, until it is.
    next: Option<NextLink>,
}

impl AnswerTap {
    pub(crate) fn new(chains: &Arc<Chains>, next: NextLink) -> Self {
        Self {
            chains: Arc::clone(chains),
            next: Some(next),
        }
    }

    /// The body of an answer with these headers, read while it passes.
    pub(crate) fn on(self, headers: &HeaderMap, body: Body) -> Body {
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_packed = headers.contains_key(CONTENT_ENCODING);
        let form = if kind.starts_with("text/event-stream") && !is_packed {
            Form::Stream(Box::default())
        } else if kind.starts_with("application/json") {
            Form::Whole(headers.clone(), Vec::new())
        } else {
            return body;
        };
        watched(body, Tapped { tap: self, form })
    }

    fn remember(&mut self, response: &str) {
        if let Some(next) = self.next.take() {
            self.chains.remember(next, response);
        }
    }
}

enum Form {
    Stream(Box<Events>),
    Whole(HeaderMap, Vec<u8>),
    /// Too long to be remembered.
    Unread,
}

struct Tapped {
    tap: AnswerTap,
    form: Form,
}

/// The last event of an answer.
#[derive(Deserialize)]
struct Ended<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    response: &'a RawValue,
}

impl Tapped {
    fn data(&mut self, data: &Bytes) {
        let tap = &mut self.tap;
        match &mut self.form {
            Form::Unread => {}
            Form::Stream(events) => events.push(data, |event| {
                // Most events are not looked into.
                if event.contains("\"response.completed\"")
                    && let Ok(ended) = serde_json::from_str::<Ended<'_>>(event)
                    && ended.kind == "response.completed"
                {
                    tap.remember(ended.response.get());
                }
            }),
            Form::Whole(_, body) if body.len() + data.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(data);
            }
            Form::Whole(..) => self.form = Form::Unread,
        }
    }

    fn end(&mut self) {
        let Form::Whole(headers, body) = std::mem::replace(&mut self.form, Form::Unread) else {
            return;
        };
        let body = Bytes::from(body);
        let body = decode_error(&headers, &body).unwrap_or(body);
        if let Ok(response) = std::str::from_utf8(&body) {
            self.tap.remember(response);
        }
    }
}

impl FrameWatch for Tapped {
    fn polled(&mut self, polled: &PolledFrame, is_end: bool) {
        let Poll::Ready(frame) = polled else { return };
        if let Some(Ok(frame)) = frame
            && let Some(data) = frame.data_ref()
        {
            self.data(data);
        }
        if frame.is_none() || is_end {
            self.end();
        }
    }
}
