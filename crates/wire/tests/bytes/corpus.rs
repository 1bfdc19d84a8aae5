//! Every recorded session in the shared folder, as a request of each dialect.

#![expect(clippy::disallowed_methods, reason = "the recorded sessions are files")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use trimtab_engine::normalise::{NormaliseOptions, normalise};
use trimtab_model::{Dialect, Message};
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::splice;
use trimtab_wire::transcript::TranscriptReader;
use trimtab_wire::validate::validate;
use trimtab_wire::{chat, messages, responses};

use crate::properties::check_view;
use crate::splice::check_changes;

fn conversations() -> Vec<Vec<Message>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    if !folder.is_dir() {
        println!("skipped: no recorded sessions at {}", folder.display());
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = fs::read(&path).unwrap();
            let read = TranscriptReader::new(text.as_slice()).map(Result::unwrap);
            found.extend(read.map(|conversation| conversation.messages));
        }
    }
    found
}

fn body(messages: &[Message], dialect: Dialect) -> String {
    let join = |entries: Vec<trimtab_model::RawJson>| {
        let texts: Vec<&str> = entries.iter().map(trimtab_model::RawJson::as_str).collect();
        texts.join(", ")
    };
    match dialect {
        Dialect::Chat => {
            let entries = messages.iter().flat_map(chat::write_message).collect();
            format!(r#"{{"model": "m", "messages": [{}]}}"#, join(entries))
        }
        Dialect::Messages => {
            let request = messages::write_request(messages);
            let system = request
                .system
                .map(|json| format!(r#""system": {}, "#, json.as_str()));
            let system = system.unwrap_or_default();
            format!(r#"{{{system}"messages": [{}]}}"#, join(request.messages))
        }
        Dialect::Responses => {
            let entries = responses::write_input(messages);
            format!(r#"{{"input": [{}]}}"#, join(entries))
        }
    }
}

#[test]
fn recorded_sessions_round_trip_unchanged() {
    for messages in conversations() {
        for dialect in Dialect::ALL {
            let body = body(&messages, dialect);
            check_view(&body, dialect);
            let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
            assert_eq!(splice(&scan, &[]).unwrap().body.as_ref(), body.as_bytes());
        }
    }
}

#[test]
fn normalised_sessions_validate_and_stay_unchanged() {
    for (number, messages) in conversations().into_iter().enumerate() {
        let log: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        for dialect in Dialect::ALL {
            let normalised = normalise(&log, NormaliseOptions::for_dialect(dialect));
            let messages: Vec<Message> = normalised
                .messages()
                .iter()
                .map(|message| Message::clone(message))
                .collect();
            let body = body(&messages, dialect);
            let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
            assert_eq!(validate(&scan), vec![], "{dialect}");
            check_changes(&body, dialect, number as u64 * 7919 + 1);
        }
    }
}
