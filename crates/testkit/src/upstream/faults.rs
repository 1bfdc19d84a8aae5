//! Answers made into bytes, and what goes wrong with them.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};
use trimtab_model::Dialect;

use super::answer::{AnswerEvent, OutgoingReply, RenderedEvents};
use super::answer_bytes::{BEFORE_BREAK, Parcel, ParcelEnd, ParcelPiece};
use super::overflow::error_event;
use super::refusal::ProviderRefusal;
use crate::script::{ContentCoding, ScriptedFault};

/// Pieces of an answer that is not streamed, so that something can happen between them.
const WHOLE_PIECES: usize = 8;

/// Small pieces of a slow answer; the rest comes at once.
const MOST_DRIPS: usize = 4096;

/// Makes an answer ready to be sent, with `fault`.
pub(super) fn pack(
    rendered: RenderedEvents,
    fault: Option<ScriptedFault>,
    answer: &OutgoingReply,
) -> Parcel {
    if let Some(parcel) = fault.and_then(|fault| instead(fault, &rendered, answer.dialect)) {
        return parcel;
    }
    let mut parcel = match rendered {
        RenderedEvents::Whole(value) => whole(value, fault),
        RenderedEvents::Events(events) => stream(events, fault, answer),
    };
    let name = match answer.dialect {
        Dialect::Messages => "request-id",
        Dialect::Chat | Dialect::Responses => "x-request-id",
    };
    parcel.headers.push((name, format!("req_{}", answer.id)));
    if let Some(fault) = fault {
        spoil(&mut parcel, fault);
    }
    parcel
}

/// What is sent instead of an answer.
fn instead(fault: ScriptedFault, rendered: &RenderedEvents, dialect: Dialect) -> Option<Parcel> {
    let refusal = |code| {
        let refusal = ProviderRefusal::of_status(dialect, code);
        Parcel::json(code, &refusal.body)
    };
    match fault {
        ScriptedFault::Status { code, retry_after } => {
            let mut parcel = refusal(code);
            let wait = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
            parcel.headers.extend(wait);
            Some(parcel)
        }
        ScriptedFault::ErrorEvent { .. } if matches!(rendered, RenderedEvents::Whole(_)) => {
            Some(refusal(500))
        }
        ScriptedFault::Html => {
            let page = "<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head>\
                        <body><h1>Checking your connection</h1></body></html>\n";
            Some(Parcel::new(200, "text/html; charset=utf-8", [page.into()]))
        }
        ScriptedFault::ResetBeforeHeaders => Some(Parcel {
            end: ParcelEnd::Nothing,
            ..Parcel::default()
        }),
        _ => None,
    }
}

fn whole(mut value: Value, fault: Option<ScriptedFault>) -> Parcel {
    if fault == Some(ScriptedFault::Unknown) {
        add_unknown(&mut value);
    }
    let bytes = Bytes::from(value.to_string());
    if fault.is_none() {
        return Parcel::new(200, "application/json", [bytes]);
    }
    let size = bytes.len().div_ceil(WHOLE_PIECES).max(1);
    let pieces = bytes.chunks(size).map(|piece| bytes.slice_ref(piece));
    Parcel::new(200, "application/json", pieces)
}

fn stream(
    mut events: Vec<AnswerEvent>,
    fault: Option<ScriptedFault>,
    answer: &OutgoingReply,
) -> Parcel {
    match fault {
        Some(ScriptedFault::Unknown) => return unknown(events),
        Some(ScriptedFault::DuplicateUsage) => repeat_usage(&mut events),
        Some(ScriptedFault::ErrorEvent { after }) => {
            events.truncate(after.min(events.len().saturating_sub(1)));
            let status = if answer.dialect == Dialect::Messages {
                529
            } else {
                500
            };
            let refusal = ProviderRefusal::of_status(answer.dialect, status);
            events.push(error_event(answer.dialect, &refusal, events.len()));
        }
        _ => {}
    }
    let line_end = if fault == Some(ScriptedFault::Crlf) {
        "\r\n"
    } else {
        "\n"
    };
    let mut parcel = Parcel::events(&[]);
    let wait = answer.reply.delay_ms.map(Duration::from_millis);
    for event in &events {
        parcel.pieces.extend(wait.map(ParcelPiece::Wait));
        parcel
            .pieces
            .push(ParcelPiece::Bytes(event.to_text(line_end).into()));
    }
    parcel
}

/// Events and fields that nobody knows, and comments.
fn unknown(events: Vec<AnswerEvent>) -> Parcel {
    let mut parcel = Parcel::events(&[]);
    let named = events.iter().any(|event| event.name.is_some());
    for mut event in events {
        if let Some(data) = &mut event.data {
            add_unknown(data);
        }
        let mut text = ": keep-alive\n\n".to_owned();
        // Chat Completions has no names: an event there is a chunk, or nothing at all.
        if named {
            text.push_str("id: 7\nretry: 1000\nevent: from.the.future\n");
            text.push_str("data: {\"type\":\"from.the.future\",\"index\":99}\n\n");
        }
        text.push_str(&event.to_text("\n"));
        parcel.pieces.push(ParcelPiece::Bytes(text.into()));
    }
    parcel
}

