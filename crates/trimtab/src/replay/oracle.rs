//! An upper bound: a manager that knows what later calls will take from outputs.
//!
//! Outputs are shown in full at first. When the window exceeds a mark, old outputs keep only the
//! lines that later calls need, and rounds that no call needs are dropped. No real policy can know
//! that. The difference between a policy and this is the price of not knowing.

use std::collections::HashMap;
use std::sync::Arc;

use trimtab_model::{Message, Output, Part};

use super::manager::{ManagerError, SentWindow, WindowManager};
use super::needs::{FRESH_OUTPUTS, Need};
use super::plain_rules::{ShownRounds, repaired_window};

/// The maximum of a single output, in percent of the window.
const OUTPUT_PERCENT: u64 = 30;
/// The assumed bytes per token when an output is cut.
const BYTES_PER_TOKEN: u64 = 3;

/// A window above `above` percent of the model's is rewritten to `target` percent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteThreshold {
    above: u64,
    target: u64,
}

const fn threshold(above: u64, target: u64) -> RewriteThreshold {
    RewriteThreshold { above, target }
}

/// The thresholds that are tried. Which one is cheapest depends on the conversation.
pub const MARKS: [RewriteThreshold; 5] = [
    threshold(95, 30),
    threshold(70, 20),
    threshold(50, 15),
    threshold(35, 10),
    threshold(20, 5),
];

/// A manager that knows what later calls need.
pub struct Oracle<'n> {
    rounds: ShownRounds,
    /// The needs of each output, by the position of its message.
    needs: HashMap<usize, Vec<&'n Need>>,
    window: u64,
    mark: RewriteThreshold,
    rewrites: u64,
}

impl<'n> Oracle<'n> {
    /// For a conversation with these needs, and a model with a window of `window` tokens.
    pub fn new(needs: &'n [Need], window: u64, mark: RewriteThreshold) -> Self {
        let mut by_source: HashMap<usize, Vec<&Need>> = HashMap::new();
        for need in needs {
            by_source.entry(need.source).or_default().push(need);
        }
        Self {
            rounds: ShownRounds::default(),
            needs: by_source,
            window,
            mark,
            rewrites: 0,
        }
    }

    /// The texts that later calls need from the outputs of a message.
    fn wanted(&self, position: usize) -> Vec<&'n str> {
        let needs = self.needs.get(&position).into_iter().flatten();
        let later = needs.filter(|need| need.call >= self.rounds.next());
        later.map(|need| need.text.as_str()).collect()
    }

    /// Cuts the outputs of a message to `bytes` and the lines that later calls need.
    fn cut(&self, position: usize, message: &Arc<Message>, bytes: usize) -> Arc<Message> {
        let is_long = |output: &Output| output.text().len() > bytes;
        if !message.outputs().any(is_long) {
            return Arc::clone(message);
        }
        let wanted = self.wanted(position);
        let mut message = Message::clone(message);
        for part in &mut message.parts {
            if let Part::Output(output) = part
                && is_long(output)
            {
                let shown = shown(&output.text(), bytes, &wanted);
                output.content = vec![Part::text(shown)];
                output.trimmed = true;
            }
        }
        Arc::new(message)
    }

    /// Cuts all outputs except the newest `fresh` to what is needed, and drops rounds that no call
    /// needs.
    fn rewrite(&mut self, fresh: usize) {
        self.rewrites += 1;
        let mut newer = 0;
        let messages = std::mem::take(&mut self.rounds.messages);
        let mut rewritten: Vec<(usize, Arc<Message>)> = Vec::with_capacity(messages.len());
        // From the newest on, to count the fresh outputs.
        for (position, message) in messages.into_iter().rev() {
            let is_fresh = newer < fresh;
            newer += message.outputs().count();
            let message = if is_fresh {
                message
            } else {
                self.cut(position, &message, 0)
            };
            rewritten.push((position, message));
        }
        rewritten.reverse();
        self.rounds.messages = rewritten;
        let needed: Vec<usize> = self.needs.keys().copied().collect();
        let needed = needed.into_iter().filter(|at| !self.wanted(*at).is_empty());
        let needed = needed.collect();
        let room = self.window * self.mark.target / 100;
        self.rounds.drop_oldest(room, &needed);
    }
}

/// The first bytes of a text, and the later lines that contain one of the wanted texts.
fn shown(text: &str, bytes: usize, wanted: &[&str]) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let is_wanted = || wanted.iter().any(|wanted| line.contains(wanted));
        if shown.len() + line.len() < bytes || is_wanted() {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

impl WindowManager for Oracle<'_> {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        let most = self.window * OUTPUT_PERCENT / 100 * BYTES_PER_TOKEN;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let message = self.cut(self.rounds.next(), message, most);
        self.rounds.push(message);
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        if self.rounds.tokens() > self.window * self.mark.above / 100 {
            self.rewrite(FRESH_OUTPUTS);
        }
        // Still too large: now the fresh outputs are cut as well.
        if self.rounds.tokens() > self.window {
            self.rewrite(0);
        }
        Ok(repaired_window(&self.rounds.all()))
    }

    fn compactions(&self) -> u64 {
        self.rewrites
    }
}
