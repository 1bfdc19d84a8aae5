//! Reading and searching stored outputs.

use serde_json::{Map, Value, json};
use trimtab::engine::view::retrieval::MatchLayout;
use trimtab::engine::view::tools::{GREP, READ};
use trimtab::retrieval::Retrieval;
use trimtab::store::{MemoryStore, Put, SessionId, Store};

/// The cases' names of the arguments, and ours.
type Names = &'static [(&'static str, &'static str)];

pub(super) fn read(input: &Value) -> Value {
    call(READ, &[("offset", "offset"), ("limit", "limit")], input)
}

pub(super) fn grep(input: &Value) -> Value {
    let names: Names = &[
        ("pattern", "pattern"),
        ("regex", "regex"),
        ("before", "before"),
        ("after", "after"),
        ("max_matches", "max"),
    ];
    call(GREP, names, input)
}

fn call(tool: &str, names: Names, input: &Value) -> Value {
    let store = MemoryStore::new();
    let session = SessionId::new("case").unwrap();
    let content = input["content"].as_str().unwrap();
    let stored = store.put(&session, Put::new("call", content)).unwrap();
    let mut arguments = Map::new();
    arguments.insert("ref_id".to_owned(), Value::from(stored.id()));
    for (theirs, ours) in names {
        if let Some(value) = input.get(theirs) {
            arguments.insert((*ours).to_owned(), value.clone());
        }
    }
    // The design repeats the ref for every match.
    let retrieval = Retrieval::new(&store, session).layout(MatchLayout::Separate);
    let answer = retrieval.call(tool, &Value::Object(arguments).to_string());
    // The id of a ref is the store's to choose: only its spelling is taken from the case.
    let theirs = input["ref_id"].as_str().unwrap_or_default();
    json!({ "text": answer.text.replace(stored.id(), theirs) })
}
