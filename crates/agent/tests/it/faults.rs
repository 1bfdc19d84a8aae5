//! Connections that break, stall or send wrong data.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trimtab_agent::model::{
    ModelClient, ModelError, ModelRequest, ReplyPiece, RetryPolicy, Timeouts,
};
use trimtab_agent::{AgentEvent, TurnEnd};
use trimtab_model::{Dialect, Message};
use trimtab_store::MemoryStore;
use trimtab_testkit::script::{Script, ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{Count, FaultSchedule, ReplySource, Upstream, UpstreamOptions};

use super::common::{WINDOW, all_was_well, busy, http, set};

/// Faults that a client can get over by itself.
fn passing() -> Vec<ScriptedFault> {
    let lasting = |fault: &ScriptedFault| match fault {
        // A page or a refusal is taken at its word.
        ScriptedFault::Html => true,
        ScriptedFault::Status { code, .. } => matches!(code, 401 | 403 | 404 | 413),
        _ => false,
    };
    let all = ScriptedFault::catalogue().into_iter();
    all.filter(|fault| !lasting(fault)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_survives_connection_faults() {
    for (seed, dialect) in Dialect::ALL.into_iter().enumerate() {
        let rounds = 40;
        let (source, done) = busy(rounds, false);
        let upstream = Upstream::start(UpstreamOptions {
            window: Some(WINDOW),
            count: Count::Estimate,
            faults: FaultSchedule::seeded(seed as u64, 30, passing()),
            ..UpstreamOptions::new(source)
        })
        .await
        .unwrap();
        let client = http(dialect, &upstream.url());
        let mut set = set(client, Arc::new(MemoryStore::new()), |_| {});
        while done.load(Ordering::SeqCst) < rounds {
            let turn = set.agent.turn("go on").await;
            let turn = turn.unwrap_or_else(|error| panic!("{dialect}: {error}"));
            assert_eq!(turn.end, TurnEnd::Answered);
        }
        all_was_well(&upstream, WINDOW, "faults");
        let requests = upstream.requests();
        let spoiled = requests.iter().filter(|received| received.fault.is_some());
        assert!(spoiled.count() > 5);
        let mut retries = 0;
        while let Ok(event) = set.events.try_recv() {
            retries += usize::from(matches!(
                event,
                AgentEvent::Retry { .. } | AgentEvent::BrokeOff { .. }
            ));
        }
        assert!(retries > 2, "{dialect}: {retries}");
    }
}

fn long_text() -> String {
    let words: Vec<String> = (0..200).map(|n| format!("word{n}")).collect();
    words.join(" ")
}

/// What a client delivers of one answer that goes wrong, and how it ends.
async fn delivered(dialect: Dialect, fault: ScriptedFault) -> (String, Option<ModelError>) {
    let script = Script::new([ScriptedReply::text(long_text()).with_fault(fault)]);
    let upstream = Upstream::start(UpstreamOptions::new(ReplySource::script(script)))
        .await
        .unwrap();
    let client = ModelClient::new(http(dialect, &upstream.url()));
    let messages = vec![Arc::new(Message::user("count"))];
    let mut reply = client.call(ModelRequest {
        max_output: Some(1_000),
        ..ModelRequest::new("gpt-5", messages)
    });
    let mut said = String::new();
    loop {
        match reply.next().await {
            Some(Ok(ReplyPiece::Text(text))) => said.push_str(&text),
            Some(Ok(ReplyPiece::End(answer))) => {
                assert_eq!(answer.message.text(), said);
                return (said, None);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return (said, Some(error)),
            None => panic!("no end"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivered_text_is_never_repeated() {
    for dialect in Dialect::ALL {
        for fault in passing() {
            let (said, error) = delivered(dialect, fault).await;
            // All of it once, or the beginning of it and an error that says so.
            assert!(
                long_text().starts_with(&said),
                "{dialect} {fault:?}: {said}"
            );
            match error {
                None => assert_eq!(said, long_text(), "{dialect} {fault:?}"),
                Some(error) => {
                    assert!(
                        error.is_passing() && !said.is_empty(),
                        "{dialect} {fault:?}: {error}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let fault = ScriptedFault::Status {
        code: 429,
        retry_after: Some(1),
    };
    let begun = Instant::now();
    let (said, error) = delivered(Dialect::Chat, fault).await;
    assert!(error.is_none() && said == long_text());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn stalled_answer_times_out() {
    for (fault, expected) in [
        (ScriptedFault::LateHeaders { ms: 5_000 }, "no answer within"),
        (
            ScriptedFault::Stall {
                after: 3,
                ms: 5_000,
            },
            "nothing more of the answer within",
        ),
    ] {
        let script = Script::new([ScriptedReply::text(long_text()).with_fault(fault)]);
        let upstream = Upstream::start(UpstreamOptions::new(ReplySource::script(script)))
            .await
            .unwrap();
        let client = http(Dialect::Chat, &upstream.url())
            .retries(RetryPolicy::NONE)
            .timeouts(Timeouts {
                connect: Duration::from_secs(1),
                first_byte: Duration::from_millis(200),
                idle: Duration::from_millis(200),
            });
        let messages = vec![Arc::new(Message::user("count"))];
        let request = ModelRequest::new("gpt-5", messages);
        let error = ModelClient::new(client)
            .call(request)
            .answer()
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn dropped_reply_closes_the_connection() {
    let mut reply = ScriptedReply::text(long_text());
    reply.delay_ms = Some(20);
    let upstream = Upstream::start(UpstreamOptions::new(ReplySource::script(Script::new([
        reply,
    ]))))
    .await
    .unwrap();
    let client = ModelClient::new(http(Dialect::Chat, &upstream.url()));
    let request = ModelRequest::new("gpt-5", vec![Arc::new(Message::user("count"))]);
    let mut reply = client.call(request);
    assert!(reply.next().await.unwrap().is_ok());
    drop(reply);
    // Nothing is left that could hold the server back.
    let stopped = tokio::time::timeout(Duration::from_secs(5), upstream.shutdown()).await;
    assert!(stopped.is_ok());
}
