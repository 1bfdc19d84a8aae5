//! `trimtab serve`.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::model::upstream;
use crate::run::{Served, finished, texts, user_file};
use crate::talk::{path, post, with_call, with_output};
use crate::windows;

#[tokio::test(flavor = "multi_thread")]
async fn three_dialects_are_managed() {
    let upstream = upstream(Some(60_000)).await;
    let served = Served::start(&["--upstream", &upstream.url(), "--json"]);
    for dialect in Dialect::ALL {
        let body = with_output(dialect, 6_000);
        let answer = post(&served.url, path(dialect), &body, &[]).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status.is_success(), "{dialect}: {said}");
        assert_eq!(answer.header("x-trimtab-action"), "edited", "{dialect}");
        assert!(said.contains("hello"), "{dialect}: {said}");
        let received = upstream.requests().last().unwrap().clone();
        assert!(
            received.body_bytes < body.to_string().len() / 2,
            "{dialect}"
        );
    }
    assert!(
        upstream.violations().is_empty(),
        "{:?}",
        upstream.violations()
    );
    served.signal("TERM");
    let (code, stdout) = served.end();
    assert_eq!(code, 0);
    let records: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 3);
    for record in records {
        assert_eq!(record["action"], "edited");
        assert!(record["tokens_after"].as_u64() < record["tokens_before"].as_u64());
        assert!(record["usage"]["input"].as_u64() > Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reloads_the_settings() {
    let upstream = upstream(None).await;
    let folder = tempfile::tempdir().unwrap();
    let file = user_file(folder.path());
    let url = upstream.url();
    let write = |mode: &str| {
        let text = format!(
            "[proxy]\nmode = \"{mode}\"\n[[proxy.upstreams]]\nname = \"u\"\nurl = \"{url}\"\n"
        );
        fs::write(&file, text).unwrap();
    };
    write("on");
    let served = Served::start_in(folder, &[]);
    let body = with_output(Dialect::Chat, 4_000);
    let action = async |served: &Served| {
        let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
        answer.header("x-trimtab-action").to_owned()
    };
    assert_eq!(action(&served).await, "edited");
    write("observe");
    served.signal("HUP");
    served.wait_for("settings reloaded");
    assert_eq!(action(&served).await, "observed");
    write("sideways");
    served.signal("HUP");
    let line = served.wait_for("keeping the old settings");
    assert!(line.contains("sideways"), "{line}");
    assert_eq!(action(&served).await, "observed");
}

/// What the model was sent after it called a tool of the client's and one of ours at once; the
/// proxy is killed in between, or not.
async fn after_both(dialect: Dialect, stream: bool, kill: bool) -> String {
    let both = |received: &ReceivedRequest| {
        let last = &received.last;
        if last.contains("theirs") {
            return ScriptedReply::text("both known");
        }
        let shown = windows::shown_ref(received).unwrap();
        let ours = json!({"ref_id": shown, "offset": 1_500, "limit": 1});
        ScriptedReply::call("tool_output_cache", ours).and_call("read_log", json!({}))
    };
    let options = UpstreamOptions::new(ReplySource::with(both));
    let upstream = Upstream::start(options).await.unwrap();
    let args = ["--upstream", &upstream.url()];
    let mut served = Served::start(&args);
    let mut body = with_output(dialect, 3_000);
    body["stream"] = stream.into();
    let answer = post(&served.url, path(dialect), &body, &[]).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
    let call = windows::calls(dialect, &answer.body);
    assert_eq!(
        call.len(),
        1,
        "{dialect} {stream}: the client sees its own call only"
    );
    if kill {
        served = Served::start_in(served.killed(), &args);
    }
    with_call(dialect, &mut body, &call[0], "theirs");
    let answer = post(&served.url, path(dialect), &body, &[]).await;
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(said.contains("both"), "{dialect} {stream}: {said}");
    assert!(
        upstream.violations().is_empty(),
        "{:?}",
        upstream.violations()
    );
    let requests = upstream.requests();
    let last = requests.last().unwrap();
    let shown = windows::shown_ref(last).unwrap();
    let text = String::from_utf8_lossy(&last.body).into_owned();
    // How many lines are shown before it depends on how many tokens the ref has.
    let (_, behind) = text.split_once(&shown).unwrap();
    behind
        .replace(&shown, "REF")
        .replace(|c: char| c.is_ascii_digit(), "")
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_proxy_loses_no_call() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let sent = after_both(dialect, stream, false).await;
            assert!(sent.contains("theirs"), "{sent}");
            let again = after_both(dialect, stream, true).await;
            assert_eq!(sent, again, "{dialect} {stream}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_waits_for_open_streams() {
    let slow = ScriptedReply {
        delay_ms: Some(150),
        ..ScriptedReply::text("one two three four five six seven eight nine ten")
    };
    let upstream = Upstream::start(UpstreamOptions::new(ReplySource::with(move |_| {
        slow.clone()
    })))
    .await
    .unwrap();
    let served = Served::start(&["--upstream", &upstream.url()]);
    let mut body = with_output(Dialect::Messages, 10);
    body["stream"] = true.into();
    let url = served.url.clone();
    let asked = tokio::spawn(async move { post(&url, "/v1/messages", &body, &[]).await });
    while upstream.requests().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    served.signal("TERM");
    served.wait_for("still open");
    let answer = asked.await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("message_stop"), "{text}");
    assert_eq!(served.end().0, 0);
}

#[test]
fn invalid_settings_and_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["serve", "--listen", "0.0.0.0:0"], "TRIMTAB_PROXY_TOKEN"),
        (&["serve", "--preset", "tidy"], "tidy"),
        (&["serve", "--upstream", "gopher=http://h"], "gopher"),
        (&["serve", "--upstream", "ftp://h"], "ftp://h"),
        (&["serve", "--set", "proxy.nonsense=1"], "proxy.nonsense"),
    ];
    for (args, named) in cases {
        let output = finished(folder.path(), args);
        let (stdout, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(
            stdout.is_empty() && stderr.contains(named),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn port_alone_and_localhost_mean_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // Where it would listen is named because the port is taken.
    let expected = format!("127.0.0.1:{port}");
    for listen in [
        format!(":{port}"),
        port.to_string(),
        format!("localhost:{port}"),
    ] {
        let output = finished(folder.path(), &["serve", "--listen", &listen]);
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{listen}: {stderr}");
        assert!(stderr.contains(&expected), "{listen}: {stderr}");
        fs::write(
            user_file(folder.path()),
            format!("[proxy]\nlisten = \"{listen}\"\n"),
        )
        .unwrap();
        let (_, stderr) = texts(&finished(folder.path(), &["serve"]));
        assert!(stderr.contains(&expected), "{listen}: {stderr}");
        fs::remove_file(user_file(folder.path())).unwrap();
    }
    let output = finished(folder.path(), &["serve", "--listen", "nowhere:x"]);
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("such as :9000"), "{stderr}");
}

#[test]
fn taken_port_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = finished(folder.path(), &["serve", "--listen", &address]);
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains(&address) && stderr.contains("hint: "),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_complements_the_settings_file() {
    let upstream = upstream(None).await;
    let folder = tempfile::tempdir().unwrap();
    let token = "kX7pQ2mZ9vR4tB8nL5cW1yH6sD3fG0jA";
    let mut command = crate::run::trimtab(folder.path(), &["config", "show", "--json"]);
    let output = command.env("TRIMTAB_PROXY_TOKEN", token).output().unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stdout.contains("proxy.token") && !stdout.contains(token),
        "{stdout}"
    );
    drop(upstream);
}

