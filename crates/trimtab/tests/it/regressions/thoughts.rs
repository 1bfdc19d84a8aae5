//! Reasoning, signed and not.

use trimtab::engine::decide::without_bound_reasoning;
use trimtab::engine::plan::{Edit, Plan, PlanReason};
use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Message, Output, Part, Reasoning, Role};
use trimtab::session::{Moment, Session};

use super::{admit, answered, by_hand, managed, open};
use crate::common::opened_again;

#[test]
fn signed_thoughts_do_not_stay_behind_a_changed_prefix() {
    for preset in managed() {
        let mut session = open(preset, 40_000);
        admit(&mut session, Message::user("begin"));
        think(&mut session, 0..6);
        let pending = by_hand(&mut session);
        let (pending, asked) = answered(pending, "<summary>short</summary>");
        let has_thoughts = |message: &Message| {
            let mut parts = message.parts.iter();
            parts.any(|part| matches!(part, Part::Reasoning(_)))
        };
        assert!(!asked.iter().any(has_thoughts), "{preset}: none is sent");
        assert!(session.finish(pending).unwrap(), "{preset}");
        assert_eq!(thoughts(&mut session), Vec::<String>::new(), "{preset}");
    }
}

fn sealed(number: usize) -> Message {
    let thought = Part::Reasoning(Reasoning {
        text: format!("thought {number}"),
        seal: Some(format!("sig{number}")),
        ..Reasoning::default()
    });
    let call = Part::Call(Call::new(format!("call_{number}"), "read", "{}"));
    Message::new(Role::Assistant, vec![thought, call])
}

/// Admits rounds with a sealed thought each.
fn think(session: &mut Session, rounds: std::ops::Range<usize>) {
    for number in rounds {
        admit(session, sealed(number));
        let output = Message::output(format!("call_{number}"), "text ".repeat(300));
        admit(session, output);
    }
}

/// The numbers of the thoughts that are in the window.
fn thoughts(session: &mut Session) -> Vec<String> {
    let window = session.window().unwrap();
    let parts = window.messages().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| match part {
        Part::Reasoning(thought) => Some(thought.text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn changed_front_removes_bound_reasoning_once() {
    let mut session = open("steady", 40_000);
    admit(&mut session, Message::user("begin"));
    think(&mut session, 0..2);
    session.front_changes().unwrap();
    assert_eq!(thoughts(&mut session), Vec::<String>::new());
    think(&mut session, 2..4);
    session.front_changes().unwrap();
    assert_eq!(thoughts(&mut session), ["thought 2", "thought 3"]);
    assert!(!session.undo().unwrap(), "it is not taken back");
    let mut again = opened_again(&session);
    again.front_changes().unwrap();
    assert_eq!(thoughts(&mut again), ["thought 2", "thought 3"]);
}

#[test]
fn thoughts_since_a_plan_that_is_taken_back_do_not_stay() {
    let mut session = open("refs", 40_000);
    admit(&mut session, Message::user("begin"));
    think(&mut session, 0..4);
    let pending = by_hand(&mut session);
    assert!(session.finish(pending).unwrap());
    think(&mut session, 4..6);
    assert_eq!(thoughts(&mut session), ["thought 4", "thought 5"]);
    assert!(session.undo().unwrap());
    // They were thought behind a summary that is gone.
    assert_eq!(thoughts(&mut session), Vec::<String>::new());
    think(&mut session, 6..7);
    assert_eq!(thoughts(&mut session), ["thought 6"]);
}

#[test]
fn an_answer_to_a_window_that_is_gone_comes_without_its_thought() {
    let mut session = open("refs", 40_000);
    admit(&mut session, Message::user("begin"));
    think(&mut session, 0..4);
    let pending = by_hand(&mut session);
    session.ready().unwrap();
    // The summary is finished while the model answers the window before it.
    assert!(session.finish(pending).unwrap());
    think(&mut session, 4..5);
    assert_eq!(thoughts(&mut session), Vec::<String>::new());
    session.ready().unwrap();
    think(&mut session, 5..6);
    assert_eq!(thoughts(&mut session), ["thought 5"]);
}

#[test]
fn an_edit_leaves_the_reasoning_before_it() {
    let mut session = open("steady", 40_000);
    admit(&mut session, Message::user("begin"));
    think(&mut session, 0..4);
    let shown = Output::new("call_1", "shorter");
    let edit = Edit::Show {
        message: 4,
        part: 0,
        output: shown,
    };
    let plan = Plan::new(PlanReason::ByHand, vec![edit]);
    let plan = without_bound_reasoning(plan, session.projection().slots());
    session.shrink(plan, Measure::tokens).unwrap().unwrap();
    assert_eq!(thoughts(&mut session), ["thought 0", "thought 1"]);
}

#[test]
fn a_model_that_does_not_bind_its_reasoning_keeps_it() {
    let mut session = open("steady", 6_000);
    session.set_bound_reasoning(false).unwrap();
    admit(&mut session, Message::user("begin"));
    think(&mut session, 0..2);
    session.front_changes().unwrap();
    assert_eq!(thoughts(&mut session), ["thought 0", "thought 1"]);
    // Another model reads the conversation from now on, and nothing in it was edited.
    session.set_bound_reasoning(true).unwrap();
    assert_eq!(thoughts(&mut session), ["thought 0", "thought 1"]);
}

#[test]
fn thoughts_that_nobody_signed_stay_where_they_are() {
    let mut session = open("steady", 6_000);
    admit(&mut session, Message::user("begin"));
    for number in 0..30 {
        let id = format!("call_{number}");
        let call = Part::Call(Call::new(&id, "read", "{}"));
        let parts = vec![Part::reasoning(format!("thought {number}")), call];
        admit(&mut session, Message::new(Role::Assistant, parts));
        let line = |at: usize| format!("line {at} of part {number}: {}\n", at * 7919 % 1000);
        let lines: String = (0..90).map(line).collect();
        admit(&mut session, Message::output(&id, lines));
        session.check(Moment::BeforeCall).unwrap();
        session.ready().unwrap();
        let thoughts = thoughts(&mut session);
        assert_eq!(thoughts.last(), Some(&format!("thought {number}")));
    }
    assert!(session.projection().can_undo(), "there was a rewrite");
}
