//! What must hold for any bytes at all. The fuzz targets and the ordinary tests share it.

use std::collections::HashMap;

use serde_json::value::RawValue;
use trimtab_model::{Dialect, Message, Part, Role};
use trimtab_wire::scan::{BodyScan, PartKind};
use trimtab_wire::splice::{BodyChange, splice};
use trimtab_wire::sse::{CallFilter, StreamEvent, StreamWatcher};
use trimtab_wire::validate::validate;
use trimtab_wire::{chat, messages, responses};

/// Scanning refuses, or sees what the readers see.
pub fn scan(body: &[u8], dialect: Dialect) {
    let Ok(scan) = BodyScan::new(body, dialect) else {
        return;
    };
    assert!(is_json(body));
    check_view(std::str::from_utf8(body).unwrap(), dialect);
    let _ = validate(&scan);
}

/// What leaves things out gives JSON that is no longer.
pub fn splice_any(body: &[u8], dialect: Dialect) {
    let Ok(scan) = BodyScan::new(body, dialect) else {
        return;
    };
    let remove = |message| BodyChange::Remove {
        messages: message..message + 1,
    };
    let parts = |message| {
        let parts = 0..scan.parts(message).len();
        parts.map(move |part| BodyChange::RemovePart { message, part })
    };
    let all = 0..scan.len();
    let changes = [
        all.clone().map(remove).collect::<Vec<_>>(),
        all.clone().step_by(2).map(remove).collect(),
        all.flat_map(parts).step_by(2).collect(),
        vec![BodyChange::StripReasoning { before: scan.len() }],
    ];
    for changes in changes {
        let spliced = splice(&scan, &changes).unwrap();
        let text = String::from_utf8_lossy(&spliced.body);
        assert!(is_json(&spliced.body), "{dialect} {changes:?} {text}");
        assert!(
            spliced.body.len() <= body.len(),
            "{dialect} {changes:?} {text}"
        );
    }
    assert_eq!(splice(&scan, &[]).unwrap().body.as_ref(), body);
}

/// A stream tells the same however it is split, and a filter with nothing to hide passes all
/// that the client reads.
pub fn sse(stream: &[u8], dialect: Dialect, size: usize) {
    let whole = watch(dialect, [stream]);
    assert_eq!(watch(dialect, stream.chunks(size.max(1))), whole);
    let mut filter = CallFilter::new(dialect, ["mine"]);
    let mut out = Vec::new();
    for piece in stream.chunks(size.max(1)) {
        filter.push(piece, &mut out);
    }
    filter.finish(&mut out);
    filter.release(&mut out);
    let mut again = Vec::new();
    let mut filter = CallFilter::new(dialect, ["mine"]);
    filter.push(stream, &mut again);
    filter.finish(&mut again);
    filter.release(&mut again);
    assert_eq!(out, again);
}

fn watch<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut watcher = StreamWatcher::new(dialect);
    let mut said = Vec::new();
    let mut note = |event: StreamEvent<'_>| said.push(format!("{event:?}"));
    for piece in pieces {
        watcher.push(piece, &mut note);
    }
    watcher.finish(&mut note);
    said
}

type Fields<'a> = HashMap<String, &'a RawValue>;

/// The messages of a body, as the readers of its dialect give them.
pub fn read(body: &str, dialect: Dialect) -> Option<Vec<Message>> {
    let fields: Fields = serde_json::from_str(body).ok()?;
    let get = |name: &str| fields.get(name).map(|raw| raw.get());
    let list = |name: &str| serde_json::from_str::<Vec<&RawValue>>(get(name)?).ok();
    Some(match dialect {
        Dialect::Chat => {
            let entries = list("messages")?.into_iter();
            let read = entries.map(|raw| chat::read_message(raw.get()));
            read.collect::<Result<_, _>>().ok()?
        }
        Dialect::Messages => {
            let system = get("system").filter(|system| *system != "null");
            let mut read: Vec<Message> = system
                .map(|json| messages::read_system(json).unwrap())
                .into_iter()
                .collect();
            for raw in list("messages")? {
                read.extend(messages::read_message(raw.get()).ok()?);
            }
            read
        }
        Dialect::Responses => {
            let text = get("instructions").filter(|json| json.starts_with('"'));
            // A reader takes half of a surrogate pair too, which a plain parser refuses.
            let system = text.and_then(|json| {
                chat::read_message(&format!(r#"{{"role":"system","content":{json}}}"#)).ok()
            });
            let mut read: Vec<Message> = system.into_iter().collect();
            read.extend(responses::read_input(get("input")?).ok()?);
            read
        }
    })
}

/// What a scanned part is, told from the model's.
pub fn kind(part: &Part) -> PartKind {
    match part {
        Part::Text(_) => PartKind::Text,
        Part::Reasoning(reasoning) => PartKind::Reasoning {
            sealed: reasoning.is_sealed(),
        },
        Part::Media(media) => PartKind::Media(media.kind),
        Part::Call(_) => PartKind::Call,
        Part::Output(_) => PartKind::Output,
        Part::Opaque(_) => PartKind::Opaque,
    }
}

/// Holds a scan against what the readers see.
pub fn check_view(body: &str, dialect: Dialect) {
    let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
    let expected = read(body, dialect).unwrap();
    assert_eq!(scan.len(), expected.len(), "{body}");
    for (at, message) in expected.iter().enumerate() {
        let mut found = scan.message(at).unwrap();
        if at == 0 && found.role == Role::System {
            // Where it came from is noted on it.
            found.meta.extra.clone_from(&message.meta.extra);
        }
        assert_eq!(&found, message, "{body}");
        assert_eq!(scan.role(at), Some(message.role));
        let kinds: Vec<PartKind> = scan.parts(at).iter().map(|part| part.kind).collect();
        let expected: Vec<PartKind> = message.parts.iter().map(kind).collect();
        assert_eq!(kinds.len(), expected.len(), "{body}");
        for (found, expected) in kinds.iter().zip(&expected) {
            // A part where it does not belong is opaque to a reader; the scanner names it.
            let agree = found == expected || *expected == PartKind::Opaque;
            assert!(agree, "{found:?} {expected:?} {body}");
        }
        for (span, part) in scan.parts(at).iter().zip(&message.parts) {
            let id = scan.string(span.id).unwrap_or_default();
            match part {
                Part::Text(text) => assert_eq!(scan.string(span.content).unwrap(), text.text),
                Part::Call(call) => {
                    assert_eq!(id, call.id);
                    assert_eq!(scan.call_name(span).unwrap_or_default(), call.name);
                }
                Part::Output(output) => assert_eq!(id, output.call_id),
                _ => {}
            }
        }
    }
}

/// True if `body` is one JSON value, however large its numbers and odd its escapes.
pub fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}
