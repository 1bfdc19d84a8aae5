//! The end of hidden rounds that cannot go on: a request for an answer without calls, or an error
//! in the form of the dialect.

use bytes::Bytes;
use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::{BodyChange, splice};

use super::STUCK;
use super::rounds::RoundFailure;
use crate::conversation::branch::OutgoingBody;
use crate::request::plan::PlanningJob;
use crate::transport::body::{CollectedBody, collect};
use crate::transport::decompress::decode_error;

/// The longest error that is read.
const LONGEST: usize = 256 << 10;

/// The request for an answer without calls. The tools stay listed: the provider's cache and the
/// reasoning depend on them. Unchanged if the body cannot be edited.
pub(super) async fn without_calls(job: &PlanningJob, mut outgoing: OutgoingBody) -> OutgoingBody {
    let Some(body) = outgoing.body.clone() else {
        return outgoing;
    };
    let dialect = job.dialect;
    let editing = tokio::task::spawn_blocking(move || calling_no_tools(dialect, &body));
    match editing.await.ok().flatten() {
        Some(body) => {
            outgoing.body = Some(body);
            job.with_reserved_body(outgoing)
        }
        None => outgoing,
    }
}

fn calling_no_tools(dialect: Dialect, body: &[u8]) -> Option<Bytes> {
    let scan = BodyScan::new(body, dialect).ok()?;
    let spliced = splice(&scan, &[BodyChange::CallNoTools]).ok()?;
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
}
