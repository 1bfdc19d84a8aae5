//! Overflows.

use trimtab::model::Message;
use trimtab::session::RecoveryOutcome;
use trimtab::wire::overflow::{ProviderResponse, classify};

use super::{admit, managed, open, round, rounds};

#[test]
fn an_overflow_error_is_a_measurement() {
    let mut session = open("steady", 200_000);
    admit(&mut session, Message::user("begin"));
    rounds(&mut session, 0..30, "item", 300);
    session.ready().unwrap();
    let before = session.window().unwrap().measures().total().tokens();
    let body = br#"{"type":"error","error":{"type":"invalid_request_error",
        "message":"prompt is too long: 30000 tokens > 16000 maximum"}}"#;
    let verdict = classify(&ProviderResponse::new(400, body));
    match session.recover(&verdict).unwrap() {
        RecoveryOutcome::Retry => {}
        RecoveryOutcome::Summarise(pending) => {
            session.finish(pending).unwrap();
        }
        RecoveryOutcome::GiveUp => panic!("there is a lot that can go"),
    }
    let ready = session.ready().unwrap();
    assert_eq!(session.setup().limits.window, Some(16_000));
    assert!(
        ready.tokens <= 16_000 && ready.tokens < before,
        "{ready:?}, {before} before"
    );
}

#[test]
fn limit_in_bytes_does_not_become_the_window() {
    let mut session = open("steady", 200_000);
    admit(&mut session, Message::user("begin"));
    round(&mut session, 0, &"item\n".repeat(300));
    session.ready().unwrap();
    let body = br#"{"message": "Request body size exceeds the maximum of 65536 bytes"}"#;
    let verdict = classify(&ProviderResponse::new(413, body));
    assert_eq!(verdict.sizes.limit, Some(65_536));
    session.recover(&verdict).unwrap();
    assert_eq!(session.setup().limits.window, Some(200_000));
}

#[test]
fn recovery_ends_and_hands_on_the_error() {
    for preset in managed() {
        let mut session = open(preset, 200_000);
        admit(&mut session, Message::user("begin"));
        rounds(&mut session, 0..10, "item", 300);
        let verdict = classify(&ProviderResponse::new(413, b"Request too large"));
        let mut attempts = 0;
        loop {
            session.ready().unwrap();
            match session.recover(&verdict).unwrap() {
                RecoveryOutcome::GiveUp => break,
                RecoveryOutcome::Retry => {}
                RecoveryOutcome::Summarise(pending) => {
                    session.finish(pending).unwrap();
                }
            }
            attempts += 1;
            assert!(attempts <= 10, "{preset}");
        }
        assert!(attempts <= 3, "{preset}: {attempts}");
    }
}
