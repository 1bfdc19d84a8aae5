use super::*;
use proptest::prelude::*;

fn find(name: &str) -> Option<(String, ModelMatch)> {
    Catalogue::embedded()
        .find(name)
        .ok()
        .map(|found| (found.model.id, found.matched))
}

#[test]
fn names_lead_to_models() {
    for (name, id, matched) in [
        ("gpt-5.4", "gpt-5.4", ModelMatch::Exact),
        ("GPT-5.4", "gpt-5.4", ModelMatch::Exact),
        ("claude-opus-5-5[1m]", "claude-opus-5-5", ModelMatch::Exact),
        ("gpt-5.4-2027-01-01", "gpt-5.4", ModelMatch::Undated),
        (
            "claude-opus-5-5@20260801",
            "claude-opus-5-5",
            ModelMatch::Undated,
        ),
        (
            "anthropic/claude-opus-5-5",
            "claude-opus-5-5",
            ModelMatch::Provider,
        ),
        ("openrouter/openai/gpt-5.4", "gpt-5.4", ModelMatch::Provider),
        ("glm-4.6", "zai/glm-4.6", ModelMatch::Provider),
        ("opus", "claude-opus-5-5", ModelMatch::Alias),
        (
            "anthropic/claude-opus-4.5",
            "claude-opus-4-5",
            ModelMatch::Provider,
        ),
        ("gpt-5.4-2027-01-01-custom", "gpt-5.4", ModelMatch::Family),
        (
            "claude-opus-5-5-turbo",
            "claude-opus-5-5",
            ModelMatch::Family,
        ),
        ("mine/o3-tuned", "o3", ModelMatch::Family),
        ("claude-opus-6", "claude-opus-5-5", ModelMatch::Assumed),
        ("claude-opus-5-9", "claude-opus-5-5", ModelMatch::Assumed),
        (
            "us.anthropic.claude-opus-5-9",
            "claude-opus-5-5",
            ModelMatch::Assumed,
        ),
        (
            "anthropic/claude-opus-5-9",
            "claude-opus-5-5",
            ModelMatch::Assumed,
        ),
        (
            "us.anthropic.claude-sonnet-7-v1:0",
            "claude-sonnet-5-5",
            ModelMatch::Assumed,
        ),
        (
            "openrouter/openai/gpt-7-sol",
            "gpt-6.1-sol",
            ModelMatch::Assumed,
        ),
        ("gpt-7", "gpt-6.1-sol", ModelMatch::Assumed),
        ("gpt-4.7-ultra", "gpt-6.1-sol", ModelMatch::Assumed),
        (
            "gemini-5-flash",
            "gemini/gemini-3.8-flash",
            ModelMatch::Assumed,
        ),
        ("grok-5", "xai/grok-4.7", ModelMatch::Assumed),
    ] {
        assert_eq!(find(name), Some((id.to_owned(), matched)), "{name}");
    }
}

#[test]
fn overlong_name_is_unknown() {
    let tail = |count: usize| format!("gpt-5.4-{}", "x-".repeat(count));
    assert!(find(&tail(100)).is_some());
    assert!(find(&tail(100_000)).is_none());
}

#[test]
fn another_version_is_another_model() {
    for name in [
        "mine-7-ultra",
        "qwen9:30b",
        "gpt",
        "claude",
        "latest",
        "",
        "/",
        "[1m]",
        "x/",
        "20251101",
    ] {
        assert_eq!(find(name), None, "{name}");
    }
}

#[test]
fn an_unknown_model_names_its_neighbours_and_the_way_out() {
    let error = Catalogue::embedded().find("cluade-opus-5-5").unwrap_err();
    assert_eq!(
        error.closest.first().map(String::as_str),
        Some("claude-opus-5-5")
    );
    let text = error.to_string();
    assert!(
        text.starts_with("unknown model `cluade-opus-5-5`; closest: claude-opus-5-5"),
        "{text}"
    );
    assert!(text.contains("\nhint: set its window"), "{text}");
}

