//! Applies the window of a conversation to a body: makes the window fit, offers the retrieval
//! tools, splices the changes into the client's bytes, and validates the result.

use std::collections::{BTreeSet, HashSet};
use std::mem::discriminant;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use trimtab::request::changes_to;
use trimtab::session::SessionError;
use trimtab_engine::journal::Journal;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{MessageSource, WindowEntry};
use trimtab_engine::observation::observed;
use trimtab_engine::plan::Plan;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::estimate::Measure;
use trimtab_model::{Output, Part, Ref};
use trimtab_store::Store;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::{BodyChange, splice};
use trimtab_wire::validate::{RequestFault, validate};

use super::renamed_tools::with_tool_names;
use super::{Branch, BranchError};
use crate::conversation::retrieval_tools::{self, RetrievalOffer};
use crate::models::reasoning_rule::ReasoningRule;
use crate::records::plan_note::PlanNote;
use crate::records::record::{KeptReasoning, PromptSizes};

/// A body that is ready to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutgoingBody {
    /// The body; none if the client's body is sent unchanged.
    pub(crate) body: Option<Bytes>,
    /// True if the messages in it are not those of the client.
    pub(crate) has_new_window: bool,
    /// How many messages with reasoning the client sent, and how many of them are sent with it.
    pub(crate) reasoning: KeptReasoning,
    /// The sizes of the original and the sent prompt.
    pub(crate) sizes: PromptSizes,
    /// The tokens that the provider is expected to count for the prompt. It is based on reported
    /// usage, so it cannot be compared with `sizes`.
    pub(crate) tokens: u64,
    /// The output limit in tokens, if it has one.
    pub(crate) answer: Option<u64>,
    /// The names of the offered retrieval tools; none if they are not offered.
    pub(crate) offered: Option<ToolNames>,
    /// The number of the window in its session.
    pub(crate) window: u64,
    /// The kinds of repairs, without which the provider would reject it.
    pub(crate) repairs: Vec<&'static str>,
    /// Notes of the session about its plans.
    pub(crate) notes: Vec<String>,
    /// The plans since the last body.
    pub(crate) plans: Vec<PlanNote>,
    /// The number of messages in the log.
    pub(crate) messages: usize,
    /// The number of active plans that changed earlier messages.
    pub(crate) decisions: usize,
}

/// Options for building a body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ComposeOptions {
    /// The retrieval tools.
    pub(crate) tools: RetrievalOffer,
    /// What happens to signed reasoning behind an edit.
    pub(crate) reasoning: ReasoningRule,
    /// The output limit, if an overflow lowered it.
    pub(crate) lowered: Option<u64>,
    /// True if the provider lets an answer stop at the end of the window.
    pub(crate) may_overrun: bool,
}

/// A body that differs from the client's.
struct NewBody {
    bytes: Bytes,
    /// True if its messages differ, and not only what stands around them.
    has_new_window: bool,
}

/// The shortest useful output limit, in tokens.
pub(crate) const LEAST_ANSWER: u64 = 1_024;

impl ComposeOptions {
    /// The output limit, if it must differ from the client's.
    fn limit(self, scan: &BodyScan<'_>, tokens: u64, window: Option<u64>) -> Option<u64> {
        if self.lowered.is_some() {
            return self.lowered;
        }
        let asked = scan.answer_limit()?;
        // Two percent more than the estimate, because the provider may count more than we do.
        let room = window?.saturating_sub(tokens.saturating_add(tokens / 50));
        // Below this room the answer would be useless, so the limit is left as it is and the
        // provider decides.
        let tight = !self.may_overrun && room < asked && room >= LEAST_ANSWER.min(asked / 2);
        // Providers require the limit to be above the thinking budget, so a lower limit could make
        // the request invalid.
        let has_budget = || memmem::find(scan.body(), b"\"budget_tokens\"").is_some();
        (tight && !has_budget()).then_some(room)
    }
}

/// The state of the search for refs in a window.
#[derive(Debug, Default)]
pub(super) struct RefSearch {
    entries: usize,
    plans: usize,
    found: bool,
    /// The refs that plans have inserted.
    named_by_plans: HashSet<String>,
}

