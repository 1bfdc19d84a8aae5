//! The steps of the demo's session.

use serde_json::{Value, json};

use super::outputs::{commits, listing, matches, rows, service_log, source, tests};
use super::{DemoRound, DemoSession, DemoStep, DemoToolCall};

/// The first order that was charged twice: appears in an early output and is asked for at the end.
const FIRST_ORDER: &str = "ord_7f3a91c04e";
/// The log line that reveals the cause.
const CAUSE: &str =
    "ERROR queue: lease expired request=5b1e77aa worker=w-17 lease_ms=30000 redelivered=true";
/// The failing test.
const FAILING: (&str, &str) = (
    "payments::tests::a_redelivered_order_is_charged_once",
    "thread 'payments::tests::a_redelivered_order_is_charged_once' panicked at src/payments/tests.rs:412:9:\n\
     assertion `left == right` failed\n  left: 2\n right: 1",
);
/// The migration that CI rejects.
const MIGRATION: (&str, &str) = (
    "migrations::tests::every_migration_can_be_undone",
    "thread 'migrations::tests::every_migration_can_be_undone' panicked at tests/migrations/undo.rs:58:5:\n\
     migration 0142_charge_keys has no down.sql",
);

/// Builds the session.
pub(super) fn tell() -> DemoSession {
    let mut story = DemoStory::default();
    search_for_the_cause(&mut story);
    fix(&mut story);
    repair_the_build(&mut story);
    write_it_up(&mut story);
    DemoSession {
        system: "You are a careful software engineer in the repository of a web shop. \
            Look before you change anything, run the tests after every change, and say \
            briefly what you found."
            .to_owned(),
        steps: story.steps,
    }
}

fn search_for_the_cause(story: &mut DemoStory) {
    story.user("Some customers were charged twice for one order in the night to March 14. Find out why. Do not touch src/ledger.");
    story.call(
        "I look around first.",
        "list_files",
        json!({"path": "."}),
        listing(1, 700),
    );
    story.call(
        "Where are charges made?",
        "search",
        json!({"text": "charge_card"}),
        matches(2, "charge_card", 160),
    );
    story.call(
        "The payments part.",
        "read_file",
        json!({"path": "src/payments/charge.rs"}),
        source(3, "payments", 46),
    );
    story.call(
        "Who calls it: the queue.",
        "read_file",
        json!({"path": "src/queue/worker.rs"}),
        source(4, "queue", 40),
    );
    story.call(
        "How many orders were hit?",
        "query",
        json!({"sql": "select * from charges where duplicate"}),
        rows(5, 240, FIRST_ORDER),
    );
    story.call(
        "What happened in that night?",
        "run",
        json!({"command": "journalctl -u shop-worker --since 02:00"}),
        service_log(6, 420, CAUSE),
    );
    story.call(
        "The lease expired and the order was delivered again.",
        "search",
        json!({"text": "lease_ms"}),
        matches(7, "lease_ms", 90),
    );
    story.call(
        "How is the lease renewed?",
        "read_file",
        json!({"path": "src/queue/lease.rs"}),
        source(8, "queue", 34),
    );
    story.call(
        "What changed before that night?",
        "run",
        json!({"command": "git log --stat -80"}),
        commits(9, 80),
    );
    story.call(
        "Is a retry told apart from a redelivery?",
        "read_file",
        json!({"path": "src/payments/retry.rs"}),
        source(10, "payments", 30),
    );
    story.call(
        "And the webhooks?",
        "read_file",
        json!({"path": "src/webhooks/payment.rs"}),
        source(11, "webhooks", 28),
    );
    story.says("An order whose lease expires after 30 seconds is delivered to a second worker while the first still charges the card. `charge_card` has no idempotency key, so both charges succeed.");
}

fn fix(story: &mut DemoStory) {
    story.user(
        "Good. Give every charge an idempotency key made of order and attempt, and add a test.",
    );
    story.call(
        "I write the test first.",
        "edit_file",
        json!({"path": "src/payments/tests.rs"}),
        "replaced 1 place".to_owned(),
    );
    story.call(
        "It must fail now.",
        "run",
        json!({"command": "cargo test payments"}),
        tests(12, 380, &[FAILING]),
    );
    story.call(
        "It does. The type of a charge:",
        "read_file",
        json!({"path": "src/payments/types.rs"}),
        source(13, "payments", 36),
    );
    story.call(
        "The client of the card provider:",
        "read_file",
        json!({"path": "src/payments/provider.rs"}),
        source(14, "payments", 42),
    );
    story.call(
        "Who makes charges besides?",
        "search",
        json!({"text": "Charge::new"}),
        matches(15, "Charge::new", 140),
    );
    story.call(
        "The key goes into the constructor.",
        "edit_file",
        json!({"path": "src/payments/types.rs"}),
        "replaced 3 places".to_owned(),
    );
    story.call(
        "And to the provider.",
        "edit_file",
        json!({"path": "src/payments/provider.rs"}),
        "replaced 2 places".to_owned(),
    );
    story.call(
        "Again.",
        "run",
        json!({"command": "cargo test payments"}),
        tests(16, 381, &[]),
    );
    story.call(
        "Refunds build charges, too.",
        "read_file",
        json!({"path": "src/refunds/undo.rs"}),
        source(17, "refunds", 32),
    );
    story.call(
        "The rest of the tests.",
        "run",
        json!({"command": "cargo test"}),
        tests(18, 720, &[MIGRATION]),
    );
    story.says("Every charge carries the key now and the new test passes. One other test fails: migration 0142_charge_keys has no way back.");
}

