//! Reads and writes metadata of a message: `metadata`, `usage`, `stop_reason`.

use serde_json::Value;
use serde_json::value::RawValue;
use trimtab_model::{ExtraFields, Message, MessageKind, MessageMetadata, Usage};

use crate::json::{self, JsonFields, ObjectWriter, owned, quoted};

/// Takes the known metadata out of `fields`.
pub(super) fn take(fields: &mut JsonFields<'_>) -> MessageMetadata {
    let mut meta = MessageMetadata::default();
    if let Some(mut known) = fields.fields("metadata") {
        fields.take("metadata");
        meta.agent_visible = known.take_if("agent_visible", json::parse::<bool>);
        meta.user_visible = known.take_if("user_visible", json::parse::<bool>);
        meta.kind = known.take_if("kind", kind);
        let nothing_known = meta.is_empty();
        // An object without known fields is kept as well, so that it is written back.
        if nothing_known || !known.is_empty() {
            meta.extra.push(("metadata".to_owned(), rest(known)));
        }
    }
    if let Some(raw) = fields.take_if("usage", |raw| usage(raw).map(|_| raw)) {
        meta.usage = usage(raw);
        // The original is kept beside the parsed usage, because it may have more fields.
        meta.extra.push(("usage".to_owned(), owned(raw)));
    }
    meta.stop_reason = fields.take_string("stop_reason");
    meta
}

/// A kind by its name. An object with that name in it, which serde would take as well, is not ours.
fn kind(raw: &RawValue) -> Option<MessageKind> {
    let is_name = raw.get().starts_with('"');
    is_name.then(|| json::parse(raw)).flatten()
}

fn rest(unknown: JsonFields<'_>) -> trimtab_model::RawJson {
    ObjectWriter::new()
        .extra(&unknown.into_extra(), &[])
        .end_raw()
}

/// Parses a usage object in any spelling that transcripts use.
fn usage(raw: &RawValue) -> Option<Usage> {
    let value: Value = json::parse(raw)?;
    let has = |name: &str| value.get(name).is_some();
    if has("prompt_tokens") {
        Some(Usage::from_chat(&value))
    } else if has("input_tokens_details") {
        Some(Usage::from_responses(&value))
    } else if has("input_tokens") {
        Some(Usage::from_messages(&value))
    // The short names are those of our own transcripts.
    } else if has("input") || has("output") {
        let count = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(Usage {
            input: count("input"),
            cache_creation: count("cache_write").max(count("cache_creation")),
            cache_creation_long: count("cache_write_long"),
            cache_read: count("cache_read"),
            output: count("output"),
            ..Usage::default()
        })
    } else {
        None
    }
}

/// Adds the metadata of `message` to an object.
pub(super) fn write(object: ObjectWriter, message: &Message) -> ObjectWriter {
    let meta = &message.meta;
    let as_read = meta.extra.iter().any(|(name, _)| name == "usage");
    let usage = meta.usage.filter(|_| !as_read).map(write_usage);
    object
        .maybe("metadata", metadata(meta))
        .maybe("usage", usage)
        .maybe("stop_reason", meta.stop_reason.as_deref().map(quoted))
        .extra(
            &meta.extra,
            if unread(meta).is_some() {
                &["metadata"]
            } else {
                &[]
            },
        )
}

/// The unknown fields of the metadata object.
fn unread(meta: &MessageMetadata) -> Option<ExtraFields> {
    let (_, raw) = meta.extra.iter().find(|(name, _)| name == "metadata")?;
    let fields: JsonFields = serde_json::from_str(raw.as_str()).ok()?;
    Some(fields.into_extra())
}

fn metadata(meta: &MessageMetadata) -> Option<String> {
    let unread = unread(meta);
    let known = meta.agent_visible.is_some() || meta.user_visible.is_some() || meta.kind.is_some();
    if unread.is_none() && !known {
        return None;
    }
    let rest = unread.unwrap_or_default();
    let flag = |value: Option<bool>| value.map(|set| set.to_string());
    let kind = meta.kind.and_then(|kind| serde_json::to_string(&kind).ok());
    let object = ObjectWriter::new()
        .maybe("agent_visible", flag(meta.agent_visible))
        .maybe("user_visible", flag(meta.user_visible))
        .maybe("kind", kind);
    Some(object.extra(&rest, &[]).end())
}

fn write_usage(usage: Usage) -> String {
    let long = Some(usage.cache_creation_long).filter(|long| *long > 0);
    ObjectWriter::new()
        .raw("input", &usage.input.to_string())
        .raw("output", &usage.output.to_string())
        .raw("cache_read", &usage.cache_read.to_string())
        .raw("cache_write", &usage.cache_creation.to_string())
        .maybe("cache_write_long", long.map(|long| long.to_string()))
        .raw("total", &usage.total().to_string())
        .end()
}
