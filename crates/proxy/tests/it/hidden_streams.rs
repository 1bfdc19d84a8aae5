//! A stream with hidden rounds looks like one stream of the provider.

use serde_json::{Value, json};
use trimtab_model::Dialect;

use crate::fake::{Reply, Upstream, post};
use crate::retrieval::shown_ref;
use crate::talk::{Talk, answer, calling, lines, path, said, streamed};
use crate::{config, proxy};

/// Tokens of the prompts of the two hidden requests and of the last one.
const PROMPTS: [u64; 3] = [1_000, 1_100, 1_200];

/// An answer that says something before it calls a tool of ours.
fn looking(dialect: Dialect, number: usize, text: &str) -> String {
    let arguments = json!({"ref_id": shown_ref(text), "offset": 40 * number, "limit": 1});
    let call = calling(
        dialect,
        &format!("h{number}"),
        "tool_output_cache",
        &arguments,
    );
    let mut whole: Value = serde_json::from_str(&call).unwrap();
    let words = format!("look {number} ");
    match dialect {
        Dialect::Chat => whole["choices"][0]["message"]["content"] = json!(words),
        Dialect::Messages => {
            let part = json!({"type": "text", "text": words});
            whole["content"].as_array_mut().unwrap().insert(0, part);
        }
        Dialect::Responses => {
            let output = whole["output"].as_array_mut().unwrap();
            output.insert(
                0,
                json!({"type": "message", "id": format!("m{number}"),
                "role": "assistant", "content": [{"type": "output_text", "text": words}]}),
            );
            output.insert(
                0,
                json!({"type": "reasoning", "id": format!("r{number}"),
                "summary": [], "encrypted_content": "e"}),
            );
        }
    }
    numbered(dialect, number, &whole)
}

/// The same answer with an id and figures of its own.
fn numbered(dialect: Dialect, number: usize, whole: &Value) -> String {
    let mut whole = whole.clone();
    whole["id"] = json!(format!("answer-{number}"));
    let name = if dialect == Dialect::Chat {
        "prompt_tokens"
    } else {
        "input_tokens"
    };
    whole["usage"][name] = json!(PROMPTS[number]);
    whole.to_string()
}

async fn upstream(dialect: Dialect) -> Upstream {
    Upstream::start(move |number, asked| {
        let whole = if number < 2 {
            looking(dialect, number, &asked.text())
        } else {
            let last: Value = serde_json::from_str(&answer(dialect, "done", 0)).unwrap();
            numbered(dialect, number, &last)
        };
        if asked.json()["stream"] == true {
            Reply::stream(streamed(dialect, &whole))
        } else {
            Reply::json(200, whole)
        }
    })
    .await
}

async fn answered(dialect: Dialect, stream: bool) -> String {
    let upstream = upstream(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "what is in there?");
    talk.stream = stream;
    talk.round("c1", &lines(9_000));
    let got = post(&base, path(dialect), &[], talk.body()).await;
    assert_eq!(upstream.seen().len(), 3);
    got.text()
}

/// The data of the events of a stream.
fn events(stream: &str) -> Vec<Value> {
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

fn assert_cost(usage: &Value, prompt: &str) {
    assert_eq!(
        usage[prompt], PROMPTS[2],
        "the window is that of the last request: {usage}"
    );
    let hidden = &usage["trimtab_hidden_rounds"];
    assert_eq!(hidden["requests"], 2, "{usage}");
    assert_eq!(hidden["input_tokens"], PROMPTS[0] + PROMPTS[1], "{usage}");
    assert_eq!(hidden["output_tokens"], 10, "{usage}");
}

#[tokio::test]
async fn chat_stream_has_one_role_one_id_and_one_end() {
    let stream = answered(Dialect::Chat, true).await;
    assert_eq!(said(Dialect::Chat, &stream), "look 0 look 1 done");
    assert_eq!(stream.matches("data: [DONE]").count(), 1);
    assert!(stream.ends_with("data: [DONE]\n\n"));
    let events = events(&stream);
    assert!(
        events.iter().all(|event| event["id"] == "answer-0"),
        "{stream}"
    );
    let choices = || events.iter().filter_map(|event| event["choices"].get(0));
    assert_eq!(
        choices()
            .filter(|choice| choice["delta"]["role"] == "assistant")
            .count(),
        1
    );
    assert_eq!(
        choices()
            .filter(|choice| choice["finish_reason"] == "stop")
            .count(),
        1
    );
    assert!(choices().all(|choice| choice["delta"].get("tool_calls").is_none()));
    let usages: Vec<&Value> = events
        .iter()
        .filter(|event| event["usage"].is_object())
        .collect();
    assert_eq!(usages.len(), 1, "{stream}");
    assert_cost(&usages[0]["usage"], "prompt_tokens");
}

#[tokio::test]
async fn messages_stream_has_one_start_one_end_and_dense_indexes() {
    let stream = answered(Dialect::Messages, true).await;
    assert_eq!(said(Dialect::Messages, &stream), "look 0 look 1 done");
    let events = events(&stream);
    assert_eq!(events.first().unwrap()["type"], "message_start");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    for kind in ["message_start", "message_delta", "message_stop"] {
        assert_eq!(of_type(&events, kind).len(), 1, "{kind}: {stream}");
    }
    for kind in ["content_block_start", "content_block_stop"] {
        let indexes = of_type(&events, kind)
            .into_iter()
            .map(|event| event["index"].as_u64());
        assert_eq!(
            indexes.collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2)],
            "{stream}"
        );
    }
    let end = of_type(&events, "message_delta")[0];
    assert_eq!(end["delta"]["stop_reason"], "end_turn");
    assert_cost(&end["usage"], "input_tokens");
}

