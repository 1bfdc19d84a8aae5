//! Runs the command and captures its output.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

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

/// The command at the root, with nothing of the user's environment that changes what it says.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in ours.filter(|name| name.starts_with("TRIMTAB_")) {
        command.env_remove(name);
    }
    command
        .current_dir(root())
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    command
}

/// Runs `trimtab` with `args`.
pub(crate) fn trimtab(args: &[&str]) -> Outcome {
    with_input(args, b"")
}

/// Runs `trimtab` with `args` and `input` on standard input.
pub(crate) fn with_input(args: &[&str], input: &[u8]) -> Outcome {
    finish(command().args(args), input)
}

/// A folder with a store in it, gone when dropped.
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// Where the store is, or will be.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// A file with this content beside the store.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The command, with nothing of the user's environment that it looks at but the store.
    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        command
            .env("TRIMTAB_STORE", self.store())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs it.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(args, b"")
    }

    /// Runs it with `input` on standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Outcome {
        finish(self.command().args(args), input)
    }

    /// Stores `content` in session `s`; gives its ref.
    pub(crate) fn put(&self, content: &[u8]) -> String {
        let done = self.run_with(&["output", "put", "--session", "s", "-"], content);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout.trim_end().to_owned()
    }

    /// Checks everything that comes out of a run.
    #[track_caller]
    pub(crate) fn check(&self, args: &[&str], code: i32, stdout: &str, stderr: &str) {
        let done = self.run(args);
        let store = self.store().display().to_string();
        let told = done.stderr.replace(&store, "STORE");
        assert_eq!(
            (done.code, done.stdout.as_str(), told.as_str()),
            (code, stdout, stderr),
            "{args:?}"
        );
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command, input: &[u8]) -> Outcome {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
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
