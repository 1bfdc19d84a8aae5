//! What hosts do: parallel calls, overflows, changed histories, errors.

use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};
use trimtab::store::MemoryStore;
use trimtab_binding::{BoundSession, ErrorCode};

use crate::talk::{first_ref, open, request, rounds, rows};

const READ: &str = "tool_output_cache";

#[test]
fn output_of_5_mb_fits_and_is_read_back_whole() {
    let session = open(json!({"preset": "steady"}));
    let mut all = rounds(3);
    all[2].outputs[0] = (0..100_000)
        .map(|at| format!("line {at} of a very long build log, all is well\n"))
        .collect();
    assert!(all[2].outputs[0].len() > 5 << 20 >> 1);
    let window = session.window(&request("chat", &all)).unwrap();
    assert!(
        window.tokens < 20_000 && window.misfit.is_none(),
        "{}",
        window.tokens
    );
    let id = first_ref(&window.body).unwrap();
    let arguments = json!({"ref_id": id, "offset": 77_776, "limit": 1}).to_string();
    let answer = session.retrieve(READ, &arguments).unwrap();
    assert!(
        !answer.is_error && answer.text.contains("line 77776 of"),
        "{}",
        answer.text
    );
}

#[test]
fn changed_history_gets_a_session_that_still_reads_old_refs() {
    let session = open(json!({"session": "talk"}));
    let mut all = rounds(6);
    let window = session.window(&request("chat", &all)).unwrap();
    let id = first_ref(&window.body).unwrap();
    all[1].question = "the host edited this".to_owned();
    let window = session.window(&request("chat", &all)).unwrap();
    assert!(
        String::from_utf8(window.body)
            .unwrap()
            .contains("the host edited this")
    );
    let figures = session.usage().unwrap();
    assert_eq!(figures.session, "talk.1");
    assert_eq!(figures.messages, 30);
    let arguments = json!({"ref_id": id, "limit": 1}).to_string();
    assert!(!session.retrieve(READ, &arguments).unwrap().is_error);
}

#[test]
fn instructions_that_change_with_every_call_stay_in_one_session() {
    let session = open(json!({"session": "talk", "dialect": "messages"}));
    let all = rounds(6);
    for count in 1..=all.len() {
        let mut body: Value = serde_json::from_slice(&request("messages", &all[..count])).unwrap();
        body["system"] = json!(format!("it is {count} o'clock"));
        let window = session.window(body.to_string().as_bytes()).unwrap();
        let sent: Value = serde_json::from_slice(&window.body).unwrap();
        assert_eq!(sent["system"], body["system"]);
    }
    assert_eq!(session.usage().unwrap().session, "talk");
}

#[test]
fn refused_window_is_smaller_after_recovery() {
    let session = open(json!({"window": 60_000}));
    let body = request("chat", &rounds(40));
    let before = session.window(&body).unwrap();
    let limit = before.tokens / 2;
    let error = json!({"error": {"code": "context_length_exceeded", "message": format!(
        "This model's maximum context length is {limit} tokens. However, your messages resulted \
         in {} tokens.", before.tokens)}});
    assert!(session.recover(400, error.to_string().as_bytes()).unwrap());
    let after = session.window(&body).unwrap();
    assert!(after.tokens < limit, "{} of {limit}", after.tokens);
    assert!(!session.recover(401, b"{\"error\": \"bad key\"}").unwrap());
}

#[test]
fn summary_of_the_host_replaces_old_rounds_and_can_be_undone() {
    let session = open(json!({"preset": "refs", "window": 200_000}));
    let body = request("chat", &rounds(12));
    let before = session.window(&body).unwrap();
    let mut asked = session.compact("name the steps").unwrap();
    assert!(asked.is_some());
    while let Some(wanted) = asked {
        let wanted: Value = serde_json::from_slice(&wanted).unwrap();
        assert!(wanted["max_output"].as_u64().unwrap() > 0);
        let text = "<retain></retain><summary>Twelve steps were done.</summary>";
        asked = session.answer(Some(text)).unwrap();
    }
    let after = session.window(&body).unwrap();
    assert!(rows(&after.body).len() < rows(&before.body).len());
    assert!(
        String::from_utf8(after.body)
            .unwrap()
            .contains("Twelve steps were done.")
    );
    assert_eq!(session.usage().unwrap().compactions, 1);
    assert!(session.undo().unwrap());
    assert_eq!(
        rows(&session.window(&body).unwrap().body).len(),
        rows(&before.body).len()
    );
}

