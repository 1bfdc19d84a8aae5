//! Requests for summaries: to the client's own model with its credentials, or to a model that the
//! settings name. They run in the background, or before the request if the settings say so.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;
use trimtab::session::{PendingSummary, SessionError, SummariserAnswer, SummaryRequest};
use trimtab_engine::decide::summary::answer::SummaryEnding;
use trimtab_model::{Dialect, Message, RawJson};
use trimtab_store::{SessionId, Stream};
use trimtab_wire::scan::{BodyScan, LimitName};
use trimtab_wire::{chat, messages, responses};

use crate::config::{ProxyMode, Secret, SummariserConfig, SummaryMode, address};
use crate::conversation::branch::{BranchError, SummaryMark};
use crate::conversation::message_map;
use crate::records::record::{PendingRecord, Record, RecordAction};
use crate::request::plan::ManagedRequest;
use crate::resources::deadline;
use crate::transport::body::{self, CollectedBody, ProxyBody, collect};
use trimtab_wire::answer::{WholeAnswer, is_cut_off};
use trimtab_wire::auth::key_headers;

/// The maximum size of a summary answer, in bytes.
const LONGEST: usize = 4 << 20;

/// The name of the claim of a process that writes a summary.
const SUMMARY: &str = "summary";
/// The duration of a claim as a multiple of the time for one request. A long conversation needs
/// several requests.
const CLAIM_FACTOR: u32 = 3;

/// Requests a summary in the background, and executes its plan when it has arrived.
pub(crate) fn in_background(managed: &Arc<ManagedRequest>, pending: PendingSummary) {
    let managed = Arc::clone(managed);
    // This is also called on blocking threads, where only a handle of the runtime can start a task.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        let claimed = Arc::clone(&managed);
        let begun = spawn_blocking(move || {
            let begun = claim(&claimed, &pending)?;
            Ok::<_, BranchError>(begun.map(|begun| (begun, pending)))
        });
        // Somebody else writes it or has written it, or the conversation is gone.
        let Ok(Ok(Some(((session, writing), mut pending)))) = begun.await else {
            return;
        };
        // Without a model the plan is finished too, with the deterministic summary.
        if asks_a_model(&managed) {
            answer(&managed, &mut pending).await;
        }
        let limit = managed.job.settings.config.limits.summary_time();
        let finishing = deadline::run_within(limit, move || {
            let finished = managed.with_branch(|branch| {
                drop(writing);
                Ok(branch.session().finish(pending)?)
            });
            // A claim that cannot be released expires by itself.
            let store = &managed.job.opened.store;
            store.release(&session, SUMMARY).unwrap_or(());
            finished
        });
        // A failure shows in the next request, which then passes unchanged.
        drop(finishing.await);
    });
}

/// Claims the summary of a conversation. Returns its session and the mark that it is being written;
/// none if this or another process writes it already, or has written it.
fn claim(
    managed: &ManagedRequest,
    pending: &PendingSummary,
) -> Result<Option<(SessionId, Arc<SummaryMark>)>, BranchError> {
    let time = managed.job.settings.config.limits.summary_time();
    managed.with_branch(|branch| {
        let Some(writing) = branch.begin_summary() else {
            return Ok(None);
        };
        let store = &managed.job.opened.store;
        let claimed = store.claim(branch.id(), SUMMARY, time * CLAIM_FACTOR);
        if !claimed.map_err(SessionError::from)? {
            return Ok(None);
        }
        let id = branch.id().clone();
        // The process that had the claim may have finished since the request was planned.
        let stored = store.position(&id, Stream::Journal);
        let is_current = stored.map_err(SessionError::from)? <= branch.session().positions().1
            && branch.session().is_current(pending);
        if !is_current {
            // A claim that cannot be released expires by itself.
            store.release(&id, SUMMARY).unwrap_or(());
        }
        Ok(is_current.then_some((id, writing)))
    })
}

fn asks_a_model(managed: &ManagedRequest) -> bool {
    managed.job.settings.config.compaction != SummaryMode::Off && managed.mode == ProxyMode::On
}

/// Sends all requests of `pending`.
pub(crate) async fn answer(managed: &Arc<ManagedRequest>, pending: &mut PendingSummary) {
    while let Some(request) = pending.request() {
        let time = managed.job.settings.config.limits.summary_time();
        let asked = tokio::time::timeout(time, ask(managed, request)).await;
        let answered = match asked {
            Ok(Ok(answered)) => answered,
            Ok(Err(why)) => SummariserAnswer::Failed(why),
            Err(_) => SummariserAnswer::Failed(format!("no summary within {time:?}")),
        };
        let failed = answered.is_failed();
        pending.answer(answered);
        if failed {
            break;
        }
    }
}

/// A request for a summary, and its destination.
struct SummaryWriter {
    dialect: Dialect,
    /// The name of the upstream in reports.
    upstream: String,
    model: String,
    request: Request<ProxyBody>,
}

