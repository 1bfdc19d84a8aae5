//! Arbitrary changes: the rest of the body stays identical, and the result is valid.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use trimtab_model::{Dialect, Message, Output, Part, RawJson, Role};
use trimtab_testkit::cases;
use trimtab_wire::scan::{BodyScan, PartKind};
use trimtab_wire::splice::{BodyChange, SplicedBody, splice};
use trimtab_wire::validate::validate;

use crate::common::{body, gist};
use crate::properties::is_json;

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn splice_applies_exactly_the_changes(
        (dialect, body) in body(12),
        seed in 1..u64::MAX,
    ) {
        check_changes(&body, dialect, seed);
    }
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % bound.max(1)
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.roll(bound) == 0
    }
}

/// A conversation and the changes that a valid plan makes to it.
struct Case {
    messages: Vec<Option<Message>>,
    inserted: Vec<Vec<Message>>,
    changes: Vec<BodyChange>,
    /// True if nothing is put in.
    shrinks: bool,
}

/// Makes a list of changes that a valid plan could hold, carries it out and looks at all
/// that must hold.
pub(crate) fn check_changes(body: &str, dialect: Dialect, seed: u64) {
    let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
    let mut dice = Dice(seed);
    let mut case = Case {
        messages: (0..scan.len()).map(|at| scan.message(at)).collect(),
        inserted: vec![Vec::new(); scan.len() + 1],
        changes: Vec::new(),
        shrinks: true,
    };
    case.show(&scan, &mut dice);
    case.rename(&scan, &mut dice);
    case.strip(&scan, &mut dice);
    case.hide(&scan, &mut dice);
    case.insert(&scan, &mut dice);
    case.frame(&scan, &mut dice);
    let spliced = splice(&scan, &case.changes).unwrap();
    case.take_back(&scan, &spliced.skipped);
    let text = std::str::from_utf8(&spliced.body).unwrap();
    assert!(is_json(&spliced.body), "{text}");
    let again = BodyScan::new(&spliced.body, dialect).unwrap();
    let faults = validate(&again);
    assert_eq!(faults, vec![], "{:?}\n{body}\n{text}", case.changes);
    let found: Vec<Message> = (0..again.len())
        .map(|at| again.message(at).unwrap())
        .collect();
    assert_eq!(
        gist(&found),
        gist(&case.expected()),
        "{:?}\n{body}\n{text}",
        case.changes
    );
    if case.shrinks {
        assert!(text.len() <= body.len());
    }
    check_untouched(&scan, &case, text);
    check_overruled(&scan, &case, &spliced);
}

/// A body in which fields are overruled by others of their name means the same after the changes
/// as one without those, which the same changes were carried out on.
fn check_overruled(scan: &BodyScan<'_>, case: &Case, spliced: &SplicedBody<'_>) {
    if scan.body().len() > 64 << 10 {
        return;
    }
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let Some(plain) = value(scan.body()).map(|value| value.to_string()) else {
        return;
    };
    let plain = BodyScan::new(plain.as_bytes(), scan.dialect()).unwrap();
    let other = splice(&plain, &case.changes).unwrap();
    // Escapes make a body longer, and a view is only shown where that makes it shorter.
    if other.skipped == spliced.skipped {
        let (one, other) = (value(&spliced.body), value(&other.body));
        assert_eq!(
            one,
            other,
            "{:?}\n{}",
            case.changes,
            String::from_utf8_lossy(scan.body())
        );
    }
}

/// Every message that no change is about is there as it came, in order.
fn check_untouched(scan: &BodyScan<'_>, case: &Case, text: &str) {
    let touched = |at: usize| {
        case.changes.iter().any(|change| match change {
            BodyChange::Show { message, .. } | BodyChange::Rename { message, .. } => *message == at,
            BodyChange::Remove { messages } => messages.contains(&at),
            BodyChange::StripReasoning { before } => at < *before,
            // It becomes part of what the system says.
            BodyChange::Insert { message, .. } if message.role == Role::System => {
                scan.role(at) == Some(Role::System)
            }
            _ => false,
        })
    };
    let mut from = 0;
    for at in (0..scan.len()).filter(|at| !touched(*at)) {
        for part in scan.parts(at) {
            let json = scan.json(part.span);
            let is_moved = scan.role(at) == Some(Role::System) || scan.dialect() == Dialect::Chat;
            let start = if is_moved { 0 } else { from };
            let found = text.get(start..).unwrap().find(json);
            let found = found.unwrap_or_else(|| panic!("{json} is not in {text}"));
            if !is_moved {
                from += found + json.len();
            }
        }
    }
}

impl Case {
    fn expected(&self) -> Vec<Message> {
        let mut expected = Vec::new();
        for (at, inserted) in self.inserted.iter().enumerate() {
            expected.extend(inserted.iter().cloned());
            expected.extend(self.messages.get(at).cloned().flatten());
        }
        expected
    }

    fn show(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        for message in 0..scan.len() {
            for (part, span) in scan.parts(message).iter().enumerate() {
                if span.kind != PartKind::Output || !dice.one_in(3) {
                    continue;
                }
                let Some(Part::Output(output)) =
                    self.messages[message].as_mut().map(|m| &mut m.parts[part])
                else {
                    unreachable!()
                };
                // Room for the spelling of a list with a marker.
                let room = span.content.len().saturating_sub(40);
                if room == 0 {
                    continue;
                }
                let text = "cut \u{e9}\"\n".repeat(20);
                let cut: String = text.chars().take(dice.roll(room / 2) + 1).collect();
                let shown = Output::new(output.call_id.clone(), cut);
                output.content.clone_from(&shown.content);
                self.changes.push(BodyChange::Show {
                    message,
                    part,
                    output: shown,
                });
            }
        }
    }

