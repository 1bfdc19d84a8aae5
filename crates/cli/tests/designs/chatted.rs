//! A conversation with `trimtab chat`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Runtime;
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{ReceivedRequest, Upstream};

use crate::run::trimtab;
use crate::scripted::{Answers, main_calls, own_calls};

/// A workspace, a provider, and what it answers.
pub(crate) struct Chatted {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) answers: Answers,
    pub(crate) upstream: Upstream,
    // The provider works as long as this does.
    _runtime: Runtime,
}

/// What came out of a run.
pub(crate) struct Told {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Chatted {
    /// A workspace in front of a provider that takes so many tokens.
    pub(crate) fn new(window: Option<u64>) -> Self {
        let answers = Answers::default();
        let upstream = answers.clone();
        let chatted = Self::in_front_of(async move { upstream.upstream(window).await });
        Self { answers, ..chatted }
    }

    /// A workspace in front of another provider.
    pub(crate) fn in_front_of(upstream: impl Future<Output = Upstream>) -> Self {
        let runtime = Runtime::new().unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            answers: Answers::default(),
            upstream: runtime.block_on(upstream),
            _runtime: runtime,
        }
    }

    /// Writes a file into the workspace.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Runs `trimtab chat` with these arguments; each line of `input` is a turn or a command.
    pub(crate) fn chat(&self, args: &[&str], input: &str) -> Told {
        self.chat_in(Dialect::Chat, args, input)
    }

    /// The same in another dialect.
    pub(crate) fn chat_in(&self, dialect: Dialect, args: &[&str], input: &str) -> Told {
        let model = match dialect {
            Dialect::Chat | Dialect::Responses => "gpt-4o",
            Dialect::Messages => "claude-sonnet-4-5",
        };
        self.chat_of(model, dialect, args, input)
    }

    /// The same with another model.
    pub(crate) fn chat_of(
        &self,
        model: &str,
        dialect: Dialect,
        args: &[&str],
        input: &str,
    ) -> Told {
        let base = format!("{}/v1", self.upstream.url());
        let dialect = match dialect {
            Dialect::Chat => "chat",
            Dialect::Responses => "responses",
            Dialect::Messages => "messages",
        };
        let fixed = ["chat", "--model", model, "--dialect", dialect];
        let all = [&fixed[..], &["--base-url", &base], args].concat();
        self.run(trimtab(self.folder.path(), &all), input)
    }

    fn run(&self, mut command: Command, input: &str) -> Told {
        command.env("OPENAI_API_KEY", "k");
        command.env("ANTHROPIC_API_KEY", "k");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A run that refuses its arguments does not read on.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let broken = self.upstream.violations();
        assert!(broken.is_empty(), "{broken:?}");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Told {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// One session, each turn of it a run of its own with `--print`; the events of all runs.
    pub(crate) fn events(&self, args: &[&str], turns: &[&str]) -> Vec<Value> {
        let mut events = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            let resume: &[&str] = if at == 0 { &[] } else { &["--resume"] };
            let told = self.chat(&[args, resume, &["--json", "--print", turn]].concat(), "");
            assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
            let lines = told.stdout.lines();
            events.extend(lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()));
        }
        events
    }

    /// What the model was asked.
    pub(crate) fn main_calls(&self) -> Vec<Arc<ReceivedRequest>> {
        main_calls(&self.upstream)
    }

    /// What the summariser was asked.
    pub(crate) fn own_calls(&self) -> Vec<Arc<ReceivedRequest>> {
        own_calls(&self.upstream)
    }
}
