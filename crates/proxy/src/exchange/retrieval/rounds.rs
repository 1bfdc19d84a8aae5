//! The hidden rounds of one answer: calls of the two tools served from the store, and the model
//! asked again.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Call, Message, Output, Usage};

use super::last_answer;
use crate::answer::usage_watch::{ObservedAnswer, ObservedContent};
use crate::conversation::branch::{Branch, BranchError, OutgoingBody};
use crate::conversation::hidden_rounds::PendingOwnCalls;
use crate::exchange::Exchange;
use crate::exchange::learning::learn_later;
use crate::records::observed_body::AnswerWatch;
use crate::records::record::PromptSizes;
use crate::records::record::Record;
use crate::request::plan::ManagedRequest;
use crate::resources::deadline;
use crate::response_chains::stored_link::StoredLink;
use crate::transport::body::ProxyBody;
use crate::transport::upstream_client::UpstreamFailure;
use trimtab_wire::answer::AnswerReader;

/// The output for retrieval calls beyond the limit.
const ENOUGH: &str = "no more of these calls are carried out in this answer; \
    answer with what you have, or ask again later";

/// The outcome of an answer, for its record.
#[derive(Clone, Default)]
pub(super) struct AnswerOutcome(Arc<Mutex<ServedAnswer>>);

/// The usage of an answer and of the hidden ones before it.
#[derive(Default)]
struct ServedAnswer {
    usage: Option<Usage>,
    hidden: Option<Usage>,
    /// The sizes of the prompt that was answered last.
    sizes: Option<PromptSizes>,
    retrievals: u32,
    /// True once the client was given the end of the answer.
    ended: bool,
}

impl ServedAnswer {
    /// Adds the usage of the next answer.
    fn reported(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        if let Some(before) = self.usage.replace(usage) {
            // The answer that was last until now turns out to be a hidden one.
            self.hidden = Some(self.hidden.unwrap_or_default() + before);
        }
    }
}

impl ServedAnswer {
    /// The usage of all answers so far.
    fn total(&self) -> Option<Usage> {
        match (self.usage, self.hidden) {
            (None, None) => None,
            (usage, hidden) => Some(usage.unwrap_or_default() + hidden.unwrap_or_default()),
        }
    }
}

