//! The savings: the same figures wherever they are told.

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::run::Served;
use crate::stage::{PlayedDemo, chat, get, plain_upstream};

/// Dollars as the dashboard writes them.
fn dollars(amount: f64) -> String {
    format!("${amount:.2}")
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_and_demo_report_the_same_savings() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    let report = &demo.report;
    let number = |pointer: &str| report.pointer(pointer).unwrap().as_f64().unwrap();
    let total = get(&demo.url, "sessions").await["overview"]["savings"].clone();
    assert_eq!(total["tokens"], report["counted"]["tokens"]);
    for figure in ["spent", "saved", "saved_unbounded"] {
        let (shown, told) = (
            total[figure].as_f64().unwrap(),
            number(&format!("/counted/{figure}")),
        );
        assert!((shown - told).abs() < 1e-9, "{figure}: {shown} {told}");
    }
    // The provider of the demo counted both runs itself.
    assert!((number("/with/dollars") - number("/counted/spent")).abs() < 1e-6);
    let measured = number("/without/dollars") - number("/with/dollars");
    let counted = number("/counted/saved_unbounded");
    assert!(
        (measured - counted).abs() < measured * 0.1,
        "{measured} measured, {counted} counted"
    );
    let (saved, unbounded) = (number("/counted/saved"), number("/counted/saved_unbounded"));
    assert!(saved > 0.0 && saved < unbounded, "{saved} {unbounded}");
    let unbounded = dollars(unbounded);
    let told = [
        (
            "sessions",
            format!("{unbounded} saved if the window held everything"),
        ),
        (
            "savings",
            format!("If the window held everything\n{unbounded}"),
        ),
    ];
    for (page, text) in told {
        browser.goto(&format!("{}/dashboard#/{page}", demo.url));
        browser.wait_for_text(&text);
        let shown = browser.text();
        let spent = format!("{} spent", dollars(number("/counted/spent")));
        assert!(shown.contains(&spent), "{page}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn savings_show_the_distribution_and_the_holdout() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let args = ["--upstream", &upstream.url(), "--set", "proxy.holdout=0.5"];
    let served = Served::start(&args);
    let words = "words of the user ".repeat(800);
    for number in 0..24 {
        let text = format!("question {number}: {words}");
        let name = format!("session-{number}");
        let headers = [("x-trimtab-session", name.as_str())];
        let user = json!({"role": "user", "content": text});
        assert!(
            chat(&served.url, &[user], &headers)
                .await
                .status
                .is_success()
        );
    }
    browser.goto(&format!("{}/dashboard#/savings", served.url));
    browser.wait_for_text("a held-out one");
    browser.wait_for_text("Median ");
    let listed = get(&served.url, "sessions").await;
    let compared = &listed["overview"]["compared"];
    let calls = |side: &str| compared[side]["calls"].as_u64().unwrap();
    assert_eq!(calls("managed") + calls("holdout"), 24, "{compared}");
    let bars = browser.eval("document.querySelectorAll('.bars span').length");
    let sessions = listed["sessions"].as_array().map_or(0, Vec::len);
    assert_eq!(bars, Value::from(sessions));
}
