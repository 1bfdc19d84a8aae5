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

#[test]
fn last_of_several_markers_counts() {
    let body = br#"{"cache_control":{"n":1},"messages":[
        {"role":"user","content":"x","cache_control":{"n":2},"cache_control":null},
        {"role":"user","cache_control":{"n":3},"content":[
            {"type":"text","text":"t","cache_control":{"n":4}}],"cache_control":{"n":5}}],
        "tools":[{"name":"a","cache_control":{"n":6}}],
        "tools":[{"name":"b","cache_control":{"n":7}}],
        "cache_control":{"n":8}}"#;
    let scan = BodyScan::new(body, Dialect::Messages).unwrap();
    let markers = &scan.request().markers;
    let values: Vec<&str> = markers.iter().map(|m| scan.json(m.value)).collect();
    assert_eq!(
        values,
        [r#"{"n":4}"#, r#"{"n":5}"#, r#"{"n":7}"#, r#"{"n":8}"#]
    );
    let objects: Vec<&str> = markers.iter().map(|m| scan.json(m.object)).collect();
    assert!(objects[0].starts_with(r#"{"type":"text""#));
    assert!(objects[1].starts_with(r#"{"role":"user","cache_control":{"n":3}"#));
    assert!(objects[2].starts_with(r#"{"name":"b""#));
    assert_eq!(objects[3].len(), body.len());
}

#[test]
fn repeated_fields_after_many_markers_are_scanned() {
    let message = r#"{"role":"user","content":"x","cache_control":{}},"#.repeat(20_000);
    let repeated = r#""tools":0,"cache_control":null,"system":null,"#.repeat(20_000);
    let body = format!(r#"{{"messages":[{message}{{}}],{repeated}"model":"m"}}"#);
    let scan = BodyScan::new(body.as_bytes(), Dialect::Messages).unwrap();
    assert_eq!(scan.request().markers.len(), 20_000);
}
