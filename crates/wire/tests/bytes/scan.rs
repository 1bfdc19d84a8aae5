//! The scan agrees with the message readers.

use proptest::prelude::*;
use trimtab_model::Dialect;
use trimtab_testkit::cases;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::splice;
use trimtab_wire::validate::validate;

use crate::common::body;
use crate::properties::check_view;

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn scan_agrees_with_the_message_readers((dialect, body) in body(10)) {
        check_view(&body, dialect);
    }

    #[test]
    fn accepted_bodies_have_no_faults((dialect, body) in body(10)) {
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        prop_assert_eq!(validate(&scan), vec![]);
    }

    #[test]
    fn splice_without_changes_returns_the_body((dialect, body) in body(10)) {
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        let spliced = splice(&scan, &[]).unwrap();
        prop_assert!(std::ptr::eq(spliced.body.as_ref(), body.as_bytes()));
    }
}

#[test]
fn scan_reads_model_tools_and_limits() {
    let body = r#"{"model": "m\u0031", "stream": true, "max_tokens": 1, "max_completion_tokens": 9,
        "max_tokens": 20, "metadata": {"user_id": "u_session_1"}, "prompt_cache_key": "k",
        "tools": [{"type": "function", "function": {"name": "look"}}, {"name": "b"}, 7],
        "messages": [{"r\u006fle": "user", "content": "hi"}]}"#;
    let scan = BodyScan::new(body.as_bytes(), Dialect::Chat).unwrap();
    assert_eq!(scan.model().unwrap(), "m1");
    assert!(scan.is_stream());
    assert_eq!(scan.answer_limit(), Some(9));
    let request = scan.request();
    assert_eq!(
        scan.string(request.session.metadata_user_id).unwrap(),
        "u_session_1"
    );
    assert_eq!(scan.json(request.session.prompt_cache_key), "\"k\"");
    let tools = request.tool_list.iter().map(|tool| scan.json(tool.name));
    assert_eq!(tools.collect::<Vec<_>>(), ["\"look\"", "\"b\"", ""]);
    assert_eq!(scan.message(0).unwrap().text(), "hi");
}

#[test]
fn conversations_that_the_provider_keeps_are_partial() {
    let partial = |body: &str| {
        let scan = BodyScan::new(body.as_bytes(), Dialect::Responses);
        scan.unwrap().is_partial()
    };
    assert!(partial(r#"{"input": "x", "previous_response_id": "r"}"#));
    assert!(partial(r#"{"conversation": {"id": "c"}, "input": []}"#));
    assert!(partial(
        r#"{"input": [{"type": "item_reference", "id": "i"}]}"#
    ));
    assert!(!partial(
        r#"{"input": "x", "previous_response_id": null, "store": true}"#
    ));
}

#[test]
fn cache_markers_are_found_everywhere() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let body = format!(
        r#"{{"tools":[{{"name":"a",{mark}}}],"system":[{{"type":"text","text":"s",{mark}}}],
        "messages":[{{"role":"user","content":[
            {{"type":"tool_result","tool_use_id":"c","content":[{{"type":"text","text":"x",{mark}}}]}},
            {{"type":"text","text":"t","cache_control":null}}]}}],{mark}}}"#
    );
    let scan = BodyScan::new(body.as_bytes(), Dialect::Messages).unwrap();
    let markers = &scan.request().markers;
    assert_eq!(markers.len(), 4);
    assert!(markers.iter().all(|marker| scan.json(marker.field) == mark));
}
