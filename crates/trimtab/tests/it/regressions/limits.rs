//! Floors, triggers and what is switched off.

use trimtab::engine::policy::Policy;
use trimtab::model::Message;
use trimtab::session::{Limits, ManualCompaction, Moment, RecoveryOutcome, SessionError};
use trimtab::wire::overflow::{ProviderResponse, classify};

use super::{answered, kinds, managed, open, open_with, round, usage};

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
            assert_eq!(floor.part, "the system messages", "{preset}");
        }
        assert!(
            kinds(&session.events()).is_empty(),
            "{preset}: nothing was tried in vain"
        );
    }
}

#[test]
fn error_names_the_task_where_it_alone_is_too_large() {
    for preset in managed() {
        let mut session = open(preset, 4_000);
        session.admit(Message::user("word ".repeat(6_000))).unwrap();
        session.admit(Message::assistant("and?")).unwrap();
        session.admit(Message::user("go on")).unwrap();
        let error = session.ready().unwrap_err();
        let SessionError::TooLarge(floor) = error else {
            panic!("{preset}: {error}");
        };
        assert!(floor.part.starts_with("the task"), "{preset}");
        assert!(floor.to_string().contains("the task"), "{floor}");
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
        let verdict = classify(&ProviderResponse::new(413, b"Request too large"));
        assert!(
            matches!(session.recover(&verdict).unwrap(), RecoveryOutcome::GiveUp),
            "{preset}"
        );
        assert!(kinds(&session.events()).is_empty(), "{preset}");
        let pending = session
            .compact(&ManualCompaction::default())
            .unwrap()
            .unwrap();
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
