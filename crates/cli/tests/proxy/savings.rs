//! Compares the savings that the proxy reports with the counts of the upstream: the same session
//! runs directly and through the proxy.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use trimtab_cli::proxy::http::HttpClient;
use trimtab_model::{Dialect, Usage};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{
    PromptCacheRules, ReceivedRequest, ReplySource, Upstream, UpstreamOptions,
};
use trimtab_wire::catalogue::Catalogue;

use crate::model::CALL_HEADER;
use crate::run::{PATIENCE, Served, say};
use crate::talk::{log, path, post, with_call, with_output};
use crate::windows;

/// Estimates are off by so much at most, of a hundred, once usage was reported.
const TOLERANCE: f64 = 5.0;
/// How long the client thinks before its next call: the proxy learns meanwhile.
const THINKING: Duration = Duration::from_millis(50);

/// A session of a client.
#[derive(Clone, Copy)]
struct Play {
    dialect: Dialect,
    rounds: usize,
    /// Lines of each output.
    lines: usize,
    /// Tools that are defined and never called.
    spare_tools: usize,
    stream: bool,
    /// Whether no output has a line of another one.
    distinct: bool,
    /// The call in which the model asks for a stored output, where it can.
    asks_at: Option<usize>,
    marks: CacheMarks,
}

/// What a client marks for the cache, where clients do that.
#[derive(Clone, Copy, Debug)]
enum CacheMarks {
    Nothing,
    /// The end, for five minutes.
    End,
    /// The end, for an hour.
    EndForAnHour,
}

impl Play {
    fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            rounds: 10,
            lines: 900,
            spare_tools: 0,
            stream: false,
            distinct: false,
            asks_at: None,
            marks: CacheMarks::End,
        }
    }

    async fn upstream(self, window: Option<u64>) -> Upstream {
        let reply = move |received: &ReceivedRequest| {
            if received.last.contains("<summary>") {
                return ScriptedReply::text("<summary>logs were read</summary>");
            }
            let call = received.header(CALL_HEADER);
            let call = call.and_then(|call| call.parse().ok());
            if call.is_some()
                && call == self.asks_at
                && windows::may_ask(received)
                && let Some(shown) = windows::shown_ref(received)
            {
                let arguments = json!({"ref_id": shown, "offset": 100, "limit": 50});
                return ScriptedReply::call("tool_output_cache", arguments);
            }
            ScriptedReply::text("I see.")
        };
        let options = UpstreamOptions {
            window,
            cache: PromptCacheRules {
                by_markers: true,
                ..PromptCacheRules::default()
            },
            ..UpstreamOptions::new(ReplySource::with(reply))
        };
        Upstream::start(options).await.unwrap()
    }

    /// Plays it against `url`.
    async fn at(self, url: &str) {
        let mut body = with_output(self.dialect, self.lines);
        body["stream"] = self.stream.into();
        if self.dialect == Dialect::Chat && self.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let tools = body["tools"].as_array_mut().unwrap();
        tools.extend((0..self.spare_tools).map(|number| spare_tool(self.dialect, number)));
        for call in 0..self.rounds {
            let sent = self.marked(&body);
            let number = call.to_string();
            let answer = post(url, path(self.dialect), &sent, &[(CALL_HEADER, &number)]).await;
            let said = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(answer.status.is_success(), "call {call}: {said}");
            let mut output = log(self.lines + call);
            if self.distinct {
                output = output.replace("worker", &format!("worker of run {call},"));
            }
            with_call(self.dialect, &mut body, &format!("c{}", call + 2), &output);
            tokio::time::sleep(THINKING).await;
        }
    }
}

impl Play {
    /// The body with its marks for the cache.
    fn marked(self, body: &Value) -> Value {
        let mut body = body.clone();
        let marker = match self.marks {
            CacheMarks::Nothing => return body,
            CacheMarks::End => json!({"type": "ephemeral"}),
            CacheMarks::EndForAnHour => json!({"type": "ephemeral", "ttl": "1h"}),
        };
        if self.dialect == Dialect::Messages {
            let last = body["messages"].as_array_mut().unwrap().last_mut().unwrap();
            last["content"][0]["cache_control"] = marker;
        }
        body
    }
}

