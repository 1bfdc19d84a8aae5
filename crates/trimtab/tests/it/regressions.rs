//! What users of other tools complained about, theme by theme: none of it happens here.

use std::sync::Arc;

use trimtab::engine::budget::FloorPart;
use trimtab::engine::compaction::answer::Ending;
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::engine::verify::verify;
use trimtab::model::{
    Call, Dialect, Kind, Media, MediaKind, Message, Part, RawJson, Reasoning, Role, Usage,
};
use trimtab::session::{
    Answered, ByHand, Event, EventKind, Limits, Moment, Pending, Recovered, Session, SessionError,
    Setup,
};
use trimtab::store::{MemoryStore, SessionId, Store};
use trimtab::wire::overflow::{Response, classify};

fn open_with(policy: Policy, limits: Limits) -> Session {
    let setup = Setup {
        dialect: Dialect::Messages,
        limits,
        ..Setup::new(policy)
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    Session::open(store, SessionId::new("s").unwrap(), setup).unwrap()
}

fn open(preset: &str, window: u64) -> Session {
    let limits = Limits {
        window: Some(window),
        max_output: Some(500),
        bytes: None,
    };
    open_with(Policy::preset(preset).unwrap(), limits)
}

fn managed() -> impl Iterator<Item = &'static str> {
    PRESETS
        .iter()
        .filter(|preset| preset.fit())
        .map(|preset| preset.name)
}

fn round(session: &mut Session, number: usize, output: &str) {
    let id = format!("call_{number}");
    let call = Call::new(&id, "bash", format!("{{\"command\":\"step {number}\"}}"));
    session
        .admit(Message::assistant("on it").with_call(call))
        .unwrap();
    session.admit(Message::output(&id, output)).unwrap();
}

fn answered(mut pending: Pending, text: &str) -> (Pending, Vec<Message>) {
    let mut asked = Vec::new();
    while let Some(request) = pending.request() {
        asked.extend(request.messages);
        pending.answer(Answered::Text {
            text: text.to_owned(),
            ending: Ending::Whole,
            usage: None,
        });
    }
    (pending, asked)
}

fn texts(session: &mut Session) -> Vec<String> {
    let window = session.window().unwrap();
    window
        .messages()
        .map(|message| message.text().into_owned())
        .collect()
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).collect()
}

fn usage(prompt: u64) -> Usage {
    Usage {
        input: prompt,
        ..Usage::default()
    }
}

#[test]
fn a_floor_above_the_limit_is_an_error_and_not_a_loop() {
    for preset in managed() {
        let mut session = open(preset, 4_000);
        session
            .admit(Message::system("rules ".repeat(6_000)))
            .unwrap();
        session.admit(Message::user("go")).unwrap();
        for _ in 0..3 {
            assert!(
                session.check(Moment::BeforeCall).unwrap().is_none(),
                "{preset}"
            );
            let error = session.ready().unwrap_err();
            let SessionError::TooLarge(floor) = error else {
                panic!("{preset}: {error}");
            };
            assert_eq!(floor.part, FloorPart::System, "{preset}");
        }
        assert!(
            kinds(&session.events()).is_empty(),
            "{preset}: nothing was tried in vain"
        );
    }
}

#[test]
fn usage_from_before_a_compaction_does_not_start_another() {
    let mut session = open("refs", 10_000);
    session.admit(Message::user("begin")).unwrap();
    for number in 0..6 {
        round(&mut session, number, &"data ".repeat(400));
    }
    session.admit(Message::user("and now this")).unwrap();
    session.ready().unwrap();
    session.record(&usage(9_000)).unwrap();
    session.admit(Message::assistant("done")).unwrap();
    let pending = session.check(Moment::BeforeFinal).unwrap().unwrap();
    assert!(
        session
            .finish(answered(pending, "<summary>s</summary>").0)
            .unwrap()
    );
    for moment in [Moment::AfterAnswer, Moment::BeforeFinal, Moment::AfterTurn] {
        assert!(session.check(moment).unwrap().is_none());
    }
}

