//! How well overflow is told from its look-alikes, over a table of error bodies.
//!
//! The table is the one that `TRIMTAB_OVERFLOW_ERRORS` names, else the one beside the workspace,
//! else our own. It fails below 98 % recall, above 1 % false positives or below 98 % right actions.
//! The leave-one-provider-out figures take away every pattern that only this provider's bodies
//! need, and judge its bodies by what is left.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test with a harness of its own: its figures are what it is for"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;
use trimtab_wire::overflow::{Action, Kind, Response, Rules, Verdict};

const OWN: &str = include_str!("data/overflow.json");
const SHARED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/overflow_errors.json"
);
/// What a caller knows about a model whose server cuts prompts without a word.
const KNOWN_WINDOW: u64 = 200_000;

/// One body of the table.
#[derive(Deserialize)]
struct Entry {
    provider: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    body: Value,
    overflow: bool,
    kind: String,
    recover: String,
    limit_tokens: Option<u64>,
    actual_tokens: Option<u64>,
    #[serde(default)]
    transport: String,
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        match &self.body {
            Value::String(text) => text.clone().into_bytes(),
            Value::Null => Vec::new(),
            value => value.to_string().into_bytes(),
        }
    }

    fn judge(&self, rules: &Rules) -> Verdict {
        let body = self.bytes();
        let response = Response::new(self.status.unwrap_or(200), &body);
        // Overflow that only usage shows takes a caller who knows the window.
        let window = self.limit_tokens.unwrap_or(KNOWN_WINDOW);
        let silent = self.transport == "usage";
        rules.classify(&if silent {
            response.window(window)
        } else {
            response
        })
    }

    /// Whether the action is the one that helps, in the words of the table.
    fn accepts(&self, action: Action) -> bool {
        // Mending the conversation is no question of its size: the table has many words for it.
        let action = match action {
            Action::Repair | Action::StripReasoning => Action::None,
            action => action,
        };
        expected(&self.recover).contains(&action)
    }
}

/// The table's words for what helps, in ours.
fn expected(recover: &str) -> &'static [Action] {
    match recover {
        "backoff_or_shrink" => &[Action::BackOff, Action::Compact],
        "drop_oldest_items" | "detect_usage_over_window" => &[Action::Compact],
        "clamp_max_tokens_or_fail" => &[Action::LowerReserve],
        _ if recover.starts_with("clamp") || recover.starts_with("lower") => {
            &[Action::LowerReserve]
        }
        _ if recover.contains("compact") => &[Action::Compact],
        _ if recover.contains("image") || recover.contains("downscale") => &[Action::ShrinkBytes],
        _ if recover.starts_with("shrink") => &[Action::ShrinkBytes],
        _ if recover.starts_with("backoff") || recover.starts_with("retry") => &[Action::BackOff],
        _ => &[Action::None],
    }
}

/// Counted verdicts.
#[derive(Default)]
struct Score {
    overflows: usize,
    found: usize,
    others: usize,
    mistaken: usize,
    actions: usize,
    entries: usize,
}

impl Score {
    fn add(&mut self, entry: &Entry, verdict: &Verdict) {
        let flagged = verdict.is_overflow();
        self.entries += 1;
        self.overflows += usize::from(entry.overflow);
        self.found += usize::from(entry.overflow && flagged);
        self.others += usize::from(!entry.overflow);
        self.mistaken += usize::from(!entry.overflow && flagged);
        self.actions += usize::from(entry.accepts(verdict.action));
    }

    fn recall(&self) -> f64 {
        percent(self.found, self.overflows, 100.0)
    }

    fn false_positives(&self) -> f64 {
        percent(self.mistaken, self.others, 0.0)
    }

    fn action(&self) -> f64 {
        percent(self.actions, self.entries, 100.0)
    }
}

fn percent(part: usize, whole: usize, of_none: f64) -> f64 {
    if whole == 0 {
        of_none
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the table is named by the environment"
)]
fn table() -> (String, String) {
    if let Ok(path) = std::env::var("TRIMTAB_OVERFLOW_ERRORS") {
        let text = std::fs::read_to_string(&path).expect("the table named by the environment");
        return (path, text);
    }
    match std::fs::read_to_string(SHARED) {
        Ok(text) => ("the table beside the workspace".to_owned(), text),
        Err(_) => ("our own table".to_owned(), OWN.to_owned()),
    }
}

