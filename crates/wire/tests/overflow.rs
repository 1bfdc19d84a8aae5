//! How well overflow is told from its look-alikes, over tables of error bodies.
//!
//! `data/overflow.json` are bodies that the rules were made from. `data/overflow_wordings.json` and
//! `data/overflow_lookalikes.json` are bodies of many providers, from public reports and their own
//! documentation, collected without a look at the rules. `data/overflow_paraphrases.json` says the
//! same things in words of nobody in particular. A table beside the workspace, or the one that
//! `TRIMTAB_OVERFLOW_ERRORS` names, is judged too.
//!
//! Each table has to reach 98 % recall, at most 1 % false positives and 98 % right actions. So has
//! leaving one provider out, over all tables: every pattern is taken away that only this provider's
//! bodies need, and its bodies are judged by what is left. `TRIMTAB_OVERFLOW_RULES` names rules
//! that are judged instead of ours.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test with a harness of its own: it reads tables, and its figures are what it is for"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;
use trimtab_wire::overflow::{
    OverflowAction, OverflowKind, OverflowRules, OverflowVerdict, ProviderResponse,
};

/// Our own tables.
const OURS: [&str; 4] = [
    "tests/data/overflow.json",
    "tests/data/overflow_wordings.json",
    "tests/data/overflow_lookalikes.json",
    "tests/data/overflow_paraphrases.json",
];
const SHARED: &str = "../../../shared/overflow_errors.json";
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

    fn judge(&self, rules: &OverflowRules) -> OverflowVerdict {
        let body = self.bytes();
        let response = ProviderResponse::new(self.status.unwrap_or(200), &body);
        // Overflow that only usage shows takes a caller who knows the window.
        let window = self.limit_tokens.unwrap_or(KNOWN_WINDOW);
        let silent = self.transport == "usage";
        rules.classify(&ProviderResponse {
            window: silent.then_some(window),
            ..response
        })
    }

    /// Whether the action is the one that helps, in the words of the table.
    fn accepts(&self, action: OverflowAction) -> bool {
        // Mending the conversation is no question of its size: the table has many words for it.
        let action = match action {
            OverflowAction::Repair | OverflowAction::StripReasoning => OverflowAction::None,
            action => action,
        };
        expected(&self.recover).contains(&action)
    }
}

/// The table's words for what helps, in ours.
fn expected(recover: &str) -> &'static [OverflowAction] {
    match recover {
        "backoff_or_shrink" => &[OverflowAction::BackOff, OverflowAction::Compact],
        "backoff_or_fail" => &[OverflowAction::BackOff, OverflowAction::None],
        "drop_oldest_items" | "detect_usage_over_window" => &[OverflowAction::Compact],
        "clamp_max_tokens_or_fail" => &[OverflowAction::LowerReserve],
        _ if recover.starts_with("clamp") || recover.starts_with("lower") => {
            &[OverflowAction::LowerReserve]
        }
        _ if recover.contains("compact") => &[OverflowAction::Compact],
        _ if recover.contains("image") || recover.contains("downscale") => {
            &[OverflowAction::ShrinkBytes]
        }
        _ if recover.starts_with("shrink") => &[OverflowAction::ShrinkBytes],
        _ if recover.starts_with("backoff") || recover.starts_with("retry") => {
            &[OverflowAction::BackOff]
        }
        _ => &[OverflowAction::None],
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
    fn add(&mut self, entry: &Entry, verdict: &OverflowVerdict) {
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

    /// Whether it reaches the aims; says so.
    fn is_good(&self, name: &str) -> bool {
        let is_good =
            self.recall() >= 98.0 && self.false_positives() <= 1.0 && self.action() >= 98.0;
        println!(
            "{}: {name}: recall {:.1} %, false positives {:.1} %, action {:.1} %",
            if is_good { "passed" } else { "FAILED" },
            self.recall(),
            self.false_positives(),
            self.action()
        );
        is_good
    }
}

fn percent(part: usize, whole: usize, of_none: f64) -> f64 {
    if whole == 0 {
        of_none
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// A table, by its path from this crate.
fn read_table(path: &str) -> Option<Vec<Entry>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).expect("a table of error bodies"))
}

/// Our tables, and the one that somebody else brings.
fn tables() -> Vec<(String, Vec<Entry>)> {
    let other = std::env::var("TRIMTAB_OVERFLOW_ERRORS");
    let ours = OURS.map(|path| (path.to_owned(), read_table(path).expect("our own table")));
    let mut tables = Vec::from(ours);
    match other {
        Ok(path) => {
            let table = read_table(&path).expect("the table named by the environment");
            tables.push((path, table));
        }
        Err(_) => tables.extend(read_table(SHARED).map(|table| (SHARED.to_owned(), table))),
    }
    tables
}

fn rules() -> OverflowRules {
    match std::env::var("TRIMTAB_OVERFLOW_RULES") {
        Ok(path) => {
            let text = std::fs::read_to_string(path).expect("the rules named by the environment");
            OverflowRules::parse(&text).expect("rules that can be used")
        }
        Err(_) => OverflowRules::embedded().clone(),
    }
}

fn main() -> ExitCode {
    let rules = rules();
    let tables = tables();
    let mut passed = true;
    for (name, entries) in &tables {
        println!("\n{} bodies of {name}", entries.len());
        passed &= judge_all(entries, &rules).is_good(name);
        figures(entries, &rules);
    }
    let all: Vec<Entry> = tables
        .into_iter()
        .flat_map(|(_, entries)| entries)
        .collect();
    passed &= leave_one_out(&all, &rules).is_good("leave one provider out");
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Judges every body and names those that came out wrong.
fn judge_all(entries: &[Entry], rules: &OverflowRules) -> Score {
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
fn figures(entries: &[Entry], rules: &OverflowRules) {
    let mut limit = (0, 0, 0);
    let mut actual = (0, 0, 0);
    for entry in entries
        .iter()
        .filter(|entry| entry.overflow && entry.transport != "usage")
    {
        let verdict = entry.judge(rules);
        // The table has no figures in bytes.
        if verdict.kind == OverflowKind::Bytes {
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
fn leave_one_out(entries: &[Entry], rules: &OverflowRules) -> Score {
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
    sum
}

fn row(name: &str, score: &Score) {
    println!(
        "  {name:<26} {:>3} of {:<3}      {:>3} of {:<3}     {:>3} of {:<3}",
        score.found, score.overflows, score.mistaken, score.others, score.actions, score.entries
    );
}
