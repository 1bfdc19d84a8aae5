//! A tool of one's own whose outputs stay in the window whatever else goes.
//!
//! `cargo run -p trimtab-agent --example protected_tool`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::session::ManualCompaction;
use trimtab_agent::model::{Model, ModelClient, ScriptedModel};
use trimtab_agent::tools::{
    Confirm, Tool, ToolDefinition, ToolFuture, ToolOutcome, ToolSet, Workspace,
};
use trimtab_agent::{Agent, AgentSettings};
use trimtab_store::{MemoryStore, SessionId};
use trimtab_wire::script::{Script, ScriptedReply};

/// What the team has agreed on. The model must never lose sight of it.
struct Rules;

impl Tool for Rules {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {}});
        ToolDefinition::new("rules", "Gives the rules of the house.", schema)
    }

    fn call<'a>(&'a self, _: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async { ToolOutcome::text("Never deploy on a Friday.") })
    }

    fn is_protected(&self) -> bool {
        true
    }
}

/// A tool like any other.
struct Weather;

impl Tool for Weather {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {"day": {"type": "string"}}});
        ToolDefinition::new("weather", "Gives the weather of a day.", schema)
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move {
            let Some(day) = arguments["day"].as_str() else {
                return ToolOutcome::error("error: which day?");
            };
            ToolOutcome::text(format!("{day}: {}", "rain, then sun; ".repeat(100)))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let weather = |day: &str| ScriptedReply::call("weather", json!({ "day": day }));
    let script = Script::new([
        ScriptedReply::call("rules", json!({})),
        weather("Monday"),
        weather("Tuesday"),
        ScriptedReply::text("Deploy on Tuesday."),
    ]);
    let model = Model::new(ModelClient::new(ScriptedModel::new(script)), "scripted");
    let mut settings = AgentSettings::new(model, Workspace::new(".", Confirm::Never)?);
    settings.limits.window = Some(16_000);
    settings.tools = ToolSet::none().with(Rules).with(Weather);
    // Nothing but what is protected survives a compaction, so that the example is clear.
    settings.policy.compaction.keep.clear();

    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("demo")?);
    let (mut agent, _events) = Agent::open(store, id, settings)?;
    agent.turn("when shall we deploy?").await?;
    agent.turn("thank you").await?;
    agent.compact(&ManualCompaction::default()).await?;

    let window = agent.session_mut().window()?;
    let outputs = window.messages().flat_map(|message| message.outputs());
    let outputs: Vec<String> = outputs.map(|output| output.text().into_owned()).collect();
    println!("outputs in the window after the compaction: {outputs:?}");
    assert_eq!(outputs, ["Never deploy on a Friday."]);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
