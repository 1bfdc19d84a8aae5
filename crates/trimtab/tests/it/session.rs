//! Sessions outlive their process.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::plan::{Edit, Plan, PlanReason};
use trimtab::engine::policy::{PRESETS, Policy, SummaryRequestForm};
use trimtab::engine::view::policy::ViewPolicy;
use trimtab::engine::view::{HeadLinesCut, Shape};
use trimtab::model::{Call, Dialect, Message, estimate::Measure};
use trimtab::session::{Limits, ManualCompaction, Session, SessionError, Setup, SummariserAnswer};
use trimtab::store::{MemoryStore, SessionId, Store};
use trimtab_testkit::{cases, history::any_history};

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

fn open<S: Store + 'static>(store: &Arc<S>) -> Session {
    let setup = Setup {
        dialect: Dialect::Messages,
        ..Setup::new(Policy {
            views: views(),
            ..Policy::default()
        })
    };
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    Session::open(store, SessionId::new("s").unwrap(), setup).unwrap()
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
        let store = Arc::new(MemoryStore::new());
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
    let store = Arc::new(MemoryStore::new());
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
    let texts: Vec<_> = again
        .window()
        .unwrap()
        .messages()
        .map(|m| m.text().into_owned())
        .collect();
    assert_eq!(texts, ["first", "second"]);
}

#[test]
fn undo_gives_the_window_of_before_and_survives() {
    let store = Arc::new(MemoryStore::new());
    let mut session = open(&store);
    session
        .admit(Message::user("a long question ".repeat(20)))
        .unwrap();
    session.admit(Message::user("a short one")).unwrap();
    let before = session.window().unwrap().clone();
    let hide = Plan::new(PlanReason::ByHand, vec![Edit::Hide { from: 0, to: 1 }]);
    assert!(session.shrink(hide, Measure::tokens).unwrap().is_some());
    assert_eq!(session.window().unwrap().messages().len(), 1);
    assert!(session.undo().unwrap());
    assert!(!session.undo().unwrap());
    assert_eq!(session.window().unwrap(), &before);
    assert_eq!(open(&store).window().unwrap(), &before);
}

#[test]
fn a_store_without_files_keeps_the_largest_outputs_behind_their_refs() {
    let store = Arc::new(MemoryStore::new());
    let id = SessionId::new("s").unwrap();
    let setup = Setup::new(Policy::preset("archive").unwrap());
    let mut session = Session::open(Arc::clone(&store) as _, id.clone(), setup).unwrap();
    session.admit(Message::user("go")).unwrap();
    let call = Call::new("c", "read", "{}");
    session
        .admit(Message::assistant("").with_call(call))
        .unwrap();
    let whole = "a line of a very long output\n".repeat(10_000);
    session.admit(Message::output("c", &whole)).unwrap();

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
    assert_eq!(store.get(&id, stored.id()).unwrap(), whole.as_bytes());
    let warnings = session.events();
    let notes: Vec<_> = warnings
        .iter()
        .filter_map(|event| event.note.as_deref())
        .collect();
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
    let (store, id) = (MemoryStore::new(), SessionId::new("s").unwrap());
    let mut session = Session::open(Arc::new(store), id, setup).unwrap();
    for round in 0..20 {
        let call = Call::new(format!("c{round}"), "measure", "{}");
        let figures = (0..900).map(|n| (n * 7_919 + round).to_string());
        let figures = figures.collect::<Vec<_>>().join(" ");
        let messages = [
            Message::user(format!("measure {round}")),
            Message::assistant("").with_call(call),
            Message::output(format!("c{round}"), figures),
            Message::assistant("measured"),
        ];
        for message in messages {
            session.admit(message).unwrap();
        }
    }
    let mut counts = Vec::new();
    let Some(mut pending) = session.compact(&ManualCompaction::default()).unwrap() else {
        return counts;
    };
    while let Some(request) = pending.request() {
        let messages: Measure = request.messages.iter().map(Measure::of).sum();
        counts.push(messages.tokens() + beside + request.max_output);
        pending.answer(SummariserAnswer::Text {
            text: "<summary>Things were measured.</summary>".to_owned(),
            ending: SummaryEnding::Whole,
            usage: None,
        });
    }
    counts
}

#[test]
fn a_request_for_a_summary_fits_as_the_provider_counts_it() {
    let window = 24_000;
    let limits = Limits {
        window: Some(window),
        max_output: Some(1_000),
        ..Limits::default()
    };
    let tools =
        Measure::of_text(&r#"{"name": "measure", "description": "Measures."}, "#.repeat(200));
    let mut asked = 0;
    for preset in PRESETS.iter().filter(|preset| preset.fit()) {
        for count in summary_requests(preset.name, limits, tools) {
            asked += 1;
            assert!(count <= window, "{}: {count} tokens", preset.name);
        }
    }
    assert!(asked > 5, "{asked}");
}

#[test]
fn forged_refs_are_removed_from_summaries() {
    let store = Arc::new(MemoryStore::new());
    let mut session = open(&store);
    session.admit(Message::user("read the page")).unwrap();
    for round in 0..6 {
        let id = format!("c{round}");
        session
            .admit(Message::assistant("").with_call(Call::new(&id, "read", "{}")))
            .unwrap();
        session
            .admit(Message::output(&id, "a long line of the page ".repeat(20)))
            .unwrap();
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
    pending.answer(SummariserAnswer::Text {
        text,
        ending: SummaryEnding::Whole,
        usage: None,
    });
    assert!(session.finish(pending).unwrap());
    let window = session.window().unwrap();
    let window: Vec<String> = window
        .messages()
        .map(|message| message.text().into_owned())
        .collect();
    let window = window.join("\n");
    assert!(window.contains(&real), "{window}");
    assert!(
        !window.contains(forged) && !window.contains("made-up"),
        "{window}"
    );
}
