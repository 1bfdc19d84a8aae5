//! A session: a log and a journal that outlive the process.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trimtab_engine::journal::{Journal, JournalEntry};
use trimtab_engine::log::Log;
use trimtab_engine::normalise::Options;
use trimtab_engine::plan::{Edit, Plan, Reason};
use trimtab_engine::view::policy::Views;
use trimtab_engine::window::{Invalid, Projection, Window};
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Part};
use trimtab_store::{SessionId, Store, Stream};

use crate::admission::{Admission, Admitted};

/// How many entries of a stream are read at a time.
const BATCH: usize = 256;

/// Why a session could not do what it was asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed. Another writer to the same session shows as a conflict here: open
    /// the session again to see what it wrote.
    #[error(transparent)]
    Store(#[from] trimtab_store::Error),
    /// The window is not valid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// An entry of the log or journal cannot be read.
    #[error("entry {position} of the {stream} of session '{session}' cannot be read: {why}")]
    Entry {
        /// The session.
        session: String,
        /// `log` or `journal`.
        stream: &'static str,
        /// Its position.
        position: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// A conversation whose log and journal are in a store.
///
/// Whatever a method has done is durable. Opening the session again, in any process, gives
/// the same window, byte for byte.
///
/// ```
/// use trimtab::engine::normalise::Options;
/// use trimtab::engine::view::policy::Views;
/// use trimtab::model::Message;
/// use trimtab::session::Session;
/// use trimtab::store::{MemoryStore, SessionId};
///
/// let (store, id) = (MemoryStore::new(), SessionId::new("demo")?);
/// let mut session = Session::open(&store, id.clone(), Options::default(), Views::default())?;
/// session.admit(Message::user("hello"))?;
///
/// let mut again = Session::open(&store, id, Options::default(), Views::default())?;
/// assert_eq!(again.window()?.messages().next().unwrap().text(), "hello");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Session<'s> {
    store: &'s dyn Store,
    id: SessionId,
    admission: Admission<'s>,
    projection: Projection,
    /// Where the next entries go; another writer would have moved them on.
    log_position: u64,
    journal_position: u64,
}

/// An entry of the log as it is stored: stored outputs are not written twice.
#[derive(Serialize, Deserialize)]
struct Entry {
    message: Message,
    /// How outputs are shown that came in longer than their view may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown: Vec<(usize, Output)>,
}

impl<'s> Session<'s> {
    /// Opens a session, or begins it if it is new.
    pub fn open(
        store: &'s dyn Store,
        id: SessionId,
        options: Options,
        views: Views,
    ) -> Result<Self, SessionError> {
        let admission = Admission::new(store, id.clone(), views);
        let entries: Vec<Entry> = read_all(store, &id, Stream::Log)?;
        let plans: Vec<JournalEntry> = read_all(store, &id, Stream::Journal)?;
        let (log_position, journal_position) = (entries.len() as u64, plans.len() as u64);
        let mut log = Log::new();
        let mut journal = Journal::new();
        for (at, mut entry) in entries.into_iter().enumerate() {
            fill_in(store, &id, &mut entry.message)?;
            log.append(entry.message);
            if !entry.shown.is_empty() {
                let plan = Plan::new(Reason::Admission, edits(at, entry.shown));
                journal.append(JournalEntry::Plan(plan));
            }
        }
        for plan in plans {
            journal.append(plan);
        }
        let projection = Projection::restore(options, log, journal);
        Ok(Self {
            store,
            id,
            admission,
            projection,
            log_position,
            journal_position,
        })
    }

    /// Appends a message: outputs are stored whole and get their view. Gives its position.
    pub fn admit(&mut self, message: Message) -> Result<usize, SessionError> {
        let Admitted { message, shown } = self.admission.prepare(&self.projection, message)?;
        let mut entry = Entry { message, shown };
        let contents = empty(&mut entry.message);
        let bytes = json(&entry);
        self.log_position =
            self.store
                .append(&self.id, Stream::Log, self.log_position, &[&bytes])?;
        put_back(&mut entry.message, contents);
        let at = self.projection.admit(entry.message);
        self.projection
            .carry_out(Plan::new(Reason::Admission, edits(at, entry.shown)));
        Ok(at)
    }

    /// The window as it would be sent now.
    pub fn window(&mut self) -> Result<&Window, SessionError> {
        Ok(self.projection.window()?)
    }

    /// The messages as they came, the plans that were carried out.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Carries out a plan if that makes the window smaller by some estimate. None means that
    /// it would not have.
    pub fn shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, SessionError> {
        let Some(plan) = self.projection.would_shrink(plan, tokens)? else {
            return Ok(None);
        };
        self.write(&JournalEntry::Plan(plan.clone()))?;
        self.projection.carry_out(plan.clone());
        Ok(Some(plan))
    }

    /// Takes the newest plan back; false if there is none.
    pub fn undo(&mut self) -> Result<bool, SessionError> {
        if !self.projection.can_undo() {
            return Ok(false);
        }
        self.write(&JournalEntry::Undo)?;
        Ok(self.projection.undo())
    }

    fn write(&mut self, entry: &JournalEntry) -> Result<(), SessionError> {
        let bytes = json(entry);
        let at = self.journal_position;
        self.journal_position = self
            .store
            .append(&self.id, Stream::Journal, at, &[&bytes])?;
        Ok(())
    }
}

fn edits(message: usize, shown: Vec<(usize, Output)>) -> Vec<Edit> {
    let show = |(part, output)| Edit::Show {
        message,
        part,
        output,
    };
    shown.into_iter().map(show).collect()
}

fn json<T: Serialize>(entry: &T) -> Vec<u8> {
    trimtab_model::RawJson::of(entry)
        .as_str()
        .as_bytes()
        .to_vec()
}

fn read_all<T: for<'de> Deserialize<'de>>(
    store: &dyn Store,
    id: &SessionId,
    stream: Stream,
) -> Result<Vec<T>, SessionError> {
    let mut entries = Vec::new();
    loop {
        let batch = store.read(id, stream, entries.len() as u64, BATCH)?;
        let last = batch.len() < BATCH;
        for bytes in batch {
            let entry = serde_json::from_slice(&bytes).map_err(|error| SessionError::Entry {
                session: id.to_string(),
                stream: if stream == Stream::Log {
                    "log"
                } else {
                    "journal"
                },
                position: entries.len(),
                why: error.to_string(),
            })?;
            entries.push(entry);
        }
        if last {
            return Ok(entries);
        }
    }
}

/// Takes the contents of stored outputs out of a message.
fn empty(message: &mut Message) -> Vec<Vec<Part>> {
    let stored = message.parts.iter_mut().filter_map(|part| match part {
        Part::Output(output) if output.stored.is_some() => Some(output),
        _ => None,
    });
    stored
        .map(|output| std::mem::take(&mut output.content))
        .collect()
}

/// Puts contents back where they were taken from.
fn put_back(message: &mut Message, contents: Vec<Vec<Part>>) {
    let mut contents = contents.into_iter();
    for part in &mut message.parts {
        if let Part::Output(output) = part
            && output.stored.is_some()
        {
            output.content = contents.next().unwrap_or_default();
        }
    }
}

/// Reads the contents of stored outputs back from the store.
fn fill_in(store: &dyn Store, id: &SessionId, message: &mut Message) -> Result<(), SessionError> {
    for part in &mut message.parts {
        let Part::Output(output) = part else { continue };
        if let Some(stored) = &output.stored {
            output.content = Admission::contents(store, id, stored.id())?;
        }
    }
    Ok(())
}
