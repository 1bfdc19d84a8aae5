//! Baselines with plain rules: send everything, or drop the oldest rounds.

use std::collections::HashSet;
use std::sync::Arc;

use trimtab_engine::normalise::{NormaliseOptions, normalise};
use trimtab_engine::window::Projection;
use trimtab_model::{Message, Role};

use super::manager::{ManagerError, SentWindow, WindowManager};
use super::sizes::{MessageSizer, larger_count};

/// The percentage of the window that dropping leaves.
const LEFT_PERCENT: u64 = 50;

/// Sends everything, with repairs of what a provider would reject.
#[derive(Debug, Default)]
pub struct SendAll {
    projection: Projection,
}

impl WindowManager for SendAll {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        self.projection.admit(Arc::clone(message));
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        let window = self.projection.window();
        let window = window.map_err(|invalid| ManagerError(invalid.to_string()))?;
        Ok(SentWindow {
            messages: window.messages().cloned().collect(),
            ..SentWindow::default()
        })
    }
}

/// Drops the oldest rounds when the window is full, down to half of it, without any note.
pub struct DropOldest {
    rounds: ShownRounds,
    window: u64,
    drops: u64,
}

impl DropOldest {
    /// For a model with a window of `window` tokens.
    pub fn new(window: u64) -> Self {
        Self {
            rounds: ShownRounds::default(),
            window,
            drops: 0,
        }
    }
}

impl WindowManager for DropOldest {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        self.rounds.push(Arc::clone(message));
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        if self.rounds.tokens() > self.window {
            self.drops += 1;
            let room = self.window * LEFT_PERCENT / 100;
            self.rounds.drop_oldest(room, &HashSet::new());
        }
        Ok(repaired_window(&self.rounds.all()))
    }

    fn compactions(&self) -> u64 {
        self.drops
    }
}

/// The messages as a window, with repairs of what a provider would reject.
pub(super) fn repaired_window(messages: &[Arc<Message>]) -> SentWindow {
    SentWindow {
        messages: normalise(messages, NormaliseOptions::default()).messages(),
        ..SentWindow::default()
    }
}

/// The messages of a conversation that are still shown, with their positions.
#[derive(Default)]
pub(super) struct ShownRounds {
    pub(super) messages: Vec<(usize, Arc<Message>)>,
    sizer: MessageSizer,
    next: usize,
}

impl ShownRounds {
    pub(super) fn push(&mut self, message: Arc<Message>) {
        self.messages.push((self.next, message));
        self.next += 1;
    }

    /// The position of the next message.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    pub(super) fn all(&self) -> Vec<Arc<Message>> {
        let messages = self.messages.iter();
        messages.map(|(_, message)| Arc::clone(message)).collect()
    }

    /// The tokens: our estimate, or a quarter of the bytes if that is more.
    pub(super) fn tokens(&mut self) -> u64 {
        let messages = self.messages.iter().map(|(_, message)| message);
        larger_count(&self.sizer.total(messages))
    }

    /// Drops the oldest rounds until the rest fits `room` tokens: an answer of the model with the
    /// outputs behind it, but not the last one, and none with a message in `needed`.
    pub(super) fn drop_oldest(&mut self, room: u64, needed: &HashSet<usize>) {
        let mut left = self.tokens();
        let messages = std::mem::take(&mut self.messages);
        let begins = |message: &Arc<Message>| message.role != Role::Tool;
        let rounds: Vec<_> = messages.chunk_by(|_, next| !begins(&next.1)).collect();
        for (at, round) in rounds.iter().enumerate() {
            let is_last = at + 1 == rounds.len();
            let is_needed = || round.iter().any(|(at, _)| needed.contains(at));
            let answer = round.first();
            let is_said = answer.is_some_and(|(_, message)| message.role == Role::Assistant);
            // User messages and instructions always stay.
            if left > room && is_said && !is_last && !is_needed() {
                let size = self.sizer.total(round.iter().map(|(_, message)| message));
                left = left.saturating_sub(larger_count(&size));
            } else {
                self.messages.extend_from_slice(round);
            }
        }
    }
}
