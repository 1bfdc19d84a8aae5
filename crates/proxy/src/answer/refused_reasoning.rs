//! The way out for a request of Messages that goes as its client wrote it, if the model refuses the
//! reasoning in it. A model may bind reasoning to all that stands before it: to the tools and the
//! window that earlier requests of the conversation were sent with.

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::task::spawn_blocking;

use crate::models::reasoning_rule::{ReasoningFault, reasoning_fault, without_reasoning};
use crate::transport::body::{CollectedBody, ProxyBody, collect, full_body, rejoined_body};
use crate::transport::decompress::decode_error;

/// What the record says about a request that was sent again.
pub(crate) const NOTE: &str = "the model binds its reasoning to other tools or messages, so the request was \
    sent again without reasoning";
/// The longest error that is read.
const LONGEST_ERROR: usize = 256 << 10;

/// A refusal, read as far as it is needed.
pub(crate) struct ReadRefusal {
    /// What it says about reasoning, if anything.
    pub(crate) fault: Option<ReasoningFault>,
    /// The answer as it came.
    pub(crate) answer: Response<ProxyBody>,
}

/// Reads what a refusal says about reasoning.
pub(crate) async fn read(answer: Response<ProxyBody>) -> ReadRefusal {
    let (head, error) = answer.into_parts();
    let (error, rest) = match collect(error, LONGEST_ERROR).await {
        CollectedBody::Whole(error) => (error, None),
        CollectedBody::Longer(read, rest) => (read, Some(rest)),
    };
    let text = decode_error(&head.headers, &error);
    let fault = reasoning_fault(text.as_ref().unwrap_or(&error));
    let body = match rest {
        Some(rest) => rejoined_body(error, rest),
        None => full_body(error),
    };
    ReadRefusal {
        fault,
        answer: Response::from_parts(head, body),
    }
}

/// The sent `body` without reasoning, if `answer` refuses the reasoning in it as stale; else the
/// answer.
pub(crate) async fn body_without(
    answer: Response<ProxyBody>,
    body: Bytes,
) -> Result<Bytes, Response<ProxyBody>> {
    if answer.status() != StatusCode::BAD_REQUEST {
        return Err(answer);
    }
    let ReadRefusal { fault, answer } = read(answer).await;
    if fault != Some(ReasoningFault::Stale) {
        return Err(answer);
    }
    let stripping = spawn_blocking(move || without_reasoning(&body));
    stripping.await.ok().flatten().ok_or(answer)
}
