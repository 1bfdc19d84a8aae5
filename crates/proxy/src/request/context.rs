//! A request in progress, with everything that is needed to answer it: its headers, its tenant,
//! its settings and its record. `server::arrival` creates it; every path of a request ends in
//! one of its methods that return a response.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use trimtab_model::Dialect;
use trimtab_wire::scan::detect;

use crate::access::{AccessRefusal, Tenant, UnknownTenant};
use crate::answer::refused_reasoning;
use crate::answer::usage_watch::UsageWatch;
use crate::records::observed_body::{AnswerWatch, ObservedBody};
use crate::records::record::{PendingRecord, RecordAction};
use crate::request::bypass_reason::Unmanaged;
use crate::request::front_page;
use crate::request::shared::{LiveSettings, SharedState};
use crate::resources::memory_budget::Reservation;
use crate::response_chains::AnswerTap;
use crate::routing::own_endpoint::OwnEndpoint;
use crate::routing::route::UpstreamRoute;
use crate::routing::spoken_dialects::{NoRoute, SpokenDialects};
use crate::transport::body::{self, CollectedBody, ProxyBody};
use crate::transport::client_body::BodyFault;
use crate::transport::connections::OpenRequest;
use crate::transport::headers;
use crate::transport::upstream_client::UpstreamFailure;

/// The detail of a request that continues an answer from which we hid calls.
const CONTINUED: &str = "continues an answer that is not in memory any more: the id of the \
    provider's last response and the outputs of hidden calls were put in";

/// A request in progress.
pub(crate) struct RequestContext {
    pub(crate) shared: Arc<SharedState>,
    /// The settings at the time of its arrival.
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    /// The client's headers.
    pub(crate) headers: HeaderMap,
    /// Its tenant, or why it has none.
    pub(crate) tenant: Result<Tenant, UnknownTenant>,
    /// Its record, written when the answer ends.
    pub(crate) pending_record: PendingRecord,
    /// The fault of its body, if there is one.
    pub(crate) body_fault: BodyFault,
    /// Its place on the connection and the memory of its buffers, until it is answered.
    pub(crate) open: Option<(OpenRequest, Reservation)>,
    /// Reads the usage of an unmanaged answer.
    pub(crate) usage: Option<UsageWatch>,
    /// Remembers the answer, if the provider keeps the conversation.
    pub(crate) tap: Option<AnswerTap>,
    /// The request as the provider needs it, if it continues an answer from which we hid calls.
    pub(crate) continued: Option<Bytes>,
    /// The body of an unmanaged request of Messages, which may have to be sent without reasoning.
    pub(crate) unmanaged_body: Option<Bytes>,
}

