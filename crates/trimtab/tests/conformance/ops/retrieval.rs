//! Reading and searching stored outputs.

use serde_json::{Map, Value, json};
use trimtab::engine::view::tools::{GREP, READ};
use trimtab::retrieval::Retrieval;
use trimtab::store::{MemoryStore, Put, SessionId, Store};

use super::{Must, Ran};

/// The arguments that cases name like we do.
const ARGUMENTS: [&str; 6] = ["offset", "limit", "pattern", "regex", "before", "after"];

/// The output of a case in a store, and the arguments that name it.
struct StoredCase {
    store: MemoryStore,
    session: SessionId,
    arguments: Map<String, Value>,
    id: String,
}

impl StoredCase {
    fn new(input: &Value) -> Ran<Self> {
        let store = MemoryStore::new();
        let session = SessionId::new("case").must("session")?;
        let content = input["content"].as_str().must("content")?;
        let stored = store.put(&session, Put::new("call", content));
        let stored = stored.must("store")?;
        let given = ARGUMENTS.iter().filter_map(|name| {
            let value = input.get(name)?;
            Some(((*name).to_owned(), value.clone()))
        });
        let id = stored.id().to_owned();
        let arguments = given.chain([("ref_id".to_owned(), Value::from(stored.id()))]);
        Ok(Self {
            arguments: arguments.collect(),
            store,
            session,
            id,
        })
    }

    /// The answer to a call. The id of a ref is the store's to choose: only its spelling is taken
    /// from the case.
    fn call(&self, tool: &str, input: &Value) -> String {
        let retrieval = Retrieval::new(&self.store, self.session.clone());
        let answer = retrieval.call(tool, &Value::from(self.arguments.clone()).to_string());
        let theirs = input["ref_id"].as_str().unwrap_or_default();
        answer.text.replace(&self.id, theirs)
    }
}

pub(super) fn read(input: &Value) -> Ran {
    Ok(json!({ "text": StoredCase::new(input)?.call(READ, input) }))
}

/// The design repeats the ref and all lines around every match, where our answers name and show
/// them once. So one match is asked for at a time, until our answer no longer says that there are
/// more. The design's mark for an answer with as many matches as were asked for is its own.
pub(super) fn grep(input: &Value) -> Ran {
    let most = input["max_matches"].as_u64();
    let mut case = StoredCase::new(input)?;
    case.arguments.insert("max".to_owned(), Value::from(1));
    let mut shown = Vec::new();
    for skip in 0..most.unwrap_or(u64::MAX) {
        case.arguments.insert("skip".to_owned(), Value::from(skip));
        let answer = case.call(GREP, input);
        let (found, note) = answer.split_once("\n[trimtab: ").unwrap_or((&answer, ""));
        shown.push(found.to_owned());
        if note.is_empty() {
            break;
        }
    }
    let mut text = shown.join("\n\n");
    if most == Some(shown.len() as u64) {
        text.push_str("\n... (truncated)");
    }
    Ok(json!({ "text": text }))
}
