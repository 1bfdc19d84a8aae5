//! Every preset with any settings, on any history: the four promises hold.
//!
//! Settings are drawn from the schema. What is refused where it is set is left out. A long run
//! (`TRIMTAB_LONG=1`) has a million cases.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use trimtab::config::{Config, ConfigInputs, KEYS, SettingKey, SettingKind};
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::engine::verify::verify;
use trimtab::model::{Call, Dialect, Message, Role, Usage};
use trimtab::session::{Limits, Moment, Session, SessionError, Setup, SummariserAnswer};
use trimtab::store::{MemoryStore, SessionId, Store};
use trimtab_testkit::is_long;

/// Settings that decide nothing about a window, or that this test sets itself.
const LEFT_OUT: [&str; 8] = [
    "preset",
    "store",
    "blobs",
    "model",
    "window",
    "max_output",
    "compaction.model",
    "network.",
];

const NUMBERS: [&str; 12] = [
    "0", "1", "2", "5", "10", "40", "60", "90", "100", "500", "2000", "20000",
];

const CONDITIONS: [&str; 6] = [
    "usage >= 0.8 x window",
    "log > 75 % of window",
    "messages > 5",
    "call > 100 % of window",
    "log >= window - 1000",
    "log >= 500",
];

const SHAPES: [&str; 6] = [
    "{ shape = 'whole' }",
    "{ shape = 'structure', cap = 300 }",
    "{ shape = 'head_lines', max_line_chars = 80, max_bytes = 200 }",
    "{ shape = 'middle', max = 50 }",
    "{ shape = 'limits', max_lines = 5, max_bytes = 400, max_chars = 300 }",
    "{ shape = 'prefix', chars = 60 }",
];

const KEEPS: [&str; 6] = [
    "{ keep = 'last_turns', turns = 1 }",
    "{ keep = 'recent_tokens', tokens = 300 }",
    "{ keep = 'recent_messages', messages = 3 }",
    "{ keep = 'recent_turns', messages = 4 }",
    "{ keep = 'user_messages_cut', tokens = 50 }",
    "{ keep = 'open_calls' }",
];

fn pick<'v>(values: &[&'v str], by: Index) -> &'v str {
    values[by.index(values.len())]
}

/// A value for a setting, as somebody types it.
fn value(key: &SettingKey, by: Index) -> String {
    let quoted = |words: &[&str]| {
        let from = by.index(words.len() + 1);
        let words: Vec<String> = words[from..]
            .iter()
            .map(|word| format!("'{word}'"))
            .collect();
        format!("[{}]", words.join(", "))
    };
    match (key.name, key.kind) {
        ("views.default", _) => pick(&SHAPES, by).to_owned(),
        ("views.tools", _) => {
            let shape = pick(&SHAPES, by).trim_start_matches('{');
            format!("[{{ tool = 're*', {shape}]")
        }
        ("compaction.keep", _) => format!("[{}]", pick(&KEEPS, by)),
        ("compaction.placement", _) => {
            let place = pick(&["message", "system"], by);
            format!("{{ placement = '{place}', prefix = 'S: ' }}")
        }
        (_, SettingKind::Switch) => pick(&["true", "false"], by).to_owned(),
        (_, SettingKind::Number) => pick(&NUMBERS, by).to_owned(),
        (_, SettingKind::Share) => pick(&["0", "0.3", "1"], by).to_owned(),
        (_, SettingKind::Choice(words)) => pick(words, by).to_owned(),
        (_, SettingKind::Choices(words)) => quoted(words),
        (_, SettingKind::Conditions) => quoted(&CONDITIONS),
        (_, SettingKind::Texts) => quoted(&["r*", "some words"]),
        _ => "some words".to_owned(),
    }
}

/// The policy of a preset with some settings; those that are refused are left out.
fn policy(preset: &str, drawn: &[(Index, Index)]) -> (Policy, Vec<String>) {
    let open: Vec<&SettingKey> = KEYS
        .iter()
        .filter(|key| !LEFT_OUT.iter().any(|name| key.name.starts_with(name)))
        .collect();
    let mut set = vec![format!("preset={preset}")];
    let mut config = load(&set).unwrap();
    // A preset made for large windows is tried with this one all the same.
    let fits_window = config.check(Some(WINDOW)).is_ok();
    for (which, by) in drawn {
        let key = open[which.index(open.len())];
        set.push(format!("{}={}", key.name, value(key, *by)));
        let accepted = load(&set);
        let accepted = accepted.filter(|one| !fits_window || one.check(Some(WINDOW)).is_ok());
        match accepted {
            Some(accepted) => config = accepted,
            None => drop(set.pop()),
        }
    }
    (config.policy, set)
}

fn load(set: &[String]) -> Option<Config> {
    let mut inputs = ConfigInputs::default();
    for one in set {
        inputs.set(one, "--set");
    }
    Config::load(&inputs).ok()
}

const WINDOW: u64 = 3_000;
const ANSWER: u64 = 300;

