//! Builds the film of a recorded conversation under a policy.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind};

use super::band::{FilmBand, FilmRegion, MessageState, message_state, region};
use super::{Film, FilmBuilder};
use crate::replay::managed::ManagedSession;
use crate::replay::manager::ManagerError;
use crate::replay::{ReplayReport, ReplaySettings, ReplayStep, TokenCount, WindowManager, replay};

/// What a policy would have sent at each call of a recorded conversation, and the cost.
pub fn replayed_film(
    log: &[Arc<Message>],
    policy: Policy,
    settings: &ReplaySettings,
) -> Result<(Film, ReplayReport), ManagerError> {
    let mut manager = ManagedSession::new(policy, settings)?;
    Ok(film_under(log, &mut manager, settings))
}

/// The same for any window manager. The report counts tokens as the film does: by our estimate.
pub fn film_under(
    log: &[Arc<Message>],
    manager: &mut dyn WindowManager,
    settings: &ReplaySettings,
) -> (Film, ReplayReport) {
    // The report must give the sums of the columns.
    let settings = &ReplaySettings {
        count: TokenCount::Estimate,
        ..settings.clone()
    };
    let mut watch = ReplayWatch::new(log, settings);
    let report = replay(log, manager, settings, &mut |step| watch.see(step));
    (watch.builder.finish(), report)
}

/// Turns the windows of a replay into a film.
struct ReplayWatch {
    builder: FilmBuilder,
    before: Vec<Arc<Message>>,
    /// The bands of known messages, by address. The messages are kept, so that no other can get the
    /// same address.
    bands: HashMap<*const Message, (Arc<Message>, FilmBand)>,
    positions: LogPositions,
    /// Tokens of the log before each position.
    whole: Vec<u64>,
}

/// The positions of messages in the log: outputs by their call, others by their text. A session has
/// copies of the messages, so addresses do not help.
struct LogPositions {
    log: Vec<Arc<Message>>,
    by_call: HashMap<String, usize>,
    by_text: HashMap<u64, usize>,
}

impl LogPositions {
    fn of(log: &[Arc<Message>]) -> Self {
        let (mut by_call, mut by_text) = (HashMap::new(), HashMap::new());
        // If a text occurs more than once, its newest position counts.
        for (at, message) in log.iter().enumerate() {
            match message.outputs().next() {
                Some(output) => by_call.insert(output.call_id.clone(), at),
                None => by_text.insert(text_hash(message), at),
            };
        }
        Self {
            log: log.to_vec(),
            by_call,
            by_text,
        }
    }

    /// The position of a message, and the original message.
    fn find(&self, message: &Message) -> Option<(usize, &Arc<Message>)> {
        let at = match message.outputs().next() {
            Some(output) => self.by_call.get(&output.call_id),
            None => self.by_text.get(&text_hash(message)),
        };
        Some((*at?, self.log.get(*at?)?))
    }
}

fn text_hash(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.as_str().hash(&mut hasher);
    message.text().hash(&mut hasher);
    for call in message.calls() {
        call.id.hash(&mut hasher);
    }
    hasher.finish()
}

impl ReplayWatch {
    fn new(log: &[Arc<Message>], settings: &ReplaySettings) -> Self {
        let mut total = 0;
        let whole = log.iter().map(|message| {
            let before = total;
            total += Measure::of(message).tokens();
            before
        });
        Self {
            whole: whole.collect(),
            builder: FilmBuilder::new(Some(settings.prices)),
            before: Vec::new(),
            bands: HashMap::new(),
            positions: LogPositions::of(log),
        }
    }

    fn see(&mut self, step: &ReplayStep<'_>) {
        let messages = &step.sent.messages;
        let pairs = self.before.iter().zip(messages);
        let common = pairs.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let whole = self.whole.get(step.call).copied().unwrap_or_default();
        if common == self.before.len() {
            let new: Vec<FilmBand> = messages.iter().skip(common).map(|m| self.band(m)).collect();
            self.builder.extend(step.call, whole, new.into_iter());
        } else {
            let bands = messages.iter().map(|message| self.band(message)).collect();
            self.builder.switch(step.call, whole, bands, Vec::new());
        }
        self.before.clone_from(messages);
    }

    fn band(&mut self, message: &Arc<Message>) -> FilmBand {
        let address = Arc::as_ptr(message);
        if let Some((_, band)) = self.bands.get(&address) {
            return band.clone();
        }
        let found = self.positions.find(message);
        let is_ours = found.is_none() && is_our_kind(message.meta.kind);
        let state = match found {
            _ if is_ours => MessageState::Summary,
            // Texts are compared instead of parts: a session adds refs to outputs that it does not
            // change.
            Some((_, came)) if came.text() != message.text() => message_state(message, Some(came)),
            _ => MessageState::Whole,
        };
        let band = FilmBand {
            message: found.map(|(at, _)| at),
            count: 1,
            region: region(message, is_ours),
            state,
            tokens: Measure::of(message).tokens(),
        };
        self.bands
            .insert(address, (Arc::clone(message), band.clone()));
        band
    }
}

fn is_our_kind(kind: Option<MessageKind>) -> bool {
    !matches!(
        kind,
        None | Some(MessageKind::ToolResult | MessageKind::Observation)
    )
}

impl FilmRegion {
    /// All regions, in the order of a legend.
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::User,
        Self::Assistant,
        Self::Output,
        Self::Ours,
    ];

    /// Its name in the legend.
    pub fn label(self) -> &'static str {
        match self {
            Self::System => "instructions",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Output => "outputs",
            Self::Ours => "written by Trimtab",
        }
    }
}