fn spare_tool(dialect: Dialect, number: usize) -> Value {
    let name = format!("spare_{number}");
    let about = "Does something that nobody in this session has a use for. ".repeat(12);
    let schema = json!({"type": "object", "properties": {"what": {"type": "string"}}});
    match dialect {
        Dialect::Chat => json!({"type": "function", "function":
            {"name": name, "description": about, "parameters": schema}}),
        Dialect::Responses => json!({"type": "function",
            "name": name, "description": about, "parameters": schema}),
        Dialect::Messages => json!({"name": name, "description": about, "input_schema": schema}),
    }
}

/// What an upstream counted for the requests that it answered.
fn usages(upstream: &Upstream) -> Vec<Usage> {
    let requests = upstream.requests();
    requests.iter().filter_map(|one| one.usage).collect()
}

/// What the proxy said, and what the upstreams counted.
struct Compared {
    /// The status of the proxy.
    status: Value,
    /// Its last words.
    line: String,
    /// Its records of the client's calls.
    records: Vec<Value>,
    straight: Vec<Usage>,
    managed: Vec<Usage>,
}

async fn compared(play: Play, window: Option<u64>, args: &[&str]) -> Compared {
    let boundless = play.upstream(None).await;
    play.at(&boundless.url()).await;
    let upstream = play.upstream(window).await;
    let url = upstream.url();
    let mut all = vec!["--upstream", &url, "--json"];
    all.extend(args);
    let served = Served::start(&all);
    play.at(&served.url).await;
    let status = format!("{}/trimtab/status", served.url);
    let headers = [("x-api-key", "k")];
    let http = HttpClient::default();
    let status = http.send(Method::GET, &status, &headers, Vec::new(), PATIENCE);
    let status = serde_json::from_slice(&status.await.unwrap().body).unwrap();
    served.signal("TERM");
    let line: Value = serde_json::from_str(&served.wait_for(" tokens ")).unwrap();
    let records = served.end().1;
    let records = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let is_call = |record: &Value| record["dialect"].is_string() && record["action"] != "asked";
    Compared {
        status,
        line: line["message"].as_str().unwrap().to_owned(),
        records: records.filter(is_call).collect(),
        straight: usages(&boundless),
        managed: usages(&upstream),
    }
}

impl Compared {
    fn number(&self, field: &str) -> i64 {
        self.status[field].as_i64().unwrap()
    }

    /// What was saved by the upstreams' own counts. A call that would not have fit the window
    /// that the proxy knew of counts as a full window.
    fn saved(&self) -> i64 {
        assert_eq!(self.records.len(), self.straight.len());
        let straight = self.straight.iter().zip(&self.records);
        let without = straight.map(|(usage, record)| {
            let window = record["window"].as_u64().filter(|window| *window > 0);
            usage.prompt().min(window.unwrap_or(u64::MAX))
        });
        let with: u64 = self.managed.iter().map(Usage::prompt).sum();
        i64::try_from(without.sum::<u64>()).unwrap() - i64::try_from(with).unwrap()
    }

    /// The claim of the status agrees with what was counted.
    #[track_caller]
    fn agree(&self, name: &str, tolerance: f64) {
        let (claimed, counted) = (self.number("tokens_saved"), self.saved());
        // Hidden rounds are counted exactly: what is estimated is what the client's own calls
        // saved.
        let own = |record: &Value| {
            let usage = &record["usage"];
            let fields = ["input", "cache_read", "cache_creation"];
            fields
                .map(|field| usage[field].as_i64().unwrap())
                .iter()
                .sum::<i64>()
        };
        let sent: i64 = self.records.iter().map(own).sum();
        let all = self.managed.iter().map(Usage::prompt).sum::<u64>();
        let hidden = i64::try_from(all).unwrap() - sent;
        let off = 100.0 * (claimed - counted) as f64 / (counted + hidden) as f64;
        say(&format!(
            "{name}: {claimed} claimed, {counted} counted, {off:.1} % off; {}",
            self.line
        ));
        assert!(counted > 10_000, "{name}: {counted}");
        assert!(
            off.abs() <= tolerance,
            "{name}: {claimed} claimed, {counted} counted"
        );
        let (before, after) = (self.number("tokens_before"), self.number("tokens_after"));
        assert_eq!(before - after, claimed);
    }

