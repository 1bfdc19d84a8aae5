//! One conversation of a client: its session, and which of its messages are the client's.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use memchr::memmem;
use trimtab::request::{changes_to, lost_thought};
use trimtab::session::{Moment, Pending, Session, SessionError, Setup};
use trimtab_engine::normalise::Source;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Part, Role};
use trimtab_store::{Error as StoreError, SessionId, Staged, Store};
use trimtab_wire::scan::Scan;
use trimtab_wire::splice::{Change, Place, splice};
use trimtab_wire::validate::{Fault, validate};

use crate::carried::Carried;
use crate::cut::{self, Reading};
use crate::hashed::Prints;
use crate::hidden::{self, Mixed};
use crate::kept;
use crate::ledger::{self, Ledger};
use crate::ours;
use crate::prints::{Print, Trail, print_of};
use crate::unwritten::Due;

/// A window of so many tokens can always be thought about while a connection waits.
const QUICK_WINDOW: u64 = 300_000;

/// Why a window was not carried out on a body.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The session failed.
    Session(SessionError),
    /// The body does not fit the session's log: a fault of ours.
    Mismatch(String),
}

impl From<SessionError> for Trouble {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session(error) => write!(f, "{error}"),
            Self::Mismatch(why) => f.write_str(why),
        }
    }
}

/// A body that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The body; none if it is sent as it came.
    pub(crate) body: Option<Bytes>,
    /// Estimate of what came, in tokens.
    pub(crate) tokens_before: u64,
    /// Estimate of what is sent, in tokens.
    pub(crate) tokens: u64,
    /// How long an answer it asks for, in tokens, where it says so.
    pub(crate) answer: Option<u64>,
    /// True if the retrieval tools are offered in it.
    pub(crate) offered: bool,
    /// Which window of its session it is.
    pub(crate) window: u64,
}

/// One conversation of a client.
pub(crate) struct Branch {
    session: Session,
    /// The store of the session: what is written waits there.
    staged: Arc<Staged>,
    due: Due,
    ledger: Ledger,
    /// Estimate of the client's messages as they came, in tokens.
    came: u64,
    /// How far the window was searched for refs, and whether there is one.
    refs: Refs,
    /// The tool definitions that were measured last.
    tools: (Print, Measure),
    /// What the tools of ours take, where they are counted with them.
    ours: Measure,
    /// Calls of ours in the answer that the client has, and will send back without them.
    mixed: Option<Mixed>,
    /// When it was asked about last.
    asked: Option<Instant>,
    /// True while a summary is being written.
    pub(crate) summarising: bool,
    /// True once a request said which policy decides.
    chosen: bool,
    /// What the provider read of an earlier window.
    reading: Option<Reading>,
    /// True if there is reasoning in it: providers leave that out as they see fit.
    thinks: bool,
    /// How many decisions had been made when a request was composed last.
    composed: usize,
    /// What was sent last, if that was not what came.
    pub(crate) carried: Option<Box<Carried>>,
}

/// How far the window was searched for refs.
#[derive(Clone, Copy, Debug, Default)]
struct Refs {
    entries: usize,
    plans: usize,
    found: bool,
}

impl Branch {
    /// Opens a conversation, which may be new. None if the session is not one of ours.
    pub(crate) fn open(
        store: &Arc<dyn Store>,
        id: SessionId,
        setup: Setup,
    ) -> Result<Option<Self>, SessionError> {
        let staged = Arc::new(Staged::new(Arc::clone(store)));
        let session = Session::open(Arc::clone(&staged) as Arc<dyn Store>, id, setup)?;
        let log = session.projection().log();
        let Some(ledger) = Ledger::read(log) else {
            return Ok(None);
        };
        let mixed = kept::find(store.as_ref(), session.id(), log.len())?;
        let came = log
            .messages()
            .iter()
            .map(|message| Measure::of(message).tokens());
        let thinks = log.messages().iter().any(|message| reasons(message));
        let composed = session.projection().journal().entries().len();
        Ok(Some(Self {
            came: came.sum(),
            session,
            staged,
            due: Due::default(),
            ledger,
            refs: Refs::default(),
            tools: (0, Measure::default()),
            ours: Measure::default(),
            mixed,
            asked: None,
            summarising: false,
            chosen: false,
            reading: None,
            thinks,
            composed,
            carried: None,
        }))
    }