#[test]
fn compaction_that_does_not_help_stops_by_itself_and_stays_stopped() {
    let mut policy = Policy::preset("refs").unwrap();
    policy.compaction.thrash.passes = 2;
    let limits = Limits {
        window: Some(10_000),
        max_output: Some(500),
        bytes: None,
    };
    let mut session = open_with(policy, limits);
    session.admit(Message::user("begin")).unwrap();
    let mut number = 0;
    for _ in 0..2 {
        for _ in 0..4 {
            round(&mut session, number, &"data ".repeat(200));
            number += 1;
        }
        session.ready().unwrap();
        session.record(&usage(9_000)).unwrap();
        let pending = session.check(Moment::AfterOutputs).unwrap().unwrap();
        assert!(
            session
                .finish(answered(pending, "<summary>s</summary>").0)
                .unwrap()
        );
        session.ready().unwrap();
        // The provider says that it is as large as before.
        session.record(&usage(8_900)).unwrap();
    }
    assert!(kinds(&session.events()).contains(&EventKind::Suspended));
    round(&mut session, number, &"data ".repeat(200));
    session.ready().unwrap();
    session.record(&usage(9_500)).unwrap();
    assert!(session.check(Moment::AfterOutputs).unwrap().is_none());

    let setup = session.setup().clone();
    let mut again =
        Session::open(Arc::clone(session.store()), session.id().clone(), setup).unwrap();
    again.ready().unwrap();
    again.record(&usage(9_500)).unwrap();
    assert!(
        again.check(Moment::AfterOutputs).unwrap().is_none(),
        "it survives a restart"
    );

    again.admit(Message::user("something new")).unwrap();
    round(&mut again, number + 1, &"data ".repeat(200));
    again.ready().unwrap();
    again.record(&usage(9_500)).unwrap();
    assert!(
        again.check(Moment::AfterOutputs).unwrap().is_some(),
        "something changed"
    );
}

#[test]
fn a_summary_that_is_empty_cut_off_or_a_call_is_not_accepted() {
    let bad = [
        ("", Ending::Whole, "empty"),
        ("<summary>half a", Ending::CutOff, "cut off"),
        ("", Ending::ToolCall, "called a tool"),
    ];
    for (text, ending, why) in bad {
        let mut session = open("refs", 20_000);
        session.admit(Message::user("fix src/main.rs")).unwrap();
        for number in 0..4 {
            round(
                &mut session,
                number,
                &"error: E0308 in src/lib.rs:88\n".repeat(40),
            );
        }
        session.admit(Message::user("go on")).unwrap();
        let mut pending = session.compact(&ByHand::default()).unwrap().unwrap();
        while pending.request().is_some() {
            pending.answer(Answered::Text {
                text: text.to_owned(),
                ending,
                usage: None,
            });
        }
        assert!(session.finish(pending).unwrap());
        let events = session.events();
        let event = events
            .iter()
            .find(|event| event.kind == EventKind::Compacted)
            .unwrap();
        assert!(!event.by_model);
        assert!(
            event.note.as_ref().is_none_or(|note| note.contains(why)),
            "{event:?}"
        );
        let window = texts(&mut session).join("\n");
        assert!(
            window.contains("src/lib.rs:88"),
            "the deterministic summary stands in: {window}"
        );
    }
}

#[test]
fn what_only_the_previous_summary_knows_reaches_the_next_summariser() {
    for preset in managed() {
        let mut session = open(preset, 40_000);
        session.admit(Message::system("be brief")).unwrap();
        session.admit(Message::user("begin")).unwrap();
        for number in 0..8 {
            round(
                &mut session,
                number,
                &format!("line {number}\n").repeat(200),
            );
        }
        session.admit(Message::assistant("so far so good")).unwrap();
        session.admit(Message::user("next")).unwrap();
        let pending = session.compact(&ByHand::default()).unwrap().unwrap();
        let (pending, _) = answered(pending, "<summary>the door code is 4711</summary>");
        assert!(session.finish(pending).unwrap(), "{preset}");
        for number in 8..16 {
            round(
                &mut session,
                number,
                &format!("line {number}\n").repeat(200),
            );
        }
        session
            .admit(Message::assistant("more of the same"))
            .unwrap();
        session.admit(Message::user("and now?")).unwrap();
        let second = session.compact(&ByHand::default()).unwrap().unwrap();
        let (second, asked) = answered(second, "<summary>nothing</summary>");
        let said = |message: &Message| message.text().contains("door code is 4711");
        assert!(
            asked.iter().any(said),
            "{preset}: the summariser was not told"
        );
        assert!(session.finish(second).unwrap(), "{preset}");
        let window = session.window().unwrap();
        let summaries = window
            .messages()
            .filter(|m| m.meta.kind == Some(Kind::Summary));
        assert_eq!(summaries.count(), 1, "{preset}: summaries do not pile up");
    }
}

