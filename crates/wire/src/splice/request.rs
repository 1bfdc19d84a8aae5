//! Changes the fields of a body besides its messages: tools, limit, thinking, system.

use trimtab_model::Dialect;

use super::Splicer;
use crate::json::{ObjectWriter, array, quoted};
use crate::scan::{LimitName, Span};

impl Splicer<'_, '_, '_> {
    /// Changes the fields of the body.
    pub(super) fn request(&mut self) {
        self.tools();
        self.limit();
        if self.draft.calls_no_tools {
            self.call_no_tools();
        }
        if self.draft.drops_stale_reasoning && self.scan.dialect() == Dialect::Messages {
            self.drop_stale_reasoning();
        }
        if !self.draft.system.is_empty() {
            self.add_to_system(&self.draft.system.join("\n\n"));
        }
    }

    fn tools(&mut self) {
        if self.draft.tools.is_empty() {
            return;
        }
        let request = self.scan.request();
        // `tools` may be missing or null.
        if !self.scan.json(request.tools).starts_with('[') {
            let definitions = self.draft.tools.iter().copied().flatten();
            let list = array(definitions.map(trimtab_model::RawJson::as_str));
            return self.set_field("tools", request.tools, &list);
        }
        let members = self.containers.at(request.tools);
        for tool in self.draft.tools.iter().copied().flatten() {
            members.add(members.len(), tool.as_str().to_owned());
        }
    }

    fn call_no_tools(&mut self) {
        let body = self.scan.request().body;
        let none = match self.scan.dialect() {
            Dialect::Messages => r#"{"type":"none"}"#,
            Dialect::Chat | Dialect::Responses => "\"none\"",
        };
        let choice = self.value_of(body, "tool_choice").unwrap_or_default();
        self.set_field("tool_choice", choice, none);
    }

    fn limit(&mut self) {
        let Some(tokens) = self.draft.limit else {
            return;
        };
        let limits = &self.scan.request().limits;
        // Some clients send two limits. Set both, because the smaller one counts.
        for limit in limits {
            self.edits.replace(limit.span, tokens.to_string());
        }
        if limits.is_empty() {
            let name = match self.scan.dialect() {
                Dialect::Chat => LimitName::MaxCompletionTokens,
                Dialect::Messages => LimitName::MaxTokens,
                Dialect::Responses => LimitName::MaxOutputTokens,
            };
            self.add_limit(name, tokens);
        }
    }

    fn add_limit(&mut self, name: LimitName, tokens: u64) {
        let body = self.scan.request().body;
        // A field that is `null` would otherwise appear twice.
        self.containers.drop_field(body, name.as_str());
        self.containers
            .add_field(body, name.as_str(), &tokens.to_string());
    }

    fn drop_stale_reasoning(&mut self) {
        const BEHAVIOR: &str = "prefix_mismatch_behavior";
        const DROP: &str = "\"drop_block\"";
        let binding = format!("{{{}:{DROP}}}", quoted(BEHAVIOR));
        let thinking = self.scan.request().thinking;
        if !self.scan.json(thinking).starts_with('{') {
            return;
        }
        let kind = self.value_of(thinking, "type").unwrap_or_default();
        if self.scan.string(kind).as_deref() != Some("adaptive") {
            return;
        }
        let chosen = self.value_of(thinking, "block_binding").unwrap_or_default();
        if chosen.is_empty() {
            self.containers
                .add_field(thinking, "block_binding", &binding);
        } else if let Some(behavior) = self.value_of(chosen, BEHAVIOR) {
            self.edits.replace(behavior, DROP);
        } else {
            self.edits.replace(chosen, binding);
        }
    }

    /// Adds to the field of the system prompt, which Chat Completions does not have.
    fn add_to_system(&mut self, text: &str) {
        let request = self.scan.request();
        let name = match self.scan.dialect() {
            Dialect::Responses => "instructions",
            Dialect::Messages | Dialect::Chat => "system",
        };
        let removed = self.scan.has_head() && self.draft.removed.contains(0);
        if !self.scan.has_head() || removed {
            let old = if removed {
                Span::default()
            } else {
                request.system
            };
            return self.set_field(name, old, &quoted(text));
        }
        self.append(request.system, text);
    }

    /// Appends `text` to a content that is a string or a list.
    fn append(&mut self, content: Span, text: &str) {
        let json = self.scan.json(content);
        if json.starts_with('[') {
            let part = ObjectWriter::new()
                .text("type", "text")
                .text("text", text)
                .end();
            let members = self.containers.at(content);
            members.add(members.len(), part);
        } else if json.starts_with('"') {
            // Separate our text from the client's by a blank line.
            let apart = if json.len() > 2 { "\n\n" } else { "" };
            let added = quoted(&format!("{apart}{text}"));
            let inner = added
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            self.edits
                .insert(content.end.saturating_sub(1), inner.unwrap_or_default());
        } else {
            self.edits.replace(content, quoted(text));
        }
    }

    /// Sets a field of the body. `old` is its value, if it exists.
    fn set_field(&mut self, name: &str, old: Span, json: &str) {
        if old.is_empty() {
            let body = self.scan.request().body;
            self.containers.add_field(body, name, json);
        } else {
            self.edits.replace(old, json);
        }
    }
}
