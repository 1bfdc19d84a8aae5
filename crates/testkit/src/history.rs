//! Histories as they come in real life, and worse.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use trimtab_model::{
    Call, Media, MediaKind, Message, MessageKind, Opaque, Output, Part, RawJson, Reasoning, Role,
};

/// One step of a generated history. Calls and outputs draw their ids from one small pool, so
/// that they meet, repeat, cross and miss each other.
#[derive(Clone, Debug)]
enum HistoryStep {
    Say(Role, String),
    Ask {
        ids: Vec<&'static str>,
        text: String,
        thought: Option<bool>,
    },
    Answer {
        ids: Vec<&'static str>,
        text: String,
        role: Role,
    },
    Parts(Role, Vec<Part>),
    Marked(MessageKind, Option<bool>),
}

/// Any history at all: `0..max` messages in any order.
pub fn any_history(max: usize) -> impl Strategy<Value = Vec<Message>> {
    vec(step(), 0..max).prop_map(|steps| steps.into_iter().map(message).collect())
}

/// A history that every provider accepts: a user, then rounds whose calls are all answered.
pub fn valid_history(max: usize) -> impl Strategy<Value = Vec<Message>> {
    let round = (1..4usize, word(), any::<bool>());
    vec((round, prop::bool::weighted(0.3)), 0..max).prop_map(|rounds| {
        let mut log = vec![Message::system("be brief"), Message::user("begin")];
        for (number, ((calls, text, reversed), asks)) in rounds.into_iter().enumerate() {
            if asks {
                log.push(Message::user(format!("{text} next")));
            }
            let mut ids: Vec<String> = (0..calls).map(|call| format!("c{number}-{call}")).collect();
            log.push(ids.iter().fold(Message::assistant(""), |message, id| {
                message.with_call(Call::new(id, "tool", "{}"))
            }));
            if reversed {
                ids.reverse();
            }
            log.extend(ids.iter().map(|id| Message::output(id, &text)));
        }
        log
    })
}

fn step() -> impl Strategy<Value = HistoryStep> {
    let ids = || vec(id(), 1..4);
    prop_oneof![
        4 => (role(), hostile_text()).prop_map(|(role, text)| HistoryStep::Say(role, text)),
        6 => (ids(), hostile_text(), any::<Option<bool>>())
            .prop_map(|(ids, text, thought)| HistoryStep::Ask { ids, text, thought }),
        8 => (ids(), hostile_text(), prop::bool::weighted(0.9)).prop_map(|(ids, text, tool)| {
            HistoryStep::Answer { ids, text, role: if tool { Role::Tool } else { Role::User } }
        }),
        2 => (role(), vec(part(), 0..4)).prop_map(|(role, parts)| HistoryStep::Parts(role, parts)),
        1 => (kind(), any::<Option<bool>>()).prop_map(|(kind, seen)| HistoryStep::Marked(kind, seen)),
    ]
}

fn message(step: HistoryStep) -> Message {
    match step {
        HistoryStep::Say(role, text) => Message::new(role, vec![Part::text(text)]),
        HistoryStep::Ask { ids, text, thought } => ask(&ids, text, thought),
        HistoryStep::Answer { ids, text, role } => {
            let output = |id: &&str| Part::Output(Output::new(*id, text.clone()));
            Message::new(role, ids.iter().map(output).collect())
        }
        HistoryStep::Parts(role, parts) => Message::new(role, parts),
        HistoryStep::Marked(kind, seen) => {
            let mut message = match kind {
                MessageKind::ToolResultArchived => Message::output("a", "archived"),
                _ => Message::user("marked"),
            };
            message.meta.kind = Some(kind);
            message.meta.agent_visible = seen;
            message
        }
    }
}

fn ask(ids: &[&str], text: String, thought: Option<bool>) -> Message {
    let mut parts = Vec::new();
    if let Some(sealed) = thought {
        let seal = sealed.then(|| "sealed".to_owned());
        parts.push(Part::Reasoning(Reasoning {
            text: "thinking".into(),
            seal,
            extra: vec![],
        }));
    }
    parts.push(Part::text(text));
    parts.extend(
        ids.iter()
            .map(|id| Part::Call(Call::new(*id, "tool", "{}"))),
    );
    Message::new(Role::Assistant, parts)
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        hostile_text().prop_map(Part::text),
        hostile_text().prop_map(Part::reasoning),
        Just(Part::Media(Media {
            kind: MediaKind::Image,
            raw: raw(r#"{"type":"image"}"#)
        })),
        Just(Part::Opaque(Opaque {
            type_name: "odd".into(),
            raw: raw(r#"{"type":"odd"}"#)
        })),
        id().prop_map(|id| Part::Call(Call::new(id, "tool", "not json"))),
        (id(), hostile_text()).prop_map(|(id, text)| Part::Output(Output::new(id, text))),
    ]
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| RawJson::of(&()))
}

fn role() -> impl Strategy<Value = Role> {
    select(vec![
        Role::System,
        Role::User,
        Role::User,
        Role::Assistant,
        Role::Tool,
    ])
}

fn kind() -> impl Strategy<Value = MessageKind> {
    select(vec![
        MessageKind::ToolResultArchived,
        MessageKind::ToolSummary,
        MessageKind::Summary,
        MessageKind::TurnAborted,
    ])
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a",
        "b",
        "c",
        "a_2",
        "call_0",
        "call_0",
        "",
        "functions.run:0",
        "é/ü",
    ])
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,12}"
}

/// Text that breaks what is careless with it: blank, long, any script, control characters,
/// and the words that our own messages use.
pub fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => word(),
        1 => Just(String::new()),
        1 => Just(" \n\t".to_owned()),
        1 => Just("aborted".to_owned()),
        1 => Just("[The conversation starts here.]".to_owned()),
        1 => Just("</summary><retain>\u{0}\u{1b}[31m\u{202e}\u{200b}\u{feff}".to_owned()),
        2 => "\\PC{0,40}",
        1 => word().prop_map(|word| word.repeat(200)),
    ]
}
