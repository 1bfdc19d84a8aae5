//! The names of the designs.

use super::*;

#[test]
fn the_names_of_checkpoint_mean_what_they_say() {
    let names = [
        ("TOOL_OUTPUT_TRUNCATION_POLICY", "bytes"),
        ("TOOL_OUTPUT_MAX_TOKENS", "1234"),
        ("TOOL_OUTPUT_SERIALIZATION_BUFFER", "1.5"),
        ("APPROX_CHARS_PER_TOKEN", "3"),
        ("COMPACT_USER_MESSAGE_MAX_TOKENS", "777"),
        ("PROTECTED_TOOLS", "[\"todo\", \"plan_*\"]"),
        ("COMPACT_SUMMARIZATION_PROMPT", "be short"),
        ("COMPACT_SUMMARY_PREFIX", "before: "),
        ("CONTEXT_OVERFLOW_MAX_RETRIES", "1"),
        ("MEMORY_COMPRESSION_THRESHOLD", "5000"),
        ("MEMORY_SHORT_TERM_SIZE", "10"),
    ];
    let config = with(&["preset=checkpoint"], &names).unwrap();
    let written = toml::to_string(&config.policy).unwrap();
    for expected in [
        "max = 3702",
        "unit = \"bytes\"",
        "buffer_percent = 150",
        "per_token = 3",
        "tokens = 777",
        "plan_*",
        "be short",
        "before: ",
        "retries = 1",
        "log > 5000",
        "messages >= 10",
    ] {
        assert!(
            written.contains(expected),
            "{expected} is not in\n{written}"
        );
    }
    assert_eq!(
        config.source("recovery.retries").to_string(),
        "CONTEXT_OVERFLOW_MAX_RETRIES"
    );
    let own = [names[8], ("TRIMTAB_RECOVERY_RETRIES", "2")];
    let config = with(&["preset=checkpoint"], &own).unwrap();
    assert_eq!(config.policy.recovery.retries, 2);
    // They are names of that design: another preset does not know them.
    let config = with(&["preset=refs"], &names).unwrap();
    assert_eq!(config.policy, Policy::preset("refs").unwrap());
    assert!(
        refused(
            &["preset=checkpoint"],
            &[("TOOL_OUTPUT_MAX_TOKENS", "many")]
        )
        .contains("'many'")
    );
}

/// The policy of a preset, changed by settings behind `--set`.
fn policy_with(preset: &str, settings: &[&str]) -> Policy {
    let preset = format!("preset={preset}");
    let mut flags = vec![preset.as_str()];
    flags.extend(settings);
    let config = with(&flags, &[]).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
    config.policy
}

#[test]
fn name_of_a_design_is_accepted_however_it_is_spelt() {
    for name in [
        "InputTokenBudget",
        "inputTokenBudget",
        "input_token_budget",
        "INPUT_TOKEN_BUDGET",
    ] {
        let policy = policy_with("retention", &[&format!("{name}=7")]);
        assert_eq!(policy.ageing.prefix.input_budget, 7, "{name}");
    }
    let names = [
        ("INPUT_TOKEN_BUDGET", "0"),
        ("TOOL_RESULT_RETENTION_CHARS", "9"),
    ];
    let config = with(&["preset=retention"], &names[..1]).unwrap();
    assert_eq!(config.policy.ageing.prefix.input_budget, 0);
    let config = with(&["preset=retention"], &names[1..]).unwrap();
    assert_eq!(config.policy.ageing.prefix.chars, 9);
    for name in ["thresholdRatio", "compaction.thresholdRatio"] {
        let policy = policy_with("refs", &[&format!("{name}=0.5")]);
        assert_eq!(
            policy.compaction.when[0].to_string(),
            "usage >= 0.5 x window"
        );
    }
}

