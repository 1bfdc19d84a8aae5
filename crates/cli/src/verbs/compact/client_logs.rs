//! The folders in which clients keep the logs of their sessions.

use std::path::{Path, PathBuf};

use super::next_steps::shell;

/// The folder of a client's logs.
pub(super) struct ClientLogs {
    /// The client's folder in the user's home.
    home: &'static str,
    /// The variable that names another folder instead.
    variable: &'static str,
    /// The folder of the logs in it.
    logs: &'static str,
}

pub(super) const CLAUDE_CODE: ClientLogs = ClientLogs {
    home: ".claude",
    variable: "CLAUDE_CONFIG_DIR",
    logs: "projects",
};
pub(super) const CODEX: ClientLogs = ClientLogs {
    home: ".codex",
    variable: "CODEX_HOME",
    logs: "sessions",
};

impl ClientLogs {
    /// The folder that the variable names.
    fn named(&self) -> Option<PathBuf> {
        let value = std::env::var_os(self.variable)?;
        (!value.is_empty()).then(|| PathBuf::from(value).join(self.logs))
    }

    /// The folder as a word of a shell.
    pub(super) fn shown(&self) -> String {
        match self.named() {
            Some(named) => shell(&named.display().to_string()),
            None => format!("~/{}/{}", self.home, self.logs),
        }
    }

    /// True if `file` is one of the client's own logs, and not a copy at another place.
    pub(super) fn holds(&self, file: &Path) -> bool {
        let below = |file: PathBuf| {
            let in_home = Path::new(self.home).join(self.logs);
            let folders: Vec<_> = file.components().collect();
            let wanted: Vec<_> = in_home.components().collect();
            let is_named = self.named().is_some_and(|named| file.starts_with(named));
            is_named || folders.windows(wanted.len()).any(|part| part == wanted)
        };
        // The path may be relative, and the folder of the client may be a link.
        let paths = [std::path::absolute(file), file.canonicalize()];
        paths.into_iter().flatten().any(below)
    }
}
