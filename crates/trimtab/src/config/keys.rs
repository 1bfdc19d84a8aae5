//! The table of all settings: name, kind of value, meaning, and whether a project may set it.

use toml::Value;
use trimtab_engine::trigger::Trigger;

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// `true` or `false`.
    Switch,
    /// A whole number from 0.
    Number,
    /// A number from 0 to 1.
    Share,
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// A list of conditions, such as `usage >= 0.8 x window`.
    Conditions,
    /// A table that names its own shape, or a list of such tables.
    Table,
}

/// What a project's file may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InProject {
    /// Nothing: the setting decides where bytes or keys go, what is protected, or what a model is
    /// told.
    Refused,
    /// Any value.
    Allowed,
    /// A list of tables with only these fields. They are appended to the user's own.
    Fields(&'static [&'static str]),
    /// Policies by name, made of settings that are allowed themselves.
    Policies,
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingKey {
    /// Its name, as in a file: section and key joined by a dot.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: SettingKind,
    /// Its meaning.
    pub about: &'static str,
    /// What a project's file may set.
    pub in_project: InProject,
}

impl SettingKey {
    /// A setting that project files may not set.
    pub const fn new(name: &'static str, kind: SettingKind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            about,
            in_project: InProject::Refused,
        }
    }

    /// Opens it to projects.
    #[must_use]
    pub const fn in_project(mut self, what: InProject) -> Self {
        self.in_project = what;
        self
    }

    /// The environment variable that sets it.
    ///
    /// ```
    /// use trimtab::config::{SettingKey, SettingKind};
    ///
    /// let key = SettingKey::new("compaction.auto", SettingKind::Switch, "");
    /// assert_eq!(key.variable(), "TRIMTAB_COMPACTION_AUTO");
    /// ```
    pub fn variable(&self) -> String {
        format!("TRIMTAB_{}", self.name.replace('.', "_").to_uppercase())
    }
}

const RUNGS: &[&str] = &[
    "shorten_new",
    "lower_answer",
    "trim",
    "compact",
    "drop_half_of_turns",
    "drop_oldest",
];

const fn key(name: &'static str, kind: SettingKind, about: &'static str) -> SettingKey {
    SettingKey::new(name, kind, about)
}

/// A setting that project files may set: it only decides what goes into a window.
const fn project_key(name: &'static str, kind: SettingKind, about: &'static str) -> SettingKey {
    SettingKey::new(name, kind, about).in_project(InProject::Allowed)
}

