//! Retrieval inside the proxy: calls of the two tools are answered from the store and hidden from
//! the client. Its answer continues with the next answer of the model, as one stream or document.

mod last_answer;
mod rounds;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Dialect, Message, Part};
use trimtab_wire::answer::{self, AnswerReader, LONGEST_ANSWER, WholeAnswer};
use trimtab_wire::json::pick;
use trimtab_wire::sse::{CallFilter, StreamEvent, without_repeated_tools};

use self::rounds::{AnswerOutcome, RetrievalServer, RoundFailure};
use crate::answer::hide_calls;
use crate::answer::usage_watch::ObservedContent;
use crate::exchange::Exchange;
use crate::request::context::RequestContext;
use crate::transport::body::{
    self, BoxError, CollectedBody, ProxyBody, collect_reserved, rejoined_body,
};

/// How many pieces of a stream may wait for a slow client.
const QUEUE: usize = 16;
/// The usage field with the cost of the hidden rounds. The other fields are the provider's own for
/// the last request, because clients take them for the size of the window.
const HIDDEN_COST: &str = "trimtab_hidden_rounds";
/// The error if the model does not answer.
const STUCK: &str = "the model asks for stored outputs again and again, and does not answer\n\
    hint: retrieval = false, or the header x-trimtab-mode: bypass, leaves it without the tools";

/// Delivers an answer that may call the retrieval tools.
pub(crate) async fn deliver(
    exchange: Exchange,
    context: RequestContext,
    answer: Response<ProxyBody>,
) -> Response<ProxyBody> {
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if answer::is_event_stream(kind) {
        return stream(exchange, context, answer);
    }
    if kind.starts_with("application/json") {
        return in_one_piece(exchange, context, answer).await;
    }
    let watch = exchange
        .watch(answer.status())
        .with_headers(answer.headers());
    context.deliver(answer, Some(Box::new(watch)))
}

/// True if an answer calls only the retrieval tools.
fn asks_only_us(said: &Message, names: ToolNames) -> bool {
    let mut calls = said.parts.iter().filter_map(Part::as_call).peekable();
    calls.peek().is_some() && calls.all(|call| names.serves(&call.name))
}

type FrameSender = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// Delivers a stream, which continues with the next answer if the model called only our tools.
fn stream(
    exchange: Exchange,
    context: RequestContext,
    answer: Response<ProxyBody>,
) -> Response<ProxyBody> {
    let (mut parts, body) = answer.into_parts();
    // The client gets another number of bytes than the upstream announced.
    parts.headers.remove(CONTENT_LENGTH);
    let (pieces, received) = mpsc::channel(QUEUE);
    let outcome = AnswerOutcome::default();
    let server = RetrievalServer::new(exchange, outcome.clone());
    // A task of its own, because the stream goes on with further requests while the client reads.
    tokio::spawn(pump(server, body, pieces));
    let body = StreamBody::new(FrameReceiver(received)).boxed_unsync();
    context.deliver(Response::from_parts(parts, body), Some(Box::new(outcome)))
}

/// Passes streams to the client, one after the other.
async fn pump(mut server: RetrievalServer, mut body: ProxyBody, pieces: FrameSender) {
    let dialect = server.exchange.managed.job.dialect;
    let mut filter = CallFilter::new(dialect, [server.names.read, server.names.grep]);
    let mut spoken = false;
    while let Some(reader) = pass_stream(&mut server, body, &mut filter, &pieces).await {
        // The client has the end of the answer: the model called none of our tools, or others as
        // well.
        if !filter.is_waiting() {
            return;
        }
        if reader.answer.is_too_long() {
            // Its calls cannot be served. The client gets the end that was held back.
            let mut end = Vec::new();
            filter.release(&mut end);
            let _: Option<()> = send_bytes(&pieces, end).await;
            return;
        }
        spoken |= reader.spoken;
        let said = reader.answer.into_message();
        let said = said.unwrap_or_else(|| Message::assistant(""));
        let next = tokio::select! {
            next = server.serve(said) => next,
            // The client is gone, so the provider need not write the next answer.
            () = pieces.closed() => return,
        };
        match next {
            Ok(answer) => {
                filter.continue_answer();
                if let Some(cost) = server.hidden_cost() {
                    filter.note_in_usage(HIDDEN_COST, cost.to_string());
                }
                body = answer.into_body();
            }
            Err(failure) => {
                let end = failed_stream_end(&mut filter, &server, failure, spoken).await;
                // The client may be gone: then nobody wants the end.
                let _: Option<()> = send_bytes(&pieces, end).await;
                return;
            }
        }
    }
}

