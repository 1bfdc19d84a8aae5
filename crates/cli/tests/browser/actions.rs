//! What people can do to a session, with the mouse and the keyboard alone.

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::run::Served;
use crate::stage::{PlayedDemo, chat, get, plain_upstream, session_page};

/// A round with an output of so many lines.
fn round(id: &str, lines: usize) -> [Value; 2] {
    let call = json!({"id": id, "type": "function",
        "function": {"name": "read_log", "arguments": "{}"}});
    let line = |at| format!("{id} line {at} of a long log with nothing in it\n");
    let output: String = (0..lines).map(line).collect();
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": output}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn preset_of_a_session_decides_from_the_next_call_on() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url(), "--preset", "none"]);
    let mut messages = vec![json!({"role": "user", "content": "read the logs"})];
    messages.extend(round("first", 2_000));
    chat(&served.url, &messages, &[]).await;
    let sent = || upstream.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent().contains("first line 1900 of"), "none cuts nothing");
    let sessions = get(&served.url, "sessions").await;
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    browser.goto(&session_page(&served.url, &id));
    browser.wait_for_text("preset none");
    browser.eval(
        "(() => { const choice = document.querySelector('.actions select'); \
         choice.value = 'refs'; choice.dispatchEvent(new Event('change')) })()",
    );
    browser.wait_for_text("From the next call on, refs decides");
    browser.wait_for_text("preset refs");
    let about = browser.eval("document.querySelector('canvas').getAttribute('aria-label')");
    messages.push(json!({"role": "assistant", "content": "done"}));
    messages.push(json!({"role": "user", "content": "and the next"}));
    messages.extend(round("second", 2_000));
    chat(&served.url, &messages, &[]).await;
    let sent = sent();
    assert!(!sent.contains("second line 1900 of"), "refs shortens it");
    assert!(sent.contains("second line 1 of"), "{}", sent.len());
    // The film shows the new call without reloading.
    browser.wait(&format!(
        "document.querySelector('canvas').getAttribute('aria-label') !== {about}"
    ));
    // Another session keeps the preset of the proxy.
    let mut other = vec![json!({"role": "user", "content": "another task"})];
    other.extend(round("other", 2_000));
    chat(&served.url, &other, &[]).await;
    let sent = upstream.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent.contains("other line 1900 of"));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_is_opened_from_the_film_and_pinned() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    browser.goto(&demo.session_page().await);
    browser.wait_for_text("Largest:");
    browser.click("message ");
    browser.wait("document.querySelector('dialog[open]')");
    let title = browser.eval("document.querySelector('dialog h2').textContent");
    let number: usize = title
        .as_str()
        .and_then(|title| title.split([' ', ':']).nth(1)?.parse().ok())
        .unwrap();
    browser.click("Pin");
    browser.wait_for_text(&format!("Message {number} is pinned"));
    browser.wait_for_text("1 message pinned");
    let id = demo.session().await;
    let pins = get(&demo.url, &format!("session?id={id}")).await["pins"].clone();
    assert_eq!(pins, json!([number - 1]));
    browser.click("message ");
    browser.click("Unpin");
    browser.wait_for_text("is no longer pinned");
    let pins = get(&demo.url, &format!("session?id={id}")).await["pins"].clone();
    assert_eq!(pins, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_reached_by_the_keyboard() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    browser.goto(&demo.session_page().await);
    browser.wait("document.querySelectorAll('.message .badge').length > 5");
    browser.eval("document.querySelector('.list').focus()");
    browser.press("ArrowDown");
    browser.press("ArrowDown");
    assert_eq!(browser.eval("document.activeElement.dataset.at"), "1");
    browser.press("End");
    let id = demo.session().await;
    let total = get(&demo.url, &format!("session?id={id}")).await["messages"].clone();
    let last = (total.as_u64().unwrap() - 1).to_string();
    browser.wait(&format!("document.activeElement.dataset.at === '{last}'"));
    browser.press("Enter");
    browser.wait("document.querySelector('dialog[open]')");
    let title = browser.eval("document.querySelector('dialog h2').textContent");
    let expected = format!("Message {total}:");
    assert!(title.as_str().unwrap().starts_with(&expected), "{title}");
}

#[tokio::test(flavor = "multi_thread")]
async fn band_under_the_pointer_is_named() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    browser.goto(&demo.session_page().await);
    browser.wait_for_text("as it was");
    let place = browser.eval(
        "(() => { const r = document.querySelector('canvas.film').getBoundingClientRect(); \
         return [r.x + r.width * 0.9, r.y + r.height * 0.7] })()",
    );
    let params = json!({"type": "mouseMoved", "x": place[0], "y": place[1]});
    browser.order("Input.dispatchMouseEvent", &params);
    browser.wait("!document.querySelector('.tip').hidden");
    let tip = browser.eval("document.querySelector('.tip').textContent");
    let tip = tip.as_str().unwrap();
    assert!(
        tip.contains("message ") && tip.ends_with(" tokens"),
        "{tip}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn approved_compaction_removes_messages_from_the_next_request() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    let mut messages = Vec::new();
    for id in ["first", "second", "third", "fourth"] {
        messages.push(json!({"role": "user", "content": format!("read the {id} log")}));
        messages.extend(round(id, 120));
        messages.push(json!({"role": "assistant", "content": format!("the {id} log is read")}));
    }
    // The text of the next request, with one more question.
    let ask_next = async |messages: &mut Vec<Value>, question: &str| {
        messages.push(json!({"role": "user", "content": question}));
        chat(&served.url, messages, &[]).await;
        messages.push(json!({"role": "assistant", "content": "done"}));
        let sent = upstream.requests().last().unwrap().json()["messages"].to_string();
        assert!(sent.contains(question), "{sent}");
        sent
    };
    let old = "first line 60 of";
    assert!(ask_next(&mut messages, "one?").await.contains(old));
    let sessions = get(&served.url, "sessions").await;
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    browser.goto(&session_page(&served.url, &id));
    browser.click("Compact now");
    browser.wait("document.querySelector('dialog[open] button.main')");
    // Without approval nothing is removed.
    assert!(ask_next(&mut messages, "two?").await.contains(old));
    browser.eval("document.querySelector('dialog button.main').click()");
    browser.wait_for_text("Compacted. The next call sends the shorter window.");
    assert!(!ask_next(&mut messages, "three?").await.contains(old));
    browser.wait("!document.querySelector('dialog')");
    browser.click("Undo the last change");
    browser.wait_for_text("Taken back");
    assert!(ask_next(&mut messages, "four?").await.contains(old));
}
