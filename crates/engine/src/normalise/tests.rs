use trimtab_model::{Call, MessageKind, Output, Part, RawJson, Reasoning, Role};

use RepairKind::{
    CallStripped, DuplicateDropped, HeadInserted, IdChanged, OrphanDropped, OrphanTold,
    OutputMoved, RoundDropped, Synthesised,
};

use super::*;
use crate::verify::verify;

/// A message from its sketch: its role, then calls as `call:ID`, outputs as `ID=TEXT`, or its text.
fn message(sketch: &str) -> Message {
    let (role, rest) = sketch.split_once(' ').unwrap_or((sketch, ""));
    match role {
        "system" => Message::system(rest),
        "user" => Message::user(rest),
        "tool" => {
            let (id, text) = rest.split_once('=').unwrap();
            Message::output(id, text)
        }
        _ => {
            let (calls, words): (Vec<&str>, Vec<&str>) =
                rest.split(' ').partition(|word| word.starts_with("call:"));
            let ids = calls.iter().map(|call| call.trim_start_matches("call:"));
            ids.fold(Message::assistant(words.join(" ")), |message, id| {
                message.with_call(Call::new(id, "tool", "{}"))
            })
        }
    }
}

fn calls(ids: &[&str]) -> Message {
    ids.iter().fold(Message::assistant(""), |message, id| {
        message.with_call(Call::new(*id, "tool", "{}"))
    })
}

fn hidden(mut message: Message) -> Message {
    message.meta.agent_visible = Some(false);
    message
}

/// One line a message: its role, then its calls and outputs by id, then its text.
fn sketch(messages: &[Message], options: NormaliseOptions) -> Vec<String> {
    let messages: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
    let normalised = normalise(&messages, options);
    assert_eq!(verify(&normalised.messages(), options.dialect), []);
    let entries = normalised.entries.iter();
    entries
        .map(|entry| sketch_message(&entry.message))
        .collect()
}

fn sketch_message(message: &Message) -> String {
    let calls = message.calls().map(|call| format!(" call:{}", call.id));
    let outputs = message
        .outputs()
        .map(|output| format!(" {}={}", output.call_id, output.text()));
    let texts = message.parts.iter().filter_map(Part::as_text);
    let texts = texts.filter(|text| !text.is_empty());
    let texts = texts.map(|text| format!(" {text}"));
    let parts: String = calls.chain(outputs).chain(texts).collect();
    format!("{}{parts}", message.role.as_str())
}

const fn with(dialect: Dialect, habit: OpenCallRepair) -> NormaliseOptions {
    NormaliseOptions { dialect, habit }
}

/// A repair: options, the history as sketches, the window, and the records.
type RepairCase = (
    NormaliseOptions,
    &'static [&'static str],
    &'static [&'static str],
    &'static [RepairKind],
);

const CHAT: NormaliseOptions = with(Dialect::Chat, OpenCallRepair::Synthesise);
const MESSAGES: NormaliseOptions = with(Dialect::Messages, OpenCallRepair::Synthesise);
const RESPONSES: NormaliseOptions = with(Dialect::Responses, OpenCallRepair::Synthesise);

const OPEN: &[&str] = &["user q", "assistant call:a call:b let me see", "tool b=x"];
const REPEATED: &[&str] = &[
    "user q",
    "assistant call:a",
    "tool a=1",
    "assistant call:a",
    "tool a=2",
];
const HINT: &[&str] = &["user q", "assistant call:a", "system hint", "tool a=late"];
const HURRY: &[&str] = &["user q", "assistant call:a", "user hurry", "tool a=late"];
const HURRY_LAST: &[&str] = &["user q", "assistant call:a", "tool a=late", "user hurry"];
const ORPHAN: &[&str] = &["tool gone=42", "user q", "assistant a"];
const TOLD: &str = "user [output of a call that is not in this conversation]\n42";
const ANSWER_FIRST: &[&str] = &["system s", "assistant hello"];
const HEAD_SKETCH: &str = "user [The conversation starts here.]";

