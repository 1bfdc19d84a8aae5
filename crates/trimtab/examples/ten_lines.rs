//! The library in ten lines: a session is given what happens and says what to send.
//!
//! `cargo run -p trimtab --example ten_lines`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use trimtab::engine::policy::Policy;
use trimtab::model::{Call, Message};
use trimtab::session::{Moment, Session, Setup};
use trimtab::store::{MemoryStore, SessionId, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let log: String = (1..=5_000).map(line).collect();

    let store = Arc::new(MemoryStore::new());
    let mut setup = Setup::new(Policy::preset("steady")?);
    setup.limits.window = Some(32_000);
    let mut session = Session::open(store.clone(), SessionId::new("demo")?, setup)?;
    session.admit(Message::user("what went wrong?"))?;
    session.admit(Message::assistant("").with_call(Call::new(
        "c1",
        "read",
        r#"{"path":"app.log"}"#,
    )))?;
    session.admit(Message::output("c1", &log))?;
    session.check(Moment::BeforeCall)?;
    let ready = session.ready()?;
    let window: Vec<_> = session.window()?.messages().cloned().collect();

    let shown = window.last().and_then(|message| message.outputs().next());
    let shown = shown.ok_or("the output is in the window")?;
    let stored = shown.stored.as_ref().ok_or("the output is in the store")?;
    println!("{} messages, about {} tokens", window.len(), ready.tokens);
    println!(
        "the output: {} of {} bytes shown",
        shown.text().len(),
        log.len()
    );
    assert!(
        shown.text().contains("ERROR"),
        "what looks like an error survives"
    );
    assert_eq!(store.get(session.id(), stored.id())?, log.as_bytes());
    Ok(())
}

fn line(number: usize) -> String {
    match number {
        4_242 => format!("{number} ERROR the disk is full\n"),
        _ => format!(
            "{number} all is well here, request served in {} ms\n",
            number % 97
        ),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
