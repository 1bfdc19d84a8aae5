//! What the user said.

use std::borrow::Borrow;

use trimtab_model::Message;

use super::carried::Carried;
use super::section::{Section, Title, head_of};
use crate::compaction::room::Room;
use crate::compaction::text::clipped;

/// Characters of the first sentence of an older message.
const SENTENCE: usize = 200;
/// Of every hundred tokens, how many go to messages word for word.
const WORD_FOR_WORD: u64 = 70;

fn said<M: Borrow<Message>>(replaced: &[M]) -> impl DoubleEndedIterator<Item = &Message> {
    let messages = replaced.iter().map(Borrow::borrow);
    messages.filter(|message| message.is_real_user() && !message.is_empty())
}

/// What the user asked for at the very beginning.
pub(super) fn first_request<M: Borrow<Message>>(
    replaced: &[M],
    carried: &Carried<'_>,
    room: &Room<'_>,
) -> Section {
    let title = Title::FirstRequest;
    let known = carried.items(title).next();
    let first = match known {
        None if carried.any() => None,
        None => said(replaced)
            .next()
            .map(|message| message.text().into_owned()),
        known => known,
    };
    let head = first.map(|first| head_of(&first, title, room));
    let head = head.filter(|head| !head.is_empty());
    Section::newest(title, head.into_iter(), room)
}

/// The newest messages word for word, and the first sentence of those before them.
pub(super) fn messages<M: Borrow<Message>>(
    replaced: &[M],
    carried: &Carried<'_>,
    room: &Room<'_>,
) -> Section {
    let title = Title::UserMessages;
    let mut items = Vec::new();
    let mut left = room.share(WORD_FOR_WORD).tokens;
    let mut whole = true;
    for message in said(replaced).rev() {
        let text = message.text();
        let weight = room.weight(&text);
        whole = whole && (weight <= left || items.is_empty());
        if whole {
            left = left.saturating_sub(weight);
            items.push(head_of(&text, title, room));
        } else {
            items.push(first_sentence(&text));
        }
        if items.len() > MOST {
            break;
        }
    }
    items.extend(carried.items(title).rev().map(|item| first_sentence(&item)));
    items.retain(|item| !item.is_empty());
    Section::newest(title, items.into_iter().rev(), room)
}

/// More messages than this are not looked at.
const MOST: usize = 200;

/// The first sentence of `text`, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let ends = text.char_indices().find(|(at, found)| {
        let behind = text.get(at + found.len_utf8()..).unwrap_or_default();
        *found == '\n'
            || (".!?。！？".contains(*found) && !behind.starts_with(char::is_alphanumeric))
    });
    let end = ends.map_or(text.len(), |(at, found)| at + found.len_utf8());
    clipped(text.get(..end).unwrap_or(text), SENTENCE)
}
