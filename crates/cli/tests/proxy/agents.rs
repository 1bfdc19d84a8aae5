//! Real agents from the package registries, headless, through `trimtab wrap`.
//!
//! They take some 850 MB, so this runs only where `TRIMTAB_CLIENTS` is set, as `./test
//! --clients` does. They are installed once into a folder of the user's cache.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::install::{self, Package};
use crate::run::{say, texts, trimtab};
use crate::windows;

/// How often the model runs a command before it is done.
const ROUNDS: usize = 12;
/// The round before which it asks for a stored output.
const ASKS_AT: usize = 9;
/// Its last words.
const LAST: &str = "every command was run";
/// An agent, and how it is used. Each speaks another dialect.
struct Agent {
    name: &'static str,
    package: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// The tool that runs a command, and what it takes.
    tool: &'static str,
    /// The window, in tokens: what all outputs together do not fit into, as the agent shows them.
    window: u64,
    arguments: fn(&str) -> Value,
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        args: &["-p", "--dangerously-skip-permissions", "run the commands"],
        env: &[
            ("ANTHROPIC_API_KEY", "test"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("IS_SANDBOX", "1"),
        ],
        tool: "Bash",
        window: 60_000,
        arguments: |command| json!({"command": command, "description": "runs it"}),
    },
    Agent {
        name: "codex",
        package: "@openai/codex",
        args: &[
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-m",
            "gpt-5.2",
            "run the commands",
        ],
        env: &[("OPENAI_API_KEY", "test")],
        tool: "exec_command",
        window: 32_000,
        arguments: |command| json!({"cmd": command, "max_output_tokens": 20_000}),
    },
    Agent {
        name: "qwen",
        package: "@qwen-code/qwen-code",
        args: &[
            "--auth-type",
            "openai",
            "-m",
            "gpt-4o",
            "--approval-mode",
            "yolo",
            "-p",
            "run the commands",
        ],
        env: &[("OPENAI_API_KEY", "test")],
        tool: "run_shell_command",
        window: 60_000,
        arguments: |command| json!({"command": command, "is_background": false}),
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn agents_run_to_the_end() {
    if std::env::var_os("TRIMTAB_CLIENTS").is_none() {
        say("SKIPPED: set TRIMTAB_CLIENTS=all, or run ./test --clients, for real agents");
        return;
    }
    let bin = installed();
    for agent in AGENTS {
        let upstream = upstream(&agent).await;
        let output = run(&agent, &bin, &upstream.url()).await;
        let (stdout, stderr) = texts(&output);
        let name = agent.name;
        let said = || format!("{name}: {stderr}\n{stdout}\n{}", outcomes(&upstream));
        assert!(output.status.success(), "{}", said());
        assert!(stdout.contains(LAST), "{}", said());
        let windows = windows::judge(name, &upstream, |received| is_main(&agent, received));
        assert!(windows.calls > ROUNDS, "{name}: {windows}");
        assert_eq!(windows.retrieved.len(), 1, "{name}: {windows}");
        // An output, or rounds with the commands: each counts up from its number times 100,000.
        assert!(windows.retrieved[0].contains("0000"), "{name}: {windows:?}");
        let line = stderr.lines().find(|line| line.starts_with("trimtab: "));
        say(&format!("{name}: {windows}, to the end; {}", line.unwrap()));
    }
}

fn is_main(agent: &Agent, received: &ReceivedRequest) -> bool {
    received.tools.iter().any(|offered| offered == agent.tool)
}

fn outcomes(upstream: &Upstream) -> String {
    let requests = upstream.requests();
    let line = |one: &std::sync::Arc<ReceivedRequest>| {
        format!("{} {:?} {:?}\n", one.path, one.outcome, one.violations)
    };
    requests.iter().map(line).collect()
}

/// A model that has `agent` run commands with long outputs.
async fn upstream(agent: &Agent) -> Upstream {
    let (tool, arguments) = (agent.tool, agent.arguments);
    let next = AtomicUsize::new(0);
    let reply = move |received: &ReceivedRequest| {
        if received.last.contains("<summary>") {
            return ScriptedReply::text("<summary>the agent runs commands</summary>");
        }
        // Titles and the like are asked for without tools.
        if !received.tools.iter().any(|offered| offered == tool) {
            return ScriptedReply::text("a title");
        }
        let round = next.load(Ordering::SeqCst);
        if round >= ASKS_AT
            && !windows::has_asked(received)
            && let Some(shown) = windows::shown_ref(received)
        {
            let arguments = json!({"ref_id": shown, "offset": 1, "limit": 12});
            return ScriptedReply::call("tool_output_cache", arguments);
        }
        next.fetch_add(1, Ordering::SeqCst);
        if round >= ROUNDS {
            return ScriptedReply::text(LAST);
        }
        let command = format!("seq {}00000 {}04200", round + 1, round + 1);
        ScriptedReply::call(tool, arguments(&command))
    };
    let options = UpstreamOptions {
        window: Some(agent.window),
        answer_counts: false,
        ..UpstreamOptions::new(ReplySource::with(reply))
    };
    Upstream::start(options).await.unwrap()
}

async fn run(agent: &Agent, bin: &Path, url: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let window = agent.window.to_string();
    let mut args = vec!["wrap", "--upstream", url, "--window", &window, agent.name];
    args.extend(agent.args);
    let mut command = trimtab(folder.path(), &args);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.envs(agent.env.iter().copied());
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

/// Installs the agents, if they are not there, and gives the folder of their commands.
fn installed() -> PathBuf {
    for agent in &AGENTS {
        let package = Package::npm(agent.package, agent.name);
        package.installed().unwrap();
    }
    install::commands().unwrap()
}
