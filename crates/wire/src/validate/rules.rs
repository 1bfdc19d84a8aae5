//! The rules, one by one.

use std::collections::{HashMap, HashSet};

use trimtab_model::{Dialect, Role, work};

use super::{Fault, MAX_MARKERS, Rule};
use crate::scan::{PartKind, PartSpan, Scan, Span};

/// Reads a body message by message.
pub(super) struct Judge<'s, 'a> {
    pub(super) scan: &'s Scan<'a>,
    pub(super) faults: Vec<Fault>,
    pub(super) entry: usize,
    begun: bool,
    /// The calls of the round being read, with whether they are answered.
    open: Vec<(String, bool)>,
    /// Where the first of them with an id stands.
    open_by_id: HashMap<String, usize>,
    /// The entry that the outputs of the round stand in, where the dialect wants one.
    outputs_in: Option<usize>,
    ids: HashSet<String>,
}

impl<'s, 'a> Judge<'s, 'a> {
    pub(super) fn new(scan: &'s Scan<'a>) -> Self {
        Self {
            scan,
            faults: Vec::new(),
            entry: 0,
            begun: false,
            open: Vec::new(),
            open_by_id: HashMap::new(),
            outputs_in: None,
            ids: HashSet::new(),
        }
    }

    fn fault(&mut self, rule: Rule) {
        let entry = self.entry;
        self.faults.push(Fault { entry, rule });
    }

    /// Only Messages insists on who begins.
    pub(super) fn check_first(&mut self, role: Role) {
        let first = !std::mem::replace(&mut self.begun, true);
        let refused = matches!(role, Role::Assistant | Role::Tool);
        if first && refused && self.scan.dialect() == Dialect::Messages {
            self.fault(Rule::UserNotFirst);
        }
    }

    /// True if no output of the round before can come any more.
    pub(super) fn closes_round(&self, message: usize, role: Role) -> bool {
        match self.scan.dialect() {
            Dialect::Chat | Dialect::Responses => role != Role::Tool,
            // The outputs are in the very next entry, all of them.
            Dialect::Messages => {
                let starts = self.scan.messages_of(self.entry).start == message;
                let answered = self.outputs_in.is_some_and(|entry| entry != self.entry);
                role != Role::Tool || (starts && answered)
            }
        }
    }

    pub(super) fn close_round(&mut self) {
        self.outputs_in = None;
        self.open_by_id = HashMap::new();
        for (id, answered) in std::mem::take(&mut self.open) {
            if !answered {
                self.fault(Rule::OpenCall(id));
            }
        }
    }

    pub(super) fn check_content(&mut self, message: usize, role: Role) {
        let parts = self.scan.parts(message);
        work::step(1 + parts.len());
        let blank = |part: &PartSpan| is_blank(self.scan, part);
        let thought = |part: &PartSpan| matches!(part.kind, PartKind::Reasoning { .. });
        // An answer may be a thought alone where the dialect has it as an entry.
        let hollow = parts.iter().all(|part| blank(part) || thought(part));
        if hollow && !(self.scan.dialect() == Dialect::Responses && parts.iter().any(thought)) {
            self.fault(Rule::EmptyMessage);
        } else if self.scan.dialect() == Dialect::Messages && parts.iter().any(blank) {
            self.fault(Rule::BlankPart);
        }
        if role != Role::Assistant && parts.iter().any(thought) {
            self.fault(Rule::MisplacedReasoning);
        }
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
            return self.fault(Rule::MisplacedCall(id));
        }
        if id.is_empty() && !self.is_legacy(part) {
            self.fault(Rule::MissingId);
        } else if !self.is_well_formed(&id) {
            self.fault(Rule::MalformedId(id.clone()));
        }
        if self.is_taken(&id) {
            self.fault(Rule::RepeatedId(id.clone()));
        }
        if self.scan.dialect() != Dialect::Chat {
            self.ids.insert(id.clone());
        }
        self.open_by_id.entry(id.clone()).or_insert(self.open.len());
        self.open.push((id, false));
    }

    fn id(&self, part: &PartSpan) -> String {
        self.scan.string(part.id).unwrap_or_default().into_owned()
    }

    /// A call in the field that came before `tool_calls` has no id.
    fn is_legacy(&self, part: &PartSpan) -> bool {
        self.scan.dialect() == Dialect::Chat && part.id.is_empty() && part.content.is_empty()
    }

    fn is_well_formed(&self, id: &str) -> bool {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.scan.dialect() != Dialect::Messages || id.bytes().all(legal)
    }

    fn is_taken(&self, id: &str) -> bool {
        self.open_by_id.contains_key(id) || self.ids.contains(id)
    }

    fn output(&mut self, message: usize, role: Role, part: &PartSpan) {
        let id = self.id(part);
        if role != Role::Tool {
            return self.fault(Rule::MisplacedOutput(id));
        }
        if self.scan.dialect() == Dialect::Messages
            && self.scan.messages_of(self.entry).start != message
        {
            self.fault(Rule::OutputNotFirst(id.clone()));
        }
        self.outputs_in = Some(self.entry);
        let open = self.open_by_id.get(&id);
        match open.and_then(|at| self.open.get_mut(*at)) {
            None => self.fault(Rule::OrphanOutput(id)),
            Some((_, answered @ false)) => *answered = true,
            Some((_, true)) => self.fault(Rule::DuplicateOutput(id)),
        }
    }

    /// A thought must be followed by something that the model said or asked for.
    pub(super) fn check_thoughts(&mut self, message: usize) {
        let last = self.scan.parts(message).last();
        if last.is_some_and(|part| matches!(part.kind, PartKind::Reasoning { .. })) {
            self.entry = self.scan.entry_range(message).end.saturating_sub(1);
            self.fault(Rule::DanglingReasoning);
        }
    }

    /// What can only be told at the end.
    pub(super) fn end(&mut self) {
        self.entry = self.scan.entries().len();
        self.close_round();
        if !self.begun {
            self.fault(Rule::NoMessage);
        }
        self.check_markers();
    }

    fn check_markers(&mut self) {
        let count = self.scan.request().markers.len();
        if count > MAX_MARKERS {
            self.fault(Rule::TooManyMarkers(count));
        }
        if self.scan.dialect() != Dialect::Messages {
            return;
        }
        let scan = self.scan;
        let markers = scan.request().markers.iter();
        let marked: HashSet<Span> = markers.map(|marker| marker.object).collect();
        for message in 0..scan.len() {
            for part in scan.parts(message) {
                let refused =
                    matches!(part.kind, PartKind::Reasoning { .. }) || is_blank(scan, part);
                if refused && marked.contains(&part.span) {
                    self.entry = scan.entry_range(message).start;
                    self.fault(Rule::MisplacedMarker);
                }
            }
        }
    }
}

fn is_blank(scan: &Scan<'_>, part: &PartSpan) -> bool {
    part.kind == PartKind::Text
        && scan
            .string(part.content)
            .is_some_and(|text| text.trim().is_empty())
}
