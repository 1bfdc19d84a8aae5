//! Whatever a preset takes out of a window can be had back by a ref that the window shows.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use trimtab_cli::proxy::http::HttpClient;
use trimtab_model::{Dialect, Message};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::own_calls::{is_own, reply};
use crate::retained::send;
use crate::run::{PATIENCE, Served};
use crate::talk::{add_round, begun, log, path, post};

const DESIGNS: [&str; 5] = ["refs", "checkpoint", "turns", "archive", "retention"];
const ROUNDS: usize = 40;

/// Something that only one output says.
fn needle(number: usize) -> String {
    format!("needle-{number:04}")
}

/// An output with a needle in its middle; every tenth is large.
fn output(number: usize) -> String {
    let lines = if number % 10 == 3 { 1_500 } else { 40 };
    let half = log(lines).replace("worker", &format!("worker{number}"));
    format!("{half}{}\n{half}", needle(number))
}

/// The refs that a text names.
fn refs_in(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for mark in ["ref_id", "ref=", "is behind ", "are behind "] {
        for (at, _) in text.match_indices(mark) {
            let rest = text.get(at + mark.len()..).unwrap_or_default();
            let line = rest.split(['\n', ']', ')']).next().unwrap_or_default();
            let words = line.split(|c: char| !c.is_ascii_alphanumeric());
            found.extend(words.filter(|word| word.len() > 12).map(str::to_owned));
        }
    }
    found
}

/// What is stored under a ref; empty if there is nothing.
async fn stored(served: &Served, id: &str) -> String {
    let url = format!("{}/v1/retrieve/{id}", served.url);
    let headers = [("x-api-key", "k")];
    let answer = HttpClient::default()
        .send(Method::GET, &url, &headers, Vec::new(), PATIENCE)
        .await
        .unwrap();
    if answer.status.is_success() {
        let found: Value = serde_json::from_slice(&answer.body).unwrap();
        found.to_string()
    } else {
        String::new()
    }
}

/// Everything that can be read from the refs of a window in three steps: removed messages with the
/// list of all earlier ones, these earlier messages, and outputs that were cut in them.
async fn readable(served: &Served, window: &str) -> String {
    let mut known = BTreeSet::new();
    let mut all = String::new();
    let mut next = refs_in(window);
    for _ in 0..3 {
        let mut further = BTreeSet::new();
        for id in next {
            if known.insert(id.clone()) {
                let text = stored(served, &id).await;
                further.extend(refs_in(&text));
                all.push_str(&text);
            }
        }
        next = further;
    }
    all
}

