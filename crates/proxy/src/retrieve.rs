//! Retrieval inside the proxy: calls of the two tools are served from the store and hidden
//! from the client, whose answer goes on as if the model had known all along.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools;
use trimtab_model::{Call, Message, Output, Part, Usage};
use trimtab_wire::sse::{Event, Filter, Watcher};

use crate::answer::{self, Assembler};
use crate::asked::Asked;
use crate::body::{self, Body, BoxError, Collected, Idle, collect, rejoined};
use crate::branch::{Branch, Trouble};
use crate::exchange::{Exchange, learn_from};
use crate::hidden::Mixed;
use crate::noted::Watch;
use crate::record::Record;
use crate::watch::{Seen, usage_of};
use crate::whole;

/// The longest answer in one piece that is looked into.
const LONGEST: usize = 16 << 20;
/// How many pieces of a stream wait for a slow client.
const QUEUE: usize = 16;
/// What the model reads instead of more lines when it has asked often enough.
const ENOUGH: &str = "no more of these calls are carried out in this answer; \
    answer with what you have, or ask again later";

/// Gives an answer in which the model may ask for stored outputs.
pub(crate) async fn give(
    exchange: Exchange,
    asked: Asked,
    answer: Response<Body>,
) -> Response<Body> {
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return stream(exchange, asked, answer);
    }
    if kind.starts_with("application/json") {
        return in_one_piece(exchange, asked, answer).await;
    }
    let watch = exchange.watch().of(answer.headers());
    asked.hand_on(answer, Some(Box::new(watch)))
}

/// What became of an answer, told to its record at the end.
#[derive(Clone, Default)]
struct Outcome(Arc<Mutex<Served>>);

/// What was reported for an answer, and for the hidden ones before it.
#[derive(Default)]
struct Served {
    usage: Option<Usage>,
    hidden: Option<Usage>,
    retrievals: u32,
}

impl Served {
    /// Takes in what was reported for the next answer.
    fn reported(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        if let Some(before) = self.usage.replace(usage) {
            self.hidden = Some(self.hidden.unwrap_or_default() + before);
        }
    }
}

