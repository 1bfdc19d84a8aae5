//! Floors, triggers and what is switched off.

use trimtab::engine::policy::Policy;
use trimtab::model::Message;
use trimtab::session::{Limits, Moment, RecoveryOutcome, SessionError};
use trimtab::wire::overflow::{ProviderResponse, classify};

use super::{
    admit, by_hand, common, finished, kinds, limits, managed, open, round, setup, setup_of, usage,
};

#[test]
fn error_names_what_alone_is_too_large_and_is_not_a_loop() {
    let system = Message::system("rules ".repeat(6_000));
    let task = Message::user("word ".repeat(6_000));
    for (large, part) in [(system, "the system messages"), (task, "the task")] {
        for preset in managed() {
            let mut session = open(preset, 4_000);
            admit(&mut session, large.clone());
            admit(&mut session, Message::assistant("and?"));
            admit(&mut session, Message::user("go on"));
            for _ in 0..3 {
                let pending = session.check(Moment::BeforeCall).unwrap();
                assert!(pending.is_none(), "{preset}");
                let error = session.ready().unwrap_err();
                let SessionError::TooLarge(floor) = error else {
                    panic!("{preset}: {error}");
                };
                assert!(floor.part.starts_with(part), "{preset}: {floor}");
                assert!(floor.to_string().contains(part), "{floor}");
            }
            let events = session.events();
            assert!(kinds(&events).is_empty(), "{preset}: nothing is tried");
        }
    }
}

#[test]
fn usage_from_before_a_compaction_does_not_start_another() {
    let mut session = open("refs", 10_000);
    admit(&mut session, Message::user("begin"));
    for number in 0..6 {
        round(&mut session, number, &"data ".repeat(400));
    }
    admit(&mut session, Message::user("and now this"));
    session.ready().unwrap();
    session.record(&usage(9_000)).unwrap();
    admit(&mut session, Message::assistant("done"));
    let pending = session.check(Moment::BeforeFinal).unwrap().unwrap();
    assert!(finished(&mut session, pending, "<summary>s</summary>"));
    for moment in [Moment::AfterAnswer, Moment::BeforeFinal, Moment::AfterTurn] {
        assert!(session.check(moment).unwrap().is_none());
    }
}

#[test]
fn switched_off_means_never_by_itself_but_by_hand() {
    for preset in managed() {
        let mut policy = Policy::preset(preset).unwrap();
        policy.compaction.auto = false;
        let mut session = common::open(setup_of(policy, limits(6_000, 500)));
        admit(&mut session, Message::user("begin"));
        for number in 0..6 {
            admit(&mut session, Message::assistant("well ".repeat(300)));
            admit(
                &mut session,
                Message::user(format!("question {number} {}", "x ".repeat(300))),
            );
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
        let pending = by_hand(&mut session);
        assert!(session.finish(pending).unwrap(), "{preset}");
    }
}

#[test]
fn an_unknown_window_is_a_typed_error() {
    let mut session = common::open(setup("refs", Limits::default()));
    admit(&mut session, Message::user("q"));
    session.ready().unwrap();
    session.record(&usage(100)).unwrap();
    admit(&mut session, Message::assistant("a"));
    let error = session.check(Moment::BeforeFinal).unwrap_err();
    assert!(matches!(error, SessionError::WindowUnknown(_)), "{error}");
}
