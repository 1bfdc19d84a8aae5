//! Runs a preset in a session, as the proxy or an agent would.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trimtab_engine::compaction::answer::SummaryEnding;
use trimtab_engine::normalise::Slot;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Part, Ref, Role, Usage};
use trimtab_store::{MemoryStore, SessionId};

use super::manager::{ManagerError, SentWindow, ShownRef, WindowManager};
use super::run::ReplaySettings;
use super::sizes::{MessageSizer, larger_count};
use crate::session::{
    Limits, Moment, PendingSummary, Session, SessionEvent, Setup, SummariserAnswer,
};

/// The maximum of requests for one summary, so that a fault cannot make a replay endless.
const MOST_REQUESTS: u64 = 1_000;

/// A session over a store in memory. Summaries are written without a model, and the provider is
/// assumed to count as we estimate.
pub struct ManagedSession {
    session: Session,
    /// The measure of the retrieval tools, which are offered from the first call on, as the proxy
    /// does for agents. Nothing if the policy sends everything unchanged.
    retrieval: Measure,
    sizer: MessageSizer,
    mentions: RefMentions,
    /// The size of the last call's window, until its answer comes.
    open: Option<u64>,
    /// True if the newest message is an output.
    outputs_came: bool,
    /// How often a model would have been asked for a summary.
    own_calls: u64,
}

impl ManagedSession {
    /// A new session under `policy`.
    pub fn new(policy: Policy, settings: &ReplaySettings) -> Result<Self, ManagerError> {
        let retrieval = if policy.sends_unchanged() {
            Measure::default()
        } else {
            retrieval_tools(settings.dialect)
        };
        let setup = Setup {
            dialect: settings.dialect,
            limits: Limits {
                window: Some(settings.window),
                // As the proxy does for a client that sets no limit for the answer.
                max_output: Some(Limits::usual_answer(settings.window)),
                ..Limits::default()
            },
            prices: Some(settings.prices),
            tiers: settings.tiers.clone(),
            tools: settings.tools + retrieval,
            bound_reasoning: settings.bound_reasoning,
            // The reported figure is the larger of two counts. Learning from it would make our
            // estimates lower than both.
            counts_as_we_do: true,
            ..Setup::new(policy)
        };
        let id = SessionId::new("replay").map_err(failed)?;
        // Refs are part of what is measured, and a replay must give the same figures every time.
        let store = Arc::new(MemoryStore::with_fixed_refs());
        let session = Session::open(store, id, setup).map_err(failed)?;
        Ok(Self {
            session,
            retrieval,
            sizer: MessageSizer::default(),
            mentions: RefMentions::default(),
            open: None,
            outputs_came: false,
            own_calls: 0,
        })
    }

    /// Passes a moment; a requested summary is written without a model.
    fn check(&mut self, moment: Moment) -> Result<(), ManagerError> {
        if let Some(pending) = self.session.check(moment).map_err(failed)? {
            self.own_calls += requests(&pending);
            self.session.finish(pending).map_err(failed)?;
        }
        Ok(())
    }

    /// Records the answer to the last call.
    fn answered(&mut self, answer: &Arc<Message>) -> Result<(), ManagerError> {
        let Some(input) = self.open.take() else {
            return Ok(());
        };
        let usage = Usage {
            input,
            output: self.sizer.size(answer).tokens(),
            ..Usage::default()
        };
        self.session.record(&usage).map_err(failed)
    }

    fn shown_refs(&mut self, messages: &[Arc<Message>]) -> Vec<ShownRef> {
        let projection = self.session.projection();
        let log = projection.log().messages();
        let whole = outputs_shown_whole(projection.slots());
        let output_ids: HashSet<&str> = stored(log).map(|(_, _, stored)| stored.id()).collect();
        let archives = archives(projection.journal().plans(), &output_ids);
        self.mentions.read_words(messages);
        let mut refs = Vec::new();
        for (position, call_id, stored) in stored(log) {
            if whole.contains(&(position, stored.id())) {
                continue;
            }
            let hides = |(from, to, _): &&(usize, usize, Ref)| (*from..*to).contains(&position);
            let behind = archives
                .iter()
                .rev()
                .filter(hides)
                .map(|(_, _, stored)| stored);
            let shown = std::iter::once(stored).chain(behind);
            if let Some(stored) = shown
                .into_iter()
                .find(|stored| self.mentions.has(stored.id()))
            {
                refs.push(ShownRef {
                    position,
                    call_id: call_id.to_owned(),
                    stored: stored.clone(),
                });
            }
        }
        refs
    }
}

/// The number of requests to a model for a summary, if each of them is answered.
fn requests(pending: &PendingSummary) -> u64 {
    // A copy, because the requests are only counted. Any text serves as an answer.
    let mut asked = pending.clone();
    let mut count = 0;
    while count < MOST_REQUESTS && asked.request().is_some() {
        count += 1;
        asked.answer(SummariserAnswer::Text {
            text: "a summary".to_owned(),
            ending: SummaryEnding::Whole,
            usage: None,
        });
    }
    count
}

/// The measure of the definitions of the retrieval tools.
fn retrieval_tools(dialect: Dialect) -> Measure {
    let definitions = ToolNames::default().definitions();
    let texts = definitions
        .iter()
        .map(|tool| tool.in_dialect(dialect).to_string());
    texts.map(|text| Measure::of_tools(&text)).sum()
}

