//! The agent: a session with its settings, and everything that may change between two turns.

use std::sync::Arc;
use std::time::Instant;

use trimtab::session::Session;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Message;
use trimtab_store::{SessionId, Store};

use crate::background::BackgroundSummary;
use crate::event::EventSender;
use crate::model::Model;
use crate::tools::{AnswerRoom, RetrievalTool, ToolSet};
use crate::{AgentError, AgentEvent, AgentEvents, AgentSettings, Interrupt};

/// An agent: a model with tools, and a session that decides what the model sees.
///
/// ```no_run
/// use std::sync::Arc;
/// use trimtab_agent::model::{ModelClient, Endpoint, Model};
/// use trimtab_agent::tools::{Confirm, Workspace};
/// use trimtab_agent::{Agent, AgentSettings};
/// use trimtab_model::Dialect;
/// use trimtab_store::{MemoryStore, SessionId};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ModelClient::messages(Endpoint::from_env(Dialect::Messages)?);
/// let workspace = Workspace::new(".", Confirm::Never)?;
/// let settings = AgentSettings::new(Model::new(client, "claude-sonnet-4-5"), workspace);
/// let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("demo")?);
/// let (mut agent, _events) = Agent::open(store, id, settings)?;
/// let turn = agent.turn("what is in this folder?").await?;
/// assert!(!turn.text.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct Agent {
    pub(crate) session: Session,
    pub(crate) settings: AgentSettings,
    /// The tools of the settings, plus the retrieval tools.
    pub(crate) tools: ToolSet,
    /// How long answers of the retrieval tools may be.
    pub(crate) answer_room: AnswerRoom,
    pub(crate) event_sender: EventSender,
    pub(crate) interrupt: Interrupt,
    pub(crate) background: Option<BackgroundSummary>,
    /// The time of the last model call. The prompt cache expires after it.
    pub(crate) last_call: Option<Instant>,
}

impl Agent {
    /// Opens a session, or creates it if it is new.
    pub fn open(
        store: Arc<dyn Store>,
        id: SessionId,
        settings: AgentSettings,
    ) -> Result<(Self, AgentEvents), AgentError> {
        let answer_room = AnswerRoom::default();
        let (tools, names) = with_retrieval(&settings.tools, &store, &id, &answer_room);
        let mut session = Session::open(store, id, settings.setup(&tools, names))?;
        // A resumed session already has its system message.
        if session.projection().log().is_empty() && !settings.system.is_empty() {
            session.admit(Message::system(&settings.system))?;
        }
        let (event_sender, events) = EventSender::new();
        let agent = Self {
            session,
            settings,
            tools,
            answer_room,
            event_sender,
            interrupt: Interrupt::default(),
            background: None,
            last_call: None,
        };
        Ok((agent, events))
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session, for changes between two turns.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The settings of the agent.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// A handle that interrupts the current turn.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Changes the model. Plans that the session made stay.
    pub fn set_model(&mut self, model: Model) -> Result<(), AgentError> {
        self.change(self.settings.clone().with_model(model))
    }

    /// Changes the policy. Plans that the session made stay.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), AgentError> {
        let settings = self.settings.clone();
        self.change(AgentSettings { policy, ..settings })
    }

    /// Changes the settings. Plans that the session made stay, and a summary in progress is still
    /// used.
    pub fn change(&mut self, settings: AgentSettings) -> Result<(), AgentError> {
        let (store, id) = (self.session.store(), self.session.id());
        let (tools, names) = with_retrieval(&settings.tools, store, id, &self.answer_room);
        let setup = settings.setup(&tools, names);
        // Reopen the session, because another dialect has other rules for the window.
        self.session = Session::open(Arc::clone(store), id.clone(), setup)?;
        self.settings = settings;
        self.tools = tools;
        Ok(())
    }

    /// Reverts the last plan; false if there is none. A summary in progress then comes too late,
    /// which an event reports.
    pub fn undo(&mut self) -> Result<bool, AgentError> {
        let undone = self.session.undo()?;
        self.tell_session();
        Ok(undone)
    }

    /// Forwards the events of the session.
    pub(crate) fn tell_session(&mut self) {
        for event in self.session.events() {
            self.event_sender.send(AgentEvent::Session(event));
        }
    }
}

/// The tools with the retrieval tools, and the names of the latter. Tools of the settings keep
/// their names.
fn with_retrieval(
    tools: &ToolSet,
    store: &Arc<dyn Store>,
    id: &SessionId,
    room: &AnswerRoom,
) -> (ToolSet, Option<ToolNames>) {
    let taken: Vec<String> = tools
        .definitions()
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    let names = ToolNames::beside(&taken);
    // Both names and their alternatives are taken, so the tools are not offered at all.
    let Some(found) = names else {
        return (tools.clone(), None);
    };
    let [read, grep] = RetrievalTool::both(store, id, found);
    let tools = tools.clone().with(read.within(room));
    (tools.with(grep.within(room)), names)
}
