//! Simple rules to compare with: what people write first.

use std::sync::Arc;

use trimtab_engine::normalise::{Options, normalise};
use trimtab_engine::view::{Given, Middle, Shape, view};
use trimtab_model::{Message, Output, Part, Ref, Role};
use trimtab_store::{MemoryStore, Put, SessionId, Store};

use super::manager::{Failed, Manager, Sent, ShownRef};
use super::sizes::{Size, Sizer};

/// What is done to old outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing.
    Keep,
    /// Over the window, all but so many of the newest are cleared.
    Clear(usize),
    /// Over 40,000 tokens, all but the newest batch keep so many characters.
    Prefix(usize),
    /// The oldest become placeholders until all outputs take no more tokens than this.
    Placeholders(u64),
    /// All but so many of the newest are archived.
    Archive(usize),
    /// Each is cut in its middle to so many tokens when it comes in.
    Middle(u64),
}

/// A simple rule. What is still over the window loses its oldest rounds, down to half of it.
pub struct Plain {
    rule: Rule,
    /// Where dropping rounds begins; none where nothing is dropped.
    window: Option<u64>,
    log: Vec<Arc<Message>>,
    refs: Vec<Vec<Ref>>,
    store: MemoryStore,
    sizer: Sizer,
    /// Messages before this are dropped, system messages apart.
    from: usize,
    dropped: u64,
}

impl Plain {
    /// Sends everything.
    pub fn all() -> Self {
        Self::new(Rule::Keep, None)
    }

    /// A rule, and the window that the rest is dropped for.
    pub fn new(rule: Rule, window: Option<u64>) -> Self {
        Self {
            rule,
            window,
            log: Vec::new(),
            refs: Vec::new(),
            store: MemoryStore::new(),
            sizer: Sizer::default(),
            from: 0,
            dropped: 0,
        }
    }

    fn total(&mut self, messages: &[Arc<Message>]) -> u64 {
        let mut total = Size::default();
        for message in messages {
            total += self.sizer.size(message);
        }
        total.quarter()
    }

    /// The outputs of the log: where they stand, oldest first.
    fn outputs(&self) -> Vec<usize> {
        let outputs = self.log.iter().enumerate();
        outputs
            .filter(|(_, message)| message.outputs().next().is_some())
            .map(|(at, _)| at)
            .collect()
    }

    /// The log with the rule carried out, not yet dropped from.
    fn shown(&mut self) -> Vec<Arc<Message>> {
        let mut shown = self.log.clone();
        let outputs = self.outputs();
        let newest = shown
            .iter()
            .rposition(|message| message.has_calls())
            .unwrap_or(0);
        let total = self.total(&shown);
        let trimmed = |text: &str| (0, format!("{text}…[cut]"));
        match self.rule {
            Rule::Keep | Rule::Middle(_) => {}
            Rule::Clear(keep) => {
                let old = outputs.len().saturating_sub(keep);
                if self.window.is_some_and(|window| total > window) {
                    for at in outputs.into_iter().take(old) {
                        replace(&mut shown, at, |_, _| "[cleared]".to_owned());
                    }
                }
            }
            Rule::Archive(keep) => {
                let old = outputs.len().saturating_sub(keep);
                for at in outputs.into_iter().take(old) {
                    replace(&mut shown, at, |_, _| "[archived]".to_owned());
                }
            }
            Rule::Prefix(chars) => {
                if total > 40_000 {
                    for at in outputs.into_iter().filter(|at| *at < newest) {
                        replace(&mut shown, at, |text, _| {
                            let head: String = text.chars().take(chars).collect();
                            if head.len() < text.len() {
                                trimmed(&head).1
                            } else {
                                head
                            }
                        });
                    }
                }
            }
            Rule::Placeholders(budget) => self.placeholders(&mut shown, &outputs, newest, budget),
        }
        shown
    }

    fn placeholders(
        &mut self,
        shown: &mut [Arc<Message>],
        outputs: &[usize],
        newest: usize,
        budget: u64,
    ) {
        let mut sizes: Vec<(usize, u64)> = Vec::new();
        for at in outputs {
            if let Some(message) = shown.get(*at) {
                sizes.push((*at, self.sizer.size(message).quarter()));
            }
        }
        let mut total: u64 = sizes.iter().map(|(_, size)| size).sum();
        for (at, size) in sizes.into_iter().filter(|(at, _)| *at < newest) {
            if total <= budget {
                break;
            }
            total -= size;
            let refs = self.refs.get(at).cloned().unwrap_or_default();
            replace(shown, at, |_, index| {
                let stored = refs.get(index).map(ToString::to_string);
                format!("[tool output trimmed; ref={}]", stored.unwrap_or_default())
            });
        }
    }
}

/// Shows the outputs of a message as something else.
fn replace(shown: &mut [Arc<Message>], at: usize, text: impl Fn(&str, usize) -> String) {
    let Some(slot) = shown.get_mut(at) else {
        return;
    };
    let mut message = Message::clone(slot);
    let mut index = 0;
    for part in &mut message.parts {
        if let Part::Output(output) = part {
            let content = vec![Part::text(text(&output.text(), index))];
            *output = Output {
                content,
                ..output.clone()
            };
            index += 1;
        }
    }
    *slot = Arc::new(message);
}

impl Manager for Plain {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), Failed> {
        let failed = |error: trimtab_store::Error| Failed(error.to_string());
        let session = SessionId::new("plain").map_err(failed)?;
        let mut refs = Vec::new();
        for output in message.outputs() {
            let text = output.text();
            let put = Put::new(&output.call_id, text.as_ref());
            refs.push(self.store.put(&session, put).map_err(failed)?);
        }
        self.refs.push(refs);
        self.log.push(Arc::clone(message));
        if let Rule::Middle(tokens) = self.rule {
            let shape = Shape::Middle(Middle::codex_tokens(tokens));
            let last = self.log.len() - 1;
            if message.outputs().next().is_some() {
                replace(&mut self.log, last, |text, _| {
                    view(text, &shape, &Given::default()).text.into_owned()
                });
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<Sent, Failed> {
        let shown = self.shown();
        let keeps = |from: usize| {
            let kept = shown.iter().enumerate();
            kept.filter(move |(at, message)| *at >= from || message.role == Role::System)
                .map(|(_, message)| Arc::clone(message))
                .collect::<Vec<_>>()
        };
        let mut kept = keeps(self.from);
        if let Some(window) = self.window
            && self.total(&kept) > window
        {
            self.dropped += 1;
            while self.total(&kept) > window / 2 && self.from + 1 < shown.len() {
                self.from += 1;
                while shown.get(self.from).is_some_and(|m| m.role == Role::Tool) {
                    self.from += 1;
                }
                kept = keeps(self.from);
            }
        }
        let messages = normalise(&kept, Options::default()).messages();
        let refs = self.refs.iter().enumerate();
        let refs = refs.flat_map(|(position, refs)| {
            refs.iter().map(move |stored| ShownRef {
                position,
                call_id: String::new(),
                stored: stored.clone(),
            })
        });
        Ok(Sent {
            messages,
            refs: refs.collect(),
        })
    }

    fn compactions(&self) -> u64 {
        self.dropped
    }
}
