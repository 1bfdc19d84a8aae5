//! The block of facts that stands for the oldest rounds.

use std::fmt::Write;
use std::sync::Arc;

use trimtab_model::{Call, Kind, Message, Output, Part, Ref};

use super::card;
use super::names::Known;
use super::settings::Steady;
use crate::normalise::Slot;
use crate::view::placeholder::read_call;

/// What the block begins with.
const HEAD: &str = "[trimtab: earlier rounds left out; everything in them: ";
/// What its lines begin with.
const LINES: &str = "outputs in them, with names they hold:";
/// Bytes of a call's arguments on a line.
const ARGUMENTS: usize = 60;

/// One hidden output: a line of the block.
#[derive(Clone, Debug)]
pub(super) struct Line(String);

impl Line {
    /// The line of an output that is about to be hidden.
    pub(super) fn new(
        output: &Output,
        call: Option<&Call>,
        settings: &Steady,
        known: &Known,
    ) -> Option<Self> {
        let stored = output.stored.as_ref()?;
        let text = output.text();
        let names = match text.split_once(card::NAMES) {
            Some((_, names)) if output.trimmed => names.to_owned(),
            _ => card::chosen(&text, settings.names(text.len()), known),
        };
        let tool = call.map_or("output", |call| call.name.as_str());
        let arguments = call.map(|call| short(&call.arguments)).unwrap_or_default();
        Some(Self(format!("{stored} {tool} {arguments}: {names}")))
    }
}

/// The start of a call's arguments, on one line.
fn short(arguments: &str) -> String {
    let mut words = String::new();
    for word in arguments.split_whitespace() {
        if words.len() + word.len() > ARGUMENTS {
            break;
        }
        words.push_str(word);
    }
    words
}

/// The text of the block that an earlier rewrite put in, if there is one.
pub(super) fn earlier(slots: &[Slot]) -> Option<String> {
    let block = slots.iter().rev().find(|slot| is_block(&slot.message));
    block.map(|slot| slot.message.text().into_owned())
}

/// The lines of such a text, oldest first.
pub(super) fn lines(text: Option<&str>) -> Vec<Line> {
    let lines = text.and_then(|text| text.split_once(LINES));
    let lines = lines.map(|(_, lines)| lines.lines()).into_iter().flatten();
    lines
        .filter(|line| !line.is_empty())
        .map(|line| Line(line.to_owned()))
        .collect()
}

/// True for a block of ours.
pub(super) fn is_block(message: &Message) -> bool {
    let text = message.parts.first().and_then(Part::as_text);
    message.meta.kind == Some(Kind::Summary) && text.is_some_and(|text| text.starts_with(HEAD))
}

/// The block: where everything is, and as many lines as fit, the newest first to be kept.
pub(super) fn block(archived: &Ref, lines: &[Line], bytes: usize) -> Arc<Message> {
    let mut text = format!("{HEAD}{}]", read_call(archived, 0));
    let mut left = bytes.saturating_sub(text.len() + LINES.len() + 2);
    let fits = |line: &&Line| {
        let takes = line.0.len() + 1;
        let fits = takes <= left;
        left = left.saturating_sub(takes);
        fits
    };
    let mut kept: Vec<&Line> = lines.iter().rev().take_while(fits).collect();
    kept.reverse();
    if !kept.is_empty() {
        let _ = write!(text, "\n{LINES}");
    }
    for line in kept {
        let _ = write!(text, "\n{}", line.0);
    }
    Arc::new(Message::user(text).with_kind(Kind::Summary))
}
