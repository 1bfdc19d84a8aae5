use trimtab_model::{Call, MessageKind, Output, Part, RawJson, Reasoning, Role};

use super::*;
use crate::verify::verify;

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
    normalised
        .entries
        .iter()
        .map(|entry| sketch_message(&entry.message))
        .collect()
}

fn sketch_message(message: &Message) -> String {
    let calls = message.calls().map(|call| format!(" call:{}", call.id));
    let outputs = message
        .outputs()
        .map(|output| format!(" {}={}", output.call_id, output.text()));
    let text = message
        .parts
        .iter()
        .filter_map(Part::as_text)
        .map(|text| format!(" {text}"));
    let parts: String = calls.chain(outputs).chain(text).collect();
    format!("{}{parts}", message.role.as_str())
}

fn chat() -> NormaliseOptions {
    NormaliseOptions::for_dialect(Dialect::Chat)
}

fn messages() -> NormaliseOptions {
    NormaliseOptions::for_dialect(Dialect::Messages)
}

fn responses() -> NormaliseOptions {
    NormaliseOptions::for_dialect(Dialect::Responses)
}

#[test]
fn an_open_call_gets_an_aborted_output_before_its_siblings() {
    let log = [
        Message::user("q"),
        calls(&["a", "b"]),
        Message::output("b", "done"),
    ];
    let expected = [
        "user q",
        "assistant call:a call:b",
        "tool a=aborted",
        "tool b=done",
    ];
    assert_eq!(sketch(&log, chat()), expected);
}

#[test]
fn outputs_in_completion_order_stay_as_they_are() {
    let log = [
        Message::user("q"),
        calls(&["a", "b"]),
        Message::output("b", "2"),
        Message::output("a", "1"),
    ];
    let normalised = normalise(&log.map(Arc::new), chat());
    assert!(normalised.repairs.is_empty());
    assert!(
        normalised
            .entries
            .iter()
            .all(|entry| entry.change == EntryChange::Untouched)
    );
}

#[test]
fn a_late_output_moves_to_its_call_and_what_came_between_follows() {
    let log = [
        Message::user("q"),
        calls(&["a"]),
        Message::user("hurry"),
        Message::output("a", "late"),
    ];
    let expected = ["user q", "assistant call:a", "tool a=late", "user hurry"];
    assert_eq!(sketch(&log, chat()), expected);
}

#[test]
fn a_late_output_stays_where_its_dialect_finds_it() {
    let log = |between: Message| {
        [
            Message::user("q"),
            calls(&["a"]),
            between,
            Message::output("a", "late"),
        ]
    };
    let as_it_came = ["user q", "assistant call:a", "system hint", "tool a=late"];
    let hint = log(Message::system("hint"));
    assert_eq!(sketch(&hint, responses()), as_it_came);
    assert_eq!(sketch(&hint, messages()), as_it_came);
    let moved = ["user q", "assistant call:a", "tool a=late", "user hurry"];
    assert_eq!(sketch(&log(Message::user("hurry")), messages()), moved);
}

#[test]
fn orphans_and_duplicates_are_taken_out_with_a_record() {
    let log = [
        Message::user("q"),
        Message::output("nobody", "x"),
        calls(&["a"]),
        Message::output("a", "1"),
        Message::output("a", "2"),
    ];
    let normalised = normalise(&log.map(Arc::new), chat());
    let kinds: Vec<&RepairKind> = normalised
        .repairs
        .iter()
        .map(|repair| &repair.kind)
        .collect();
    let expected = [&RepairKind::OrphanDropped, &RepairKind::DuplicateDropped];
    assert_eq!(kinds, expected);
}

#[test]
fn ids_that_repeat_across_rounds_are_matched_by_position() {
    let log = [
        Message::user("q"),
        calls(&["call_0"]),
        Message::output("call_0", "1"),
        calls(&["call_0"]),
        Message::output("call_0", "2"),
    ];
    let as_it_came = [
        "user q",
        "assistant call:call_0",
        "tool call_0=1",
        "assistant call:call_0",
        "tool call_0=2",
    ];
    assert_eq!(sketch(&log, chat()), as_it_came);
    let unique = [
        "user q",
        "assistant call:call_0",
        "tool call_0=1",
        "assistant call:call_0_2",
        "tool call_0_2=2",
    ];
    assert_eq!(
        sketch(&log, NormaliseOptions::for_dialect(Dialect::Messages)),
        unique
    );
}

