//! Writes a call of a model as OpenTelemetry spans, with the attribute names of the conventions for
//! generative AI.

use serde_json::{Value, json};
use trimtab_model::Dialect;

use crate::records::record::{Record, RecordAction};

// The numbers of span kinds and status codes in OTLP.
const CLIENT: u8 = 3;
const INTERNAL: u8 = 1;
const ERROR: u8 = 2;
/// The name of the operation, also for summaries: they are calls like others.
pub(super) const OPERATION: &str = "chat";

/// The span of a call, and one for our own work before it. They hold figures and names, and no
/// text of a message.
pub(super) fn spans_of(record: &Record) -> Vec<Value> {
    let (trace, parent) = trace_of(record);
    let id = random_hex::<8>();
    let start = nanoseconds(record.time_ms, 0.0);
    let mut call = json!({
        "traceId": trace,
        "spanId": id,
        "name": format!("{OPERATION} {}", record.model),
        "kind": CLIENT,
        "startTimeUnixNano": start,
        "endTimeUnixNano": nanoseconds(record.time_ms, record.total_ms),
        "attributes": attributes(record),
    });
    if let (Some(parent), Some(call)) = (parent, call.as_object_mut()) {
        call.insert("parentSpanId".to_owned(), parent.into());
    }
    if record.status >= 400
        && let Some(call) = call.as_object_mut()
    {
        call.insert("status".to_owned(), json!({"code": ERROR}));
    }
    let plan = json!({
        "traceId": trace,
        "spanId": random_hex::<8>(),
        "parentSpanId": id,
        "name": "trimtab.plan",
        "kind": INTERNAL,
        "startTimeUnixNano": start,
        "endTimeUnixNano": nanoseconds(record.time_ms, record.plan_ms),
    });
    // A request that passed before planning has no work of ours to show.
    let is_planned = record.plan_ms > 0.0;
    [Some(call), is_planned.then_some(plan)]
        .into_iter()
        .flatten()
        .collect()
}

fn attributes(record: &Record) -> Vec<Value> {
    let is_edited = record.action == RecordAction::Edited;
    let compacted = is_edited && record.tokens_after < record.tokens_before;
    let mut list = vec![
        text("gen_ai.operation.name", OPERATION),
        text("gen_ai.provider.name", provider(record.dialect)),
        text("gen_ai.request.model", &record.model),
        text("trimtab.action", record.action.as_str()),
        text("trimtab.request.id", &record.request_id),
        text("trimtab.upstream", &record.upstream),
        number("http.response.status_code", record.status.into()),
        number("trimtab.tokens.before", record.tokens_before),
        number("trimtab.tokens.after", record.tokens_after),
        json!({"key": "gen_ai.conversation.compacted", "value": {"boolValue": compacted}}),
    ];
    let texts = [
        ("gen_ai.conversation.id", record.session.as_str()),
        ("trimtab.reason", record.reason),
    ];
    let texts = texts.iter().filter(|(_, value)| !value.is_empty());
    list.extend(texts.map(|(name, value)| text(name, value)));
    if record.status >= 400 {
        list.push(text("error.type", &record.status.to_string()));
    }
    if let Some(usage) = record.usage {
        list.extend([
            number("gen_ai.usage.input_tokens", usage.prompt()),
            number("gen_ai.usage.output_tokens", usage.output),
            number("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
            number(
                "gen_ai.usage.cache_write.input_tokens",
                usage.cache_creation,
            ),
        ]);
    }
    list
}

pub(super) fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

/// Whole numbers are strings in the JSON of OTLP.
fn number(name: &str, value: u64) -> Value {
    json!({"key": name, "value": {"intValue": value.to_string()}})
}

/// The provider of a dialect.
pub(super) fn provider(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        Some(Dialect::Messages) => "anthropic",
        _ => "openai",
    }
}

pub(super) fn nanoseconds(milliseconds: u64, more: f64) -> String {
    let more = std::time::Duration::from_secs_f64(more.max(0.0) / 1e3).as_nanos();
    (u128::from(milliseconds) * 1_000_000 + more).to_string()
}

/// The trace and the span that the client named in `traceparent`, or a new trace.
fn trace_of(record: &Record) -> (String, Option<String>) {
    let mut parts = record.trace_parent.split('-').skip(1);
    let is_hex = |text: &&str, length: usize| {
        // The standard declares ids of zeros invalid.
        let is_zero = text.bytes().all(|byte| byte == b'0');
        text.len() == length && !is_zero && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let trace = parts.next().filter(|text| is_hex(text, 32));
    let span = parts.next().filter(|text| is_hex(text, 16));
    match trace.zip(span) {
        Some((trace, span)) => (trace.to_lowercase(), Some(span.to_lowercase())),
        None => (random_hex::<16>(), None),
    }
}

fn random_hex<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    // Without randomness the id is zero, and the collector drops the span.
    getrandom::fill(&mut bytes).unwrap_or(());
    data_encoding::HEXLOWER.encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_of_the_client_is_continued() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let record = Record {
            trace_parent: format!("00-{trace}-00f067aa0ba902b7-01"),
            ..Record::default()
        };
        let spans = spans_of(&record);
        assert_eq!(spans[0]["traceId"], trace);
        assert_eq!(spans[0]["parentSpanId"], "00f067aa0ba902b7");
    }

    #[test]
    fn bad_trace_parent_begins_a_new_trace() {
        for bad in [
            "",
            "00-xyz-1-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        ] {
            let record = Record {
                trace_parent: bad.to_owned(),
                ..Record::default()
            };
            let spans = spans_of(&record);
            assert_eq!(spans[0]["traceId"].as_str().unwrap().len(), 32, "{bad}");
            assert!(spans[0].get("parentSpanId").is_none(), "{bad}");
        }
    }
}
