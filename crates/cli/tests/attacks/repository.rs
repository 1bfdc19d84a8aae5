//! A cloned repository with a settings file in it, and verbs run there.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use tempfile::TempDir;

use crate::run::{PATIENCE, trimtab};

/// A folder with a home and a repository in it.
pub(crate) struct Repository {
    folder: TempDir,
}

impl Repository {
    /// With this text in its `trimtab.toml`.
    pub(crate) fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "clone/.git", "clone/src"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("clone/trimtab.toml"), settings).unwrap();
        Self { folder }
    }

    /// Where the repository is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    /// The settings file of the repository.
    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("trimtab.toml")
    }

    /// The user's own settings file, whose folder is made.
    pub(crate) fn user_file(&self) -> PathBuf {
        let folder = self.folder.path().join("home/config/trimtab");
        fs::create_dir_all(&folder).unwrap();
        folder.join("config.toml")
    }

    /// The command in the repository, with a home outside of it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_in(&self.path(), args)
    }

    /// The same in another folder.
    pub(crate) fn command_in(&self, folder: &Path, args: &[&str]) -> Command {
        let home = self.folder.path().join("home");
        let mut command = trimtab(&home, args);
        command.current_dir(folder);
        command
    }

    /// Runs the command in the repository.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args))
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None if it did not end by itself.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Everything that was printed.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a command that should end by itself; one that does not is ended.
pub(crate) fn ended(mut command: Command) -> Ended {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Read while it runs: a process whose pipe is full never ends.
    let stdout = read_in_background(child.stdout.take());
    let stderr = read_in_background(child.stderr.take());
    let until = Instant::now() + PATIENCE;
    let mut code = None;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            code = status.code();
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(child.kill());
    child.wait().unwrap();
    Ended {
        code,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
