//! Recognises overflow errors in a provider's answer.
//!
//! The rules are data (`data/overflow.toml`): ordered patterns over the error's text, codes and
//! status, with look-alikes first. Figures in the text decide whether the prompt, the answer or
//! both together are too large.
//!
//! ```
//! use trimtab_wire::overflow::{OverflowAction, OverflowKind, ProviderResponse, classify};
//!
//! let body = br#"{"error": {"message": "prompt is too long: 213,462 tokens > 200,000 maximum"}}"#;
//! let verdict = classify(&ProviderResponse::new(400, body));
//! assert_eq!((verdict.kind, verdict.action), (OverflowKind::Prompt, OverflowAction::Compact));
//! assert_eq!(verdict.sizes.limit, Some(200_000));
//! assert_eq!(verdict.sizes.excess(), Some(13_462));
//!
//! let body = br#"{"message": "Too many tokens, please wait before trying again."}"#;
//! assert_eq!(classify(&ProviderResponse::new(429, body)).action, OverflowAction::BackOff);
//! ```

mod clean;
mod echo;
mod kind;
mod pattern;
mod rules;
mod sizes;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use trimtab_model::Usage;

pub use kind::{Certainty, OverflowAction, OverflowKind};
pub use rules::{OverflowRules, RulesError};
pub use sizes::ErrorSizes;

use echo::Echo;
use text::{ErrorText, TextScope};

/// A request above this share of the window, in percent, counts as large.
const LARGE: u64 = 80;

/// A provider's answer, with what is known about the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProviderResponse<'a> {
    /// The status.
    pub status: u16,
    /// The body, or the data of an event.
    pub body: &'a [u8],
    /// The name of an event of a stream.
    pub event: Option<&'a str>,
    /// The headers of the answer.
    pub headers: &'a [(&'a str, &'a str)],
    /// The model's window in tokens, if known.
    pub window: Option<u64>,
    /// The estimated tokens of the request, if known.
    pub estimate: Option<u64>,
    /// The body of the request, if known. What an error repeats of it is no evidence: its author
    /// may be a web page that the agent has read.
    pub request: &'a [u8],
}

impl<'a> ProviderResponse<'a> {
    /// A complete answer, or the start of a stream.
    pub const fn new(status: u16, body: &'a [u8]) -> Self {
        Self {
            status,
            body,
            event: None,
            headers: &[],
            window: None,
            estimate: None,
            request: &[],
        }
    }

    /// One event of a stream: its name (empty if the dialect has none) and its data.
    pub const fn event(name: &'a str, data: &'a [u8]) -> Self {
        Self {
            event: Some(name),
            ..Self::new(200, data)
        }
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    /// True if the request was large; unknown without a window or an estimate.
    fn is_large(&self) -> Option<bool> {
        Some(self.estimate? >= self.window?.saturating_mul(LARGE) / 100)
    }
}

/// The meaning of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OverflowVerdict {
    /// The kind of error.
    pub kind: OverflowKind,
    /// What helps.
    pub action: OverflowAction,
    /// Whether the answer states it explicitly.
    pub certainty: Certainty,
    /// The figures in the text; bytes for [`OverflowKind::Bytes`] and [`OverflowKind::Media`], else
    /// tokens.
    pub sizes: ErrorSizes,
    /// The delay that the answer asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The rule that decided; empty if none did.
    pub rule: String,
    /// The matching patterns of the rule.
    pub patterns: Vec<usize>,
}

impl OverflowVerdict {
    /// True if the request itself was too large.
    pub const fn is_overflow(&self) -> bool {
        self.kind.is_overflow()
    }
}

/// Classifies an answer by the embedded rules.
pub fn classify(response: &ProviderResponse<'_>) -> OverflowVerdict {
    OverflowRules::embedded().classify(response)
}

impl OverflowRules {
    /// Classifies an answer.
    pub fn classify(&self, response: &ProviderResponse<'_>) -> OverflowVerdict {
        let mut text = text::read(response.body, scope(response));
        // AWS services send the error type in this header.
        if let Some(code) = response.header("x-amzn-errortype") {
            text.line(&format!("type={}", clean::clean(code)));
        }
        // An empty error body leaves only the status and the size of the request.
        let verdict = if text.empty && !response.is_success() {
            unexplained(response)
        } else {
            self.judge(response, &text)
                .unwrap_or_else(|| fallback(response, &text))
        };
        OverflowVerdict {
            retry_after: retry_after(response),
            ..verdict
        }
    }