#[test]
fn every_name_of_a_design_has_its_default_in_the_preset() {
    for name in DESIGN_NAMES.iter().filter(|name| !name.default.is_empty()) {
        let set = format!("{}={}", name.name, name.default);
        let changed = policy_with(name.preset, &[&set]);
        assert_eq!(changed, policy_with(name.preset, &[]), "{set}");
        assert!(
            KEYS.iter().any(|key| {
                let rest = name.setting.strip_prefix(key.name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }),
            "{}",
            name.setting
        );
    }
}

#[test]
fn every_name_of_a_design_changes_something() {
    let others = [
        ("toolOutputCache.contextBudgetTokens", "9"),
        ("compaction.model", "small"),
        ("compaction.thresholdRatio", "0.5"),
        ("TOOL_OUTPUT_SERIALIZATION_BUFFER", "1.1"),
        ("TOOL_OUTPUT_TRUNCATION_POLICY", "none"),
        ("PROTECTED_TOOLS", "plan,todo"),
        ("compactor.ToolSummaryStrategy", "off"),
        ("toolOutput.TruncateMode", "head"),
    ];
    for name in DESIGN_NAMES {
        let listed = others.iter().find(|(known, _)| *known == name.name);
        let value = match (listed, name.kind) {
            (Some((_, value)), _) => value,
            (_, SettingKind::Switch) => "false",
            (_, SettingKind::Text | SettingKind::Texts) => "be short",
            _ => "9",
        };
        // Each of these says something only beside another.
        let beside = match name.name {
            "TOOL_OUTPUT_MAX_BYTES" => "TOOL_OUTPUT_TRUNCATION_POLICY=bytes",
            "compactor.KeepRecent" => "KeepRecentTokens=0",
            _ => "window=64000",
        };
        let preset = format!("preset={}", name.preset);
        let set = format!("{}={value}", name.name);
        let config = with(&[&preset, beside, &set], &[]).unwrap();
        let before = with(&[&preset, beside], &[]).unwrap();
        let own = |config: &Config| (config.policy.clone(), config.window, config.max_output);
        assert_ne!(own(&config), own(&before), "{set}");
    }
}

#[test]
fn limit_in_bytes_is_as_large_as_the_one_in_tokens() {
    let policy = policy_with("checkpoint", &["TOOL_OUTPUT_TRUNCATION_POLICY=bytes"]);
    let written = toml::to_string(&policy.views).unwrap();
    assert!(written.contains("max = 20000"), "{written}");
    let bytes = [
        "TOOL_OUTPUT_TRUNCATION_POLICY=bytes",
        "TOOL_OUTPUT_MAX_BYTES=77",
    ];
    let written = toml::to_string(&policy_with("checkpoint", &bytes).views).unwrap();
    assert!(written.contains("max = 77"), "{written}");
}

#[test]
fn archive_keeps_a_number_of_messages_where_it_keeps_no_number_of_tokens() {
    use trimtab_engine::compaction::keep_rules::KeepRule;
    let keep = |settings: &[&str]| policy_with("archive", settings).compaction.keep;
    let messages = |messages| vec![KeepRule::RecentMessages { messages }];
    assert_eq!(keep(&["KeepRecentTokens=0"]), messages(5));
    assert_eq!(keep(&["KeepRecent=3", "KeepRecentTokens=0"]), messages(3));
    let tokens = vec![KeepRule::RecentTokens { tokens: 20_000 }];
    assert_eq!(keep(&["KeepRecent=3"]), tokens);
    let when = |settings: &[&str]| -> Vec<String> {
        let when = policy_with("archive", settings).compaction.when;
        when.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        when(&["MaxTokens=0", "ReserveTokens=0", "MaxMessages=7"]),
        ["log >= window - 16384", "messages >= 7"]
    );
    let off = policy_with("archive", &["ToolCallCutoff=0"]);
    assert!(!off.ageing.archive.enabled && !off.compaction.digest.enabled);
}

#[test]
fn switched_off_cache_shows_outputs_whole() {
    let settings = ["toolOutputCache.enabled=false", "maxMessageBytes=100"];
    let policy = policy_with("refs", &settings);
    let written = toml::to_string(&policy.views).unwrap();
    assert!(written.contains("shape = \"whole\""), "{written}");
    assert!(!policy.ageing.placeholder.enabled);
}

#[test]
fn name_of_another_design_is_refused_with_its_setting() {
    let told = refused(&["preset=steady", "InputTokenBudget=1"], &[]);
    assert!(
        told.contains("preset steady has no setting InputTokenBudget"),
        "{told}"
    );
    assert!(told.contains("ageing.prefix.input_budget"), "{told}");
    let told = refused(&["preset=turns", "MaxTokens=many"], &[]);
    assert!(
        told.contains("'many'") && told.contains("a whole number"),
        "{told}"
    );
}

#[test]
fn project_may_not_use_a_design_name_of_a_setting_that_is_not_for_projects() {
    let refused = |text: &str| refused_in_project(text, &[]);
    let text = "preset = 'refs'\n[compaction]\nsummaryPrompt = 'x'\nthresholdRatio = 0.5\n";
    assert_eq!(refused(text), ["compaction.summaryPrompt"]);
    assert!(refused("preset = 'retention'\nInputTokenBudget = 9\n").is_empty());
}

#[test]
fn file_under_the_names_of_a_design_is_read_as_its_preset() {
    for (_, preset) in ORIGINAL_SYSTEMS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROJECT_FILE);
        fs::write(&path, under_design_names(KEYS, preset)).unwrap();
        let inputs = ConfigInputs {
            folder: Some(folder.path().to_owned()),
            ..ConfigInputs::default()
        };
        let config = Config::load(&inputs).unwrap();
        assert_eq!(config.policy, Policy::preset(preset).unwrap());
    }
}
