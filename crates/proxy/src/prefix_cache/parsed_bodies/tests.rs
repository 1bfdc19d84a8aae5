use super::*;
use crate::config::ProxyLimits;
use std::fmt::Write as _;

const KEY: [u8; 192] = [7; 192];
const MOST: usize = 1 << 20;

fn read<'a>(
    parsed_bodies: &ParsedBodies,
    of: (&'a str, Dialect),
    body: (&'a [u8], &'a PrefixHash),
) -> Result<BodyReading<'a>, Unscannable> {
    let known = parsed_bodies.find(of, body, &KEY);
    parsed_bodies.read(of, body, &KEY, known)
}

/// Reads a body as a new one and as one that may be known: both must be the same.
#[track_caller]
fn check(parsed_bodies: &ParsedBodies, dialect: Dialect, body: &str) -> bool {
    let fresh = parsed_bodies_of(MOST);
    let of = ("tenant", dialect);
    let bytes = body.as_bytes();
    let prefix_hash = PrefixHash::of(&KEY, bytes);
    let expected = read(&fresh, of, (bytes, &prefix_hash)).unwrap();
    let read = read(parsed_bodies, of, (bytes, &prefix_hash)).unwrap();
    let resumed = !read.known_points.is_empty();
    assert_eq!(read.fingerprints, expected.fingerprints);
    assert_eq!(read.scan.request(), expected.scan.request());
    assert_eq!(read.scan.len(), expected.scan.len());
    for at in 0..read.scan.len() {
        assert_eq!(read.scan.role(at), expected.scan.role(at), "{at}");
        assert_eq!(read.scan.parts(at), expected.scan.parts(at), "{at}");
        assert_eq!(read.scan.message(at), expected.scan.message(at), "{at}");
    }
    parsed_bodies.keep(read);
    resumed
}

fn filler(at: usize) -> String {
    format!("output {at} ").repeat(200)
}

fn chat(rounds: usize) -> String {
    let mut list = r#"{"role":"system","content":"s"},{"role":"user","content":"q"}"#.to_owned();
    for at in 0..rounds {
        write!(
            list,
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{}"}}"#,
            filler(at)
        )
        .unwrap();
    }
    format!(r#"{{"model":"m","messages":[{list}],"stream":true}}"#)
}

/// With the system behind the list, and a marker that moves along.
fn messages(rounds: usize, time: usize) -> String {
    let mut list = r#"{"role":"user","content":"q"}"#.to_owned();
    for at in 0..rounds {
        let marker = if at + 1 == rounds {
            r#","cache_control":{"type":"ephemeral"}"#
        } else {
            ""
        };
        write!(
            list,
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"c{at}","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{at}","content":"{}"{marker}}}]}}"#,
            filler(at)
        )
        .unwrap();
    }
    format!(r#"{{"model":"m","messages":[{list}],"system":"it is {time}","max_tokens":9}}"#)
}

fn responses(rounds: usize) -> String {
    let mut list = r#"{"role":"user","content":"q"}"#.to_owned();
    for at in 0..rounds {
        write!(
            list,
            r#",{{"type":"reasoning","id":"r{at}","summary":[]}},{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{at}","output":"{}"}}"#,
            filler(at)
        )
        .unwrap();
    }
    format!(r#"{{"instructions":"s","input":[{list}]}}"#)
}

#[test]
fn a_body_that_is_known_is_read_like_a_new_one() {
    let parsed_bodies = parsed_bodies_of(MOST);
    for rounds in 4..40 {
        let known = check(&parsed_bodies, Dialect::Chat, &chat(rounds));
        assert_eq!(known, rounds > 4, "{rounds}");
        let known = check(&parsed_bodies, Dialect::Messages, &messages(rounds, rounds));
        assert_eq!(known, rounds > 4, "{rounds}");
        let known = check(&parsed_bodies, Dialect::Responses, &responses(rounds));
        assert_eq!(known, rounds > 4, "{rounds}");
    }
}

#[test]
fn a_body_that_differs_somewhere_is_read_from_before_there() {
    let parsed_bodies = parsed_bodies_of(MOST);
    check(&parsed_bodies, Dialect::Chat, &chat(30));
    for at in [1, 15, 28, 29] {
        let other = chat(30).replacen(&filler(at), &filler(at).to_uppercase(), 1);
        check(&parsed_bodies, Dialect::Chat, &other);
        check(&parsed_bodies, Dialect::Chat, &chat(30));
    }
    // The client compacted: the beginning is the same, the rest is gone.
    check(&parsed_bodies, Dialect::Chat, &chat(8));
    check(&parsed_bodies, Dialect::Chat, &chat(31));
}

#[test]
fn conversations_that_differ_only_in_their_beginning_are_told_apart() {
    let parsed_bodies = parsed_bodies_of(MOST);
    let body = |topic: usize, rounds| chat(rounds).replacen("\"q\"", &format!("\"q{topic}\""), 1);
    for topic in 0..8 {
        assert!(!check(&parsed_bodies, Dialect::Chat, &body(topic, 10)));
    }
    for rounds in 11..14 {
        for topic in 0..8 {
            assert!(check(&parsed_bodies, Dialect::Chat, &body(topic, rounds)));
        }
    }
}

#[test]
fn a_body_that_breaks_off_is_refused_as_ever() {
    let parsed_bodies = parsed_bodies_of(MOST);
    let body = chat(20);
    check(&parsed_bodies, Dialect::Chat, &body);
    let broken = body.strip_suffix("e}").unwrap();
    let of = ("tenant", Dialect::Chat);
    let prefix_hash = PrefixHash::of(&KEY, broken.as_bytes());
    let resumed = read(&parsed_bodies, of, (broken.as_bytes(), &prefix_hash)).err();
    let fresh = BodyScan::new(broken.as_bytes(), Dialect::Chat).err();
    assert!(resumed.is_some() && resumed == fresh);
}

#[test]
fn cache_of_parsed_bodies_stays_within_its_memory() {
    let parsed_bodies = parsed_bodies_of(40_000);
    for at in 0..100 {
        let body = chat(20).replace("\"q\"", &format!("\"{}\"", format!("q{at}").repeat(4_000)));
        check(&parsed_bodies, Dialect::Chat, &body);
        assert!(parsed_bodies.lock_table().bytes <= 40_000);
    }
    let kept = parsed_bodies.lock_table();
    let counted = kept.by_sample.values().flatten().map(|known| known.size());
    assert_eq!(counted.sum::<usize>(), kept.bytes);
}

#[test]
fn tenants_share_nothing() {
    let parsed_bodies = parsed_bodies_of(MOST);
    check(&parsed_bodies, Dialect::Chat, &chat(10));
    let body = chat(11);
    let prefix_hash = PrefixHash::of(&KEY, body.as_bytes());
    let find = |tenant| {
        parsed_bodies.find(
            (tenant, Dialect::Chat),
            (body.as_bytes(), &prefix_hash),
            &KEY,
        )
    };
    assert!(find("other").is_none());
    assert!(find("tenant").is_some());
}

/// Memos that may take so many bytes.
fn parsed_bodies_of(bytes: usize) -> ParsedBodies {
    ParsedBodies::new(MemoryBudget::new(&ProxyLimits {
        memory_bytes: bytes * SHARE,
        ..ProxyLimits::default()
    }))
}
