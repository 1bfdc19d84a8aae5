//! The exchange with the upstream: sends a managed request, sends it again smaller if it was too
//! large, and delivers the answer to the client. `server::dispatch` runs it after planning.

mod background_summary;
mod learning;
mod overflow_recovery;
mod refusal_recovery;
mod retrieval;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{Request, Response, StatusCode};
use trimtab::session::PendingSummary;
use trimtab_model::Dialect;
use trimtab_model::estimate::Measure;
use trimtab_store::StagedStore;

use self::learning::learn_later;
use crate::answer::peek::{PeekedAnswer, SentRequest, peek};
use crate::answer::refused_reasoning;
use crate::answer::usage_watch::UsageWatch;
use crate::config::{ProxyMode, SummaryMode};
use crate::conversation::branch::{Branch, BranchError, ComposeOptions, OutgoingBody};
use crate::conversation::durability::{FlushFailure, flush_before};
use crate::history::SentNote;
use crate::records::record::RecordAction;
use crate::request::context::RequestContext;
use crate::request::plan::{CONFLICTS, ManagedRequest, PlannedSend, plan, planning_bytes};
use crate::resources::deadline;
use crate::transport::body::{ProxyBody, full_body, held_body};
use crate::transport::upstream_client::UpstreamFailure;

/// The number of smaller requests after an overflow that every policy has, for shorter answers too.
const RECOVERIES: u32 = 2;
/// The time limit for work on a request in progress, as a multiple of the planning time. Without
/// this work there is no answer.
const UNDER_WAY: u32 = 5;

/// A managed request in progress.
pub(crate) struct Exchange {
    pub(crate) managed: Arc<ManagedRequest>,
    /// The original body, still compressed if it was.
    received_body: Bytes,
    pub(crate) outgoing: OutgoingBody,
    /// Why the original body is sent, if it is.
    bypass_reason: Option<&'static str>,
    options: ComposeOptions,
    recoveries: u32,
    /// True if the last answer reports an overflow that could not be cured.
    overflowed: bool,
    /// The writes that must be durable before a model reads the request.
    unwritten: Option<Arc<StagedStore>>,
    /// The plan that waits for a summary.
    pending: Option<PendingSummary>,
    /// True once the answer goes on with a further request, so that the client's own request is no
    /// alternative any more.
    is_continued: bool,
    /// True once the request was planned again because of the reasoning in it.
    is_replanned: bool,
}

impl Exchange {
    pub(crate) fn new(managed: ManagedRequest, planned: PlannedSend, received: Bytes) -> Self {
        Self {
            received_body: received,
            outgoing: planned.outgoing,
            bypass_reason: managed.untouched,
            options: managed.options,
            recoveries: 0,
            overflowed: false,
            unwritten: planned.unwritten,
            pending: planned.pending,
            is_continued: false,
            is_replanned: false,
            managed: Arc::new(managed),
        }
    }

    /// Requests a summary if one is needed, sends the request, and recovers from overflows.
    pub(crate) async fn run(
        &mut self,
        context: &mut RequestContext,
    ) -> Result<Response<ProxyBody>, UpstreamFailure> {
        // The record is filled twice: if the client leaves while the upstream answers, it still
        // says what was sent.
        self.summarise().await;
        self.fill_record(context);
        let answer = self.answer().await;
        self.fill_record(context);
        answer
    }

    /// Requests a summary if one is needed: before sending if requests wait for it, else in the
    /// background.
    async fn summarise(&mut self) {
        let Some(mut pending) = self.pending.take() else {
            return;
        };
        let waits = self.managed.job.settings.config.compaction == SummaryMode::Wait;
        if !waits || self.managed.mode != ProxyMode::On {
            // The request goes out with the window as it is. The summary is ready for one of the
            // next requests.
            return background_summary::in_background(&self.managed, pending);
        }
        background_summary::answer(&self.managed, &mut pending).await;
        let (managed, ways) = (Arc::clone(&self.managed), self.options);
        let working = deadline::run_within(self.patience(), move || {
            managed.with_body(|branch, scan| {
                branch.session().finish(pending)?;
                branch.compose(scan, &ways)
            })
        });
        if let Ok(Ok(outgoing)) = working.await {
            self.outgoing = self.managed.job.with_reserved_body(outgoing);
        }
    }