impl Outcome {
    fn with(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Watch for Outcome {
    fn data(&mut self, _: &Bytes) {}

    fn end(&mut self, _: bool, record: &mut Record) {
        self.with(|served| {
            record.usage = served.usage;
            record.hidden = served.hidden;
            record.retrievals = served.retrievals;
        });
    }
}

/// A task that serves one answer.
struct Server {
    exchange: Exchange,
    outcome: Outcome,
    rounds: usize,
    /// True once the calls of ours in an answer that also has others were served.
    kept: bool,
}

impl Server {
    fn new(exchange: Exchange, outcome: Outcome) -> Self {
        Self {
            exchange,
            outcome,
            rounds: 0,
            kept: false,
        }
    }

    /// Tells session and record what the provider reported.
    fn learn(&self, usage: Usage, called: bool) -> JoinHandle<()> {
        let usage = (usage != Usage::default()).then_some(usage);
        self.outcome.with(|served| served.reported(usage));
        let managed = Arc::clone(&self.exchange.managed);
        let (seen, window) = (Seen::whole(usage, called), self.exchange.outgoing.window);
        tokio::task::spawn_blocking(move || learn_from(&managed, window, &seen))
    }

    /// Serves an answer that asks for nothing but stored outputs, and gives the answer that
    /// follows. None if there is none.
    async fn serve(&mut self, said: Message) -> Option<Response<Body>> {
        let limit = self
            .exchange
            .managed
            .work
            .settings
            .config
            .limits
            .retrieval_rounds;
        self.rounds += 1;
        if self.rounds > limit + 1 {
            return None;
        }
        let enough = self.rounds > limit;
        let served = self.exchange.again(move |branch| {
            let outputs = outputs(branch, &said, enough);
            let count = outputs.len();
            branch.admit_hidden(said, outputs)?;
            Ok(count)
        });
        let count = u32::try_from(served.await?).unwrap_or(u32::MAX);
        self.outcome.with(|served| served.retrievals += count);
        let answer = self.exchange.answer().await.ok()?;
        answer.status().is_success().then_some(answer)
    }

    /// Serves the calls of ours in a stream that also has calls of the client's, once.
    async fn keep_mixed(&mut self, so_far: &Assembler) {
        if self.kept {
            return;
        }
        let said = so_far.clone().finish();
        if let Some(said) = said.filter(|said| !our_calls(said).is_empty()) {
            self.kept = true;
            self.serve_mixed(said).await;
        }
    }

    /// Serves the calls of ours in an answer that also has calls of the client's.
    async fn serve_mixed(&mut self, said: Message) {
        let managed = Arc::clone(&self.exchange.managed);
        let served = tokio::task::spawn_blocking(move || {
            managed.on_branch(|branch| {
                let outputs = outputs(branch, &said, false);
                let count = outputs.len();
                if count > 0 {
                    branch.keep_mixed(mixed(&said, outputs))?;
                }
                Ok::<_, Trouble>(count)
            })
        });
        if let Ok(Ok(count)) = served.await {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.outcome.with(|served| served.retrievals += count);
        }
    }
}

/// The calls of ours in an answer, each with its index among the parts.
fn our_calls(said: &Message) -> Vec<(usize, Call)> {
    let parts = said.parts.iter().enumerate();
    parts
        .filter_map(|(at, part)| Some((at, part.as_call()?.clone())))
        .filter(|(_, call)| tools::is_retrieval(&call.name))
        .collect()
}

/// The calls of ours in an answer that also has calls of the client's.
fn mixed(said: &Message, outputs: Vec<Output>) -> Mixed {
    let theirs = said.calls().filter(|call| !tools::is_retrieval(&call.name));
    Mixed {
        at: 0,
        calls: our_calls(said),
        outputs,
        theirs: theirs.map(|call| call.id.clone()).collect(),
    }
}

/// What the calls of ours are answered with.
fn outputs(branch: &mut Branch, said: &Message, enough: bool) -> Vec<Output> {
    let store = Arc::clone(branch.session().store());
    let retrieval = Retrieval::new(store.as_ref(), branch.id().clone());
    let output = |(_, call): (usize, Call)| {
        if enough {
            return Output::new(call.id, ENOUGH);
        }
        let answer = retrieval.call(&call.name, &call.arguments);
        Output {
            is_error: answer.is_error,
            ..Output::new(call.id, answer.text)
        }
    };
    our_calls(said).into_iter().map(output).collect()
}

/// True if an answer asks for nothing but stored outputs.
fn asks_only_us(said: &Message) -> bool {
    let mut calls = said.parts.iter().filter_map(Part::as_call).peekable();
    calls.peek().is_some() && calls.all(|call| tools::is_retrieval(&call.name))
}

type Pieces = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// Gives a stream, which goes on with the next answer where the model asked only us.
fn stream(exchange: Exchange, asked: Asked, answer: Response<Body>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let (pieces, received) = mpsc::channel(QUEUE);
    let outcome = Outcome::default();
    let server = Server::new(exchange, outcome.clone());
    tokio::spawn(pump(server, body, pieces));
    let body = StreamBody::new(Received(received)).boxed_unsync();
    asked.hand_on(Response::from_parts(parts, body), Some(Box::new(outcome)))
}

/// Passes streams to the client, one after the other.
async fn pump(mut server: Server, mut body: Body, pieces: Pieces) {
    let dialect = server.exchange.managed.work.dialect;
    let mut filter = Filter::new(dialect, [tools::READ, tools::GREP]);
    while let Some(said) = pass(&mut server, body, &mut filter, &pieces).await {
        if !filter.is_waiting() {
            return;
        }
        let next = tokio::select! {
            next = server.serve(said) => next,
            // Nobody waits for the answer any more: the provider need not write it.
            () = pieces.closed() => return,
        };
        let Some(answer) = next else {
            let mut end = Vec::new();
            filter.release(&mut end);
            // The client may be gone: then nobody wants the end.
            let _: Option<()> = put(&pieces, end).await;
            return;
        };
        filter.go_on();
        body = answer.into_body();
    }
}

/// Passes one stream, and gives what the model said in it. None if it broke, or the client
/// went away.
async fn pass(
    server: &mut Server,
    body: Body,
    filter: &mut Filter,
    pieces: &Pieces,
) -> Option<Message> {
    let work = &server.exchange.managed.work;
    let (dialect, limits) = (work.dialect, work.settings.config.limits);
    let mut body = Idle::new(body, limits.idle_time());
    let (mut assembler, mut watcher) = (Assembler::new(dialect), Watcher::new(dialect));
    let (mut out, mut called, mut ended) = (Vec::new(), false, false);
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
                assembler.push(data);
                watcher.push(data, |event| {
                    called |= matches!(event, Event::Call(_));
                    ended |= matches!(event, Event::Stop(_) | Event::End);
                });
                filter.push(data, &mut out);
                if std::mem::take(&mut ended) && !filter.is_waiting() {
                    // The client may come back as soon as it has the end.
                    server.keep_mixed(&assembler).await;
                }
                put(pieces, std::mem::take(&mut out)).await?;
            }
            Some(Err(error)) => {
                filter.finish(&mut out);
                put(pieces, out).await?;
                pieces.send(Err(error)).await.ok()?;
                return None;
            }
        }
    }
    filter.finish(&mut out);
    if !filter.is_waiting() {
        server.keep_mixed(&assembler).await;
    }
    put(pieces, out).await?;
    let learning = server.learn(watcher.usage(), called);
    if filter.is_waiting() {
        // The figures are those of this call, not of the next one.
        learning.await.ok();
    }
    Some(assembler.finish().unwrap_or_else(|| Message::assistant("")))
}

