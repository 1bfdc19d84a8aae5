//! Finds the store and the session, and explains errors of the store.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use trimtab::store::{Error, FolderStore, OutputForm, SessionId, Store};
use trimtab::store_place::StorePlace;
use trimtab_model::Ref;

use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::key_handover;
use crate::ui::visible::visible;
use trimtab::redact::redact_urls;

/// Selects a session.
#[derive(Clone, Debug, clap::Args)]
pub struct SessionArgs {
    /// The session; a unique prefix of its name is enough for reading
    #[arg(
        long,
        short,
        value_name = "S",
        env = "TRIMTAB_SESSION",
        hide_env_values = true
    )]
    pub session: String,
}

impl SessionArgs {
    /// The session.
    pub fn id(&self) -> Result<SessionId, Failure> {
        session_id(&self.session)
    }
}

/// Parses the name of a session.
pub fn session_id(name: &str) -> Result<SessionId, Failure> {
    SessionId::new(name).map_err(|error| {
        Failure::input(
            format!("--session: {error}"),
            "session names have 1 to 512 bytes",
        )
    })
}

/// An open store.
pub struct StoreLocation {
    /// The store.
    pub store: Arc<dyn Store>,
    place: StorePlace,
}

impl StoreArgs {
    /// The place of the store: from the flag, the environment, or the user's data folder.
    pub fn place(&self) -> Result<StorePlace, Failure> {
        let named = self
            .store
            .clone()
            .filter(|path| !path.as_os_str().is_empty());
        let is_named = named.is_some();
        let given = named.or_else(default_folder).ok_or_else(|| {
            Failure::input(
                "no folder for the store: HOME is not set",
                "set it with --store PATH or TRIMTAB_STORE",
            )
        })?;
        let place = StorePlace::new(&given, self.blobs.as_deref()).ok_or_else(|| {
            Failure::input(
                format!("{}: not a store", redact_urls(&given.to_string_lossy())),
                "give the path of a folder, or a postgres:// URL, with --store",
            )
        })?;
        let has_blobs = self.blobs.as_deref().is_some_and(|url| !url.is_empty());
        // Settings and variables for a database do not disturb a command that names a folder. But
        // whoever gives the flag, or an object store and no store at all, expects outputs there.
        let is_expected = has_blobs && (!is_named || is_given_as_flag("--blobs"));
        if let StorePlace::Folder(folder) = &place
            && is_expected
        {
            return Err(Failure::input(
                format!(
                    "an object store (--blobs, TRIMTAB_BLOBS or the setting blobs) needs a store in \
                     a database, and the store is the folder {}",
                    visible(&folder.display().to_string())
                ),
                "give a postgres:// URL with --store, or --blobs '' to use the folder without an \
                 object store",
            ));
        }
        Ok(place.with_variables(key_handover::server_variables()))
    }

    /// Opens an existing store.
    pub fn open(&self) -> Result<StoreLocation, Failure> {
        let place = self.place()?;
        match place.open() {
            // Reading verbs must not create a store by mistake.
            Err(Error::Vanished { .. } | Error::NoTables) => Err(no_store(&place)),
            opened => located(place, opened),
        }
    }

    /// The folder of an existing store in any state, even without its database.
    pub fn present(&self) -> Result<PathBuf, Failure> {
        match self.place()? {
            StorePlace::Folder(path)
                if FolderStore::is_at(&path) || path.join("blobs").is_dir() =>
            {
                Ok(path)
            }
            place @ StorePlace::Folder(_) => Err(no_store(&place)),
            place @ StorePlace::Shared { .. } => Err(Failure::input(
                format!("{place} is a database, not a folder"),
                "check and repair a database with the tools of PostgreSQL; `trimtab doctor` reads \
                 stored outputs",
            )),
        }
    }

    /// Opens a store, and creates it if it does not exist.
    pub fn make(&self) -> Result<StoreLocation, Failure> {
        let place = self.place()?;
        let opened = place.create();
        located(place, opened)
    }
}