fn add_unknown(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        let odd = json!({"nested": [1, {"usage": null}], "text": "\u{1F980}"});
        fields.insert("from_the_future".to_owned(), odd);
    }
}

/// Repeats the event with the usage, and gives it early where the last event ends the stream.
fn repeat_usage(events: &mut Vec<AnswerEvent>) {
    let usage = |event: &AnswerEvent| {
        let data = event.data.as_ref()?;
        let inside = data.pointer("/response/usage");
        data.get("usage")
            .or(inside)
            .filter(|usage| usage.is_object())
            .cloned()
    };
    let Some(at) = events.iter().rposition(|event| usage(event).is_some()) else {
        return;
    };
    let Some(event) = events.get(at).cloned() else {
        return;
    };
    if event.name.is_none_or(|name| !name.starts_with("response.")) {
        events.insert(at, event);
        return;
    }
    let figures = usage(&event).unwrap_or_default();
    let begun = events.get_mut(1).and_then(|event| event.data.as_mut());
    if let Some(slot) = begun.and_then(|data| data.pointer_mut("/response/usage")) {
        *slot = figures;
    }
}

/// What goes wrong with the bytes.
fn spoil(parcel: &mut Parcel, fault: ScriptedFault) {
    match fault {
        ScriptedFault::ResetInBody { after } => {
            parcel.pieces.truncate(place(parcel, after));
            parcel.end = ParcelEnd::Reset;
        }
        ScriptedFault::Cut { after } => parcel.pieces.truncate(place(parcel, after)),
        ScriptedFault::LateHeaders { ms } => parcel.late = Duration::from_millis(ms),
        ScriptedFault::Stall { after, ms } => {
            let wait = ParcelPiece::Wait(Duration::from_millis(ms));
            parcel.pieces.insert(place(parcel, after), wait);
        }
        ScriptedFault::ContentLength { off_by } => {
            let length: usize = bytes(parcel).map(Bytes::len).sum();
            let claimed = (length as u64).saturating_add_signed(off_by);
            parcel.headers.push(("content-length", claimed.to_string()));
            // The connection breaks at the end: what is there must be out before.
            parcel.pieces.push(ParcelPiece::Wait(BEFORE_BREAK));
        }
        ScriptedFault::Encoding { coding } => encode(parcel, coding),
        ScriptedFault::Drip { bytes, ms } => drip(parcel, bytes.max(1), Duration::from_millis(ms)),
        _ => {}
    }
}

/// Where the bytes are that come after `after` others, or the last bytes.
fn place(parcel: &Parcel, after: usize) -> usize {
    let pieces = parcel.pieces.iter().enumerate();
    let mut places = pieces.filter(|(_, piece)| matches!(piece, ParcelPiece::Bytes(_)));
    let count = bytes(parcel).count();
    let place = places.nth(after.min(count.saturating_sub(1)));
    place.map_or(0, |(place, _)| place)
}

fn bytes(parcel: &Parcel) -> impl Iterator<Item = &Bytes> {
    parcel.pieces.iter().filter_map(|piece| match piece {
        ParcelPiece::Bytes(bytes) => Some(bytes),
        ParcelPiece::Wait(_) => None,
    })
}

fn drip(parcel: &mut Parcel, size: usize, wait: Duration) {
    let mut all = Bytes::from(bytes(parcel).flatten().copied().collect::<Vec<u8>>());
    parcel.pieces.clear();
    while !all.is_empty() {
        let size = if parcel.pieces.len() < 2 * MOST_DRIPS {
            size
        } else {
            all.len()
        };
        let piece = all.split_to(size.min(all.len()));
        parcel.pieces.push(ParcelPiece::Bytes(piece));
        parcel.pieces.push(ParcelPiece::Wait(wait));
    }
}

fn encode(parcel: &mut Parcel, coding: ContentCoding) {
    let name = match coding {
        ContentCoding::Gzip | ContentCoding::FalseGzip => "gzip",
        ContentCoding::XGzip => "x-gzip",
        ContentCoding::Deflate => "deflate",
    };
    parcel.headers.push(("content-encoding", name.to_owned()));
    let level = Compression::fast();
    match coding {
        ContentCoding::Gzip | ContentCoding::XGzip => {
            let encoder = GzEncoder::new(Vec::new(), level);
            encode_with(parcel, encoder, GzEncoder::get_mut, GzEncoder::finish);
        }
        ContentCoding::Deflate => {
            let encoder = ZlibEncoder::new(Vec::new(), level);
            encode_with(parcel, encoder, ZlibEncoder::get_mut, ZlibEncoder::finish);
        }
        ContentCoding::FalseGzip => {}
    }
}

/// Compresses piece by piece, so that each gets through at once.
fn encode_with<W: Write>(
    parcel: &mut Parcel,
    mut encoder: W,
    written: fn(&mut W) -> &mut Vec<u8>,
    finish: fn(W) -> std::io::Result<Vec<u8>>,
) {
    for piece in &mut parcel.pieces {
        if let ParcelPiece::Bytes(bytes) = piece {
            // Writing to memory cannot fail.
            let _ = encoder.write_all(bytes).and_then(|()| encoder.flush());
            *bytes = std::mem::take(written(&mut encoder)).into();
        }
    }
    let rest = finish(encoder).unwrap_or_default();
    parcel.pieces.push(ParcelPiece::Bytes(rest.into()));
}
