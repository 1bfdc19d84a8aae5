//! Plain rules to compare presets with.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trimtab::model::{Message, Part, Role};

use crate::entry::{Entries, Entry};
use crate::needs::Need;

/// The percentage of the window that dropping the oldest rounds leaves.
const LEFT_PERCENT: u64 = 50;
/// The maximum of a new output under the oracle, in percent of the window.
const OUTPUT_PERCENT: u64 = 30;
/// The number of newest outputs that the oracle leaves whole.
const FRESH_OUTPUTS: usize = 2;

/// Decides what is sent, without a note to the model.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Sends everything.
    Everything,
    /// Drops the oldest rounds when the window is full.
    DropOldest,
    /// Knows what later calls need: above the first percentage of the window, old outputs keep only
    /// the lines with it, and rounds that no call needs are dropped down to the second one.
    Oracle(u64, u64),
}

/// The percentages that the oracle tries. Which are cheapest depends on the conversation.
pub(crate) const ORACLE_MARKS: [(u64, u64); 5] = [(95, 30), (70, 20), (50, 15), (35, 10), (20, 5)];

/// A conversation under a rule.
pub(crate) struct RuledLog<'n> {
    rule: Rule,
    window: u64,
    /// The calls that need a text of an output, by the position of the output.
    needs: HashMap<usize, Vec<(usize, &'n str)>>,
    /// The messages that are still shown, with their positions.
    shown: Vec<(usize, Arc<Message>)>,
    next: usize,
    entries: Entries,
}

impl<'n> RuledLog<'n> {
    /// For a conversation with these needs and a model with a window of `window` tokens.
    pub(crate) fn new(rule: Rule, window: u64, needs: &'n HashMap<usize, Vec<Need>>) -> Self {
        let mut by_source: HashMap<usize, Vec<(usize, &str)>> = HashMap::new();
        for (call, needs) in needs {
            for need in needs {
                let of_source = by_source.entry(need.source).or_default();
                of_source.push((*call, &need.text));
            }
        }
        Self {
            rule,
            window,
            needs: by_source,
            shown: Vec::new(),
            next: 0,
            entries: Entries::default(),
        }
    }

    /// Adds the next message.
    pub(crate) fn admit(&mut self, message: &Arc<Message>) {
        let message = match self.rule {
            // Four bytes are a token.
            Rule::Oracle(..) => self.cut(self.next, message, self.percent(OUTPUT_PERCENT) * 4),
            _ => Arc::clone(message),
        };
        self.shown.push((self.next, message));
        self.next += 1;
    }

    /// The window for the next call.
    pub(crate) fn window(&mut self) -> Vec<Arc<Message>> {
        match self.rule {
            Rule::Everything => {}
            Rule::DropOldest => {
                if self.tokens() > self.window {
                    self.drop_oldest(LEFT_PERCENT, &HashSet::new());
                }
            }
            Rule::Oracle(above, target) => {
                if self.tokens() > self.percent(above) {
                    self.keep_needed(FRESH_OUTPUTS, target);
                }
                // Still too large: now the fresh outputs are cut as well.
                if self.tokens() > self.window {
                    self.keep_needed(0, target);
                }
            }
        }
        let shown = self.shown.iter();
        shown.map(|(_, message)| Arc::clone(message)).collect()
    }

    fn percent(&self, percent: u64) -> u64 {
        self.window * percent / 100
    }

    fn tokens(&mut self) -> u64 {
        self.tokens_of(&self.shown.clone())
    }

    fn tokens_of(&mut self, messages: &[(usize, Arc<Message>)]) -> u64 {
        let messages: Vec<_> = messages.iter().map(|(_, one)| Arc::clone(one)).collect();
        let entries = self.entries.of(&messages);
        entries
            .iter()
            .map(|entry: &Arc<Entry>| entry.tokens())
            .sum()
    }

