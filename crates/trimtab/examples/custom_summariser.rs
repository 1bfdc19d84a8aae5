//! Summaries from wherever you like: the session asks, you answer.
//!
//! `cargo run -p trimtab --example custom_summariser`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::policy::Policy;
use trimtab::model::Message;
use trimtab::session::{ManualCompaction, Session, Setup, SummariserAnswer, SummaryRequest};
use trimtab::store::{MemoryStore, SessionId};

fn main() -> Result<(), Box<dyn Error>> {
    let mut setup = Setup::new(Policy::preset("refs")?);
    setup.limits.window = Some(32_000);
    let mut session = Session::open(Arc::new(MemoryStore::new()), SessionId::new("demo")?, setup)?;
    for number in 1..=20 {
        session.admit(Message::user(format!(
            "step {number}: {}",
            "please ".repeat(50)
        )))?;
        session.admit(Message::assistant(format!(
            "done with step {number}. {}",
            "so ".repeat(50)
        )))?;
    }

    let wishes = ManualCompaction {
        instructions: "name the steps".to_owned(),
        ..ManualCompaction::default()
    };
    let mut pending = session
        .compact(&wishes)?
        .ok_or("there is something to replace")?;
    // Ask a model here: an HTTP call, another process, a person. Without an answer, or with a
    // bad one, a summary that no model wrote is used.
    while let Some(request) = pending.request() {
        pending.answer(summarise(&request));
    }
    session.finish(pending)?;

    for event in session.events() {
        println!("{:?}: {} tokens saved", event.kind, event.tokens_saved());
    }
    let texts: Vec<String> = session
        .window()?
        .messages()
        .map(|m| m.text().into_owned())
        .collect();
    println!("{}", texts.join("\n---\n"));
    assert!(texts.iter().any(|text| text.contains("steps done.")));
    Ok(())
}

/// A summariser that is no model at all.
fn summarise(request: &SummaryRequest) -> SummariserAnswer {
    let steps = request.messages.iter();
    let steps = steps
        .filter(|message| message.text().starts_with("step "))
        .count();
    SummariserAnswer::Text {
        text: format!(
            "<retain>The steps are numbered.</retain>\n<summary>The user had {steps} steps \
             done.</summary>"
        ),
        ending: SummaryEnding::Whole,
        usage: None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
