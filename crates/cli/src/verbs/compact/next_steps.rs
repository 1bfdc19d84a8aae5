//! The commands with which a user continues a compacted session in its client.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use trimtab_wire::transcript::TranscriptForm;

/// How many lines of a log are searched for the folder of its session.
const HEAD_LINES: usize = 100;

/// A compacted file with the data that the commands need.
pub(super) struct CompactedFile<'a> {
    pub(super) form: TranscriptForm,
    /// The client's id of the session.
    pub(super) id: Option<&'a str>,
    /// The transcript and the compacted file.
    pub(super) file: &'a Path,
    pub(super) output: &'a Path,
    /// The session in the store.
    pub(super) session: &'a str,
    /// The store, if it is not the default one.
    pub(super) store: Option<&'a Path>,
    /// The original transcript.
    pub(super) original: &'a [u8],
}

impl CompactedFile<'_> {
    /// The commands that continue the session and give its model access to the refs. Empty for
    /// transcripts that no client loads.
    pub(super) fn steps(&self) -> Vec<String> {
        // Without an id or a file there is nothing to resume.
        let Some(id) = self.id.map(shell).filter(|_| !is_stream(self.output)) else {
            return Vec::new();
        };
        let mcp = self.mcp();
        match self.form {
            TranscriptForm::ClaudeCode => {
                let folder = folder(self.original);
                let there = folder.as_deref();
                let there = there.map(|folder| format!("cd {} && ", shell(folder)));
                let resume = format!("{}claude --resume {id}", there.unwrap_or_default());
                let add = format!("claude mcp add trimtab -- {mcp}");
                self.in_place(&self.claude_place(folder.as_deref()), &resume, &add)
            }
            TranscriptForm::Codex => {
                let args = json!(self.mcp_args());
                let add = format!(
                    "codex -c 'mcp_servers.trimtab.command=\"trimtab\"' -c {} resume {id}",
                    shell(&format!("mcp_servers.trimtab.args={args}"))
                );
                self.in_place(self.file, &format!("codex resume {id}"), &add)
            }
            TranscriptForm::CopilotCli => {
                let add = format!("copilot mcp add trimtab -- {mcp}");
                self.in_place(self.file, &format!("copilot --resume={id}"), &add)
            }
            TranscriptForm::GeminiCli => {
                let add = format!("gemini mcp add trimtab {mcp}");
                self.in_place(self.file, &format!("gemini --resume {id}"), &add)
            }
            TranscriptForm::OpenCode => self.by_import(&id),
            _ => Vec::new(),
        }
    }

    /// The steps for opencode, which keeps sessions in a database. An import does not remove
    /// messages of an existing session, so the session must be deleted first.
    fn by_import(&self, id: &str) -> Vec<String> {
        let output = shell(&self.output.display().to_string());
        let mut command = vec!["trimtab".to_owned()];
        command.extend(self.mcp_args());
        let mcp = json!({"mcp": {"trimtab": {"type": "local", "command": command}}});
        let resume = format!("opencode --session {id}");
        let with_tool = format!("OPENCODE_CONFIG_CONTENT={}", shell(&mcp.to_string()));
        vec![
            format!("load it: opencode session delete {id} && opencode import {output}"),
            format!("resume:  {resume}"),
            format!("or, with a tool that reads the refs: {with_tool} {resume}"),
        ]
    }

    /// The steps for a client that reads its log file.
    fn in_place(&self, place: &Path, resume: &str, add: &str) -> Vec<String> {
        let output = self.output.display().to_string();
        // The user may have overwritten the log in place.
        let is_there = self.output.canonicalize().ok() == place.canonicalize().ok();
        let copy = (!is_there).then(|| {
            let output = shell(&output);
            if is_stream(place) {
                return format!("load it: replace the log of the session by {output}");
            }
            let place = shell(&place.display().to_string());
            format!("load it: cp {output} {place}")
        });
        let rest = [
            format!("resume:  {resume}"),
            format!("a tool that reads the refs: {add}"),
        ];
        copy.into_iter().chain(rest).collect()
    }

    /// The path at which Claude Code looks for the log: in a folder named after the project's path.
    fn claude_place(&self, project: Option<&str>) -> PathBuf {
        // A file below `projects` is already one of the client's logs.
        let is_there = self
            .file
            .components()
            .any(|part| part.as_os_str() == "projects");
        match (project, self.id) {
            (Some(project), Some(id)) if !is_there => {
                // Claude Code names the folder after the project's path with all other characters
                // replaced.
                let folder = project.replace(|one: char| !one.is_ascii_alphanumeric(), "-");
                PathBuf::from(format!("~/.claude/projects/{folder}/{id}.jsonl"))
            }
            _ => self.file.to_owned(),
        }
    }

    fn mcp_args(&self) -> Vec<String> {
        let mut args = vec![
            "mcp".to_owned(),
            "--session".to_owned(),
            self.session.to_owned(),
        ];
        if let Some(store) = self.store {
            args.extend(["--store".to_owned(), store.display().to_string()]);
        }
        args
    }

    fn mcp(&self) -> String {
        let args = self.mcp_args().into_iter().map(|arg| shell(&arg));
        let args: Vec<String> = args.collect();
        format!("trimtab {}", args.join(" "))
    }
}

/// The command that reads a ref, for a model without the retrieval tools.
pub(super) fn read_command(session: &str, store: Option<&Path>) -> String {
    let store = store.map(|store| format!(" --store {}", shell(&store.display().to_string())));
    let store = store.unwrap_or_default();
    format!("trimtab output read --session {}{store}", shell(session))
}

/// True for standard input and standard output.
fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The working folder of a Claude Code session.
fn folder(log: &[u8]) -> Option<String> {
    let lines = log.split(|byte| *byte == b'\n').take(HEAD_LINES);
    let mut values = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    values.find_map(|line| Some(line.get("cwd")?.as_str()?.to_owned()))
}

/// Quotes a word for a shell.
fn shell(text: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_./~=:".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