/// The end of a stream that no further answer follows: the end that was held back, or an error.
async fn failed_stream_end(
    filter: &mut CallFilter,
    server: &RetrievalServer,
    failure: RoundFailure,
    spoken: bool,
) -> Vec<u8> {
    let mut end = Vec::new();
    // The client has text that may serve as an answer. An error would make it discard that.
    if spoken && matches!(failure, RoundFailure::Stuck) {
        filter.release(&mut end);
        return end;
    }
    let dialect = server.exchange.managed.job.dialect;
    let event = last_answer::error_event(dialect, failure).await;
    filter.continue_answer();
    filter.push(event.as_bytes(), &mut end);
    filter.finish(&mut end);
    end
}

/// Reads a stream while it passes.
struct StreamReader {
    dialect: Dialect,
    answer: AnswerReader,
    /// True once a tool was called.
    called: bool,
    /// True once the client was shown a text.
    spoken: bool,
    /// True if an end was announced since this was last reset.
    ended: bool,
    /// The id of the response, in Responses.
    response_id: Option<String>,
}

impl StreamReader {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            answer: AnswerReader::new(dialect),
            called: false,
            spoken: false,
            ended: false,
            response_id: None,
        }
    }

    /// Takes the data of the next event.
    fn take(&mut self, data: &str) {
        if self.dialect == Dialect::Responses && self.response_id.is_none() {
            self.response_id = response_id(data);
        }
        let Self {
            answer,
            called,
            spoken,
            ended,
            ..
        } = self;
        answer.take(data, |event| {
            *called |= matches!(event, StreamEvent::Call);
            *spoken |= matches!(&event, StreamEvent::Text(delta) if !delta.is_empty());
            *ended |= matches!(event, StreamEvent::Stop(_) | StreamEvent::End);
        });
    }
}

/// Passes one stream to the client, and returns what was read. None if the stream broke or the
/// client is gone.
async fn pass_stream(
    server: &mut RetrievalServer,
    mut body: ProxyBody,
    filter: &mut CallFilter,
    pieces: &FrameSender,
) -> Option<StreamReader> {
    let mut reader = StreamReader::new(server.exchange.managed.job.dialect);
    let mut out = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = pieces.closed() => return None,
        };
        match frame {
            None => break,
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                filter.push_reading(data, &mut out, |event| reader.take(event));
                if std::mem::take(&mut reader.ended) {
                    // The client may send its next request as soon as it has the end, so the calls
                    // are served and stored before the end is passed on.
                    finish_stream(server, filter, &reader).await;
                }
                if reader.answer.is_ended() && !filter.is_waiting() {
                    server.mark_ended();
                }
                send_bytes(pieces, std::mem::take(&mut out)).await?;
            }
            Some(Err(error)) => {
                filter.finish(&mut out);
                send_bytes(pieces, out).await?;
                pieces.send(Err(error)).await.ok()?;
                return None;
            }
        }
    }
    // Some servers end a stream without the blank line after the last event.
    filter.finish_reading(&mut out, |event| reader.take(event));
    finish_stream(server, filter, &reader).await;
    send_bytes(pieces, out).await?;
    let content = ObservedContent::Known {
        called: reader.called,
        said: reader.answer.said(),
    };
    let learning = server.learn(reader.answer.usage(), content);
    if filter.is_waiting() {
        // The usage belongs to this call. It must be recorded before the next window is made.
        learning.await.ok();
    }
    Some(reader)
}

/// Serves and stores what must be durable before the client has the end of a stream.
async fn finish_stream(server: &mut RetrievalServer, filter: &CallFilter, reader: &StreamReader) {
    server.note_response(reader.response_id.as_deref());
    if filter.is_waiting() {
        return;
    }
    if filter.has_hidden() {
        server.serve_mixed_stream(&reader.answer).await;
    } else {
        server.keep_link().await;
    }
}

/// The id of the response in an event of Responses.
fn response_id(data: &str) -> Option<String> {
    let [response] = pick(data, ["response"])?;
    let [id] = pick(response?, ["id"])?;
    serde_json::from_str(id?).ok()
}

/// Sends bytes to the client. None if it is gone.
async fn send_bytes(pieces: &FrameSender, bytes: Vec<u8>) -> Option<()> {
    if bytes.is_empty() {
        return Some(());
    }
    pieces.send(Ok(Frame::data(Bytes::from(bytes)))).await.ok()
}