    /// What later calls need of the output at a position.
    fn wanted(&self, position: usize) -> Vec<&'n str> {
        let needs = self.needs.get(&position).into_iter().flatten();
        let later = needs.filter(|(call, _)| *call >= self.next);
        later.map(|(_, text)| *text).collect()
    }

    /// Cuts the output at a position to `bytes` and the lines that later calls need.
    fn cut(&self, position: usize, message: &Arc<Message>, bytes: u64) -> Arc<Message> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if message.outputs().all(|output| output.text().len() <= bytes) {
            return Arc::clone(message);
        }
        let wanted = self.wanted(position);
        let mut message = Message::clone(message);
        for part in &mut message.parts {
            if let Part::Output(output) = part {
                let text = output.text().into_owned();
                let mut kept = String::new();
                for line in text.lines() {
                    let is_wanted = wanted.iter().any(|wanted| line.contains(wanted));
                    if kept.len() + line.len() < bytes || is_wanted {
                        kept.push_str(line);
                        kept.push('\n');
                    }
                }
                output.content = vec![Part::text(kept)];
            }
        }
        Arc::new(message)
    }

    /// Cuts all outputs but the newest `fresh` to what is needed, and drops rounds without need.
    fn keep_needed(&mut self, fresh: usize, target: u64) {
        let outputs = self.shown.iter().enumerate();
        let outputs = outputs.filter(|(_, (_, message))| message.has_outputs());
        let outputs: Vec<usize> = outputs.map(|(number, _)| number).collect();
        let old = outputs.len().saturating_sub(fresh);
        for number in outputs.into_iter().take(old) {
            if let Some((position, message)) = self.shown.get(number) {
                let cut = (*position, self.cut(*position, message, 0));
                self.shown.splice(number..=number, [cut]);
            }
        }
        let needed = self.needs.keys().copied();
        let needed = needed.filter(|at| !self.wanted(*at).is_empty()).collect();
        self.drop_oldest(target, &needed);
    }

    /// Drops the oldest rounds until the rest fits a percentage of the window: an answer of the
    /// model with the outputs behind it, but not the last one, and none with a needed message.
    fn drop_oldest(&mut self, percent: u64, needed: &HashSet<usize>) {
        let room = self.percent(percent);
        let mut left = self.tokens();
        let shown = std::mem::take(&mut self.shown);
        let rounds: Vec<_> = shown
            .chunk_by(|_, (_, next)| next.role == Role::Tool)
            .collect();
        for (number, round) in rounds.iter().enumerate() {
            let is_answer = round
                .first()
                .is_some_and(|(_, first)| first.role == Role::Assistant);
            let is_needed = round.iter().any(|(at, _)| needed.contains(at));
            if left > room && is_answer && !is_needed && number + 1 < rounds.len() {
                left -= self.tokens_of(round);
            } else {
                self.shown.extend_from_slice(round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::needs;
    use crate::test_log::{call, log};

    /// The last window of a conversation that lists a path, reads a lot and uses the path.
    fn last_window(rule: Rule) -> String {
        let mut messages = vec![
            Message::user("tidy up"),
            call("0", "{}"),
            Message::output("0", "src/parser/lexer.rs\nsrc/parser/tokens.rs\n"),
        ];
        for round in 1..=20 {
            messages.push(call(&round.to_string(), "{}"));
            messages.push(Message::output(round.to_string(), "words\n".repeat(200)));
        }
        messages.push(call("last", r#"{"path": "src/parser/lexer.rs"}"#));
        let needs = needs(&log(messages.clone()));
        let mut ruled = RuledLog::new(rule, 4_000, &needs);
        let mut window = Vec::new();
        for message in messages.into_iter().map(Arc::new) {
            if message.role == Role::Assistant {
                window = ruled.window();
                let tokens: u64 = Entries::default()
                    .of(&window)
                    .iter()
                    .map(|one| one.tokens())
                    .sum();
                assert!(tokens <= 4_000, "{tokens}");
            }
            ruled.admit(&message);
        }
        let texts = Entries::default().of(&window);
        texts.iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn oracle_keeps_the_line_that_a_later_call_needs_and_drop_oldest_does_not() {
        let kept = last_window(Rule::Oracle(95, 30));
        assert!(kept.contains("src/parser/lexer.rs\n") && !kept.contains("tokens.rs"));
        assert!(!last_window(Rule::DropOldest).contains("lexer.rs"));
    }
}
