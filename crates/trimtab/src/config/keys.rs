//! Every setting there is: its key, what it may be, and what it means.

use toml::Value;
use trimtab_engine::trigger::Trigger;

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
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

/// What a project's file may say of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InProject {
    /// Nothing: it decides where bytes or keys go, what is protected, or what a model is told.
    Refused,
    /// Any value.
    Allowed,
    /// A list of tables with these fields only. They stand behind the user's own.
    Fields(&'static [&'static str]),
    /// Policies by name, made of settings that are allowed themselves.
    Policies,
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name, as in a file: section and key joined by a dot.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
    /// What a project's file may say of it.
    pub in_project: InProject,
}

impl Key {
    /// A setting that no project's file may make.
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            about,
            in_project: InProject::Refused,
        }
    }

    /// The same, open to projects.
    #[must_use]
    pub const fn in_project(mut self, what: InProject) -> Self {
        self.in_project = what;
        self
    }

    /// The environment variable that sets it.
    ///
    /// ```
    /// use trimtab::config::{Key, Kind};
    ///
    /// let key = Key::new("compaction.auto", Kind::Switch, "");
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

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key::new(name, kind, about)
}

/// A setting that a project's file may make: it decides only what goes into a window.
const fn open(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key::new(name, kind, about).in_project(InProject::Allowed)
}