#[test]
fn the_three_habits_differ_on_an_open_call() {
    let talk = Message::assistant("let me see").with_call(Call::new("a", "tool", "{}"));
    let log = [
        Message::user("q"),
        talk.with_call(Call::new("b", "tool", "{}")),
        Message::output("b", "x"),
    ];
    let with = |habit| sketch(&log, NormaliseOptions { habit, ..chat() });
    let stripped = ["user q", "assistant call:b let me see", "tool b=x"];
    assert_eq!(with(OpenCallRepair::Strip), stripped);
    assert_eq!(with(OpenCallRepair::DropRound), ["user q"]);
}

#[test]
fn output_without_a_call_is_taken_out_or_told_as_text() {
    let log = [
        Message::output("gone", "42"),
        Message::user("q"),
        Message::assistant("a"),
    ];
    let with = |habit| sketch(&log, NormaliseOptions { habit, ..chat() });
    assert_eq!(with(OpenCallRepair::Synthesise), ["user q", "assistant a"]);
    let told = format!("user {WITHOUT_CALL}42");
    assert_eq!(
        with(OpenCallRepair::Tell),
        [told.as_str(), "user q", "assistant a"]
    );
}

#[test]
fn only_messages_gets_a_user_in_front_of_an_assistant() {
    let log = [Message::system("s"), Message::assistant("hello")];
    let expected = [
        "system s",
        "user [The conversation starts here.]",
        "assistant hello",
    ];
    assert_eq!(sketch(&log, messages()), expected);
    let as_it_came = ["system s", "assistant hello"];
    assert_eq!(sketch(&log, chat()), as_it_came);
    assert_eq!(sketch(&log, responses()), as_it_came);
}

#[test]
fn an_empty_window_gets_a_message() {
    for options in [chat(), messages(), responses()] {
        let made = ["user [The conversation starts here.]"];
        assert_eq!(sketch(&[], options), made);
    }
    assert_eq!(sketch(&[Message::system("s")], chat()), ["system s"]);
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
    assert_eq!(sketch(&log, chat()), expected);
}

#[test]
fn empty_answers_go_in_chat_and_empty_messages_in_messages() {
    let log = [
        Message::user("q"),
        Message::user("  "),
        Message::new(Role::Assistant, vec![Part::reasoning("hm")]),
        Message::assistant("a"),
    ];
    assert_eq!(sketch(&log, messages()), ["user q", "assistant a"]);
    let without_answer = ["user q", "user   ", "assistant a"];
    assert_eq!(sketch(&log, chat()), without_answer);
    let as_it_came = ["user q", "user   ", "assistant", "assistant a"];
    assert_eq!(sketch(&log, responses()), as_it_came);
}

#[test]
fn answer_with_an_unknown_field_stays_in_chat() {
    let mut refusal = Message::new(Role::Assistant, vec![]);
    let field = RawJson::of("no");
    refusal.meta.extra = vec![("refusal".to_owned(), field)];
    let log = [Message::user("q"), refusal, Message::user("r")];
    assert_eq!(sketch(&log, chat()), ["user q", "assistant", "user r"]);
}

#[test]
fn an_empty_answer_at_the_end_of_messages_stays() {
    let empty = Message::new(Role::Assistant, vec![]);
    let log = [Message::user("q"), empty.clone(), Message::user("r"), empty];
    assert_eq!(sketch(&log, messages()), ["user q", "user r", "assistant"]);
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
    assert_eq!(sketch(&log, responses()), ["user q", "assistant"]);
}

#[test]
fn text_beside_an_output_in_a_tool_message_becomes_a_user_message() {
    let mixed = Message::new(
        Role::Tool,
        vec![
            Part::Output(Output::new("a", "1")),
            Part::text("and a remark"),
        ],
    );
    let log = [Message::user("q"), calls(&["a"]), mixed];
    let expected = [
        "user q",
        "assistant call:a",
        "tool a=1",
        "user and a remark",
    ];
    assert_eq!(sketch(&log, chat()), expected);
}

#[test]
fn an_output_inside_a_user_message_finds_its_call() {
    let mixed = Message::new(
        Role::User,
        vec![
            Part::Output(Output::new("a", "1")),
            Part::text("next question"),
        ],
    );
    let log = [Message::user("q"), calls(&["a"]), mixed];
    let expected = [
        "user q",
        "assistant call:a",
        "tool a=1",
        "user next question",
    ];
    assert_eq!(sketch(&log, chat()), expected);
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
