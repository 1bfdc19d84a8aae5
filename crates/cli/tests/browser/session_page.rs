//! The page of a session: film, messages and search.

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::run::Served;
use crate::stage::{PlayedDemo, chat, get, plain_upstream};

#[tokio::test(flavor = "multi_thread")]
async fn film_shows_calls_switch_points_and_cache_breaks() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    let id = demo.session().await;
    let data = get(&demo.url, &format!("session?id={id}")).await;
    let film = &data["film"];
    let columns = film["columns"].as_array().unwrap();
    assert!(columns.len() >= 30, "{}", columns.len());
    let switches = film["switches"].as_array().unwrap();
    assert!(!switches.is_empty());
    let breaks: Vec<&Value> = data["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["cache_break"])
        .filter(|broken| !broken.is_null())
        .collect();
    assert!(
        breaks.iter().any(|broken| broken["by"] == "trimtab"),
        "{breaks:?}"
    );
    for broken in breaks {
        assert!(broken["tokens"].as_u64() > Some(0) && broken["cost"].as_f64() > Some(0.0));
    }
    browser.goto(&demo.session_page().await);
    // The film has a column for each hidden call too, but only calls of the client have numbers.
    let retrievals = data["calls"].as_array().unwrap().iter();
    let hidden: u64 = retrievals
        .map(|call| call["retrievals"].as_u64().unwrap())
        .sum();
    assert!(hidden > 1, "{hidden}");
    let calls = columns.len() as u64 - hidden;
    browser.wait_for_text(&format!("{hidden} hidden calls to read outputs back"));
    // The keyboard alone reaches the last call and the switch point.
    browser.eval("document.querySelector('canvas.film').focus()");
    browser.press("End");
    browser.wait_for_text(&format!("Call {calls} of {calls}"));
    browser.press("Home");
    browser.wait_for_text(&format!("Call 1 of {calls}"));
    let column = switches[0]["column"].as_u64().unwrap();
    for _ in 0..column {
        browser.press("ArrowRight");
    }
    browser.wait_for_text("Switch point");
    browser.wait_for_text("it pays after");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_opens_to_its_original_and_is_found_by_search() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    let id = demo.session().await;
    let listed = get(&demo.url, &format!("messages?id={id}")).await;
    let messages = listed["messages"].as_array().unwrap();
    let shortened = messages
        .iter()
        .find(|message| message["state"] == "hidden" && message["region"] == "output")
        .unwrap();
    let at = shortened["at"].as_u64().unwrap();
    let detail = get(&demo.url, &format!("message?id={id}&at={at}")).await;
    let original = detail["detail"]["original"].as_str().unwrap().to_owned();
    browser.goto(&demo.session_page().await);
    browser.wait("document.querySelectorAll('.message .badge').length > 5");
    browser.eval(&format!(
        "document.querySelector('.list').scrollTop = {} * 36",
        at.saturating_sub(2)
    ));
    let row = format!("document.querySelector('[data-at=\"{at}\"]')");
    browser.wait(&format!("{row}.querySelector('.badge') !== null"));
    browser.eval(&format!("{row}.scrollIntoView({{block: 'center'}})"));
    let place = browser.eval(&format!(
        "(() => {{ const r = {row}.getBoundingClientRect(); return [r.x + 40, r.y + 12] }})()"
    ));
    browser.click_at(&place);
    browser.wait("document.querySelector('dialog[open]')");
    let shown =
        browser.eval("document.querySelector('dialog pre[aria-label=Original]').textContent");
    assert_eq!(shown.as_str(), Some(original.as_str()));
    browser.press("Escape");
    browser.wait("!document.querySelector('dialog')");
    // A word from the middle of the original, which the window does not have.
    let word: String = original
        .lines()
        .nth(original.lines().count() / 2)
        .unwrap()
        .trim()
        .chars()
        .take(30)
        .collect();
    let wanted = json!(word).to_string();
    browser.eval(&format!(
        "(() => {{ document.querySelector('input[type=search]').value = {wanted}; \
         document.querySelector('form[role=search]').requestSubmit() }})()"
    ));
    browser.wait_for_text(" found");
    browser.wait(&format!(
        "document.querySelector('.list [data-at=\"{at}\"]') !== null"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn last_call_of_a_burst_is_shown() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    // A short conversation passes without a session.
    let text = "words of the user ".repeat(2_000);
    let mut messages = vec![json!({"role": "user", "content": text})];
    chat(&served.url, &messages, &[]).await;
    browser.goto(&format!("{}/dashboard", served.url));
    let page = browser.wait("document.querySelector('tbody a')?.hash ?? ''");
    browser.goto(&format!(
        "{}/dashboard{}",
        served.url,
        page.as_str().unwrap()
    ));
    browser.wait(
        "document.querySelector('canvas')?.getAttribute('aria-label')?.startsWith('1 call:')",
    );
    browser.wait("document.querySelector('#link-state').textContent === 'Live'");
    // Far more calls than the page is told of, one by one.
    for number in 2..=30 {
        messages.push(json!({"role": "assistant", "content": "done"}));
        messages.push(json!({"role": "user", "content": format!("number {number}")}));
        chat(&served.url, &messages, &[]).await;
    }
    browser.wait(
        "document.querySelector('canvas').getAttribute('aria-label').startsWith('30 calls:')",
    );
    browser.wait(
        "[...document.querySelectorAll('.tile')].some((tile) => \
         tile.firstChild.textContent === 'Calls' && tile.lastChild.firstChild.textContent === '30')",
    );
}
