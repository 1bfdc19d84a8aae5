//! Summaries that are bad, lost, late or too many.

use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::model::{Message, MessageKind};
use trimtab::session::{Moment, SessionEventKind, SummariserAnswer};

use super::{
    admit, answered, by_hand, finished, kinds, managed, open, round, rounds, texts, usage,
};
use crate::common::opened_again;

#[test]
fn compaction_that_does_not_help_stops_by_itself_and_stays_stopped() {
    let mut session = open("refs", 10_000);
    admit(&mut session, Message::user("begin"));
    let mut number = 0;
    for _ in 0..2 {
        for _ in 0..4 {
            round(&mut session, number, &"data ".repeat(200));
            number += 1;
        }
        session.ready().unwrap();
        session.record(&usage(9_000)).unwrap();
        let pending = session.check(Moment::AfterOutputs).unwrap().unwrap();
        assert!(finished(&mut session, pending, "<summary>s</summary>"));
        session.ready().unwrap();
        // The provider says that it is as large as before.
        session.record(&usage(8_900)).unwrap();
    }
    assert!(kinds(&session.events()).contains(&SessionEventKind::Suspended));
    round(&mut session, number, &"data ".repeat(200));
    session.ready().unwrap();
    session.record(&usage(9_500)).unwrap();
    assert!(session.check(Moment::AfterOutputs).unwrap().is_none());

    let mut again = opened_again(&session);
    again.ready().unwrap();
    again.record(&usage(9_500)).unwrap();
    assert!(
        again.check(Moment::AfterOutputs).unwrap().is_none(),
        "it survives a restart"
    );

    admit(&mut again, Message::user("something new"));
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
        ("", SummaryEnding::Whole, "empty"),
        ("<summary>half a", SummaryEnding::CutOff, "cut off"),
        ("", SummaryEnding::ToolCall, "called a tool"),
    ];
    for (text, ending, why) in bad {
        let mut session = open("checkpoint", 20_000);
        admit(&mut session, Message::user("fix src/main.rs"));
        for number in 0..4 {
            round(
                &mut session,
                number,
                &"error: E0308 in src/lib.rs:88\n".repeat(40),
            );
        }
        admit(&mut session, Message::user("go on"));
        let mut pending = by_hand(&mut session);
        while pending.request().is_some() {
            pending.answer(SummariserAnswer::Text {
                text: text.to_owned(),
                ending,
                usage: None,
            });
        }
        assert!(session.finish(pending).unwrap());
        let events = session.events();
        let event = events
            .iter()
            .find(|event| event.kind == SessionEventKind::Compacted)
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
fn next_summariser_gets_the_previous_summary() {
    for preset in managed() {
        let mut session = open(preset, 40_000);
        admit(&mut session, Message::system("be brief"));
        admit(&mut session, Message::user("begin"));
        rounds(&mut session, 0..8, "line", 200);
        admit(&mut session, Message::assistant("so far so good"));
        admit(&mut session, Message::user("next"));
        let pending = by_hand(&mut session);
        let (pending, _) = answered(pending, "<summary>the door code is 4711</summary>");
        assert!(session.finish(pending).unwrap(), "{preset}");
        rounds(&mut session, 8..16, "line", 200);
        admit(&mut session, Message::assistant("more of the same"));
        admit(&mut session, Message::user("and now?"));
        let second = by_hand(&mut session);
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
            .filter(|m| m.meta.kind == Some(MessageKind::Summary));
        assert_eq!(summaries.count(), 1, "{preset}: summaries do not pile up");
    }
}

#[test]
fn message_that_arrives_during_a_summary_is_kept() {
    let mut session = open("turns", 40_000);
    for number in 0..12 {
        admit(&mut session, Message::user(format!("question {number}")));
        admit(
            &mut session,
            Message::assistant(format!("answer {number} {}", "w ".repeat(200))),
        );
    }
    let pending = session.check(Moment::AfterTurn).unwrap().unwrap();
    admit(&mut session, Message::user("typed meanwhile"));
    admit(&mut session, Message::assistant("answered meanwhile"));
    assert!(finished(&mut session, pending, "<summary>SUM</summary>"));
    let texts = texts(&mut session);
    assert!(texts.iter().any(|text| text == "typed meanwhile"));
    assert!(texts.iter().any(|text| text == "answered meanwhile"));

    let late = by_hand(&mut session);
    assert!(session.undo().unwrap());
    assert!(!session.finish(late).unwrap(), "another plan came first");
    assert!(kinds(&session.events()).contains(&SessionEventKind::Stale));
}

#[test]
fn outputs_that_no_model_has_read_stay_in_front_of_the_newest_question() {
    let mut session = open("refs", 20_000);
    admit(&mut session, Message::user("the task"));
    round(&mut session, 0, &"row\n".repeat(300));
    session.ready().unwrap();
    round(&mut session, 1, "UNREAD");
    admit(&mut session, Message::user("and?"));
    let pending = by_hand(&mut session);
    assert!(finished(&mut session, pending, "<summary>s</summary>"));
    session.ready().unwrap();
    let window = texts(&mut session);
    let place = |text: &str| window.iter().position(|one| one.contains(text)).unwrap();
    assert!(place("UNREAD") < place("and?"), "{window:?}");
}

#[test]
fn many_compactions_are_warned_of() {
    let mut session = open("refs", 20_000);
    for number in 0..5 {
        admit(&mut session, Message::user(format!("question {number}")));
        round(&mut session, number, &format!("row {number}\n").repeat(300));
        admit(&mut session, Message::assistant("I have read it."));
        admit(&mut session, Message::user("and?"));
        // Outputs that no model has read stay.
        session.ready().unwrap();
        let pending = by_hand(&mut session);
        assert!(finished(&mut session, pending, "<summary>s</summary>"));
    }
    let events = session.events();
    let warned = events
        .iter()
        .filter(|event| event.kind == SessionEventKind::Warning)
        .count();
    assert_eq!(warned, 2, "after the fourth and the fifth");
}

#[test]
fn a_summary_is_used_although_outputs_were_shown_shorter_meanwhile() {
    let mut session = open("refs", 50_000);
    admit(&mut session, Message::user("read it all"));
    rounds(&mut session, 0..12, "row", 1_500);
    session.ready().unwrap();
    session.record(&usage(45_000)).unwrap();
    let pending = session.check(Moment::AfterOutputs).unwrap().unwrap();
    round(&mut session, 12, &"more\n".repeat(9_000));
    session.check(Moment::BeforeCall).unwrap();
    let events = kinds(&session.events());
    assert!(events.contains(&SessionEventKind::Trimmed), "{events:?}");
    let (pending, _) = answered(pending, "<summary>SUM</summary>");
    assert!(session.finish(pending).unwrap());
    assert!(texts(&mut session).iter().any(|text| text.contains("SUM")));
}