    /// True if our window is sent instead of the original messages.
    fn is_ours(&self) -> bool {
        self.managed.mode == ProxyMode::On && self.bypass_reason.is_none()
    }

    /// True if our body is sent: our window, or the original messages with our tools before them.
    fn has_our_body(&self) -> bool {
        let untouched = self.managed.untouched;
        let is_bypassed = self.bypass_reason.is_some() && self.bypass_reason != untouched;
        self.managed.mode == ProxyMode::On && !is_bypassed
    }

    /// Fills the record.
    fn fill_record(&mut self, context: &mut RequestContext) {
        let record = &mut context.pending_record.record;
        record.plans.append(&mut self.outgoing.plans);
        let managed = &self.managed;
        record.model.clone_from(&managed.model);
        if managed.model_limits.is_assumed
            && let Some(model) = &managed.model_limits.model
        {
            record.assumed_model.clone_from(&model.id);
        }
        record.upstream.clone_from(&managed.route.upstream.name);
        record.session.clone_from(&managed.session);
        managed
            .client_session
            .name()
            .clone_into(&mut record.client_session);
        record.sent_before_measures = managed.sent_before;
        record.marked_measures = managed.marked;
        record.window = managed.model_limits.window.unwrap_or_default();
        record.set_sizes(&self.outgoing.sizes);
        if self.edited().is_none() {
            record.our_tools_measure = Measure::default();
        }
        // The client's own body was sent. Only observing reports what would have been saved.
        if !self.is_ours() && managed.mode != ProxyMode::Observe {
            record.tokens_after = record.tokens_before;
        }
        record.recoveries = self.recoveries;
        record.repairs = if self.is_ours() {
            self.outgoing.repairs.join(",")
        } else {
            String::new()
        };
        record.reasoning = self.outgoing.reasoning;
        if !self.outgoing.notes.is_empty() {
            record.detail = self.outgoing.notes.join("; ");
        }
        record.reason = self.bypass_reason.unwrap_or_default();
        let is_edited = self.outgoing.has_new_window;
        record.action = match (managed.mode, self.bypass_reason) {
            (ProxyMode::Observe, _) => RecordAction::Observed,
            (_, Some(_)) => RecordAction::Passed,
            (_, None) if is_edited => RecordAction::Edited,
            (_, None) => RecordAction::Unchanged,
        };
    }

    /// Sends the request until the answer is not an overflow, or nothing more helps.
    pub(crate) async fn answer(&mut self) -> Result<Response<ProxyBody>, UpstreamFailure> {
        let mut original = None;
        let most = self.recoveries + self.managed.recoveries().max(RECOVERIES);
        self.overflowed = false;
        loop {
            let answer = self.send().await?;
            // Noted after the answer has begun, so that a request that reached nobody does not
            // count.
            self.note_sent();
            if self.managed.mode != ProxyMode::On {
                return Ok(answer);
            }
            let limits = self.managed.job.settings.config.limits;
            // Nothing of the answer goes to the client before it is known that it is no overflow.
            let (verdict, refused) = match peek(answer, self.sent(), &limits).await {
                PeekedAnswer::Answer(answer) if is_refusal(answer.status()) => {
                    let Some(answer) = self.after_refusal(answer).await else {
                        continue;
                    };
                    // The smaller request was refused for another reason, so it did not help.
                    self.overflowed = original.is_some();
                    return Ok(original.unwrap_or(answer));
                }
                PeekedAnswer::Answer(answer) => return Ok(answer),
                PeekedAnswer::Overflow(verdict, refused) => (verdict, refused),
            };
            // The client gets the first refusal: it is about the request that the client sent.
            let first = original.take().unwrap_or(refused);
            if self.recoveries >= most || !self.recover(verdict).await {
                self.overflowed = true;
                return Ok(first);
            }
            original = Some(first);
        }
    }

