//! Every preset, on any history, in every dialect: the four promises hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::policy::PRESETS;
use trimtab::engine::verify::verify;
use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Dialect, Message, Role};
use trimtab::session::{
    Limits, ManualCompaction, Moment, PendingSummary, Session, SessionEventKind, Setup,
    SummariserAnswer,
};
use trimtab::store::{MemoryStore, Store};
use trimtab_testkit::{cases, history::any_history};

use crate::common::{
    any_dialect, any_managed, limits, messages, open, open_in, run, setup, summary, usage,
};

/// What the summariser does.
#[derive(Clone, Copy, Debug)]
enum Summariser {
    None,
    Fails,
    SaysNothing,
    SaysTooMuch,
    Summarises,
}

fn summariser() -> impl Strategy<Value = Summariser> {
    prop_oneof![
        Just(Summariser::None),
        Just(Summariser::Fails),
        Just(Summariser::SaysNothing),
        Just(Summariser::SaysTooMuch),
        Just(Summariser::Summarises),
    ]
}

fn answer(mut pending: PendingSummary, summariser: Summariser) -> PendingSummary {
    while let Some(request) = pending.request() {
        let answered = match summariser {
            Summariser::None => break,
            Summariser::Fails => SummariserAnswer::Failed("no such model".to_owned()),
            Summariser::SaysNothing => summary(""),
            Summariser::SaysTooMuch => summary("words ".repeat(100_000)),
            Summariser::Summarises => summary(format!(
                "<summary>{} messages</summary>",
                request.messages.len()
            )),
        };
        pending.answer(answered);
    }
    pending
}

const WINDOW: u64 = 6_000;

fn session(store: &Arc<dyn Store>, preset: &str, dialect: Dialect) -> Session {
    let setup = setup(preset, limits(WINDOW, 500));
    open_in(store, Setup { dialect, ..setup })
}

/// A history with a number of rounds whose outputs are large enough to matter.
fn long_history() -> impl Strategy<Value = Vec<Message>> {
    let round = (1..4_000usize, "[a-z]{3,9}", any::<bool>());
    (prop::collection::vec(round, 1..25), any_history(12)).prop_map(|(rounds, tail)| {
        let mut log = vec![Message::system("be brief"), Message::user("begin the work")];
        for (at, (size, word, asks)) in rounds.into_iter().enumerate() {
            let id = format!("call_{at}");
            let call = Call::new(&id, "read", format!("{{\"path\":\"src/{word}.rs\"}}"));
            log.push(Message::assistant(format!("reading {word}")).with_call(call));
            let line = format!("{word} = {at};\n");
            log.push(Message::output(&id, line.repeat(size / line.len() + 1)));
            if asks {
                log.push(Message::assistant(format!("{word} is done")));
                log.push(Message::user(format!("now {word}{at}")));
            }
        }
        log.extend(tail);
        log
    })
}

fn tokens(session: &mut Session) -> u64 {
    let total = session.window().unwrap().measures().total();
    Measure::tokens(&total)
}