#[tokio::test]
async fn responses_stream_has_one_id_and_dense_sequence_numbers() {
    let stream = answered(Dialect::Responses, true).await;
    assert_eq!(said(Dialect::Responses, &stream), "look 0 look 1 done");
    let events = events(&stream);
    let numbers = events.iter().map(|event| event["sequence_number"].as_u64());
    let expected: Vec<Option<u64>> = (0..events.len() as u64).map(Some).collect();
    assert_eq!(numbers.collect::<Vec<_>>(), expected, "{stream}");
    for kind in ["response.created", "response.completed"] {
        let found = of_type(&events, kind);
        assert_eq!(found.len(), 1, "{kind}: {stream}");
        assert_eq!(found[0]["response"]["id"], "answer-0");
    }
    let added = of_type(&events, "response.output_item.added");
    let indexes = added.iter().map(|event| event["output_index"].as_u64());
    assert_eq!(
        indexes.collect::<Vec<_>>(),
        (0..5).map(Some).collect::<Vec<_>>()
    );
    let done = of_type(&events, "response.output_item.done");
    let done: Vec<Value> = done.iter().map(|event| event["item"].clone()).collect();
    let last = &of_type(&events, "response.completed")[0]["response"];
    assert_eq!(last["output"], json!(done), "{stream}");
    assert_cost(&last["usage"], "input_tokens");
}

#[tokio::test]
async fn whole_answer_reports_hidden_round_usage() {
    for dialect in Dialect::ALL {
        let whole: Value = serde_json::from_str(&answered(dialect, false).await).unwrap();
        assert_eq!(said(dialect, &whole.to_string()), "look 0 look 1 done");
        let prompt = if dialect == Dialect::Chat {
            "prompt_tokens"
        } else {
            "input_tokens"
        };
        assert_cost(&whole["usage"], prompt);
    }
}

/// The names of the tools that the provider repeats in its answer, for every event that has some.
async fn repeated_tools(stream: bool) -> Vec<Vec<String>> {
    let upstream = Upstream::start(move |_, asked| {
        let answer = answer(Dialect::Responses, "done", 0);
        let mut whole: Value = serde_json::from_str(&answer).unwrap();
        whole["tools"] = asked.json()["tools"].clone();
        if stream {
            let whole = whole.to_string();
            Reply::stream(streamed(Dialect::Responses, &whole))
        } else {
            Reply::json(200, whole.to_string())
        }
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(Dialect::Responses, "what is in there?");
    talk.stream = stream;
    talk.round("c1", &lines(9_000));
    let got = post(&base, path(Dialect::Responses), &[], talk.body()).await;
    assert!(upstream.seen()[0].text().contains("tool_output_cache_grep"));
    let got = got.text();
    let responses: Vec<Value> = if stream {
        let events = events(&got).into_iter();
        events.map(|event| event["response"].clone()).collect()
    } else {
        vec![serde_json::from_str(&got).unwrap()]
    };
    let tools = responses.iter().filter_map(|one| one["tools"].as_array());
    let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    tools
        .map(|tools| tools.iter().map(name).collect())
        .collect()
}

#[tokio::test]
async fn responses_answer_repeats_only_the_tools_of_the_client() {
    for stream in [false, true] {
        let repeated = repeated_tools(stream).await;
        assert!(!repeated.is_empty());
        for names in repeated {
            let ours = names.iter().any(|name| name.contains("output_cache"));
            assert!(!ours, "stream {stream}: {names:?}");
        }
    }
}