/// The cost of the hidden requests. The figures do not overlap.
fn cost(requests: usize, usage: Usage) -> Value {
    json!({
        "requests": requests,
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

impl AnswerOutcome {
    fn with(&self, change: impl FnOnce(&mut ServedAnswer)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl AnswerWatch for AnswerOutcome {
    fn data(&mut self, _: &Bytes) {}

    fn end(&mut self, whole: bool, record: &mut Record) {
        self.with(|served| {
            // A client may close as soon as it has the end, which is no interruption.
            record.cut = !whole && !served.ended;
            record.usage = served.usage;
            record.hidden = served.hidden;
            record.retrievals = served.retrievals;
            if let Some(sizes) = served.sizes {
                record.set_sizes(&sizes);
            }
        });
    }
}

/// Why no further answer follows.
pub(super) enum RoundFailure {
    /// The provider rejected the request.
    Refused(Box<Response<ProxyBody>>),
    /// It cannot be reached.
    Unreachable(UpstreamFailure),
    /// The model keeps calling the retrieval tools.
    Stuck,
}

/// Serves the retrieval calls of one answer.
pub(super) struct RetrievalServer {
    pub(super) exchange: Exchange,
    /// The names of our tools.
    pub(super) names: ToolNames,
    outcome: AnswerOutcome,
    rounds: usize,
    /// True once the model was asked for an answer without calls.
    is_last: bool,
    /// True once our calls in a mixed answer were served.
    mixed_calls_served: bool,
    /// The ids of the response that the client knows and of the provider's last one.
    response_ids: Option<(String, String)>,
}

impl RetrievalServer {
    pub(super) fn new(exchange: Exchange, outcome: AnswerOutcome) -> Self {
        Self {
            names: exchange.outgoing.offered.unwrap_or_default(),
            exchange,
            outcome,
            rounds: 0,
            is_last: false,
            mixed_calls_served: false,
            response_ids: None,
        }
    }

    /// Records the reported usage, and teaches it to the session.
    pub(super) fn learn(&self, usage: Usage, content: ObservedContent) -> JoinHandle<()> {
        let usage = (usage != Usage::default()).then_some(usage);
        let outgoing = &self.exchange.outgoing;
        self.outcome.with(|served| {
            served.reported(usage);
            served.sizes = Some(outgoing.sizes);
        });
        let managed = Arc::clone(&self.exchange.managed);
        let seen = ObservedAnswer {
            usage,
            content,
            is_complete: true,
        };
        tokio::spawn(learn_later(managed, outgoing.window, seen))
    }

    /// Records that the client gets the end of the answer now.
    pub(super) fn mark_ended(&self) {
        self.outcome.with(|served| served.ended = true);
    }

    /// The cost of all answers so far, for the usage of the next one.
    pub(super) fn hidden_cost(&self) -> Option<Value> {
        let mut usage = None;
        self.outcome.with(|served| usage = served.total());
        Some(cost(self.rounds, usage?))
    }

    /// The same after the usage of the last answer was recorded.
    pub(super) fn hidden_cost_before_last(&self) -> Option<Value> {
        let mut usage = None;
        self.outcome.with(|served| usage = served.hidden);
        Some(cost(self.rounds, usage?))
    }

    /// Serves an answer that calls only our tools, and returns the next answer.
    pub(super) async fn serve(
        &mut self,
        said: Message,
    ) -> Result<Response<ProxyBody>, RoundFailure> {
        // The model was told to call nothing. One that calls all the same would never end.
        if self.is_last {
            return Err(RoundFailure::Stuck);
        }
        let limits = self.exchange.managed.job.settings.config.limits;
        self.rounds += 1;
        // The limit is reported as an output, because a call must not stay without one.
        let enough = self.rounds > limits.retrieval_rounds;
        // Kept for the case that the request with the new round is refused: this one was accepted.
        let answered = self.exchange.outgoing.clone();
        let names = self.names;
        let served = self.exchange.continue_answer(move |branch| {
            let outputs = outputs(branch, &said, names, enough);
            let count = outputs.len();
            branch.admit_hidden(said, outputs)?;
            Ok(count)
        });
        // The round could not be stored or planned. The last accepted request is sent again,
        // and the model has to answer with what it has.
        let Some(count) = served.await else {
            return self.ask_for_last_answer(answered, None).await;
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.outcome.with(|served| served.retrievals += count);
        if enough {
            let outgoing = self.exchange.outgoing.clone();
            return self.ask_for_last_answer(outgoing, None).await;
        }
        match self.exchange.answer().await {
            Ok(refused) if self.exchange.is_refused(&refused) => {
                self.ask_for_last_answer(answered, Some(refused)).await
            }
            answer => accepted_answer(answer),
        }
    }

    /// Asks once more, for an answer without calls, so that retrieval never costs the client its
    /// answer. If a request with a new round was rejected, the one before it is sent again.
    async fn ask_for_last_answer(
        &mut self,
        outgoing: OutgoingBody,
        refused: Option<Response<ProxyBody>>,
    ) -> Result<Response<ProxyBody>, RoundFailure> {
        self.is_last = true;
        let job = &self.exchange.managed.job;
        let outgoing = last_answer::without_calls(job, outgoing).await;
        self.exchange.send_last(outgoing);
        let answer = self.exchange.answer().await;
        let good = matches!(&answer, Ok(answer) if !self.exchange.is_refused(answer));
        match refused.filter(|_| !good) {
            Some(refused) => Err(RoundFailure::Refused(Box::new(refused))),
            None => accepted_answer(answer),
        }
    }

    /// Serves our calls in a stream that also calls the client's tools, once.
    pub(super) async fn serve_mixed_stream(&mut self, so_far: &AnswerReader) {
        // Only once, although a stream can announce its end in several events.
        if std::mem::replace(&mut self.mixed_calls_served, true) {
            return;
        }
        // Finished on a copy, because the stream still continues with its last events.
        let said = so_far.clone().into_message();
        if let Some(said) = said.filter(|said| !our_calls(said, self.names).is_empty()) {
            self.serve_mixed(said).await;
        }
    }

    /// Notes the id of the next response. In a stream the client knows only the first one.
    pub(super) fn note_response(&mut self, id: Option<&str>) {
        let Some(id) = id.map(str::to_owned) else {
            return;
        };
        let first = self.response_ids.take().map(|(first, _)| first);
        self.response_ids = Some((first.unwrap_or_else(|| id.clone()), id));
    }

    /// Stores where the provider continues, before the client has the end of an answer that consists
    /// of several responses.
    pub(super) async fn keep_link(&mut self) {
        let Some(ids) = self
            .response_ids
            .clone()
            .filter(|(known, last)| known != last)
        else {
            return;
        };
        let managed = Arc::clone(&self.exchange.managed);
        let limit = managed.job.settings.config.limits.plan_time();
        let kept = deadline::run_within(limit, move || keep_link(&managed, &ids, Vec::new()));
        // Without the link only a restart can make a difference.
        kept.await.unwrap_or(());
    }

    /// Serves our calls in an answer that also calls the client's tools.
    pub(super) async fn serve_mixed(&mut self, said: Message) {
        let managed = Arc::clone(&self.exchange.managed);
        let limit = managed.job.settings.config.limits.plan_time();
        let (names, sent) = (self.names, self.exchange.outgoing.messages);
        let ids = self.response_ids.clone();
        let served = deadline::run_within(limit, move || {
            let (managed, calls) = managed.continue_answer(sent, |branch, _| {
                let outputs = outputs(branch, &said, names, false);
                let calls = outputs.iter().map(|output| output.call_id.clone());
                let calls: Vec<String> = calls.collect();
                if !calls.is_empty() {
                    branch.keep_pending_calls(pending_own_calls(&said, names, outputs))?;
                }
                Ok(calls)
            })?;
            let count = calls.len();
            if let Some(ids) = ids {
                keep_link(&managed, &ids, calls);
            }
            Ok::<_, BranchError>((managed, count))
        });
        if let Ok(Ok((managed, count))) = served.await {
            self.exchange.managed = managed;
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.outcome.with(|served| served.retrievals += count);
        }
    }
}

/// Stores where the provider continues after an answer that it keeps.
fn keep_link(managed: &ManagedRequest, (known, last): &(String, String), calls: Vec<String>) {
    let job = &managed.job;
    if !managed.is_kept {
        return;
    }
    let link = StoredLink {
        session: managed.session.clone(),
        last: last.clone(),
        calls,
    };
    if let Err(error) = link.keep(&job.opened, &job.tenant, known) {
        job.shared.store_state.note_failure(&error);
    }
}

fn accepted_answer(
    answer: Result<Response<ProxyBody>, UpstreamFailure>,
) -> Result<Response<ProxyBody>, RoundFailure> {
    let answer = answer.map_err(RoundFailure::Unreachable)?;
    if answer.status().is_success() {
        Ok(answer)
    } else {
        Err(RoundFailure::Refused(Box::new(answer)))
    }
}

/// The calls of our tools in an answer, each with its index among the parts.
fn our_calls(said: &Message, names: ToolNames) -> Vec<(usize, Call)> {
    let parts = said.parts.iter().enumerate();
    parts
        .filter_map(|(at, part)| Some((at, part.as_call()?.clone())))
        .filter(|(_, call)| names.serves(&call.name))
        .collect()
}

/// Our calls in a mixed answer, to be put back later.
fn pending_own_calls(said: &Message, names: ToolNames, outputs: Vec<Output>) -> PendingOwnCalls {
    let theirs = said.calls().filter(|call| !names.serves(&call.name));
    PendingOwnCalls {
        // `Branch::keep_pending_calls` sets it.
        at: 0,
        calls: our_calls(said, names),
        outputs,
        theirs: theirs.map(|call| call.id.clone()).collect(),
    }
}

/// The outputs of our calls.
fn outputs(branch: &mut Branch, said: &Message, names: ToolNames, enough: bool) -> Vec<Output> {
    let store = Arc::clone(branch.session().store());
    let calls = our_calls(said, names);
    // The room in the window is shared by all calls of the answer.
    let limits = branch.session().retrieval_limits(calls.len());
    let retrieval = Retrieval::new(store.as_ref(), branch.id().clone()).limits(limits);
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
    calls.into_iter().map(output).collect()
}
