//! Sessions outlive their process.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::plan::{Edit, Plan, PlanReason};
use trimtab::engine::policy::{Policy, SummaryRequestForm};
use trimtab::engine::view::policy::ViewPolicy;
use trimtab::engine::view::{HeadLinesCut, Shape};
use trimtab::model::{Call, Message, estimate::Measure};
use trimtab::session::{Limits, ManualCompaction, Session, SessionError, Setup};
use trimtab::store::{MemoryStore, Store};
use trimtab_testkit::{cases, history::any_history};

use crate::common::{self, limits, managed, open_in, run, setup, setup_of, summary, texts};

fn views() -> ViewPolicy {
    let shape = Shape::HeadLines(HeadLinesCut {
        max_bytes: 40,
        max_line_chars: 20,
    });
    ViewPolicy {
        default: shape,
        ..ViewPolicy::default()
    }
}

fn new_store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn open(store: &Arc<dyn Store>) -> Session {
    let policy = Policy {
        views: views(),
        ..Policy::default()
    };
    open_in(store, setup_of(policy, Limits::default()))
}

/// What is done to a session.
#[derive(Clone, Debug)]
enum Step {
    Admit(Box<Message>),
    Hide(usize, usize),
    Undo,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let more = prop_oneof![
        (0..20usize, 0..20usize).prop_map(|(a, b)| Step::Hide(a.min(b), a.max(b))),
        Just(Step::Undo),
    ];
    (
        any_history(30),
        prop::collection::vec((0..30usize, more), 0..4),
    )
        .prop_map(|(log, more)| {
            let mut steps: Vec<Step> = log.into_iter().map(Box::new).map(Step::Admit).collect();
            for (at, step) in more {
                steps.insert(at.min(steps.len()), step);
            }
            steps
        })
}

fn take(session: &mut Session, step: Step) {
    match step {
        Step::Admit(message) => {
            session.admit(*message).unwrap();
        }
        Step::Hide(from, to) => {
            let plan = Plan::new(PlanReason::ByHand, vec![Edit::Hide { from, to }]);
            session.shrink(plan, Measure::tokens).unwrap();
        }
        Step::Undo => {
            session.undo().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_session_opened_again_gives_the_same_window(steps in steps()) {
        let store = new_store();
        let mut session = open(&store);
        for step in steps {
            take(&mut session, step);
        }
        let mut again = open(&store);
        prop_assert_eq!(again.window().unwrap(), session.window().unwrap());
        let log = |session: &Session| session.projection().log().messages().to_vec();
        prop_assert_eq!(log(&again), log(&session));
    }
}

#[test]
fn two_writers_cannot_corrupt_a_session() {
    let store = new_store();
    let (mut one, mut other) = (open(&store), open(&store));
    one.admit(Message::user("first")).unwrap();
    let conflict = other.admit(Message::user("also first")).unwrap_err();
    assert!(matches!(conflict, SessionError::Store(_)), "{conflict}");
    assert!(
        conflict.to_string().contains("is at position 1, not 0"),
        "{conflict}"
    );

    let mut again = open(&store);
    again.admit(Message::user("second")).unwrap();
    assert_eq!(texts(&mut again), ["first", "second"]);
}

#[test]
fn a_store_without_files_keeps_the_largest_outputs_behind_their_refs() {
    let mut session = common::open(setup("archive", Limits::default()));
    let whole = "a line of a very long output\n".repeat(10_000);
    run(&mut session, Call::new("c", "read", "{}"), &whole);

    let window = session.window().unwrap();
    let shown = window.messages().last().unwrap().outputs().next().unwrap();
    let stored = shown.stored.clone().unwrap();
    let text = shown.text().into_owned();
    assert!(text.len() < 60_000, "{}", text.len());
    let (first, _) = text.split_once('\n').unwrap();
    assert_eq!(
        first,
        format!(
            "[tool output spill failed: this store cannot write an output to a file: it has no \
             folder; it is whole behind ref {}]",
            stored.id()
        )
    );
    let had_back = session.store().get(session.id(), stored.id()).unwrap();
    assert_eq!(had_back, whole.as_bytes());
    let warnings = session.events();
    let notes = warnings.iter().filter_map(|event| event.note.as_deref());
    let notes: Vec<_> = notes.collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("an output could not be written to a file: "),
        "{notes:?}"
    );
}

/// What a provider would count for every request for a summary of twenty rounds of figures,
/// which take more tokens than a quarter of their bytes.
fn summary_requests(preset: &str, limits: Limits, tools: Measure) -> Vec<u64> {
    let policy = Policy::preset(preset).unwrap();
    let beside = match policy.compaction.form {
        SummaryRequestForm::Messages => tools.tokens(),
        _ => 0,
    };
    let setup = Setup {
        limits,
        tools,
        ..Setup::new(policy)
    };
    let mut session = common::open(setup);
    for round in 0..20 {
        let figures = (0..900).map(|n| (n * 7_919 + round).to_string());
        let figures = figures.collect::<Vec<_>>().join(" ");
        let question = Message::user(format!("measure {round}"));
        session.admit(question).unwrap();
        run(
            &mut session,
            Call::new(format!("c{round}"), "measure", "{}"),
            figures,
        );
        session.admit(Message::assistant("measured")).unwrap();
    }
    let mut counts = Vec::new();
    let Some(mut pending) = session.compact(&ManualCompaction::default()).unwrap() else {
        return counts;
    };
    while let Some(request) = pending.request() {
        let messages: Measure = request.messages.iter().map(Measure::of).sum();
        counts.push(messages.tokens() + beside + request.max_output);
        pending.answer(summary("<summary>Things were measured.</summary>"));
    }
    counts
}

#[test]
fn a_request_for_a_summary_fits_as_the_provider_counts_it() {
    let window = 24_000;
    let tools =
        Measure::of_text(&r#"{"name": "measure", "description": "Measures."}, "#.repeat(200));
    let mut asked = 0;
    for preset in managed() {
        for count in summary_requests(preset, limits(window, 1_000), tools) {
            asked += 1;
            assert!(count <= window, "{preset}: {count} tokens");
        }
    }
    assert!(asked > 5, "{asked}");
}

#[test]
fn forged_refs_are_removed_from_summaries() {
    let mut session = open(&new_store());
    session.admit(Message::user("read the page")).unwrap();
    for round in 0..6 {
        let call = Call::new(format!("c{round}"), "read", "{}");
        run(&mut session, call, "a long line of the page ".repeat(20));
        let said = format!("I have read part {round} of the page. ").repeat(40);
        session.admit(Message::assistant(said)).unwrap();
    }
    let outputs = session.projection().log().messages();
    let stored = outputs
        .iter()
        .flat_map(|message| message.outputs())
        .find_map(|one| one.stored.clone());
    let real = stored.unwrap().id().to_owned();
    let forged = "abcdefgh2345abcd";
    let text = format!(
        "The page was read ({real}). The page says: {forged} is the ref of the rest, see also \
         tool_output_cache({{\"ref_id\":\"made-up\"}})."
    );
    let mut pending = session
        .compact(&ManualCompaction::default())
        .unwrap()
        .unwrap();
    pending.answer(summary(text));
    assert!(session.finish(pending).unwrap());
    let window = texts(&mut session).join("\n");
    assert!(window.contains(&real), "{window}");
    assert!(
        !window.contains(forged) && !window.contains("made-up"),
        "{window}"
    );
}
