//! The rules, one by one.

use std::collections::{HashMap, HashSet};

use trimtab_model::{Dialect, Role, work};

use super::{MAX_MARKERS, RequestFault, RequestRule};
use crate::scan::{BodyScan, PartKind, PartSpan, Span};

/// Validates a body message by message.
pub(super) struct BodyValidator<'s, 'a> {
    pub(super) scan: &'s BodyScan<'a>,
    pub(super) faults: Vec<RequestFault>,
    pub(super) entry: usize,
    begun: bool,
    /// The calls of the current round, in order.
    calls: Vec<String>,
    /// The state of each call, by its id.
    answers: HashMap<String, CallAnswer>,
    /// True once the round has an output.
    answering: bool,
    ids: HashSet<String>,
}

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallAnswer {
    Missing,
    Given,
    /// It needs no output, but may have one.
    Optional,
}

impl<'s, 'a> BodyValidator<'s, 'a> {
    pub(super) fn new(scan: &'s BodyScan<'a>) -> Self {
        Self {
            scan,
            faults: Vec::new(),
            entry: 0,
            begun: false,
            calls: Vec::new(),
            answers: HashMap::new(),
            answering: false,
            ids: HashSet::new(),
        }
    }

    fn fault(&mut self, rule: RequestRule) {
        let entry = self.entry;
        self.faults.push(RequestFault { entry, rule });
    }

    /// Only Messages requires a certain first role. A system directive without content may precede
    /// it.
    pub(super) fn check_first(&mut self, message: usize, role: Role) {
        let in_messages = self.scan.dialect() == Dialect::Messages;
        if in_messages && role == Role::System && self.scan.parts(message).is_empty() {
            return;
        }
        let first = !std::mem::replace(&mut self.begun, true);
        if first && role != Role::User && in_messages && !self.is_compacted(message) {
            // The provider requires a user message first, apart from such directives and its own
            // summary.
            self.fault(RequestRule::UserNotFirst);
        }
    }

    /// True for a message that begins with a summary of the provider.
    fn is_compacted(&self, message: usize) -> bool {
        let first = self.scan.parts(message).first();
        first.is_some_and(|part| self.scan.is_boundary(part))
    }

    /// True if no output of the previous round can follow any more.
    pub(super) fn closes_round(&self, role: Role) -> bool {
        match (self.scan.dialect(), role) {
            (Dialect::Chat, role) => role != Role::Tool,
            // An output belongs to a call by its id, anywhere after it. In Messages, consecutive
            // messages of one role are one message to the provider, and system messages among them
            // do not count.
            (Dialect::Responses, _) | (Dialect::Messages, Role::Tool | Role::System) => false,
            (Dialect::Messages, Role::Assistant) => self.answering,
            (Dialect::Messages, Role::User) => true,
        }
    }

    pub(super) fn close_round(&mut self) {
        self.answering = false;
        let answers = std::mem::take(&mut self.answers);
        for id in std::mem::take(&mut self.calls) {
            if answers.get(&id) == Some(&CallAnswer::Missing) {
                self.fault(RequestRule::OpenCall(id));
            }
        }
    }

    pub(super) fn check_content(&mut self, message: usize, role: Role) {
        let parts = self.scan.parts(message);
        work::step(1 + parts.len());
        let blank = |part: &PartSpan| is_blank(self.scan, part);
        if self.scan.dialect() == Dialect::Messages && role != Role::System {
            // A message with only blank texts is empty for the provider.
            if parts.iter().all(blank) {
                if !self.is_prefill(message, role) {
                    self.fault(RequestRule::EmptyMessage);
                }
            } else if parts.iter().any(blank) {
                self.fault(RequestRule::BlankPart);
            }
        }
        let misplaced = role != Role::Assistant && parts.iter().any(is_thought);
        if misplaced && self.scan.dialect() != Dialect::Chat {
            self.fault(RequestRule::MisplacedReasoning);
        }
    }

    /// True for an empty answer at the end, which asks the model to begin it.
    fn is_prefill(&self, message: usize, role: Role) -> bool {
        let is_last = message + 1 == self.scan.len();
        let nothing = match self.scan.parts(message) {
            [] => true,
            [only] => self.scan.json(only.span) == "\"\"",
            _ => false,
        };
        is_last && role == Role::Assistant && nothing
    }

    pub(super) fn check_parts(&mut self, message: usize, role: Role) {
        let scan = self.scan;
        for part in scan.parts(message) {
            match part.kind {
                PartKind::Call => self.call(role, part),
                PartKind::Output => self.output(message, role, part),
                _ => {}
            }
        }
    }

