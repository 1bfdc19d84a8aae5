//! Decides how an output is shown when it comes in. Nothing else cuts an output at that moment.
//!
//! The output was not sent yet, so this is the cheapest moment to cut it. The [`CompiledViews`] of
//! the policy select a [`Shape`] by tool. Outputs of protected tools, outputs that a program reads and
//! outputs with media are shown in full. [`Shape::Structure`] can also cut by the room that is left
//! ([`OutputRoom`]).
//!
//! [`decide`](crate::decide) also says what happens to outputs later, when they are old or when the
//! window is full.

mod system_messages;

use std::borrow::Cow;
use std::collections::BTreeMap;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output};

use crate::budget::percent;
use crate::decide::CallConditions;
use crate::observation::{all_text, outputs_of, shown_as};
use crate::policy::Policy;
use crate::view::policy::CompiledViews;
use crate::view::{Shape, Spill, StructureCut, ViewContext, view};

pub use system_messages::SystemMessages;

/// No output is cut by room to less than this, in tokens: a marker and a few lines.
const LEAST_SHOWN: u64 = 100;
/// The assumed room for messages in tokens, if the window is unknown. Views are then cut by bytes,
/// so that they do not change when something is learned about the model.
const ASSUMED_ROOM: u64 = 75_000;
/// Bytes per token, to compare a cap in bytes with tokens.
const BYTES_PER_TOKEN: u64 = 4;

/// An output that comes in.
#[derive(Clone, Copy, Debug)]
pub struct IncomingOutput<'a> {
    /// The name of the tool; empty if unknown.
    pub tool: &'a str,
    /// The output, with its ref.
    pub output: &'a Output,
    /// The measure of its text, if it is plain text: see [`measure_plain_outputs`].
    pub measure: Option<Measure>,
    /// True if it is an observation: see [`observation`](crate::observation).
    pub observed: bool,
    /// True if a program reads it: see [`Log::is_for_program`](crate::log::Log::is_for_program).
    pub is_for_program: bool,
    /// The result of spilling it to a file, if [`needs_spill_file`] asked for that.
    pub spill: Option<&'a Spill>,
}

/// The room that an output comes into, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRoom {
    /// The room for messages: the window without tools and the answer's reserve.
    pub messages: u64,
    /// The size of the messages at which a plan is made.
    pub high: u64,
    /// Their size after such a plan.
    pub low: u64,
    /// The current size of the window.
    pub used: u64,
    /// The share of outputs of the same round in that.
    pub round: u64,
}

impl OutputRoom {
    /// The room in a window of `used` tokens, of which `round` are outputs of the same round.
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
        }
    }

    /// The largest size of an output in this shape, in tokens: the fuller the window, the smaller.
    /// The outputs of one round together never exceed the distance between the marks, so that a
    /// plan can make room for them.
    ///
    /// ```
    /// # use trimtab_engine::decide::admit::OutputRoom;
    /// # use trimtab_engine::view::StructureCut;
    /// let shape = StructureCut { room_percent: 8, near_percent: 2, ..StructureCut::default() };
    /// let (messages, high, low) = (40_000, 38_000, 14_000);
    /// let cap = |used, round| {
    ///     let room = OutputRoom { messages, high, low, used, round };
    ///     room.cap(&shape)
    /// };
    /// assert!(cap(30_000, 0) < cap(5_000, 0));
    /// assert!(cap(30_000, 23_000) < cap(30_000, 0));
    /// ```
    pub fn cap(&self, shape: &StructureCut) -> u64 {
        // Linear between two limits: `room_percent` of the room in an empty window, and
        // `near_percent` in a window at its high mark. In `u128`, because both factors can be large
        // settings.
        let most = percent(self.messages, shape.room_percent).min(shape.cap / BYTES_PER_TOKEN);
        let least = percent(self.messages, shape.near_percent).min(most);
        let left = self.high.saturating_sub(self.used);
        let more = u128::from(most - least) * u128::from(left) / u128::from(self.high.max(1));
        let one = least + u64::try_from(more).unwrap_or(u64::MAX);
        // Half of what is left, so that a round with many large outputs approaches the distance and
        // never exceeds it.
        let between = self.between().saturating_sub(self.round) / 2;
        one.min(between).max(LEAST_SHOWN.min(most))
    }

    fn between(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }
}