impl SummaryWriter {
    /// The record of the request.
    fn new_record(&self, managed: &ManagedRequest) -> PendingRecord {
        let path = self.request.uri().path();
        let mut pending_record = managed.job.shared.new_record(self.request.method(), path);
        let record = &mut pending_record.record;
        record.action = RecordAction::Asked;
        record.dialect = Some(self.dialect);
        record.upstream.clone_from(&self.upstream);
        record.model.clone_from(&self.model);
        record.session.clone_from(&managed.session);
        managed.job.tenant.as_str().clone_into(&mut record.tenant);
        pending_record
    }
}

async fn ask(
    managed: &Arc<ManagedRequest>,
    wanted: SummaryRequest,
) -> Result<SummariserAnswer, String> {
    let request = Arc::clone(managed);
    // On another thread, because it contains most of a conversation.
    let writing = spawn_blocking(move || match &request.job.settings.config.summariser {
        Some(summariser) => by_settings(summariser, &wanted),
        None => by_client(&request, &wanted),
    });
    let writer = writing.await.ok().flatten();
    let writer = writer.ok_or("the request for a summary cannot be written")?;
    let mut pending_record = writer.new_record(managed);
    let answered = send(managed, writer, &mut pending_record.record).await;
    match &answered {
        Ok(SummariserAnswer::Text { usage, .. }) => pending_record.record.usage = *usage,
        Ok(SummariserAnswer::Failed(why)) | Err(why) => {
            pending_record.record.detail.clone_from(why);
        }
    }
    answered
}

async fn send(
    managed: &ManagedRequest,
    writer: SummaryWriter,
    record: &mut Record,
) -> Result<SummariserAnswer, String> {
    let idle = managed.job.settings.config.limits.idle_time();
    let client = &managed.job.shared.client;
    let answer = client.send(writer.request, idle).await;
    let answer = answer.map_err(|failed| failed.reason)?;
    let status = answer.status();
    record.status = status.as_u16();
    let collected = collect(answer.into_body(), LONGEST).await;
    let CollectedBody::Whole(body) = collected else {
        return Err("the summary did not arrive whole".to_owned());
    };
    if !status.is_success() {
        return Err(format!("status {status}"));
    }
    read(writer.dialect, &body).ok_or_else(|| "the answer is not understood".to_owned())
}

/// A request to the client's upstream with the client's credentials, for its model or the policy's
/// model for summaries.
fn by_client(managed: &ManagedRequest, wanted: &SummaryRequest) -> Option<SummaryWriter> {
    let work = &managed.job;
    let scan = BodyScan::new(&work.body, work.dialect).ok()?;
    let tools = scan.json(scan.request().tools);
    // Chat has two names for the limit, and newer models accept only one: the client knows which.
    let limit = scan.request().limits.first().map(|limit| limit.name);
    let model = managed.summary_model();
    let body = write(work.dialect, model, wanted, limit, Some(tools))?;
    Some(SummaryWriter {
        dialect: work.dialect,
        upstream: managed.route.upstream.name.clone(),
        model: model.to_owned(),
        request: managed.upstream_request(body::full_body(body), true, false)?,
    })
}

