//! Sessions to replay that anyone has: an agent that works on the source of tokio, which building this
//! repository downloads.
//!
//! It searches, reads files, runs tests, and makes edits with lines that it read some rounds ago,
//! the newer the likelier. The files are real; what the agent does is drawn from a fixed series of
//! numbers, so that every run gives the same sessions for the same version of tokio.
//!
//! ```sh
//! cargo run --example made_sessions > sessions.jsonl
//! trimtab replay sessions.jsonl --window 40k --compare steady,turns
//! ```

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

const SESSIONS: u64 = 6;
const ROUNDS: usize = 120;

fn main() -> Result<(), Box<dyn Error>> {
    let root = package_folder("tokio")?;
    let mut files = Vec::new();
    find(&root.join("src"), &mut files)?;
    files.sort();
    let mut out = io::stdout().lock();
    for number in 0..SESSIONS {
        let mut agent = Agent::new(number, &root);
        for _ in 0..ROUNDS {
            agent.work(&files)?;
        }
        let id = format!("made-{number}");
        let session = json!({"id": id, "messages": agent.messages});
        writeln!(out, "{session}")?;
    }
    Ok(())
}

/// The folder with the source of a dependency.
fn package_folder(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args([
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()?;
    if !cargo.status.success() {
        return Err(String::from_utf8_lossy(&cargo.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&cargo.stdout)?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let mut packages = packages.into_iter().flatten();
    let manifest = packages
        .find(|package| package.get("name").is_some_and(|found| found == name))
        .and_then(|package| package.get("manifest_path")?.as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(folder
        .ok_or_else(|| format!("cargo metadata does not list {name}"))?
        .to_owned())
}

/// The source files below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

struct Agent {
    root: PathBuf,
    messages: Vec<Value>,
    /// A file that was read, with its name.
    read: Vec<(String, String)>,
    /// Names of files that a search gave.
    found: Vec<String>,
    state: u64,
}

impl Agent {
    fn new(number: u64, root: &Path) -> Self {
        let task = format!("Rename the settings of part {number} everywhere, and test it.");
        Self {
            root: root.to_owned(),
            messages: vec![
                json!({"role": "system", "content": "You change code. Be brief."}),
                json!({"role": "user", "content": task}),
            ],
            read: Vec::new(),
            found: Vec::new(),
            state: number + 1,
        }
    }

    /// A number below `end`, from a series that is always the same.
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = self.state.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap_or(0) % end.max(1)
    }

    /// How many steps to go back among `count`: each step half as likely as half of it.
    fn back(&mut self, count: usize) -> usize {
        let most = self.below(count) + 1;
        let less = self.below(most) + 1;
        self.below(less)
    }

    /// One round.
    fn work(&mut self, files: &[PathBuf]) -> io::Result<()> {
        match self.below(10) {
            0 | 1 => self.search(files),
            2..=4 => self.open()?,
            5 | 6 => self.test(),
            _ => self.edit(),
        }
        Ok(())
    }

    fn search(&mut self, files: &[PathBuf]) {
        let from = self.below(files.len());
        let listed = files.iter().cycle().skip(from).take(25);
        let names = listed.filter_map(|path| path.strip_prefix(&self.root).ok());
        let names: Vec<String> = names.map(|name| name.display().to_string()).collect();
        let output = names.join("\n");
        self.found.extend(names);
        self.round("search", &json!({"pattern": "*.rs"}), &output);
    }

    fn open(&mut self) -> io::Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let back = self.back(self.found.len());
        let name = self.found.remove(self.found.len() - 1 - back);
        let text = fs::read_to_string(self.root.join(&name))?;
        self.round("read", &json!({"path": name}), &text);
        self.read.push((name, text));
        Ok(())
    }

    fn test(&mut self) {
        let passed = self.below(900);
        let lines: Vec<String> = (0..passed / 3)
            .map(|number| format!("test case {number} ... ok"))
            .collect();
        let output = format!("{}\n{passed} passed; 0 failed", lines.join("\n"));
        self.round("bash", &json!({"command": "cargo test"}), &output);
    }

    /// Replaces some lines of a file that was read before.
    fn edit(&mut self) {
        let back = self.back(self.read.len());
        let Some((name, text)) = self.read.iter().rev().nth(back).cloned() else {
            return;
        };
        let lines: Vec<&str> = text.lines().collect();
        let count = 1 + self.below(4);
        let from = self.below(lines.len());
        let old: Vec<&str> = lines.iter().copied().skip(from).take(count).collect();
        let arguments = json!({"path": name, "old": old.join("\n"), "new": "renamed"});
        self.round("edit", &arguments, "done");
    }

    fn round(&mut self, tool: &str, arguments: &Value, output: &str) {
        let id = format!("call_{}", self.messages.len());
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        let answer = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        self.messages.push(answer);
        self.messages
            .push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    }
}