/// Sends bytes to the client. None if it is gone.
async fn put(pieces: &Pieces, bytes: Vec<u8>) -> Option<()> {
    if bytes.is_empty() {
        return Some(());
    }
    pieces.send(Ok(Frame::data(Bytes::from(bytes)))).await.ok()
}

struct Received(mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

impl futures_core::Stream for Received {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// Gives an answer in one piece, after all that the model asked us was served.
async fn in_one_piece(exchange: Exchange, asked: Asked, answer: Response<Body>) -> Response<Body> {
    let outcome = Outcome::default();
    let watch = Box::new(outcome.clone());
    let mut server = Server::new(exchange, outcome);
    let (mut parts, mut body) = answer.into_parts();
    let mut earlier = Vec::new();
    loop {
        let bytes = match collect(body, LONGEST).await {
            Collected::Whole(bytes) => bytes,
            Collected::Longer(read, rest) => {
                let answer = Response::from_parts(parts, rejoined(read, rest));
                return asked.hand_on(answer, Some(watch));
            }
        };
        let (shown, said) = server.look(&bytes).await;
        let asks = said.as_ref().is_some_and(asks_only_us);
        if asks && let (Some(said), Some(mut shown)) = (said.clone(), shown.clone()) {
            whole::hide(server.exchange.managed.work.dialect, &mut shown);
            if let Some(next) = server.serve(said).await {
                earlier.push(shown);
                (parts, body) = next.into_parts();
                continue;
            }
        }
        let bytes = server.last(shown, said, &earlier).await.unwrap_or(bytes);
        parts.headers.remove(CONTENT_LENGTH);
        return asked.hand_on(Response::from_parts(parts, body::full(bytes)), Some(watch));
    }
}

impl Server {
    /// What an answer in one piece says.
    async fn look(&self, bytes: &[u8]) -> (Option<Value>, Option<Message>) {
        let dialect = self.exchange.managed.work.dialect;
        let shown: Option<Value> = serde_json::from_slice(bytes).ok();
        let said = answer::of_whole(dialect, bytes);
        let usage = shown.as_ref().and_then(|shown| shown.get("usage"));
        let usage = usage
            .map(|usage| usage_of(dialect, usage))
            .unwrap_or_default();
        let called = said.as_ref().is_some_and(Message::has_calls);
        self.learn(usage, called).await.ok();
        (shown, said)
    }

    /// The last answer as the client gets it; none if that is as it came.
    async fn last(
        &mut self,
        shown: Option<Value>,
        said: Option<Message>,
        earlier: &[Value],
    ) -> Option<Bytes> {
        let dialect = self.exchange.managed.work.dialect;
        let mut shown = shown?;
        let hid = whole::hide(dialect, &mut shown);
        if !hid && earlier.is_empty() {
            return None;
        }
        whole::put_before(dialect, earlier, &mut shown);
        if let Some(said) = said.filter(|_| hid) {
            self.serve_mixed(said).await;
        }
        Some(Bytes::from(shown.to_string()))
    }
}
