//! One function from an output to its view.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use trimtab_model::Ref;

use super::{HeadLinesCut, LimitsCut, MiddleCut, PrefixCut, Spill, placeholder, structure};

/// How an output is shortened, with all its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Shape {
    /// Not at all.
    #[default]
    Whole,
    /// Whole lines from the head up to a byte cap (design `refs`).
    HeadLines(HeadLinesCut),
    /// Half from the start, half from the end (design `checkpoint`).
    Middle(MiddleCut),
    /// Lines, then chars, then bytes, with a spill above a threshold (design `archive`).
    Limits(LimitsCut),
    /// The first chars and a marker (design `retention`).
    Prefix(PrefixCut),
    /// By what the text is (ours).
    Structure(StructureCut),
}

/// Settings of the cut by structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StructureCut {
    /// The most a view may have, marker included, in bytes.
    pub cap: u64,
    /// The most it may take of the room for messages, in percent; 0 for no such limit.
    pub room_percent: u64,
    /// The same where the window is full. In between it falls with the room that is left.
    pub near_percent: u64,
}

impl Default for StructureCut {
    fn default() -> Self {
        Self {
            cap: 24_000,
            room_percent: 0,
            near_percent: 0,
        }
    }
}

impl StructureCut {
    fn view<'a>(&self, text: &'a str, given: &ViewContext<'_>) -> Cow<'a, str> {
        let cap = given.room.map_or(self.cap, |room| room.min(self.cap));
        let how = structure::CutRequest {
            cap,
            measure: given.measure,
            stored: given.stored,
        };
        structure::cut(text, &how)
    }
}

/// What is known of an output beyond its text and its shape.
#[derive(Clone, Copy)]
pub struct ViewContext<'a> {
    /// Where the whole output is stored.
    pub stored: Option<&'a Ref>,
    /// What became of spilling it, where [`LimitsCut::spills`] asked for that.
    pub spill: Option<Spill<'a>>,
    /// True to say how to get back what is left out, also where the design's own text does not.
    pub can_retrieve: bool,
    /// The room left for this output, in units of `measure`; shapes with a cap of their own
    /// take the smaller. Only [`Shape::Structure`] looks at it.
    pub room: Option<u64>,
    /// What the cap of [`Shape::Structure`] counts: bytes, or tokens by somebody's estimate.
    pub measure: &'a dyn Fn(&str) -> u64,
}

/// The default measure: bytes.
pub(super) fn bytes(text: &str) -> u64 {
    text.len() as u64
}

impl Default for ViewContext<'_> {
    fn default() -> Self {
        Self {
            stored: None,
            spill: None,
            can_retrieve: false,
            room: None,
            measure: &bytes,
        }
    }
}

/// What the model sees of `text` in `shape`. It is borrowed, and so the same bytes, where nothing
/// was left out.
///
/// ```
/// use trimtab_engine::view::{ViewContext, MiddleCut, Shape, view};
///
/// let shape = Shape::Middle(MiddleCut::codex_tokens(1));
/// assert_eq!(view("example output", &shape, &ViewContext::default()), "ex…3 tokens truncated…ut");
/// ```
pub fn view<'a>(text: &'a str, shape: &Shape, given: &ViewContext<'_>) -> Cow<'a, str> {
    let line = given.stored.filter(|_| given.can_retrieve);
    let line = line.map(placeholder::retrieval_hint);
    let line = line.as_deref();
    match shape {
        Shape::Whole => Cow::Borrowed(text),
        Shape::HeadLines(shape) => shape.view(text, given.stored),
        Shape::Middle(shape) => shape.view(text, line),
        Shape::Limits(shape) => shape.view(text, given.spill, line),
        Shape::Prefix(shape) => shape.view(text, line),
        Shape::Structure(shape) => shape.view(text, given),
    }
}