/// The settings of the library, in the order in which they are shown.
#[rustfmt::skip]
pub const KEYS: &[SettingKey] = &[
    project_key("preset", SettingKind::Choice(&["steady", "refs", "checkpoint", "turns", "archive", "retention", "none"]), "the preset that every other setting starts from"),
    key("store", SettingKind::Text, "the folder of the store, or the URL of a PostgreSQL database that several machines share; empty for the user's data folder"),
    key("blobs", SettingKind::Text, "the URL of the object store for large outputs, if the store is a database; empty to keep them in the database"),
    key("model", SettingKind::Text, "the agent's model; its window and prices are looked up in the catalogue"),
    project_key("window", SettingKind::Number, "the model's window in tokens; 0 to look it up"),
    project_key("max_output", SettingKind::Number, "the longest answer in tokens; 0 to look it up"),
    project_key("fit", SettingKind::Switch, "make every window fit its budget, regardless of other settings"),
    project_key("repair", SettingKind::Choice(&["synthesise", "tell", "strip", "drop_round"]), "how to repair a call without an output: `synthesise` adds one, `tell` also shows outputs without a call as text, `strip` removes the call, `drop_round` removes the round"),
    project_key("estimate", SettingKind::Choice(&["ours", "refs", "checkpoint", "turns", "archive"]), "the token estimate that triggers and budgets use"),
    project_key("ladder", SettingKind::Choices(RUNGS), "steps to take, in this order, before a call whose window would not fit"),
    project_key("views.default", SettingKind::Table, "how new outputs are shortened: a shape and its parameters"),
    project_key("views.tools", SettingKind::Table, "shapes for some tools: a list of tables with `tool`, a glob, and a shape"),
    project_key("views.protected", SettingKind::Texts, "tools whose outputs are never shortened, as globs"),
    project_key("ageing.placeholder.enabled", SettingKind::Switch, "replace the oldest outputs by placeholders until all outputs fit a budget"),
    project_key("ageing.placeholder.budget.tokens", SettingKind::Number, "the budget in tokens, instead of a share of the window"),
    project_key("ageing.placeholder.budget.window_percent", SettingKind::Number, "the budget as a share of the window, in percent"),
    project_key("ageing.placeholder.budget.min", SettingKind::Number, "the lower bound of that share, in tokens"),
    project_key("ageing.placeholder.budget.max", SettingKind::Number, "the upper bound of that share, in tokens"),
    project_key("ageing.prefix.enabled", SettingKind::Switch, "shorten all outputs except the newest batch to their first chars"),
    project_key("ageing.prefix.input_budget", SettingKind::Number, "shorten when the last call had more input tokens than this, cached ones included; 0 for never"),
    project_key("ageing.prefix.chars", SettingKind::Number, "how many chars are kept; 0 for none"),
    project_key("ageing.archive.enabled", SettingKind::Switch, "archive the oldest visible outputs and show summaries of them"),
    project_key("ageing.archive.cutoff", SettingKind::Number, "how many outputs stay visible"),
    project_key("ageing.archive.summaries", SettingKind::Choice(&["llm", "heuristic", "off"]), "how archived outputs are summarised: by a model, by a heuristic, or not at all"),
    project_key("ageing.rewrite.enabled", SettingKind::Switch, "at switch points the oldest rounds become a digest"),
    project_key("ageing.rewrite.economy", SettingKind::Number, "from 1 to 20: rewrite when reading old text has cost this many rewrites; higher keeps more"),
    project_key("ageing.rewrite.high_percent", SettingKind::Number, "rewrite a window above this share of its room, whatever that costs"),
    project_key("compaction.enabled", SettingKind::Switch, "false: never compact, not even on request"),
    project_key("compaction.auto", SettingKind::Switch, "false: compact only on request, not even on overflow"),
    project_key("compaction.moments", SettingKind::Choices(&["before_call", "after_answer", "after_outputs", "before_final", "after_turn"]), "the moments at which the conditions are evaluated"),
    project_key("compaction.when", SettingKind::Conditions, "the conditions under which a compaction starts"),
    project_key("compaction.rule", SettingKind::Choice(&["any", "first_known"]), "whether any condition suffices, or the first one that can be evaluated decides"),
    project_key("compaction.background", SettingKind::Switch, "write summaries while the agent continues, if the moment allows it"),
    key("compaction.model", SettingKind::Text, "the model that writes summaries; empty for the agent's model"),
    project_key("compaction.model_window", SettingKind::Number, "the window of that model in tokens; 0 for the window of the agent's model"),
    project_key("compaction.summary_tokens", SettingKind::Number, "the longest summary in tokens"),
    project_key("compaction.strategy", SettingKind::Choice(&["summary", "deletion", "sliding_window", "selective", "automatic"]), "how a compaction replaces old messages"),
    project_key("compaction.form", SettingKind::Choice(&["messages", "text", "turns"]), "the form of the request to the summariser"),
    key("compaction.prompt.summary", SettingKind::Text, "the instruction for the summary"),
    key("compaction.prompt.summary_directives", SettingKind::Texts, "additional instructions for the summary"),
    key("compaction.prompt.retain", SettingKind::Text, "the instruction for the part that must survive verbatim; empty to omit that part"),
    key("compaction.prompt.retain_directives", SettingKind::Texts, "additional instructions for that part"),
    project_key("compaction.keep", SettingKind::Table, "what survives in addition to the system part and the newest user message: a list of tables with `keep`"),
    project_key("compaction.keep_percent", SettingKind::Number, "the largest share of the window that the kept messages may take, in percent"),
    key("compaction.placement", SettingKind::Table, "where the summary is placed, `message` or `system`, and its first words"),
    key("compaction.summary_prefixes", SettingKind::Texts, "first words that identify summaries of other tools"),
    project_key("compaction.digest.enabled", SettingKind::Switch, "archive the oldest outputs of the recent part and append a digest"),
    project_key("compaction.digest.cutoff", SettingKind::Number, "how many of these outputs stay visible"),
    project_key("compaction.show_ref", SettingKind::Switch, "show the ref of the replaced messages in the window, even to a model without retrieval tools"),
    project_key("compaction.fallback", SettingKind::Switch, "write a summary without a model if the summariser fails; false: leave the conversation unchanged while it fits"),
    project_key("compaction.warn_after", SettingKind::Number, "add a warning to every compaction from this many on; 0 for never"),
    project_key("recovery.ladder", SettingKind::Choices(RUNGS), "steps to take, in this order, when the provider reports an overflow"),
    project_key("recovery.retries", SettingKind::Number, "how often the call is then repeated"),
    key("network.ca_file", SettingKind::Text, "PEM file with additional certificate authorities; default: SSL_CERT_FILE"),
    key("network.proxy", SettingKind::Text, "the egress proxy, as http://host:port; default: HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY lists exceptions"),
];

