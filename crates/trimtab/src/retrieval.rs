//! Executes the two retrieval tools on a store.
//!
//! [`Retrieval`] takes a call with its arguments as JSON text, and returns the text of the answer.
//! It never fails: the answer says what went wrong and what the model can do about it. Answers are
//! limited in size, searches in time.

mod arguments;
mod grep;
mod read;
mod refusal;
mod text;

use std::time::Duration;

use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_engine::view::tools::{self, ToolNames};
use trimtab_store::{SessionId, Store};

use arguments::CallArguments;
use refusal::RetrievalRefusal;

pub use refusal::NOT_FOUND;

/// The default time limit of a search: enough for a few gigabytes, and less than clients wait for a
/// tool.
const GREP_TIME: Duration = Duration::from_secs(5);

/// Answers the retrieval calls of one session.
///
/// ```
/// use trimtab::retrieval::Retrieval;
/// use trimtab::store::{MemoryStore, Put, SessionId, Store};
///
/// let store = MemoryStore::new();
/// let session = SessionId::new("s1")?;
/// let stored = store.put(&session, Put::new("call_1", "one\ntwo\nthree"))?;
///
/// let retrieval = Retrieval::new(&store, session);
/// let arguments = format!(r#"{{"ref_id":"{stored}","offset":1,"limit":1}}"#);
/// let answer = retrieval.call("tool_output_cache", &arguments);
/// assert_eq!(answer.text, "    2  two");
///
/// let answer = retrieval.call("tool_output_cache_grep", r#"{"pattern":"thr"}"#);
/// assert_eq!(answer.text, format!("ref:{stored}\n    3  three"));
/// # Ok::<_, trimtab::store::Error>(())
/// ```
#[derive(Clone)]
pub struct Retrieval<'s> {
    store: &'s dyn Store,
    session: SessionId,
    limits: AnswerLimits,
    grep_time: Duration,
}

/// The answer to a retrieval call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrievalAnswer {
    /// The text for the model.
    pub text: String,
    /// True if the call failed; the text then says why and what to do.
    pub is_error: bool,
}

impl<'s> Retrieval<'s> {
    /// Reads the outputs of `session` and of the sessions above it.
    pub fn new(store: &'s dyn Store, session: SessionId) -> Self {
        Self {
            store,
            session,
            limits: AnswerLimits::default(),
            grep_time: GREP_TIME,
        }
    }

    /// Sets other limits for the size of an answer.
    #[must_use]
    pub fn limits(mut self, limits: AnswerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// True if `tool` is one of the two tools, also with the prefix of an MCP client.
    ///
    /// ```
    /// # use trimtab::retrieval::Retrieval;
    /// assert!(Retrieval::is_ours("tool_output_cache"));
    /// assert!(Retrieval::is_ours("mcp__trimtab__tool_output_cache_grep"));
    /// assert!(!Retrieval::is_ours("read_file"));
    /// ```
    pub fn is_ours(tool: &str) -> bool {
        tools::is_retrieval(tool)
    }

    /// Executes a call of `tool` with `arguments`, the JSON text of the model.
    ///
    /// Harmless mistakes of models are accepted: numbers as strings, `null` for missing arguments.
    /// An unknown argument is rejected, with a list of the known ones.
    ///
    /// ```
    /// # use trimtab::retrieval::{NOT_FOUND, Retrieval};
    /// # use trimtab::store::{MemoryStore, SessionId};
    /// # let store = MemoryStore::new();
    /// # let retrieval = Retrieval::new(&store, SessionId::new("s1")?);
    /// let answer = retrieval.call("tool_output_cache", r#"{"ref_id":"made up"}"#);
    /// assert!(answer.is_error);
    /// assert_eq!(answer.text, NOT_FOUND);
    /// # Ok::<_, trimtab::store::Error>(())
    /// ```
    pub fn call(&self, tool: &str, arguments: &str) -> RetrievalAnswer {
        let names = ToolNames::of(tool).unwrap_or_default();
        let (text, is_error) = match self.carry_out(tool, names, arguments) {
            Ok(text) => (text, false),
            Err(RetrievalRefusal(why)) => (names.in_words(&why), true),
        };
        RetrievalAnswer { text, is_error }
    }

    fn carry_out(
        &self,
        tool: &str,
        names: ToolNames,
        arguments: &str,
    ) -> Result<String, RetrievalRefusal> {
        if !Self::is_ours(tool) {
            let (tool, read, grep): (String, _, _) =
                (tool.chars().take(80).collect(), tools::READ, tools::GREP);
            return Err(RetrievalRefusal(format!(
                "There is no tool {tool:?} here: use {read} or {grep}."
            )));
        }
        let arguments = CallArguments::parse(arguments)?;
        // With the prefix of an MCP client, only the end of the name is ours.
        if tool.ends_with(names.grep) {
            arguments.refuse_unknown(&tools::grep())?;
            self.grep(&grep::GrepRequest::new(&arguments)?, names)
        } else {
            arguments.refuse_unknown(&tools::read())?;
            self.read(&read::ReadRequest::new(&arguments)?, names)
        }
    }
}

impl std::fmt::Debug for Retrieval<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retrieval")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