struct FrameReceiver(mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

impl futures_core::Stream for FrameReceiver {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// Delivers a complete answer after all retrieval calls were served.
async fn in_one_piece(
    exchange: Exchange,
    context: RequestContext,
    answer: Response<ProxyBody>,
) -> Response<ProxyBody> {
    let outcome = AnswerOutcome::default();
    let watch = Box::new(outcome.clone());
    let mut server = RetrievalServer::new(exchange, outcome);
    let dialect = server.exchange.managed.job.dialect;
    let (mut parts, mut body) = answer.into_parts();
    let mut earlier = Vec::new();
    loop {
        let bytes = match collect_reserved(body, LONGEST_ANSWER, context.reservation()).await {
            CollectedBody::Whole(bytes) => bytes,
            CollectedBody::Longer(read, rest) => {
                let answer = Response::from_parts(parts, rejoined_body(read, rest));
                return context.deliver(answer, Some(watch));
            }
        };
        let (shown, said, learning) = server.read_whole_answer(&bytes, earlier.is_empty());
        let asks = said
            .as_ref()
            .is_some_and(|said| asks_only_us(said, server.names));
        if asks {
            // As in a stream, the usage is recorded before the next window is made.
            learning.await.ok();
        }
        if asks && let (Some(said), Some(mut shown)) = (said.clone(), shown.clone()) {
            hide_calls::hide(dialect, server.names, &mut shown);
            earlier.push(shown);
            match server.serve(said).await {
                Ok(next) => {
                    (parts, body) = next.into_parts();
                    continue;
                }
                Err(RoundFailure::Refused(refused)) => {
                    return context.deliver(*refused, Some(watch));
                }
                Err(RoundFailure::Unreachable(failed)) => return context.unreachable(&failed),
                Err(RoundFailure::Stuck) => {
                    if !earlier
                        .iter()
                        .any(|shown| hide_calls::shows_content(dialect, shown))
                    {
                        return context.no_answer(STUCK);
                    }
                    earlier.pop();
                }
            }
        }
        let bytes = server
            .final_answer(shown, said, &earlier)
            .await
            .unwrap_or(bytes);
        let bytes = server.without_our_tools(bytes);
        parts.headers.remove(CONTENT_LENGTH);
        return context.deliver(
            Response::from_parts(parts, body::full_body(bytes)),
            Some(watch),
        );
    }
}

impl RetrievalServer {
    /// Reads a complete answer. The `first` one is parsed only if it may call one of our tools.
    fn read_whole_answer(
        &self,
        bytes: &Bytes,
        first: bool,
    ) -> (Option<Value>, Option<Message>, JoinHandle<()>) {
        let dialect = self.exchange.managed.job.dialect;
        let usage = answer::usage_in(dialect, bytes).unwrap_or_default();
        if first && !answer::may_name(bytes, &[self.names.read, self.names.grep]) {
            let content = ObservedContent::In(dialect, bytes.clone());
            return (None, None, self.learn(usage, content));
        }
        let shown = serde_json::from_slice(bytes).ok();
        let answer = WholeAnswer::read(dialect, bytes);
        let content =
            answer
                .as_ref()
                .map_or(ObservedContent::Unknown, |answer| ObservedContent::Known {
                    called: answer.message.has_calls(),
                    said: answer.said(),
                });
        let said = answer.map(|answer| answer.message);
        (shown, said, self.learn(usage, content))
    }

    /// The answer without the definitions of our tools, which Responses repeats in it.
    fn without_our_tools(&self, bytes: Bytes) -> Bytes {
        if self.exchange.managed.job.dialect != Dialect::Responses {
            return bytes;
        }
        let names = [self.names.read, self.names.grep];
        let shown = str::from_utf8(&bytes).ok();
        let shown = shown.and_then(|json| without_repeated_tools(json, &names));
        shown.map_or(bytes, Bytes::from)
    }

    /// The last answer for the client; none if it is unchanged.
    async fn final_answer(
        &mut self,
        shown: Option<Value>,
        said: Option<Message>,
        earlier: &[Value],
    ) -> Option<Bytes> {
        let dialect = self.exchange.managed.job.dialect;
        let mut shown = shown?;
        let hid = hide_calls::hide(dialect, self.names, &mut shown);
        // Nothing was hidden, so the client gets the provider's bytes.
        if !hid && earlier.is_empty() {
            return None;
        }
        hide_calls::prepend_shown(dialect, earlier, &mut shown);
        let usage = shown.get_mut("usage").and_then(Value::as_object_mut);
        let cost = self.hidden_cost_before_last();
        if let (Some(usage), Some(cost), false) = (usage, cost, earlier.is_empty()) {
            usage.insert(HIDDEN_COST.to_owned(), cost);
        }
        if let Some(said) = said.filter(|_| hid) {
            // The client knows the last response by its own id.
            self.note_response(shown.get("id").and_then(Value::as_str));
            self.serve_mixed(said).await;
        }
        Some(Bytes::from(shown.to_string()))
    }
}