#[test]
fn one_giant_turn_is_compacted_inside_and_no_round_is_split() {
    for preset in managed() {
        let mut session = open(preset, 8_000);
        session
            .admit(Message::user("the one and only question"))
            .unwrap();
        for number in 0..40 {
            round(&mut session, number, &format!("row {number}\n").repeat(100));
            if let Some(pending) = session.check(Moment::BeforeCall).unwrap() {
                session
                    .finish(answered(pending, "<summary>rows</summary>").0)
                    .unwrap();
            }
            session.ready().unwrap();
            let window = session.window().unwrap();
            let messages: Vec<&Message> = window.messages().map(|m| &**m).collect();
            assert!(verify(&messages, Dialect::Messages).is_empty(), "{preset}");
            let asked = |message: &&Message| message.text().contains("one and only question");
            assert!(
                messages.iter().any(asked),
                "{preset}: the question is gone at {number}"
            );
        }
    }
}

#[test]
fn the_newest_question_survives_behind_the_summary() {
    for preset in managed().filter(|preset| *preset != "checkpoint") {
        let mut session = open(preset, 20_000);
        for number in 0..6 {
            session
                .admit(Message::user(format!("question {number}")))
                .unwrap();
            round(&mut session, number, &"text\n".repeat(400));
            session.admit(Message::assistant("answered")).unwrap();
        }
        session.admit(Message::user("the newest question")).unwrap();
        let pending = session.compact(&ByHand::default()).unwrap().unwrap();
        assert!(
            session
                .finish(answered(pending, "<summary>SUM</summary>").0)
                .unwrap(),
            "{preset}"
        );
        let texts = texts(&mut session);
        let summary = texts.iter().position(|text| text.contains("SUM")).unwrap();
        let question = texts
            .iter()
            .position(|text| text.contains("newest question"))
            .unwrap();
        assert!(summary < question, "{preset}: {texts:?}");
    }
}

#[test]
fn a_window_that_grows_inside_a_turn_is_checked_there() {
    let mut session = open("steady", 8_000);
    session.admit(Message::user("begin")).unwrap();
    for number in 0..30 {
        round(
            &mut session,
            number,
            &format!("value {number}\n").repeat(150),
        );
        if let Some(pending) = session.check(Moment::BeforeCall).unwrap() {
            session.finish(pending).unwrap();
        }
        let ready = session.ready().unwrap();
        assert!(ready.tokens + 500 <= 8_000, "{ready:?} at {number}");
    }
}

#[test]
fn old_images_leave_by_bytes_and_come_back_by_their_ref() {
    let limits = Limits {
        window: Some(200_000),
        max_output: Some(500),
        bytes: Some(300_000),
    };
    let mut session = open_with(Policy::preset("steady").unwrap(), limits);
    let picture = |fill: &str| {
        let raw = format!(
            "{{\"type\":\"image\",\"data\":\"{}\"}}",
            fill.repeat(100_000)
        );
        Part::Media(Media {
            kind: MediaKind::Image,
            raw: RawJson::of(&serde_json::from_str::<serde_json::Value>(&raw).unwrap()),
        })
    };
    for fill in ["a", "b", "c", "d", "e"] {
        let parts = vec![Part::text(format!("look at {fill}")), picture(fill)];
        session.admit(Message::new(Role::User, parts)).unwrap();
        session.admit(Message::assistant("seen")).unwrap();
    }
    session.admit(Message::user("well?")).unwrap();
    session.ready().unwrap();
    let window = session.window().unwrap();
    assert!(window.measures().total().sizes().bytes() <= 300_000);
    let said: Vec<String> = window.messages().map(|m| m.text().into_owned()).collect();
    let gone = said.iter().find(|text| text.contains("look at a")).unwrap();
    let id = gone.split("ref=").nth(1).unwrap().trim_end_matches(']');
    let stored = session.store().get(session.id(), id).unwrap();
    assert!(
        String::from_utf8(stored)
            .unwrap()
            .contains(&"a".repeat(1_000))
    );
    assert!(session.undo().unwrap());
    assert!(session.window().unwrap().measures().total().sizes().bytes() > 400_000);
}

