//! Why requests pass unchanged. This includes requests that are not a turn of their conversation:
//! the client compacts its own history, or asks for a token count.

use http::HeaderMap;
use trimtab_model::Role;
use trimtab_wire::scan::{BodyScan, PartKind, Unscannable};

/// Instructions with which clients ask for a summary of their own history: how the text begins,
/// and what else it contains. A message that only quotes such a text begins in another way.
const INSTRUCTIONS: [(&str, &str); 3] = [
    ("CRITICAL: Respond with TEXT ONLY", "<summary>"),
    (
        "Your task is to create a detailed summary of the conversation",
        "",
    ),
    ("You are performing a CONTEXT CHECKPOINT COMPACTION", ""),
];
/// Words of an instruction at the end of a text that contains the whole history. Such requests
/// offer no tools.
const CLOSING_INSTRUCTION: [&str; 2] = ["create a concise checkpoint", "summary"];
/// How many bytes at the end of the text are searched for those words.
const CLOSING_BYTES: usize = 4 << 10;
/// The item with which Codex asks the provider to compact.
const TRIGGER: &[u8] = b"\"compaction_trigger\"";

/// Why a request passes unchanged.
#[derive(Debug, Default)]
pub(crate) struct Unmanaged {
    /// The reason in one word, for the log.
    pub(crate) reason: &'static str,
    /// Details, if something failed.
    pub(crate) detail: String,
    /// The requested model, if known.
    pub(crate) model: Option<String>,
}

impl Unmanaged {
    /// Nothing needs to be done, or nothing may be done.
    pub(crate) fn because(reason: &'static str) -> Self {
        Self {
            reason,
            ..Self::default()
        }
    }

    /// Planning was not completed.
    pub(crate) fn failed(reason: &'static str) -> Self {
        Self::because(reason).with_detail(format!("planning: {reason}"))
    }

    pub(crate) fn of_model(reason: &'static str, model: &str) -> Self {
        Self {
            model: Some(model.to_owned()),
            ..Self::because(reason)
        }
    }

    pub(crate) fn with_detail(mut self, detail: String) -> Self {
        self.detail = detail;
        self
    }

    pub(crate) fn not_understood(why: &Unscannable) -> Self {
        Self::because("not-understood").with_detail(why.to_string())
    }
}

/// Why a request passes unchanged, if it is not a turn of its conversation.
pub(crate) fn bypass_reason(headers: &HeaderMap, scan: &BodyScan<'_>) -> Option<&'static str> {
    let codex = headers.get("x-codex-turn-metadata");
    let says = codex.is_some_and(|value| contains(value.as_bytes(), b"\"compaction\""));
    (says || asks_for_summary(scan)).then_some("own-compaction")
}

/// True if the request only asks for a token count.
pub(crate) fn is_token_count(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/count_tokens")
}

fn asks_for_summary(scan: &BodyScan<'_>) -> bool {
    let Some(last) = scan.len().checked_sub(1) else {
        return false;
    };
    let role = scan.role(last);
    // An output can contain any text, for example the source of a client. It is no instruction.
    if role == Some(Role::Tool) {
        return false;
    }
    let offers_tools = !scan.request().tool_list.is_empty();
    scan.parts(last).iter().any(|part| match part.kind {
        PartKind::Opaque => contains(scan.json(part.span).as_bytes(), TRIGGER),
        // An item of an unknown type counts as said by the model; a text of it asks for nothing.
        PartKind::Text if role != Some(Role::Assistant) => scan
            .string(part.content)
            .is_some_and(|text| is_instruction(&text) || (!offers_tools && closes_so(&text))),
        _ => false,
    })
}

fn is_instruction(text: &str) -> bool {
    let text = text.trim_start();
    let mut known = INSTRUCTIONS.iter();
    known.any(|(opening, also)| text.starts_with(opening) && text.contains(also))
}

fn closes_so(text: &str) -> bool {
    let end = text.as_bytes();
    // The text holds the whole history. Searching all of it would take time, and would find the
    // words where the conversation itself is about summaries.
    let end = end.get(end.len().saturating_sub(CLOSING_BYTES)..);
    let end = end.unwrap_or_default();
    CLOSING_INSTRUCTION
        .iter()
        .all(|words| contains(end, words.as_bytes()))
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(bytes, word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use trimtab_model::Dialect;

    fn asked(dialect: Dialect, body: &str) -> Option<&'static str> {
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        bypass_reason(&HeaderMap::new(), &scan)
    }

    #[test]
    fn a_clients_own_compaction_is_known() {
        let claude = r#"{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
            {"role": "user", "content": "CRITICAL: Respond with TEXT ONLY. <analysis> then <summary>"}]}"#;
        assert_eq!(asked(Dialect::Messages, claude), Some("own-compaction"));
        let codex = r#"{"input": [{"role": "user", "content": [{"type": "input_text",
            "text": "You are performing a CONTEXT CHECKPOINT COMPACTION. Write"}]}]}"#;
        assert_eq!(asked(Dialect::Responses, codex), Some("own-compaction"));
        let item =
            r#"{"input": [{"role": "user", "content": "q"}, {"type": "compaction_trigger"}]}"#;
        assert_eq!(asked(Dialect::Responses, item), Some("own-compaction"));
    }

    #[test]
    fn talking_about_a_summary_is_not_asking_for_one() {
        let body = r#"{"messages": [
            {"role": "user", "content": "CRITICAL: Respond with TEXT ONLY. <summary>"},
            {"role": "assistant", "content": "no"},
            {"role": "user", "content": "give me a summary of the file"}]}"#;
        assert_eq!(asked(Dialect::Chat, body), None);
        let quotes = r#"{"messages": [{"role": "user", "content": "Improve this prompt: CRITICAL: Respond with TEXT ONLY. <summary>
            Your task is to create a detailed summary of the conversation"}]}"#;
        assert_eq!(asked(Dialect::Chat, &quotes.replace('\n', " ")), None);
    }

    #[test]
    fn headers_and_paths_tell_too() {
        let body = br#"{"input": "q"}"#;
        let scan = BodyScan::new(body, Dialect::Responses).unwrap();
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(r#"{"request_kind":"compaction"}"#);
        headers.insert("x-codex-turn-metadata", value);
        assert_eq!(bypass_reason(&headers, &scan), Some("own-compaction"));
        assert!(
            is_token_count("/v1/messages/count_tokens?beta=true")
                && !is_token_count("/v1/messages")
        );
    }
}