/// True if an output of `tool` must be written to a file of its own before it is shown.
pub fn needs_spill_file(views: &CompiledViews, tool: &str, output: &Output) -> bool {
    match (views.shape(tool), all_text(output)) {
        (Shape::Limits(limits), Some(text)) => limits.spills(&text),
        _ => false,
    }
}

/// Measures the plain-text outputs of a message, by part index. A long output is read once for
/// this, and all decisions about it use the result.
pub fn measure_plain_outputs(message: &Message) -> BTreeMap<usize, Measure> {
    let outputs = outputs_of(message);
    outputs
        .filter_map(|(part, output)| Some((part, Measure::of_text(&all_text(&output)?))))
        .collect()
}

/// The view of a new output; none if it is shown unchanged.
pub fn incoming_view(
    views: &CompiledViews,
    incoming: &IncomingOutput<'_>,
    room: &OutputRoom,
    call: &CallConditions<'_>,
) -> Option<Output> {
    // Only plain text has a measure. Outputs with media are never cut here.
    let whole = call.weigh(&incoming.measure?);
    if incoming.is_for_program || views.protects(incoming.tool) {
        return None;
    }
    let shown = cut_to_shape(views, incoming, whole, room, call)?;
    shown_as(incoming.output, shown)
}

/// Cuts an output of `whole` tokens to its shape; none if that saves nothing.
fn cut_to_shape(
    views: &CompiledViews,
    incoming: &IncomingOutput<'_>,
    whole: u64,
    room: &OutputRoom,
    call: &CallConditions<'_>,
) -> Option<String> {
    let text = all_text(incoming.output)?;
    let text: &str = &text;
    let mut given = ViewContext {
        stored: incoming.output.stored.as_ref(),
        spill: incoming.spill,
        can_retrieve: call.can_retrieve,
        ..ViewContext::default()
    };
    let shape = match views.shape(incoming.tool) {
        Shape::Structure(shape) if shape.room_percent > 0 => *shape,
        shape => return shortened(view(text, shape, &given)),
    };
    let mut cap = room.cap(&shape);
    if incoming.observed {
        // Not every agent that sends observations can call the retrieval tools, so show twice as
        // much.
        cap = cap.saturating_mul(2).min(room.between() / 2).max(cap);
    }
    let measure = |shown: &str| {
        // The full text was measured at admission. It may be megabytes, so do not read it again.
        if std::ptr::eq(shown, text) {
            return whole;
        }
        // The length alone may exceed the cap. Then the text need not be read.
        match call.weigh(&Measure::of_length(shown)) {
            least if least > cap => least,
            _ => call.weigh(&Measure::of_text(shown)),
        }
    };
    let window_is_known = call.window.is_some();
    if window_is_known {
        given.room = Some(cap);
        given.measure = &measure;
    } else {
        // In bytes, so that the view does not depend on what is learned about the model.
        given.room = Some(cap.saturating_mul(BYTES_PER_TOKEN));
    }
    // The first ref in a window also adds the retrieval tools. They may cost more than the cut
    // saves.
    let pays = |tokens: u64| tokens.saturating_add(call.first_ref) < whole;
    // A view never exceeds its cap. If even the cap pays, the view need not be measured again.
    let cap_pays = window_is_known && pays(cap);
    let cut = shortened(view(text, &Shape::Structure(shape), &given));
    cut.filter(|cut| cap_pays || pays(call.weigh(&Measure::of_text(cut))))
}

/// The text of a view that omits something. Views borrow the text if they omit nothing.
fn shortened(view: Cow<'_, str>) -> Option<String> {
    match view {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}
