//! One conversation, sent in each of the three dialects.
//!
//! `cargo run -p trimtab --example three_dialects`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use trimtab::engine::policy::Policy;
use trimtab::engine::view::tools;
use trimtab::model::{Call, Dialect, Message, RawJson};
use trimtab::request;
use trimtab::session::{Session, Setup};
use trimtab::store::{MemoryStore, SessionId};
use trimtab::wire::scan::BodyScan;
use trimtab::wire::validate::validate;

fn main() -> Result<(), Box<dyn Error>> {
    for dialect in Dialect::ALL {
        let mut setup = Setup::new(Policy::preset("steady")?);
        setup.dialect = dialect;
        setup.limits.window = Some(32_000);
        let mut session =
            Session::open(Arc::new(MemoryStore::new()), SessionId::new("demo")?, setup)?;
        session.admit(Message::system("You are brief."))?;
        session.admit(Message::user("how many lines?"))?;
        let call = Call::new("c1", "wc", r#"{"path":"a.txt"}"#);
        session.admit(Message::assistant("").with_call(call))?;
        session.admit(Message::output("c1", "120"))?;
        session.ready()?;

        // The fields that hold the conversation are written for us; the others are ours.
        let window: Vec<_> = session.window()?.messages().cloned().collect();
        let tools = RawJson::of(&tools::all().map(|tool| tool.in_dialect(dialect)));
        let limit = match dialect {
            Dialect::Responses => "max_output_tokens",
            Dialect::Chat | Dialect::Messages => "max_tokens",
        };
        let mut body = format!(r#"{{"model":"m","{limit}":1000,"tools":{}"#, tools.as_str());
        for field in request::fields(&window, dialect) {
            write!(body, ",\"{}\":{}", field.name, field.value.as_str())?;
        }
        body.push('}');

        println!("{dialect}:\n{body}\n");
        let scan = BodyScan::new(body.as_bytes(), dialect).map_err(|error| error.to_string())?;
        assert!(validate(&scan).is_empty());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