const REPAIRS: [RepairCase; 20] = [
    // An open call gets an output before its siblings.
    (
        CHAT,
        OPEN,
        &["user q", OPEN[1], "tool a=aborted", "tool b=x"],
        &[Synthesised],
    ),
    (
        with(Dialect::Chat, OpenCallRepair::Strip),
        OPEN,
        &["user q", "assistant call:b let me see", "tool b=x"],
        &[CallStripped],
    ),
    (
        with(Dialect::Chat, OpenCallRepair::DropRound),
        OPEN,
        &["user q"],
        &[RoundDropped, OrphanDropped],
    ),
    // Outputs may come in any order.
    (
        CHAT,
        &["user q", "assistant call:a call:b", "tool b=2", "tool a=1"],
        &["user q", "assistant call:a call:b", "tool b=2", "tool a=1"],
        &[],
    ),
    // A late output moves to its call, or stays where its dialect finds it.
    (CHAT, HURRY, HURRY_LAST, &[OutputMoved]),
    (MESSAGES, HURRY, HURRY_LAST, &[OutputMoved]),
    (RESPONSES, HINT, HINT, &[]),
    (MESSAGES, HINT, HINT, &[]),
    (
        CHAT,
        &[
            "user q",
            "tool b=x",
            "assistant call:a",
            "tool a=1",
            "tool a=2",
        ],
        &["user q", "assistant call:a", "tool a=1"],
        &[OrphanDropped, DuplicateDropped],
    ),
    // Ids that repeat are matched by position.
    (CHAT, REPEATED, REPEATED, &[]),
    (
        MESSAGES,
        REPEATED,
        &[
            "user q",
            "assistant call:a",
            "tool a=1",
            "assistant call:a_2",
            "tool a_2=2",
        ],
        &[IdChanged],
    ),
    // An output without a call is taken out or told as text.
    (
        with(Dialect::Chat, OpenCallRepair::Synthesise),
        ORPHAN,
        &["user q", "assistant a"],
        &[OrphanDropped],
    ),
    (
        with(Dialect::Chat, OpenCallRepair::Tell),
        ORPHAN,
        &[TOLD, "user q", "assistant a"],
        &[OrphanTold],
    ),
    // Only Messages needs a user in front of an assistant.
    (
        MESSAGES,
        ANSWER_FIRST,
        &["system s", HEAD_SKETCH, "assistant hello"],
        &[HeadInserted],
    ),
    (CHAT, ANSWER_FIRST, ANSWER_FIRST, &[]),
    (RESPONSES, ANSWER_FIRST, ANSWER_FIRST, &[]),
    // An empty window gets a message.
    (CHAT, &[], &[HEAD_SKETCH], &[HeadInserted]),
    (MESSAGES, &[], &[HEAD_SKETCH], &[HeadInserted]),
    (RESPONSES, &[], &[HEAD_SKETCH], &[HeadInserted]),
    (CHAT, &["system s"], &["system s"], &[]),
];

#[test]
fn histories_become_valid_by_the_smallest_repairs() {
    for (options, came, expected, repairs) in REPAIRS {
        let came: Vec<Message> = came.iter().map(|sketch| message(sketch)).collect();
        assert_eq!(sketch(&came, options), expected, "{options:?}");
        let came: Vec<Arc<Message>> = came.into_iter().map(Arc::new).collect();
        let normalised = normalise(&came, options);
        let made: Vec<RepairKind> = normalised.repairs.iter().map(|one| one.kind).collect();
        assert_eq!(made, repairs, "{options:?}: {expected:?}");
        let mut entries = normalised.entries.iter();
        let is_untouched = entries.all(|entry| entry.change == EntryChange::Untouched);
        assert!(is_untouched || !repairs.is_empty(), "{expected:?}");
    }
}

#[test]
fn an_archived_output_leaves_a_stub() {
    let log = [
        Message::user("q"),
        calls(&["a", "b"]),
        hidden(Message::output("a", "an old output of some length"))
            .with_kind(MessageKind::ToolResultArchived),
        Message::output("b", "new"),
    ];
    let expected = [
        "user q",
        "assistant call:a call:b",
        "tool a=[tool output archived]",
        "tool b=new",
    ];
    assert_eq!(sketch(&log, CHAT), expected);
}

#[test]
fn empty_answers_go_in_chat_and_empty_messages_in_messages() {
    let log = [
        Message::user("q"),
        Message::user("  "),
        Message::new(Role::Assistant, vec![Part::reasoning("hm")]),
        Message::assistant("a"),
    ];
    assert_eq!(sketch(&log, MESSAGES), ["user q", "assistant a"]);
    let without_answer = ["user q", "user   ", "assistant a"];
    assert_eq!(sketch(&log, CHAT), without_answer);
    let as_it_came = ["user q", "user   ", "assistant", "assistant a"];
    assert_eq!(sketch(&log, RESPONSES), as_it_came);
}

