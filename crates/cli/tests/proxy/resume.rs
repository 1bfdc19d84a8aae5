//! Compacted logs, loaded by the real clients: the model receives the summary with its refs, and
//! complete pairs of calls and outputs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::installed::{command_in, path_with_client, run_client, wants};
use crate::run::{finished, say, texts};
use crate::windows::is_the_clients_own;

/// How often the model runs a command before it is done.
const ROUNDS: usize = 8;
/// What it says then.
const LAST: &str = "every command was run";
/// What a summary begins with.
const SUMMARY: &str = "[Summary of the conversation so far]";

/// A client with a home of its own.
pub(crate) struct ResumedClient {
    home: tempfile::TempDir,
    pub(crate) upstream: Upstream,
    path: String,
    env: Vec<(&'static str, String)>,
}

impl ResumedClient {
    /// A client whose tool `tool` runs commands; `arguments` says how.
    pub(crate) async fn new(
        (package, command): (&'static str, &'static str),
        tool: &'static str,
        arguments: fn(&str) -> Value,
    ) -> Self {
        let next = AtomicUsize::new(0);
        let reply = move |received: &ReceivedRequest| {
            // Titles and the like are asked for without tools.
            if !received.tools.iter().any(|offered| offered == tool) {
                return ScriptedReply::text("a title");
            }
            match next.fetch_add(1, Ordering::SeqCst) {
                round if round < ROUNDS => {
                    let command = format!("seq {}0000 {}1900", round + 1, round + 1);
                    ScriptedReply::call(tool, arguments(&command))
                }
                _ => ScriptedReply::text(LAST),
            }
        };
        let options = UpstreamOptions {
            answer_counts: false,
            ..UpstreamOptions::new(ReplySource::with(reply))
        };
        Self {
            home: tempfile::tempdir().unwrap(),
            upstream: Upstream::start(options).await.unwrap(),
            path: path_with_client(package, command),
            env: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.env.push((name, value.to_owned()));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Runs a command in the client's home: its standard output. It must succeed.
    pub(crate) async fn run(&self, args: &[&str]) -> String {
        let mut command = command_in(self.folder(), args[0]);
        command.args(&args[1..]);
        command.env("PATH", &self.path).env("CI", "1");
        command.envs(self.env.iter().map(|(name, value)| (*name, value)));
        let output = tokio::task::spawn_blocking(move || run_client(command));
        let broken = || self.upstream.violations();
        let output = output
            .await
            .unwrap_or_else(|why| panic!("{why}: {:?}", broken()));
        let (stdout, stderr) = texts(&output);
        assert!(output.status.success(), "{args:?}: {stdout}\n{stderr}");
        stdout
    }

    /// Runs it under `trimtab wrap`.
    async fn run_wrapped(&self, args: &[&str]) -> String {
        let url = self.upstream.url();
        let program = env!("CARGO_BIN_EXE_trimtab");
        let own = [program, "wrap", "--preset", "none", "--upstream", &url];
        self.run(&[&own, args].concat()).await
    }

    /// Compacts a log; gives the report.
    fn compact(&self, log: &Path, output: &Path) -> Value {
        let (log, output) = (log.display().to_string(), output.display().to_string());
        let args = ["compact", &log, "-o", &output, "--force", "--json"];
        let done = finished(self.folder(), &args);
        let (stdout, stderr) = texts(&done);
        assert!(done.status.success(), "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["summary"], "deterministic", "{report:#}");
        self.upstream.clear_requests();
        report
    }

    /// Every request must have been as the provider wants it.
    pub(crate) fn assert_valid(&self) {
        let mut broken = self.upstream.violations();
        broken.retain(|violation| !is_the_clients_own(violation));
        assert!(broken.is_empty(), "{broken:?}");
    }

    /// What reached the model last must have the summary and what it names.
    fn judge(&self, report: &Value) {
        self.assert_valid();
        let requests = self.upstream.requests();
        let body = String::from_utf8_lossy(&requests.last().unwrap().body);
        assert!(body.contains(SUMMARY), "{body}");
        let refs: Vec<&str> = report["originals"]["replaced"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found.as_str().unwrap())
            .collect();
        let there = refs.iter().filter(|found| body.contains(**found)).count();
        assert!(there > 0, "none of {refs:?} is in {body}");
        assert!(body.contains("trimtab output read --session"), "{body}");
        // The first command was replaced, and is not there twice.
        assert_eq!(body.matches("\"seq 10000 11900").count(), 0, "{body}");
        say(&format!(
            "{}: {there} refs in what reached the model",
            report["form"]
        ));
    }
}

/// The only file below a folder whose name ends so.
pub(crate) fn log_in(folder: &Path, end: &str) -> PathBuf {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

const CODEX: [&str; 6] = [
    "codex",
    "exec",
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    "-m",
    "gpt-5.2",
];

async fn codex() -> ResumedClient {
    let arguments = |command: &str| json!({"cmd": command, "max_output_tokens": 20_000});
    let mut client =
        ResumedClient::new(("@openai/codex", "codex"), "exec_command", arguments).await;
    client.set("OPENAI_API_KEY", "k");
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_loads_a_compacted_log() {
    if !wants("codex") {
        return;
    }
    let client = codex().await;
    client
        .run_wrapped(&[&CODEX[..], &["run the commands"]].concat())
        .await;
    let log = log_in(&client.folder().join(".codex/sessions"), ".jsonl");
    let report = client.compact(&log, &log);
    let base = format!("openai_base_url=\"{}/v1\"", client.upstream.url());
    let resume = ["-c", &base, "resume", "--last", "and now?"];
    client.run(&[&CODEX[..], &resume].concat()).await;
    client.judge(&report);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_resumes_chats_with_and_without_wrap() {
    if !wants("codex") {
        return;
    }
    let client = codex().await;
    let base = format!("openai_base_url=\"{}/v1\"", client.upstream.url());
    let resume = ["resume", "--last", "and now?"];
    // Begun without, resumed with, and resumed without again.
    client
        .run(&[&CODEX[..], &["-c", &base, "run the commands"]].concat())
        .await;
    client.run_wrapped(&[&CODEX[..], &resume].concat()).await;
    client
        .run(&[&CODEX[..], &["-c", &base], &resume].concat())
        .await;
    let begun = codex().await;
    let base = format!("openai_base_url=\"{}/v1\"", begun.upstream.url());
    begun
        .run_wrapped(&[&CODEX[..], &["run the commands"]].concat())
        .await;
    begun
        .run(&[&CODEX[..], &["-c", &base], &resume].concat())
        .await;
    client.assert_valid();
    begun.assert_valid();
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_loads_a_compacted_log() {
    if !wants("claude") {
        return;
    }
    let arguments = |command: &str| json!({"command": command, "description": "runs it"});
    let package = ("@anthropic-ai/claude-code", "claude");
    let mut client = ResumedClient::new(package, "Bash", arguments).await;
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "k"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("IS_SANDBOX", "1"),
    ] {
        client.set(name, value);
    }
    let claude = ["claude", "-p", "--dangerously-skip-permissions"];
    client
        .run_wrapped(&[&claude[..], &["run the commands"]].concat())
        .await;
    let log = log_in(&client.folder().join(".claude/projects"), ".jsonl");
    let report = client.compact(&log, &log);
    let url = client.upstream.url();
    client.set("ANTHROPIC_BASE_URL", &url);
    let resume = ["--resume", report["id"].as_str().unwrap(), "and now?"];
    client.run(&[&claude[..], &resume].concat()).await;
    client.judge(&report);
}
