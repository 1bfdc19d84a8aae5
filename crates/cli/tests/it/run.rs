//! Runs the command and looks at everything that comes out of it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Everything that came out of a run.
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// The root of the workspace: what the tests name files from.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `trimtab` with `args`.
pub(crate) fn trimtab(args: &[&str]) -> Outcome {
    with_input(args, b"")
}

/// Runs `trimtab` with `args` and `input` on standard input.
pub(crate) fn with_input(args: &[&str], input: &[u8]) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(args)
        .current_dir(root())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A run that refuses its arguments does not read on.
    let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Outcome {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

/// Compares a run with the file that says what it should give; `TRIMTAB_BLESS=1` writes it.
#[track_caller]
pub(crate) fn golden(name: &str, outcome: &Outcome) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let mut text = format!("exit code {}\n", outcome.code);
    for (stream, content) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let _ = write!(text, "--- {stream}\n{content}");
    }
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "differs from {}", path.display());
}