impl SettingKind {
    /// The allowed values of this kind, as text.
    pub fn allowed(self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Number => "a whole number from 0".to_owned(),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Texts => "a list of texts".to_owned(),
            Self::Choices(words) => format!("a list of {}", words.join(", ")),
            Self::Conditions => {
                "conditions such as `usage >= 0.8 x window`, `log > 75 % of window` or \
                 `messages > 20`"
                    .to_owned()
            }
            Self::Table => "a table, or a list of tables".to_owned(),
        }
    }

    /// True if `value` is of this kind.
    pub(super) fn admits(self, value: &Value) -> bool {
        let texts = |check: &dyn Fn(&str) -> bool| {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(|text| text.as_str().is_some_and(check)))
        };
        match self {
            Self::Switch => value.is_bool(),
            Self::Number => value.as_integer().is_some_and(|number| number >= 0),
            Self::Share => {
                let whole = value.as_integer().map(|whole| whole as f64);
                let share = value.as_float().or(whole);
                share.is_some_and(|share| (0.0..=1.0).contains(&share))
            }
            Self::Text => value.is_str(),
            Self::Choice(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Self::Texts => texts(&|_| true),
            Self::Choices(words) => texts(&|text| words.contains(&text)),
            Self::Conditions => texts(&|text| text.parse::<Trigger>().is_ok()),
            Self::Table => value.is_table() || value.is_array(),
        }
    }

    /// Parses a value that a user typed: TOML, or a bare text for kinds that allow it.
    pub(super) fn typed(self, text: &str) -> Value {
        // As the value of a key, because TOML has no documents of a single value.
        let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        let bare = || Value::String(text.to_owned());
        match self {
            Self::Text | Self::Choice(_) => parsed.filter(Value::is_str).unwrap_or_else(bare),
            Self::Texts | Self::Choices(_) | Self::Conditions => match parsed {
                Some(list @ Value::Array(_)) => list,
                // One text stands for a list of one.
                Some(one @ Value::String(_)) => Value::Array(vec![one]),
                _ => Value::Array(vec![bare()]),
            },
            // Environment variables often use 1, yes or on.
            Self::Switch => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Value::Boolean(true),
                "false" | "no" | "off" | "0" => Value::Boolean(false),
                _ => bare(),
            },
            Self::Number | Self::Share | Self::Table => parsed.unwrap_or_else(bare),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_value_is_read_by_the_kind_of_its_setting() {
        assert_eq!(SettingKind::Text.typed("gpt-4o"), Value::from("gpt-4o"));
        assert_eq!(SettingKind::Text.typed("12"), Value::from("12"));
        assert_eq!(SettingKind::Text.typed("'12'"), Value::from("12"));
        assert_eq!(SettingKind::Number.typed("16_384"), Value::from(16_384));
        assert_eq!(SettingKind::Switch.typed("off"), Value::from(false));
        let one = Value::from(vec!["usage >= 0.8 x window"]);
        assert_eq!(SettingKind::Conditions.typed("usage >= 0.8 x window"), one);
        assert_eq!(
            SettingKind::Conditions.typed("['usage >= 0.8 x window']"),
            one
        );
    }
}