    /// The prints of the client's messages.
    pub(crate) fn trail(&self) -> &Trail {
        &self.ledger.trail
    }

    /// The client's messages as they came, with their positions; without those that are not
    /// sent as they came.
    pub(crate) fn known(&self) -> Vec<(usize, Arc<Message>)> {
        let log = self.session.projection().log();
        let places = self.ledger.unaltered();
        places
            .filter_map(|(at, place)| Some((at, Arc::clone(log.get(place)?))))
            .collect()
    }

    /// How much of the log the client's first messages are.
    pub(crate) fn logged(&self, messages: usize) -> usize {
        self.ledger.logged(messages)
    }

    /// Its session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Where what it writes waits. Nothing that rests on it may be sent before it is flushed.
    pub(crate) fn staged(&self) -> &Arc<Staged> {
        &self.staged
    }

    /// Whether what it has written is about to be made durable.
    pub(crate) fn due(&self) -> &Due {
        &self.due
    }

    /// Makes durable what it has written.
    pub(crate) fn flush(&self) -> Result<(), SessionError> {
        Ok(self.staged.flush()?)
    }

    /// The name of its session.
    pub(crate) fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Tells the session how long it was left alone; after a restart nobody knows.
    pub(crate) fn wakes(&mut self) {
        if let Some(asked) = self.asked.replace(Instant::now()) {
            self.session.idle(asked.elapsed());
        }
    }

    /// Lets `policy` decide from now on. What was sent stays as it is until it finds a reason to
    /// change it. One that a request asked for is only followed by another such.
    pub(crate) fn follow(&mut self, policy: &Arc<Policy>, asked_for: bool) -> Result<(), Trouble> {
        self.chosen |= asked_for;
        let decides = &self.session.setup().policy;
        let same = Arc::ptr_eq(decides, policy) || decides == policy;
        if (asked_for || !self.chosen) && !same {
            self.session.set_policy(Arc::clone(policy))?;
        }
        Ok(())
    }

    /// Takes the tool definitions of the next call; the same ones are measured once.
    pub(crate) fn set_tools(&mut self, json: &str, key: &[u8; 192]) {
        let print = print_of(json.as_bytes(), key);
        if self.tools.0 != print {
            if self.tools.0 != 0 {
                // Tools stand before everything in the cache.
                self.session.cache_is_cold();
            }
            self.tools = (print, Measure::of_text(json));
        }
        self.session.set_tools(self.tools.1 + self.ours);
    }

    /// Lets in what the body has beyond the messages that are known.
    pub(crate) fn admit(&mut self, scan: &Scan<'_>, trail: &Trail) -> Result<(), Trouble> {
        for at in self.ledger.trail.len()..scan.len() {
            let unread = || Trouble::Mismatch(format!("message {at} cannot be read"));
            let print = trail.get(at).ok_or_else(unread)?;
            let mut message = scan.message(at).ok_or_else(unread)?;
            self.thinks |= reasons(&message);
            ledger::mark(&mut message, print);
            let mut mixed = None;
            if message.role == Role::Assistant {
                let logged = self.session.projection().log().len();
                mixed = hidden::of_message(self.mixed.take(), &message, logged);
                message = hidden::as_sent(message, &self.said_in_hidden(), mixed.as_ref());
            }
            let place = self.session.admit(message)?;
            let projection = self.session.projection();
            let measure = projection.measure(place).copied().unwrap_or_default();
            self.came += measure.tokens();
            if let Some(message) = projection.log().get(place) {
                self.ledger.admitted(print, message, place);
            }
            if let Some(mixed) = mixed {
                self.admit_outputs(mixed.outputs)?;
            }
        }
        Ok(())
    }

