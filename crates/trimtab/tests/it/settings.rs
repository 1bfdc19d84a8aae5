//! Every setting holds under every preset, or is refused where it is set, with the reason.

use std::collections::HashMap;
use std::fmt::Write as _;

use trimtab::config::{Config, ConfigError, ConfigInputs, KEYS, SettingKey, SettingKind};
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::{Call, Dialect, Message, Part, Reasoning, Role};
use trimtab::session::{
    Limits, ManualCompaction, Moment, PendingSummary, RecoveryOutcome, Session, Setup,
};
use trimtab::wire::overflow::{ProviderResponse, classify};

use crate::common::{limits, open, run, setup_of, summary, usage};

/// Settings that decide nothing about a window by themselves, with who reads them.
const ELSEWHERE: [(&str, &str); 10] = [
    ("preset", "it is what every other setting is tried under"),
    ("store", "whoever opens the store"),
    ("blobs", "whoever opens the store"),
    ("model", "whoever looks up the model's limits and prices"),
    ("window", "whoever opens the session: a scenario's window"),
    ("max_output", "whoever opens the session"),
    ("compaction.model", "whoever calls the summariser"),
    (
        "compaction.background",
        "whoever calls the summariser: now or meanwhile",
    ),
    ("network.ca_file", "whoever opens a connection"),
    ("network.proxy", "whoever opens a connection"),
];

/// A conversation and the way in which it is gone through.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    window: Option<u64>,
    rounds: usize,
    /// Lines of an output.
    lines: usize,
    /// The user says something after so many rounds.
    turn: usize,
    /// What the provider reports for every call, in percent of the window; 0 for our estimate.
    usage_percent: u64,
    /// True to end with a compaction by hand.
    by_hand: bool,
    /// True to end with two overflows.
    overflows: bool,
}

const PLAIN: Scenario = Scenario {
    window: Some(6_000),
    rounds: 14,
    lines: 40,
    turn: 4,
    usage_percent: 0,
    by_hand: true,
    overflows: true,
};

const SCENARIOS: [Scenario; 6] = [
    PLAIN,
    // A long turn of an agent whose provider always counts the same.
    Scenario {
        rounds: 24,
        turn: 100,
        usage_percent: 96,
        ..PLAIN
    },
    // Large outputs in a large window.
    Scenario {
        window: Some(300_000),
        rounds: 16,
        lines: 400,
        ..PLAIN
    },
    // Nobody knows the window.
    Scenario {
        window: None,
        rounds: 8,
        lines: 4_000,
        ..PLAIN
    },
    // Much talk.
    Scenario {
        window: Some(20_000),
        rounds: 60,
        lines: 12,
        turn: 1,
        ..PLAIN
    },
    // A window that never fills.
    Scenario {
        window: Some(1_000_000),
        rounds: 12,
        lines: 20,
        turn: 3,
        ..PLAIN
    },
];

/// Goes through a scenario and writes down everything that would be sent or told.
fn transcript(policy: &Policy, scenario: &Scenario) -> String {
    let setup = Setup {
        dialect: Dialect::Messages,
        limits: Limits {
            window: scenario.window,
            max_output: Some(500),
            bytes: None,
        },
        // Whether a ref is named is a setting for models without the tools.
        retrieval: None,
        ..Setup::new(policy.clone())
    };
    let mut run = ScenarioRun {
        session: open(setup),
        scenario: *scenario,
        told: String::new(),
    };
    run.go();
    run.told
}

struct ScenarioRun {
    session: Session,
    scenario: Scenario,
    told: String,
}

impl ScenarioRun {
    fn go(&mut self) {
        let known = "[Previous conversation summary] they met before";
        for said in ["begin the work", known] {
            self.session.admit(Message::user(said)).unwrap();
        }
        for number in 0..self.scenario.rounds {
            self.round(number);
            if (number + 1) % self.scenario.turn == 0 {
                self.call(Message::assistant(format!("step {number} is done")));
                self.check(Moment::BeforeFinal);
                self.check(Moment::AfterTurn);
                let next = format!("Never touch src/part_{number}/secret.rs. Go on.");
                self.session.admit(Message::user(next)).unwrap();
            }
        }
        self.send();
        if self.scenario.by_hand {
            let pending = self.session.compact(&ManualCompaction::default()).unwrap();
            self.finish(pending);
            self.send();
        }
        if self.scenario.overflows {
            self.overflow();
        }
        // A call that nobody answers.
        let call = Call::new("open", "read", "{}");
        self.call(Message::assistant("one more").with_call(call));
        self.session.admit(Message::user("stop")).unwrap();
        self.send();
    }

