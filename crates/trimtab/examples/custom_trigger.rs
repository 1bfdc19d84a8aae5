//! When to compact is yours to say: as a condition in the policy, or in code.
//!
//! `cargo run -p trimtab --example custom_trigger`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use trimtab::engine::policy::{Moment, Policy};
use trimtab::model::Message;
use trimtab::session::{ManualCompaction, Session, SessionEventKind, Setup};
use trimtab::store::{MemoryStore, SessionId};

fn main() -> Result<(), Box<dyn Error>> {
    // As a condition: whoever can edit a settings file can write it.
    let mut policy = Policy::preset("refs")?;
    policy.compaction.moments = vec![Moment::AfterTurn];
    policy.compaction.when = vec!["messages > 12".parse()?];
    let mut by_condition = open(policy)?;
    let mut compacted = Vec::new();
    for number in 1..=10 {
        turn(&mut by_condition, number)?;
        if let Some(pending) = by_condition.check(Moment::AfterTurn)? {
            by_condition.finish(pending)?;
            compacted.push(number);
        }
    }
    println!("by condition after the turns {compacted:?}");
    assert!(!compacted.is_empty());

    // In code: whenever the user changes the subject, say.
    let mut policy = Policy::preset("refs")?;
    policy.compaction.auto = false;
    let mut by_code = open(policy)?;
    for number in 1..=10 {
        turn(&mut by_code, number)?;
        let subject_changed = number == 7;
        if subject_changed && let Some(pending) = by_code.compact(&ManualCompaction::default())? {
            by_code.finish(pending)?;
        }
    }
    let events = by_code.events();
    println!(
        "in code: {} messages left",
        by_code.window()?.messages().len()
    );
    assert!(
        events
            .iter()
            .any(|event| event.kind == SessionEventKind::Compacted)
    );
    Ok(())
}

fn open(policy: Policy) -> Result<Session, Box<dyn Error>> {
    let mut setup = Setup::new(policy);
    setup.limits.window = Some(32_000);
    let store = Arc::new(MemoryStore::new());
    Ok(Session::open(store, SessionId::new("demo")?, setup)?)
}

fn turn(session: &mut Session, number: usize) -> Result<(), Box<dyn Error>> {
    session.admit(Message::user(format!(
        "question {number}? {}",
        "why ".repeat(200)
    )))?;
    session.admit(Message::assistant(format!(
        "answer {number}. {}",
        "because ".repeat(200)
    )))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