    /// What the model said to the client in hidden rounds behind the client's last message.
    fn said_in_hidden(&self) -> Vec<Part> {
        let last = self.ledger.last_place().map_or(0, |place| place + 1);
        let log = self.session.projection().log().messages();
        let behind = log.get(last..).unwrap_or_default().iter();
        behind
            .filter(|message| message.role == Role::Assistant)
            .flat_map(|message| hidden::visible(message, tools::is_retrieval))
            .collect()
    }

    /// Lets in a round that the client does not see.
    pub(crate) fn admit_hidden(
        &mut self,
        answer: Message,
        outputs: Vec<Output>,
    ) -> Result<(), Trouble> {
        self.session.admit(answer)?;
        self.admit_outputs(outputs)
    }

    fn admit_outputs(&mut self, outputs: Vec<Output>) -> Result<(), Trouble> {
        for output in outputs {
            let message = Message::new(Role::Tool, vec![Part::Output(output)]);
            self.session.admit(message)?;
        }
        Ok(())
    }

    /// Keeps calls of ours that are put back when the client comes with its outputs.
    pub(crate) fn keep_mixed(&mut self, mut mixed: Mixed) -> Result<(), Trouble> {
        mixed.at = self.session.projection().log().len();
        let kept = kept::keep(self.session.store().as_ref(), self.session.id(), &mixed);
        self.mixed = Some(mixed);
        Ok(kept.map_err(SessionError::from)?)
    }

    /// True if no decision was made since the last request was composed, so that what is sent
    /// now rests on nothing that is not durable.
    pub(crate) fn rests_on_nothing(&mut self) -> bool {
        let decisions = self.decisions();
        std::mem::replace(&mut self.composed, decisions) == decisions
    }

    /// True if a decision about it takes no longer than a connection may wait: its window is
    /// not large, or far from full. Calls of ours are put back in one go, or not at all.
    pub(crate) fn is_quick(&self) -> bool {
        if self.mixed.is_some() {
            return false;
        }
        let window = self.session.setup().limits.window.unwrap_or(u64::MAX);
        let total = self.session.projection().built().measures().total();
        total.tokens() <= QUICK_WINDOW.max(window / 2)
    }

    /// How many decisions were made so far.
    pub(crate) fn decisions(&self) -> usize {
        let entries = self.session.projection().journal().entries();
        entries.len()
    }

    /// How often what was sent before was changed so far.
    fn decided(&self) -> usize {
        let plans = self.session.projection().journal().plans();
        plans.iter().filter(|plan| plan.can_be_undone()).count()
    }

    /// Takes in how much of the window a model says it read; gives the window that it must
    /// have, if it cut what it was sent.
    pub(crate) fn was_read(
        &mut self,
        whom: (&str, &str),
        read: u64,
    ) -> Result<Option<u64>, Trouble> {
        if self.thinks {
            return Ok(None);
        }
        let sent = self.session.window()?.measures().total().tokens();
        let now = Reading {
            whom: (whom.0.to_owned(), whom.1.to_owned()),
            decided: self.decided(),
            sent,
            read,
        };
        Ok(cut::take(&mut self.reading, now))
    }

