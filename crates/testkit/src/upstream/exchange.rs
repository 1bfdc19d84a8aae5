//! The way of one request: read, judged, counted, answered.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use trimtab_model::Dialect;

use super::answer::{CREATED, RenderedEvents};
use super::answer_bytes::{Parcel, ParcelBody};
use super::decode::decode;
use super::faults::pack;
use super::overflow::Excess;
use super::prompt::JudgedPrompt;
use super::refusal::ProviderRefusal;
use super::route::RequestedRoute;
use super::socket::Fuse;
use super::state::UpstreamState;
use super::{
    OverflowForm, ReceivedRequest, RequestOutcome, ScriptedFault, UpstreamOptions, Violation,
};

/// Everything behind the connections.
#[derive(Debug)]
pub(super) struct UpstreamExchange {
    pub(super) options: UpstreamOptions,
    state: Mutex<UpstreamState>,
}

impl UpstreamExchange {
    pub(super) fn new(options: UpstreamOptions) -> Self {
        let state = Mutex::default();
        Self { options, state }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn requests(&self) -> Vec<Arc<ReceivedRequest>> {
        self.state().received.clone()
    }

    pub(super) fn clear_requests(&self) {
        self.state().received.clear();
    }

    /// Answers one request; an error breaks the connection off.
    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        fuse: Fuse,
    ) -> io::Result<Response<ParcelBody>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let route = RequestedRoute::of(&parts.method, parts.uri.path());
        let mut received = self.begin(&parts, route, &body);
        let parcel = self.respond(route, &mut received);
        self.record(received);
        parcel.deliver(fuse).await
    }

    /// What is known before the body is looked at.
    fn begin(&self, parts: &Parts, route: RequestedRoute, body: &Bytes) -> ReceivedRequest {
        let headers = parts.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        let path = parts.uri.path_and_query();
        let mut state = self.state();
        let serial = state.serial;
        state.serial += 1;
        ReceivedRequest {
            serial,
            method: parts.method.to_string(),
            path: path.map(ToString::to_string).unwrap_or_default(),
            headers: headers.collect(),
            dialect: route.dialect(),
            body: body.clone(),
            sent_bytes: body.len(),
            ..ReceivedRequest::default()
        }
    }

    fn record(&self, mut received: ReceivedRequest) {
        if !self.options.keep_bodies {
            received.body = Bytes::new();
        }
        self.state().received.push(Arc::new(received));
    }

    fn respond(&self, route: RequestedRoute, received: &mut ReceivedRequest) -> Parcel {
        if !self.is_allowed(received) {
            let dialect = received.dialect.unwrap_or_default();
            return refuse(received, &ProviderRefusal::of_status(dialect, 401));
        }
        match (route, route.dialect()) {
            (RequestedRoute::Models, _) => {
                received.outcome = RequestOutcome::Listed;
                self.models()
            }
            (_, Some(dialect)) => self.judge(route, dialect, received),
            (_, None) => {
                let refusal = ProviderRefusal::not_found(&received.method, &received.path);
                refuse(received, &refusal)
            }
        }
    }

    fn is_allowed(&self, received: &ReceivedRequest) -> bool {
        let Some(key) = &self.options.key else {
            return true;
        };
        let bearer = received.header("authorization");
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        [received.header("x-api-key"), bearer].contains(&Some(key))
    }

    fn models(&self) -> Parcel {
        let models = self.options.models.iter().map(|id| {
            json!({
                "id": id, "object": "model", "type": "model", "display_name": id,
                "created": CREATED, "created_at": "2025-10-09T08:53:20Z",
                "owned_by": "trimtab",
            })
        });
        let models: Vec<_> = models.collect();
        Parcel::json(
            200,
            &json!({"object": "list", "data": models, "has_more": false}),
        )
    }

    fn judge(
        &self,
        route: RequestedRoute,
        dialect: Dialect,
        received: &mut ReceivedRequest,
    ) -> Parcel {
        let encoding = received.header("content-encoding").map(str::to_owned);
        match decode(received.body.clone(), encoding.as_deref()) {
            Some(body) => received.body = body,
            None => return refuse(received, &ProviderRefusal::of_status(dialect, 415)),
        }
        received.body_bytes = received.body.len();
        let read = JudgedPrompt::read(received, dialect, self);
        let (prompt, broken) = match read {
            Ok(read) => read,
            Err(refusal) => return refuse(received, &refusal),
        };
        received.violations = broken
            .iter()
            .map(|broken| Violation {
                rule: broken.rule.clone(),
                message: broken.refusal.message(),
            })
            .collect();
        if let Some(first) = broken.first() {
            received.outcome = RequestOutcome::Refused(first.refusal.status);
            return Parcel::json(first.refusal.status, &first.refusal.body);
        }
        let mut unsupported = self.options.unsupported.iter();
        if let Some(field) = unsupported.find(|field| prompt.body.get(*field).is_some()) {
            let refusal = ProviderRefusal::unsupported(dialect, field);
            received.outcome = RequestOutcome::Refused(refusal.status);
            return Parcel::json(refusal.status, &refusal.body);
        }
        if route == RequestedRoute::CountTokens {
            received.outcome = RequestOutcome::Counted;
            return Parcel::json(200, &json!({"input_tokens": received.tokens}));
        }
        if let Some(excess) = self.excess(dialect, received) {
            return self.too_long(dialect, received, excess);
        }
        let turn = self.turn(received);
        if let Some(ScriptedFault::Overflow { window }) = turn.fault {
            received.fault = turn.fault;
            let excess = Excess::of_any(received.tokens, window);
            return self.too_long(dialect, received, excess);
        }
        let answer = self.answer(&turn, &prompt, dialect, received);
        received.fault = turn.fault;
        received.usage = Some(answer.usage);
        pack(answer.render(received.stream), turn.fault, &answer)
    }

    /// How much too long the prompt is for the window, where that is said at all.
    fn excess(&self, dialect: Dialect, received: &ReceivedRequest) -> Option<Excess> {
        if self.options.overflow == OverflowForm::Silent {
            return None;
        }
        let window = self.options.window?;
        let counts = self.options.answer_counts && dialect != Dialect::Responses;
        let limit = received.answer_limit.filter(|_| counts);
        Excess::of(received.tokens, limit, window)
    }

    fn too_long(&self, dialect: Dialect, received: &mut ReceivedRequest, excess: Excess) -> Parcel {
        let form = self.options.overflow;
        received.outcome = RequestOutcome::Overflow;
        if let Some(RenderedEvents::Events(events)) =
            excess.stream(dialect, form).filter(|_| received.stream)
        {
            return Parcel::events(&events);
        }
        let refusal = excess.refusal(dialect, form);
        Parcel::json(refusal.status, &refusal.body)
    }
}

fn refuse(received: &mut ReceivedRequest, refusal: &ProviderRefusal) -> Parcel {
    received.outcome = RequestOutcome::Refused(refusal.status);
    received.violations.push(Violation {
        rule: format!("status {}", refusal.status),
        message: refusal.message(),
    });
    Parcel::json(refusal.status, &refusal.body)
}