/// The settings of the library, in the order in which they are shown.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    open("preset", Kind::Choice(&["steady", "refs", "checkpoint", "turns", "archive", "retention", "none"]), "the preset that every other setting starts from"),
    key("store", Kind::Text, "folder of the store; empty for the user's data folder"),
    key("model", Kind::Text, "the model that the agent uses; its window and prices are looked up"),
    open("window", Kind::Number, "the model's window in tokens; 0 to look it up"),
    open("max_output", Kind::Number, "how long an answer may be, in tokens; 0 to look it up"),
    open("fit", Kind::Switch, "make every window fit its budget, whatever else is said"),
    open("repair", Kind::Choice(&["synthesise", "strip", "drop_round"]), "what to do with a call that has no output: put one in, take the call out, take the round out"),
    open("estimate", Kind::Choice(&["ours", "refs", "checkpoint", "turns", "archive"]), "whose estimate of tokens triggers and budgets go by"),
    open("ladder", Kind::Choices(RUNGS), "what to do before a call where the window would not fit, in this order"),
    open("views.default", Kind::Table, "how outputs are shortened when they come in: a shape and its numbers"),
    open("views.tools", Kind::Table, "shapes of their own for some tools: a list of tables with `tool`, a glob, and a shape"),
    open("views.protected", Kind::Texts, "tools whose outputs are never shortened, as globs"),
    open("views.repeats", Kind::Switch, "show an output that the window has already, word for word, as a reference to it"),
    open("ageing.placeholder.enabled", Kind::Switch, "the oldest outputs become placeholders until all outputs fit a budget"),
    open("ageing.placeholder.budget.tokens", Kind::Number, "that budget in tokens, in place of a share of the window"),
    open("ageing.placeholder.budget.window_percent", Kind::Number, "that budget as a share of the window, in percent"),
    open("ageing.placeholder.budget.min", Kind::Number, "the least that the share may come to, in tokens"),
    open("ageing.placeholder.budget.max", Kind::Number, "the most that the share may come to, in tokens"),
    open("ageing.prefix.enabled", Kind::Switch, "all outputs but the newest batch keep their first chars only"),
    open("ageing.prefix.input_budget", Kind::Number, "above this many input tokens of the last call, cached ones included; 0 for never"),
    open("ageing.prefix.chars", Kind::Number, "how many chars stay"),
    open("ageing.archive.enabled", Kind::Switch, "the oldest visible outputs are archived and a summary stands for them"),
    open("ageing.archive.cutoff", Kind::Number, "how many outputs stay visible"),
    open("ageing.archive.summaries", Kind::Choice(&["llm", "heuristic", "off"]), "who writes the summaries of archived outputs: a model, a heuristic, or nobody"),
    open("ageing.cards.enabled", Kind::Switch, "at switch points old outputs become excerpts, and the oldest rounds a block of text"),
    open("ageing.cards.economy", Kind::Number, "from thrifty (1) to rich (20): how often the cost of a rewrite is spent on reading old text before it is rewritten, and how much of it stays then"),
    open("ageing.cards.high_percent", Kind::Number, "the high-water mark: a window above this share of the room for messages is rewritten before it is sent, whatever it costs"),
    open("ageing.cards.cold_percent", Kind::Number, "where the prompt cache is cold anyway, a window above this share of that room is rewritten; 100 for never"),
    open("ageing.cards.tail_tokens", Kind::Number, "what the newest rounds may take that a rewrite leaves as they are, in tokens for each step of the economy in a room of 40,000 tokens"),
    open("ageing.cards.whole_tokens", Kind::Number, "what older files and searches may take that stay whole, in tokens for each step of the economy in a room of 40,000 tokens"),
    open("ageing.cards.keep_tokens", Kind::Number, "what the newest shortened rounds may take that are not hidden, in tokens for each step of the economy in a room of 40,000 tokens"),
    open("ageing.cards.block_tokens", Kind::Number, "what the block about hidden rounds may take beside 1,200 tokens, in tokens for each step of the economy in a room of 40,000 tokens"),
    open("ageing.cards.words_percent", Kind::Number, "what the model's own words may take of that block, in percent"),
    open("ageing.cards.excerpt_percent", Kind::Number, "what is kept of an old file or search, in percent of it"),
    open("ageing.cards.excerpt_bytes", Kind::Number, "the most that is kept of it, in bytes"),
    open("ageing.cards.names_percent", Kind::Number, "what names without their line may take of an excerpt, in percent"),
    open("ageing.cards.small_bytes", Kind::Number, "files and searches of fewer bytes stay as they are"),
    open("ageing.cards.user_percent", Kind::Number, "what the user's messages before the block may take, in percent of the room"),
    open("ageing.cards.user_tokens", Kind::Number, "the same in tokens"),
    open("compaction.enabled", Kind::Switch, "false: never compact, not even by hand"),
    open("compaction.auto", Kind::Switch, "false: only by hand, also not on overflow"),
    open("compaction.moments", Kind::Choices(&["before_call", "after_answer", "after_outputs", "before_final", "after_turn", "by_hand"]), "when it is asked whether it is time"),
    open("compaction.when", Kind::Conditions, "conditions that say it is time"),
    open("compaction.rule", Kind::Choice(&["any", "first_known"]), "any condition is enough, or the first that can be judged decides"),
    open("compaction.background", Kind::Switch, "write summaries while the agent goes on, where the moment allows it"),
    key("compaction.model", Kind::Text, "the model that writes summaries; empty for the agent's own"),
    open("compaction.model_window", Kind::Number, "the window of that model in tokens; 0 for that of the agent's model"),
    open("compaction.summary_tokens", Kind::Number, "the most a summary may take, in tokens"),
    open("compaction.strategy", Kind::Choice(&["summary", "deletion", "sliding_window", "selective", "automatic"]), "what a compaction leaves"),
    open("compaction.form", Kind::Choice(&["messages", "text", "turns"]), "how the summariser is asked"),
    key("compaction.prompt.summary", Kind::Text, "what the summariser is asked to write"),
    key("compaction.prompt.summary_directives", Kind::Texts, "further wishes for the summary"),
    key("compaction.prompt.retain", Kind::Text, "what must survive word for word; empty to ask for no such part"),
    key("compaction.prompt.retain_directives", Kind::Texts, "further wishes for what is kept"),
    open("compaction.keep", Kind::Table, "what survives besides the system part and the newest user message: a list of tables with `keep`"),
    open("compaction.keep_percent", Kind::Number, "the most that what is kept may take of the window, in percent"),
    key("compaction.placement", Kind::Table, "where the summary goes, `message` or `system`, and what it begins with"),
    key("compaction.summary_prefixes", Kind::Texts, "first words by which summaries of other tools are known"),
    open("compaction.digest.enabled", Kind::Switch, "archive the oldest outputs of the recent part and put a digest at the end"),
    open("compaction.digest.cutoff", Kind::Number, "how many of them stay visible"),
    open("compaction.show_ref", Kind::Switch, "name in the window the ref of what was replaced, also for a model that has no retrieval tools"),
    open("compaction.fallback", Kind::Switch, "write a summary without a model where the summariser fails; false: leave the conversation as it is while it fits"),
    open("compaction.audit.enabled", Kind::Switch, "look up in the summary the facts of what it replaces, and report how many it has"),
    open("compaction.audit.block_tokens", Kind::Number, "the most that a block of lost facts may take, in tokens; 0 for no block"),
    open("compaction.thrash.passes", Kind::Number, "automatic compaction stops after this many compactions in a row that gained too little; 0 for never"),
    open("compaction.thrash.gain_percent", Kind::Number, "a compaction gained too little if it removed less than this share of the window, in percent"),
    open("compaction.thrash.warn_after", Kind::Number, "from so many compactions on a warning goes with each; 0 for never"),
    open("compaction.bound_reasoning", Kind::Choice(&["strip", "keep"]), "what happens to signed reasoning behind a change"),
    open("recovery.ladder", Kind::Choices(RUNGS), "what to do when the provider says that the window was too large, in this order"),
    open("recovery.retries", Kind::Number, "how many further calls are made then"),
    key("network.ca_file", Kind::Text, "PEM file with further certificate authorities, besides those built in; SSL_CERT_FILE where unset"),
    key("network.proxy", Kind::Text, "the egress proxy, as http://host:port; HTTPS_PROXY, HTTP_PROXY and ALL_PROXY where unset; NO_PROXY names what needs none"),
];

