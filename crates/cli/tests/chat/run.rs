//! Runs the command in a separate folder and captures its output.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A store, a workspace and a home of their own.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// Everything that came out of a run.
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Place {
    /// With a workspace that holds `notes.txt`, of 300 lines.
    pub(crate) fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(place.workspace()).unwrap();
        let notes = (1..=300).fold(String::new(), |notes, n| {
            notes + &format!("note {n}: the answer to question {n} is {}\n", n * 7)
        });
        fs::write(place.workspace().join("notes.txt"), notes).unwrap();
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// Writes a script; gives what `--model` takes.
    pub(crate) fn script(&self, json: &str) -> String {
        let file = self.path().join("script.json");
        fs::write(&file, json).unwrap();
        format!("scripted:{}", file.display())
    }

    /// The command with `args`, in the workspace, with nothing of the user's around it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
        command.arg("chat").args(args);
        command.current_dir(self.workspace());
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        for name in ABSENT {
            command.env_remove(name);
        }
        command
    }

    /// What is set for every run.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("TRIMTAB_STORE", self.store()),
            ("HOME", self.path().to_owned()),
            ("XDG_STATE_HOME", self.path().join("state")),
            ("XDG_CONFIG_HOME", self.path().join("config")),
        ]
    }

    /// Runs `trimtab chat` with `args`.
    pub(crate) fn chat(&self, args: &[&str]) -> Outcome {
        self.chat_with(args, "")
    }

    /// The same with `input` on standard input.
    pub(crate) fn chat_with(&self, args: &[&str], input: &str) -> Outcome {
        finish(self.command(args), input)
    }

    /// The text without what differs from run to run.
    pub(crate) fn steady(&self, text: &str) -> String {
        let refs = regex::Regex::new("[A-Za-z0-9_-]{16,64}").unwrap();
        let text = text.replace(&self.path().display().to_string(), "PLACE");
        let session = regex::Regex::new("chat-[0-9]{8}-[0-9]{6}-[0-9a-f]{4}").unwrap();
        let text = session.replace_all(&text, "SESSION");
        let name = |found: &regex::Captures<'_>| {
            let word = &found[0];
            let random = word.chars().any(|c| c.is_ascii_digit());
            if random {
                "REF".to_owned()
            } else {
                word.to_owned()
            }
        };
        refs.replace_all(&text, name).into_owned()
    }
}

/// Variables that would change what is tested.
pub(crate) const ABSENT: [&str; 12] = [
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "TRIMTAB_MODEL",
    "TRIMTAB_PRESET",
    "TRIMTAB_MODELS",
    "XDG_DATA_HOME",
    "PAGER",
    "LESS",
];

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command, input: &str) -> Outcome {
    let mut child = command
        .env("COLUMNS", "80")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A run that refuses its arguments does not read on.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Outcome {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// Compares a run with the file that says what it should give; `TRIMTAB_BLESS=1` writes it.
#[track_caller]
pub(crate) fn golden(name: &str, place: &Place, outcome: &Outcome) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/chat")
        .join(name);
    let mut text = format!("exit code {}\n", outcome.code);
    for (stream, content) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let _ = write!(text, "--- {stream}\n{}", place.steady(content));
    }
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "differs from {}", path.display());
}

/// A script whose model reads the notes, and then answers twice.
pub(crate) const READS: &str = r#"[
  {"reasoning": "The notes should say it.", "text": "I look at the notes.",
   "calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
  {"text": "The answer to question 42 is 294."},
  {"text": "You are welcome."}
]"#;