    fn round(&mut self, number: usize) {
        let id = format!("call_{number}");
        let thought = Part::Reasoning(Reasoning {
            text: format!("thought {number}"),
            seal: Some(format!("sig{number}")),
            ..Reasoning::default()
        });
        let tool = if number % 5 == 4 {
            "manage_todo_list"
        } else {
            "read"
        };
        let arguments = format!("{{\"path\":\"src/part_{}/mod.rs\"}}", number % 6);
        let call = Part::Call(Call::new(&id, tool, arguments));
        let said = Part::text(format!("I found that part {number} needs a change."));
        self.call(Message::new(Role::Assistant, vec![thought, said, call]));
        self.check(Moment::AfterAnswer);
        let output = Message::output(&id, self.output(number));
        self.session.admit(output).unwrap();
        self.check(Moment::AfterOutputs);
    }

    /// Outputs of several sizes; the one of every third round came before.
    fn output(&self, number: usize) -> String {
        let part = if number % 3 == 2 { number - 1 } else { number };
        let lines = self.scenario.lines * (1 + part % 4);
        let line =
            |at: usize| format!("src/part_{part}/file_{at}.rs:{at}: fn item_{part}_{at}()\n");
        (0..lines).map(line).collect()
    }

    /// The model is called and says this.
    fn call(&mut self, answer: Message) {
        self.send();
        self.session.admit(answer).unwrap();
    }

    fn send(&mut self) {
        self.check(Moment::BeforeCall);
        let ready = self.session.ready();
        let tokens = ready.as_ref().map_or(0, |ready| ready.tokens);
        let _ = writeln!(
            self.told,
            "ready {:?}",
            ready.map_err(|error| error.to_string())
        );
        if let Ok(window) = self.session.window() {
            let messages: Vec<_> = window.messages().collect();
            let _ = writeln!(
                self.told,
                "window {}",
                serde_json::to_string(&messages).unwrap()
            );
        }
        let percent = self.scenario.usage_percent;
        let window = self.scenario.window.unwrap_or_default();
        let input = if percent > 0 {
            window * percent / 100
        } else {
            tokens
        };
        self.session.record(&usage(input)).unwrap();
        self.tell_events();
    }

    fn check(&mut self, moment: Moment) {
        match self.session.check(moment) {
            Ok(pending) => self.finish(pending),
            Err(error) => {
                let _ = writeln!(self.told, "error {error}");
            }
        }
    }

    fn finish(&mut self, pending: Option<PendingSummary>) {
        let Some(mut pending) = pending else { return };
        while let Some(request) = pending.request() {
            let _ = writeln!(self.told, "asked {request:?}");
            let text = "<retain>src/part_1/mod.rs</retain><summary>parts were read</summary>";
            pending.answer(summary(text));
        }
        self.session.finish(pending).unwrap();
        self.tell_events();
    }

    fn overflow(&mut self) {
        let body = br#"{"type":"error","error":{"type":"invalid_request_error",
            "message":"input length and `max_tokens` exceed context limit: 9000 + 500 > 8000"}}"#;
        let verdict = classify(&ProviderResponse::new(400, body));
        for _ in 0..2 {
            match self.session.recover(&verdict).unwrap() {
                RecoveryOutcome::Retry => {}
                RecoveryOutcome::Summarise(pending) => self.finish(Some(pending)),
                RecoveryOutcome::GiveUp => {
                    let _ = writeln!(self.told, "gave up");
                }
            }
            let ready = self.session.ready().map_err(|error| error.to_string());
            let _ = writeln!(self.told, "after an overflow {ready:?}");
            self.tell_events();
        }
    }

    fn tell_events(&mut self) {
        for event in self.session.events() {
            let _ = writeln!(self.told, "{event:?}");
        }
    }
}