#[test]
fn orphans_and_late_outputs_never_make_a_dead_session() {
    for preset in managed() {
        let mut session = open(preset, 20_000);
        session
            .admit(Message::output("nobody", "asked for this"))
            .unwrap();
        session.admit(Message::user("q")).unwrap();
        let two = Message::assistant("")
            .with_call(Call::new("a", "read", "{}"))
            .with_call(Call::new("b", "read", "{}"));
        session.admit(two).unwrap();
        session.admit(Message::user("never mind")).unwrap();
        session.admit(Message::output("b", "late")).unwrap();
        session.admit(Message::output("b", "twice")).unwrap();
        if let Some(pending) = session.compact(&ByHand::default()).unwrap() {
            session.finish(pending).unwrap();
        }
        session.ready().unwrap();
        let window = session.window().unwrap();
        let messages: Vec<&Message> = window.messages().map(|m| &**m).collect();
        assert!(verify(&messages, Dialect::Messages).is_empty(), "{preset}");
    }
}

#[test]
fn signed_thoughts_do_not_stay_behind_a_changed_prefix() {
    for preset in managed() {
        let mut session = open(preset, 40_000);
        session.admit(Message::user("begin")).unwrap();
        for number in 0..6 {
            let id = format!("call_{number}");
            let thought = Part::Reasoning(Reasoning {
                text: "hm".to_owned(),
                seal: Some(format!("sig{number}")),
                ..Reasoning::default()
            });
            let call = Part::Call(Call::new(&id, "read", "{}"));
            session
                .admit(Message::new(Role::Assistant, vec![thought, call]))
                .unwrap();
            session
                .admit(Message::output(&id, "text ".repeat(300)))
                .unwrap();
        }
        let pending = session.compact(&ByHand::default()).unwrap().unwrap();
        let (pending, asked) = answered(pending, "<summary>short</summary>");
        let sealed = |message: &Message| {
            let parts = message.parts.iter();
            parts
                .into_iter()
                .any(|part| matches!(part, Part::Reasoning(t) if t.is_sealed()))
        };
        assert!(
            !asked.iter().any(sealed),
            "{preset}: none goes to the summariser"
        );
        assert!(session.finish(pending).unwrap(), "{preset}");
        let window = session.window().unwrap();
        assert!(
            !window.messages().any(|message| sealed(message)),
            "{preset}"
        );
    }
}

#[test]
fn an_overflow_error_is_a_measurement() {
    let mut session = open("steady", 200_000);
    session.admit(Message::user("begin")).unwrap();
    for number in 0..30 {
        round(
            &mut session,
            number,
            &format!("item {number}\n").repeat(300),
        );
    }
    session.ready().unwrap();
    let before = session.window().unwrap().measures().total().tokens();
    let body = br#"{"type":"error","error":{"type":"invalid_request_error",
        "message":"prompt is too long: 30000 tokens > 16000 maximum"}}"#;
    let verdict = classify(&Response::new(400, body));
    match session.recover(&verdict).unwrap() {
        Recovered::Retry => {}
        Recovered::Summarise(pending) => {
            session.finish(pending).unwrap();
        }
        Recovered::GiveUp => panic!("there is a lot that can go"),
    }
    let ready = session.ready().unwrap();
    assert_eq!(session.setup().limits.window, Some(16_000));
    assert!(
        ready.tokens <= 16_000 && ready.tokens < before,
        "{ready:?}, {before} before"
    );
}