#[test]
fn overlay_supplies_what_no_registry_has() {
    let model = |name: &str| Catalogue::embedded().find(name).unwrap().model;
    let opus = model("us.anthropic.claude-opus-5-5");
    assert!(opus.rules.bound_reasoning);
    assert!(opus.rules.answer_may_overrun);
    assert_eq!(opus.cache.kind, CacheKind::Marked);
    assert_eq!(opus.cache.lifetime.unwrap().as_secs(), 300);
    assert_eq!(opus.cache.minimum, Some(512));
    assert_eq!(opus.vocabulary.as_deref(), Some("claude"));
    for (name, bound) in [
        ("claude-opus-4-5", false),
        ("claude-opus-5", false),
        ("claude-haiku-5-5", true),
        ("claude-sonnet-5-5", true),
        ("claude-fable-5-1", true),
        ("gpt-5.5", false),
    ] {
        assert_eq!(model(name).rules.bound_reasoning, bound, "{name}");
    }
    assert!((model("claude-fable-5-1").prices.unwrap().read_ratio() - 0.025).abs() < 1e-9);
    assert!((model("gpt-5.6").prices.unwrap().write_ratio() - 1.25).abs() < 1e-9);
    assert!(model("zai/glm-4.6").rules.silent_overflow);
}

#[test]
fn the_window_holds_prompt_and_answer() {
    let sizes = |name: &str| {
        let model = Catalogue::embedded().find(name).unwrap().model;
        (model.window, model.max_input, model.max_output)
    };
    assert_eq!(sizes("gpt-5"), (400_000, 272_000, Some(128_000)));
    assert_eq!(sizes("gpt-5.6"), (1_050_000, 922_000, Some(128_000)));
    assert_eq!(sizes("gpt-4o"), (128_000, 128_000, Some(16_384)));
    assert_eq!(
        sizes("claude-opus-5-5"),
        (1_000_000, 1_000_000, Some(128_000))
    );
}

#[test]
fn a_write_that_seems_cheaper_than_input_is_no_price() {
    let model = Catalogue::embedded().find("zai/glm-4.6").unwrap().model;
    let prices = model.prices.unwrap();
    assert_eq!(prices.cache_write, prices.input);
}

#[test]
fn long_prompts_fall_into_their_tier() {
    let model = Catalogue::embedded()
        .find("claude-haiku-5-5")
        .unwrap()
        .model;
    let input = |prompt| model.prices_at(prompt).unwrap().input.pico();
    assert_eq!((input(100_000), input(100_001)), (100_000, 500_000));
    let usage = |cache_read| trimtab_model::Usage {
        cache_read,
        ..Default::default()
    };
    assert_eq!(model.cost(&usage(200_000)).unwrap().to_string(), "$0.0100");
}

#[test]
fn every_line_of_the_snapshot_is_in_order_and_found() {
    let catalogue = Catalogue::embedded();
    Catalogue::from_snapshot(catalogue.snapshot().to_owned()).unwrap();
    let mut count = 0;
    for id in catalogue.ids() {
        let found = catalogue.find(id).unwrap();
        assert_eq!(
            (found.model.id.as_str(), found.matched),
            (id, ModelMatch::Exact)
        );
        assert!(found.model.window >= found.model.max_input);
        count += 1;
    }
    assert!(count > 3_000, "{count}");
    assert!(catalogue.snapshot().starts_with('#'));
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "reads the registry that the snapshot is from"
)]
fn the_snapshot_is_what_the_registry_gives() {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/models.json");
    let Ok(json) = std::fs::read_to_string(shared) else {
        println!("skipped: there is no registry beside the workspace");
        return;
    };
    let made = Catalogue::from_registry(&json).unwrap().catalogue;
    let embedded = Snapshot::registry();
    let (_, lines) = embedded.as_str().split_once('\n').unwrap();
    assert!(
        lines == made.snapshot(),
        "make it anew: see examples/models_snapshot.rs"
    );
}

#[test]
fn a_snapshot_that_is_broken_names_the_line() {
    for (text, line) in [
        ("# x\nb\t\t5\na\t\t5\n", 3),
        ("a\t\tfive\n", 1),
        ("a\t\t5\n\n", 2),
    ] {
        assert_eq!(
            Catalogue::from_snapshot(text.into()).unwrap_err().line,
            line,
            "{text:?}"
        );
    }
}