impl RefSearch {
    fn of(journal: &Journal, plans: usize) -> Self {
        let refs = journal.plans().flat_map(|plan| &plan.refs);
        Self {
            plans,
            named_by_plans: refs.map(|stored| stored.id().to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The refs that an entry of the window shows.
    fn refs_in_entry<'e>(
        &'e self,
        log: &Log,
        entry: &'e WindowEntry,
    ) -> impl Iterator<Item = &'e str> {
        let outputs = entry.message.outputs().filter(|output| shows_ref(output));
        let stored = outputs.filter_map(|output| output.stored.as_ref());
        let observation = observed(&entry.message).filter(|(_, output)| shows_ref(output));
        let observation = observation.and(entry.message.meta.stored.as_ref());
        let came = match entry.source {
            MessageSource::Log(at) => log.get(at),
            MessageSource::Inserted(_) => None,
        };
        // Text of the client is not searched. Only text that a plan inserted can name our refs; the
        // client may quote any.
        let is_as_it_came = came.is_some_and(|came| Arc::ptr_eq(came, &entry.message));
        let texts = entry.message.parts.iter().filter_map(Part::as_text);
        let words = texts
            .filter(move |_| !is_as_it_came)
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        let named = words.filter(move |word| self.named_by_plans.contains(*word));
        stored.chain(observation).map(Ref::id).chain(named)
    }
}

impl Branch {
    /// Makes the window fit and splices it into the body.
    pub(crate) fn compose(
        &mut self,
        scan: &BodyScan<'_>,
        options: &ComposeOptions,
    ) -> Result<OutgoingBody, BranchError> {
        self.budget_retrieval_tools(options)?;
        let fitted = self.session.ready();
        // The size is noted before our tools are added, because the check for truncation compares
        // only messages.
        let total = self.session.window()?.measures().total();
        self.sent = (self.decided(), total.tokens());
        let offered = self.offered_names(options)?;
        let ours = offered.map(|names| retrieval_tools::offered_tools(scan.dialect(), names));
        let tokens = match fitted {
            Ok(fitted) => fitted.tokens,
            Err(error @ (SessionError::Store(_) | SessionError::Entry { .. })) => {
                return Err(error.into());
            }
            // A window that cannot be made to fit is sent as small as it is. The provider decides.
            Err(_) => self.estimate()?,
        };
        self.is_offered_from_start |= offered.is_some() && options.tools.from_start;
        if offered.is_some() && !self.is_offered_from_start {
            // Tools come before all messages, so reasoning that came without them is stale.
            self.session.front_changes()?;
        }
        let window = self.session.setup().limits.window;
        let limit = options.limit(scan, tokens, window);
        let mut whole: Vec<BodyChange> = limit
            .map(|tokens| BodyChange::SetLimit { tokens })
            .into_iter()
            .collect();
        if let Some(ours) = &ours {
            whole.push(BodyChange::AddTools {
                tools: ours.definitions.clone(),
            });
        }
        let body = self.carry_out(scan, whole, offered, options)?;
        let has_new_window = body.as_ref().is_some_and(|body| body.has_new_window);
        // Repairs in a window that is not sent would be reported without having happened.
        let repairs = if has_new_window {
            self.repairs()
        } else {
            Vec::new()
        };
        let sizes = self.sizes(body.is_some(), ours.map(|ours| ours.measure))?;
        let reasoning = KeptReasoning {
            received: self.received.reasoning,
            kept: self.session.projection().reasoning_messages(),
        };
        let events = self.session.events();
        let plans = events.iter().filter_map(PlanNote::of_event).collect();
        let notes = events.into_iter().filter_map(|event| event.note);
        Ok(OutgoingBody {
            body: body.map(|body| body.bytes),
            has_new_window,
            reasoning,
            plans,
            messages: self.session.projection().log().len(),
            decisions: self.decided(),
            notes: notes.map(|note| note.trim().to_owned()).collect(),
            repairs,
            sizes,
            tokens,
            answer: limit.or(scan.answer_limit()),
            offered,
            window: self.session.windows(),
        })
    }

    /// The sizes of the original and the sent prompt. `ours` is the size of the added tools.
    fn sizes(
        &mut self,
        is_changed: bool,
        ours: Option<Measure>,
    ) -> Result<PromptSizes, SessionError> {
        let tools = self.tools.1;
        let came = self.received.read_by_provider() + tools;
        // An unchanged body saves exactly nothing, whatever the window would have measured.
        let ours = ours.filter(|_| is_changed).unwrap_or_default();
        let sent = if is_changed {
            self.session.window()?.measures().total() + tools + ours
        } else {
            came
        };
        let calibration = self.session.calibration();
        Ok(PromptSizes {
            tokens: (calibration.tokens(&came), calibration.tokens(&sent)),
            measures: (came, sent),
            our_tools: ours,
        })
    }

    /// The kinds of repairs in the window, each once.
    fn repairs(&self) -> Vec<&'static str> {
        let repairs = self.session.projection().last_window().repairs().iter();
        let kinds: BTreeSet<&str> = repairs.map(|repair| repair.kind.name()).collect();
        kinds.into_iter().collect()
    }

