//! Looks at the start of an answer before anything of it goes to the client.
//!
//! An overflow comes as a status, as the first event of a stream, or as a failed answer with
//! status 200. The request can be sent again only while the client has received nothing.

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt;
use std::borrow::Cow;
use trimtab_wire::overflow::{self, Certainty, OverflowAction, OverflowKind, OverflowVerdict};

use crate::config::ProxyLimits;
use crate::transport::body::{self, CollectedBody, ProxyBody, collect, rejoined_body};
use crate::transport::decompress::decode_error;
use trimtab_wire::answer::is_event_stream;
use trimtab_wire::json::pick;
use trimtab_wire::sse::{EventFrame, EventFrames};

/// The longest error that is read: none is longer than a page.
const LONGEST_ERROR: usize = 256 << 10;
/// Complete answers up to this size are read before they are forwarded. No error is longer.
const SHORT_ANSWER: usize = 64 << 10;

/// What is known about the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentRequest {
    /// The model's window in tokens, if known.
    pub(crate) window: Option<u64>,
    /// The estimated tokens of the request.
    pub(crate) estimate: u64,
    /// The body.
    pub(crate) body: Bytes,
}

/// The classification of an answer.
pub(crate) enum PeekedAnswer {
    /// An answer to forward.
    Answer(Response<ProxyBody>),
    /// The request was too large, with the answer that reports it.
    Overflow(OverflowVerdict, Response<ProxyBody>),
}

/// Reads as much of an answer as needed to classify it.
pub(crate) async fn peek(
    answer: Response<ProxyBody>,
    sent: SentRequest,
    limits: &ProxyLimits,
) -> PeekedAnswer {
    if !answer.status().is_success() {
        return failed(answer, sent).await;
    }
    // We asked for no compression. An answer that is compressed anyway passes unread.
    if answer.headers().contains_key(CONTENT_ENCODING) {
        return PeekedAnswer::Answer(answer);
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if is_event_stream(kind) {
        stream(answer, sent, limits).await
    } else if kind.starts_with("application/json") {
        peek_whole_answer(answer, sent).await
    } else {
        PeekedAnswer::Answer(answer)
    }
}

/// Classifies an answer with an error status.
async fn failed(answer: Response<ProxyBody>, sent: SentRequest) -> PeekedAnswer {
    let (parts, body) = answer.into_parts();
    let error = match collect(body, LONGEST_ERROR).await {
        CollectedBody::Whole(error) => error,
        CollectedBody::Longer(read, rest) => {
            return PeekedAnswer::Answer(Response::from_parts(parts, rejoined_body(read, rest)));
        }
    };
    let unpacked = decode_error(&parts.headers, &error);
    let headers: Vec<(&str, &str)> = parts
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let text = unpacked.as_ref().unwrap_or(&error);
    let response = overflow::ProviderResponse {
        headers: &headers,
        ..overflow::ProviderResponse::new(parts.status.as_u16(), text)
    };
    let verdict = overflow::classify(&informed(response, &sent));
    drop(headers);
    judged(verdict, Response::from_parts(parts, body::full_body(error)))
}

/// Classifies a stream. It is held back until its first event with content or an error.
async fn stream(
    answer: Response<ProxyBody>,
    sent: SentRequest,
    limits: &ProxyLimits,
) -> PeekedAnswer {
    let (parts, mut body) = answer.into_parts();
    let mut held = BytesMut::new();
    let mut first = StreamStart::new();
    // One deadline for all events: a model that thinks for long sends pings, and the client must
    // not wait for its first byte until it is done.
    let deadline = tokio::time::Instant::now() + limits.peek_time();
    while first.undecided() && held.len() < SHORT_ANSWER {
        let Ok(frame) = tokio::time::timeout_at(deadline, body.frame()).await else {
            break;
        };
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    first.push(&data);
                    held.extend_from_slice(&data);
                }
            }
            Some(Err(error)) => {
                body = body::failing_body(error);
                break;
            }
            None => break,
        }
    }
    let answer = Response::from_parts(parts, rejoined_body(held.freeze(), body));
    match first.error {
        Some(error) => {
            let response = overflow::ProviderResponse::event("error", error.as_bytes());
            judged(overflow::classify(&informed(response, &sent)), answer)
        }
        None => PeekedAnswer::Answer(answer),
    }
}

/// Classifies a complete answer. Only short ones can be errors.
async fn peek_whole_answer(answer: Response<ProxyBody>, sent: SentRequest) -> PeekedAnswer {
    let (parts, body) = answer.into_parts();
    match collect(body, SHORT_ANSWER).await {
        CollectedBody::Whole(bytes) => {
            let is_error = is_error(&bytes);
            let answer = Response::from_parts(parts, body::full_body(bytes.clone()));
            if !is_error {
                return PeekedAnswer::Answer(answer);
            }
            let response = overflow::ProviderResponse::event("error", &bytes);
            judged(overflow::classify(&informed(response, &sent)), answer)
        }
        CollectedBody::Longer(read, rest) => {
            PeekedAnswer::Answer(Response::from_parts(parts, rejoined_body(read, rest)))
        }
    }
}

fn informed<'a>(
    response: overflow::ProviderResponse<'a>,
    sent: &'a SentRequest,
) -> overflow::ProviderResponse<'a> {
    overflow::ProviderResponse {
        estimate: Some(sent.estimate),
        window: sent.window,
        request: &sent.body,
        ..response
    }
}

