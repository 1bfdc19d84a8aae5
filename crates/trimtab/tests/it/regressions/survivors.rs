//! What has to survive, and what must not.

use std::sync::Arc;

use trimtab::engine::verify::verify;
use trimtab::model::{Dialect, Media, MediaKind, Message, Part, RawJson, Role};
use trimtab::session::{Limits, Moment};

use super::{admit, by_hand, common, finished, limits, managed, open, round, setup, texts};
use crate::common::messages;

#[test]
fn one_giant_turn_is_compacted_inside_and_no_round_is_split() {
    for preset in managed() {
        let mut session = open(preset, 8_000);
        admit(&mut session, Message::user("the one and only question"));
        for number in 0..40 {
            round(&mut session, number, &format!("row {number}\n").repeat(100));
            if let Some(pending) = session.check(Moment::BeforeCall).unwrap() {
                finished(&mut session, pending, "<summary>rows</summary>");
            }
            session.ready().unwrap();
            let messages = messages(&mut session);
            assert!(verify(&messages, Dialect::Messages).is_empty(), "{preset}");
            let asked = |message: &Arc<Message>| message.text().contains("one and only question");
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
            admit(&mut session, Message::user(format!("question {number}")));
            round(&mut session, number, &"text\n".repeat(400));
            admit(&mut session, Message::assistant("answered"));
        }
        admit(&mut session, Message::user("the newest question"));
        let pending = by_hand(&mut session);
        assert!(
            finished(&mut session, pending, "<summary>SUM</summary>"),
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
fn old_images_leave_by_bytes_and_come_back_by_their_ref() {
    let bytes = Some(300_000);
    let limits = limits(200_000, 500);
    let mut session = common::open(setup("steady", Limits { bytes, ..limits }));
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
        admit(&mut session, Message::new(Role::User, parts));
        admit(&mut session, Message::assistant("seen"));
    }
    admit(&mut session, Message::user("well?"));
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
fn instructions_that_come_again_are_told_once() {
    let rules = "Always answer in verse. ".repeat(200);
    for preset in managed() {
        let mut session = open(preset, 8_000);
        for number in 0..12 {
            admit(&mut session, Message::system(&rules));
            admit(&mut session, Message::user(format!("question {number}")));
            session.ready().unwrap();
            let window = session.window().unwrap();
            let told = window.messages().filter(|message| message.text() == rules);
            assert_eq!(told.count(), 1, "{preset}");
            admit(&mut session, Message::assistant("a verse"));
        }
    }
    let mut all = open("none", 8_000);
    for _ in 0..3 {
        admit(&mut all, Message::system(&rules));
        admit(&mut all, Message::user("and?"));
    }
    assert_eq!(all.window().unwrap().messages().len(), 6);
}