    /// The names of our tools, if they are offered: to an agent always, to others once a window
    /// has shown a ref. A policy that sends everything unchanged has no use for them.
    fn offered_names(
        &mut self,
        options: &ComposeOptions,
    ) -> Result<Option<ToolNames>, SessionError> {
        let offer = options.tools;
        if offer.ours.is_none() || self.session.setup().policy.sends_unchanged() {
            return Ok(None);
        }
        let are_offered = offer.from_start || self.shows_a_ref()?;
        Ok(offer.ours.filter(|_| are_offered))
    }

    /// Adds the size of the retrieval tools to the budget if they are offered, or will be because
    /// the window does not fit.
    pub(crate) fn budget_retrieval_tools(
        &mut self,
        options: &ComposeOptions,
    ) -> Result<(), SessionError> {
        let shown = self.offered_names(options)?;
        self.count(shown);
        // A window that does not fit will be trimmed, and then shows a ref. The room for the tools
        // must be in the budget before that happens.
        if options.tools.ours.is_some() && shown.is_none() && !self.session.fits()? {
            self.count(options.tools.ours);
        }
        Ok(())
    }

    /// The same for the messages that are in the log before new ones are admitted. The room for new
    /// outputs depends on it, so it must not depend on what this process has sent before: another
    /// proxy would show the same outputs differently.
    pub(crate) fn budget_refs_of_log(
        &mut self,
        options: &ComposeOptions,
    ) -> Result<(), SessionError> {
        if self.session.projection().log().is_empty() {
            self.count(None);
            return Ok(());
        }
        self.budget_retrieval_tools(options)
    }

    /// Tells the session the size and the names of the tools that its first ref would add. Called
    /// before anything is admitted.
    pub(crate) fn budget_first_ref(&mut self, tools: RetrievalOffer) {
        let measure = self.measure_of_tools(tools.ours);
        self.session.set_first_ref(measure);
        self.session.set_retrieval(tools.callable);
    }

    fn count(&mut self, ours: Option<ToolNames>) {
        if ours.is_some() {
            // The tools are part of the request now, so the first ref costs nothing extra.
            self.session.set_first_ref(Measure::default());
        }
        self.tools_measure = self.measure_of_tools(ours);
        self.session.set_tools(self.tools.1 + self.tools_measure);
    }

    fn measure_of_tools(&self, names: Option<ToolNames>) -> Measure {
        let dialect = self.session.setup().dialect;
        names.map_or_else(Measure::default, |names| {
            retrieval_tools::offered_tools(dialect, names).measure
        })
    }

    fn estimate(&mut self) -> Result<u64, SessionError> {
        let total = self.session.window()?.measures().total() + self.session.setup().tools;
        Ok(self.session.calibration().tokens(&total))
    }

    /// The body with the window applied; none if the client's body is sent unchanged. `whole`
    /// contains changes outside of the messages, and `offered` the names of our tools.
    fn carry_out(
        &mut self,
        scan: &BodyScan<'_>,
        mut whole: Vec<BodyChange>,
        offered: Option<ToolNames>,
        options: &ComposeOptions,
    ) -> Result<Option<NewBody>, BranchError> {
        self.session.window()?;
        let projection = self.session.projection();
        let (log, entries) = (projection.log(), projection.last_window().entries());
        let came = |at: usize| scan.message(at);
        // Rounds that we hid from the client are in the log, but not in its body.
        let as_client = self.message_map.in_client_positions(log, entries, came);
        let as_client_unedited = as_client.is_none();
        let is_unedited = as_client_unedited && whole.is_empty() && projection.is_unedited();
        // Without plans and repairs the window is the log, so there is nothing to compare.
        if is_unedited && projection.last_window().repairs().is_empty() {
            return Ok(None);
        }
        let changes_in = |log: &Log, entries: &[WindowEntry]| {
            let renamed = offered.and_then(|names| with_tool_names(names, log, entries));
            changes_to(log, renamed.as_deref().unwrap_or(entries), scan.dialect())
        };
        let mut changes = match as_client {
            Some((log, entries)) => changes_in(log, &entries),
            None => changes_in(log, entries),
        };
        // If only normalising changed something, the messages are changed only where they are not
        // valid.
        let is_only_repaired = as_client_unedited && projection.is_unedited();
        if is_only_repaired && !changes.is_empty() && validate(scan).is_empty() {
            changes.clear();
        }
        let has_new_window = !changes.is_empty();
        changes.append(&mut whole);
        if changes.is_empty() {
            return Ok(None);
        }
        if options.reasoning.may_drop {
            changes.push(BodyChange::DropStaleReasoning);
        }
        let bytes = spliced(scan, &changes)?;
        Ok(bytes.map(|bytes| NewBody {
            bytes,
            has_new_window,
        }))
    }

