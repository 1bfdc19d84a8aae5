//! The provider of the demo: the Messages dialect on loopback.
//!
//! Like a real provider, it rejects prompts that are too long or malformed, and its usage includes
//! a prompt cache.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use trimtab_model::Usage;

use super::answer;
use super::model::{DemoModel, wants_summary};
use super::prompt::{DemoPrompt, PromptCache};
use super::session::DemoSession;

/// Tells the provider which call of the session a request is.
pub(super) const CALL_HEADER: &str = "x-demo-call";

/// A running provider. Dropping it stops the server.
pub(super) struct DemoProvider {
    address: SocketAddr,
    shared: Arc<SharedProvider>,
    /// Dropping it stops the server.
    _serving: JoinSet<()>,
}

/// State shared by all connections.
struct SharedProvider {
    model: DemoModel,
    window: Option<u64>,
    state: Mutex<ProviderState>,
}

/// The requests so far.
#[derive(Default)]
struct ProviderState {
    cache: PromptCache,
    answered: Vec<AnsweredCall>,
    violations: Vec<String>,
}

/// An answered request.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredCall {
    /// The number of the session's call; none for summaries.
    pub(super) call: Option<usize>,
    pub(super) usage: Usage,
}

/// The reason of a rejection, in the provider's format.
struct ProviderError {
    status: u16,
    kind: &'static str,
    message: String,
}

impl DemoProvider {
    /// Starts serving on a free loopback port. Without a window every prompt fits.
    pub(super) async fn start(session: &DemoSession, window: Option<u64>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(SharedProvider {
            model: DemoModel::of(session),
            window,
            state: Mutex::default(),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _serving: serving,
        })
    }

    /// Its base URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All answered requests, in order.
    pub(super) fn answered(&self) -> Vec<AnsweredCall> {
        self.shared.state().answered.clone()
    }

    /// All rules that requests broke.
    pub(super) fn violations(&self) -> Vec<String> {
        self.shared.state().violations.clone()
    }
}

async fn serve(listener: TcpListener, shared: Arc<SharedProvider>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Reap finished connections.
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(shared.handle(request).await) }
        });
        connections.spawn(async move {
            // Errors of a client that disconnects do not matter here.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl SharedProvider {
    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let answer = match body.collect().await {
            Ok(body) => self.answer(&parts, &body.to_bytes()),
            Err(error) => Err(ProviderError::invalid(error.to_string())),
        };
        answer.unwrap_or_else(|refusal| refusal.response())
    }

    fn answer(&self, parts: &Parts, body: &[u8]) -> Result<Response<Full<Bytes>>, ProviderError> {
        let path = parts.uri.path();
        if parts.method != Method::POST || !path.starts_with("/v1/messages") {
            return Err(ProviderError::not_found(path));
        }
        let prompt = DemoPrompt::read(body).map_err(ProviderError::invalid)?;
        if path.ends_with("/count_tokens") {
            return Ok(document(200, &json!({"input_tokens": prompt.tokens})));
        }
        // Record every broken rule, but report the first like a real provider.
        if let Some(fault) = prompt.faults.first() {
            self.state().violations.extend_from_slice(&prompt.faults);
            return Err(ProviderError::invalid(fault.clone()));
        }
        self.check_window(&prompt)?;
        let call = parts.headers.get(CALL_HEADER);
        let call = call.and_then(|value| value.to_str().ok()?.parse().ok());
        let reply = self.model.reply(call, &prompt);
        let mut state = self.state();
        let usage = Usage {
            output: answer::tokens(&reply),
            ..state.cache.usage(&prompt)
        };
        let message = answer::message(&reply, state.answered.len(), &prompt.model, &usage);
        // A summary request carries the header of its call, but is not a call of the session.
        let call = call.filter(|_| !wants_summary(&prompt));
        state.answered.push(AnsweredCall { call, usage });
        Ok(if prompt.is_stream {
            response(200, "text/event-stream", answer::events(&message))
        } else {
            document(200, &message)
        })
    }

    /// Both the prompt and the requested answer must fit.
    fn check_window(&self, prompt: &DemoPrompt) -> Result<(), ProviderError> {
        let (tokens, answer) = (prompt.tokens, prompt.answer_limit);
        match self.window {
            Some(window) if tokens > window => Err(ProviderError::invalid(format!(
                "prompt is too long: {tokens} tokens > {window} maximum"
            ))),
            Some(window) if tokens.saturating_add(answer) > window => {
                Err(ProviderError::invalid(format!(
                    "input length and `max_tokens` exceed context limit: {tokens} + {answer} > \
                     {window}, decrease input length or `max_tokens` and try again"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl ProviderError {
    fn invalid(message: String) -> Self {
        Self {
            status: 400,
            kind: "invalid_request_error",
            message,
        }
    }

    fn not_found(path: &str) -> Self {
        Self {
            status: 404,
            kind: "not_found_error",
            message: format!(
                "{path}: the scripted model of `trimtab demo` only answers POST /v1/messages"
            ),
        }
    }

    fn response(&self) -> Response<Full<Bytes>> {
        let error = json!({"type": self.kind, "message": self.message});
        document(self.status, &json!({"type": "error", "error": error}))
    }
}

fn document(status: u16, value: &Value) -> Response<Full<Bytes>> {
    response(status, "application/json", value.to_string())
}

fn response(status: u16, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
