//! A call costs what is new since the last one: one more round and the next window, on a
//! short log and on a long one.

#![expect(
    clippy::expect_used,
    reason = "a benchmark may stop where a test would"
)]

use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::window::Projection;
use trimtab_model::{Call, Dialect, Message};
use trimtab_testkit::bench::BenchComparison;

/// Rounds measured at a time.
const ROUNDS: usize = 5;

fn main() {
    for dialect in Dialect::ALL {
        BenchComparison::new(format!("one more round and its window, {dialect}"), 41)
            .candidate("at 500 messages", step(dialect, 500))
            .candidate("at 5,000 messages", step(dialect, 5_000))
            .candidate("at 50,000 messages", step(dialect, 50_000))
            .run();
    }
}

/// A closure that goes on from a log of `messages`, some rounds at a time.
fn step(dialect: Dialect, messages: usize) -> impl FnMut() -> usize {
    let mut projection = Projection::new(NormaliseOptions::for_dialect(dialect));
    projection.admit(Message::system("be brief"));
    projection.admit(Message::user("begin"));
    let mut round = 0;
    while projection.log().len() < messages {
        add_round(&mut projection, round);
        round += 1;
        projection.window().expect("a valid log");
    }
    move || {
        for _ in 0..ROUNDS {
            add_round(&mut projection, round);
            round += 1;
            projection.window().expect("a valid log");
        }
        projection.log().len()
    }
}

fn add_round(projection: &mut Projection, round: usize) {
    let id = format!("call_{round}");
    projection.admit(Message::assistant("next").with_call(Call::new(&id, "read", "{}")));
    projection.admit(Message::output(&id, "a line of output\n".repeat(20)));
}
