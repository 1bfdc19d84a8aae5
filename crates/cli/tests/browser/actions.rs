//! How people look at a session, with the mouse and the keyboard.

use serde_json::json;

use crate::chromium::Browser;
use crate::stage::{PlayedDemo, get};

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
    browser.wait_for_text("Call ");
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