fn repair_the_build(story: &mut DemoStory) {
    story.user("CI wants a down migration. Please add it and check the other migrations, too.");
    story.call(
        "How do the others do it?",
        "list_files",
        json!({"path": "migrations"}),
        listing(19, 420),
    );
    story.call(
        "One of them:",
        "read_file",
        json!({"path": "migrations/0141_leases/down.sql"}),
        source(20, "queue", 12),
    );
    story.call(
        "The new one.",
        "edit_file",
        json!({"path": "migrations/0142_charge_keys/down.sql"}),
        "written, 14 lines".to_owned(),
    );
    story.call(
        "Do they all have one?",
        "run",
        json!({"command": "scripts/check-migrations"}),
        tests(21, 300, &[]),
    );
    story.call(
        "What would it lock?",
        "query",
        json!({"sql": "select * from pg_locks_report"}),
        rows(22, 160, "ord_0000000000"),
    );
    story.call(
        "All tests again.",
        "run",
        json!({"command": "cargo test"}),
        tests(23, 721, &[]),
    );
    story.call(
        "And the staging log.",
        "run",
        json!({"command": "journalctl -u shop-worker -n 400"}),
        service_log(24, 400, "INFO payments: duplicate charge refused by key"),
    );
    story.says("The down migration is there, all 721 tests pass, and staging refuses the second charge by its key.");
}

fn write_it_up(story: &mut DemoStory) {
    story.user("Write the report for the shop's owner: which order was hit first, on which worker, and how we noticed.");
    story.looks_up(
        "I look up the first order again.",
        FIRST_ORDER,
        "query",
        json!({"sql": "select * from customers where order_id = 'ord_7f3a91c04e'"}),
        rows(25, 40, FIRST_ORDER),
    );
    story.looks_up(
        "And the worker, from the log of that night.",
        "lease expired",
        "run",
        json!({"command": "hostinfo w-17"}),
        service_log(26, 120, "INFO queue: worker w-17 started"),
    );
    story.call(
        "Who noticed?",
        "search",
        json!({"text": "charged twice"}),
        matches(27, "charged_twice", 60),
    );
    story.call(
        "The template for reports.",
        "read_file",
        json!({"path": "docs/report.md"}),
        source(28, "docs", 16),
    );
    story.call(
        "The report.",
        "edit_file",
        json!({"path": "docs/2026-03-14.md"}),
        "written, 61 lines".to_owned(),
    );
    story.call(
        "A last look at everything.",
        "run",
        json!({"command": "git diff --stat && cargo test"}),
        tests(29, 721, &[]),
    );
    story.says("The report is in docs/2026-03-14.md: order ord_7f3a91c04e was hit first, on worker w-17, whose lease of 30,000 ms expired while it waited for the card provider.");
}

#[derive(Default)]
struct DemoStory {
    steps: Vec<DemoStep>,
    calls: usize,
}

impl DemoStory {
    fn user(&mut self, text: &str) {
        self.steps.push(DemoStep::User(text.to_owned()));
    }

    fn says(&mut self, text: &str) {
        self.steps.push(DemoStep::Model(DemoRound {
            text: text.to_owned(),
            ..DemoRound::default()
        }));
    }

    fn call(&mut self, text: &str, tool: &'static str, arguments: Value, output: String) {
        self.calls += 1;
        let called = DemoToolCall {
            id: format!("toolu_{:04}", self.calls),
            tool,
            arguments,
            output,
        };
        self.steps.push(DemoStep::Model(DemoRound {
            text: text.to_owned(),
            calls: vec![called],
            looks_up: None,
        }));
    }

    fn looks_up(
        &mut self,
        text: &str,
        what: &'static str,
        tool: &'static str,
        arguments: Value,
        output: String,
    ) {
        self.call(text, tool, arguments, output);
        if let Some(DemoStep::Model(round)) = self.steps.last_mut() {
            round.looks_up = Some(what);
        }
    }
}
