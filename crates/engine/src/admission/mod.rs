//! How an output is shown when it comes in: the one place that decides what is cut then.
//!
//! Nobody was sent the output yet, so this is the cheapest moment to cut. The policy's
//! [`CompiledViews`] say which [`Shape`] the outputs of a tool get. Protected tools are shown
//! whole, and so is an output with media. An output that the window shows whole already becomes a
//! reference to it, where the policy wants that. [`Shape::Structure`] can also cut by the room that
//! is left ([`OutputRoom`]).
//!
//! What happens to outputs later, when they are old or when the window is full, is decided in
//! [`planner`](crate::planner).

mod repeats;

use std::borrow::Cow;
use std::collections::BTreeMap;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Ref};

use crate::budget::percent;
use crate::observation::{outputs_of, plain_text, shown_as};
use crate::planner::CallConditions;
use crate::policy::Policy;
use crate::view::placeholder::read_call;
use crate::view::policy::CompiledViews;
use crate::view::{Shape, Spill, StructureCut, ViewContext, view};

pub use repeats::RepeatIndex;

/// No output is cut by room to less than this, in tokens: a marker and a few lines.
const LEAST_SHOWN: u64 = 100;
/// An output of fewer bytes does not become a reference.
const LEAST_REPEAT: usize = 600;
/// Where the window is not known, so much room for messages is taken for granted, in tokens. Then
/// views are cut by their bytes: what is learned of a model should not change them.
const ASSUMED_ROOM: u64 = 75_000;
/// Bytes of a token, where a cap in bytes is held against tokens.
const BYTES_PER_TOKEN: u64 = 4;

/// An output that comes in.
#[derive(Clone, Copy, Debug)]
pub struct IncomingOutput<'a> {
    /// The tool that gave it; empty if nobody knows.
    pub tool: &'a str,
    /// The output, with its ref.
    pub output: &'a Output,
    /// The measure of its text, if it is plain text: see [`measure_plain_outputs`].
    pub measure: Option<Measure>,
    /// True if a message of the user told it: see [`observation`](crate::observation).
    pub observed: bool,
    /// The output in the window that shows the same text whole, if there is one.
    pub earlier: Option<&'a Output>,
    /// What became of spilling it, where [`needs_spill_file`] asked for that.
    pub spill: Option<Spill<'a>>,
    /// True to name the call that gets back what is left out, under every shape.
    pub can_retrieve: bool,
}

/// The room that an output comes into, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRoom {
    /// The room for messages: the window without tools and the answer's reserve.
    pub messages: u64,
    /// What messages may take before something is done about it.
    pub high: u64,
    /// What they take after that.
    pub low: u64,
    /// What the window takes already.
    pub used: u64,
    /// What the outputs of the same round take of that.
    pub round: u64,
    /// What the first ref in a window brings along; 0 if the window shows one.
    pub first_ref: u64,
    /// False if the model's window is not known.
    pub window_is_known: bool,
}

impl OutputRoom {
    /// The room in a window that takes `used` tokens, `round` of them for outputs of the same
    /// round.
    pub fn new(policy: &Policy, conditions: &CallConditions<'_>, used: u64, round: u64) -> Self {
        let known = conditions.window.is_some();
        let messages = if known {
            conditions.messages_room()
        } else {
            ASSUMED_ROOM
        };
        let (high, low) = policy.ageing.marks(messages);
        Self {
            messages,
            high,
            low,
            used: if known { used } else { 0 },
            round: if known { round } else { 0 },
            first_ref: conditions.first_ref,
            window_is_known: known,
        }
    }

    /// The most that an output in this shape may take, in tokens: less, the fuller the window is.
    /// The outputs of one round never take more than what is between the marks, so that there
    /// can be made room for them.
    ///
    /// ```
    /// # use trimtab_engine::admission::OutputRoom;
    /// # use trimtab_engine::view::StructureCut;
    /// let shape = StructureCut { room_percent: 8, near_percent: 2, ..StructureCut::default() };
    /// let (messages, high, low, first_ref) = (40_000, 38_000, 14_000, 0);
    /// let window_is_known = true;
    /// let cap = |used, round| {
    ///     let room = OutputRoom { messages, high, low, used, round, first_ref, window_is_known };
    ///     room.cap(&shape)
    /// };
    /// assert!(cap(30_000, 0) < cap(5_000, 0));
    /// assert!(cap(30_000, 23_000) < cap(30_000, 0));
    /// ```
    pub fn cap(&self, shape: &StructureCut) -> u64 {
        let most = percent(self.messages, shape.room_percent).min(shape.cap / BYTES_PER_TOKEN);
        let least = percent(self.messages, shape.near_percent).min(most);
        let left = self.high.saturating_sub(self.used);
        let more = u128::from(most - least) * u128::from(left) / u128::from(self.high.max(1));
        let one = least + u64::try_from(more).unwrap_or(u64::MAX);
        let between = self.between().saturating_sub(self.round) / 2;
        one.min(between).max(LEAST_SHOWN.min(most))
    }