    /// The money that the last line claims agrees with what the usages cost.
    #[track_caller]
    fn money_agrees(&self, name: &str, model: &str) {
        let model = Catalogue::embedded().find(model).unwrap().model;
        let cost = |usages: &[Usage]| -> f64 {
            let costs = usages
                .iter()
                .map(|usage| model.cost(usage).unwrap().dollars());
            costs.sum()
        };
        let (without, with) = (cost(&self.straight), cost(&self.managed));
        let words: Vec<&str> = self.line.split([' ', ',']).collect();
        let dollars = |word: &str| {
            let at = words.iter().position(|one| *one == word).unwrap();
            words[at - 1]
                .trim_start_matches('$')
                .parse::<f64>()
                .unwrap()
        };
        say(&format!(
            "{name}: ${without:.4} without, ${with:.4} with; {}",
            self.line
        ));
        assert!(
            (dollars("spent") - with).abs() <= with * 0.02,
            "{name}: {}",
            self.line
        );
        let saved = words.iter().rposition(|word| *word == "saved").unwrap();
        let saved: f64 = words[saved - 1].trim_start_matches('$').parse().unwrap();
        let counted = without - with;
        // The line rounds to cents.
        let off = ((saved - counted).abs() - 0.005).max(0.0) * 100.0 / counted;
        assert!(off <= TOLERANCE, "{name}: {off:.1} % off: {}", self.line);
    }
}

/// A window that holds everything, and outputs that are cut when they come in.
const SHORT_VIEWS: [&str; 4] = ["--window", "400k", "--set", "views.default.cap=20000"];

