//! The commands with which a user continues a compacted session in its client.

use std::path::Path;

use serde_json::{Value, json};
use trimtab_wire::transcript::TranscriptForm;

use super::client_logs::{CLAUDE_CODE, CODEX, ClientLogs};

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
        match self.form {
            TranscriptForm::ClaudeCode => {
                let folder = folder(self.original);
                let there = folder.as_deref();
                let there = there.map(|folder| format!("cd {} && ", shell(folder)));
                let resume = format!("{}claude --resume {id}", there.unwrap_or_default());
                let add = format!("claude mcp add trimtab -- {}", self.mcp());
                let place = folder
                    .as_deref()
                    .and_then(|folder| self.claude_place(folder));
                self.in_place(&CLAUDE_CODE, place, &resume, &add)
            }
            TranscriptForm::Codex => {
                let args = json!(self.mcp_args());
                let add = format!(
                    "codex -c 'mcp_servers.trimtab.command=\"trimtab\"' -c {} resume {id}",
                    shell(&format!("mcp_servers.trimtab.args={args}"))
                );
                let resume = format!("codex resume {id}");
                self.in_place(&CODEX, self.codex_place(), &resume, &add)
            }
            _ => Vec::new(),
        }
    }

    /// The steps for a client that reads its log file. `place` is the path of that file for a
    /// shell; without it, the user must find the file.
    fn in_place(
        &self,
        client: &ClientLogs,
        place: Option<String>,
        resume: &str,
        add: &str,
    ) -> Vec<String> {
        let rest = [
            format!("resume:  {resume}"),
            format!("a tool that reads the refs: {add}"),
        ];
        self.load(client, place).into_iter().chain(rest).collect()
    }

    /// The step that puts the compacted file where the client reads it; none if it is there.
    fn load(&self, client: &ClientLogs, place: Option<String>) -> Option<String> {
        let output = shell(&self.output.display().to_string());
        if client.holds(self.file) {
            // The user may have overwritten the log in place.
            let is_there = self.output.canonicalize().ok() == self.file.canonicalize().ok();
            let log = shell(&self.file.display().to_string());
            return (!is_there).then(|| format!("load it: cp {output} {log}"));
        }
        // The transcript is a copy, which must not be overwritten: the client never reads it.
        Some(match place {
            Some(place) => format!("load it: cp {output} {place}"),
            None => format!(
                "load it: replace the log of the session in {} by {output}",
                client.shown()
            ),
        })
    }

    /// The path at which Claude Code looks for the log: in a folder named after the project's path.
    fn claude_place(&self, project: &str) -> Option<String> {
        // Claude Code names the folder after the project's path with all other characters
        // replaced.
        let folder = project.replace(|one: char| !one.is_ascii_alphanumeric(), "-");
        let file = format!("{}.jsonl", self.id?);
        Some(format!("{}/{folder}/{}", CLAUDE_CODE.shown(), shell(&file)))
    }

    /// A shell expression for the log of Codex, whose name ends with the id of the session.
    fn codex_place(&self) -> Option<String> {
        let name = shell(&format!("*{}.jsonl", self.id?));
        Some(format!("\"$(find {} -name {name})\"", CODEX.shown()))
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
pub(super) fn shell(text: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_./~=:".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