    /// Does what the policy wants done at these moments; gives what waits for a summary.
    pub(crate) fn check(&mut self, moments: &[Moment]) -> Result<Option<Pending>, Trouble> {
        if self.summarising {
            return Ok(None);
        }
        for moment in moments {
            match self.session.check(*moment) {
                Ok(None) => {}
                Ok(pending) => return Ok(pending),
                Err(error @ SessionError::Store(StoreError::WouldWait)) => return Err(error.into()),
                // What is wrong with a decision shows again, and better, when the window is
                // asked for.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Makes the window fit and carries it out on the body. Where the prints of its beginnings
    /// are given, what was sent before need not be made again.
    pub(crate) fn compose(
        &mut self,
        scan: &Scan<'_>,
        ways: &Ways,
        prints: Option<Prints<'_>>,
    ) -> Result<Outgoing, Trouble> {
        let offers = self.count_ours(scan, ways)?;
        let ready = self.session.ready();
        let offered = offers && self.shows_a_ref()?;
        // What cannot be made to fit is sent as small as it is: the provider has the last word.
        let tokens = match &ready {
            Ok(ready) => ready.tokens,
            Err(SessionError::Store(_) | SessionError::Entry { .. }) => {
                return Err(ready
                    .err()
                    .map_or_else(|| Trouble::Mismatch(String::new()), Trouble::Session));
            }
            Err(_) => self.estimate()?,
        };
        if offered {
            // Tools stand before everything that reasoning is bound to.
            self.session.front_changes()?;
        }
        let window = self.session.setup().limits.window;
        let limit = ways.limit(scan, tokens, window);
        let mut whole: Vec<Change> = limit
            .map(|tokens| Change::SetLimit { tokens })
            .into_iter()
            .collect();
        if offered {
            whole.push(Change::AddTools {
                place: Place::Last,
                tools: ours::of(scan.dialect()).definitions.clone(),
            });
        }
        Ok(Outgoing {
            body: self.carry_out(scan, whole, prints)?,
            tokens_before: self.came.max(tokens),
            tokens,
            answer: limit.or(scan.answer_limit()),
            offered,
            window: self.session.windows(),
        })
    }

    /// Counts the tools of ours where they will be offered: beside refs, and what does not fit
    /// will show some. True if they may be.
    pub(crate) fn count_ours(&mut self, scan: &Scan<'_>, ways: &Ways) -> Result<bool, Trouble> {
        let offers = ways.offer && !defines_ours(scan);
        let shows = offers && self.shows_a_ref()?;
        self.count(scan, shows);
        if offers && !shows && !self.session.fits()? {
            self.count(scan, true);
        }
        Ok(offers)
    }

    fn count(&mut self, scan: &Scan<'_>, ours: bool) {
        self.ours = if ours {
            ours::of(scan.dialect()).measure
        } else {
            Measure::default()
        };
        self.session.set_tools(self.tools.1 + self.ours);
    }

    fn estimate(&mut self) -> Result<u64, SessionError> {
        let total = self.session.window()?.measures().total() + self.session.setup().tools;
        Ok(self.session.calibration().tokens(&total))
    }

    /// The body with the window carried out on it; none if it is sent as it came. The changes
    /// in `whole` are not about messages.
    fn carry_out(
        &mut self,
        scan: &Scan<'_>,
        mut whole: Vec<Change>,
        prints: Option<Prints<'_>>,
    ) -> Result<Option<Bytes>, Trouble> {
        self.session.window()?;
        let projection = self.session.projection();
        let (log, entries) = (projection.log(), projection.built().entries());
        if lost_thought(log, entries) {
            whole.push(Change::StopThinking);
        }
        let came = |at: usize| scan.message(at);
        let as_client = self.ledger.as_client(log, entries, came);
        let mut prints = prints.filter(|_| as_client.is_none());
        if let (Some(last), Some(prints)) = (&mut self.carried, &mut prints)
            && let Some(body) = last.go_on(scan, (log, entries), &whole, prints)
        {
            return Ok(Some(body));
        }
        self.carried = None;
        let mut changes = match as_client {
            Some((log, entries)) => changes_to(&log, &entries, scan.dialect()),
            None => changes_to(log, entries, scan.dialect()),
        };
        changes.extend(whole.iter().cloned());
        if changes.is_empty() {
            return Ok(None);
        }
        let Some(body) = spliced(scan, &changes)? else {
            return Ok(None);
        };
        // A limit that follows the room there is will be another one next time.
        let lasts = |change: &Change| !matches!(change, Change::SetLimit { .. });
        if let Some(mut prints) = prints.filter(|_| whole.iter().all(lasts)) {
            let carried = Carried::of(scan, (log, entries), &body, (&changes, whole), &mut prints);
            self.carried = carried.map(Box::new);
        }
        Ok(Some(body))
    }

    /// The refs that the window shows.
    pub(crate) fn refs_shown(&mut self) -> Result<Vec<String>, SessionError> {
        let window = self.session.window()?;
        let outputs = window.messages().flat_map(|message| message.outputs());
        let shown = outputs.filter(|output| shows_ref(output));
        let refs = shown.filter_map(|output| output.stored.as_ref());
        Ok(refs.map(|stored| stored.id().to_owned()).collect())
    }

    /// True if the window shows a ref that the model could ask for.
    fn shows_a_ref(&mut self) -> Result<bool, SessionError> {
        self.session.window()?;
        let projection = self.session.projection();
        let entries = projection.built().entries();
        let decided = self.decided();
        if decided != self.refs.plans {
            self.refs = Refs::default();
        }
        if !self.refs.found {
            let new = entries.get(self.refs.entries..).unwrap_or_default();
            self.refs.found = new.iter().any(|entry| {
                let ours = matches!(entry.source, Source::Inserted(_));
                let names_tool = || entry.message.text().contains(tools::READ);
                entry.message.outputs().any(shows_ref) || (ours && names_tool())
            });
        }
        self.refs.plans = decided;
        // The newest entries may still change.
        self.refs.entries = entries.len().saturating_sub(1);
        Ok(self.refs.found)
    }
}

/// What may be done to a body beside its window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// True to offer the retrieval tools where the window shows a ref.
    pub(crate) offer: bool,
    /// The longest answer to ask for, where an error made us lower it.
    pub(crate) lowered: Option<u64>,
    /// True if the answer stops by itself where the window is full.
    pub(crate) may_overrun: bool,
}

/// The shortest answer that is worth asking for.
pub(crate) const LEAST_ANSWER: u64 = 1_024;

impl Ways {
    /// The limit of the answer, if it has to be another one than the client asked for.
    fn limit(self, scan: &Scan<'_>, tokens: u64, window: Option<u64>) -> Option<u64> {
        if self.lowered.is_some() {
            return self.lowered;
        }
        let asked = scan.answer_limit()?;
        let room = window?.saturating_sub(tokens.saturating_add(tokens / 50));
        let tight = !self.may_overrun && room < asked && room >= LEAST_ANSWER.min(asked / 2);
        // A thinking budget must stay below it, so it is not ours to lower unasked then.
        let has_budget = || memmem::find(scan.body(), b"\"budget_tokens\"").is_some();
        (tight && !has_budget()).then_some(room)
    }
}

fn reasons(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Reasoning(_)))
}

