//! The end of hidden rounds that cannot go on: a request without our tools, or an error in the
//! form of the dialect.

use bytes::Bytes;
use serde_json::{Value, json};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Dialect;
use trimtab_wire::scan::{BodyScan, PartKind};
use trimtab_wire::splice::{BodyChange, splice};

use super::STUCK;
use super::rounds::RoundFailure;
use crate::conversation::branch::OutgoingBody;
use crate::request::plan::PlanningJob;
use crate::transport::body::{CollectedBody, collect};
use crate::transport::decompress::decode_error;

/// The longest error that is read.
const LONGEST: usize = 256 << 10;

/// The request without our tools; unchanged if they cannot be removed.
pub(super) async fn without_retrieval_tools(
    job: &PlanningJob,
    mut outgoing: OutgoingBody,
) -> OutgoingBody {
    let Some(body) = outgoing.body.clone() else {
        return outgoing;
    };
    let (dialect, names) = (job.dialect, outgoing.offered.unwrap_or_default());
    let withdrawing = tokio::task::spawn_blocking(move || withdraw(dialect, names, &body));
    match withdrawing.await.ok().flatten() {
        Some(body) => {
            outgoing.body = Some(body);
            job.with_reserved_body(outgoing)
        }
        None => outgoing,
    }
}

fn withdraw(dialect: Dialect, names: ToolNames, body: &[u8]) -> Option<Bytes> {
    let scan = BodyScan::new(body, dialect).ok()?;
    let names = [names.read, names.grep].map(str::to_owned).to_vec();
    let mut changes = vec![BodyChange::RemoveTools { names }];
    let sealed = PartKind::Reasoning { sealed: true };
    let mut parts = (0..scan.len()).flat_map(|at| scan.parts(at));
    if parts.any(|part| part.kind == sealed) {
        // Signatures of reasoning cover the tools before it, so the provider would refuse it with
        // other tools.
        let before = scan.len();
        changes.extend([
            BodyChange::StripReasoning { before },
            BodyChange::StopThinking,
        ]);
    }
    let spliced = splice(&scan, &changes).ok()?;
    Some(Bytes::from(spliced.body.into_owned()))
}

/// The error event at the end of a stream that no answer follows.
pub(super) async fn error_event(dialect: Dialect, failure: RoundFailure) -> String {
    let error = match failure {
        RoundFailure::Refused(answer) => {
            let (parts, body) = answer.into_parts();
            let bytes = match collect(body, LONGEST).await {
                // The beginning of a long error is shown; it is of more use than none.
                CollectedBody::Whole(bytes) | CollectedBody::Longer(bytes, _) => bytes,
            };
            let unpacked = decode_error(&parts.headers, &bytes);
            error_in(unpacked.as_ref().unwrap_or(&bytes))
        }
        RoundFailure::Unreachable(failed) => {
            let why = format!("the model server cannot be reached: {}", failed.reason);
            json!({"type": "upstream_unreachable", "message": why})
        }
        RoundFailure::Stuck => json!({"type": "no_answer", "message": STUCK}),
    };
    written(dialect, &error)
}

/// The error object in a body.
fn error_in(body: &[u8]) -> Value {
    let said = serde_json::from_slice::<Value>(body).ok();
    match said.as_ref().and_then(|said| said.get("error")) {
        Some(Value::Object(error)) => Value::Object(error.clone()),
        Some(Value::String(message)) => json!({"type": "api_error", "message": message}),
        _ => json!({"type": "api_error", "message": String::from_utf8_lossy(body)}),
    }
}

fn written(dialect: Dialect, error: &Value) -> String {
    match dialect {
        Dialect::Chat => format!("data: {}\n\n", json!({ "error": error })),
        Dialect::Messages => {
            let data = json!({"type": "error", "error": error});
            format!("event: error\ndata: {data}\n\n")
        }
        Dialect::Responses => {
            let data = json!({
                "type": "error", "sequence_number": 0, "code": error.get("code"),
                "message": error.get("message"), "param": error.get("param"), "error": error,
            });
            format!("event: error\ndata: {data}\n\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_kinds_have_a_message() {
        for (body, message) in [
            (r#"{"error":{"message":"too long","code":"c"}}"#, "too long"),
            (r#"{"error":"busy"}"#, "busy"),
            ("<html>bad gateway</html>", "<html>bad gateway</html>"),
        ] {
            assert_eq!(error_in(body.as_bytes())["message"], message);
        }
    }

    #[test]
    fn thoughts_go_with_the_tools_they_are_bound_to() {
        let body = r#"{"model":"m","max_tokens":9,"thinking":{"type":"enabled"},"tools":
            [{"name":"read"},{"name":"tool_output_cache"},{"name":"tool_output_cache_grep"}],
            "messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"tool_use","id":"a","name":"read","input":{}}]},{"role":"user","content":[
            {"type":"tool_result","tool_use_id":"a","content":"b"}]}]}"#;
        let left = withdraw(Dialect::Messages, ToolNames::default(), body.as_bytes()).unwrap();
        let left: Value = serde_json::from_slice(&left).unwrap();
        assert_eq!(left["tools"], json!([{"name": "read"}]));
        assert_eq!(left["thinking"]["type"], "disabled");
        assert_eq!(left["messages"][1]["content"][0]["type"], "tool_use");
    }
}
