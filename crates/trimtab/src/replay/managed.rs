//! Runs a preset in a session, as the proxy or an agent would.

use std::collections::HashSet;
use std::sync::Arc;

use thiserror::Error;
use trimtab_engine::decide::summary::answer::SummaryEnding;
use trimtab_engine::plan::Edit;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Output, Part, Ref, Role, Usage};
use trimtab_store::{MemoryStore, SessionId};

use super::report::ReplayReport;
use super::run::ReplaySettings;
use crate::session::{Limits, Moment, PendingSummary, Session, Setup, SummariserAnswer};

/// The maximum of requests for one summary, so that a fault cannot make a replay endless.
const MOST_REQUESTS: u64 = 1_000;

/// The ref of an output that a window does not show in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRef {
    /// Position in the log of the message with the output.
    pub position: usize,
    /// The id of its call.
    pub call_id: String,
    /// The ref; its text occurs in the window.
    pub stored: Ref,
}

/// Why a conversation cannot be replayed, as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ReplayError(pub(super) String);

/// A session over a store in memory. Summaries are written without a model, and the provider is
/// assumed to count as we estimate.
pub(super) struct ManagedSession {
    session: Session,
    /// The measure of the retrieval tools, which are offered from the first call on, as the proxy
    /// does for agents. Nothing if the policy sends everything unchanged.
    pub(super) retrieval: Measure,
    /// The tokens of the last call's window, until its answer comes.
    pub(super) open: Option<u64>,
    /// True if the newest message is an output.
    outputs_came: bool,
    /// How often a model would have been asked for a summary.
    own_calls: u64,
}

impl ManagedSession {
    /// A new session under `policy`.
    pub(super) fn new(policy: Policy, settings: &ReplaySettings) -> Result<Self, ReplayError> {
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
            open: None,
            outputs_came: false,
            own_calls: 0,
        })
    }

    /// Passes a moment; a requested summary is written without a model.
    fn check(&mut self, moment: Moment) -> Result<(), ReplayError> {
        if let Some(pending) = self.session.check(moment).map_err(failed)? {
            self.own_calls += requests(&pending);
            self.session.finish(pending).map_err(failed)?;
        }
        Ok(())
    }

    /// Adds the next message of the conversation.
    pub(super) fn admit(&mut self, message: &Arc<Message>) -> Result<(), ReplayError> {
        let answer = message.role == Role::Assistant;
        // As in the proxy, the usage arrives with the answer, before the next decision.
        if let Some(input) = self.open.take_if(|_| answer) {
            let usage = Usage {
                input,
                output: Measure::of(message).tokens(),
                ..Usage::default()
            };
            self.session.record(&usage).map_err(failed)?;
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

    /// The window for the next call, with its measure.
    pub(super) fn window(&mut self) -> Result<(Vec<Arc<Message>>, Measure), ReplayError> {
        if std::mem::take(&mut self.outputs_came) {
            self.check(Moment::AfterOutputs)?;
        }
        self.check(Moment::BeforeCall)?;
        self.session.ready().map_err(failed)?;
        let window = self.session.window().map_err(failed)?;
        let messages = window.messages().cloned().collect();
        Ok((messages, window.measures().total()))
    }

    /// The report with what the session did in total, and the session.
    pub(super) fn completed(self, report: ReplayReport) -> (ReplayReport, Session) {
        let projection = self.session.projection();
        let slots = projection.slots().iter();
        let shown =
            slots.filter(|slot| slot.message.agent_visible() && slot.source.in_log().is_some());
        let shown: Vec<_> = shown.collect();
        let outputs = shown.iter().flat_map(|slot| slot.message.outputs());
        let cut = outputs.filter(|output| output.trimmed).count();
        let report = ReplayReport {
            hidden: projection.log().len().saturating_sub(shown.len()) as u64,
            cut: cut as u64,
            compactions: projection.journal().compactions() as u64,
            own_calls: self.own_calls,
            ..report
        };
        (report, self.session)
    }

    /// The refs of outputs that the last window does not show in full.
    pub(super) fn refs(&self, messages: &[Arc<Message>]) -> Vec<ShownRef> {
        let projection = self.session.projection();
        let log = projection.log().messages().iter().enumerate();
        let outputs = log.flat_map(|(at, message)| message.outputs().map(move |one| (at, one)));
        let outputs: Vec<(usize, &Output)> = outputs.collect();
        let of_outputs = outputs
            .iter()
            .filter_map(|(_, one)| Some(one.stored.as_ref()?.id()));
        let of_outputs: HashSet<&str> = of_outputs.collect();
        let words = ref_words(messages);
        let is_mentioned = |stored: &&Ref| words.contains(stored.id());
        // The runs that plans have hidden, newest first, each with a ref of what was stored then.
        let mut archives = Vec::new();
        for plan in projection.journal().plans().rev() {
            let refs = plan.refs.iter().filter(is_mentioned);
            for stored in refs.filter(|stored| !of_outputs.contains(stored.id())) {
                archives.extend(plan.edits.iter().filter_map(|edit| match edit {
                    Edit::Hide { from, to } => Some((*from..*to, stored)),
                    _ => None,
                }));
            }
        }
        let shown = |&(position, output): &(usize, &Output)| {
            let own = output.stored.as_ref()?;
            let slot = projection.slot_of(position);
            // A placeholder stands for the outputs of a hidden message.
            let slot = slot.filter(|slot| slot.message.agent_visible());
            let mut now = slot.into_iter().flat_map(|slot| slot.message.outputs());
            if now.any(|now| !now.trimmed && now.stored.as_ref().map(Ref::id) == Some(own.id())) {
                return None;
            }
            let behind = || archives.iter().find(|(run, _)| run.contains(&position));
            let stored = Some(own).filter(is_mentioned);
            Some(ShownRef {
                position,
                call_id: output.call_id.clone(),
                stored: stored.or_else(|| Some(behind()?.1))?.clone(),
            })
        };
        outputs.iter().filter_map(shown).collect()
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

fn failed(error: impl std::fmt::Display) -> ReplayError {
    ReplayError(error.to_string())
}

/// The length of a ref's id in bytes.
const REF: usize = 16;

/// The words of a window that may be refs.
fn ref_words(messages: &[Arc<Message>]) -> HashSet<String> {
    let mut found = HashSet::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
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