    /// What would have made the body longer stays as it was.
    fn take_back(&mut self, scan: &BodyScan<'_>, skipped: &[usize]) {
        for change in skipped {
            let BodyChange::Show {
                message,
                part,
                output,
            } = &self.changes[*change]
            else {
                panic!("only a view may be skipped");
            };
            let original = scan.message(*message).unwrap().parts[*part].clone();
            let Part::Output(original) = original else {
                unreachable!()
            };
            assert!(original.text().len() < output.text().len() + 200);
            let Some(now) = self.messages[*message].as_mut() else {
                continue;
            };
            let Part::Output(now) = &mut now.parts[*part] else {
                unreachable!()
            };
            now.content = original.content;
        }
    }

    fn rename(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        let pairing = {
            let messages: Vec<Message> = self.messages.iter().flatten().cloned().collect();
            trimtab_model::rounds::pair(&messages)
        };
        for call in pairing.rounds.iter().flat_map(|round| &round.calls) {
            let Some(output) = call.output.filter(|_| dice.one_in(6)) else {
                continue;
            };
            let id = format!("r{}", self.changes.len());
            self.shrinks = false;
            for place in [call.call, output] {
                assert!(!scan.parts(place.message)[place.part].id.is_empty());
                match &mut self.messages[place.message].as_mut().unwrap().parts[place.part] {
                    Part::Call(call) => call.id.clone_from(&id),
                    Part::Output(output) => output.call_id.clone_from(&id),
                    other => panic!("{other:?}"),
                }
                self.changes.push(BodyChange::Rename {
                    message: place.message,
                    part: place.part,
                    id: id.clone(),
                });
            }
        }
    }

    fn strip(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        if !dice.one_in(3) {
            return;
        }
        let before = dice.roll(scan.len() + 1);
        self.changes.push(BodyChange::StripReasoning { before });
        for message in self.messages.iter_mut().take(before).flatten() {
            message
                .parts
                .retain(|part| !matches!(part, Part::Reasoning(_)));
        }
    }

    /// Hides runs of whole rounds behind the first message of the user.
    fn hide(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        let first = (0..scan.len()).find(|at| scan.role(*at) == Some(Role::User));
        let from = first.unwrap_or(0) + 1 + dice.roll(scan.len());
        let to = from + dice.roll(scan.len());
        let is_cut = |at: usize| at >= scan.len() || scan.role(at) != Some(Role::Tool);
        let from = (from..scan.len())
            .find(|at| is_cut(*at))
            .unwrap_or(scan.len());
        let to = (to..scan.len())
            .find(|at| is_cut(*at))
            .unwrap_or(scan.len());
        for message in from..to {
            if scan.role(message) == Some(Role::System) {
                continue;
            }
            let messages = message..message + 1;
            self.changes.push(BodyChange::Remove { messages });
            self.messages[message] = None;
        }
    }

    fn insert(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        let first = usize::from(scan.role(0) == Some(Role::System));
        for before in first..=scan.len() {
            let role = scan.role(before);
            if role == Some(Role::Tool) || !dice.one_in(6) {
                continue;
            }
            let message = Message::user(format!("summary \"{before}\""));
            let message = message.with_kind(trimtab_model::MessageKind::Summary);
            self.shrinks = false;
            self.inserted[before].push(message.clone());
            let message = Arc::new(message);
            self.changes.push(BodyChange::Insert { before, message });
        }
    }

    /// Changes what is not a message.
    fn frame(&mut self, scan: &BodyScan<'_>, dice: &mut Dice) {
        let dialect = scan.dialect();
        if dice.one_in(3) {
            let tool = match dialect {
                Dialect::Chat => r#"{"type":"function","function":{"name":"mine"}}"#,
                Dialect::Responses => r#"{"type":"function","name":"mine","parameters":{}}"#,
                Dialect::Messages => r#"{"name":"mine","input_schema":{"type":"object"}}"#,
            };
            let tools = vec![RawJson::parse(tool).unwrap()];
            self.changes.push(BodyChange::AddTools { tools });
            self.shrinks = false;
        }
        if dice.one_in(3) {
            self.changes.push(BodyChange::SetLimit { tokens: 77 });
            self.shrinks = false;
        }
        if dialect == Dialect::Messages && dice.one_in(4) {
            let note = Message::system("a note").with_kind(trimtab_model::MessageKind::Summary);
            self.append_system(scan, "a note");
            let message = Arc::new(note);
            self.changes.push(BodyChange::Insert { before: 0, message });
            self.shrinks = false;
        }
    }

    fn append_system(&mut self, scan: &BodyScan<'_>, note: &str) {
        let own_field = !scan.request().system.is_empty();
        let speaks =
            scan.role(0) == Some(Role::System) && (own_field || scan.dialect() == Dialect::Chat);
        let first = self.messages.first_mut().and_then(Option::as_mut);
        match first.filter(|_| speaks) {
            None => self.inserted[0].insert(0, Message::system(note)),
            Some(system) => match system.parts.as_mut_slice() {
                [Part::Text(text)] if !system.meta.content_list && text.extra.is_empty() => {
                    text.text = format!("{}\n\n{note}", text.text);
                }
                _ => system.parts.push(Part::text(note)),
            },
        }
    }
}