/// Goes through a history as an agent would. At every call of the model the window holds.
fn drive(
    session: &mut Session,
    log: &[Message],
    summariser: Summariser,
) -> Result<(), TestCaseError> {
    for message in log {
        if message.role == Role::Assistant {
            check(session, Moment::BeforeCall, summariser)?;
            // Nothing in these histories is too large by itself.
            match session.ready() {
                Ok(ready) => {
                    let dialect = session.setup().dialect;
                    prop_assert!(verify(&messages(session), dialect).is_empty());
                    let answer = ready.max_output.unwrap_or(0);
                    prop_assert!(ready.tokens + answer <= WINDOW, "{ready:?}");
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
            let prompt = tokens(session);
            session.record(&usage(prompt)).unwrap();
        }
        session.admit(message.clone()).unwrap();
        match message.role {
            Role::Assistant if message.has_calls() => {
                check(session, Moment::AfterAnswer, summariser)?;
            }
            Role::Assistant => {
                check(session, Moment::BeforeFinal, summariser)?;
                check(session, Moment::AfterTurn, summariser)?;
            }
            Role::Tool => check(session, Moment::AfterOutputs, summariser)?,
            Role::User | Role::System => {}
        }
    }
    Ok(())
}

fn check(session: &mut Session, moment: Moment, by: Summariser) -> Result<(), TestCaseError> {
    let before = tokens(session);
    if let Some(pending) = session.check(moment).unwrap() {
        let pending = answer(pending, by);
        session.finish(pending).unwrap();
    }
    prop_assert!(tokens(session) <= before, "never larger");
    Ok(())
}

/// Outputs whose length is near a limit of some design, of characters of one to four bytes.
fn border_output() -> impl Strategy<Value = String> {
    let limit = prop::sample::select(vec![20, 60, 140, 500, 2_000, 24_000, 51_200]);
    let unit = prop::sample::select(vec!["x", "\u{e9}", "\u{8a9e}", "\u{1f600}", "a line\n"]);
    (limit, 0..300usize, unit, any::<bool>()).prop_map(|(limit, more, unit, in_bytes)| {
        let length = limit + more - 20;
        unit.repeat(if in_bytes {
            length / unit.len() + 1
        } else {
            length
        })
    })
}

/// Fails if the window shows an output longer than it came, in bytes or in characters.
fn shows_nothing_longer(
    session: &mut Session,
    came: &BTreeMap<String, String>,
) -> Result<(), TestCaseError> {
    let window = session.window().unwrap();
    for output in window.messages().flat_map(|message| message.outputs()) {
        let (text, came) = (output.text(), &came[&output.call_id]);
        prop_assert!(
            text.len() <= came.len(),
            "{} > {}: {text}",
            text.len(),
            came.len()
        );
        let (chars, came) = (text.chars().count(), came.chars().count());
        prop_assert!(chars <= came, "{chars} > {came} characters: {text}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn outputs_are_never_shown_longer_than_they_came(
        preset in prop::sample::select(PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>()),
        dialect in any_dialect(),
        window in prop::sample::select(vec![None, Some(6_000), Some(40_000), Some(400_000)]),
        outputs in prop::collection::vec(border_output(), 1..16),
        by in summariser(),
    ) {
        let limits = Limits { window, ..Limits::default() };
        let mut session = open(Setup { dialect, ..setup(preset, limits) });
        session.admit(Message::user("begin the work")).unwrap();
        let mut came = BTreeMap::new();
        for (at, output) in outputs.into_iter().enumerate() {
            // A window that cannot be made to fit is shown as small as it is.
            let _ = session.ready();
            shows_nothing_longer(&mut session, &came)?;
            session.record(&usage(45_000)).unwrap();
            let id = format!("call_{at}");
            came.insert(id.clone(), output.clone());
            run(&mut session, Call::new(&id, "read", "{}"), output);
            for moment in [Moment::AfterAnswer, Moment::AfterOutputs, Moment::BeforeCall] {
                // Under `refs`, nothing can be decided without a window.
                if let Some(pending) = session.check(moment).unwrap_or_default() {
                    session.finish(answer(pending, by)).unwrap();
                }
                shows_nothing_longer(&mut session, &came)?;
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn every_window_is_valid_and_fits(
        preset in any_managed(),
        dialect in any_dialect(),
        log in long_history(),
        by in summariser(),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut session = session(&store, preset, dialect);
        drive(&mut session, &log, by)?;
        let mut again = self::session(&store, preset, dialect);
        prop_assert_eq!(again.window().unwrap(), session.window().unwrap());
    }

    #[test]
    fn a_second_compaction_right_after_the_first_changes_nothing(
        preset in any_managed(),
        dialect in any_dialect(),
        log in long_history(),
        by in summariser(),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut session = session(&store, preset, dialect);
        for message in log {
            session.admit(message).unwrap();
        }
        let first = session.compact(&ManualCompaction::default()).unwrap();
        let done = first.is_some_and(|first| session.finish(answer(first, by)).unwrap());
        let once = session.window().unwrap().clone();
        session.events();
        if let Some(second) = session.compact(&ManualCompaction::default()).unwrap() {
            prop_assert!(!done, "nothing came since");
            prop_assert!(!session.finish(answer(second, by)).unwrap());
        }
        prop_assert_eq!(session.window().unwrap(), &once);
        prop_assert!(session.events().iter().any(|event| event.kind == SessionEventKind::NoOp));
    }

    #[test]
    fn removed_text_returns_by_undo_and_by_ref(
        preset in any_managed(),
        dialect in any_dialect(),
        log in long_history(),
        by in summariser(),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut session = session(&store, preset, dialect);
        for message in log {
            session.admit(message).unwrap();
        }
        let before = session.window().unwrap().clone();
        let Some(pending) = session.compact(&ManualCompaction::default()).unwrap() else {
            return Ok(());
        };
        if !session.finish(answer(pending, by)).unwrap() {
            return Ok(());
        }
        let events = session.events();
        let done = events.iter().find(|event| event.kind == SessionEventKind::Compacted).unwrap();
        prop_assert!(!done.refs.is_empty());
        for stored in &done.refs {
            prop_assert!(store.get(session.id(), stored.id()).is_ok());
        }
        prop_assert!(session.undo().unwrap());
        prop_assert_eq!(session.window().unwrap(), &before);
    }
}