#[test]
fn unreadable_setting_is_named() {
    let cases = [
        ("listen = \"example.com\"", "proxy.listen = 'example.com'"),
        (
            "[[proxy.models]]\nmodel = \"*\"\nwindow = \"big\"",
            "window",
        ),
        ("[[proxy.upstreams]]\nurl = \"http://h\"", "proxy.upstreams"),
        (
            "[[proxy.models]]\nmodel = \"*\"\nwindow = 9\nmax_output = 9",
            "models[0].max_output = 9",
        ),
    ];
    for (text, named) in cases {
        let folder = tempfile::tempdir().unwrap();
        fs::write(user_file(folder.path()), format!("[proxy]\n{text}\n")).unwrap();
        let output = finished(folder.path(), &["serve"]);
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {stderr}");
        assert!(
            stderr.contains(named) && stderr.contains("hint: "),
            "{text}: {stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uncreatable_store_passes_requests_and_is_reported() {
    let upstream = upstream(None).await;
    let url = upstream.url();
    let args = ["--upstream", &url, "--store", "/proc/no-such-store"];
    let served = Served::start(&args);
    let line = served.wait_for("the store cannot be used");
    assert!(line.contains("/proc/no-such-store"), "{line}");
    let body = with_output(Dialect::Chat, 4_000);
    let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-trimtab-reason"), "store");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_upstream_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let at = format!("http://{gone}");
    let served = Served::start(&["--upstream", &at]);
    for lines in [2, 4_000] {
        let body = with_output(Dialect::Messages, lines);
        let answer = post(&served.url, path(Dialect::Messages), &body, &[]).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 502);
        assert!(
            said.contains(&at) && said.contains("trimtab doctor"),
            "{said}"
        );
    }
}