impl RequestContext {
    /// The request to an upstream. It takes the headers of the context. None if the path is not
    /// valid there.
    pub(crate) fn upstream_request(
        &mut self,
        route: &UpstreamRoute,
        rest: &str,
        body: ProxyBody,
    ) -> Option<Request<ProxyBody>> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = route.address(rest)?;
        // hyper refuses a request marked as HTTP/2 on an HTTP/1 connection, and the client's
        // version says nothing about the upstream's.
        *request.version_mut() = Version::HTTP_11;
        // Taken, not copied: this is the last use of the client's headers.
        *request.headers_mut() = headers::to_upstream(std::mem::take(&mut self.headers));
        self.pending_record
            .record
            .upstream
            .clone_from(&route.upstream.name);
        Some(request)
    }

    /// The body to send instead of the client's, if the request continues an answer from which we
    /// hid calls.
    pub(crate) fn continued_body(&mut self) -> Option<Bytes> {
        let body = self.continued.take()?;
        headers::remove_encoding(&mut self.headers);
        CONTINUED.clone_into(&mut self.pending_record.record.detail);
        Some(body)
    }

    /// An empty reservation for its tenant, which can grow.
    pub(crate) fn reservation(&self) -> Reservation {
        let tenant = self.tenant.as_ref().ok().map(Tenant::as_str);
        self.shared.memory.always_reserve(tenant, 0)
    }

    /// True if its path is one of our own endpoints.
    pub(crate) fn is_for_us(&self) -> bool {
        self.own_endpoint().is_some()
    }

    /// The own endpoint of its path, if any.
    fn own_endpoint(&self) -> Option<OwnEndpoint> {
        let path = self.path.split('?').next().unwrap_or_default();
        OwnEndpoint::of_path(path)
    }

    /// Forwards the request unchanged, and records the reason.
    pub(crate) async fn forward_because(
        mut self,
        reason: &'static str,
        spoken: SpokenDialects,
        body: ProxyBody,
    ) -> Response<ProxyBody> {
        self.passes_because(reason);
        let may_have_reasoning = matches!(reason, "bypass" | "count" | "store")
            && detect(b"", &self.path) == Some(Dialect::Messages);
        let body = if may_have_reasoning {
            self.kept_body(body).await
        } else {
            body
        };
        self.forward(spoken, None, body).await
    }

    /// The same body, kept in memory if there is room.
    async fn kept_body(&mut self, body: ProxyBody) -> ProxyBody {
        let limit = self.settings.config.limits.body_bytes;
        match body::collect_reserved(body, limit, self.reservation()).await {
            CollectedBody::Whole(bytes) => {
                self.unmanaged_body = Some(bytes.clone());
                body::full_body(bytes)
            }
            CollectedBody::Longer(read, rest) => body::rejoined_body(read, rest),
        }
    }

    /// Records the reason why the request passes, and warns the operator if it is a limit.
    fn passes_because(&mut self, reason: &'static str) {
        self.pending_record.set_reason(reason);
        let notices = self.shared.store_state.notices();
        self.shared.limit_warnings.warn(reason, notices);
    }

    /// Forwards an unmanaged call to a model, and reads the usage of its answer.
    pub(crate) async fn forward_call(
        mut self,
        dialect: Dialect,
        why: Unmanaged,
        body: Bytes,
    ) -> Response<ProxyBody> {
        self.passes_because(why.reason);
        self.pending_record.record.detail = why.detail;
        let model = why.model.as_deref();
        model
            .unwrap_or_default()
            .clone_into(&mut self.pending_record.record.model);
        self.usage = Some(UsageWatch::new(dialect));
        self.unmanaged_body = (dialect == Dialect::Messages).then(|| body.clone());
        self.forward(dialect.into(), model, body::full_body(body))
            .await
    }

    /// Forwards the request unchanged to the upstream for its path, dialect and model.
    async fn forward(
        self,
        spoken: SpokenDialects,
        model: Option<&str>,
        body: ProxyBody,
    ) -> Response<ProxyBody> {
        let settings = Arc::clone(&self.settings);
        let path = self.path.clone();
        match settings.routes.choose(&path, spoken, model, &self.headers) {
            Ok((route, rest)) => self.forward_to(&route, rest, body).await,
            Err(why) => self.no_route(why, spoken),
        }
    }

    /// Forwards the request to an upstream, and the answer to the client.
    pub(crate) async fn forward_to(
        mut self,
        route: &UpstreamRoute,
        rest: &str,
        body: ProxyBody,
    ) -> Response<ProxyBody> {
        let scheme = if self.settings.config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        // Made before the headers move into the request, because the page shows the host.
        let front_page = front_page::is_asked_for(&self.method, &self.path)
            .then(|| front_page::text(&self.headers, scheme));
        let Some(request) = self.upstream_request(route, rest, body) else {
            return self.refuse(StatusCode::BAD_REQUEST, "the path cannot be sent on");
        };
        let answer = self.send(request).await;
        match (answer, front_page) {
            (Ok(answer), Some(page)) if front_page::is_missing(answer.status()) => {
                self.pending_record.record.action = RecordAction::Answered;
                self.own_answer(StatusCode::OK, "text/plain; charset=utf-8", page)
            }
            (Ok(answer), _) => {
                let watch = self
                    .usage
                    .take()
                    .map(|usage| usage.with_headers(answer.headers()));
                let watch = watch.map(|watch| Box::new(watch) as Box<dyn AnswerWatch>);
                self.deliver(answer, watch)
            }
            (Err(failed), _) => self.unreachable(&failed),
        }
    }

    /// Sends an unmanaged request. Our tools may have been in front of the conversation before, and
    /// a model may bind its reasoning to them. Then the request is sent again without reasoning.
    async fn send(
        &mut self,
        request: Request<ProxyBody>,
    ) -> Result<Response<ProxyBody>, UpstreamFailure> {
        let idle = self.settings.config.limits.idle_time();
        let (parts, body) = request.into_parts();
        let again = self.unmanaged_body.take().map(|body| (parts.clone(), body));
        let request = Request::from_parts(parts, body);
        let answer = self.shared.client.send(request, idle).await?;
        let Some((parts, body)) = again else {
            return Ok(answer);
        };
        let stripped = match refused_reasoning::body_without(answer, body).await {
            Ok(stripped) => stripped,
            Err(answer) => return Ok(answer),
        };
        refused_reasoning::NOTE.clone_into(&mut self.pending_record.record.detail);
        let request = Request::from_parts(parts, body::full_body(stripped));
        self.shared.client.send(request, idle).await
    }

    /// Delivers an answer to the client. `watch` observes it.
    pub(crate) fn deliver(
        mut self,
        answer: Response<ProxyBody>,
        watch: Option<Box<dyn AnswerWatch>>,
    ) -> Response<ProxyBody> {
        let (mut parts, body) = answer.into_parts();
        headers::to_client(&mut parts.headers);
        parts.version = Version::HTTP_11;
        let elapsed = self.pending_record.elapsed_ms();
        let record = &mut self.pending_record.record;
        record.status = parts.status.as_u16();
        record.answer_ms = elapsed;
        set_headers(&mut parts.headers, record);
        // An error has no id under which the client could continue the conversation.
        let body = match self.tap {
            Some(tap) if parts.status.is_success() => tap.attach(&parts.headers, body),
            _ => body,
        };
        let body = ObservedBody::new(body, self.pending_record, watch, self.open).boxed_unsync();
        Response::from_parts(parts, body)
    }

    /// The answer to a request with a broken or stalled body.
    pub(crate) fn broken_body(self) -> Response<ProxyBody> {
        let fault = self.body_fault.clone();
        let broken = (StatusCode::BAD_REQUEST, String::from("the body is broken"));
        let (status, why) = fault.get().unwrap_or(&broken);
        self.refuse(*status, why)
    }

    /// The answer if the upstream gave none.
    pub(crate) fn unreachable(mut self, failure: &UpstreamFailure) -> Response<ProxyBody> {
        // The upstream gave up because the client's body broke off while it was streamed. That is
        // the client's fault, and the answer says so.
        if self.body_fault.get().is_some() {
            return self.broken_body();
        }
        let name = self.pending_record.record.upstream.clone();
        let upstreams = self.settings.config.upstreams();
        // The address is of more use to a person than the name, but only the name is in the record.
        let found = upstreams.iter().find(|upstream| upstream.name == name);
        let url = found.map_or(name.as_str(), |upstream| upstream.url.as_str());
        let text = format!(
            "the model server at {url} cannot be reached: {}\nhint: trimtab doctor checks it",
            failure.reason
        );
        self.pending_record
            .record
            .detail
            .clone_from(&failure.reason);
        let status = if failure.timed_out {
            StatusCode::GATEWAY_TIMEOUT
        } else {
            StatusCode::BAD_GATEWAY
        };
        self.answer(status, &error("upstream_unreachable", &text))
    }

    /// The answer if the model gave none.
    pub(crate) fn no_answer(mut self, why: &str) -> Response<ProxyBody> {
        why.clone_into(&mut self.pending_record.record.detail);
        self.answer(StatusCode::BAD_GATEWAY, &error("no_answer", why))
    }

    /// The answer to a request that access control refuses.
    pub(crate) fn deny(mut self, refusal: &AccessRefusal, dialect: Dialect) -> Response<ProxyBody> {
        self.pending_record.record.action = RecordAction::Refused;
        self.pending_record.set_reason(refusal.reason);
        let for_browser = self.own_endpoint() == Some(OwnEndpoint::Dashboard);
        let mut answer = self.answer(refusal.status, &refusal.body(dialect));
        if let Some(seconds) = refusal.retry_after_seconds() {
            headers::set_header(answer.headers_mut(), RETRY_AFTER, &seconds.to_string());
        }
        // With this header a browser asks its user for a password.
        if for_browser && refusal.status == StatusCode::UNAUTHORIZED {
            let login =
                HeaderValue::from_static("Basic realm=\"Trimtab: the token is the password\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, login);
        }
        answer
    }

    /// An answer that refuses the request.
    pub(crate) fn refuse(mut self, status: StatusCode, why: &str) -> Response<ProxyBody> {
        self.pending_record.record.action = RecordAction::Refused;
        self.answer(status, &error("refused_by_proxy", why))
    }

    /// The answer to a request without an upstream.
    pub(crate) fn no_route(mut self, why: NoRoute, spoken: SpokenDialects) -> Response<ProxyBody> {
        self.pending_record.set_reason("no-upstream");
        self.pending_record.record.action = RecordAction::Refused;
        let error = why.error(spoken, &self.path);
        self.answer(NoRoute::STATUS, &error)
    }

    /// Our own answer, as JSON.
    pub(crate) fn reply(
        mut self,
        status: StatusCode,
        json: &serde_json::Value,
    ) -> Response<ProxyBody> {
        self.pending_record.record.action = RecordAction::Answered;
        self.answer(status, json)
    }

    fn answer(self, status: StatusCode, json: &serde_json::Value) -> Response<ProxyBody> {
        self.own_answer(status, "application/json", json.to_string())
    }

    /// Our own answer, as text.
    pub(crate) fn reply_text(
        mut self,
        kind: &'static str,
        text: impl Into<Bytes>,
    ) -> Response<ProxyBody> {
        self.pending_record.record.action = RecordAction::Answered;
        self.own_answer(StatusCode::OK, kind, text)
    }

    fn own_answer(
        self,
        status: StatusCode,
        kind: &'static str,
        text: impl Into<Bytes>,
    ) -> Response<ProxyBody> {
        let mut answer = Response::new(body::full_body(text));
        *answer.status_mut() = status;
        let kind = HeaderValue::from_static(kind);
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        self.deliver(answer, None)
    }
}

/// An error in a form that clients of all dialects can read.
fn error(kind: &str, message: &str) -> serde_json::Value {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// Sets the headers that tell the client what was done.
fn set_headers(headers: &mut HeaderMap, record: &crate::records::record::Record) {
    headers::set_header(headers, headers::REQUEST_ID, &record.request_id);
    headers::set_header(headers, headers::ACTION, record.action.as_str());
    if !record.reason.is_empty() {
        headers::set_header(headers, headers::REASON, record.reason);
    }
    if !record.session.is_empty() {
        headers::set_header(headers, headers::SESSION, &record.session);
    }
    if !record.repairs.is_empty() {
        headers::set_header(headers, headers::REPAIRS, &record.repairs);
    }
    // Zero means that the request was not measured, so there are no figures to show.
    if record.tokens_before > 0 {
        let figures = [
            (headers::TOKENS_BEFORE, record.tokens_before),
            (headers::TOKENS_AFTER, record.tokens_after),
        ];
        for (name, figure) in figures {
            headers::set_header(headers, name, &figure.to_string());
        }
    }
    if record.recoveries > 0 {
        headers::set_header(headers, headers::RECOVERIES, &record.recoveries.to_string());
    }
}
