//! Conversations as an attacker would write them.

use trimtab::model::{Call, Message, Output, Part, Role};

/// A shape: its name, and a conversation of it with so many parts.
pub(super) type NamedShape = (&'static str, fn(usize) -> Vec<Message>);

pub(super) const SHAPES: [NamedShape; 17] = [
    ("one id many times in one message", one_id_in_one_message),
    ("one id many times, no outputs", one_id_without_outputs),
    ("one id in many messages", one_id_in_many_messages),
    ("many rounds", many_rounds),
    ("many small messages", small_messages),
    ("many outputs for one call", duplicate_outputs),
    ("outputs before their calls", outputs_first),
    ("outputs far behind their calls", late_outputs),
    ("equal long outputs", equal_outputs),
    ("equal system messages", equal_systems),
    ("different system messages", different_systems),
    ("one long line", long_line),
    ("one long line of the user", long_user_line),
    ("many lines", many_lines),
    ("deep JSON", deep_json),
    ("outputs and texts in turn", outputs_and_texts),
    ("many thoughts", many_thoughts),
];

const TEXT: &str = "lorem ipsum dolor sit amet, consectetur ";

fn call(id: impl Into<String>) -> Call {
    Call::new(id, "read", r#"{"path":"src/main.rs"}"#)
}

fn calls(ids: impl IntoIterator<Item = String>) -> Message {
    ids.into_iter().fold(Message::assistant(""), |message, id| {
        message.with_call(call(id))
    })
}

fn outputs(ids: impl IntoIterator<Item = String>) -> Message {
    let output = |id| Part::Output(Output::new(id, TEXT));
    Message::new(Role::Tool, ids.into_iter().map(output).collect())
}

fn same(size: usize) -> impl Iterator<Item = String> {
    (0..size).map(|_| "x".to_owned())
}

fn numbered(size: usize) -> impl Iterator<Item = String> {
    (0..size).map(|at| format!("c{at}"))
}

/// A conversation that begins and ends with the user.
fn between(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut all = vec![Message::user("go")];
    all.extend(messages);
    all.push(Message::user("go on"));
    all
}

fn one_id_in_one_message(size: usize) -> Vec<Message> {
    between([calls(same(size)), outputs(same(size))])
}

fn one_id_without_outputs(size: usize) -> Vec<Message> {
    between([calls(same(size))])
}

fn one_id_in_many_messages(size: usize) -> Vec<Message> {
    between((0..size).flat_map(|_| [calls(same(1)), outputs(same(1))]))
}

fn many_rounds(size: usize) -> Vec<Message> {
    let round = |id: String| {
        [
            calls([id.clone()]),
            Message::output(id.clone(), TEXT.repeat(8) + &id),
        ]
    };
    between(numbered(size).flat_map(round))
}

fn small_messages(size: usize) -> Vec<Message> {
    let turn = |at| {
        [
            Message::user(format!("q{at}")),
            Message::assistant(format!("a{at}")),
        ]
    };
    between((0..size).flat_map(turn))
}

fn duplicate_outputs(size: usize) -> Vec<Message> {
    let again = (0..size).map(|at| Message::output("x", format!("{TEXT}{at}")));
    between([calls(same(1))].into_iter().chain(again))
}

fn outputs_first(size: usize) -> Vec<Message> {
    let outputs = numbered(size).map(|id| Message::output(id, TEXT));
    between(outputs.chain([calls(numbered(size))]))
}

fn late_outputs(size: usize) -> Vec<Message> {
    let asks = numbered(size).map(|id| calls([id]));
    let mut outputs: Vec<Message> = numbered(size).map(|id| Message::output(id, TEXT)).collect();
    outputs.reverse();
    between(asks.chain(outputs))
}

fn equal_outputs(size: usize) -> Vec<Message> {
    let text = TEXT.repeat(60);
    let round = |id: String| [calls([id.clone()]), Message::output(id, text.clone())];
    between(numbered(size).flat_map(round))
}

fn equal_systems(size: usize) -> Vec<Message> {
    let turn = |at| {
        [
            Message::user(format!("q{at}")),
            Message::system(TEXT.repeat(20)),
        ]
    };
    between((0..size).flat_map(turn))
}

fn different_systems(size: usize) -> Vec<Message> {
    let turn = |at: usize| {
        let text = TEXT.repeat(20) + &at.to_string();
        [Message::user(format!("q{at}")), Message::system(text)]
    };
    between((0..size).flat_map(turn))
}

fn long_line(size: usize) -> Vec<Message> {
    let line = "no error here, 0 errors, error_name ok 5 GB ".repeat(size * 4);
    between([calls(same(1)), Message::output("x", line)])
}

fn long_user_line(size: usize) -> Vec<Message> {
    let line = r"no error, 0 errors C:\a\C:\b a://b?a://b 17 GB must ";
    between([
        Message::user(line.repeat(size * 4)),
        Message::assistant("ok"),
    ])
}

fn many_lines(size: usize) -> Vec<Message> {
    let lines = (0..size * 4)
        .map(|at| format!("{at} no error, error: {at} failed\n  at frame {at}\n"))
        .collect::<Vec<_>>()
        .concat();
    between([calls(same(1)), Message::output("x", lines)])
}

fn deep_json(size: usize) -> Vec<Message> {
    let text = "[".repeat(size * 8) + &"]".repeat(size * 8);
    // Some dialects carry arguments as JSON: a body that is too deep is not read at all.
    let arguments = serde_json::json!({ "text": text }).to_string();
    let asks = Message::assistant("").with_call(Call::new("x", "read", arguments));
    between([asks, Message::output("x", text)])
}

fn outputs_and_texts(size: usize) -> Vec<Message> {
    let answers = numbered(size).flat_map(|id| [Message::output(id, TEXT), Message::user("t")]);
    between([calls(numbered(size))].into_iter().chain(answers))
}

fn many_thoughts(size: usize) -> Vec<Message> {
    let thoughts = (0..size).map(|_| Part::reasoning(TEXT));
    let blank = (0..size).map(|_| Part::text(" "));
    let parts = [Part::text("said")]
        .into_iter()
        .chain(thoughts)
        .chain(blank);
    between([Message::new(Role::Assistant, parts.collect())])
}
