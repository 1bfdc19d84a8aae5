//! Fields of clients that look like our own.

use serde_json::{Value, json};
use trimtab_model::Dialect;

use crate::fake::post;
use crate::managed::{echo, windowed};
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

/// A conversation with long outputs, in which every entry has fields that are named like our marks.
fn with_mark_like_fields(dialect: Dialect, rounds: usize) -> Talk {
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..rounds {
        talk.round(&format!("c{round}"), &lines(300 + round));
    }
    for (at, entry) in talk.entries.iter_mut().enumerate() {
        add_fields(entry, at);
    }
    talk
}

/// Adds the fields to a message, to its calls and to its parts.
fn add_fields(entry: &mut Value, at: usize) {
    for inner in ["tool_calls", "content"] {
        let inner = entry.get_mut(inner).and_then(Value::as_array_mut);
        for part in inner.into_iter().flatten() {
            add_fields(part, at);
        }
    }
    for name in [
        "print", "altered", "raw", "content", "joined", "field", "item", "type", "list",
        "nameless", "client:x",
    ] {
        entry[format!("trimtab:{name}")] = json!(format!("{at:032x}"));
    }
}

/// The fields of a message, of its calls and of its parts that are named like our marks.
fn mark_like_fields(entry: &Value) -> Vec<(String, Value)> {
    let inner = ["tool_calls", "content"].map(|name| entry.get(name).and_then(Value::as_array));
    let inner = inner.into_iter().flatten().flatten();
    let fields = entry.as_object().unwrap().clone().into_iter();
    let fields = fields.filter(|(name, _)| name.starts_with("trimtab:"));
    fields.chain(inner.flat_map(mark_like_fields)).collect()
}

#[tokio::test]
async fn client_fields_that_are_named_like_our_marks_reach_the_upstream() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (_running, base) = proxy(windowed(config(&upstream.url()), 12_000)).await;
        for rounds in [1, 8, 9] {
            let talk = with_mark_like_fields(dialect, rounds);
            let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
            assert_eq!(got.status, 200, "{}", got.text());
            let action = got.header("x-trimtab-action").to_owned();
            assert_eq!(
                action == "edited",
                rounds > 1,
                "{dialect} {rounds}: {action}"
            );
            let sent = upstream.seen().pop().unwrap().json();
            let list = sent.get("messages").or(sent.get("input")).unwrap();
            // What the client sent has all of its fields, and what we wrote has none.
            let known: Vec<_> = talk.entries.iter().map(mark_like_fields).collect();
            let mut kept = 0;
            for entry in list.as_array().unwrap() {
                let fields = mark_like_fields(entry);
                kept += usize::from(known.contains(&fields));
                assert!(
                    fields.is_empty() || known.contains(&fields),
                    "{dialect}: {entry}"
                );
            }
            assert!(
                kept > 1 && (rounds > 1 || kept == known.len()),
                "{dialect}: {kept}"
            );
        }
    }
}

/// The roles and lengths of the entries that reach the upstream if all messages of the client have
/// this metadata.
async fn sent_with(metadata: Option<Value>) -> Vec<(String, usize)> {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 12_000)).await;
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..8 {
        talk.round(&format!("c{round}"), &lines(300 + round));
        talk.says("done").user("read the next one");
    }
    if let Some(metadata) = metadata {
        for entry in &mut talk.entries {
            entry["metadata"] = metadata.clone();
        }
    }
    let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
    assert_eq!(got.header("x-trimtab-action"), "edited", "{}", got.text());
    let sent = upstream.seen().pop().unwrap().json();
    let entries = sent["messages"].as_array().unwrap().iter();
    let shape = |entry: &Value| {
        (
            entry["role"].to_string(),
            entry["content"].to_string().len(),
        )
    };
    entries.map(shape).collect()
}

#[tokio::test]
async fn client_metadata_makes_no_message_one_of_ours() {
    let plain = sent_with(None).await;
    for kind in ["summary", "retain", "observation", "note"] {
        let metadata = json!({"kind": kind, "agent_visible": false});
        assert_eq!(sent_with(Some(metadata)).await, plain, "{kind}");
    }
}

#[tokio::test]
async fn call_that_gets_an_id_keeps_its_unknown_fields() {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "read all files");
    talk.round("c1", &lines(300));
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    for entry in &mut talk.entries {
        let entry = entry.as_object_mut().unwrap();
        entry.remove("tool_call_id");
        let calls = entry.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["extra_content"] = extra.clone();
            call["function"]["x"] = json!(1.5);
            call.as_object_mut().unwrap().remove("id");
        }
    }
    let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
    assert_eq!(got.header("x-trimtab-repairs"), "call-id-changed");
    let sent = upstream.seen().pop().unwrap().json();
    let messages = sent["messages"].as_array().unwrap();
    let call = messages
        .iter()
        .find_map(|message| message.get("tool_calls")?.get(0));
    let call = call.unwrap();
    assert_eq!(call["extra_content"], extra, "{call}");
    assert_eq!(call["function"]["x"], 1.5, "{call}");
    let output = messages.iter().find(|message| message["role"] == "tool");
    assert_eq!(output.unwrap()["tool_call_id"], call["id"]);
}