impl Kind {
    /// What a value of this kind may be, in words.
    pub fn allowed(self) -> String {
        let either = |words: &[&str]| words.join(", ");
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Number => "a whole number from 0".to_owned(),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Choice(words) => format!("one of {}", either(words)),
            Self::Texts => "a list of texts".to_owned(),
            Self::Choices(words) => format!("a list of {}", either(words)),
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
            Self::Share => share(value).is_some_and(|share| (0.0..=1.0).contains(&share)),
            Self::Text => value.is_str(),
            Self::Choice(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Self::Texts => texts(&|_| true),
            Self::Choices(words) => texts(&|text| words.contains(&text)),
            Self::Conditions => texts(&|text| text.parse::<Trigger>().is_ok()),
            Self::Table => value.is_table() || value.is_array(),
        }
    }

    /// A value as somebody types it: TOML, or a bare text where that is what is meant.
    pub(super) fn typed(self, text: &str) -> Value {
        let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        let bare = || Value::String(text.to_owned());
        match self {
            Self::Text | Self::Choice(_) => parsed.filter(Value::is_str).unwrap_or_else(bare),
            Self::Texts | Self::Choices(_) | Self::Conditions => match parsed {
                Some(list @ Value::Array(_)) => list,
                Some(one @ Value::String(_)) => Value::Array(vec![one]),
                _ => Value::Array(vec![bare()]),
            },
            Self::Switch => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Value::Boolean(true),
                "false" | "no" | "off" | "0" => Value::Boolean(false),
                _ => bare(),
            },
            Self::Number | Self::Share | Self::Table => parsed.unwrap_or_else(bare),
        }
    }
}

/// A number, whole or not.
fn share(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| value.as_integer().map(|whole| whole as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_as_it_is_meant() {
        assert_eq!(Kind::Text.typed("gpt-4o"), Value::from("gpt-4o"));
        assert_eq!(Kind::Text.typed("12"), Value::from("12"));
        assert_eq!(Kind::Text.typed("'12'"), Value::from("12"));
        assert_eq!(Kind::Number.typed("16_384"), Value::from(16_384));
        assert_eq!(Kind::Switch.typed("off"), Value::from(false));
        let one = Value::from(vec!["usage >= 0.8 x window"]);
        assert_eq!(Kind::Conditions.typed("usage >= 0.8 x window"), one);
        assert_eq!(Kind::Conditions.typed("['usage >= 0.8 x window']"), one);
    }
}
