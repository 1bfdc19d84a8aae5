//! Rules of Messages that differ between models.

use serde_json::Value;

use super::refusal::ProviderRefusal;
use super::rules::{BrokenRule, text};

/// The rules of one model. A name that begins with none of the known ones is a model of tests: it
/// binds its reasoning, and takes every mode of thinking.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule holds or does not, independently of the others"
)]
pub(super) struct ModelRules {
    /// Reasoning is valid only with what stood before it.
    pub(super) binds: bool,
    never_disabled: bool,
    never_enabled: bool,
    never_forced: bool,
}

const BINDING: [&str; 7] = [
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];
const NEVER_DISABLED: [&str; 4] = [
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
];
const NEVER_ENABLED: [&str; 7] = [
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5-5",
];
const NEVER_FORCED: [&str; 6] = [
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
];

/// The value of `anthropic-beta` that allows the setting for stale reasoning.
pub(super) const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The fault of a request to an upstream that does not know the beta, as Bedrock words it.
pub(super) fn unknown_beta() -> BrokenRule {
    let message = "invalid beta flag".to_owned();
    BrokenRule::new(message.clone(), ProviderRefusal::anthropic(message))
}

impl ModelRules {
    pub(super) fn of(model: &str) -> Self {
        let is_one_of = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
        let is_known = is_one_of(&["claude-", "gpt-"]);
        Self {
            binds: is_one_of(&BINDING) || !is_known,
            never_disabled: is_one_of(&NEVER_DISABLED),
            never_enabled: is_one_of(&NEVER_ENABLED),
            never_forced: is_one_of(&NEVER_FORCED),
        }
    }

    /// The rules about thinking and tools that a request of Messages breaks. `has_beta` is true if
    /// it asks for the setting for stale reasoning, and `knows_setting` if the upstream has it.
    pub(super) fn judge(
        self,
        body: &Value,
        has_beta: bool,
        knows_setting: bool,
    ) -> Vec<BrokenRule> {
        let thinking = body.get("thinking").unwrap_or(&Value::Null);
        let mode = text(thinking, "type");
        let mut broken = Vec::new();
        let mut note = |message: String| {
            broken.push(BrokenRule::new(
                message.clone(),
                ProviderRefusal::anthropic(message),
            ));
        };
        let is_refused = match mode {
            "disabled" => self.never_disabled,
            "enabled" => self.never_enabled,
            _ => false,
        };
        if is_refused {
            note(format!(
                "\"thinking.type.{mode}\" is not supported for this model. Use \
                 \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking \
                 behavior."
            ));
        }
        let has_setting = thinking.get("block_binding").is_some();
        let may_set = has_beta && knows_setting && mode != "between_tools";
        if has_setting && !may_set {
            note("thinking.block_binding: Extra inputs are not permitted".to_owned());
        }
        let choice = body.get("tool_choice").unwrap_or(&Value::Null);
        if self.never_forced && matches!(text(choice, "type"), "tool" | "any") {
            note(
                "tool_choice: type \"tool\" and \"any\" are not supported for this model."
                    .to_owned(),
            );
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn newer_models_refuse_what_older_ones_take() {
        let refused =
            |model: &str, body: Value| !ModelRules::of(model).judge(&body, true, true).is_empty();
        let thinking = |mode: &str| json!({"thinking": {"type": mode}});
        assert!(refused("claude-opus-5-5", thinking("disabled")));
        assert!(!refused("claude-opus-5", thinking("disabled")));
        assert!(refused("claude-opus-4-7", thinking("enabled")));
        assert!(!refused("claude-sonnet-4-5", thinking("enabled")));
        assert!(refused(
            "claude-fable-5-1",
            json!({"tool_choice": {"type": "any"}})
        ));
        assert!(!refused(
            "claude-fable-5-1",
            json!({"tool_choice": {"type": "none"}})
        ));
        let setting = json!({"thinking": {"type": "between_tools", "block_binding": {}}});
        assert!(refused("claude-sonnet-5-5", setting));
    }
}