#[test]
fn recovery_ends_and_hands_on_the_error() {
    for preset in managed() {
        let mut session = open(preset, 200_000);
        session.admit(Message::user("begin")).unwrap();
        for number in 0..10 {
            round(
                &mut session,
                number,
                &format!("item {number}\n").repeat(300),
            );
        }
        let verdict = classify(&Response::new(413, b"Request too large"));
        let mut attempts = 0;
        loop {
            session.ready().unwrap();
            match session.recover(&verdict).unwrap() {
                Recovered::GiveUp => break,
                Recovered::Retry => {}
                Recovered::Summarise(pending) => {
                    session.finish(pending).unwrap();
                }
            }
            attempts += 1;
            assert!(attempts <= 10, "{preset}");
        }
        assert!(attempts <= 3, "{preset}: {attempts}");
    }
}

#[test]
fn switched_off_means_never_by_itself_but_by_hand() {
    for preset in managed() {
        let mut policy = Policy::preset(preset).unwrap();
        policy.compaction.auto = false;
        let limits = Limits {
            window: Some(6_000),
            max_output: Some(500),
            bytes: None,
        };
        let mut session = open_with(policy, limits);
        session.admit(Message::user("begin")).unwrap();
        for number in 0..6 {
            session
                .admit(Message::assistant("well ".repeat(300)))
                .unwrap();
            session
                .admit(Message::user(format!(
                    "question {number} {}",
                    "x ".repeat(300)
                )))
                .unwrap();
        }
        for moment in [Moment::BeforeCall, Moment::AfterTurn, Moment::BeforeFinal] {
            assert!(session.check(moment).unwrap().is_none(), "{preset}");
        }
        let verdict = classify(&Response::new(413, b"Request too large"));
        assert!(
            matches!(session.recover(&verdict).unwrap(), Recovered::GiveUp),
            "{preset}"
        );
        assert!(kinds(&session.events()).is_empty(), "{preset}");
        let pending = session.compact(&ByHand::default()).unwrap().unwrap();
        assert!(session.finish(pending).unwrap(), "{preset}");
    }
}

#[test]
fn an_unknown_window_is_a_typed_error() {
    let mut session = open_with(Policy::preset("refs").unwrap(), Limits::default());
    session.admit(Message::user("q")).unwrap();
    session.ready().unwrap();
    session.record(&usage(100)).unwrap();
    session.admit(Message::assistant("a")).unwrap();
    let error = session.check(Moment::BeforeFinal).unwrap_err();
    assert!(matches!(error, SessionError::WindowUnknown(_)), "{error}");
}

#[test]
fn what_comes_while_a_summary_is_written_is_kept() {
    let mut session = open("turns", 40_000);
    for number in 0..12 {
        session
            .admit(Message::user(format!("question {number}")))
            .unwrap();
        session
            .admit(Message::assistant(format!(
                "answer {number} {}",
                "w ".repeat(200)
            )))
            .unwrap();
    }
    let pending = session.check(Moment::AfterTurn).unwrap().unwrap();
    session.admit(Message::user("typed meanwhile")).unwrap();
    session
        .admit(Message::assistant("answered meanwhile"))
        .unwrap();
    assert!(
        session
            .finish(answered(pending, "<summary>SUM</summary>").0)
            .unwrap()
    );
    let texts = texts(&mut session);
    assert!(texts.iter().any(|text| text == "typed meanwhile"));
    assert!(texts.iter().any(|text| text == "answered meanwhile"));

    let late = session.compact(&ByHand::default()).unwrap().unwrap();
    assert!(session.undo().unwrap());
    assert!(!session.finish(late).unwrap(), "another plan came first");
    assert!(kinds(&session.events()).contains(&EventKind::Stale));
}

#[test]
fn many_compactions_are_warned_of() {
    let mut session = open("refs", 20_000);
    for number in 0..5 {
        session
            .admit(Message::user(format!("question {number}")))
            .unwrap();
        round(&mut session, number, &format!("row {number}\n").repeat(300));
        session.admit(Message::user("and?")).unwrap();
        let pending = session.compact(&ByHand::default()).unwrap().unwrap();
        assert!(
            session
                .finish(answered(pending, "<summary>s</summary>").0)
                .unwrap()
        );
    }
    let events = session.events();
    let warned = events
        .iter()
        .filter(|event| event.kind == EventKind::Warning)
        .count();
    assert_eq!(warned, 2, "after the fourth and the fifth");
}
