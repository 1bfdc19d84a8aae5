//! Copies of one request at the same time, each with an answer of its own.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::validate;

use crate::fake::{Asked, Got, Reply, Upstream, post};
use crate::retrieval::{both, shown_ref};
use crate::talk::{Talk, calling, lines, path, with_text};
use crate::{config, proxy};

/// How long the upstream waits before it answers a copy, in milliseconds. By then all copies have
/// arrived.
const TOGETHER: u64 = 700;

/// A model that says `text` and calls a tool. Its items have ids with this number.
fn speaking_call(dialect: Dialect, number: usize, text: &str, call: (&str, &str, &Value)) -> Value {
    let (id, tool, arguments) = call;
    let whole = with_text(dialect, &calling(dialect, id, tool, arguments), text);
    let mut whole: Value = serde_json::from_str(&whole).unwrap();
    if dialect == Dialect::Responses {
        whole["output"][0]["id"] = json!(format!("msg_{number}"));
        whole["output"][1]["id"] = json!(format!("fc_{number}"));
    }
    whole
}

/// A model that looks into the stored output before it calls the client's tool. Each of its answers
/// has its own words and ids.
async fn looks_first(dialect: Dialect) -> Upstream {
    Upstream::start(move |number, asked| {
        let text = asked.text();
        let whole = if text.contains("small") {
            calling(dialect, "c9", "read", &json!({}))
        } else if text.contains("I look") {
            let (words, id) = (format!("answer {number}."), format!("c{number}00"));
            speaking_call(dialect, number, &words, (&id, "read", &json!({}))).to_string()
        } else {
            let arguments = json!({"ref_id": shown_ref(&text), "offset": 4321, "limit": 1});
            let (words, id) = (format!("I look {number}. "), format!("h{number}00"));
            let call = (id.as_str(), "tool_output_cache", &arguments);
            speaking_call(dialect, number, &words, call).to_string()
        };
        let mut reply = Reply::json(200, whole);
        reply.pieces[0].0 = TOGETHER;
        reply
    })
    .await
}

/// Appends an answer to the conversation as the client does, with the output of its call.
fn go_on(talk: &mut Talk, got: &Got) {
    let whole: Value = serde_json::from_str(&got.text()).unwrap();
    let id = match talk.dialect {
        Dialect::Chat => {
            let message = whole["choices"][0]["message"].clone();
            let id = message["tool_calls"][0]["id"].clone();
            talk.entries.push(message);
            id
        }
        Dialect::Messages => {
            let content = &whole["content"];
            talk.entries
                .push(json!({"role": "assistant", "content": content}));
            content.as_array().unwrap().last().unwrap()["id"].clone()
        }
        Dialect::Responses => {
            let items = whole["output"].as_array().unwrap();
            talk.entries.extend(items.iter().cloned());
            items.last().unwrap()["call_id"].clone()
        }
    };
    talk.output(id.as_str().unwrap(), "small");
}

/// The number behind `words` in an answer.
fn number_behind(words: &str, text: &str) -> String {
    let rest = text.split(words).nth(1).unwrap();
    rest.chars().take_while(char::is_ascii_digit).collect()
}

fn list(dialect: Dialect, asked: &Asked) -> Vec<Value> {
    let is_responses = dialect == Dialect::Responses;
    let name = if is_responses { "input" } else { "messages" };
    asked.json()[name].as_array().unwrap().clone()
}

/// The answers to three copies of a request that are sent at once.
async fn answers_to_copies(base: &str, talk: &Talk) -> [Got; 3] {
    let copy = || post(base, path(talk.dialect), &[], talk.body());
    let (one, two, three) = tokio::join!(copy(), copy(), copy());
    [one, two, three]
}

fn assert_valid(dialect: Dialect, asked: &Asked) {
    let scan = BodyScan::new(&asked.body, dialect).unwrap();
    assert_eq!(validate(&scan), [], "{}", asked.text());
}