    /// Tells the dashboard what was sent.
    fn note_sent(&self) {
        let managed = &self.managed;
        let sent = self.edited().unwrap_or(&managed.job.body);
        let lifetime = managed.asked_cache.lifetime;
        managed.job.shared.history.note_sent(SentNote {
            session: managed.session.clone(),
            body: sent.clone(),
            messages: self.outgoing.messages,
            decisions: self.outgoing.decisions,
            lifetime_ms: lifetime.map_or(0, |time| time.as_millis().try_into().unwrap_or(u64::MAX)),
        });
    }

    fn sent(&self) -> SentRequest {
        SentRequest {
            window: self.managed.model_limits.window,
            estimate: self.outgoing.tokens,
            body: self.edited().unwrap_or(&self.managed.job.body).clone(),
        }
    }

    /// Sends the request. If it is the client's own, and the model binds the reasoning in it to what
    /// earlier requests were sent with, it is sent again without reasoning.
    async fn send(&mut self) -> Result<Response<ProxyBody>, UpstreamFailure> {
        let answer = self.send_as_planned().await?;
        if self.edited().is_some() || self.managed.job.dialect != Dialect::Messages {
            return Ok(answer);
        }
        let body = self.managed.job.body.clone();
        let stripped = match refused_reasoning::body_without(answer, body).await {
            Ok(stripped) => stripped,
            Err(answer) => return Ok(answer),
        };
        self.outgoing.notes.push(refused_reasoning::NOTE.to_owned());
        self.outgoing.reasoning.kept = 0;
        let request = self
            .managed
            .upstream_request(full_body(stripped), true, false);
        let idle = self.managed.job.settings.config.limits.idle_time();
        let client = &self.managed.job.shared.client;
        client.send(request.ok_or_else(no_address)?, idle).await
    }

    async fn send_as_planned(&mut self) -> Result<Response<ProxyBody>, UpstreamFailure> {
        let shared = Arc::clone(&self.managed.job.shared);
        let limits = self.managed.job.settings.config.limits;
        let mut conflicts = 0;
        while let Some(staged) = self.unwritten.take() {
            // The request is sent while the store writes; only its last byte waits for the store.
            let outcome = Arc::new(OnceLock::new());
            let written = flush_before(staged, limits.plan_time(), Arc::clone(&outcome));
            let request = self.request(|bytes| held_body(bytes, written))?;
            let answer = shared.client.send(request, limits.idle_time()).await;
            let Some(failure) = outcome.get().filter(|_| answer.is_err()) else {
                return answer;
            };
            // The write failed, so the last byte was never sent and no model has read the request.
            self.managed.forget();
            conflicts += 1;
            if let FlushFailure::Failed(Some(error)) = failure {
                shared.store_state.note_failure(error);
            }
            let is_conflict = matches!(failure, FlushFailure::Conflict);
            let may_plan = is_conflict && conflicts <= CONFLICTS;
            // After a conflict the request is planned again from what the other process wrote. If
            // that fails too, the original request is sent.
            if !may_plan || !self.plan_again().await {
                self.bypass_reason = Some("failed");
            }
        }
        let request = self.request(full_body)?;
        shared.client.send(request, limits.idle_time()).await
    }

    /// Plans the request again after another process wrote to its conversation. False if that
    /// fails.
    async fn plan_again(&mut self) -> bool {
        let job = self.managed.job.clone();
        // The memory for the first plan was returned, so this one needs its own.
        let mut memory = job.reservation();
        if !memory.grow_for_work(planning_bytes(&job.body, 0)) {
            return false;
        }
        let planning = deadline::run_within(self.patience(), move || {
            let _held = memory;
            plan(job)
        });
        let Ok(Ok((managed, planned))) = planning.await else {
            return false;
        };
        *self = Self::new(managed, planned, self.received_body.clone());
        self.summarise().await;
        true
    }

