//! Runs the command independently of the settings of this machine.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Variables that would change what the command does.
const CLEARED: [&str; 19] = [
    "ANTHROPIC_API_BASE",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_API_KEY",
    "TRIMTAB_CONFIG",
    "TRIMTAB_BLOBS",
    "TRIMTAB_STORE",
    "TRIMTAB_MODELS",
    "SSL_CERT_FILE",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
];

/// The command in `folder`, with its store and its settings there.
pub(crate) fn trimtab(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
    command
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("XDG_DATA_HOME", folder.join("data"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    for name in CLEARED {
        command.env_remove(name);
    }
    command
}

/// Runs the command to its end.
pub(crate) fn finished(folder: &Path, args: &[&str]) -> Output {
    trimtab(folder, args).output().unwrap()
}

/// What a run wrote.
pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The user's own file of settings for a command in `folder`.
pub(crate) fn user_file(folder: &Path) -> PathBuf {
    let place = folder.join("config").join("trimtab");
    std::fs::create_dir_all(&place).unwrap();
    place.join("config.toml")
}

/// `trimtab serve`, running.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    /// Kept until the end.
    folder: Option<TempDir>,
    lines: Receiver<String>,
}

impl Served {
    /// Starts it with `args`, on a free port.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), args)
    }

    /// The same in `folder`.
    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Self {
        Self::start_with(folder, args, &[])
    }

    /// The same with variables.
    pub(crate) fn start_with(folder: TempDir, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve"];
        if !args.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        all.extend(args);
        let mut command = trimtab(folder.path(), &all);
        let mut child = command
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let mut served = Self {
            child,
            url: String::new(),
            folder: Some(folder),
            lines,
        };
        let line = served.wait_for("listening on ");
        let url = line.split("listening on ").nth(1).unwrap();
        served.url = String::from(url.split(' ').next().unwrap());
        served
    }

    /// The next line on standard error that contains `text`.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line with {text:?}: {error}"),
            }
        }
    }

    /// The lines on standard error that nobody waited for yet.
    #[allow(dead_code, reason = "not every test binary asks for it")]
    pub(crate) fn lines_so_far(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// The number of its process.
    #[allow(dead_code, reason = "not every test binary asks for it")]
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, by the name that `kill` knows.
    pub(crate) fn signal(&self, name: &str) {
        kill(self.child.id(), name);
    }

    /// Kills it where it is, and gives the folder that it worked in.
    pub(crate) fn killed(mut self) -> TempDir {
        self.signal("KILL");
        self.child.wait().unwrap();
        self.folder.take().unwrap()
    }

    /// Waits for its end: exit code and standard output.
    pub(crate) fn end(mut self) -> (i32, String) {
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), stdout)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(id: u32, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &id.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Makes a program of `text`.
pub(crate) fn program(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Where things are kept that can be made again.
pub(crate) fn cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
    cache.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")))
}

/// Says something, where it is shown.
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}
