use std::fmt::Write as _;

use trimtab::session::{Limits, Moment, Setup};
use trimtab_engine::policy::Policy;
use trimtab_model::Dialect;
use trimtab_store::{MemoryStore, SessionId, Store};

use super::*;
use crate::conversation::branch::{Branch, ComposeOptions};
use crate::prefix_cache::fingerprint::FingerprintChain;
use crate::prefix_cache::prefix_hash::PrefixHash;

const KEY: [u8; 192] = [7; 192];
const ROUNDS: usize = 60;

fn branch(dialect: Dialect, preset: &str) -> Branch {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let setup = Setup {
        dialect,
        limits: Limits {
            window: Some(16_000),
            max_output: Some(1_000),
            bytes: None,
        },
        ..Setup::new(Policy::preset(preset).unwrap())
    };
    let id = SessionId::new("s").unwrap();
    Branch::open(&store, id, setup).unwrap().unwrap()
}

/// A conversation with so many rounds, the fields of the request before or behind them.
fn body(dialect: Dialect, rounds: usize) -> String {
    let mut list = r#"{"role":"user","content":"read all of it"}"#.to_owned();
    for at in 0..rounds {
        let output = format!("{at} of it\\n").repeat(120);
        let round = match dialect {
            Dialect::Chat => format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{output}"}}"#
            ),
            Dialect::Messages => {
                let marker = if at + 1 == rounds {
                    r#","cache_control":{"type":"ephemeral"}"#
                } else {
                    ""
                };
                format!(
                    r#",{{"role":"assistant","content":[{{"type":"text","text":"now {at}"}},{{"type":"tool_use","id":"c{at}","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{at}","content":"{output}"{marker}}}]}}"#
                )
            }
            Dialect::Responses => format!(
                r#",{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{at}","output":"{output}"}}"#
            ),
        };
        write!(list, "{round}").unwrap();
    }
    match dialect {
        Dialect::Chat => format!(r#"{{"model":"m","tools":[],"messages":[{list}]}}"#),
        Dialect::Messages => format!(r#"{{"messages":[{list}],"model":"m","max_tokens":900}}"#),
        Dialect::Responses => format!(r#"{{"model":"m","input":[{list}],"stream":true}}"#),
    }
}

/// What is sent for a body, made from what was sent before where that is possible, and made
/// anew.
fn sent(branch: &mut Branch, dialect: Dialect, body: &str) -> (Option<Bytes>, Option<Bytes>) {
    let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
    let prefix_hash = PrefixHash::of(&KEY, body.as_bytes());
    branch
        .admit(&scan, &FingerprintChain::of(&scan, &KEY))
        .unwrap();
    let pending = branch.check(&[Moment::BeforeCall]);
    pending.map(|pending| branch.session().finish(pending).unwrap());
    let options = ComposeOptions {
        offer: true,
        ..ComposeOptions::default()
    };
    let hashes = prefix_hash.prefix_hashes(&KEY, body.as_bytes());
    let outgoing = branch.compose(&scan, &options, Some(hashes)).unwrap();
    let last = branch.last_sent.take();
    let anew = branch.compose(&scan, &options, None).unwrap();
    branch.last_sent = last;
    (outgoing.body, anew.body)
}

#[test]
fn what_goes_on_from_the_last_body_is_what_would_be_made_anew() {
    let dialects = [Dialect::Chat, Dialect::Messages, Dialect::Responses];
    // One that cuts outputs, and one that puts a summary into the system's field.
    for (dialect, preset) in dialects
        .iter()
        .flat_map(|dialect| ["steady", "turns"].map(|preset| (*dialect, preset)))
    {
        let mut branch = branch(dialect, preset);
        let mut edited = 0;
        for rounds in 1..ROUNDS {
            let body = body(dialect, rounds);
            let (outgoing, anew) = sent(&mut branch, dialect, &body);
            assert_eq!(outgoing, anew, "{dialect:?}, {preset}, round {rounds}");
            edited += usize::from(outgoing.is_some());
        }
        assert!(edited > ROUNDS / 3, "{dialect:?}, {preset}: {edited}");
    }
}

#[test]
fn what_stands_before_the_cut_is_not_made_again() {
    let dialect = Dialect::Chat;
    let mut branch = branch(dialect, "steady");
    let mut taken_over = 0;
    for rounds in 1..ROUNDS {
        // A sign in what was sent last shows whether it is taken over.
        if let Some(last) = &mut branch.last_sent {
            let text = String::from_utf8(last.body.to_vec()).unwrap();
            last.body = Bytes::from(text.replacen("read all of it", "READ ALL OF IT", 1));
        }
        let (outgoing, _) = sent(&mut branch, dialect, &body(dialect, rounds));
        let sent = outgoing.unwrap_or_default();
        let sign = sent.windows(14).any(|bytes| bytes == b"READ ALL OF IT");
        taken_over += usize::from(sign);
        branch.last_sent = branch.last_sent.take().filter(|_| !sign);
    }
    assert!(taken_over > ROUNDS / 6, "{taken_over}");
}

#[test]
fn another_beginning_is_made_anew() {
    let dialect = Dialect::Chat;
    let mut branch = branch(dialect, "steady");
    let mut rounds = 1;
    while branch.last_sent.is_none() {
        sent(&mut branch, dialect, &body(dialect, rounds));
        rounds += 1;
    }
    // The same messages, and another word before them.
    let other = body(dialect, rounds).replacen(r#""model":"m""#, r#""model":"o""#, 1);
    let (outgoing, anew) = sent(&mut branch, dialect, &other);
    assert_eq!(outgoing, anew);
    let text = String::from_utf8(outgoing.unwrap().to_vec()).unwrap();
    assert!(text.contains(r#""model":"o""#));
}
