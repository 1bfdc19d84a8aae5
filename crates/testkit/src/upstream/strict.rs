//! The judgement of a strict provider without its socket.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;

use super::canonical::CanonicalPrompt;
use super::seal::sign;
use super::{ReceivedRequest, binding, rules};

/// A provider that judges bodies as an upstream that signs reasoning does, and signs thoughts,
/// for tests that drive more conversations than requests could be sent in their time.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_testkit::upstream::StrictProvider;
///
/// let mut strict = StrictProvider::new(Dialect::Messages);
/// let body = br#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}"#;
/// assert!(strict.refuses(body).is_empty());
/// assert!(strict.signs(body, "hm", ["c1"]).is_some());
/// ```
#[derive(Debug)]
pub struct StrictProvider {
    dialect: Dialect,
    /// Calls that came with a thought; empty if they came while thinking was disabled.
    thoughts: HashMap<String, String>,
}

impl StrictProvider {
    /// A provider of this dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            thoughts: HashMap::new(),
        }
    }

    /// Every rule that a request breaks; none means that it is accepted.
    pub fn refuses(&self, body: &[u8]) -> Vec<String> {
        let (Ok(value), Ok(scan)) = (
            serde_json::from_slice::<Value>(body),
            BodyScan::new(body, self.dialect),
        ) else {
            return vec!["the body cannot be read".to_owned()];
        };
        let received = self.received(body);
        let mut broken = rules::judge(&value, &scan, &received, false);
        let canonical = CanonicalPrompt::new(&value, self.dialect);
        broken.extend(binding::judge(
            &value,
            &canonical,
            &received,
            &self.thoughts,
            false,
        ));
        broken.into_iter().map(|broken| broken.rule).collect()
    }

    /// The seal of the thought that answers a request, together with `calls`; none where the
    /// dialect has no seals, or for a request that asks for no thought.
    pub fn signs<I: Into<String>>(
        &mut self,
        body: &[u8],
        thought: &str,
        calls: impl IntoIterator<Item = I>,
    ) -> Option<String> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let calls = calls.into_iter().map(Into::into);
        let switch = value.pointer("/thinking/type");
        if switch.is_some_and(|kind| kind == "disabled") {
            self.thoughts
                .extend(calls.map(|call| (call, String::new())));
            return None;
        }
        let canonical = CanonicalPrompt::new(&value, self.dialect);
        let seal = match self.dialect {
            Dialect::Chat => return None,
            Dialect::Messages => sign(&canonical.digest, &canonical.claims, thought),
            Dialect::Responses => sign(&canonical.digest, &canonical.claims, ""),
        };
        self.thoughts
            .extend(calls.map(|call| (call, thought.to_owned())));
        Some(seal)
    }

    fn received(&self, body: &[u8]) -> ReceivedRequest {
        let version = ("anthropic-version".to_owned(), "2023-06-01".to_owned());
        ReceivedRequest {
            headers: vec![version],
            dialect: Some(self.dialect),
            body: Bytes::copy_from_slice(body),
            ..ReceivedRequest::default()
        }
    }
}
