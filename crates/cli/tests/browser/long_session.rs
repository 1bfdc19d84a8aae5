//! A session of twenty thousand messages.

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::run::Served;
use crate::stage::{chat, get, plain_upstream, session_page};

const MESSAGES: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_messages_are_shown_a_screen_at_a_time() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url(), "--preset", "none"]);
    let message = |at: usize| -> Value {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": format!("message number {at} of a long talk")})
    };
    let messages: Vec<Value> = (0..MESSAGES - 1).map(message).collect();
    let answer = chat(&served.url, &messages, &[]).await;
    assert!(answer.status.is_success(), "{}", answer.status);
    let sessions = get(&served.url, "sessions").await;
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    browser.goto(&session_page(&served.url, &id));
    browser.wait_for_text("message number 3 of");
    // However long the session is, the page has few elements and asks for few messages.
    let elements = "document.querySelectorAll('*').length";
    assert!(browser.eval(elements).as_u64() < Some(600));
    browser.eval("document.querySelector('.list').scrollTop = 1e9");
    browser.wait_for_text(&format!("message number {} of", MESSAGES - 2));
    assert!(browser.eval(elements).as_u64() < Some(600));
    let asked = browser.eval(
        "performance.getEntriesByType('resource').filter((e) => e.name.includes('api/messages')).length",
    );
    assert!(asked.as_u64() <= Some(6), "{asked}");
    let data = get(&served.url, &format!("session?id={id}")).await;
    let bands = data["film"]["scenes"][0]["bands"].as_array().unwrap().len();
    assert!(bands <= 1_200, "{bands}");
    // The film and the list answer to the keyboard.
    browser.eval("document.querySelector('canvas.film').focus()");
    browser.press("Home");
    browser.wait_for_text("Call 1 of ");
    browser.eval("document.querySelector('.list').focus()");
    browser.press("End");
    let last = data["messages"].as_u64().unwrap() - 1;
    browser.wait(&format!("document.activeElement.dataset.at === '{last}'"));
    browser.eval(
        "(() => { document.querySelector('input[type=search]').value = 'NUMBER 12345 OF'; \
        document.querySelector('form[role=search]').requestSubmit() })()",
    );
    browser.wait_for_text("1 message found");
    browser.wait_for_text("message number 12345 of");
}
