//! Requests that are not a turn of their conversation: a client compacts its own history, or
//! asks for a count. They pass untouched.

use http::HeaderMap;
use trimtab_model::Role;
use trimtab_wire::scan::{PartKind, Scan};

/// What clients write when they ask for a summary of their own history: all words of one line
/// occur in the last message of such a request.
const SUMMARY_REQUESTS: [&[&str]; 5] = [
    &["Respond with TEXT ONLY", "<summary>"],
    &["Your task is to create a detailed summary of the conversation"],
    &["CONTEXT CHECKPOINT COMPACTION"],
    &["create a concise checkpoint", "summary"],
    &["compaction_trigger"],
];
/// How much of the last message is looked at.
const LOOKED_AT: usize = 64 << 10;

/// Why a request passes untouched, if it is not a turn of its conversation.
pub(crate) fn reason(path: &str, headers: &HeaderMap, scan: &Scan<'_>) -> Option<&'static str> {
    if is_count(path) {
        return Some("count");
    }
    let codex = headers.get("x-codex-turn-metadata");
    let says = codex.is_some_and(|value| contains(value.as_bytes(), b"\"compaction\""));
    (says || asks_for_summary(scan)).then_some("own-compaction")
}

/// True if only the tokens are to be counted.
pub(crate) fn is_count(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/count_tokens")
}

fn asks_for_summary(scan: &Scan<'_>) -> bool {
    let Some(last) = scan.len().checked_sub(1) else {
        return false;
    };
    if scan.role(last) == Some(Role::Tool) {
        return false;
    }
    let parts = scan.parts(last).iter();
    let asked = parts.filter(|part| matches!(part.kind, PartKind::Text | PartKind::Opaque));
    asked.into_iter().any(|part| {
        let json = scan.json(part.span).as_bytes();
        let json = json.get(..LOOKED_AT.min(json.len())).unwrap_or_default();
        let mut requests = SUMMARY_REQUESTS.iter();
        requests.any(|words| words.iter().all(|word| contains(json, word.as_bytes())))
    })
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use trimtab_model::Dialect;

    fn asked(dialect: Dialect, body: &str) -> Option<&'static str> {
        let scan = Scan::new(body.as_bytes(), dialect).unwrap();
        reason("/v1/x", &HeaderMap::new(), &scan)
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
    }

    #[test]
    fn headers_and_paths_tell_too() {
        let body = br#"{"input": "q"}"#;
        let scan = Scan::new(body, Dialect::Responses).unwrap();
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(r#"{"request_kind":"compaction"}"#);
        headers.insert("x-codex-turn-metadata", value);
        assert_eq!(
            reason("/v1/responses", &headers, &scan),
            Some("own-compaction")
        );
        assert!(is_count("/v1/messages/count_tokens?beta=true") && !is_count("/v1/messages"));
    }
}
