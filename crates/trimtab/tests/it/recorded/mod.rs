//! Recorded sessions, where they are there, and sessions made like them.

mod bound;
mod faults;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Dialect, Message, Role};
use trimtab::request::fields;
use trimtab::wire::transcript::TranscriptReader;

/// A session: its name and its messages.
pub(crate) struct Recorded {
    pub(crate) id: String,
    pub(crate) log: Vec<Arc<Message>>,
}

impl Recorded {
    /// Its size, in tokens.
    pub(crate) fn tokens(&self) -> u64 {
        let messages = self.log.iter();
        messages.map(|message| Measure::of(message).tokens()).sum()
    }
}

/// The recorded sessions of up to `most` tokens; none where there is no folder of them.
pub(crate) fn recorded(most: u64) -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: no recorded sessions at {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let file = BufReader::new(File::open(&path).unwrap());
        for conversation in TranscriptReader::new(file).map(Result::unwrap) {
            found.push(Recorded {
                id: conversation.id.unwrap_or_default(),
                log: conversation.messages.into_iter().map(Arc::new).collect(),
            });
        }
    }
    found.retain(|session| session.tokens() <= most);
    found
}

/// A session of many rounds with outputs of all sizes, some of them read twice, and a question
/// now and then.
pub(crate) fn made(seed: usize) -> Recorded {
    let mut log = vec![
        Message::system("You work in a repository. ".repeat(20)),
        Message::user("tidy up the parser"),
    ];
    for round in 0..70 {
        let draw = (seed * 7919 + round * 104_729) % 1009;
        let file = format!("src/module_{}/part_{}.rs", draw % 13, draw % 29);
        let id = format!("c{round}");
        let arguments = format!("{{\"path\": \"{file}\"}}");
        log.push(Message::assistant("").with_call(Call::new(&id, "read", arguments)));
        let line = |at: usize| format!("{at}: fn item_{}_{at}() in {file}\n", draw % 17);
        let lines: String = (0..draw % 211).map(line).collect();
        log.push(Message::output(&id, lines + "end"));
        if draw % 11 == 3 {
            log.push(Message::assistant("That part is done."));
            log.push(Message::user(format!("now the part about {draw}")));
        }
    }
    log.push(Message::assistant("All of it is done."));
    Recorded {
        id: format!("made-{seed}"),
        log: log.into_iter().map(Arc::new).collect(),
    }
}

/// True if the model has something to answer: a client never asks behind an answer.
pub(crate) fn is_asked(log: &[Arc<Message>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| log.get(before));
    before.is_some_and(|message| message.role != Role::Assistant)
}

/// A request body that begins with some fields and has this window.
pub(crate) fn body_of(begins: &str, window: &[Arc<Message>], dialect: Dialect) -> String {
    let mut body = format!("{{{begins}");
    for field in fields(window, dialect) {
        write!(body, ",\"{}\":{}", field.name, field.value.as_str()).unwrap();
    }
    body + "}"
}