/// A request to the summariser of the settings.
fn by_settings(summariser: &SummariserConfig, wanted: &SummaryRequest) -> Option<SummaryWriter> {
    let dialect = summariser.dialect;
    let body = write(dialect, &summariser.model, wanted, None, None)?;
    let path = match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Messages => "/v1/messages",
        Dialect::Responses => "/v1/responses",
    };
    let mut request = Request::new(body::full_body(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address(&summariser.url, path)?;
    *request.headers_mut() = credentials(summariser)?;
    Some(SummaryWriter {
        dialect,
        upstream: "summariser".to_owned(),
        model: summariser.model.clone(),
        request,
    })
}

fn credentials(summariser: &SummariserConfig) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = summariser.key.as_ref().map(Secret::reveal);
    for (name, value) in key_headers(summariser.dialect, key) {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// The body of a summary request. Tools that were called must be defined, but none may be called.
fn write(
    dialect: Dialect,
    model: &str,
    wanted: &SummaryRequest,
    limit: Option<LimitName>,
    tools: Option<&str>,
) -> Option<String> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    let limit = limit.unwrap_or(match dialect {
        Dialect::Chat | Dialect::Messages => LimitName::MaxTokens,
        Dialect::Responses => LimitName::MaxOutputTokens,
    });
    body.insert(limit.as_str().to_owned(), json!(wanted.max_output));
    let (name, list) = conversation(dialect, &wanted.messages, &mut body);
    body.insert(name.to_owned(), Value::Array(values(&list)?));
    // Providers allow only a few cache markers. Those on the tools are the client's own and stay;
    // more of them could make the request invalid.
    for name in [name, "system"] {
        if let Some(entries) = body.get_mut(name) {
            strip_markers(entries);
        }
    }
    let tools = tools.and_then(|json| serde_json::from_str::<Value>(json).ok());
    let tools = tools.filter(|tools| tools.as_array().is_some_and(|list| !list.is_empty()));
    let calls = wanted.messages.iter().any(Message::has_calls);
    // Providers refuse calls of tools that are not defined. Without calls the definitions would
    // only cost tokens.
    if let Some(tools) = tools.filter(|_| calls) {
        body.insert("tools".to_owned(), tools);
        let none = if dialect == Dialect::Messages {
            json!({"type": "none"})
        } else {
            json!("none")
        };
        body.insert("tool_choice".to_owned(), none);
    }
    if dialect == Dialect::Responses {
        // The provider keeps Responses by default. Nobody would ever continue from this one.
        body.insert("store".to_owned(), json!(false));
    }
    serde_json::to_string(&body).ok()
}

/// The name and the entries of the field with the messages.
fn conversation(
    dialect: Dialect,
    said: &[Message],
    body: &mut Map<String, Value>,
) -> (&'static str, Vec<RawJson>) {
    match dialect {
        Dialect::Chat => (
            "messages",
            said.iter().flat_map(chat::write_message).collect(),
        ),
        Dialect::Messages => {
            let written = messages::write_request(said);
            if let Some(system) = written.system {
                body.insert("system".to_owned(), system.to_value());
            }
            ("messages", written.messages)
        }
        Dialect::Responses => {
            // The summariser gets no reasoning. Item ids are bound to the reasoning before them, so
            // they are left out too.
            let said: Vec<Message> = said.iter().map(responses::without_ids).collect();
            if let Some(instructions) = responses::write_instructions(&said) {
                body.insert("instructions".to_owned(), json!(instructions));
            }
            ("input", responses::write_input(&said))
        }
    }
}

/// Removes the cache markers of entries, their parts, and the content of outputs.
fn strip_markers(entries: &mut Value) {
    let objects = entries.as_array_mut().into_iter().flatten();
    for object in objects.filter_map(Value::as_object_mut) {
        object.retain(|name, _| !message_map::is_marker(name));
        if let Some(inner) = object.get_mut("content") {
            strip_markers(inner);
        }
    }
}

fn values(list: &[RawJson]) -> Option<Vec<Value>> {
    let parse = |raw: &RawJson| serde_json::from_str(raw.as_str()).ok();
    list.iter().map(parse).collect()
}

/// Reads the answer of the summariser.
fn read(dialect: Dialect, body: &[u8]) -> Option<SummariserAnswer> {
    let answer = WholeAnswer::read(dialect, body)?;
    let ending = match answer.stop.as_deref() {
        _ if answer.message.has_calls() => SummaryEnding::ToolCall,
        Some(stop) if is_cut_off(stop) => SummaryEnding::CutOff,
        _ => SummaryEnding::Whole,
    };
    Some(SummariserAnswer::Text {
        text: answer.message.text().into_owned(),
        ending,
        usage: answer.usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, Media, MediaKind, Part, Role};

    fn wanted() -> SummaryRequest {
        SummaryRequest {
            messages: vec![
                Message::system("be brief"),
                Message::user("q"),
                Message::assistant("").with_call(Call::new("c1", "f", "{}")),
                Message::output("c1", "out"),
                Message::user("now summarise"),
            ],
            max_output: 900,
        }
    }

    #[test]
    fn a_summary_is_asked_for_in_every_dialect() {
        let tools = r#"[{"name":"f","input_schema":{}}]"#;
        for dialect in Dialect::ALL {
            let body = write(dialect, "m", &wanted(), None, Some(tools)).unwrap();
            let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
            assert_eq!(scan.answer_limit(), Some(900));
            assert_eq!(scan.request().tool_list.len(), 1);
            assert!(trimtab_wire::validate::validate(&scan).is_empty(), "{body}");
            assert!(body.contains("tool_choice"));
        }
    }

    #[test]
    fn a_summary_request_carries_no_cache_marker_of_the_conversation() {
        let image = r#"{"type":"image","source":{},"cache_control":{"type":"ephemeral"}}"#;
        let media = Part::Media(Media {
            kind: MediaKind::Image,
            raw: RawJson::parse(image).unwrap(),
        });
        let mut wanted = wanted();
        for _ in 0..6 {
            wanted
                .messages
                .push(Message::new(Role::User, vec![media.clone()]));
        }
        let body = write(Dialect::Messages, "m", &wanted, None, None).unwrap();
        assert!(!body.contains("cache_control"), "{body}");
    }

    #[test]
    fn an_answer_that_was_cut_off_is_known() {
        let cut = br#"{"choices":[{"finish_reason":"length","message":{"content":"so","role":"assistant"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
        let Some(SummariserAnswer::Text { ending, usage, .. }) = read(Dialect::Chat, cut) else {
            panic!("it is an answer");
        };
        assert_eq!(
            (ending, usage.unwrap().prompt()),
            (SummaryEnding::CutOff, 7)
        );
    }
}
