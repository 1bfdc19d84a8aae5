//! Damaged bodies: nothing panics, and every accepted body is JSON.

use proptest::prelude::*;
use trimtab_model::Dialect;
use trimtab_testkit::cases;

use crate::common::body;
use crate::properties;

/// One way to damage a body.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Double(prop::sample::Index, prop::sample::Index),
    Remove(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<prop::sample::Index>();
    // Bytes that mean something to JSON more often than others.
    let byte = prop_oneof![
        3 => prop::sample::select(b"{}[]\",:\\u0 \n1-ntf".to_vec()),
        1 => any::<u8>(),
    ];
    prop_oneof![
        4 => (at(), byte).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        1 => at().prop_map(Damage::Cut),
        2 => (at(), at()).prop_map(|(from, to)| Damage::Double(from, to)),
        2 => (at(), at()).prop_map(|(from, to)| Damage::Remove(from, to)),
    ]
}

fn damaged(mut body: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if body.is_empty() {
            return body;
        }
        let run = |from: &prop::sample::Index, to: &prop::sample::Index| {
            let (from, to) = (from.index(body.len()), to.index(body.len()));
            from.min(to)..from.max(to).min(from.min(to) + 64)
        };
        match damage {
            Damage::Flip(at, byte) => {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            Damage::Cut(at) => body.truncate(at.index(body.len())),
            Damage::Double(from, to) => {
                let range = run(from, to);
                let copy = body[range.clone()].to_vec();
                body.splice(range.end..range.end, copy);
            }
            Damage::Remove(from, to) => drop(body.drain(run(from, to))),
        }
    }
    body
}

proptest! {
    #![proptest_config(cases(6_000))]

    #[test]
    fn damaged_bodies_are_rejected_or_parsed(
        (dialect, body) in body(4),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        check(&damaged(body.into_bytes(), &damages), dialect);
    }

    #[test]
    fn bodies_of_another_dialect_do_not_panic((_, body) in body(4)) {
        for dialect in Dialect::ALL {
            check(body.as_bytes(), dialect);
        }
    }
}

fn check(body: &[u8], dialect: Dialect) {
    properties::scan(body, dialect);
    properties::splice_any(body, dialect);
}

const STREAM: &str = "\u{feff}: hi\r\n\r\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"mine\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\n\
event: x\ndata: {\"type\":\"content_block_start\",\"index\":0,\ndata: \"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"mine\",\"input\":{}}}\r\r\
data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":1}}\n\n\
data: {\"type\":\"response.output_item.added\",\"sequence_number\":3,\"output_index\":1,\"item\":{\"type\":\"function_call\",\"name\":\"mine\"}}\n\n\
data: {\"type\":\"response.completed\",\"sequence_number\":4,\"response\":{\"output\":[{\"type\":\"function_call\",\"name\":\"mine\"}]}}\n\ndata: [DONE]\n\n";

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn damaged_streams_parse_independently_of_chunking(
        damages in prop::collection::vec(damage(), 0..6),
        size in 1..40usize,
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        properties::sse(&damaged(STREAM.into(), &damages), dialect, size);
    }
}
