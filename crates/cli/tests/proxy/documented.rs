//! Commands of README and the guides that need a client or a port: a shell runs them as they are
//! printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::installed::command_in;
use crate::run::{Served, program, say, texts};

/// A client that only tells how it was started.
const CLIENT: &str = "#!/bin/sh\nenv\necho \"arguments: $*\"\n";
const CLIENTS: [&str; 3] = ["claude", "codex", "opencode"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of shell in README and the guides that begin with `start`, with the names of their pages.
fn lines(start: &str) -> Vec<(String, String)> {
    let guides = fs::read_dir(root().join("docs/guides")).unwrap();
    let guides = guides.map(|entry| entry.unwrap().path());
    let pages = guides.chain([root().join("README.md")]);
    let lines = pages.flat_map(|page| {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(page).unwrap().replace("\\\n", " ");
        let blocks = text.split("```sh\n").skip(1);
        let blocks = blocks.filter_map(|block| block.split("```").next());
        let lines = blocks.flat_map(str::lines).map(str::to_owned);
        let lines: Vec<String> = lines.collect();
        lines.into_iter().map(move |line| (name.clone(), line))
    });
    lines.filter(|(_, line)| line.starts_with(start)).collect()
}

/// Runs a line in a shell that finds our command, and clients in `folder`.
fn shell(folder: &Path, line: &str) -> Output {
    let ours = Path::new(env!("CARGO_BIN_EXE_trimtab")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", folder.display(), ours.display());
    let mut command = command_in(folder, "sh");
    command.args(["-c", line]).env("PATH", path);
    command.output().unwrap()
}

#[test]
fn documented_wraps_start_their_client_before_the_proxy() {
    let wraps = lines("trimtab wrap ");
    assert!(wraps.len() >= 6, "{wraps:?}");
    for (page, line) in wraps {
        let folder = tempfile::tempdir().unwrap();
        for client in CLIENTS {
            program(folder.path(), client, CLIENT);
        }
        let output = shell(folder.path(), &line);
        let (stdout, stderr) = texts(&output);
        assert!(output.status.success(), "{page}: {line}: {stderr}");
        assert!(stdout.contains("arguments:"), "{page}: {line}: {stdout}");
        assert!(
            stdout.contains("http://127.0.0.1:"),
            "{page}: {line}: {stdout}"
        );
    }
}

#[test]
fn documented_compression_is_answered_by_the_documented_proxy() {
    let commands = lines("trimtab serve --listen 127.0.0.1:8787");
    let asked = lines("curl ");
    assert_eq!((commands.len(), asked.len()), (1, 1));
    // The port may be in use here.
    let served = Served::start(&["--listen", "127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let line = asked[0].1.replace("http://127.0.0.1:8787", &served.url);
    let output = shell(folder.path(), &line);
    if output.status.code() == Some(127) {
        say("SKIPPED: curl is not installed");
        return;
    }
    let (stdout, stderr) = texts(&output);
    let reply: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    assert_eq!(reply["messages"][0]["content"], "hello");
}