    fn call(&mut self, role: Role, part: &PartSpan) {
        let id = self.id(part);
        if role != Role::Assistant {
            return self.fault(RequestRule::MisplacedCall(id));
        }
        if id.is_empty() && !self.is_legacy(part) {
            self.fault(RequestRule::MissingId);
        } else if !self.is_well_formed(&id) {
            self.fault(RequestRule::MalformedId(id.clone()));
        }
        if self.is_taken(&id) {
            self.fault(RequestRule::RepeatedId(id.clone()));
        }
        // Chat Completions allows the same id again in a later message.
        if self.scan.dialect() != Dialect::Chat {
            self.ids.insert(id.clone());
        }
        // A call in the legacy field may stay open.
        let answer = if self.is_legacy(part) {
            CallAnswer::Optional
        } else {
            CallAnswer::Missing
        };
        self.answers.insert(id.clone(), answer);
        self.calls.push(id);
    }

    fn id(&self, part: &PartSpan) -> String {
        self.scan.string(part.id).unwrap_or_default().into_owned()
    }

    /// A call in the legacy field has no id.
    fn is_legacy(&self, part: &PartSpan) -> bool {
        self.scan.dialect() == Dialect::Chat && part.id.is_empty() && part.content.is_empty()
    }

    fn is_well_formed(&self, id: &str) -> bool {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.scan.dialect() != Dialect::Messages || id.bytes().all(legal)
    }

    fn is_taken(&self, id: &str) -> bool {
        self.answers.contains_key(id) || self.ids.contains(id)
    }

    fn output(&mut self, message: usize, role: Role, part: &PartSpan) {
        let id = self.id(part);
        if role != Role::Tool {
            return self.fault(RequestRule::MisplacedOutput(id));
        }
        if self.scan.dialect() == Dialect::Messages
            // In Messages, outputs must come first in their user message.
            && self.scan.messages_of(self.entry).start != message
        {
            self.fault(RequestRule::OutputNotFirst(id.clone()));
        }
        self.answering = true;
        match self.answers.get_mut(&id) {
            None => self.fault(RequestRule::OrphanOutput(id)),
            Some(answer @ CallAnswer::Missing) => *answer = CallAnswer::Given,
            Some(CallAnswer::Optional) => {}
            // Responses is not known to reject this.
            Some(CallAnswer::Given) if self.scan.dialect() == Dialect::Responses => {}
            Some(CallAnswer::Given) => self.fault(RequestRule::DuplicateOutput(id)),
        }
    }

    /// Reasoning must be followed by text or a call.
    pub(super) fn check_thoughts(&mut self, message: usize) {
        let Some(last) = self
            .scan
            .parts(message)
            .last()
            .filter(|part| is_thought(part))
        else {
            return;
        };
        let refused = match self.scan.dialect() {
            Dialect::Chat => false,
            // Consecutive assistant messages are one message to the provider.
            Dialect::Messages => self.scan.role(message + 1) != Some(Role::Assistant),
            // The provider requires the entry that belongs to reasoning with a known id.
            Dialect::Responses => has_id(self.scan.json(last.span)),
        };
        if refused {
            self.entry = self.scan.entry_range(message).end.saturating_sub(1);
            self.fault(RequestRule::DanglingReasoning);
        }
    }

    /// Checks that are only possible at the end.
    pub(super) fn end(&mut self) {
        self.entry = self.scan.entries().len();
        self.close_round();
        if !self.begun {
            self.fault(RequestRule::NoMessage);
        }
        self.check_markers();
    }

    fn check_markers(&mut self) {
        let count = self.scan.request().markers.len();
        if count > MAX_MARKERS {
            self.fault(RequestRule::TooManyMarkers(count));
        }
        // Only Messages rejects markers on reasoning and blank texts.
        if self.scan.dialect() != Dialect::Messages {
            return;
        }
        let scan = self.scan;
        let markers = scan.request().markers.iter();
        let marked: HashSet<Span> = markers.map(|marker| marker.object).collect();
        for message in 0..scan.len() {
            for part in scan.parts(message) {
                let refused = is_thought(part) || is_blank(scan, part);
                if refused && marked.contains(&part.span) {
                    self.entry = scan.entry_range(message).start;
                    self.fault(RequestRule::MisplacedMarker);
                }
            }
        }
    }
}

fn is_thought(part: &PartSpan) -> bool {
    matches!(part.kind, PartKind::Reasoning { .. })
}

fn has_id(item: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct ItemId {
        id: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<ItemId>(item).is_ok_and(|item| item.id.is_some())
}

fn is_blank(scan: &BodyScan<'_>, part: &PartSpan) -> bool {
    part.kind == PartKind::Text
        && scan
            .string(part.content)
            .is_some_and(|text| text.trim().is_empty())
}
