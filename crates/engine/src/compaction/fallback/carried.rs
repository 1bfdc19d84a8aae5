//! What earlier summaries hand on.

use std::borrow::Borrow;
use std::borrow::Cow;

use trimtab_model::{Kind, Message};

use super::OPENING;
use super::section::{Section, Title, head_of, items};
use crate::compaction::audit::without_block;
use crate::compaction::room::Room;

/// The summaries and retained texts among the replaced messages.
pub(super) struct Carried<'m> {
    texts: Vec<Cow<'m, str>>,
}

impl<'m> Carried<'m> {
    pub(super) fn of<M: Borrow<Message>>(replaced: &'m [M]) -> Self {
        let messages = replaced.iter().map(Borrow::borrow);
        let kept =
            |message: &&Message| matches!(message.meta.kind, Some(Kind::Summary | Kind::Retain));
        let texts = messages.filter(kept).map(Message::text).collect();
        Self { texts }
    }

    /// True if there is an earlier summary of any form.
    pub(super) fn any(&self) -> bool {
        !self.texts.is_empty()
    }

    /// The items under `title` of the summaries of our own form.
    pub(super) fn items(&self, title: Title) -> impl DoubleEndedIterator<Item = String> {
        let items: Vec<String> = self.ours().flat_map(|text| items(text, title)).collect();
        items.into_iter()
    }

    fn ours(&self) -> impl Iterator<Item = &str> {
        self.texts
            .iter()
            .map(AsRef::as_ref)
            .filter(|text| is_ours(text))
    }

    /// What summaries of another form say, and what those of ours carried of such.
    pub(super) fn earlier(&self, room: &Room<'_>) -> Section {
        let title = Title::Earlier;
        let mut said: Vec<String> = self.items(title).collect();
        let others = self.texts.iter().filter(|text| !is_ours(text));
        said.extend(others.map(|text| without_block(text)));
        let said: Vec<String> = said
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .collect();
        let head = head_of(&said.join("\n"), title, room);
        let item = (!head.is_empty()).then_some(head);
        Section::newest(title, item.into_iter(), room)
    }
}

fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line == OPENING)
}