#[test]
fn a_registry_is_read_and_what_is_no_use_is_named() {
    let import = Catalogue::from_registry(
        r#"{
            "sample_spec": {"max_input_tokens": "a text"},
            "b/chat": {"max_input_tokens": 4096.0, "max_tokens": 512, "input_cost_per_token": 1e-6,
                "output_cost_per_token": 2e-6, "litellm_provider": "b", "mode": "chat",
                "input_cost_per_token_above_128k_tokens": 2e-6, "unknown": [1]},
            "a": {"max_input_tokens": 100, "litellm_provider": "house"},
            "picture": {"mode": "image_generation"},
            "none": {"mode": "chat"}
        }"#,
    )
    .unwrap();
    assert_eq!(import.kept, 2);
    let skipped: Vec<&str> = import
        .skipped
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(skipped, ["none", "picture", "sample_spec"]);
    assert_eq!(
        import.catalogue.snapshot(),
        "a\thouse\t100\nb/chat\t\t4096\t512\t1\t2\t\t\t\t\t\t\t128k:2\n"
    );
    let model = import.catalogue.find("chat").unwrap().model;
    assert_eq!(
        (model.provider.as_str(), model.max_output),
        ("b", Some(512))
    );
    let tier = model.prices_at(200_000).unwrap();
    assert_eq!(
        (tier.input.pico(), tier.output.pico()),
        (2_000_000, 2_000_000)
    );
}