    /// The new body, unless the original is sent.
    fn edited(&self) -> Option<&Bytes> {
        self.outgoing.body.as_ref().filter(|_| self.has_our_body())
    }

    fn request(
        &self,
        body: impl FnOnce(Bytes) -> ProxyBody,
    ) -> Result<Request<ProxyBody>, UpstreamFailure> {
        let edited = self.edited();
        let drops = edited.is_some() && self.options.reasoning.may_drop;
        let bytes = edited.unwrap_or(&self.received_body).clone();
        self.managed
            .upstream_request(body(bytes), edited.is_some(), drops)
            .ok_or_else(no_address)
    }

    /// The time limit for work on a request in progress.
    fn patience(&self) -> Duration {
        let limits = self.managed.job.settings.config.limits;
        limits.plan_time().saturating_mul(UNDER_WAY)
    }

    /// Admits what follows the answer to the last request, and builds the next body.
    pub(crate) async fn continue_answer<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Branch) -> Result<T, BranchError> + Send + 'static,
    ) -> Option<T> {
        let (managed, ways) = (Arc::clone(&self.managed), self.options);
        let sent = self.outgoing.messages;
        let working = deadline::run_within(self.patience(), move || {
            managed.continue_answer(sent, |branch, scan| {
                let done = work(branch)?;
                Ok::<_, BranchError>((done, branch.compose(scan, &ways)?))
            })
        });
        let (managed, (done, outgoing)) = working.await.ok()?.ok()?;
        self.managed = managed;
        self.outgoing = self.managed.job.with_reserved_body(outgoing);
        self.is_continued = true;
        Some(done)
    }

    /// True if the last answer rejects the request itself.
    pub(crate) fn is_refused(&self, answer: &Response<ProxyBody>) -> bool {
        self.overflowed || is_refusal(answer.status())
    }

    /// Sends `outgoing`, which asks for an answer without calls.
    pub(crate) fn send_last(&mut self, outgoing: OutgoingBody) {
        self.outgoing = outgoing;
    }

    /// Delivers the answer to the client.
    pub(crate) async fn deliver(
        self,
        context: RequestContext,
        answer: Response<ProxyBody>,
    ) -> Response<ProxyBody> {
        // Only an answer that may call our tools has to be read before it is handed on.
        let serves = self.edited().is_some() && self.outgoing.offered.is_some();
        let is_plain = !answer.headers().contains_key(CONTENT_ENCODING);
        if serves && is_plain && answer.status() == StatusCode::OK {
            return retrieval::deliver(self, context, answer).await;
        }
        let watch = self.watch(answer.status()).with_headers(answer.headers());
        context.deliver(answer, Some(Box::new(watch)))
    }

    /// A watch that reads the usage of an answer and learns from it.
    pub(crate) fn watch(&self, status: StatusCode) -> UsageWatch {
        let managed = Arc::clone(&self.managed);
        // Usage teaches something only if it is about the window that the session handed out.
        let is_ours = self.is_ours() || self.outgoing.body.is_none();
        let window = self.outgoing.window;
        UsageWatch::new(managed.job.dialect).on_end(move |seen| {
            let teaches = is_ours && status.is_success();
            if teaches && let Ok(runtime) = tokio::runtime::Handle::try_current() {
                // In a task of its own: the end of the answer is not flushed yet.
                runtime.spawn(learn_later(managed, window, seen));
            }
        })
    }
}

fn no_address() -> UpstreamFailure {
    UpstreamFailure {
        timed_out: false,
        reason: "the path cannot be sent on".to_owned(),
    }
}

/// True for a status that rejects the request itself.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 413 | 422)
}