/// Values that a setting can be tried with.
fn values(key: &SettingKey) -> Vec<String> {
    let list = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    match (key.name, key.kind) {
        ("views.default", _) => list(&["{ shape = \"prefix\", chars = 50 }"]),
        ("views.tools", _) => list(&["[{ tool = \"read*\", shape = \"prefix\", chars = 50 }]"]),
        ("views.protected", _) => list(&["[\"read*\"]"]),
        ("compaction.keep", _) => list(&["[{ keep = \"recent_messages\", messages = 1 }]"]),
        ("compaction.placement", _) => list(&[
            "{ placement = \"message\", prefix = \"Before: \" }",
            "{ placement = \"system\", prefix = \"Before: \" }",
        ]),
        ("compaction.summary_prefixes", _) => {
            list(&["[]", "[\"[Previous conversation summary]\"]"])
        }
        (_, SettingKind::Switch) => list(&["true", "false"]),
        (_, SettingKind::Number) => list(&[
            "0", "1", "2", "5", "10", "20", "40", "64", "90", "99", "300", "1000", "20000",
            "100000",
        ]),
        (_, SettingKind::Choice(words)) => list(words),
        (_, SettingKind::Choices(words)) => {
            let one = words.iter().map(|word| format!("[\"{word}\"]"));
            one.collect()
        }
        (_, SettingKind::Conditions) => list(&["[\"messages > 5\"]", "[\"log > 3000\"]"]),
        (_, SettingKind::Texts) => list(&["[\"mention the weather\"]"]),
        _ => list(&["Say what the weather was like."]),
    }
}

fn load(preset: &str, setting: Option<(&str, &str)>) -> Result<Policy, ConfigError> {
    let mut inputs = ConfigInputs::default();
    inputs.set(&format!("preset={preset}"), "--set");
    if let Some((key, value)) = setting {
        inputs.set(&format!("{key}={value}"), "--set");
    }
    Config::load(&inputs).map(|config| config.policy)
}

/// What is wrong with a setting under a preset, if something is.
fn fault(key: &SettingKey, preset: &str, before: &mut HashMap<usize, String>) -> Option<String> {
    let base = load(preset, None).unwrap();
    let (mut tried, mut refused) = (Vec::new(), false);
    for value in values(key) {
        match load(preset, Some((key.name, &value))) {
            Ok(policy) if policy != base => tried.push(policy),
            Ok(_) => {}
            // Refused, with the reason.
            Err(ConfigError::Bad(_)) => refused = true,
            Err(error) => panic!("{preset}: {} = {value}: {error}", key.name),
        }
    }
    if tried.is_empty() {
        let text = format!("{preset}: no value of {} was tried", key.name);
        return (!refused).then_some(text);
    }
    for (at, scenario) in SCENARIOS.iter().enumerate() {
        let same = before
            .entry(at)
            .or_insert_with(|| transcript(&base, scenario));
        if tried
            .iter()
            .any(|policy| transcript(policy, scenario) != *same)
        {
            return None;
        }
    }
    Some(format!(
        "{preset}: {} does nothing and is not refused",
        key.name
    ))
}

#[test]
fn every_setting_changes_a_request_under_every_preset_that_accepts_it() {
    let faults: Vec<String> = std::thread::scope(|scope| {
        let presets = PRESETS.iter().map(|preset| {
            scope.spawn(|| {
                let mut before = HashMap::new();
                let is_ours =
                    |key: &&SettingKey| ELSEWHERE.iter().all(|(name, _)| *name != key.name);
                let keys = KEYS.iter().filter(is_ours);
                keys.filter_map(|key| fault(key, preset.name, &mut before))
                    .collect::<Vec<_>>()
            })
        });
        let running: Vec<_> = presets.collect();
        let done = running.into_iter().map(|thread| thread.join().unwrap());
        done.flatten().collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn setting_without_effect_is_refused_with_the_reason() {
    let refused = |preset: &str, key: &str, value: &str| {
        let error = load(preset, Some((key, value))).unwrap_err();
        error.to_string()
    };
    let text = refused("refs", "ageing.prefix.chars", "100");
    assert!(text.contains("ageing.prefix.enabled is false"), "{text}");
    let text = refused("none", "compaction.keep_percent", "30");
    assert!(text.contains("compaction.enabled is false"), "{text}");
}

/// What the window shows of an output of so many lines that `read_file` gave back.
fn shown(setting: &str, value: &str) -> usize {
    let policy = load("steady", Some((setting, value))).unwrap();
    let mut session = open(setup_of(policy, limits(100_000, 1)));
    let line = |at: usize| format!("line {at} of the file\n");
    let text: String = (0..2_000).map(line).collect();
    run(&mut session, Call::new("c", "read_file", "{}"), text);
    let window = session.window().unwrap();
    let shown = window.messages().last().unwrap().outputs().next().unwrap();
    shown.text().len()
}

#[test]
fn views_hold_under_steady() {
    let tools = "[{ tool = \"read_*\", shape = \"prefix\", chars = 50 }]";
    assert!(shown("views.tools", tools) < 200);
    assert!(shown("views.default.cap", "500") <= 500);
    assert!(shown("views.default.cap", "60000") > 10_000);
}
