//! An agent of rig against the scripted provider of all adapters: two dozen rounds of two parallel
//! calls, outputs up to 5 MB, a window of 20,000 tokens, and one line read back by its ref.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail as tests do"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rig_agent::AgentBuilder;
use rig_agent::completion::{Prompt, PromptError};
use rig_core::client::CompletionClient;
use rig_core::providers::openai::Client;
use rig_core::tool::{PortableDynamicTool, ToolOutput};
use serde_json::{Value, json};
use trimtab_rig::RigContext;

const TASK: &str = "fetch all parts, then find the needle";
const NEEDLE: &str = "needle-4711";
const LAST_PART: u64 = 47;
const WINDOW: u64 = 20_000;

/// The provider, which ends with the test.
struct Provider {
    process: Child,
    url: String,
}

impl Provider {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tests/provider.py");
        let mut command = Command::new("python3");
        command
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        let lines = process.stdout.take().unwrap();
        BufReader::new(lines).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { process, url }
    }

    /// How many requests of a model were refused for their size.
    fn overflows(&self, model: &str) -> u64 {
        let host = self
            .url
            .trim_start_matches("http://")
            .trim_end_matches("/v1");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /figures/{model} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let figures: Value = serde_json::from_str(body).unwrap();
        figures["overflows"].as_u64().unwrap()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The output of `fetch`: some KB, and 5 MB with the needle for the last part.
fn output(part: u64) -> String {
    let count = match part {
        LAST_PART => 71_000,
        part => part % 5 * 120 + 10,
    };
    let line = |at| match (part, at) {
        (LAST_PART, 40_000) => format!("the line that is looked for: {NEEDLE}"),
        _ => format!("{at} part {part}: all is well in this line of the log, nothing to see"),
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

fn fetch() -> PortableDynamicTool {
    let parameters = json!({"type": "object", "properties": {"part": {"type": "integer"}},
        "required": ["part"]});
    PortableDynamicTool::new("fetch", "Fetch a part.", parameters, |arguments| {
        let part = arguments["part"].as_u64().unwrap();
        Box::pin(async move { Ok(ToolOutput::text(output(part))) })
    })
}

/// Runs the session; without a window, without the adapter.
async fn run(provider: &Provider, model: &str, window: Option<u64>) -> Result<String, PromptError> {
    let client = Client::builder()
        .api_key("none")
        .base_url(&provider.url)
        .build();
    let model = client.unwrap().completions_api().completion_model(model);
    let agent = match window {
        None => AgentBuilder::new(model).portable_dynamic_tool(fetch()),
        Some(window) => {
            let options = json!({"window": window, "max_output": 500});
            let context = RigContext::open(&options).unwrap();
            let [read, search] = context.tools();
            AgentBuilder::new(context.model(model))
                .portable_dynamic_tool(fetch())
                .portable_dynamic_tool(read)
                .portable_dynamic_tool(search)
        }
    };
    let agent = agent.preamble("be brief").build();
    agent.prompt(TASK).max_turns(100).await
}

#[tokio::test(flavor = "multi_thread")]
async fn long_session_ends_well_only_with_the_adapter() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED: python3, which runs the scripted provider, is not installed");
        return;
    }
    let provider = Provider::start();

    assert!(run(&provider, "rig-plain", None).await.is_err());
    assert!(
        provider.overflows("rig-plain") > 0,
        "it failed for another reason"
    );

    let answer = run(&provider, "rig-fits", Some(WINDOW)).await.unwrap();
    assert!(answer.contains(NEEDLE), "{answer}");
    assert_eq!(provider.overflows("rig-fits"), 0);

    let answer = run(&provider, "rig-recovers", Some(2 * WINDOW))
        .await
        .unwrap();
    assert!(answer.contains(NEEDLE), "{answer}");
    assert!(
        provider.overflows("rig-recovers") > 0,
        "there was nothing to recover from"
    );
}
