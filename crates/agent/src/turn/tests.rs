use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trimtab_engine::verify::verify;
use trimtab_model::{Call, Dialect, Role};
use trimtab_store::{MemoryStore, SessionId, Store};

use super::*;
use crate::model::{Model, ModelBackend, ModelClient, ModelReply, ReplySink};
use crate::tools::{Confirm, Tool, ToolDefinition, ToolFuture, ToolOutcome, ToolSet, Workspace};
use crate::{AgentEvents, AgentSettings};

/// What a step of a fake model does.
enum Does {
    Says(&'static str),
    Calls(&'static [(&'static str, &'static str)]),
    BreaksOffAfter(&'static str),
    /// Says this and then nothing for ever.
    HangsAfter(&'static str),
    Fails(ModelError),
}

struct Fake {
    steps: Mutex<std::vec::IntoIter<Does>>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
    calls: AtomicUsize,
}

impl Fake {
    async fn step(
        does: Option<Does>,
        id: usize,
        sink: ReplySink,
    ) -> Result<ModelAnswer, ModelError> {
        let said = |text: &'static str| sink.send(ReplyPiece::Text(text.to_owned()));
        match does.unwrap_or(Does::Says("done")) {
            Does::Says(text) => {
                said(text).await;
                Ok(ModelAnswer::new(Message::assistant(text)))
            }
            Does::Calls(calls) => {
                let mut message = Message::assistant("");
                for (at, (name, arguments)) in calls.iter().enumerate() {
                    let id = format!("call_{id}_{at}");
                    message = message.with_call(Call::new(id, *name, *arguments));
                }
                Ok(ModelAnswer::new(message))
            }
            Does::BreaksOffAfter(text) => {
                said(text).await;
                let why = "reset".to_owned();
                Err(ModelError::Cut { why })
            }
            Does::HangsAfter(text) => {
                said(text).await;
                std::future::pending().await
            }
            Does::Fails(error) => Err(error),
        }
    }
}

impl ModelBackend for Fake {
    fn dialect(&self) -> Dialect {
        Dialect::Messages
    }

    fn call(&self, request: ModelRequest) -> ModelReply {
        self.asked.lock().unwrap().push(request);
        let does = self.steps.lock().unwrap().next();
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        ModelReply::spawn(|sink| Self::step(does, id, sink))
    }
}

/// Waits as long as it is told, and notes when it ended.
struct Nap(Arc<AtomicUsize>);

impl Tool for Nap {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("nap", "Sleeps.", json!({"type": "object"}))
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move {
            let ms = arguments["ms"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            self.0.fetch_add(1, Ordering::Relaxed);
            ToolOutcome::text(format!("slept {ms} ms"))
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

/// Ends only once two calls of it are under way.
struct Meet(tokio::sync::Barrier);

impl Tool for Meet {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("meet", "Waits for another.", json!({"type": "object"}))
    }

    fn call<'a>(&'a self, _: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async {
            self.0.wait().await;
            ToolOutcome::text("met")
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

/// A tool with a fault of its own.
struct Broken;

impl Tool for Broken {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("broken", "Panics.", json!({"type": "object"}))
    }

    fn call<'a>(&'a self, _: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async { panic!("on purpose") })
    }
}

struct Set {
    agent: Agent,
    events: AgentEvents,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
    naps: Arc<AtomicUsize>,
}

fn set(steps: Vec<Does>) -> Set {
    let (asked, naps) = <(Arc<Mutex<_>>, Arc<AtomicUsize>)>::default();
    let client = ModelClient::new(Fake {
        steps: Mutex::new(steps.into_iter()),
        asked: Arc::clone(&asked),
        calls: AtomicUsize::new(0),
    });
    let workspace = Workspace::new(".", Confirm::Never).unwrap();
    let mut settings = AgentSettings::new(Model::new(client, "fake"), workspace);
    settings.system = "be brief".to_owned();
    settings.limits.window = Some(50_000);
    let tools = ToolSet::none().with(Nap(naps.clone())).with(Broken);
    settings.tools = tools.with(Meet(tokio::sync::Barrier::new(2)));
    settings.tool_time = Duration::from_secs(20);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (agent, events) = Agent::open(store, SessionId::new("s").unwrap(), settings).unwrap();
    Set {
        agent,
        events,
        asked,
        naps,
    }
}

/// Waits until a call is carried out or an answer comes in.
async fn until_under_way(events: &mut AgentEvents) {
    while let Some(event) = events.recv().await {
        if matches!(event, AgentEvent::Call(_) | AgentEvent::Text(_)) {
            return;
        }
    }
}

/// The log in short, and the window judged.
fn log(agent: &mut Agent) -> Vec<String> {
    let window: Vec<_> = agent
        .session_mut()
        .window()
        .unwrap()
        .messages()
        .cloned()
        .collect();
    let faults = verify(&window, Dialect::Messages);
    assert!(faults.is_empty(), "{faults:?}");
    let log = agent.session().projection().log().messages().iter();
    log.map(|message| match message.role {
        Role::Assistant if message.has_calls() => "calls".to_owned(),
        role => format!("{}: {}", role.as_str(), message.text()),
    })
    .collect()
}

#[tokio::test]
async fn turn_runs_calls_until_an_answer() {
    let calls = &[("meet", "{}"), ("meet", "{}"), ("nap", "{oops")];
    let mut set = set(vec![
        Does::Calls(calls),
        Does::Calls(&[("broken", "{}")]),
        Does::Says("good"),
    ]);
    let turn = set.agent.turn("sleep").await.unwrap();
    assert_eq!(
        (turn.end, turn.rounds, turn.text.as_str()),
        (TurnEnd::Answered, 3, "good")
    );
    let log = log(&mut set.agent);
    assert_eq!(
        log[..5],
        [
            "system: be brief",
            "user: sleep",
            "calls",
            // Both at the same time: one alone would never end.
            "tool: met",
            "tool: met"
        ]
    );
    assert!(log[5].contains("not valid JSON"), "{log:?}");
    assert!(log[7].contains("the tool broke down"), "{log:?}");
    let mut told = Vec::new();
    while let Ok(event) = set.events.try_recv() {
        told.push(match event {
            AgentEvent::Call(call) => call.name,
            AgentEvent::Output { output, .. } => output.text().into_owned(),
            AgentEvent::Text(text) => text,
            other => format!("{other:?}"),
        });
    }
    assert_eq!(told[..5], ["meet", "meet", "nap", "met", "met"]);
    assert_eq!(told.last().unwrap(), "TurnEnded(Answered)");
}

#[tokio::test]
async fn hanging_tool_is_stopped() {
    let mut set = set(vec![Does::Calls(&[("nap", "{\"ms\":60000}")])]);
    set.agent.settings.tool_time = Duration::from_millis(50);
    let turn = set.agent.turn("sleep").await.unwrap();
    assert_eq!(turn.text, "done");
    assert!(log(&mut set.agent)[3].contains("`nap` did not end within 0 s"));
}

#[tokio::test]
async fn an_interrupt_leaves_a_marker_and_a_valid_log() {
    let mut set = set(vec![
        Does::Calls(&[("nap", "{\"ms\":60000}")]),
        Does::HangsAfter("well, "),
        Does::Says("I am back"),
    ]);
    let interrupt = set.agent.interrupt();
    for expected in ["", "well, "] {
        let events = &mut set.events;
        let once_under_way = async {
            until_under_way(events).await;
            interrupt.interrupt();
            std::future::pending::<()>().await;
        };
        let turn = tokio::select! {
            turn = set.agent.turn("go") => turn.unwrap(),
            () = once_under_way => unreachable!(),
        };
        assert_eq!(
            (turn.end, turn.text.as_str()),
            (TurnEnd::Interrupted, expected)
        );
    }
    assert_eq!(set.naps.load(Ordering::Relaxed), 0);
    let turn = set.agent.turn("still there?").await.unwrap();
    assert_eq!(turn.text, "I am back");
    let log = log(&mut set.agent);
    assert_eq!(log[3], "tool: the user interrupted this call");
    assert!(log[4].starts_with("user: <turn-aborted>"), "{log:?}");
    assert_eq!(log[6], "assistant: well, ");
    assert!(log[7].starts_with("user: <turn-aborted>"));
    assert_eq!(log.len(), 10);
}

#[tokio::test]
async fn dropped_turn_leaves_a_usable_session() {
    let mut set = set(vec![Does::Calls(&[
        ("nap", "{\"ms\":60000}"),
        ("nap", "{}"),
    ])]);
    tokio::select! {
        turn = set.agent.turn("sleep") => panic!("{turn:?}"),
        () = until_under_way(&mut set.events) => {}
    }
    assert_eq!(set.agent.turn("hello").await.unwrap().text, "done");
    let log = log(&mut set.agent);
    assert_eq!(
        log[3..5],
        ["tool: the session ended before this call was answered"; 2]
    );
    assert_eq!(log[5..], ["user: hello", "assistant: done"]);
}

#[tokio::test]
async fn cut_off_answer_continues_without_repetition() {
    let mut set = set(vec![
        Does::BreaksOffAfter("one two "),
        Does::BreaksOffAfter("three "),
        Does::Says("four"),
    ]);
    assert_eq!(set.agent.turn("count").await.unwrap().text, "four");
    let log = log(&mut set.agent);
    assert_eq!(log[2], "assistant: one two ");
    assert!(log[3].contains("go on exactly where you stopped"));
    assert_eq!(
        (log[4].as_str(), log[6].as_str()),
        ("assistant: three ", "assistant: four")
    );
    let mut shown = String::new();
    while let Ok(event) = set.events.try_recv() {
        if let AgentEvent::Text(text) = event {
            shown.push_str(&text);
        }
    }
    assert_eq!(shown, "one two three four");
}

#[tokio::test]
async fn error_ends_the_turn_but_not_the_session() {
    let refused = ModelError::Refused {
        url: "http://h".to_owned(),
        status: 400,
        message: "no".to_owned(),
    };
    let mut set = set(vec![Does::Fails(refused), Does::Says("here")]);
    let error = set.agent.turn("one").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "http://h refused the request (HTTP 400): no"
    );
    assert_eq!(set.agent.go_on().await.unwrap().text, "here");
    assert_eq!(log(&mut set.agent)[1..], ["user: one", "assistant: here"]);
}

#[tokio::test]
async fn endless_rounds_are_stopped() {
    let steps = (0..10).map(|_| Does::Calls(&[("nap", "{}")])).collect();
    let mut set = set(steps);
    set.agent.settings.max_rounds = 4;
    let turn = set.agent.turn("go").await.unwrap();
    assert_eq!((turn.end, turn.rounds), (TurnEnd::OutOfRounds, 4));
    assert_eq!(set.asked.lock().unwrap().len(), 4);
    assert_eq!(set.naps.load(Ordering::Relaxed), 4);
}

#[test]
fn output_limit_shrinks_for_estimation_errors() {
    let limit = |tokens| {
        let ready = ReadyWindow {
            max_output: Some(1_000),
            tokens,
        };
        answer_limit(&ready, Some(20_000)).unwrap()
    };
    assert_eq!(
        [limit(1_000), limit(18_800), limit(18_950)],
        [1_000, 1_000, 850]
    );
    assert_eq!(limit(19_700), 500);
}
