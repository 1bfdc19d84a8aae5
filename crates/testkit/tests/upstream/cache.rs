//! The prompt cache.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{PromptCacheRules, UpstreamOptions};

use crate::client::{Got, Talk, start};

fn long(number: usize) -> String {
    format!("{number} is a fine number. ").repeat(400)
}

fn cached(dialect: Dialect, got: &Got) -> u64 {
    got.said(dialect).usage.cache_read
}

#[tokio::test]
async fn a_growing_conversation_is_read_from_the_cache() {
    for dialect in Dialect::ALL {
        let (upstream, client) = start(UpstreamOptions::default()).await;
        let mut talk = Talk::new(dialect, &long(1)).streaming();
        let first = client.post(dialect, &talk.body).await;
        assert_eq!(cached(dialect, &first), 0);
        talk.user(&long(2));
        let second = client.post(dialect, &talk.body).await;
        let requests = upstream.requests();
        let (before, now) = (requests[0].tokens, requests[1].tokens);
        let read = cached(dialect, &second);
        assert!(
            read <= before && read + 256 > before,
            "{dialect}: {read} of {before}"
        );
        assert_eq!(read % 128, 0);
        assert_eq!(requests[1].stable, read);
        assert_eq!(
            second.said(dialect).usage.prompt(),
            now,
            "the figures do not overlap"
        );
    }
}

#[tokio::test]
async fn a_change_in_front_loses_the_cache() {
    for dialect in Dialect::ALL {
        let (upstream, client) = start(UpstreamOptions::default()).await;
        let mut talk = Talk::new(dialect, &long(1)).streaming();
        talk.user(&long(2));
        client.post(dialect, &talk.body).await;
        let at = talk.list().len() - 1;
        talk.list()[at]["content"] = json!(long(3));
        let second = client.post(dialect, &talk.body).await;
        let (read, whole) = (cached(dialect, &second), upstream.requests()[1].tokens);
        assert!(
            read > whole / 3 && read < whole * 2 / 3,
            "{dialect}: {read} of {whole}"
        );
        talk.list()[at - 1]["content"] = json!("short");
        let third = client.post(dialect, &talk.body).await;
        assert_eq!(cached(dialect, &third), 0, "{dialect}");
    }
}

#[tokio::test]
async fn another_model_has_another_cache() {
    let (_upstream, client) = start(UpstreamOptions::default()).await;
    let mut talk = Talk::new(Dialect::Chat, &long(1)).streaming();
    client.post(Dialect::Chat, &talk.body).await;
    talk.body["model"] = json!("other");
    let got = client.post(Dialect::Chat, &talk.body).await;
    assert_eq!(cached(Dialect::Chat, &got), 0);
}

#[tokio::test]
async fn markers_decide_where_they_are_asked_for() {
    let cache = PromptCacheRules {
        by_markers: true,
        minimum: 0,
        ..PromptCacheRules::default()
    };
    let (upstream, client) = start(UpstreamOptions {
        cache,
        ..UpstreamOptions::default()
    })
    .await;
    let part = |text: String| json!({"type": "text", "text": text});
    let mut talk = Talk::new(Dialect::Messages, "go");
    let send = async |body: &Value| {
        let got = client.post(Dialect::Messages, body).await.json();
        let figure = |name: &str| got["usage"][name].as_u64().unwrap();
        (
            figure("cache_read_input_tokens"),
            figure("cache_creation_input_tokens"),
        )
    };
    talk.list()[0]["content"] = json!([part(long(1)), part(long(2))]);
    assert_eq!(send(&talk.body).await, (0, 0), "no marker, no cache");
    talk.list()[0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    let (read, written) = send(&talk.body).await;
    let tokens = upstream.requests()[1].tokens;
    assert!(
        read == 0 && written > tokens / 3 && written < tokens * 2 / 3,
        "{written}"
    );
    assert_eq!(send(&talk.body).await, (written, 0));
    assert!(
        upstream.requests()[2].stable > written,
        "all of it is stable"
    );
}

#[tokio::test]
async fn what_is_written_for_an_hour_is_counted_apart() {
    let cache = PromptCacheRules {
        by_markers: true,
        ..PromptCacheRules::default()
    };
    let (_upstream, client) = start(UpstreamOptions {
        cache,
        ..UpstreamOptions::default()
    })
    .await;
    let send = async |body: &Value| {
        let got = client.post(Dialect::Messages, body).await.json();
        let figure = |path: &str| got["usage"].pointer(path).and_then(Value::as_u64).unwrap();
        (
            figure("/cache_creation/ephemeral_5m_input_tokens"),
            figure("/cache_creation/ephemeral_1h_input_tokens"),
        )
    };
    let mut talk = Talk::new(Dialect::Messages, &long(2));
    // A marker of the whole request caches all of it.
    talk.body["cache_control"] = json!({"type": "ephemeral"});
    let (short, none) = send(&talk.body).await;
    assert!(short > 0 && none == 0, "{short} {none}");
    talk.body["system"] = long(3).into();
    talk.body["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let (none, all) = send(&talk.body).await;
    assert!(all > short && none == 0, "{all} {none}");
}

#[tokio::test]
async fn deferred_tools_are_no_part_of_the_cached_prompt() {
    let (_upstream, client) = start(UpstreamOptions::default()).await;
    let mut talk = Talk::new(Dialect::Messages, &long(1)).streaming();
    let tool = |name: &str| {
        json!({"name": name, "description": long(1), "input_schema": {"type": "object"},
            "defer_loading": true})
    };
    let search =
        json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"});
    talk.body["tools"] = json!([search, tool("one")]);
    client.post(Dialect::Messages, &talk.body).await;
    talk.body["tools"] = json!([search, tool("two"), tool("three")]);
    let got = client.post(Dialect::Messages, &talk.body).await;
    assert!(cached(Dialect::Messages, &got) > 1_000);
}
