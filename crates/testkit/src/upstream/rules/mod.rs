//! The rules of the providers, and what they say when one is broken.
//!
//! Which output answers which call, and the like, is judged by `trimtab_wire::validate`;
//! what else a provider insists on is judged here.

mod chat;
mod messages;
mod programs;
mod provider_blocks;
mod responses;
mod tools;

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::{RequestRule, validate};

use super::ReceivedRequest;
use super::refusal::ProviderRefusal;

/// A rule that is broken.
pub(super) struct BrokenRule {
    /// The rule, in our words.
    pub(super) rule: String,
    pub(super) refusal: ProviderRefusal,
}

impl BrokenRule {
    pub(super) fn new(rule: impl Into<String>, refusal: ProviderRefusal) -> Self {
        let rule = rule.into();
        Self { rule, refusal }
    }
}

/// Every rule that a request breaks.
pub(super) fn judge(
    body: &Value,
    scan: &BodyScan<'_>,
    received: &ReceivedRequest,
    prefill: bool,
) -> Vec<BrokenRule> {
    let mut broken = match scan.dialect() {
        Dialect::Chat => chat::judge(body),
        Dialect::Responses => responses::judge(body),
        Dialect::Messages => messages::judge(body, received, prefill),
    };
    broken.extend(tools::judge(body, scan.dialect()));
    broken.extend(programs::judge(body, scan.dialect()));
    broken.extend(provider_blocks::judge(body, scan.dialect()));
    let faults = validate(scan);
    for fault in &faults {
        let open = faults.iter().filter(|other| other.entry == fault.entry);
        let open = open.filter_map(|other| match &other.rule {
            RequestRule::OpenCall(id) => Some(id.as_str()),
            _ => None,
        });
        let open: Vec<&str> = open.collect();
        let refusal = match scan.dialect() {
            Dialect::Chat => chat::words(fault, &open),
            Dialect::Responses => responses::words(fault, body),
            Dialect::Messages => messages::words(fault, &open, body),
        };
        broken.push(BrokenRule::new(fault.to_string(), refusal));
    }
    broken
}

/// The entries of the list of messages.
pub(super) fn entries<'a>(body: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    let list = body.get(name).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