fn main() -> ExitCode {
    let (name, text) = table();
    let entries: Vec<Entry> = serde_json::from_str(&text).expect("a table of error bodies");
    let own: Vec<Entry> = serde_json::from_str(OWN).expect("our own table");
    println!("\n{} bodies of {name}", entries.len());
    let rules = Rules::embedded();
    let score = judge_all(&entries, rules);
    figures(&entries, rules);
    leave_one_out(&entries, rules);
    println!("\n{} bodies of our own table", own.len());
    let own = judge_all(&own, rules);
    let checks = [
        score.recall() >= 98.0,
        score.false_positives() <= 1.0,
        score.action() >= 98.0,
        own.found == own.overflows,
        own.mistaken == 0,
        own.actions == own.entries,
    ];
    let passed = checks.iter().filter(|passed| **passed).count();
    println!("\n{passed} passed, {} failed", checks.len() - passed);
    println!(
        "overflow: recall {:.1} %, false positives {:.1} %, action {:.1} %",
        score.recall(),
        score.false_positives(),
        score.action()
    );
    if passed == checks.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Judges every body and names those that came out wrong.
fn judge_all(entries: &[Entry], rules: &Rules) -> Score {
    let mut score = Score::default();
    for entry in entries {
        let verdict = entry.judge(rules);
        score.add(entry, &verdict);
        if entry.overflow != verdict.is_overflow() || !entry.accepts(verdict.action) {
            println!(
                "  wrong: {} {} {}/{}: {:?} {:?} by `{}` {:?}: {}",
                entry.provider,
                entry.status.unwrap_or_default(),
                entry.kind,
                entry.recover,
                verdict.kind,
                verdict.action,
                verdict.rule,
                verdict.patterns,
                brief(&entry.body)
            );
        }
    }
    println!(
        "  {} of {} overflows found, {} of {} look-alikes mistaken, {} of {} actions right",
        score.found, score.overflows, score.mistaken, score.others, score.actions, score.entries
    );
    score
}

fn brief(body: &Value) -> String {
    body.to_string().chars().take(200).collect()
}

/// How often limit and size are read right, and how often they are made up.
fn figures(entries: &[Entry], rules: &Rules) {
    let mut limit = (0, 0, 0);
    let mut actual = (0, 0, 0);
    for entry in entries
        .iter()
        .filter(|entry| entry.overflow && entry.transport != "usage")
    {
        let verdict = entry.judge(rules);
        // The table has no figures in bytes.
        if verdict.kind == Kind::Bytes {
            continue;
        }
        let mut wrong = false;
        wrong |= compare(&mut limit, entry.limit_tokens, verdict.sizes.limit);
        wrong |= compare(&mut actual, entry.actual_tokens, verdict.sizes.actual);
        if wrong {
            println!("  figures: {:?} of {}", verdict.sizes, brief(&entry.body));
        }
    }
    for (name, (right, stated, invented)) in [("limits", limit), ("sizes", actual)] {
        println!("  {name}: {right} of {stated} right, {invented} made up");
    }
}

fn compare(count: &mut (usize, usize, usize), stated: Option<u64>, read: Option<u64>) -> bool {
    count.0 += usize::from(stated.is_some() && stated == read);
    count.1 += usize::from(stated.is_some());
    count.2 += usize::from(stated.is_none() && read.is_some());
    stated != read
}

/// For each provider, how its bodies fare without the patterns that only they need.
fn leave_one_out(entries: &[Entry], rules: &Rules) {
    let mut users: BTreeMap<(String, usize), BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        let verdict = entry.judge(rules);
        for pattern in verdict.patterns {
            users
                .entry((verdict.rule.clone(), pattern))
                .or_default()
                .insert(&entry.provider);
        }
    }
    let providers: BTreeSet<&str> = entries.iter().map(|e| e.provider.as_str()).collect();
    let mut sum = Score::default();
    println!("\n  leave one provider out      recall   false positives   action");
    for provider in providers {
        let alone = |rule: &str, pattern| {
            let users = users.get(&(rule.to_owned(), pattern));
            users.is_some_and(|users| users.len() == 1 && users.contains(provider))
        };
        let rules = rules.without(alone);
        let mut score = Score::default();
        for entry in entries.iter().filter(|entry| entry.provider == provider) {
            let verdict = entry.judge(&rules);
            score.add(entry, &verdict);
            sum.add(entry, &verdict);
            if entry.overflow != verdict.is_overflow() {
                println!("    wrong: by `{}`: {}", verdict.rule, brief(&entry.body));
            }
        }
        row(provider, &score);
    }
    row("all", &sum);
}

fn row(name: &str, score: &Score) {
    println!(
        "  {name:<26} {:>3} of {:<3}      {:>3} of {:<3}     {:>3} of {:<3}",
        score.found, score.overflows, score.mistaken, score.others, score.actions, score.entries
    );
}