#[test]
fn admitted_rows_are_part_of_the_next_request() {
    let session = open(json!({}));
    let all = rounds(3);
    session.window(&request("chat", &all[..2])).unwrap();
    let new = rows(&request("chat", &all)).split_off(10);
    assert_eq!(
        session
            .admit(Value::from(new).to_string().as_bytes())
            .unwrap(),
        15
    );
    session.window(&request("chat", &all)).unwrap();
    assert_eq!(session.usage().unwrap().session, "default");
}

#[test]
fn single_output_is_stored_whole_and_shown_short() {
    let session = open(json!({}));
    let text = "one line of many\n".repeat(50_000);
    let shown = session.show_output("bash", "c1", &text).unwrap();
    assert!(shown.shortened && shown.text.len() < 20_000);
    let arguments = json!({"ref_id": shown.stored.id(), "offset": 49_999}).to_string();
    let answer = session.retrieve(READ, &arguments).unwrap();
    assert!(answer.text.contains("one line of many"), "{}", answer.text);
    assert!(
        !session
            .show_output("bash", "c2", "short")
            .unwrap()
            .shortened
    );
}

#[test]
fn threads_share_a_session() {
    let session = Arc::new(open(json!({})));
    let body = Arc::new(request("chat", &rounds(6)));
    let work = (0..4).map(|_| {
        let (session, body) = (Arc::clone(&session), Arc::clone(&body));
        thread::spawn(move || session.window(&body).unwrap().body)
    });
    let work: Vec<_> = work.collect();
    let windows: Vec<_> = work.into_iter().map(|work| work.join().unwrap()).collect();
    assert!(windows.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn two_handles_of_one_store_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let options = json!({"store": folder.path().join("store")});
    let (one, other) = (open(options.clone()), open(options));
    let all = rounds(6);
    for count in 1..=all.len() {
        let session = if count % 2 == 0 { &one } else { &other };
        session.window(&request("chat", &all[..count])).unwrap();
    }
    assert_eq!(one.usage().unwrap().session, "default");
}

#[test]
fn bad_input_is_named_with_a_way_out() {
    let refused = |options: &str| BoundSession::open(options.as_bytes()).err().unwrap();
    for options in [
        "[]",
        r#"{"windwo": 1}"#,
        r#"{"preset": "stead"}"#,
        r#"{"settings": {"compaction.atuo": true}}"#,
    ] {
        let error = refused(options);
        assert_eq!(error.code(), ErrorCode::BadInput, "{error}");
        assert!(error.to_string().contains("hint: "), "{error}");
    }
    let store = Arc::new(MemoryStore::new());
    let refused = BoundSession::open_in(store, br#"{"store": "elsewhere"}"#).err();
    assert!(refused.unwrap().to_string().contains("they name a store"));
    let session = open(json!({}));
    for body in ["", "{}", r#"{"messages": []}"#, r#"{"messages": [1"#] {
        let error = session.window(body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadInput, "{error}");
        assert!(error.to_string().contains("'messages'"), "{error}");
    }
    assert_eq!(
        session.answer(None).unwrap_err().code(),
        ErrorCode::BadInput
    );
}

#[test]
fn prompt_that_alone_is_too_large_is_reported_and_still_sent() {
    let session = open(json!({}));
    let body = json!({"messages": [{"role": "user", "content": "word ".repeat(100_000)}]});
    let window = session.window(body.to_string().as_bytes()).unwrap();
    assert!(window.misfit.unwrap().contains("token"));
    assert_eq!(window.sources, [Some(0)]);
}