#[tokio::test(flavor = "multi_thread")]
async fn claimed_savings_agree_with_the_upstream_in_three_dialects() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let play = Play {
                stream,
                ..Play::of(dialect)
            };
            let done = compared(play, None, &SHORT_VIEWS).await;
            let name = format!("{dialect}, stream {stream}");
            done.agree(&name, TOLERANCE);
            let model = if dialect == Dialect::Messages {
                "claude-sonnet-4-5"
            } else {
                "gpt-4o"
            };
            done.money_agrees(&name, model);
            assert_eq!(done.number("over_window"), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_money_agrees_with_the_upstream_whatever_is_marked() {
    for marks in [CacheMarks::Nothing, CacheMarks::EndForAnHour] {
        let play = Play {
            marks,
            ..Play::of(Dialect::Messages)
        };
        let done = compared(play, None, &SHORT_VIEWS).await;
        done.money_agrees(&format!("{marks:?}"), "claude-sonnet-4-5");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_savings_of_a_known_conversation_agree_with_the_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").display().to_string();
    let play = Play::of(Dialect::Chat);
    let mut args = SHORT_VIEWS.to_vec();
    args.extend(["--store", &store, "--observe"]);
    compared(play, None, &args).await;
    args.pop();
    // What the client sends again is in a branch of its own, and in the first one at the end.
    for name in ["observed before", "managed before"] {
        let done = compared(play, None, &args).await;
        done.agree(name, TOLERANCE);
        done.money_agrees(name, "gpt-4o");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_savings_agree_with_many_tools() {
    let play = Play {
        spare_tools: 60,
        ..Play::of(Dialect::Messages)
    };
    let done = compared(play, None, &SHORT_VIEWS).await;
    // Tools and outputs are different kinds of text, and the first prompt has both.
    done.agree("many tools", 3.0 * TOLERANCE);
    // The tools are in both figures of every record.
    for (record, usage) in done.records.iter().zip(&done.straight) {
        let before = record["tokens_before"].as_f64().unwrap();
        assert!(before > usage.prompt() as f64 * 0.6, "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_over_the_window_counts_as_a_full_window() {
    let done = compared(Play::of(Dialect::Chat), Some(60_000), &["--window", "60k"]).await;
    done.agree("over the window", TOLERANCE);
    let over = done.straight.iter().filter(|usage| usage.prompt() > 60_000);
    let counted = i64::try_from(over.count()).unwrap();
    let claimed = done.number("over_window");
    assert!(claimed.abs_diff(counted) <= 1, "{claimed}, not {counted}");
    assert!(done.line.contains("would not have fit"), "{}", done.line);
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_rounds_reduce_the_savings() {
    for stream in [false, true] {
        let play = Play {
            stream,
            asks_at: Some(6),
            ..Play::of(Dialect::Chat)
        };
        let done = compared(play, None, &SHORT_VIEWS).await;
        assert_eq!(
            done.managed.len(),
            done.straight.len() + 1,
            "no hidden round"
        );
        done.agree("a hidden round", TOLERANCE);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_an_overflow_is_counted_once() {
    // The proxy believes in a larger window than the upstream has.
    let done = compared(Play::of(Dialect::Chat), Some(20_000), &SHORT_VIEWS).await;
    assert!(done.number("recovered") > 0, "{}", done.status);
    done.agree("overflows", TOLERANCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_that_fits_costs_no_more_than_the_retrieval_tools() {
    for dialect in Dialect::ALL {
        let play = Play {
            rounds: 6,
            lines: 40,
            spare_tools: 20,
            distinct: true,
            ..Play::of(dialect)
        };
        let done = compared(play, None, &["--window", "200k"]).await;
        let (claimed, counted) = (done.number("tokens_saved"), done.saved());
        assert!(counted < 0, "{dialect}: {counted}");
        let off = (claimed - counted).abs();
        assert!(
            off * 10 <= -counted,
            "{dialect}: {claimed} claimed, {counted} counted"
        );
        for record in &done.records {
            assert_eq!(record["action"], "unchanged", "{record}");
            let tokens = |name: &str| record[name].as_i64().unwrap();
            let ours = tokens("tokens_after") - tokens("tokens_before");
            assert!((1..600).contains(&ours), "{record}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn observed_request_saves_nothing() {
    let args = [&SHORT_VIEWS[..], &["--observe"]].concat();
    let done = compared(Play::of(Dialect::Chat), None, &args).await;
    assert_eq!((done.saved(), done.number("tokens_saved")), (0, 0));
    assert!(done.line.contains("would have been sent"), "{}", done.line);
}

#[tokio::test(flavor = "multi_thread")]
async fn compress_and_headers_count_tools_on_both_sides() {
    let upstream = Play::of(Dialect::Messages).upstream(None).await;
    let served = Served::start(&["--upstream", &upstream.url(), "--window", "200k"]);
    let plain = with_output(Dialect::Messages, 6_000);
    let mut equipped = plain.clone();
    let spare = (0..60).map(|number| spare_tool(Dialect::Messages, number));
    equipped["tools"].as_array_mut().unwrap().extend(spare);
    let mut figures = Vec::new();
    // The first one teaches how the model counts.
    for body in [&plain, &plain, &equipped] {
        let answer = post(&served.url, "/v1/messages", body, &[("x-api-key", "one")]).await;
        let number = |name: &str| answer.header(name).parse::<i64>().unwrap();
        let sent = (
            number("x-trimtab-tokens-before"),
            number("x-trimtab-tokens-after"),
        );
        let answer = post(&served.url, "/v1/compress", body, &[("x-api-key", "two")]).await;
        let found: Value = serde_json::from_slice(&answer.body).unwrap();
        let number = |name: &str| found[name].as_i64().unwrap();
        let (before, after) = (number("tokens_before"), number("tokens_after"));
        assert_eq!(number("tokens_saved"), before - after);
        figures.push((sent, (before, after)));
    }
    let [_, (sent, compressed), (with_tools, compressed_with_tools)] = figures[..] else {
        panic!("three bodies were sent");
    };
    for (plain, equipped) in [(sent, with_tools), (compressed, compressed_with_tools)] {
        let more = (equipped.0 - plain.0, equipped.1 - plain.1);
        assert!(more.0 > 5_000, "the tools are not counted before: {more:?}");
        assert!((more.0 - more.1).abs() < more.0 / 10, "{more:?}");
    }
}
