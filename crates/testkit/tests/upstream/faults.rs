//! Each fault is what it says.

use std::io::Read;
use std::time::{Duration, Instant};

use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::json;
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{ContentCoding, FaultSchedule, ScriptedFault, UpstreamOptions};

use crate::client::{Client, Got, Talk, events, scripted, start};

const TEXT: &str = "a text that is long enough to be streamed in several pieces, one by one";

fn options(fault: ScriptedFault) -> UpstreamOptions {
    UpstreamOptions {
        faults: FaultSchedule::list([Some(fault)]),
        ..scripted(&json!([{"text": TEXT}, {"text": "next"}]))
    }
}

fn talk(dialect: Dialect, stream: bool) -> Talk {
    let talk = Talk::new(dialect, "go");
    if stream { talk.streaming() } else { talk }
}

/// The answer with a fault; behind it the client must get whole answers again.
async fn faulty(fault: ScriptedFault, dialect: Dialect, stream: bool) -> Result<Got, String> {
    let (upstream, client) = start(options(fault)).await;
    let body = talk(dialect, stream).body;
    let got = client.try_post(dialect, &body).await;
    let again = Client::new(&upstream)
        .post(dialect, &talk(dialect, true).body)
        .await;
    let expected = if fault.is_fatal() { TEXT } else { "next" };
    assert_eq!(again.said(dialect).text, expected, "{fault:?}");
    assert_eq!(upstream.requests()[0].fault, Some(fault));
    got
}

