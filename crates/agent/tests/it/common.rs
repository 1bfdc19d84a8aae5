//! Helpers: an agent, a model that keeps it busy, and the invariants to check afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use trimtab_agent::model::{
    Endpoint, HttpModel, Model, ModelBackend, ModelClient, RetryPolicy, Timeouts,
};
use trimtab_agent::tools::{
    Confirm, Tool, ToolDefinition, ToolFuture, ToolOutcome, ToolSet, Workspace,
};
use trimtab_agent::{Agent, AgentEvents, AgentSettings};
use trimtab_engine::policy::Policy;
use trimtab_model::{Dialect, Message};
use trimtab_store::{SessionId, Store};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream};

/// The window of the models here, in tokens.
pub(crate) const WINDOW: u64 = 24_000;

/// What an output of the workload is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The largest output of every fifty, in bytes.
    pub(crate) largest: usize,
    /// The others are this large at most.
    pub(crate) large: usize,
}

impl Sizes {
    /// None is larger than this.
    pub(crate) fn up_to(large: usize) -> Self {
        Self {
            largest: large,
            large,
        }
    }
}

/// A tool whose output depends on nothing but its number.
pub(crate) struct Produce(pub(crate) Sizes);

impl Tool for Produce {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
            "produce",
            "Produces an output.",
            json!({
                "type": "object",
                "properties": {"n": {"type": "integer", "description": "Which."}},
                "required": ["n"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move {
            let n = arguments["n"].as_u64().unwrap_or_default();
            ToolOutcome::text(output(usize::try_from(n).unwrap(), self.0))
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

/// Output number `n`: lines, JSON, code or a long line, short mostly and very long at times.
pub(crate) fn output(n: usize, sizes: Sizes) -> String {
    let size = match n % 10 {
        3 => sizes.large / 20,
        7 if n % 50 == 7 => sizes.largest,
        7 => sizes.large / 10,
        9 => sizes.large / 100,
        at => 40 + at * 300,
    };
    let line = match n % 4 {
        0 => format!(
            "2026-01-01 INFO worker {n} request /api/items/{n} took {} ms\n",
            n % 89
        ),
        1 => format!("{{\"id\": {n}, \"path\": \"src/part_{n}.rs\", \"ok\": true}},"),
        2 => format!("fn part_{n}(input: &str) -> usize {{ input.len() + {n} }}\n"),
        _ => format!("wort {n} \u{e9}\u{1f600} "),
    };
    let text = line.repeat(size / line.len() + 1);
    format!("{text}\nend of output {n}")
}

/// True if a request asks for a summary.
pub(crate) fn is_summary(received: &ReceivedRequest) -> bool {
    let body = received.json();
    let choice = &body["tool_choice"];
    received.tools.is_empty() || choice == "none" || choice["type"] == "none"
}

/// A model that has `rounds` rounds of work in turns of ten, and writes summaries.
pub(crate) fn busy(rounds: usize, thinks: bool) -> (ReplySource, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&done);
    let source = ReplySource::with(move |received| {
        if is_summary(received) {
            return ScriptedReply::text(
                "<retain>Never touch the payments.</retain>\n<summary>Outputs were produced, one \
                 after the other; the work goes on.</summary>",
            );
        }
        let n = counter.fetch_add(1, Ordering::SeqCst);
        let reply = match n {
            _ if n >= rounds || n % 11 == 10 => return ScriptedReply::text(format!("answer {n}")),
            // The model looks something up again.
            _ if n % 7 == 5 => ScriptedReply::call(
                "tool_output_cache_grep",
                json!({"pattern": format!("end of output {}", n / 2)}),
            ),
            // Two calls at once.
            _ if n % 5 == 4 => ScriptedReply::call("produce", json!({"n": n}))
                .and_call("produce", json!({"n": n + 1_000_000})),
            _ => ScriptedReply::call("produce", json!({"n": n})),
        };
        if thinks {
            reply.thinking(format!("I need output {n}."))
        } else {
            reply
        }
    });
    (source, done)
}

/// A client for `upstream` that does not wait long.
pub(crate) fn http(dialect: Dialect, base: &str) -> HttpModel {
    HttpModel::new(dialect, Endpoint::new(base).unwrap())
        .timeouts(Timeouts {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(20),
            idle: Duration::from_secs(20),
        })
        .retries(RetryPolicy {
            most: 6,
            first_wait: Duration::from_millis(5),
            longest_wait: Duration::from_secs(2),
        })
}

/// An agent on a client of one's own, with its folder.
pub(crate) struct Set {
    pub(crate) agent: Agent,
    pub(crate) events: AgentEvents,
    pub(crate) folder: TempDir,
}

pub(crate) fn settings(client: impl ModelBackend + 'static, folder: &TempDir) -> AgentSettings {
    let workspace = Workspace::new(folder.path(), Confirm::Always).unwrap();
    let model = Model::new(ModelClient::new(client), "gpt-5");
    let mut settings = AgentSettings::new(model, workspace);
    settings.system = String::from("You work in a test. Be brief.");
    settings.limits.window = Some(WINDOW);
    settings.limits.max_output = Some(1_000);
    settings.tools = ToolSet::none().with(Produce(Sizes::up_to(60_000)));
    settings
}

pub(crate) fn set(
    client: impl ModelBackend + 'static,
    store: Arc<dyn Store>,
    change: impl FnOnce(&mut AgentSettings),
) -> Set {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(client, &folder);
    change(&mut settings);
    let id = SessionId::new("s").unwrap();
    let (agent, events) = Agent::open(store, id, settings).unwrap();
    Set {
        agent,
        events,
        folder,
    }
}

pub(crate) fn preset(name: &str) -> Policy {
    Policy::preset(name).unwrap()
}

/// The window as it would be sent, as bytes.
pub(crate) fn window(agent: &mut Agent) -> String {
    let window = agent.session_mut().window().unwrap();
    let messages: Vec<&Message> = window.messages().map(|message| &**message).collect();
    serde_json::to_string(&messages).unwrap()
}

/// Everything that ever came in can be had back, byte for byte. Gives how much that was.
pub(crate) fn all_is_redeemable(agent: &Agent, sizes: Sizes) -> usize {
    let session = agent.session();
    let log = session.projection().log().messages();
    let mut seen = 0;
    for (at, message) in log.iter().enumerate() {
        for call in message.calls().filter(|call| call.name == "produce") {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            let n = usize::try_from(arguments["n"].as_u64().unwrap()).unwrap();
            let mut behind = log
                .iter()
                .skip(at + 1)
                .flat_map(|message| message.outputs());
            let found = behind.find(|output| output.call_id == call.id);
            // A call that a killed process did not get to has an output that says so, or none.
            let Some(found) = found.filter(|output| !output.is_error) else {
                continue;
            };
            let stored = found.stored.as_ref().unwrap();
            let bytes = session.store().get(session.id(), stored.id()).unwrap();
            assert!(bytes == output(n, sizes).as_bytes(), "output {n}");
            seen += 1;
        }
    }
    seen
}

/// The upstream saw nothing but good requests that fit.
pub(crate) fn all_was_well(upstream: &Upstream, limit: u64, who: &str) {
    assert_eq!(upstream.violations(), Vec::<String>::new(), "{who}");
    for received in upstream.requests() {
        let answer = received.answer_limit.unwrap_or(0);
        let asked = received.tokens + answer;
        let (serial, outcome) = (received.serial, received.outcome);
        assert!(
            asked <= limit,
            "{who}: request {serial}: {asked} tokens, {outcome:?}"
        );
    }
}