/// True if what is shown of an output leaves something out and says where it is.
fn shows_ref(output: &Output) -> bool {
    let stored = output.stored.as_ref().filter(|_| output.trimmed);
    stored.is_some_and(|stored| output.text().contains(stored.id()))
}

/// True if the client has the retrieval tools itself.
fn defines_ours(scan: &Scan<'_>) -> bool {
    let mut tools = scan.request().tool_list.iter();
    tools.any(|tool| {
        scan.string(tool.name)
            .is_some_and(|name| tools::is_retrieval(&name))
    })
}

fn same_rule(one: &Fault, other: &Fault) -> bool {
    std::mem::discriminant(&one.rule) == std::mem::discriminant(&other.rule)
}

/// The body after the changes, if a provider would accept it.
fn spliced(scan: &Scan<'_>, changes: &[Change]) -> Result<Option<Bytes>, Trouble> {
    let mismatch = |why: String| Trouble::Mismatch(why);
    let spliced = splice(scan, changes).map_err(|refused| mismatch(refused.to_string()))?;
    let body = spliced.body;
    if body.as_ref() == scan.body() {
        return Ok(None);
    }
    let again = Scan::new(&body, scan.dialect()).map_err(|why| mismatch(why.to_string()))?;
    let faults = validate(&again);
    if !faults.is_empty() {
        // What the client sent like this may pass: some servers are less strict.
        let came = validate(scan);
        let is_new = |fault: &&Fault| !came.iter().any(|known| same_rule(known, fault));
        if let Some(fault) = faults.iter().find(is_new) {
            return Err(mismatch(format!("the new body is not valid: {fault}")));
        }
    }
    Ok(Some(Bytes::from(body.into_owned())))
}