#[tokio::test]
async fn hidden_rounds_of_parallel_copies_stay_apart() {
    for dialect in Dialect::ALL {
        for continued in 0..3 {
            let upstream = looks_first(dialect).await;
            let (_running, base) = proxy(config(&upstream.url())).await;
            let mut talk = Talk::new(dialect, "what is in line 4321?");
            talk.round("c1", &lines(9_000));
            let answers = answers_to_copies(&base, &talk).await;
            let text = answers[continued].text();
            assert!(text.contains("answer "), "{dialect}: {text}");

            go_on(&mut talk, &answers[continued]);
            post(&base, path(dialect), &[], talk.body()).await;
            let seen = upstream.seen();
            assert_eq!(seen.len(), 7);
            let last = &seen[6];
            assert_valid(dialect, last);
            let sent = last.text();
            let looked = format!("I look {}. ", number_behind("I look ", &text));
            assert_eq!(sent.matches("I look ").count(), 1, "{dialect}: {sent}");
            assert!(sent.contains(&looked), "{dialect}: {looked}: {sent}");
            // The window continues the one that the model answered.
            let answered: usize = number_behind("answer ", &text).parse().unwrap();
            let (before, after) = (list(dialect, &seen[answered]), list(dialect, last));
            assert_eq!(before[..], after[..before.len()], "{dialect}");
        }
    }
}

#[tokio::test]
async fn text_of_a_hidden_round_is_not_repeated_after_a_retry() {
    for dialect in Dialect::ALL {
        // The first answer looks into the output and is then refused, so the client asks again.
        let upstream = Upstream::start(move |number, asked| {
            let text = asked.text();
            if text.contains("small") {
                return Reply::json(200, calling(dialect, "c9", "read", &json!({})));
            }
            let arguments = json!({"ref_id": shown_ref(&text), "offset": 4321, "limit": 1});
            let (words, id) = (format!("I look {number}. "), format!("h{number}00"));
            let look = (id.as_str(), "tool_output_cache", &arguments);
            match number {
                0 | 2 => {
                    let whole = speaking_call(dialect, number, &words, look);
                    Reply::json(200, whole.to_string())
                }
                1 => Reply::json(503, r#"{"error":{"message":"overloaded"}}"#),
                _ => {
                    let call = ("c300", "read", &json!({}));
                    let whole = speaking_call(dialect, number, "answer 3.", call);
                    Reply::json(200, whole.to_string())
                }
            }
        })
        .await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "what is in line 4321?");
        talk.round("c1", &lines(9_000));
        let failed = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(failed.status, 503, "{}", failed.text());
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert!(got.text().contains("answer 3."), "{}", got.text());
        go_on(&mut talk, &got);
        post(&base, path(dialect), &[], talk.body()).await;
        let seen = upstream.seen();
        let last = seen.last().unwrap();
        assert_valid(dialect, last);
        let sent = last.text();
        assert_eq!(sent.matches("I look 2. ").count(), 1, "{dialect}: {sent}");
        let (before, after) = (list(dialect, &seen[3]), list(dialect, last));
        assert_eq!(before[..], after[..before.len()], "{dialect}");
    }
}

/// A model that looks into the stored output and calls the client's tool at once.
async fn looks_and_calls(dialect: Dialect) -> Upstream {
    Upstream::start(move |number, asked| {
        let text = asked.text();
        if text.contains("small") {
            return Reply::json(200, calling(dialect, "c9", "read", &json!({})));
        }
        let arguments = json!({"ref_id": shown_ref(&text), "offset": 4321, "limit": 1});
        let (words, ours) = (format!("I look {number}. "), format!("h{number}00"));
        let call = (ours.as_str(), "tool_output_cache", &arguments);
        let whole = speaking_call(dialect, number, &words, call);
        let theirs = calling(dialect, &format!("c{number}00"), "read", &json!({}));
        let mut reply = Reply::json(200, both(dialect, &whole.to_string(), &theirs));
        reply.pieces[0].0 = TOGETHER;
        reply
    })
    .await
}

#[tokio::test]
async fn our_calls_return_to_whichever_parallel_answer_is_continued() {
    for dialect in Dialect::ALL {
        for continued in 0..3 {
            let upstream = looks_and_calls(dialect).await;
            let (_running, base) = proxy(config(&upstream.url())).await;
            let mut talk = Talk::new(dialect, "what is in line 4321?");
            talk.round("c1", &lines(9_000));
            let answers = answers_to_copies(&base, &talk).await;
            let number = number_behind("I look ", &answers[continued].text());
            go_on(&mut talk, &answers[continued]);
            post(&base, path(dialect), &[], talk.body()).await;
            let seen = upstream.seen();
            let last = seen.last().unwrap();
            assert_valid(dialect, last);
            let sent = last.text();
            // The call and its output.
            let id = format!("\"h{number}00\"");
            assert_eq!(sent.matches(&id).count(), 2, "{dialect}: {sent}");
            assert_eq!(sent.matches("I look ").count(), 1, "{dialect}: {sent}");
        }
    }
}
