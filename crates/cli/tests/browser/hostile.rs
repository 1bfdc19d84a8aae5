//! Nothing from an output, a header or a name becomes markup or script.

use serde_json::json;

use crate::chromium::Browser;
use crate::run::Served;
use crate::stage::{chat, get, plain_upstream, session_page};

/// Texts that become something else in a careless page.
const HOSTILE: [&str; 8] = [
    "<img src=x onerror=\"window.hacked=1\">",
    "</script><script>window.hacked=1</script>",
    "<svg onload=window.hacked=1>",
    "\"><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "javascript:window.hacked=1",
    "<style>*{display:none}</style>",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\u{202e}<b>right to left</b>\u{0}",
];

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_texts() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    let long = "some more words ".repeat(1_000);
    let mut messages = vec![json!({"role": "system", "content": HOSTILE.join("\n")})];
    messages.push(json!({"role": "user", "content": format!("{} {long}", HOSTILE[0])}));
    for (number, text) in HOSTILE.iter().enumerate() {
        let call = json!({"id": format!("c{number}"), "type": "function",
            "function": {"name": format!("mcp__{text}__tool"), "arguments": json!({"a": text}).to_string()}});
        messages.push(json!({"role": "assistant", "content": text, "tool_calls": [call]}));
        let output = format!("{text}\n{long}");
        messages
            .push(json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": output}));
    }
    let headers = [
        ("user-agent", "<img/src=x/onerror=window.hacked=1>"),
        ("x-trimtab-session", "<svg/onload=window.hacked=1>"),
    ];
    let answer = chat(&served.url, &messages, &headers).await;
    assert!(answer.status.is_success(), "{}", answer.status);
    browser.goto(&format!("{}/dashboard", served.url));
    browser.wait_for_text("<img/src=x/onerror=window.hacked=1>");
    let sessions = get(&served.url, "sessions").await;
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    browser.goto(&session_page(&served.url, &id));
    browser.wait_for_text("onerror=\"window.hacked=1\"");
    for at in 0..4 {
        browser.wait(&format!(
            "document.querySelector('[data-at=\"{at}\"] .badge') !== null"
        ));
        browser.eval(&format!(
            "document.querySelector('[data-at=\"{at}\"]').click()"
        ));
        browser.wait("document.querySelector('dialog[open]')");
        let inside = browser.eval("document.querySelectorAll('dialog img, dialog script, dialog svg, dialog iframe, dialog style').length");
        assert_eq!(inside, 0);
        browser.eval("document.querySelector('dialog').close()");
    }
    let inside = browser.eval("document.querySelectorAll('main img, main script, main svg, main iframe, main style').length");
    assert_eq!(inside, 0);
    assert_eq!(browser.eval("typeof window.hacked"), "undefined");
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_of_the_page_refuses_scripts_and_requests_of_others() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    browser.goto(&format!("{}/dashboard", served.url));
    browser.wait_for_text("No calls yet");
    let refused = browser.eval(
        "new Promise((done) => { const seen = []; \
         addEventListener('securitypolicyviolation', (e) => seen.push(e.effectiveDirective)); \
         const script = document.createElement('script'); script.textContent = 'window.hacked = 1'; \
         document.body.append(script); \
         document.body.insertAdjacentHTML('beforeend', '<i style=\"color:red\" onclick=\"hacked=1\">x</i>'); \
         fetch('http://127.0.0.2:9/').catch(() => setTimeout(() => done(seen.join(' ')), 300)) })",
    );
    let refused = refused.as_str().unwrap().to_owned();
    for directive in ["script-src-elem", "style-src-attr", "connect-src"] {
        assert!(refused.contains(directive), "{refused}");
    }
    assert_eq!(browser.eval("typeof window.hacked"), "undefined");
}
