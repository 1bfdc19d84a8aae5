//! One conversation, sent in each of the three dialects.
//!
//! `cargo run -p trimtab --example three_dialects`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use trimtab::engine::policy::Policy;
use trimtab::engine::view::tools;
use trimtab::model::{Call, Dialect, Message, RawJson};
use trimtab::session::{Session, Setup};
use trimtab::store::{MemoryStore, SessionId};
use trimtab::wire::scan::Scan;
use trimtab::wire::validate::validate;
use trimtab::wire::{chat, messages, responses};

fn main() -> Result<(), Box<dyn Error>> {
    for dialect in Dialect::ALL {
        let mut setup = Setup::new(Policy::preset("steady")?);
        setup.dialect = dialect;
        setup.limits.window = Some(32_000);
        let mut session =
            Session::open(Arc::new(MemoryStore::new()), SessionId::new("demo")?, setup)?;
        session.admit(Message::system("You are brief."))?;
        session.admit(Message::user("how many lines?"))?;
        session.admit(Message::assistant("").with_call(Call::new(
            "c1",
            "wc",
            r#"{"path":"a.txt"}"#,
        )))?;
        session.admit(Message::output("c1", "120"))?;
        session.ready()?;
        let window: Vec<Message> = session
            .window()?
            .messages()
            .map(|m| (**m).clone())
            .collect();
        let body = body(dialect, &window);
        println!("{dialect}:\n{body}\n");
        let scan = Scan::new(body.as_bytes(), dialect).map_err(|error| error.to_string())?;
        assert!(validate(&scan).is_empty());
    }
    Ok(())
}

/// The fields of a request that hold the conversation and our two tools.
fn body(dialect: Dialect, window: &[Message]) -> String {
    // The ref of an output is for us: a provider does not know the field.
    let mut window = window.to_vec();
    for message in &mut window {
        for part in &mut message.parts {
            if let trimtab::model::Part::Output(output) = part {
                output.stored = None;
            }
        }
    }
    let tools = RawJson::of(&tools::all().map(|tool| tool.in_dialect(dialect)));
    let conversation = match dialect {
        Dialect::Chat => {
            let entries: Vec<RawJson> = window.iter().flat_map(chat::write_message).collect();
            format!("\"messages\":{}", list(&entries))
        }
        Dialect::Responses => format!("\"input\":{}", list(&responses::write_input(&window))),
        Dialect::Messages => {
            let request = messages::write_request(&window);
            let system = request
                .system
                .map(|system| format!("\"system\":{},", system.as_str()));
            let messages = list(&request.messages);
            format!(
                "\"max_tokens\":1000,{}\"messages\":{messages}",
                system.unwrap_or_default()
            )
        }
    };
    format!(
        "{{\"model\":\"m\",\"tools\":{},{conversation}}}",
        tools.as_str()
    )
}

fn list(entries: &[RawJson]) -> String {
    let entries: Vec<&str> = entries.iter().map(RawJson::as_str).collect();
    format!("[{}]", entries.join(","))
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