    /// The client's own messages behind the same tools as in the other requests of an agent, so that
    /// the provider's cache and the reasoning stay valid. None if nothing is changed.
    pub(crate) fn client_messages_with_our_tools(
        &mut self,
        scan: &BodyScan<'_>,
        options: &ComposeOptions,
        offered: Option<ToolNames>,
    ) -> Result<Option<Bytes>, BranchError> {
        let offered = offered.filter(|_| options.tools.from_start);
        let tools = offered.map(|names| retrieval_tools::offered_tools(scan.dialect(), names));
        let tools = tools.map(|ours| BodyChange::AddTools {
            tools: ours.definitions.clone(),
        });
        let mut changes: Vec<BodyChange> = tools.into_iter().collect();
        let is_edited = !self.session.projection().is_unedited();
        if options.reasoning.may_drop && (is_edited || !changes.is_empty()) {
            changes.push(BodyChange::DropStaleReasoning);
        } else if options.reasoning.bound && is_edited {
            // Reasoning that came behind an edit is bound to the window with that edit.
            let before = scan.len();
            changes.push(BodyChange::StripReasoning { before });
        }
        if changes.is_empty() {
            return Ok(None);
        }
        spliced(scan, &changes)
    }

    /// The refs that the window shows.
    pub(crate) fn shown_refs(&mut self) -> Result<Vec<String>, SessionError> {
        self.session.window()?;
        let projection = self.session.projection();
        let refs = RefSearch::of(projection.journal(), 0);
        let entries = projection.last_window().entries().iter();
        let mut shown: Vec<String> = Vec::new();
        let mut listed = HashSet::new();
        for id in entries.flat_map(|entry| refs.refs_in_entry(projection.log(), entry)) {
            if listed.insert(id) {
                shown.push(id.to_owned());
            }
        }
        Ok(shown)
    }

    /// True if its window shows a ref whose output was removed.
    pub(crate) fn shows_dead_ref(&mut self, store: &dyn Store) -> Result<bool, SessionError> {
        let shown = self.shown_refs().unwrap_or_default();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        match store.holds_all(self.id(), &shown) {
            // Its bytes are damaged, which is reported when they are read.
            Err(error) if error.is_damaged() => Ok(false),
            held => Ok(!held?),
        }
    }

    /// True if the window shows a ref that the model could retrieve.
    fn shows_a_ref(&mut self) -> Result<bool, SessionError> {
        self.session.window()?;
        let decided = self.decided();
        let projection = self.session.projection();
        let entries = projection.last_window().entries();
        // A plan may show refs anywhere in the window, so the search starts over after one. Tools
        // that were offered stay.
        if decided != self.refs.plans {
            let found = self.refs.found;
            self.refs = RefSearch::of(projection.journal(), decided);
            self.refs.found = found || projection.journal().plans().any(Plan::shows_a_ref);
        }
        let mut new = entries.iter().skip(self.refs.entries);
        let refs = &self.refs;
        let found = refs.found
            || new.any(|entry| refs.refs_in_entry(projection.log(), entry).next().is_some());
        self.refs.found = found;
        // The newest entry may still change, so it is searched again next time.
        self.refs.entries = entries.len().saturating_sub(1);
        Ok(found)
    }
}

/// True if the view of an output is shortened and names its ref.
fn shows_ref(output: &Output) -> bool {
    // A complete output is stored too, but the model has no reason to read it again.
    let stored = output.stored.as_ref().filter(|_| output.trimmed);
    stored.is_some_and(|stored| output.text().contains(stored.id()))
}

/// Applies the changes and validates the result. None if nothing changes.
fn spliced(scan: &BodyScan<'_>, changes: &[BodyChange]) -> Result<Option<Bytes>, BranchError> {
    let mismatch = |why: String| BranchError::Mismatch(why);
    let spliced = splice(scan, changes).map_err(|refused| mismatch(refused.to_string()))?;
    let body = spliced.body;
    if body.as_ref() == scan.body() {
        return Ok(None);
    }
    // Our own result is checked like any body, by code that does not know how it was made.
    let again = BodyScan::new(&body, scan.dialect()).map_err(|why| mismatch(why.to_string()))?;
    let faults = validate(&again);
    if !faults.is_empty() {
        // The client's own body may break the same rule: some servers are less strict.
        let came = validate(scan);
        let known: HashSet<_> = came.iter().map(|fault| discriminant(&fault.rule)).collect();
        let is_new = |fault: &&RequestFault| !known.contains(&discriminant(&fault.rule));
        if let Some(fault) = faults.iter().find(is_new) {
            return Err(mismatch(format!("the new body is not valid: {fault}")));
        }
    }
    Ok(Some(Bytes::from(body.into_owned())))
}
