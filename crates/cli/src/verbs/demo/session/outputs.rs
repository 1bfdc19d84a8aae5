//! Generates tool outputs: listings, files, matches, test logs, rows, service logs.

use std::fmt::Write as _;

use serde_json::json;

use super::words::{NumberGenerator, PARTS, THINGS, VERBS};

/// A listing of `count` files.
pub(super) fn listing(seed: u64, count: usize) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut lines: Vec<String> = (0..count)
        .map(|_| {
            let (part, verb, thing) = (dice.one(&PARTS), dice.one(&VERBS), dice.one(&THINGS));
            let folder = dice.one(&["src", "src", "src", "tests", "migrations", "docs"]);
            format!("{folder}/{part}/{verb}_{thing}_{}.rs", dice.hex(2))
        })
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines.join("\n")
}

/// A source file with `count` functions.
pub(super) fn source(seed: u64, part: &str, count: usize) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut text = format!("//! The {part} of the shop.\n\nuse crate::{part}::prelude::*;\n\n");
    for _ in 0..count {
        function(&mut dice, part, &mut text);
    }
    text
}

fn function(dice: &mut NumberGenerator, part: &str, text: &mut String) {
    let (verb, thing, other) = (dice.one(&VERBS), dice.one(&THINGS), dice.one(&THINGS));
    let limit = dice.below(900) + 100;
    let table = dice.one(&PARTS);
    // Writing into a String cannot fail.
    let _ = write!(
        text,
        "/// Tries to {verb} the {thing} of a {other}, at most {limit} at a time.\n\
         pub async fn {verb}_{thing}(pool: &Pool, {other}_id: Id) -> Result<{part}::Done, Error> {{\n    \
         let mut tx = pool.begin().await?;\n    \
         let rows = tx\n        \
         .query(\"select id, state, attempt from {table} where {other}_id = $1 limit {limit}\")\n        \
         .bind({other}_id)\n        .fetch_all()\n        .await?;\n    \
         for row in rows {{\n        \
         if row.state == State::{} {{\n            \
         tracing::debug!(id = %row.id, attempt = row.attempt, \"{verb} {thing}\");\n            \
         {table}::{verb}(&mut tx, row.id, row.attempt + 1).await?;\n        }}\n    }}\n    \
         tx.commit().await?;\n    Ok({part}::Done::new({limit}))\n}}\n\n",
        dice.one(&["Open", "Claimed", "Settled", "Failed"]),
    );
}

/// `count` lines that contain `word`.
pub(super) fn matches(seed: u64, word: &str, count: usize) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut text = String::new();
    for _ in 0..count {
        let (part, verb, thing) = (dice.one(&PARTS), dice.one(&VERBS), dice.one(&THINGS));
        let line = dice.below(600) + 1;
        let _ = writeln!(
            text,
            "src/{part}/{verb}_{thing}.rs:{line}:    let {thing} = {word}(&mut tx, {thing}_id, {}).await?;",
            dice.one(&["attempt", "None", "Some(lease)", "retry.next()"]),
        );
    }
    text
}

/// The log of a test run. `failing` lists the failing tests with their messages.
pub(super) fn tests(seed: u64, count: usize, failing: &[(&str, &str)]) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut text = format!(
        "   Compiling shop v4.{}.0\n\nrunning {count} tests\n",
        dice.below(40)
    );
    for at in 0..count {
        let (part, verb, thing) = (dice.one(&PARTS), dice.one(&VERBS), dice.one(&THINGS));
        let _ = writeln!(text, "test {part}::tests::{verb}_{thing}_{at} ... ok");
    }
    for (name, _) in failing {
        let _ = writeln!(text, "test {name} ... FAILED");
    }
    text.push_str("\nfailures:\n\n");
    for (name, says) in failing {
        let _ = writeln!(text, "---- {name} stdout ----\n{says}\n");
    }
    let (passed, failed) = (count, failing.len());
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let _ = writeln!(
        text,
        "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored"
    );
    text
}

/// Rows of a query as JSON. `first` appears in the first row.
pub(super) fn rows(seed: u64, count: usize, first: &str) -> String {
    let mut dice = NumberGenerator::new(seed);
    let rows: Vec<_> = (0..count)
        .map(|at| {
            let order = if at == 0 { first.to_owned() } else { format!("ord_{}", dice.hex(10)) };
            json!({
                "order_id": order,
                "charge_id": format!("ch_{}", dice.hex(16)),
                "attempt": dice.below(3) + 1,
                "amount_cents": dice.below(90_000) + 500,
                "state": dice.one(&["settled", "settled", "settled", "open", "failed"]),
                "created": format!("2026-03-{:02}T{:02}:{:02}:{:02}Z", dice.below(28) + 1, dice.below(24), dice.below(60), dice.below(60)),
            })
        })
        .collect();
    serde_json::to_string(&rows).unwrap_or_default()
}

/// Lines of a service's log, with `hidden` in the middle.
pub(super) fn service_log(seed: u64, count: usize, hidden: &str) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut text = String::new();
    for at in 0..count {
        let (part, verb, thing) = (dice.one(&PARTS), dice.one(&VERBS), dice.one(&THINGS));
        let (minute, second, milli) = (at / 60 % 60, at % 60, dice.below(1_000));
        let level = dice.one(&["INFO", "INFO", "INFO", "DEBUG", "WARN"]);
        let _ = writeln!(
            text,
            "2026-03-14T02:{minute:02}:{second:02}.{milli:03}Z {level} {part}: {verb} {thing} request={} ms={}",
            dice.hex(8),
            dice.below(900),
        );
        if at == count / 2 {
            let _ = writeln!(
                text,
                "2026-03-14T02:{minute:02}:{second:02}.{milli:03}Z {hidden}"
            );
        }
    }
    text
}

/// Commits, the newest first.
pub(super) fn commits(seed: u64, count: usize) -> String {
    let mut dice = NumberGenerator::new(seed);
    let mut text = String::new();
    for _ in 0..count {
        let (part, verb, thing) = (dice.one(&PARTS), dice.one(&VERBS), dice.one(&THINGS));
        let (author, day) = (
            dice.one(&["ada", "grace", "linus", "barbara"]),
            dice.below(28) + 1,
        );
        let _ = writeln!(
            text,
            "commit {}\nAuthor: {author}\nDate:   2026-03-{day:02}\n\n    {part}: {verb} the {thing} once\n\n src/{part}/{verb}_{thing}.rs | {} ++--\n",
            dice.hex(40),
            dice.below(80) + 1,
        );
    }
    text
}