/// Treats only errors that a smaller request can cure as overflows.
fn judged(verdict: OverflowVerdict, answer: Response<ProxyBody>) -> PeekedAnswer {
    let helps = matches!(
        verdict.action,
        OverflowAction::Compact | OverflowAction::LowerReserve | OverflowAction::ShrinkBytes
    );
    // A request that exceeds a rate limit by itself can be cured by making it smaller, too.
    let is_ours = verdict.is_overflow()
        || matches!(verdict.kind, OverflowKind::RateLimit | OverflowKind::Items);
    // A guess is not enough: a window that is rewritten for nothing costs the cache and loses text.
    if helps && is_ours && verdict.certainty == Certainty::Stated {
        PeekedAnswer::Overflow(verdict, answer)
    } else {
        PeekedAnswer::Answer(answer)
    }
}

/// The beginning of a stream.
struct StreamStart {
    frames: EventFrames,
    decided: bool,
    error: Option<String>,
}

impl StreamStart {
    fn new() -> Self {
        Self {
            frames: EventFrames::new(SHORT_ANSWER),
            decided: false,
            error: None,
        }
    }

    fn undecided(&self) -> bool {
        !self.decided
    }

    fn push(&mut self, bytes: &[u8]) {
        let (decided, error) = (&mut self.decided, &mut self.error);
        self.frames.push(bytes, |frame| {
            if *decided {
                return;
            }
            let data = match &frame {
                EventFrame::Data(data) => String::from_utf8_lossy(data),
                // No error is so long, so this counts as content.
                EventFrame::Overlong => Cow::Borrowed(""),
            };
            match kind_of(&data) {
                FirstEvent::Greeting => {}
                FirstEvent::Error => {
                    *error = Some(data.into_owned());
                    *decided = true;
                }
                FirstEvent::Content => *decided = true,
            }
        });
    }
}

enum FirstEvent {
    Greeting,
    Error,
    Content,
}

fn kind_of(data: &str) -> FirstEvent {
    let Some([kind, error]) = pick(data, ["type", "error"]) else {
        return FirstEvent::Content;
    };
    // Compared as raw JSON, because these names contain nothing that could be escaped.
    match kind.unwrap_or_default().trim_matches('"') {
        "response.created" | "response.in_progress" | "response.queued" | "ping" | "keepalive" => {
            FirstEvent::Greeting
        }
        "error" | "response.failed" => FirstEvent::Error,
        _ if is_given(error) => FirstEvent::Error,
        _ => FirstEvent::Content,
    }
}

fn is_given(error: Option<&str>) -> bool {
    // Responses have `"error": null` in every good answer.
    error.is_some_and(|error| error != "null")
}

/// True for a complete answer that is an error despite its status.
fn is_error(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap_or_default();
    pick(text, ["error"]).is_some_and(|[error]| is_given(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn answer(status: u16, kind: &'static str, text: &'static str) -> Response<ProxyBody> {
        let mut answer = Response::new(body::full_body(text));
        *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
        let kind = HeaderValue::from_static(kind);
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        answer
    }

    /// Whether it was held for an overflow, and what the client would get.
    async fn looked(answer: Response<ProxyBody>) -> (bool, String) {
        let (overflow, answer) =
            match peek(answer, SentRequest::default(), &ProxyLimits::default()).await {
                PeekedAnswer::Overflow(_, answer) => (true, answer),
                PeekedAnswer::Answer(answer) => (false, answer),
            };
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (overflow, String::from_utf8(bytes.to_vec()).unwrap())
    }

    const SSE: &str = "text/event-stream; charset=utf-8";
    const JSON: &str = "application/json";

    #[tokio::test]
    async fn an_overflow_is_seen_in_every_form() {
        let forms = [
            (
                400,
                JSON,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                JSON,
                r#"{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."}}"#,
            ),
            (
                200,
                SSE,
                "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\nevent: response.in_progress\ndata: {\"type\":\"response.in_progress\"}\n\nevent: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n",
            ),
            (
                200,
                SSE,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}\n\n",
            ),
            (
                200,
                SSE,
                "data: {\"error\":{\"code\":400,\"message\":\"This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens\"}}\n\n",
            ),
            (
                200,
                JSON,
                r#"{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#,
            ),
        ];
        for (status, kind, text) in forms {
            let (overflow, given) = looked(answer(status, kind, text)).await;
            assert!(overflow, "{text}");
            assert_eq!(given, text);
        }
    }

    #[tokio::test]
    async fn everything_else_passes_as_it_came() {
        let others = [
            (
                429,
                JSON,
                r#"{"error":{"message":"Rate limit reached, please try again in 2s"}}"#,
            ),
            (401, JSON, r#"{"error":{"message":"invalid x-api-key"}}"#),
            (500, "text/plain", "oops"),
            (
                200,
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"prompt is too long\"}}]}\n\ndata: [DONE]\n\n",
            ),
            (
                200,
                SSE,
                "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: error\ndata: {\"type\":\"error\"}\n\n",
            ),
            (200, SSE, ""),
            (
                200,
                JSON,
                r#"{"status":"completed","error":null,"output":[]}"#,
            ),
            (200, JSON, "not json"),
        ];
        for (status, kind, text) in others {
            let (overflow, given) = looked(answer(status, kind, text)).await;
            assert!(!overflow, "{text}");
            assert_eq!(given, text);
        }
    }
}
