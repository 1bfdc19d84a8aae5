//! Every page with the data of a session, with nothing, and without a connection.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use crate::chromium::Browser;
use crate::run::{PATIENCE, Served, user_file};
use crate::stage::{PlayedDemo, ask, chat, get, plain_upstream, session_page};

#[tokio::test(flavor = "multi_thread")]
async fn every_page_shows_the_session_that_was_played() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    browser.goto(&format!("{}/dashboard", demo.url));
    browser.wait_for_text("claude-sonnet-4-5");
    browser.wait("document.querySelector('#link-state').textContent === 'Live'");
    let row = browser.eval("document.querySelector('tbody tr').innerText");
    assert!(row.as_str().unwrap().contains("64.0k"), "{row}");
    browser.click("Savings");
    browser.wait_for_text("Net money saved");
    browser.wait_for_text("No session is held out");
    browser.click("Store");
    browser.wait_for_text("Largest outputs");
    browser.click("Doctor");
    browser.wait_for_text("This proxy");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_store_says_what_to_do() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    browser.goto(&format!("{}/dashboard", served.url));
    browser.wait_for_text("No calls yet");
    browser.goto(&format!("{}/dashboard#/savings", served.url));
    browser.wait_for_text("No calls yet");
    browser.goto(&format!("{}/dashboard#/store", served.url));
    browser.wait_for_text("The store is empty");
    browser.goto(&session_page(&served.url, "proxy/nobody/chat/nothing"));
    browser.wait_for_text("there is no such session");
    browser.goto(&format!("{}/dashboard#/doctor", served.url));
    browser.wait_for_text("catalogue");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_call_appears_without_reloading() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    browser.goto(&format!("{}/dashboard", served.url));
    browser.wait_for_text("No calls yet");
    browser.wait("document.querySelector('#link-state').textContent === 'Live'");
    browser.eval("window.sameDocument = true");
    let text = "words of the user ".repeat(2_000);
    let messages = [json!({"role": "user", "content": text})];
    chat(
        &served.url,
        &messages,
        &[("user-agent", "my-agent/1.2 (x)")],
    )
    .await;
    browser.wait_for_text("my-agent/1.2");
    assert_eq!(browser.eval("window.sameDocument"), true);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connection_is_shown_and_restored() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let args = ["--upstream", &upstream.url()];
    let served = Served::start(&args);
    let url = served.url.clone();
    browser.goto(&format!("{url}/dashboard"));
    browser.wait("document.querySelector('#link-state').textContent === 'Live'");
    let folder = served.killed();
    browser.wait_for_text("Connection lost");
    let address = url.trim_start_matches("http://");
    let again = Served::start_in(
        folder,
        &["--listen", address, "--upstream", &upstream.url()],
    );
    assert_eq!(again.url, url);
    browser.wait("document.querySelector('#link-state').textContent === 'Live'");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_from_before_is_shown_from_the_store() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let url = upstream.url();
    let served = Served::start(&["--upstream", &url]);
    let text = format!("the first question {}", "and more ".repeat(2_000));
    let messages = [json!({"role": "user", "content": text})];
    chat(&served.url, &messages, &[]).await;
    // Messages that are sent unchanged are written a little later.
    let until = Instant::now() + PATIENCE;
    while get(&served.url, "store").await["sessions"] == 0 {
        assert!(Instant::now() < until, "the session is never stored");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let again = Served::start_in(served.killed(), &["--upstream", &url]);
    browser.goto(&format!("{}/dashboard", again.url));
    browser.wait_for_text("1 session from before this start");
    browser.click("proxy/");
    browser.wait_for_text("no call since the proxy started");
    browser.wait_for_text("the first question");
    browser.wait_for_text("Call 1 of 1");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_needs_the_token_and_an_origin_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let token = "0f8fad5bd9cb469fa16570867728950e";
    std::fs::write(
        user_file(folder.path()),
        format!("[proxy]\ntoken = \"{token}\"\n"),
    )
    .unwrap();
    let upstream = plain_upstream().await;
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    let login = data_encoding::BASE64.encode(format!("me:{token}").as_bytes());
    let login = format!("Basic {login}");
    let status = async |path: &str, headers: &[(&str, &str)]| {
        let url = format!("{}{path}", served.url);
        ask(Method::GET, &url, headers, Vec::new()).await
    };
    for path in [
        "/dashboard",
        "/dashboard/app.js",
        "/dashboard/api/sessions",
        "/metrics",
    ] {
        let refused = status(path, &[]).await;
        assert_eq!(refused.status, 401, "{path}");
        let asks = refused.header("www-authenticate").starts_with("Basic");
        assert_eq!(asks, path != "/metrics", "{path}");
        assert_eq!(
            status(path, &[("authorization", &login)]).await.status,
            200,
            "{path}"
        );
        let own = [("x-trimtab-token", token)];
        assert_eq!(status(path, &own).await.status, 200, "{path}");
    }
    // A browser sends its password by itself, also for other pages.
    let foreign = [
        ("authorization", login.as_str()),
        ("origin", "http://evil.example"),
    ];
    assert_eq!(
        status("/dashboard/api/sessions", &foreign).await.status,
        403
    );
    let other_host = [("authorization", login.as_str()), ("host", "evil.example")];
    assert_eq!(status("/dashboard", &other_host).await.status, 403);
}
