//! The table of names.

use super::values::{
    answer_limit, archived, auto_tokens, bytes_limit, cache_switch, condition, factor, figure,
    kept, kept_messages, kept_texts, kept_tokens, number, output_budget, policy, reserve, share,
    shown, window, without_null,
};
use super::{DesignName, NameMeaning, SettingKind};

const fn design_name(
    preset: &'static str,
    name: &'static str,
    variable: &'static str,
    setting: &'static str,
) -> DesignName {
    DesignName {
        preset,
        name,
        variable,
        setting,
        note: "",
        default: "",
        kind: SettingKind::Number,
        allowed: "",
        means: NameMeaning::Same,
    }
}

impl DesignName {
    const fn of_kind(mut self, kind: SettingKind) -> Self {
        self.kind = kind;
        self
    }

    const fn by_default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    const fn noted(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    const fn allowed(mut self, allowed: &'static str) -> Self {
        self.allowed = allowed;
        self
    }

    const fn with_meaning(mut self, means: NameMeaning) -> Self {
        self.means = means;
        self
    }
}

use NameMeaning::Made;

const KEEP: &str = "compaction.keep";
const WHEN: &str = "compaction.when";

/// The conditions of the designs, in the order in which they are evaluated.
const REFS: &[&str] = &["usage >= "];
const CHECKPOINT: &[&str] = &["log > ", "messages >= "];
const TURNS: &[&str] = &["messages > ", "log > "];
pub(super) const ARCHIVE: &[&str] = &["log >= window - ", "log >= ", "messages >= "];

/// All names, in the order in which those of one source are applied.
#[rustfmt::skip]
pub const DESIGN_NAMES: &[DesignName] = &[
    design_name("refs", "toolOutputCache.contextBudgetTokens", "TOOL_OUTPUT_CACHE_CONTEXT_BUDGET_TOKENS", "ageing.placeholder.budget.tokens")
        .noted("`null`: a share of the window").allowed("a whole number from 0, or null").with_meaning(Made(output_budget)),
    design_name("refs", "toolOutputCache.maxMessageBytes", "TOOL_OUTPUT_CACHE_MAX_MESSAGE_BYTES", "views.default.max_bytes")
        .by_default("51200").with_meaning(Made(|laid, value| shown(laid, "views.default.max_bytes", value))),
    design_name("refs", "toolOutputCache.maxLineLength", "TOOL_OUTPUT_CACHE_MAX_LINE_LENGTH", "views.default.max_line_chars")
        .by_default("2000").with_meaning(Made(|laid, value| shown(laid, "views.default.max_line_chars", value))),
    design_name("refs", "toolOutputCache.enabled", "TOOL_OUTPUT_CACHE_ENABLED", "views.default")
        .of_kind(SettingKind::Switch).by_default("true").noted("false: outputs are shown whole and still stored, and `ageing.placeholder.enabled` is false").with_meaning(Made(cache_switch)),
    design_name("refs", "compaction.enabled", "COMPACTION_ENABLED", "compaction.enabled").of_kind(SettingKind::Switch).by_default("true"),
    design_name("refs", "compaction.auto", "COMPACTION_AUTO", "compaction.auto").of_kind(SettingKind::Switch).by_default("true"),
    design_name("refs", "compaction.thresholdRatio", "COMPACTION_THRESHOLD_RATIO", WHEN)
        .of_kind(SettingKind::Share).by_default("0.8").noted("the factor in `usage >= F x window`").allowed("a number above 0, up to 1")
        .with_meaning(Made(|laid, value| share(laid, REFS, value))),
    design_name("refs", "compaction.model", "COMPACTION_MODEL", "compaction.model").of_kind(SettingKind::Text),
    design_name("refs", "compaction.summaryPrompt", "COMPACTION_SUMMARY_PROMPT", "compaction.prompt.summary").of_kind(SettingKind::Text),
    design_name("refs", "compaction.summaryDirectives", "COMPACTION_SUMMARY_DIRECTIVES", "compaction.prompt.summary_directives").of_kind(SettingKind::Texts),
    design_name("refs", "compaction.retainPrompt", "COMPACTION_RETAIN_PROMPT", "compaction.prompt.retain")
        .of_kind(SettingKind::Text).noted("`null`: no retained part").with_meaning(Made(without_null)),
    design_name("refs", "compaction.retainDirectives", "COMPACTION_RETAIN_DIRECTIVES", "compaction.prompt.retain_directives").of_kind(SettingKind::Texts),
    design_name("refs", "compaction.retainLastTurns", "COMPACTION_RETAIN_LAST_TURNS", KEEP)
        .by_default("1").noted("`turns` of the rule `last_turns`").with_meaning(Made(|laid, value| kept(laid, "last_turns", "turns", value))),

    design_name("checkpoint", "TOOL_OUTPUT_MAX_TOKENS", "TOOL_OUTPUT_MAX_TOKENS", "views.default.max")
        .by_default("5000").with_meaning(Made(|laid, value| shown(laid, "views.default.max", value))),
    design_name("checkpoint", "TOOL_OUTPUT_SERIALIZATION_BUFFER", "TOOL_OUTPUT_SERIALIZATION_BUFFER", "views.default.buffer_percent")
        .of_kind(SettingKind::Share).by_default("1.2").noted("1.2 means 120").allowed("a factor from 1 to 100").with_meaning(Made(factor)),
    design_name("checkpoint", "APPROX_CHARS_PER_TOKEN", "APPROX_CHARS_PER_TOKEN", "views.default.per_token")
        .by_default("4").allowed("a whole number from 1")
        .with_meaning(Made(|laid, value| shown(laid, "views.default.per_token", value).filter(|_| value.as_integer() != Some(0)))),
    design_name("checkpoint", "TOOL_OUTPUT_TRUNCATION_POLICY", "TOOL_OUTPUT_TRUNCATION_POLICY", "views.default.unit")
        .of_kind(SettingKind::Text).by_default("\"tokens\"").noted("`bytes`: the limit in tokens times `APPROX_CHARS_PER_TOKEN`, in bytes; `none`: the shape `whole`")
        .allowed("none, bytes or tokens").with_meaning(Made(policy)),
    design_name("checkpoint", "TOOL_OUTPUT_MAX_BYTES", "TOOL_OUTPUT_MAX_BYTES", "views.default.max")
        .by_default("20000").noted("if the policy is `bytes`").with_meaning(Made(bytes_limit)),
    design_name("checkpoint", "COMPACT_USER_MESSAGE_MAX_TOKENS", "COMPACT_USER_MESSAGE_MAX_TOKENS", KEEP)
        .by_default("20000").noted("`tokens` of the rule `user_messages`").with_meaning(Made(|laid, value| kept(laid, "user_messages", "tokens", value))),
    design_name("checkpoint", "PROTECTED_TOOLS", "PROTECTED_TOOLS", KEEP)
        .of_kind(SettingKind::Texts).by_default("[\"manage_todo_list\"]").noted("`tools` of the rule `protected_tools`")
        .with_meaning(Made(|laid, value| kept_texts(laid, "protected_tools", "tools", value))),
    design_name("checkpoint", "COMPACT_SUMMARIZATION_PROMPT", "COMPACT_SUMMARIZATION_PROMPT", "compaction.prompt.summary").of_kind(SettingKind::Text),
    design_name("checkpoint", "COMPACT_SUMMARY_PREFIX", "COMPACT_SUMMARY_PREFIX", "compaction.placement.prefix").of_kind(SettingKind::Text),
    design_name("checkpoint", "CONTEXT_OVERFLOW_MAX_RETRIES", "CONTEXT_OVERFLOW_MAX_RETRIES", "recovery.retries").by_default("3"),
    design_name("checkpoint", "MEMORY_COMPRESSION_THRESHOLD", "MEMORY_COMPRESSION_THRESHOLD", WHEN)
        .by_default("60000").noted("the number in `log > N`").with_meaning(Made(|laid, value| figure(laid, CHECKPOINT, 0, value))),
    design_name("checkpoint", "MEMORY_SHORT_TERM_SIZE", "MEMORY_SHORT_TERM_SIZE", WHEN)
        .by_default("100").noted("the number in `messages >= N`").with_meaning(Made(|laid, value| figure(laid, CHECKPOINT, 1, value))),

    design_name("turns", "agents.defaults.MaxTokens", "PICOCLAW_AGENTS_DEFAULTS_MAX_TOKENS", "max_output")
        .by_default("8192").noted("0 means 8192; `window` is four times this, unless it is set").with_meaning(Made(answer_limit)),
    design_name("turns", "agents.defaults.ContextWindow", "PICOCLAW_AGENTS_DEFAULTS_CONTEXT_WINDOW", "window")
        .by_default("32768").noted("0 means not set; if neither this nor `MaxTokens` is set, the window is looked up").with_meaning(Made(window)),
    design_name("turns", "agents.defaults.SummarizeMessageThreshold", "PICOCLAW_AGENTS_DEFAULTS_SUMMARIZE_MESSAGE_THRESHOLD", WHEN)
        .by_default("20").noted("the number in `messages > N`").with_meaning(Made(|laid, value| figure(laid, TURNS, 0, value))),
    design_name("turns", "agents.defaults.SummarizeTokenPercent", "PICOCLAW_AGENTS_DEFAULTS_SUMMARIZE_TOKEN_PERCENT", WHEN)
        .by_default("75").noted("the number in `log > N % of window`")
        .with_meaning(Made(|laid, value| Some(condition(laid, TURNS, 1, &format!("{} % of window", number(value)?))))),

    design_name("archive", "compactor.AutoCompact", "COMPACTOR_AUTO_COMPACT", "compaction.auto").of_kind(SettingKind::Switch).by_default("true"),
    design_name("archive", "compactor.MaxMessages", "COMPACTOR_MAX_MESSAGES", WHEN)
        .by_default("50").noted("the number in `messages >= N`").with_meaning(Made(|laid, value| figure(laid, ARCHIVE, 2, value))),
    design_name("archive", "compactor.MaxTokens", "COMPACTOR_MAX_TOKENS", WHEN)
        .by_default("8000").noted("the number in `log >= N`; 0: no condition").with_meaning(Made(auto_tokens)),
    design_name("archive", "compactor.ReserveTokens", "COMPACTOR_RESERVE_TOKENS", WHEN)
        .by_default("16384").noted("the number in `log >= window - N`; 0 means 16384").with_meaning(Made(reserve)),
    design_name("archive", "compactor.KeepRecentTokens", "COMPACTOR_KEEP_RECENT_TOKENS", KEEP)
        .by_default("20000").noted("`tokens` of the rule `recent_tokens`; 0: the newest `KeepRecent` messages stay").with_meaning(Made(kept_tokens)),
    design_name("archive", "compactor.KeepRecent", "COMPACTOR_KEEP_RECENT", KEEP)
        .by_default("5").noted("`messages` of the rule `recent_messages`, if `KeepRecentTokens` is 0").with_meaning(Made(kept_messages)),
    design_name("archive", "compactor.ToolCallCutoff", "COMPACTOR_TOOL_CALL_CUTOFF", "ageing.archive.cutoff")
        .by_default("10").noted("and `compaction.digest.cutoff`; 0 switches both off").with_meaning(Made(archived)),
    design_name("archive", "compactor.ToolSummaryStrategy", "COMPACTOR_TOOL_SUMMARY_STRATEGY", "ageing.archive.summaries")
        .of_kind(SettingKind::Choice(&["llm", "heuristic", "off"])).by_default("\"llm\""),
    design_name("archive", "toolOutput.MaxLines", "TOOL_OUTPUT_MAX_LINES", "views.default.max_lines")
        .by_default("2000").noted("0: no limit"),
    design_name("archive", "toolOutput.MaxBytes", "TOOL_OUTPUT_MAX_BYTES", "views.default.max_bytes")
        .by_default("51200").noted("0: no limit"),
    design_name("archive", "toolOutput.MaxChars", "TOOL_OUTPUT_MAX_CHARS", "views.default.max_chars")
        .by_default("204800").noted("0: no limit"),
    design_name("archive", "toolOutput.LargeOutputThreshold", "TOOL_OUTPUT_LARGE_OUTPUT_THRESHOLD", "views.default.spill_chars")
        .by_default("204800").noted("0: never"),
    design_name("archive", "toolOutput.TruncateMode", "TOOL_OUTPUT_TRUNCATE_MODE", "views.default.keep")
        .of_kind(SettingKind::Choice(&["head", "head_tail"])).by_default("\"head_tail\""),

    design_name("retention", "InputTokenBudget", "INPUT_TOKEN_BUDGET", "ageing.prefix.input_budget").by_default("40000").noted("0: never"),
    design_name("retention", "ToolResultRetentionChars", "TOOL_RESULT_RETENTION_CHARS", "ageing.prefix.chars").by_default("500"),
];