/// True if the command line has the flag. The parser takes variables for flags.
fn is_given_as_flag(flag: &str) -> bool {
    std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        let rest = argument.strip_prefix(flag);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

fn no_store(place: &StorePlace) -> Failure {
    Failure::input(
        format!("no store at {place}"),
        "give its folder with --store PATH or TRIMTAB_STORE; `trimtab output put` creates a new \
         one",
    )
}

fn located(
    place: StorePlace,
    opened: Result<Arc<dyn Store>, Error>,
) -> Result<StoreLocation, Failure> {
    let store = opened.map_err(|error| explain(&place, &error))?;
    Ok(StoreLocation { store, place })
}

fn default_folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    // The XDG specification requires relative paths in this variable to be ignored.
    let data = folder("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|path| path.is_absolute());
    let data = data.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/share")));
    Some(data?.join("trimtab"))
}

impl StoreLocation {
    /// The store and its place.
    pub fn into_parts(self) -> (Arc<dyn Store>, StorePlace) {
        (self.store, self.place)
    }

    /// The failure for an error of this store.
    pub fn failed(&self, error: &Error) -> Failure {
        explain(&self.place, error)
    }

    /// The failure for an error that concerns one output.
    pub fn failed_on(&self, session: &SessionId, id: &str, error: &Error) -> Failure {
        match error {
            Error::NotFound => match self.known(session) {
                Err(unknown) => unknown,
                Ok(()) => Failure::input(
                    format!(
                        "no output '{}' in session '{}'",
                        visible(id),
                        visible(session.as_str())
                    ),
                    format!(
                        "`trimtab output list --session {}` lists the outputs",
                        visible(session.as_str())
                    ),
                ),
            },
            Error::Damaged { .. } => Failure::WithHint {
                message: format!(
                    "output '{id}' is damaged: {}",
                    first_line(&error.to_string())
                ),
                hint: Some("the rest of the store is not affected; run the tool again".to_owned()),
            },
            error => self.failed(error),
        }
    }

    /// The number of lines of an output; the store's own count if it cannot be read.
    pub fn shown_lines(&self, session: &SessionId, stored: &Ref) -> u64 {
        let opened = self.store.open(session, stored.id(), OutputForm::Text);
        let lines = opened.and_then(|stored| stored.shown_lines());
        lines.unwrap_or_else(|_| stored.line_count().unwrap_or(0))
    }

    /// Fails if the store does not know `session`.
    pub fn known(&self, session: &SessionId) -> Result<(), Failure> {
        let sessions = self.store.sessions().map_err(|error| self.failed(&error))?;
        if sessions.iter().any(|info| info.session == *session) {
            return Ok(());
        }
        Err(Failure::input(
            format!(
                "no session '{}' in the store at {}",
                visible(session.as_str()),
                self.place
            ),
            "`trimtab output sessions` lists the sessions",
        ))
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Explains an error of the store at `place`.
pub fn explain(place: &dyn Display, error: &Error) -> Failure {
    let text = error.to_string();
    let (message, hint) = match text.split_once("\nhint: ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text, None),
    };
    let at = |message: &str| format!("store at {place}: {message}");
    let failed = |message, hint| Failure::WithHint { message, hint };
    match error {
        Error::PastEnd { line_count, .. } => Failure::input(
            message,
            format!(
                "offsets count from 0: the last line is --offset {}",
                line_count.saturating_sub(1)
            ),
        ),
        Error::BadUrl { .. } => Failure::input(message, hint.unwrap_or_default()),
        Error::NotAStore { .. } => {
            let usual = || "give the folder of a store with --store PATH".to_owned();
            Failure::input(message, hint.unwrap_or_else(usual))
        }
        Error::Input(_) => Failure::input(message, "give a file that can be read, or -"),
        Error::Full => failed(
            at(&message),
            Some("free disk space, or remove old sessions with `trimtab output gc`".to_owned()),
        ),
        Error::ReadOnly => failed(
            at("is read-only"),
            Some("stored outputs are readable; to write, use another --store".to_owned()),
        ),
        Error::InUse { .. } => failed(
            message,
            Some("stop the proxy and other programs that use it, then try again".to_owned()),
        ),
        Error::Damaged { .. } => failed(
            at(&message),
            Some(
                "`trimtab store check` reports what is lost, `trimtab store repair` saves the rest"
                    .to_owned(),
            ),
        ),
        Error::Busy => failed(at(&message), Some("try again in a moment".to_owned())),
        // These errors already name the file.
        Error::Io { .. } => failed(
            message,
            hint.or_else(|| Some("give a folder that can be written with --store PATH".to_owned())),
        ),
        _ => failed(at(&message), hint),
    }
}