/// A long session under a preset: at its end every output is in the window, or behind its refs.
async fn nothing_is_out_of_reach(preset: &str, dialect: Dialect) {
    let upstream = Upstream::start(UpstreamOptions::new(ReplySource::with(reply)))
        .await
        .unwrap();
    let url = upstream.url();
    let args = ["--upstream", &url, "--window", "24000", "--preset", preset];
    let served = Served::start(&args);
    let mut body = begun(dialect, true);
    for number in 0..ROUNDS {
        add_round(
            dialect,
            &mut body,
            number,
            "the next one",
            &[output(number)],
        );
        send(&served, dialect, &body).await;
    }
    let broken = upstream.violations();
    assert!(broken.is_empty(), "{preset} {dialect}: {broken:?}");
    let requests = upstream.requests().clone();
    let last = requests.iter().rfind(|one| !is_own(one)).unwrap();
    let window = String::from_utf8_lossy(&last.body).replace("\\\"", "\"");
    let missing = |text: &str| -> Vec<String> {
        let all = (0..ROUNDS).map(needle);
        all.filter(|needle| !text.contains(needle.as_str()))
            .collect()
    };
    assert!(
        !missing(&window).is_empty(),
        "{preset} {dialect}: all of it fits"
    );
    let offered = last.tools.iter().any(|tool| tool == "tool_output_cache");
    assert!(offered, "{preset} {dialect}: {:?}", last.tools);
    let reached = window.clone() + &readable(&served, &window).await;
    let gone = missing(&reached);
    assert!(gone.is_empty(), "{preset} {dialect}: {gone:?} are lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_outputs_can_be_read_by_refs_of_the_window_under_every_design() {
    for preset in DESIGNS {
        nothing_is_out_of_reach(preset, Dialect::Chat).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_outputs_can_be_read_in_every_dialect() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        for preset in ["turns", "archive"] {
            nothing_is_out_of_reach(preset, dialect).await;
        }
    }
}

/// The messages of a body, with plain quotes.
fn messages_of(received: &ReceivedRequest) -> String {
    let mut body = received.json();
    body["tools"].take();
    body.to_string().replace("\\\"", "\"")
}

/// A model that reads the first ref of its window, and then asks the client's own tool.
fn curious(received: &ReceivedRequest) -> ScriptedReply {
    let messages = received.read_messages();
    let calls: Vec<_> = messages.iter().flat_map(Message::calls).collect();
    let has_called = |name: &str| calls.iter().any(|call| call.name == name);
    if !has_called("trimtab_tool_output_cache") {
        let id = refs_in(&messages_of(received)).into_iter().next();
        return id.map_or_else(
            || ScriptedReply::text("no ref"),
            |id| {
                ScriptedReply::call(
                    "trimtab_tool_output_cache",
                    json!({"ref_id": id, "limit": 3}),
                )
            },
        );
    }
    ScriptedReply::call("tool_output_cache", json!({"ref_id": "of-the-client"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_ours_have_other_names_beside_tools_of_the_same_names() {
    for preset in ["refs", "checkpoint"] {
        let upstream = Upstream::start(UpstreamOptions::new(ReplySource::with(curious)))
            .await
            .unwrap();
        let url = upstream.url();
        let served = Served::start(&["--upstream", &url, "--preset", preset]);
        let schema = json!({"type": "object", "properties": {"ref_id": {"type": "string"}}});
        let mut body = begun(Dialect::Chat, true);
        let tools = body["tools"].as_array_mut().unwrap();
        for name in ["tool_output_cache", "tool_output_cache_grep"] {
            tools.push(json!({"type": "function",
                "function": {"name": name, "parameters": schema}}));
        }
        add_round(Dialect::Chat, &mut body, 0, "", &[log(2_000)]);
        let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status.is_success(), "{preset}: {text}");
        // The client sees its own call, and nothing of ours.
        assert!(text.contains("of-the-client"), "{preset}: {text}");
        assert!(!text.contains("trimtab_tool"), "{preset}: {text}");
        let requests = upstream.requests();
        assert_eq!(requests.len(), 2, "{preset}");
        assert_eq!(
            requests[1].tools.len(),
            5,
            "{preset}: {:?}",
            requests[1].tools
        );
        let window = String::from_utf8_lossy(&requests[0].body).replace("\\\"", "\"");
        let call = "all of it: trimtab_tool_output_cache({\"ref_id\"";
        assert!(window.contains(call), "{preset}: the marker names the tool");
        let served = requests[1].read_messages();
        let outputs = served.iter().flat_map(Message::outputs);
        let read = outputs.last().map(|output| output.text().into_owned());
        assert!(
            read.is_some_and(|text| text.contains("1  2026-03-14")),
            "{preset}"
        );
    }
}

/// The tools of ours and of the client that a window calls by name, in texts and in calls.
fn names_called(received: &ReceivedRequest) -> BTreeSet<String> {
    let window = String::from_utf8_lossy(&received.body).replace("\\\"", "\"");
    let before_argument = window.split("({\"ref_id\"").collect::<Vec<_>>();
    let (_, calls) = before_argument.split_last().unwrap();
    let name = |text: &&str| {
        let is_joint = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        text.rsplit(is_joint).next().unwrap_or_default().to_owned()
    };
    let messages = received.read_messages();
    let made = messages.iter().flat_map(Message::calls);
    let made = made.map(|call| call.name.clone());
    let made = made.filter(|name| name.contains("output_cache"));
    calls.iter().map(name).chain(made).collect()
}

/// A model that reads the first ref of every window once, with the tool of ours.
fn reads_first(received: &ReceivedRequest) -> ScriptedReply {
    let has_enough = received.last.contains("no more of these calls");
    if is_own(received) || has_enough || received.last.contains("    1  ") {
        return ScriptedReply::text("go on");
    }
    let ours = ["trimtab_tool_output_cache", "tool_output_cache"];
    let mut ours = ours.into_iter();
    let tool = ours.find(|name| received.tools.iter().any(|tool| tool == name));
    let id = refs_in(&messages_of(received)).into_iter().next();
    tool.zip(id).map_or_else(
        || ScriptedReply::text("go on"),
        |(tool, id)| ScriptedReply::call(tool, json!({"ref_id": id, "limit": 3})),
    )
}

/// A client that has tools of our names in the middle of its session, and then no more.
async fn window_names_the_tools_that_are_offered(preset: &str, dialect: Dialect) {
    let upstream = Upstream::start(UpstreamOptions::new(ReplySource::with(reads_first)))
        .await
        .unwrap();
    let url = upstream.url();
    let args = ["--upstream", &url, "--window", "24000", "--preset", preset];
    let served = Served::start(&args);
    let mut body = begun(dialect, true);
    let plain = body["tools"].clone();
    let mut theirs = plain.clone();
    let mut own = plain[0].clone();
    match dialect {
        Dialect::Chat => own["function"]["name"] = json!("tool_output_cache"),
        Dialect::Messages | Dialect::Responses => own["name"] = json!("tool_output_cache"),
    }
    theirs.as_array_mut().unwrap().push(own);
    for number in 0..12_usize {
        add_round(dialect, &mut body, number, "next", &[log(500 + number)]);
        let has_theirs = (4..8).contains(&number);
        body["tools"] = if has_theirs { &theirs } else { &plain }.clone();
        send(&served, dialect, &body).await;
        let requests = upstream.requests().clone();
        // The last of many hidden rounds says that there are no more, and offers no tool of ours.
        let is_main = |one: &ReceivedRequest| {
            !is_own(one) && !one.tools.is_empty() && !one.last.contains("no more of these calls")
        };
        let last = requests.iter().rfind(|one| is_main(one)).unwrap();
        let called = names_called(last);
        let right = if has_theirs {
            "trimtab_tool_output_cache"
        } else {
            "tool_output_cache"
        };
        let told = format!(
            "{preset} {dialect} {number}: {called:?} of {:?}",
            last.tools
        );
        assert!(called.iter().all(|name| name == right), "{told}");
        if number > 4 {
            assert!(!called.is_empty(), "{told}");
            assert!(last.tools.iter().any(|tool| tool == right), "{told}");
        }
    }
    let broken = upstream.violations();
    assert!(broken.is_empty(), "{preset} {dialect}: {broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn window_follows_a_client_that_adds_and_removes_tools_of_the_same_names() {
    let presets = ["steady", "checkpoint", "turns"];
    for (preset, dialect) in presets.into_iter().zip(Dialect::ALL) {
        window_names_the_tools_that_are_offered(preset, dialect).await;
    }
}