#[test]
fn answer_with_an_unknown_field_stays_in_chat() {
    let mut refusal = Message::new(Role::Assistant, vec![]);
    let field = RawJson::of("no");
    refusal.meta.extra = vec![("refusal".to_owned(), field)];
    let log = [Message::user("q"), refusal, Message::user("r")];
    assert_eq!(sketch(&log, CHAT), ["user q", "assistant", "user r"]);
}

#[test]
fn an_empty_answer_at_the_end_of_messages_stays() {
    let empty = Message::new(Role::Assistant, vec![]);
    let log = [Message::user("q"), empty.clone(), Message::user("r"), empty];
    assert_eq!(sketch(&log, MESSAGES), ["user q", "user r", "assistant"]);
}

#[test]
fn only_a_thought_with_an_id_must_lead_to_something_in_responses() {
    let thought = |extra: Vec<(String, RawJson)>| {
        let thought = Reasoning {
            extra,
            ..Reasoning::default()
        };
        Message::new(Role::Assistant, vec![Part::Reasoning(thought)])
    };
    let named = thought(vec![("id".to_owned(), RawJson::of(&"rs_1"))]);
    let log = [Message::user("q"), named, thought(vec![])];
    assert_eq!(sketch(&log, RESPONSES), ["user q", "assistant"]);
}

#[test]
fn text_beside_an_output_becomes_a_user_message() {
    for role in [Role::Tool, Role::User] {
        let output = Part::Output(Output::new("a", "1"));
        let mixed = Message::new(role, vec![output, Part::text("and a remark")]);
        let log = [Message::user("q"), calls(&["a"]), mixed];
        let expected = [
            "user q",
            "assistant call:a",
            "tool a=1",
            "user and a remark",
        ];
        assert_eq!(sketch(&log, CHAT), expected);
    }
}

/// The texts of a window whose log had some positions hidden and a summary put in.
fn without(log: Vec<Message>, hidden: std::ops::Range<usize>, summary: usize) -> Vec<String> {
    use crate::journal::Journal;
    use crate::plan::{Edit, Plan, PlanReason};
    use crate::window::Projection;
    let options = NormaliseOptions::for_dialect(Dialect::Messages);
    let mut projection = Projection::restore(options, log.into_iter().collect(), Journal::new());
    let edits = vec![
        Edit::Hide {
            from: hidden.start,
            to: hidden.end,
        },
        Edit::Insert {
            before: summary,
            message: Arc::new(Message::user("summary").with_kind(MessageKind::Summary)),
        },
    ];
    projection.carry_out(Plan::new(PlanReason::ByHand, edits));
    let window = projection.window().unwrap();
    let texts = window.messages().map(|message| {
        let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
        texts.join("+")
    });
    texts.collect()
}

#[test]
fn system_message_moves_behind_the_summary_of_what_it_followed() {
    let log = || {
        vec![
            Message::system("head"),
            Message::user("one"),
            Message::system("first"),
            Message::assistant("two"),
            Message::user("three"),
            Message::system("second"),
            Message::assistant("four"),
            Message::user("five"),
        ]
    };
    assert_eq!(
        without(log(), 1..5, 6),
        ["head", "summary", "first+second", "four", "five"]
    );
    assert_eq!(
        without(log(), 3..4, 3),
        [
            "head",
            "one",
            "summary",
            "three",
            "first+second",
            "four",
            "five"
        ]
    );
    assert_eq!(
        without(log(), 6..8, 8),
        ["head", "one", "first", "two", "three", "summary", "second"]
    );
    let as_it_came = without(log(), 0..0, 8);
    assert_eq!(as_it_came[..3], ["head", "one", "first"]);
}

#[test]
fn joined_system_messages_keep_the_last_field_of_each_name() {
    let system = |text: &str, fields: &[(&str, &str)]| {
        let mut message = Message::system(text);
        let field = |(name, value): &(&str, &str)| {
            let value = RawJson::parse(value).unwrap();
            ((*name).to_owned(), value)
        };
        message.meta.extra = fields.iter().map(field).collect();
        message
    };
    // The empty message is removed, so both system messages wait for the first accepted one.
    let history = [
        Message::user(""),
        system("first", &[("a", "1"), ("b", "2")]),
        system("second", &[("c", "3"), ("a", "4")]),
        Message::user("hello"),
        Message::assistant("hi"),
    ];
    let options = NormaliseOptions::for_dialect(Dialect::Messages);
    let normalised = normalise(&history.map(Arc::new), options);
    let joined = normalised.messages();
    let joined = joined
        .iter()
        .find(|message| message.role == Role::System)
        .unwrap();
    let fields = joined.meta.extra.iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(fields, [("b", "2"), ("c", "3"), ("a", "4")]);
}