    fn judge(&self, response: &ProviderResponse<'_>, text: &ErrorText) -> Option<OverflowVerdict> {
        if text.lines.is_empty() {
            return None;
        }
        // The rules are ordered: a precise one comes before one that also matches other errors.
        let rule = self.first(response.status, &text.lines)?;
        let echo = Echo::of(response.request);
        let (kind, sizes) = sizes::measure(&self.figures, &text.lines, rule.kind, &echo);
        // Without figures or words of its own, only the size of the request speaks for an overflow.
        let is_own = sizes != ErrorSizes::default() || rule.has_own_words(&text.lines, &echo);
        if rule.kind.is_overflow() && !is_own && response.is_large() != Some(true) {
            return None;
        }
        // Figures can change the kind. Then the rule's own action no longer applies.
        let action = rule.action.filter(|_| kind == rule.kind);
        Some(OverflowVerdict {
            kind,
            action: rate(kind, &sizes).or(action).unwrap_or(kind.action()),
            sizes,
            rule: rule.name.clone(),
            patterns: rule.evidence(&text.lines),
            ..OverflowVerdict::default()
        })
    }
}

/// Everything except a success, and events that say so, is read as an error.
fn scope(response: &ProviderResponse<'_>) -> TextScope {
    // A failed stream starts with status 200.
    let failed = matches!(response.event, Some("error" | "response.failed"));
    if response.is_success() && !failed {
        TextScope::Answer
    } else {
        TextScope::Error
    }
}

/// A request above the whole allowance never succeeds, however long one waits.
fn rate(kind: OverflowKind, sizes: &ErrorSizes) -> Option<OverflowAction> {
    let over = sizes
        .actual
        .zip(sizes.limit)
        .is_some_and(|(actual, limit)| actual > limit);
    (kind == OverflowKind::RateLimit && over).then_some(OverflowAction::Compact)
}

/// No rule matches: use the status, or the usage of an answer.
fn fallback(response: &ProviderResponse<'_>, text: &ErrorText) -> OverflowVerdict {
    let kind = match response.status {
        200..=299 => return silent(response, text),
        // Servers and gateways use this status for the size of the body, not for its tokens.
        413 => OverflowKind::Bytes,
        429 => OverflowKind::RateLimit,
        408 | 500 | 502..=599 => OverflowKind::Server,
        _ => OverflowKind::Other,
    };
    OverflowVerdict {
        kind,
        action: kind.action(),
        ..OverflowVerdict::default()
    }
}

/// Some servers reject a long prompt without an explanation.
fn unexplained(response: &ProviderResponse<'_>) -> OverflowVerdict {
    let possible = response.status == 400;
    match (possible, response.is_large()) {
        // A small request cannot have overflowed.
        (true, Some(false)) | (false, _) => fallback(response, &ErrorText::default()),
        (true, large) => OverflowVerdict {
            kind: OverflowKind::Prompt,
            action: OverflowAction::Compact,
            // A large request that is rejected without a word is taken as an overflow. Without a
            // window or an estimate nobody knows.
            certainty: if large.is_some() {
                Certainty::Stated
            } else {
                Certainty::IfLarge
            },
            ..OverflowVerdict::default()
        },
    }
}

/// A success whose prompt the server truncated silently.
fn silent(response: &ProviderResponse<'_>, text: &ErrorText) -> OverflowVerdict {
    let usage = text
        .usage
        .as_ref()
        .map(usage_of)
        .filter(|usage| usage.prompt() > 0);
    let (Some(usage), Some(window)) = (usage, response.window) else {
        return OverflowVerdict::default();
    };
    // Some servers truncate the prompt silently. Only the usage shows it.
    if !is_cut(&usage, window, response.estimate, text) {
        return OverflowVerdict::default();
    }
    let actual = Some(usage.prompt());
    OverflowVerdict {
        kind: OverflowKind::Silent,
        action: OverflowKind::Silent.action(),
        sizes: ErrorSizes {
            limit: Some(window),
            actual,
            ..ErrorSizes::default()
        },
        ..OverflowVerdict::default()
    }
}

/// The window is full, or nearly so without room for an answer, or far less was read than sent.
fn is_cut(usage: &Usage, window: u64, estimate: Option<u64>, text: &ErrorText) -> bool {
    let prompt = usage.prompt();
    let no_room = usage.output == 0 && text.lines.contains("finish_reason=length");
    prompt >= window
        || (no_room && prompt >= window.saturating_mul(LARGE) / 100)
        || estimate.is_some_and(|estimate| estimate > window && prompt < estimate / 2)
}

/// Parses usage in any dialect.
fn usage_of(usage: &Value) -> Usage {
    // The field names identify the dialect of the usage.
    if usage.get("prompt_tokens").is_some() {
        Usage::from_chat(usage)
    } else if usage.get("input_tokens_details").is_some() {
        Usage::from_responses(usage)
    } else {
        Usage::from_messages(usage)
    }
}

fn retry_after(response: &ProviderResponse<'_>) -> Option<Duration> {
    let millis = response
        .header("retry-after-ms")
        .and_then(|text| text.trim().parse().ok());
    let seconds = || {
        response
            .header("retry-after")
            .and_then(|text| text.trim().parse().ok())
    };
    millis
        .map(Duration::from_millis)
        .or_else(|| seconds().map(Duration::from_secs))
}
