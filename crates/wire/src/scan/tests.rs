use trimtab_model::Dialect;

use super::*;

#[test]
fn spans_take_less_than_twice_the_body() {
    let message = r#"{"role":"user","content":"x"},"#;
    let body = format!(r#"{{"messages":[{}{{}}]}}"#, message.repeat(50_000));
    let scan = BodyScan::new(body.as_bytes(), Dialect::Chat).unwrap();
    assert_eq!(scan.len(), 50_001);
    assert!(scan.size() < 2 * body.len());
}

#[test]
fn the_path_tells_the_dialect_and_else_the_body_does() {
    assert_eq!(detect(b"", "/v1/chat/completions"), Some(Dialect::Chat));
    assert_eq!(detect(b"", "/v1/responses/"), Some(Dialect::Responses));
    let body = |json: &str| detect(json.as_bytes(), "/proxy");
    assert_eq!(body(r#"{"messages": []}"#), Some(Dialect::Chat));
    assert_eq!(
        body(r#"{"messages": [], "system": "x"}"#),
        Some(Dialect::Messages)
    );
    let parts = r#"[{"role": "user", "content": [{"type": "tool_result"}]}]"#;
    let with_parts = format!(r#"{{"messages": {parts}, "max_tokens": 1}}"#);
    assert_eq!(body(&with_parts), Some(Dialect::Messages));
    assert_eq!(body("[]"), None);
}
