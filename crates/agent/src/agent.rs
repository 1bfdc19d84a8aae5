//! The agent.

use std::sync::Arc;
use std::time::Instant;

use trimtab::session::Session;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Message;
use trimtab_store::{SessionId, Store};

use crate::background::Background;
use crate::event::Teller;
use crate::model::Model;
use crate::tools::{AnswerRoom, Redeem, Tools};
use crate::{AgentError, Event, Events, Interrupt, Settings};

/// An agent: a model with tools, and a session that decides what the model sees.
///
/// ```no_run
/// use std::sync::Arc;
/// use trimtab_agent::model::{Client, Endpoint, Model};
/// use trimtab_agent::tools::{Confirm, Workspace};
/// use trimtab_agent::{Agent, Settings};
/// use trimtab_model::Dialect;
/// use trimtab_store::{MemoryStore, SessionId};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::messages(Endpoint::from_env(Dialect::Messages)?);
/// let workspace = Workspace::new(".", Confirm::Never)?;
/// let settings = Settings::new(Model::new(client, "claude-sonnet-4-5"), workspace);
/// let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("demo")?);
/// let (mut agent, _events) = Agent::open(store, id, settings)?;
/// let turn = agent.turn("what is in this folder?").await?;
/// assert!(!turn.text.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct Agent {
    pub(crate) session: Session,
    pub(crate) settings: Settings,
    /// The tools of the settings, and those for retrieval.
    pub(crate) tools: Tools,
    /// How long answers of the retrieval tools may be.
    pub(crate) answer_room: AnswerRoom,
    pub(crate) teller: Teller,
    pub(crate) interrupt: Interrupt,
    pub(crate) background: Option<Background>,
    /// When the model was asked last.
    pub(crate) asked: Option<Instant>,
}

impl Agent {
    /// Opens a session, or begins it if it is new.
    pub fn open(
        store: Arc<dyn Store>,
        id: SessionId,
        settings: Settings,
    ) -> Result<(Self, Events), AgentError> {
        let answer_room = AnswerRoom::default();
        let (tools, names) = with_retrieval(&settings.tools, &store, &id, &answer_room);
        let mut session = Session::open(store, id, settings.setup(&tools, names))?;
        if session.projection().log().is_empty() && !settings.system.is_empty() {
            session.admit(Message::system(&settings.system))?;
        }
        let (teller, events) = Teller::new();
        let agent = Self {
            session,
            settings,
            tools,
            answer_room,
            teller,
            interrupt: Interrupt::default(),
            background: None,
            asked: None,
        };
        Ok((agent, events))
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session, to be changed between two turns.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// What the agent is made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A handle that breaks the turn off which is going on.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// From now on another model answers. What the session decided stays.
    pub fn set_model(&mut self, model: Model) -> Result<(), AgentError> {
        self.change(self.settings.clone().with_model(model))
    }

    /// From now on another policy decides. What was decided stays.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), AgentError> {
        let settings = self.settings.clone();
        self.change(Settings { policy, ..settings })
    }

    /// From now on the agent is made of other things. What the session decided stays, and a
    /// summary that is being written is still wanted.
    pub fn change(&mut self, settings: Settings) -> Result<(), AgentError> {
        let (store, id) = (self.session.store(), self.session.id());
        let (tools, names) = with_retrieval(&settings.tools, store, id, &self.answer_room);
        let setup = settings.setup(&tools, names);
        // Opened anew: another dialect has other rules for what is sent.
        self.session = Session::open(Arc::clone(store), id.clone(), setup)?;
        self.settings = settings;
        self.tools = tools;
        Ok(())
    }

    /// Takes the last plan back; false if there is none. A summary that is being written comes
    /// too late then, which is told when it comes.
    pub fn undo(&mut self) -> Result<bool, AgentError> {
        let undone = self.session.undo()?;
        self.tell_session();
        Ok(undone)
    }

    /// Hands on what the session did.
    pub(crate) fn tell_session(&mut self) {
        for event in self.session.events() {
            self.teller.tell(Event::Session(event));
        }
    }
}

/// The tools with those for retrieval, and what these are called: tools of the settings keep their
/// names.
fn with_retrieval(
    tools: &Tools,
    store: &Arc<dyn Store>,
    id: &SessionId,
    room: &AnswerRoom,
) -> (Tools, Option<ToolNames>) {
    let taken: Vec<String> = tools
        .definitions()
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    let names = ToolNames::beside(&taken);
    let Some(found) = names else {
        return (tools.clone(), None);
    };
    let [read, grep] = Redeem::both(store, id, found);
    let tools = tools.clone().with(read.within(room));
    (tools.with(grep.within(room)), names)
}