    fn between(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }
}

/// True if an output of `tool` is to go to a file of its own before it is shown.
pub fn needs_spill_file(views: &CompiledViews, tool: &str, output: &Output) -> bool {
    match (views.shape(tool), plain_text(output)) {
        (Shape::Limits(limits), Some(text)) => limits.spills(text),
        _ => false,
    }
}

/// Measures the outputs of a message that are plain text, by their part. A long output is read
/// once for this, and all decisions about it use the result.
pub fn measure_plain_outputs(message: &Message) -> BTreeMap<usize, Measure> {
    let outputs = outputs_of(message);
    outputs
        .filter_map(|(part, output)| Some((part, Measure::of_text(plain_text(&output)?))))
        .collect()
}

/// What an output is shown as when it comes in; none where it is shown as it came. `weigh` gives
/// the tokens of a measure.
pub fn incoming_view(
    views: &CompiledViews,
    incoming: &IncomingOutput<'_>,
    room: &OutputRoom,
    weigh: &dyn Fn(&Measure) -> u64,
) -> Option<Output> {
    let whole = weigh(&incoming.measure?);
    if views.protects(incoming.tool) {
        return None;
    }
    // The tools that the first ref brings along may cost more than the edit saves.
    let pays = |shown: &str| {
        let shown = weigh(&Measure::of_text(shown));
        shown.saturating_add(room.first_ref) < whole
    };
    // Where the window is not known, nothing says that room is short.
    let reference = reference(views, incoming).filter(|shown| room.window_is_known && pays(shown));
    let shown = match reference {
        Some(reference) => reference,
        None => cut_to_shape(views, incoming, room, weigh, &pays)?,
    };
    Some(shown_as(incoming.output, shown))
}

/// An output cut to its shape.
fn cut_to_shape(
    views: &CompiledViews,
    incoming: &IncomingOutput<'_>,
    room: &OutputRoom,
    weigh: &dyn Fn(&Measure) -> u64,
    pays: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let text = plain_text(incoming.output)?;
    let whole = incoming.measure?;
    let given = ViewContext {
        stored: incoming.output.stored.as_ref(),
        spill: incoming.spill,
        can_retrieve: incoming.can_retrieve,
        ..ViewContext::default()
    };
    let shape = match views.shape(incoming.tool) {
        Shape::Structure(shape) if shape.room_percent > 0 => *shape,
        shape => {
            return shortened(view(text, shape, &given));
        }
    };
    let mut cap = room.cap(&shape);
    if incoming.observed {
        // Not every agent that tells of its tools in messages can ask for what was left out, so
        // twice as much is shown of it.
        cap = cap.saturating_mul(2).min(room.between() / 2).max(cap);
    }
    let measure = |shown: &str| {
        if std::ptr::eq(shown, text) {
            return weigh(&whole);
        }
        // Bytes alone may exceed the cap. Then the text need not be read.
        match weigh(&Measure::of_length(shown)) {
            least if least > cap => least,
            _ => weigh(&Measure::of_text(shown)),
        }
    };
    let given = if room.window_is_known {
        ViewContext {
            room: Some(cap),
            measure: &measure,
            ..given
        }
    } else {
        ViewContext {
            room: Some(cap.saturating_mul(BYTES_PER_TOKEN)),
            ..given
        }
    };
    shortened(view(text, &Shape::Structure(shape), &given)).filter(|cut| pays(cut))
}

/// A view that leaves something out.
fn shortened(view: Cow<'_, str>) -> Option<String> {
    match view {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// The reference that an output becomes whose text `earlier` shows whole already.
fn reference(views: &CompiledViews, incoming: &IncomingOutput<'_>) -> Option<String> {
    let earlier = incoming.earlier.filter(|_| views.repeats())?;
    let stored = incoming.output.stored.as_ref()?;
    if incoming.observed || incoming.output.text().len() < LEAST_REPEAT {
        return None;
    }
    Some(same_as(stored, earlier.stored.as_ref()))
}

fn same_as(stored: &Ref, first: Option<&Ref>) -> String {
    let call = read_call(stored, 0);
    match first {
        Some(first) if first.id() != stored.id() => {
            format!("[trimtab: the same output as before, ref={first}; all of it: {call}]")
        }
        _ => format!("[trimtab: the same output as before; all of it: {call}]"),
    }
}