#[tokio::test]
async fn a_reset_before_the_headers_leaves_nothing() {
    for dialect in Dialect::ALL {
        let error = faulty(ScriptedFault::ResetBeforeHeaders, dialect, true)
            .await
            .unwrap_err();
        assert!(
            error.contains("reset") || error.contains("Reset"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_reset_in_the_body_breaks_it() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let got = faulty(ScriptedFault::ResetInBody { after: 2 }, dialect, stream)
                .await
                .unwrap();
            assert!(got.broken && got.status == 200 && !got.body.is_empty());
            if stream {
                assert_eq!(events(&got).len(), 2);
            }
        }
    }
}

#[tokio::test]
async fn a_cut_stream_ends_as_if_it_were_whole() {
    for dialect in Dialect::ALL {
        let got = faulty(ScriptedFault::Cut { after: 3 }, dialect, true)
            .await
            .unwrap();
        assert!(!got.broken && !got.said(dialect).ended);
        assert_eq!(events(&got).len(), 3);
        let got = faulty(ScriptedFault::Cut { after: 3 }, dialect, false)
            .await
            .unwrap();
        assert!(!got.broken && !got.body.is_empty());
        assert!(serde_json::from_slice::<serde_json::Value>(&got.body).is_err());
        // The end of the stream is lost at the latest.
        let got = faulty(ScriptedFault::Cut { after: 9_999 }, dialect, true)
            .await
            .unwrap();
        assert!(!got.said(dialect).ended);
    }
}

#[tokio::test]
async fn waits_take_their_time_and_lose_nothing() {
    for fault in [
        ScriptedFault::Stall { after: 2, ms: 80 },
        ScriptedFault::LateHeaders { ms: 80 },
    ] {
        for stream in [true, false] {
            let start = Instant::now();
            let got = faulty(fault, Dialect::Chat, stream).await.unwrap();
            assert!(start.elapsed() >= Duration::from_millis(80), "{fault:?}");
            assert!(!got.broken);
            if stream {
                assert_eq!(got.said(Dialect::Chat).text, TEXT);
            } else {
                assert_eq!(got.json()["choices"][0]["message"]["content"], TEXT);
            }
        }
    }
}

#[tokio::test]
async fn statuses_have_the_words_of_the_provider() {
    for code in [429, 500, 502, 503, 529] {
        for dialect in Dialect::ALL {
            let fault = ScriptedFault::Status {
                code,
                retry_after: Some(7),
            };
            let got = faulty(fault, dialect, true).await.unwrap();
            assert_eq!((got.status, got.header("retry-after")), (code, "7"));
            assert!(!got.message().is_empty());
        }
    }
    let fault = ScriptedFault::Status {
        code: 529,
        retry_after: None,
    };
    let got = faulty(fault, Dialect::Messages, false).await.unwrap();
    assert_eq!(got.json()["error"]["type"], "overloaded_error");
    assert_eq!(got.header("retry-after"), "");
}

#[tokio::test]
async fn an_error_can_be_an_event() {
    for dialect in Dialect::ALL {
        let got = faulty(ScriptedFault::ErrorEvent { after: 4 }, dialect, true)
            .await
            .unwrap();
        let said = got.said(dialect);
        assert!(!said.error.is_empty() && !said.ended, "{said:?}");
        assert_eq!((got.status, events(&got).len()), (200, 5));
        let got = faulty(ScriptedFault::ErrorEvent { after: 4 }, dialect, false)
            .await
            .unwrap();
        assert_eq!(got.status, 500);
    }
}

#[tokio::test]
async fn a_page_for_people_is_no_answer() {
    let got = faulty(ScriptedFault::Html, Dialect::Chat, true)
        .await
        .unwrap();
    assert_eq!(
        (got.status, got.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    assert!(got.body.starts_with(b"<!DOCTYPE html>"));
}

#[tokio::test]
async fn a_wrong_length_is_too_long_or_too_short() {
    for stream in [true, false] {
        let fault = ScriptedFault::ContentLength { off_by: 100 };
        let got = faulty(fault, Dialect::Messages, stream).await.unwrap();
        assert!(got.broken, "the body is shorter than it says");
        let claimed: usize = got.header("content-length").parse().unwrap();
        assert_eq!(got.body.len() + 100, claimed);
        let fault = ScriptedFault::ContentLength { off_by: -10 };
        let got = faulty(fault, Dialect::Messages, stream).await.unwrap();
        let claimed: usize = got.header("content-length").parse().unwrap();
        assert_eq!(got.body.len(), claimed, "the rest is lost");
        assert!(!got.body.ends_with(b"}\n\n") && !got.body.ends_with(b"}}"));
    }
}

#[tokio::test]
async fn encodings_can_be_undone() {
    for stream in [true, false] {
        for (coding, name) in [
            (ContentCoding::Gzip, "gzip"),
            (ContentCoding::XGzip, "x-gzip"),
            (ContentCoding::Deflate, "deflate"),
            (ContentCoding::FalseGzip, "gzip"),
        ] {
            let fault = ScriptedFault::Encoding { coding };
            let mut got = faulty(fault, Dialect::Messages, stream).await.unwrap();
            assert_eq!(got.header("content-encoding"), name);
            let mut plain = Vec::new();
            match coding {
                ContentCoding::Gzip | ContentCoding::XGzip => {
                    GzDecoder::new(got.body.as_slice())
                        .read_to_end(&mut plain)
                        .unwrap();
                }
                ContentCoding::Deflate => {
                    ZlibDecoder::new(got.body.as_slice())
                        .read_to_end(&mut plain)
                        .unwrap();
                }
                ContentCoding::FalseGzip => plain.clone_from(&got.body),
            }
            got.body = plain;
            if stream {
                assert_eq!(got.said(Dialect::Messages).text, TEXT, "{coding:?}");
            } else {
                assert_eq!(got.json()["content"][0]["text"], TEXT, "{coding:?}");
            }
        }
    }
}

#[tokio::test]
async fn odd_streams_say_the_same() {
    let odd = [
        ScriptedFault::Drip { bytes: 1, ms: 0 },
        ScriptedFault::Drip { bytes: 100, ms: 1 },
        ScriptedFault::DuplicateUsage,
        ScriptedFault::Unknown,
        ScriptedFault::Crlf,
    ];
    for dialect in Dialect::ALL {
        let (_upstream, client) = start(scripted(&json!([{"text": TEXT}]))).await;
        let plain = client.post(dialect, &talk(dialect, true).body).await;
        for fault in odd {
            let got = faulty(fault, dialect, true).await.unwrap();
            assert_eq!(got.said(dialect), plain.said(dialect), "{fault:?}");
            let same = got.body == plain.body;
            assert_eq!(
                same,
                matches!(fault, ScriptedFault::Drip { .. }),
                "{fault:?}"
            );
        }
        let text = String::from_utf8(
            faulty(ScriptedFault::Crlf, dialect, true)
                .await
                .unwrap()
                .body,
        );
        assert!(text.unwrap().ends_with("\r\n\r\n"));
    }
}

#[tokio::test]
async fn usage_comes_twice() {
    for dialect in Dialect::ALL {
        let got = faulty(ScriptedFault::DuplicateUsage, dialect, true)
            .await
            .unwrap();
        let figure = match dialect {
            Dialect::Chat => "/usage/completion_tokens",
            Dialect::Responses => "/response/usage/output_tokens",
            Dialect::Messages => "/usage/output_tokens",
        };
        let events = events(&got);
        let figures = events.iter().filter_map(|event| event.pointer(figure));
        assert_eq!(figures.count(), 2, "{dialect}");
    }
}

#[tokio::test]
async fn every_fault_of_the_catalogue_can_be_survived() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            for fault in ScriptedFault::catalogue() {
                // What came does not matter here: the next answer is checked inside.
                let _ = faulty(fault, dialect, stream).await;
            }
        }
    }
}

#[tokio::test]
async fn pieces_can_be_slow() {
    let (_upstream, client) = start(scripted(&json!([{"text": TEXT, "delay_ms": 5}]))).await;
    let start = Instant::now();
    let got = client
        .post(Dialect::Chat, &talk(Dialect::Chat, true).body)
        .await;
    assert_eq!(got.said(Dialect::Chat).text, TEXT);
    let pieces = u32::try_from(events(&got).len()).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(5) * pieces);
}