#[test]
fn a_registry_that_is_wrong_names_model_and_field() {
    for (json, expected) in [
        ("{", "the registry is not JSON"),
        ("[]", "the registry is not an object"),
        ("{}", "the registry has no chat model"),
        (
            r#"{"m": 5}"#,
            "model `m`: field `(all)` is 5, expected an object of fields",
        ),
        (
            r#"{"m": {"max_input_tokens": "8k"}}"#,
            "model `m`: field `max_input_tokens` is \"8k\", expected a whole number of tokens",
        ),
        (
            r#"{"m": {"max_input_tokens": 8, "output_cost_per_token": -1}}"#,
            "model `m`: field `output_cost_per_token` is -1, expected a price",
        ),
        (
            r#"{"a\tb": {}}"#,
            r#"model `a	b`: field `(name)` is "a\tb""#,
        ),
    ] {
        let error = Catalogue::from_registry(json).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_list_is_filtered_by_id_and_provider() {
    let catalogue = Catalogue::embedded();
    assert_eq!(catalogue.list("").count(), catalogue.ids().count());
    assert!(
        catalogue
            .list("Claude-Opus")
            .all(|model| model.id.contains("claude-opus"))
    );
    assert!(
        catalogue
            .list("anthropic")
            .any(|model| model.id == "claude-opus-5-5")
    );
}

/// Names with window, longest answer, and the prices of input, output, reads and writes of either
/// lifetime.
const NEWEST: &str = "\
claude-fable-5-2 1000000 128000 8 40 0.2 10 16
claude-mythos-5-2 1000000 128000 8 40 0.2 10 16
claude-fable-5-1 1000000 128000 10 50 0.25 12.5 20
claude-mythos-5-1 1000000 128000 10 50 0.25 12.5 20
claude-fable-5 1000000 128000 10 50 1 12.5 20
claude-mythos-5 1000000 128000 10 50 1 12.5 20
claude-opus-5-5 1000000 128000 4 20 0.2 5 8
claude-sonnet-5-5 1000000 128000 2 10 0.1 2.5 4
claude-haiku-5-5 1000000 128000 0.1 0.5 0.01 0.125 0.2
claude-opus-5 1000000 128000 5 25 0.5 6.25 10
claude-sonnet-5 1000000 128000 2 10 0.2 2.5 4
gpt-6.1-sol 1050000 128000 2 10 0.1 2.5 2.5
gpt-6.1-terra 1050000 128000 1 5 0.05 1.25 1.25
gpt-6-astra 1050000 128000 10 50 1 12.5 12.5
gpt-6-sol 1050000 128000 2 10 0.2 2.5 2.5
gpt-6-luna 1050000 128000 0.1 0.5 0.01 0.125 0.125
gpt-5.6-sol 1050000 128000 4 20 0.4 5 5
gpt-5.6-luna 1050000 128000 0.2 1.2 0.02 0.25 0.25
gpt-5.6-terra 1050000 128000 2 12 0.2 2.5 2.5
gemini-4-argon 1048576 1048576 2 10 0.1 2 2
gemini-3.8-flash 1048576 65536 0.75 3.75 0.075 0.75 0.75
grok-4.7 500000 500000 2 6 0.5 2 2
deepseek-flash 1000000 393216 0.15 0.6 0.003 0.15 0.15
deepseek-v4-pro 1000000 393216 0.66 1.98 0.022 0.66 0.66
kimi-k3 1048576 1048576 3 15 0.3 3 3
qwen3.8-max 991808 131072 2 6 0.25 2 2
MiniMax-M3 1000000 128000 0.3 1.2 0.06 0.3 0.3
mistral-large-4 1048576 1048576 0.68 2.09 0.068 0.68 0.68
";

#[test]
fn newest_models_have_their_windows_and_prices() {
    for line in NEWEST.lines() {
        let name = line.split(' ').next().unwrap();
        let model = Catalogue::embedded().find(name).unwrap().model;
        let prices = model.prices.unwrap();
        let found = format!(
            "{name} {} {} {} {} {} {} {}",
            model.window,
            model.max_output.unwrap(),
            prices.input,
            prices.output,
            prices.cache_read,
            prices.cache_write,
            prices.cache_write_long,
        );
        assert_eq!(found, line);
    }
}

#[test]
fn long_prompts_cost_more_where_a_tier_says_so() {
    for (name, above, input, read, output) in [
        ("claude-haiku-5-5", 100_000, 5.0, 5.0, 5.0),
        ("gpt-6.1-sol", 272_000, 2.0, 2.0, 1.5),
        ("gpt-5.6-luna", 272_000, 2.0, 2.0, 1.5),
        ("grok-4.7", 200_000, 2.0, 2.0, 2.0),
        ("MiniMax-M3", 512_000, 2.0, 2.0, 2.0),
    ] {
        let model = Catalogue::embedded().find(name).unwrap().model;
        let prices = |tokens| *model.prices_at(tokens).unwrap();
        let (low, high) = (prices(above), prices(above + 1));
        let rises = [
            (high.input.ratio(low.input), input),
            (high.cache_read.ratio(low.cache_read), read),
            (high.output.ratio(low.output), output),
        ];
        for (found, expected) in rises {
            assert!((found - expected).abs() < 1e-9, "{name}: {found}");
        }
    }
}

#[test]
fn assumed_model_has_the_rules_of_the_newest_one() {
    let model = |name: &str| Catalogue::embedded().find(name).unwrap().model;
    assert_eq!(model("claude-opus-6"), model("claude-opus-5-5"));
}

#[test]
fn tokens_written_for_the_long_lifetime_have_their_own_price() {
    let model = Catalogue::embedded().find("claude-opus-5-5").unwrap().model;
    let usage = trimtab_model::Usage {
        cache_creation: 1_000_000,
        cache_creation_long: 250_000,
        ..trimtab_model::Usage::default()
    };
    // 750,000 at $5 and 250,000 at $8 per million
    assert_eq!(model.cost(&usage).unwrap().to_string(), "$5.75");
}

proptest! {
    #[test]
    fn any_name_is_an_answer_or_an_error(name in "\\PC{0,40}|[a-z0-9./:@_-]{0,30}") {
        let _ = Catalogue::embedded().find(&name);
    }

    #[test]
    fn any_text_as_snapshot_or_registry_is_an_answer_or_an_error(text in "[\\t\\n\\PC]{0,80}") {
        let _ = Catalogue::from_registry(&text);
        if let Ok(catalogue) = Catalogue::from_snapshot(text) {
            prop_assert!(catalogue.ids().all(|id| catalogue.find(id).is_ok()));
        }
    }
}
