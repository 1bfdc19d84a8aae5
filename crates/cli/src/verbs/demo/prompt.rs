//! A request to the demo's provider: its tokens, its faults, and its cached prefix.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Role, Usage};
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::validate;

/// Cached tokens are counted in steps, as by real providers.
const STEP: u64 = 128;
/// Shorter prefixes are not cached.
const LEAST: u64 = 1_024;

/// A parsed request.
pub(super) struct DemoPrompt {
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    /// The names of the offered tools.
    pub(super) tools: Vec<String>,
    pub(super) is_stream: bool,
    /// The requested output limit in tokens.
    pub(super) answer_limit: u64,
    /// The tokens of the whole prompt.
    pub(super) tokens: u64,
    /// The rules that it breaks.
    pub(super) faults: Vec<String>,
    /// Tools, system prompt and messages, part by part, in the model's order.
    units: Vec<PromptPart>,
}

/// A part of a prompt.
struct PromptPart {
    bytes: usize,
    /// The hash of the prompt up to the end of this part.
    front: u64,
    /// True if the client set a cache marker here.
    is_marked: bool,
}

impl DemoPrompt {
    /// Parses a body. The error is a text for the client.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let scan = BodyScan::new(body, Dialect::Messages).map_err(|error| error.to_string())?;
        let messages: Vec<Message> = (0..scan.len()).filter_map(|at| scan.message(at)).collect();
        let mut measure: Measure = messages.iter().map(Measure::of).sum();
        measure += Measure::of_text(&scan.tools_in_prompt());
        let tools = scan.request().tool_list.iter();
        let tools = tools.filter_map(|tool| scan.string(tool.name));
        Ok(Self {
            model: scan.model().unwrap_or_default().into_owned(),
            tools: tools.map(std::borrow::Cow::into_owned).collect(),
            is_stream: scan.is_stream(),
            answer_limit: scan.answer_limit().unwrap_or(0),
            tokens: measure.tokens(),
            faults: faults(&scan, &messages),
            units: units(&value),
            messages,
        })
    }
}

/// Every rule of the provider that a body breaks.
fn faults(scan: &BodyScan<'_>, messages: &[Message]) -> Vec<String> {
    let mut faults: Vec<String> = validate(scan).iter().map(ToString::to_string).collect();
    if scan.model().is_none() {
        faults.push("model: Field required".to_owned());
    }
    if scan.answer_limit().is_none_or(|limit| limit == 0) {
        faults.push("max_tokens: Field required".to_owned());
    }
    if messages
        .last()
        .is_some_and(|last| last.role == Role::Assistant)
    {
        faults.push("the conversation must end with a user message".to_owned());
    }
    faults
}

/// The parts of a prompt in the order in which a model reads them.
fn units(body: &Value) -> Vec<PromptPart> {
    let list = |value: Option<&Value>| match value {
        Some(Value::Array(parts)) => parts.clone(),
        Some(value) => vec![value.clone()],
        None => Vec::new(),
    };
    let mut parts = list(body.get("tools"));
    parts.extend(list(body.get("system")));
    for message in list(body.get("messages")) {
        // The role separates messages, so it belongs to the cached prefix.
        parts.extend(message.get("role").cloned());
        parts.extend(list(message.get("content")));
    }
    let mut hasher = DefaultHasher::new();
    let units = parts.into_iter().map(|mut part| {
        // Markers move from call to call and are not part of the cached text.
        let marker = part
            .as_object_mut()
            .and_then(|part| part.remove("cache_control"));
        let text = part.to_string();
        text.hash(&mut hasher);
        PromptPart {
            bytes: text.len(),
            front: hasher.finish(),
            is_marked: marker.is_some_and(|marker| !marker.is_null()),
        }
    });
    units.collect()
}

/// The prompt cache: a prompt is read from it up to the longest prefix that was written.
#[derive(Default)]
pub(super) struct PromptCache {
    fronts: HashSet<u64>,
}

impl PromptCache {
    /// The usage of a prompt. Also writes it to the cache up to its last marker.
    pub(super) fn usage(&mut self, prompt: &DemoPrompt) -> Usage {
        let units = &prompt.units;
        let end = units.iter().rposition(|unit| unit.is_marked);
        let front = units
            .get(..end.map_or(0, |end| end + 1))
            .unwrap_or_default();
        // A cache hit is a prefix: it ends at the first unknown part.
        let known = front
            .iter()
            .take_while(|unit| self.fronts.contains(&unit.front));
        let total = size(units);
        let read = cached_tokens(prompt.tokens, size(known), total);
        let all = cached_tokens(prompt.tokens, size(front), total);
        self.fronts.extend(front.iter().map(|unit| unit.front));
        Usage {
            input: prompt.tokens - all,
            cache_read: read,
            cache_creation: all - read,
            ..Usage::default()
        }
    }
}

/// The total size of these parts in bytes.
fn size<'a>(parts: impl IntoIterator<Item = &'a PromptPart>) -> usize {
    parts.into_iter().map(|part| part.bytes).sum()
}

/// The cached tokens of a prompt of `tokens` tokens and `total` bytes, `cached` of them cached.
fn cached_tokens(tokens: u64, cached: usize, total: usize) -> u64 {
    let exact = u128::from(tokens) * cached as u128 / total.max(1) as u128;
    let exact = u64::try_from(exact).unwrap_or(tokens);
    let whole = exact - exact % STEP;
    if whole < LEAST { 0 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompt(texts: &[&str]) -> DemoPrompt {
        let parts: Vec<Value> = texts
            .iter()
            .map(|text| json!({"type": "text", "text": text.repeat(2_000)}))
            .collect();
        let mut body = json!({
            "model": "m", "max_tokens": 9,
            "messages": [{"role": "user", "content": parts}],
        });
        body["messages"][0]["content"][texts.len() - 1]["cache_control"] =
            json!({"type": "ephemeral"});
        DemoPrompt::read(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn cache_reads_only_known_prefixes() {
        let mut cache = PromptCache::default();
        let first = cache.usage(&prompt(&["one ", "two "]));
        assert_eq!(first.cache_read, 0);
        assert!(first.cache_creation > 2_000);
        let longer = cache.usage(&prompt(&["one ", "two ", "three "]));
        assert!(longer.cache_read > 2_000 && longer.cache_creation > 1_000);
        assert_eq!(longer.prompt(), prompt(&["one ", "two ", "three "]).tokens);
        let changed = cache.usage(&prompt(&["none ", "two "]));
        assert_eq!(changed.cache_read, 0);
    }

    #[test]
    fn a_call_without_output_is_a_fault() {
        let body = json!({
            "model": "m", "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "ls", "input": {}}]},
                {"role": "user", "content": "well?"},
            ],
        });
        let prompt = DemoPrompt::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(prompt.faults.len(), 1, "{:?}", prompt.faults);
    }
}
