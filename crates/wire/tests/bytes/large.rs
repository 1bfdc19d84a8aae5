//! Large, deep and hostile bodies.

use trimtab_model::Dialect;
use trimtab_wire::scan::{BodyScan, UnscannableReason};
use trimtab_wire::splice::{BodyChange, splice};

fn why(body: &[u8]) -> (usize, UnscannableReason) {
    let found = BodyScan::new(body, Dialect::Chat).unwrap_err();
    (found.offset, found.why)
}

#[test]
fn invalid_request_error_has_a_position() {
    assert_eq!(why(b""), (0, UnscannableReason::NotAnObject));
    assert_eq!(why(b"\xef\xbb\xbf{}"), (0, UnscannableReason::NotAnObject));
    assert_eq!(why(b"{\"a\": \xff}"), (6, UnscannableReason::NotUtf8));
    assert_eq!(
        why(b"{\"messages\": [ ] } x"),
        (19, UnscannableReason::TrailingBytes)
    );
    assert_eq!(
        why(b"{\"messages\": [1]}"),
        (15, UnscannableReason::NotAMessage)
    );
    assert_eq!(
        why(b"{\"messages\": {}}"),
        (16, UnscannableReason::NoMessages)
    );
    assert_eq!(why(b"{\"messages\": ["), (14, UnscannableReason::Truncated));
    assert_eq!(
        why(b"{\"messages\": [{},]}"),
        (17, UnscannableReason::UnexpectedByte)
    );
    assert_eq!(why(b"{\"a\": 01}"), (7, UnscannableReason::UnexpectedByte));
    assert_eq!(why(b"{\"a\": 1.}"), (8, UnscannableReason::BadNumber));
    assert_eq!(
        why(b"{\"a\": \"\n\"}"),
        (7, UnscannableReason::ControlCharacter)
    );
    assert_eq!(why(b"{\"\\ud83d\": 1}"), (11, UnscannableReason::BadKey));
}

#[test]
fn values_may_be_nested_up_to_the_parser_limit() {
    let nested = |depth: usize| {
        let inner = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"messages": [], "x": {inner}}}"#)
    };
    let deep = nested(126);
    assert!(BodyScan::new(deep.as_bytes(), Dialect::Chat).is_ok());
    assert!(serde_json::from_str::<serde_json::Value>(&deep).is_ok());
    let deeper = nested(127);
    assert_eq!(why(deeper.as_bytes()).1, UnscannableReason::TooDeep);
    assert!(serde_json::from_str::<serde_json::Value>(&deeper).is_err());
}

#[test]
fn a_hundred_thousand_messages_are_scanned_and_changed() {
    let message = |at| format!(r#"{{"role":"user","content":"m {at}"}}"#);
    let messages: Vec<String> = (0..100_000).map(message).collect();
    let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    let scan = BodyScan::new(body.as_bytes(), Dialect::Chat).unwrap();
    assert_eq!(scan.len(), 100_000);
    let changes: Vec<BodyChange> = (1..100_000)
        .filter(|at| at % 2 == 1)
        .map(|message| BodyChange::Remove {
            messages: message..message + 1,
        })
        .collect();
    let spliced = splice(&scan, &changes).unwrap();
    let again = BodyScan::new(&spliced.body, Dialect::Chat).unwrap();
    assert_eq!(again.len(), 50_000);
    assert_eq!(again.message(49_999).unwrap().text(), "m 99998");
}

#[test]
fn a_body_of_twenty_megabytes_is_scanned() {
    let image = "iVBORw0KGgo".repeat(1 << 20);
    let log = "line with \\\"quotes\\\" and \\n\\u00e9scapes ".repeat(1 << 18);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[
        {{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}},
        {{"type":"text","text":"{log}"}}]}}]}}"#
    );
    assert!(body.len() > 20 << 20);
    let scan = BodyScan::new(body.as_bytes(), Dialect::Messages).unwrap();
    assert_eq!(scan.parts(0).len(), 2);
}

#[test]
fn body_of_tiny_parts_is_unchanged() {
    let parts = "1,".repeat(1 << 20);
    for dialect in Dialect::ALL {
        let list = match dialect {
            Dialect::Responses => "input",
            _ => "messages",
        };
        let body = format!(r#"{{"{list}":[{{"role":"user","content":[{parts}1]}}]}}"#);
        let found = BodyScan::new(body.as_bytes(), dialect).unwrap_err();
        assert_eq!(found.why, UnscannableReason::TooManyParts);
    }
}
