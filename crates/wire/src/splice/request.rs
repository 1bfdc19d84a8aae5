//! Changes the fields of a body besides its messages: tools, limit, thinking, system.

use trimtab_model::Dialect;

use super::Splicer;
use super::containers::{fields, value_of};
use super::members::ContainerMembers;
use crate::json::{ObjectWriter, array, quoted};
use crate::scan::{LimitName, Span};

/// The start of the type of an edit that clears reasoning, including its quote.
const CLEAR_THINKING: &str = "\"clear_thinking";

impl Splicer<'_, '_, '_> {
    /// Changes the fields of the body.
    pub(super) fn request(&mut self) {
        self.tools();
        self.remove_tools();
        self.limit();
        if self.draft.stops_thinking && self.scan.dialect() == Dialect::Messages {
            self.stop_thinking();
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

    fn remove_tools(&mut self) {
        let request = self.scan.request();
        let is_removed = |name: Span| {
            let name = self.scan.string(name);
            name.is_some_and(|name| self.draft.removed_tools.contains(&name.as_ref()))
        };
        let defined = request.tool_list.iter();
        let removed: Vec<Span> = defined
            .filter(|tool| is_removed(tool.name))
            .map(|tool| tool.span)
            .collect();
        let none_left = removed.len() == request.tool_list.len() && self.draft.tools.is_empty();
        // Providers reject an empty list of tools.
        if none_left && !removed.is_empty() {
            return self.containers.drop_field(request.body, "tools");
        }
        for tool in removed {
            self.containers.drop_element(request.tools, tool);
        }
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

    fn stop_thinking(&mut self) {
        let body = self.scan.request().body;
        let thinking = self.value_of(body, "thinking").unwrap_or_default();
        self.set_field("thinking", thinking, r#"{"type":"disabled"}"#);
        let asked = self.scan.request().context_management;
        if !asked.is_empty()
            && let Some(edits) = self.value_of(asked, "edits")
        {
            self.drop_thinking_edits(body, edits);
        }
    }

    /// Removes edits that clear reasoning.
    fn drop_thinking_edits(&mut self, body: Span, edits: Span) {
        let text = self.scan.text();
        let elements = ContainerMembers::read(text, edits, Span::default())
            .spans()
            .to_vec();
        let clears = |element: &Span| {
            let kind = value_of(text, *element, "type", Span::default());
            kind.is_some_and(|kind| self.scan.json(kind).starts_with(CLEAR_THINKING))
        };
        let cleared: Vec<Span> = elements.iter().copied().filter(clears).collect();
        if cleared.is_empty() {
            return;
        }
        let others = fields(
            text,
            self.scan.request().context_management,
            Span::default(),
        );
        // Nothing else is in the field, so it goes as a whole instead of keeping an empty list.
        if cleared.len() == elements.len() && others.len() == 1 {
            return self.containers.drop_field(body, "context_management");
        }
        for element in cleared {
            self.containers.drop_element(edits, element);
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
