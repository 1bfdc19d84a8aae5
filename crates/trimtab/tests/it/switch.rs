//! The moments at which our own policy may change what was sent.

use trimtab::engine::policy::Policy;
use trimtab::model::{Call, Message};
use trimtab::session::{Moment, Session, SessionEvent, Setup};
use trimtab::wire::catalogue::Catalogue;

use crate::common::{self, limits, ready, run, setup_of};

const WINDOW: u64 = 40_000;
/// So rich that no window of these tests is rewritten to save money.
const RICH: u64 = 40;

/// A session on a model whose prices rise above 100,000 tokens.
fn open(window: u64, economy: u64) -> Session {
    let model = Catalogue::embedded()
        .find("claude-haiku-5-5")
        .unwrap()
        .model;
    assert_eq!(model.tiers[0].above, 100_000);
    let mut policy = Policy::preset("steady").unwrap();
    policy.ageing.rewrite.economy = economy;
    let mut session = common::open(Setup {
        prices: model.prices,
        tiers: model.tiers,
        ..setup_of(policy, limits(window, 1))
    });
    session.admit(Message::user("read it all")).unwrap();
    session
}

/// One more round, and the size of its window.
fn round(session: &mut Session, number: usize, tool: &str) -> u64 {
    let arguments = format!("{{\"ref_id\": \"part{number}\"}}");
    let line = |at: usize| format!("line {at} of part {number}: {}\n", at * 7919 % 1000);
    let call = Call::new(format!("c{number}"), tool, arguments);
    run(session, call, (0..60).map(line).collect::<String>());
    ready(session).unwrap().tokens
}

/// Rounds until the window takes `tokens`, each of them checked.
fn fill(session: &mut Session, tokens: u64) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    for number in 0.. {
        let used = round(session, number, "read");
        events.extend(session.events());
        if used > tokens || !events.is_empty() {
            return events;
        }
    }
    events
}

fn whys(events: &[SessionEvent]) -> Vec<String> {
    let reasons = events.iter().map(|event| format!("{:?}", event.reason));
    reasons.collect()
}

#[test]
fn a_cold_cache_is_a_switch_point_for_a_window_that_is_rather_full() {
    for (tokens, rewritten) in [(WINDOW / 4, false), (WINDOW * 3 / 4, true)] {
        let mut session = open(WINDOW, RICH / 2);
        assert_eq!(whys(&fill(&mut session, tokens)), Vec::<String>::new());
        session.cache_is_cold();
        ready(&mut session).unwrap();
        let events = session.events();
        assert_eq!(!events.is_empty(), rewritten, "{:?}", whys(&events));
        if rewritten {
            assert!(whys(&events)[0].contains("a cold cache"), "{events:?}");
            let note = events[0].note.clone().unwrap();
            assert!(note.contains("costs nothing extra"), "{note}");
        }
        // It is cold once.
        session.check(Moment::BeforeCall).unwrap();
        assert!(session.events().is_empty());
    }
}

#[test]
fn a_price_cliff_is_a_switch_point() {
    let mut session = open(400_000, RICH);
    let events = fill(&mut session, 120_000);
    assert_eq!(events.len(), 1, "{:?}", whys(&events));
    assert!(
        whys(&events)[0].contains("a higher price ahead"),
        "{events:?}"
    );
    assert!(events[0].tokens_before <= 100_000 && events[0].tokens_before > 90_000);
    assert!(events[0].tokens_after < 80_000, "{events:?}");
}

#[test]
fn old_text_that_was_read_too_often_is_a_switch_point_long_before_the_window_is_full() {
    let events = fill(&mut open(400_000, 4), 120_000);
    assert_eq!(events.len(), 1, "{:?}", whys(&events));
    assert!(whys(&events)[0].contains("read too often"), "{events:?}");
    let (before, after) = (events[0].tokens_before, events[0].tokens_after);
    assert!(
        before < 100_000 && after * 2 < before,
        "{before} to {after}"
    );
    let note = events[0].note.clone().unwrap();
    assert!(note.contains("it pays after"), "{note}");
    let thriftier = fill(&mut open(400_000, 1), 120_000);
    assert!(thriftier[0].tokens_before < before, "{thriftier:?}");
}

#[test]
fn output_of_a_protected_tool_stays_whole_in_a_rewrite() {
    let mut policy = Policy::preset("steady").unwrap();
    policy.views.protected = vec!["pin".to_owned()];
    let mut session = common::open(setup_of(policy, limits(400_000, 1)));
    session.admit(Message::user("read it all")).unwrap();
    let pinned = "a line that must not go\n".repeat(120);
    run(&mut session, Call::new("pin", "pin", "{}"), &pinned);
    let events = fill(&mut session, 120_000);
    assert!(whys(&events)[0].contains("read too often"), "{events:?}");
    let window = session.window().unwrap();
    let mut outputs = window.messages().flat_map(|message| message.outputs());
    assert!(outputs.any(|output| output.text() == pinned));
}

/// A model may read stored outputs again and again. Its old reads must not pile up in the window.
#[test]
fn old_reads_of_stored_outputs_leave_the_window_in_a_rewrite() {
    let mut session = open(WINDOW, 4);
    for number in 0..120 {
        let tool = ["tool_output_cache", "read"][number % 2];
        round(&mut session, number, tool);
    }
    let window = session.window().unwrap();
    let calls = window.messages().flat_map(|message| message.calls());
    let reads = calls.filter(|call| call.name == "tool_output_cache");
    let reads: Vec<&str> = reads.map(|call| call.id.as_str()).collect();
    assert!(reads.contains(&"c118"), "{reads:?}");
    assert!(reads.len() < 30, "{} reads stay: {reads:?}", reads.len());
}
