//! Thoughts that are bound to what came before them.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{Upstream, UpstreamOptions};

use crate::client::{Client, Talk, scripted, start};

/// A talk of three rounds with a thought in each, the last one open for the model.
async fn talk(dialect: Dialect, sign: bool) -> (Upstream, Client, Talk) {
    let round = json!({"reasoning": "hm", "calls": [{"name": "read"}]});
    let options = scripted(&json!([round, round, round]));
    let (upstream, client) = start(UpstreamOptions { sign, ..options }).await;
    let mut talk = Talk::new(dialect, "go");
    for number in 0..3 {
        let got = client.post(dialect, &talk.body).await;
        assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.body));
        talk.take(&got.json(), &format!("output {number}"));
    }
    (upstream, client, talk)
}

fn first_output(talk: &mut Talk) -> &mut Value {
    let messages = talk.dialect == Dialect::Messages;
    let list = talk.list().iter_mut();
    if messages {
        let parts = list.filter_map(|message| message["content"].get_mut(0));
        let mut outputs = parts.filter(|part| part["type"] == "tool_result");
        return &mut outputs.next().unwrap()["content"];
    }
    let mut items = list.filter(|item| item["type"] == "function_call_output");
    &mut items.next().unwrap()["output"]
}

#[tokio::test]
async fn an_untouched_conversation_is_accepted() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let (upstream, client, mut talk) = talk(dialect, true).await;
        assert_eq!(client.post(dialect, &talk.body).await.status, 200);
        // Cache markers and key order are no change.
        if dialect == Dialect::Messages {
            let text = json!([{
                "text": "be brief", "type": "text", "cache_control": {"type": "ephemeral"},
            }]);
            talk.body["system"] = text;
            assert_eq!(client.post(dialect, &talk.body).await.status, 200);
        }
        assert_eq!(upstream.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_changed_prefix_is_refused() {
    let (_upstream, client, mut talk) = talk(Dialect::Messages, true).await;
    *first_output(&mut talk) = json!("[trimmed]");
    let got = client.post(Dialect::Messages, &talk.body).await;
    assert_eq!(
        got.message(),
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
         different conversation. Remove the block, or set \
         `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting \
         requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` \
         header."
    );
}

#[tokio::test]
async fn reasoning_of_responses_is_bound_to_nothing_but_must_be_whole() {
    let (_upstream, client, mut talk) = talk(Dialect::Responses, true).await;
    *first_output(&mut talk) = json!("[trimmed]");
    let got = client.post(Dialect::Responses, &talk.body).await;
    assert_eq!(got.status, 200, "{}", got.message());
    let mut items = talk.list().iter_mut();
    let reasoning = items.find(|item| item["type"] == "reasoning").unwrap();
    reasoning["encrypted_content"] = json!("damaged");
    let got = client.post(Dialect::Responses, &talk.body).await;
    assert_eq!(got.json()["error"]["code"], "invalid_encrypted_content");
    assert!(got.message().ends_with("could not be verified."));
}

#[tokio::test]
async fn models_without_bound_reasoning_accept_a_changed_prefix() {
    for (dialect, model) in [
        (Dialect::Messages, "claude-opus-5"),
        (Dialect::Responses, "gpt-5.5"),
    ] {
        let (_upstream, client, mut talk) = talk(dialect, true).await;
        *first_output(&mut talk) = json!("[trimmed]");
        talk.body["model"] = json!(model);
        let got = client.post(dialect, &talk.body).await;
        assert_eq!(got.status, 200, "{}", got.message());
    }
}

#[tokio::test]
async fn a_changed_system_or_tool_is_a_changed_prefix() {
    for name in ["system", "tools"] {
        let (_upstream, client, mut talk) = talk(Dialect::Messages, true).await;
        match name {
            "system" => talk.body["system"] = json!("be long"),
            _ => talk.body["tools"][0]["name"] = json!("read_file"),
        }
        let got = client.post(Dialect::Messages, &talk.body).await;
        assert!(
            got.message()
                .starts_with("messages.1.content.0: Invalid `signature`"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn upstream_without_signing_accepts_changed_outputs() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let (_upstream, client, mut talk) = talk(dialect, false).await;
        *first_output(&mut talk) = json!("[trimmed]");
        assert_eq!(client.post(dialect, &talk.body).await.status, 200);
    }
}

#[tokio::test]
async fn thoughts_may_be_dropped_oldest_first_or_by_the_provider() {
    let (_upstream, mut client, talk) = talk(Dialect::Messages, true).await;
    let mut shorter = talk.clone();
    for at in [1, 3] {
        shorter.list()[at]["content"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        let got = client.post(Dialect::Messages, &shorter.body).await;
        assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.body));
    }
    let mut changed = talk.clone();
    *first_output(&mut changed) = json!("[trimmed]");
    changed.body["thinking"] = json!({
        "type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    });
    assert_eq!(
        client.post(Dialect::Messages, &changed.body).await.status,
        400
    );
    let beta = "thinking-binding-controls-2026-08-01";
    client.headers.push(("anthropic-beta", beta.to_owned()));
    assert_eq!(
        client.post(Dialect::Messages, &changed.body).await.status,
        200
    );
}

#[tokio::test]
async fn a_thought_must_stay_as_it_was_or_go_with_those_after_it() {
    let (_upstream, client, talk) = talk(Dialect::Messages, true).await;
    let mut edited = talk.clone();
    edited.list()[5]["content"][0]["thinking"] = json!("ha");
    let got = client.post(Dialect::Messages, &edited.body).await;
    assert_eq!(
        got.message(),
        "messages.5.content.0: Invalid `signature` in `thinking` block"
    );
    let without = |messages: &[usize]| {
        let mut fewer = talk.clone();
        for at in messages {
            fewer.list()[*at]["content"]
                .as_array_mut()
                .unwrap()
                .remove(0);
        }
        fewer.body
    };
    for (removed, status) in [
        (&[5][..], 200),
        (&[3, 5], 200),
        (&[1, 3, 5], 200),
        (&[3], 400),
    ] {
        let got = client.post(Dialect::Messages, &without(removed)).await;
        assert_eq!(got.status, status, "{removed:?}");
    }
}

#[tokio::test]
async fn an_item_is_not_taken_without_its_thought() {
    let (_upstream, client, mut talk) = talk(Dialect::Responses, true).await;
    talk.list().retain(|item| item["type"] != "reasoning");
    let got = client.post(Dialect::Responses, &talk.body).await;
    assert!(
        got.message()
            .contains("was provided without its required 'reasoning' item")
    );
    // Without ids there is nothing to tell them by.
    for item in talk.list() {
        item.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(
        client.post(Dialect::Responses, &talk.body).await.status,
        200
    );
}
