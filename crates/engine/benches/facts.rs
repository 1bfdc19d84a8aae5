//! Extracting facts from a log of a million tokens, beside counting its lines and beside
//! parsing it from JSON: planning a compaction must cost less than the latter.

use std::rc::Rc;

use trimtab_engine::facts;
use trimtab_model::{Call, Message};
use trimtab_testkit::bench::BenchComparison;

const SIZE: usize = 4 << 20;

fn main() {
    compare("4 MB of log lines", &|n| {
        let level = if n % 500 == 0 { "ERROR" } else { "INFO" };
        format!(
            "2026-11-15T04:{:02}:{:02} {level} worker-{} handled request {n} for /api/items/{}\n",
            n / 60 % 60,
            n % 60,
            n % 7,
            n * 31 % 9_973
        )
    });
    compare("4 MB of source", &|n| {
        format!(
            "    /// What stands for the messages of round {n}, as the model sees it.\n    \
             pub fn replace_{n}(&self, messages: &[Message], kept: &Kept) -> Option<Window> {{\n        \
             let found = messages.iter().filter(|message| message.is_empty()).count();\n        \
             self.rebuild(found.checked_sub(kept.behind.len())?, Placement::default())\n    }}\n\n"
        )
    });
    compare("4 MB of prose", &|n| {
        format!(
            "The planner looks at what was said so far and weighs every message, because a window \
             has only so much room. In step {n} nothing was found that could go, and so the whole \
             of it stayed where it was until the next call came in.\n"
        )
    });
}

fn compare(title: &str, line: &dyn Fn(usize) -> String) {
    let messages: Rc<Vec<Message>> = Rc::new(grow(line));
    let json: Rc<str> = serde_json::to_string(&*messages).unwrap_or_default().into();
    let (counted, found) = (Rc::clone(&messages), Rc::clone(&messages));
    BenchComparison::new(title, 21)
        .candidate("parse it from JSON (serde_json)", move || {
            serde_json::from_str::<Vec<Message>>(&json).map_or(0, |messages| messages.len())
        })
        .candidate("count the newlines (memchr)", move || {
            texts(&counted, &|text| {
                memchr::memchr_iter(b'\n', text.as_bytes()).count()
            })
        })
        .candidate("extract the facts", move || {
            texts(&found, &|text| {
                let mut bytes = 0;
                facts::extract(text, &mut |fact| bytes += fact.text.len());
                bytes
            })
        })
        .run();
}

fn texts(messages: &[Message], read: &dyn Fn(&str) -> usize) -> usize {
    messages.iter().map(|message| read(&message.text())).sum()
}

/// Rounds whose outputs have 16 KB each.
fn grow(line: &dyn Fn(usize) -> String) -> Vec<Message> {
    let mut messages = vec![Message::user("begin")];
    let (mut size, mut n) = (0, 0);
    while size < SIZE {
        let id = format!("call_{n}");
        let mut text = String::new();
        while text.len() < 16 << 10 {
            text.push_str(&line(n));
            n += 1;
        }
        size += text.len();
        messages.push(Message::assistant("").with_call(Call::new(&id, "read", "{}")));
        messages.push(Message::output(id, text));
    }
    messages
}
