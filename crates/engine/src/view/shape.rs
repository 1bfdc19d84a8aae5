//! Makes the view of an output in a shape.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use trimtab_model::Ref;

use super::{HeadLinesCut, LimitsCut, MiddleCut, PrefixCut, Spill, placeholder, structure};

/// How an output is shortened, with all parameters.
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
    /// Beginning, end and errors (ours).
    Structure(StructureCut),
}

/// Settings of [`Shape::Structure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StructureCut {
    /// The limit of a view in bytes, including its marker.
    pub cap: u64,
    /// The limit in percent of the room for messages; 0 for no such limit.
    pub room_percent: u64,
    /// The same for a full window. In between, the limit falls with the room that is left.
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

/// What is known about an output besides its text and its shape.
#[derive(Clone, Copy)]
pub struct ViewContext<'a> {
    /// The ref of the full output.
    pub stored: Option<&'a Ref>,
    /// The result of spilling it to a file, if [`LimitsCut::spills`] asked for that.
    pub spill: Option<&'a Spill>,
    /// True to say how to retrieve the rest even if the design's own text does not.
    pub can_retrieve: bool,
    /// The room left for this output, in units of `measure`; a smaller cap of the shape wins. Only
    /// [`Shape::Structure`] uses it.
    pub room: Option<u64>,
    /// The unit of the cap of [`Shape::Structure`]: bytes, or estimated tokens.
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

/// The view of `text` in `shape`. It is borrowed, with the same bytes, if nothing was omitted.
///
/// ```
/// use trimtab_engine::view::{ViewContext, MiddleCut, Shape, view};
///
/// let shape = Shape::Middle(MiddleCut::codex_tokens(1));
/// assert_eq!(view("example output", &shape, &ViewContext::default()), "ex…3 tokens truncated…ut");
/// ```
pub fn view<'a>(text: &'a str, shape: &Shape, given: &ViewContext<'_>) -> Cow<'a, str> {
    // Without the tools, naming the call would only mislead the model.
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