/// The text of an event, if it is about the window.
fn event_text(event: &SessionEvent) -> Option<String> {
    if event.tokens_saved() == 0 {
        return None;
    }
    let why = match &event.reason {
        PlanReason::Triggered { trigger } => trigger.as_str(),
        PlanReason::OutputsOverBudget => "outputs are over their budget",
        PlanReason::Fit => "the window would not fit",
        PlanReason::Overflow => "an overflow",
        PlanReason::ByHand => "by hand",
        PlanReason::Nothing | PlanReason::Admission | PlanReason::FrontChanged => "a change",
    };
    let figures = || {
        let (before, after) = (event.tokens_before, event.tokens_after);
        format!("{before} to {after} tokens")
    };
    Some(format!(
        "{why}: {}",
        event.note.clone().unwrap_or_else(figures)
    ))
}

fn failed(error: impl std::fmt::Display) -> ManagerError {
    ManagerError(error.to_string())
}

/// The stored outputs of a log: position, call, ref.
fn stored(log: &[Arc<Message>]) -> impl Iterator<Item = (usize, &str, &Ref)> {
    log.iter().enumerate().flat_map(|(at, message)| {
        let outputs = message.outputs();
        outputs
            .filter_map(move |output| Some((at, output.call_id.as_str(), output.stored.as_ref()?)))
    })
}

/// The outputs that the window shows in full, by position and ref.
fn outputs_shown_whole(slots: &[Slot]) -> HashSet<(usize, &str)> {
    let mut whole = HashSet::new();
    // A placeholder stands for the outputs of a hidden message.
    for slot in slots.iter().filter(|slot| slot.message.agent_visible()) {
        if let Some(at) = slot.source.in_log() {
            let outputs = slot.message.outputs().filter(|output| !output.trimmed);
            whole.extend(outputs.filter_map(|output| Some((at, output.stored.as_ref()?.id()))));
        }
    }
    whole
}

/// The runs that plans have hidden, and the refs under which each plan stored them.
fn archives<'p>(
    plans: impl Iterator<Item = &'p Plan>,
    output_ids: &HashSet<&str>,
) -> Vec<(usize, usize, Ref)> {
    let mut archives = Vec::new();
    for plan in plans {
        let refs = plan
            .refs
            .iter()
            .filter(|stored| !output_ids.contains(stored.id()));
        for stored in refs {
            for edit in &plan.edits {
                if let Edit::Hide { from, to } = edit {
                    archives.push((*from, *to, stored.clone()));
                }
            }
        }
    }
    archives
}

/// The words of a window that may be refs. Every message is read once.
#[derive(Default)]
struct RefMentions {
    known: HashMap<*const Message, (Arc<Message>, Vec<String>)>,
    words: HashSet<String>,
}

/// The length of a ref's id in bytes.
const REF: usize = 16;

impl RefMentions {
    fn read_words(&mut self, messages: &[Arc<Message>]) {
        self.words.clear();
        for message in messages {
            let known = self.known.entry(Arc::as_ptr(message));
            let (_, words) = known.or_insert_with(|| (Arc::clone(message), words(message)));
            self.words.extend(words.iter().cloned());
        }
    }

    fn has(&self, id: &str) -> bool {
        self.words.contains(id)
    }
}

fn words(message: &Message) -> Vec<String> {
    let mut found = Vec::new();
    for part in &message.parts {
        let text = match part {
            Part::Text(text) => text.text.as_str().into(),
            Part::Output(output) => output.text(),
            _ => continue,
        };
        let words = text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
        found.extend(words.filter(|word| word.len() == REF).map(str::to_owned));
    }
    found
}

impl WindowManager for ManagedSession {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        let answer = message.role == Role::Assistant;
        if answer {
            // As in the proxy, the usage arrives with the answer, before the next decision.
            self.answered(message)?;
        }
        self.session
            .admit(Message::clone(message))
            .map_err(failed)?;
        self.outputs_came = message.role == Role::Tool;
        if answer {
            self.check(Moment::AfterAnswer)?;
            if !message.has_calls() {
                self.check(Moment::BeforeFinal)?;
                self.check(Moment::AfterTurn)?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        if std::mem::take(&mut self.outputs_came) {
            self.check(Moment::AfterOutputs)?;
        }
        self.check(Moment::BeforeCall)?;
        self.session.ready().map_err(failed)?;
        let window = self.session.window().map_err(failed)?;
        let messages: Vec<Arc<Message>> = window.messages().cloned().collect();
        self.open = Some(larger_count(&self.sizer.window(&messages)));
        Ok(SentWindow {
            messages,
            refs: Vec::new(),
            added_tools: self.retrieval,
        })
    }

    fn refs(&mut self, window: &[Arc<Message>]) -> Vec<ShownRef> {
        self.shown_refs(window)
    }

    fn cache_is_cold(&mut self) {
        self.session.cache_is_cold();
    }

    fn decided(&mut self) -> String {
        let events = self.session.events();
        let texts: Vec<String> = events.iter().filter_map(event_text).collect();
        texts.join("; ")
    }

    fn compactions(&self) -> u64 {
        self.session.projection().journal().compactions() as u64
    }

    fn own_calls(&self) -> u64 {
        self.own_calls
    }
}
