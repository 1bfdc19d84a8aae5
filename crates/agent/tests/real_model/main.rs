//! The agent with a real model, if one is served: see `run.sh` in this folder.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and this one is looked at"
)]

use std::sync::Arc;
use std::time::Duration;

use trimtab_agent::model::{Endpoint, HttpModel, Model, ModelClient, Timeouts};
use trimtab_agent::tools::{Confirm, ToolSet, Workspace};
use trimtab_agent::{Agent, AgentEvent, AgentEvents, AgentSettings, TurnEnd};
use trimtab_model::Dialect;
use trimtab_store::{MemoryStore, SessionId};

/// Where the model is served, and its window in tokens; none if nobody said.
fn served() -> Option<(String, u64)> {
    let base = std::env::var("TRIMTAB_REAL_MODEL").ok()?;
    let window = std::env::var("TRIMTAB_REAL_WINDOW").ok()?;
    Some((base, window.parse().unwrap()))
}

fn agent(
    base: &str,
    dialect: Dialect,
    window: u64,
    folder: &tempfile::TempDir,
) -> (Agent, AgentEvents) {
    // A small model on one core takes its time.
    let http = HttpModel::new(dialect, Endpoint::new(base).unwrap()).timeouts(Timeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_mins(10),
        idle: Duration::from_mins(10),
    });
    let http = http.field("temperature", &0);
    let workspace = Workspace::new(folder.path(), Confirm::Never).unwrap();
    let mut settings = AgentSettings::new(Model::new(ModelClient::new(http), "smollm2"), workspace);
    settings.system = String::from("You are a helpful assistant. Answer in one short sentence.");
    settings.limits.window = Some(window);
    settings.limits.max_output = Some(48);
    settings.tools = ToolSet::none();
    let store = Arc::new(MemoryStore::new());
    Agent::open(store, SessionId::new("real").unwrap(), settings).unwrap()
}

fn texts(events: &mut AgentEvents) -> (String, u64) {
    let (mut said, mut prompt) = (String::new(), 0);
    while let Ok(event) = events.try_recv() {
        match event {
            AgentEvent::Text(text) => said.push_str(&text),
            AgentEvent::Usage(usage) => prompt = usage.prompt(),
            AgentEvent::Session(event) => println!("   {:?}: {:?}", event.kind, event.note),
            _ => {}
        }
    }
    (said, prompt)
}

#[tokio::test]
async fn a_real_model_answers_and_its_overflow_is_recovered() {
    let Some((base, window)) = served() else {
        println!("skipped: TRIMTAB_REAL_MODEL is not set; see CONTRIBUTING.md");
        return;
    };
    for dialect in Dialect::ALL {
        let folder = tempfile::tempdir().unwrap();
        // We are told four times the window that there is, so that the overflow is the server's.
        let (mut agent, mut events) = agent(&base, dialect, window * 4, &folder);
        let turn = agent.turn("What is the capital of France?").await.unwrap();
        let (said, prompt) = texts(&mut events);
        println!(
            "{dialect}: {} ({prompt} tokens in, {} out)",
            said.trim(),
            turn.usage.output
        );
        assert!(!said.trim().is_empty() && prompt > 10 && turn.usage.output > 0);

        for turn in 0..6 {
            let long = format!(
                "Note {turn}: {}",
                "the ship sails on the sea at night ".repeat(40)
            );
            let turn = agent.turn(long).await.unwrap();
            assert!(matches!(turn.end, TurnEnd::Answered | TurnEnd::CutOff));
            let (_, prompt) = texts(&mut events);
            println!("   {prompt} tokens in");
            assert!(prompt <= window);
        }
        let learned = agent.session().setup().limits.window;
        println!("{dialect}: the window was learned from the error: {learned:?}");
        assert!(learned.unwrap() <= window, "there was no overflow");
    }
}