fn open(store: &Arc<dyn Store>, policy: &Policy, dialect: Dialect) -> Session {
    let limits = Limits {
        window: Some(WINDOW),
        max_output: Some(ANSWER),
        bytes: None,
    };
    let setup = Setup {
        dialect,
        limits,
        ..Setup::new(policy.clone())
    };
    Session::open(Arc::clone(store), SessionId::new("s").unwrap(), setup).unwrap()
}

/// A conversation: for each round the size of its output, a word in it, and whether the user
/// speaks behind it.
fn conversation(rounds: &[(usize, char, bool)]) -> Vec<Message> {
    let mut log = vec![Message::system("be brief"), Message::user("begin the work")];
    for (at, (size, letter, speaks)) in rounds.iter().enumerate() {
        let id = format!("call_{at}");
        let path = format!("{{\"path\":\"src/{letter}{at}.rs\"}}");
        log.push(Message::assistant("reading").with_call(Call::new(&id, "read", path)));
        let line = format!("{letter}{at} = {size};\n");
        log.push(Message::output(&id, line.repeat(size / line.len() + 1)));
        if *speaks {
            log.push(Message::assistant(format!("{letter}{at} is done")));
            log.push(Message::user(format!("now {letter}")));
        }
    }
    log.push(Message::assistant("all is done"));
    log
}

/// What was sent last: its messages, and how many plans there were.
type Sent = Option<(Vec<Arc<Message>>, u64)>;

/// One call: what is sent is valid, fits, can be had back, and goes on from what was sent.
fn call(session: &mut Session, sent: &mut Sent) -> Result<(), TestCaseError> {
    check(session, Moment::BeforeCall)?;
    let ready = match session.ready() {
        Ok(ready) => ready,
        // The settings may forbid everything that would help.
        Err(SessionError::OverBudget { .. } | SessionError::TooLarge(_)) => {
            *sent = None;
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let (fit, dialect) = (session.setup().policy.fit, session.setup().dialect);
    let plans = session.positions().1;
    let window: Vec<Arc<Message>> = session.window().unwrap().messages().cloned().collect();
    let faults = verify(&window, dialect);
    prop_assert!(faults.is_empty(), "{faults:?}");
    let answer = ready.max_output.unwrap_or(0);
    prop_assert!(!fit || ready.tokens + answer <= WINDOW, "{ready:?}");
    let stored = window.iter().flat_map(|message| message.outputs());
    for stored in stored.filter_map(|output| output.stored.as_ref()) {
        prop_assert!(session.store().get(session.id(), stored.id()).is_ok());
    }
    if let Some((before, then)) = sent.take()
        && then == plans
    {
        prop_assert!(
            window.starts_with(&before),
            "what was sent changed without a plan"
        );
    }
    let usage = Usage {
        input: ready.tokens,
        ..Usage::default()
    };
    session.record(&usage).unwrap();
    *sent = Some((window, plans));
    Ok(())
}

fn check(session: &mut Session, moment: Moment) -> Result<(), TestCaseError> {
    let tokens = |session: &mut Session| session.window().unwrap().measures().total().tokens();
    let before = tokens(session);
    if let Some(mut pending) = session.check(moment).unwrap() {
        while pending.request().is_some() {
            pending.answer(SummariserAnswer::Failed("no such model".to_owned()));
        }
        session.finish(pending).unwrap();
    }
    prop_assert!(tokens(session) <= before, "never larger");
    Ok(())
}

fn drive(session: &mut Session, log: &[Message]) -> Result<(), TestCaseError> {
    let mut sent = None;
    for message in log {
        let answers = message.role == Role::Assistant;
        if answers {
            call(session, &mut sent)?;
        }
        session.admit(message.clone()).unwrap();
        match message.role {
            Role::Assistant if message.has_calls() => check(session, Moment::AfterAnswer)?,
            Role::Assistant => check(session, Moment::AfterTurn)?,
            Role::Tool => check(session, Moment::AfterOutputs)?,
            Role::User | Role::System => {}
        }
    }
    Ok(())
}

/// Nothing that came is lost: the log has it word for word.
fn lossless(session: &Session, came: &[Message]) -> Result<(), TestCaseError> {
    let log = session.projection().log().messages();
    prop_assert_eq!(log.len(), came.len());
    for (kept, came) in log.iter().zip(came) {
        prop_assert_eq!(kept.text(), came.text());
    }
    Ok(())
}

fn number_of_cases() -> ProptestConfig {
    ProptestConfig {
        cases: if is_long() { 1_000_000 } else { 500 },
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(number_of_cases())]

    #[test]
    fn any_settings_keep_the_four_promises(
        preset in 0..PRESETS.len(),
        drawn in prop::collection::vec(any::<(Index, Index)>(), 0..6),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
        rounds in prop::collection::vec((1..4_000usize, prop::char::range('a', 'z'), any::<bool>()), 1..8),
    ) {
        let (policy, set) = policy(PRESETS[preset].name, &drawn);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut session = open(&store, &policy, dialect);
        let log = conversation(&rounds);
        let held = drive(&mut session, &log).and_then(|()| lossless(&session, &log));
        held.map_err(|error| TestCaseError::fail(format!("{error}\nwith {set:?}")))?;
        let mut again = open(&store, &policy, dialect);
        prop_assert_eq!(again.window().unwrap(), session.window().unwrap(), "{:?}", set);
    }
}
