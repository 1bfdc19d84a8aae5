//! A real terminal: the command in a pane of tmux.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::run::{ABSENT, Place};

/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the screen is looked at.
const GLANCE: Duration = Duration::from_millis(25);

/// The file that the exit code is written to.
const END: &str = "exit-code";
/// Runs a command and writes its exit code to a file: tmux 3.3 may miss the end of its child.
const TELLS_ITS_END: &str =
    r#"end=$1; shift; trap : INT; "$@"; code=$?; echo $code >"$end.new"; mv "$end.new" "$end""#;

/// A pane in which the command runs.
pub(crate) struct Pane {
    socket: PathBuf,
    // The place must outlive the command that works in it.
    place: Place,
}

impl Pane {
    /// Starts `trimtab chat` with `args` in a terminal of this size; none without tmux.
    pub(crate) fn start(place: Place, size: (u32, u32), args: &[&str]) -> Option<Self> {
        Self::start_with(place, size, args, &[])
    }

    /// The same with further variables.
    pub(crate) fn start_with(
        place: Place,
        (width, height): (u32, u32),
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("SKIPPED: tmux is not installed, so nothing was tested in a terminal");
            return None;
        }
        let socket = place.path().join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&socket).args(["-u", "-f", "/dev/null"]);
        tmux.args(["set-option", "-g", "remain-on-exit", "on", ";"]);
        tmux.args(["new-session", "-d", "-x", &width.to_string()]);
        tmux.args(["-y", &height.to_string(), "-c"])
            .arg(place.workspace());
        tmux.args(["sh", "-c", TELLS_ITS_END, "sh"]);
        tmux.arg(place.path().join(END));
        tmux.arg(env!("CARGO_BIN_EXE_trimtab"))
            .arg("chat")
            .args(args);
        for name in ABSENT.iter().chain(&["TMUX", "COLUMNS"]) {
            tmux.env_remove(name);
        }
        tmux.envs(place.environment());
        tmux.envs(variables.iter().copied());
        let started = tmux.output().unwrap();
        assert!(started.status.success(), "{started:?}");
        Some(Self { socket, place })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        let output = tmux
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses keys by their names: `Enter`, `C-c`, `Up`.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Pastes a text, as a terminal does.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    /// Types a line, and sends it once it shows: the prompt that is waited for next is then
    /// never the one that the line was typed at.
    #[track_caller]
    pub(crate) fn line(&self, text: &str) {
        self.type_in(text);
        let solid = |text: &str| text.split_whitespace().collect::<String>();
        self.wait_until(text, |screen| solid(screen).ends_with(&solid(text)));
        self.press(&["Enter"]);
    }

    /// Everything that was on the screen, without colours.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    /// The same with colours.
    pub(crate) fn colours(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "waited for {what:?}:\n{screen}");
            std::thread::sleep(GLANCE);
        }
    }

    /// Waits until `part` is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, part: &str) -> String {
        self.wait_until(part, |screen| screen.contains(part))
    }

    /// Waits until the prompt is there and nothing is typed behind it.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) -> String {
        self.wait_until("the prompt", |screen| {
            screen
                .trim_end()
                .lines()
                .last()
                .is_some_and(|line| line.trim_end() == ">")
        })
    }

    /// Presses a key until the command ends, and gives its exit code: a key that comes before
    /// the prompt reads again goes nowhere.
    #[track_caller]
    pub(crate) fn press_until_end(&self, key: &str) -> String {
        let begun = Instant::now();
        while self.exit_code().is_none() && begun.elapsed() < PATIENCE {
            self.press(&[key]);
            std::thread::sleep(GLANCE * 5);
        }
        self.wait_for_end()
    }

    /// Waits for the end of the command and gives its exit code.
    #[track_caller]
    pub(crate) fn wait_for_end(&self) -> String {
        let begun = Instant::now();
        loop {
            if let Some(code) = self.exit_code() {
                return code;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "it did not end:\n{}",
                self.screen()
            );
            std::thread::sleep(GLANCE);
        }
    }

    /// The exit code, once the command has ended.
    fn exit_code(&self) -> Option<String> {
        let code = std::fs::read_to_string(self.place.path().join(END)).ok()?;
        Some(code.trim().to_owned())
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}
