//! How late each event of a stream comes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc::{Receiver, channel};

use crate::client::Sender;
use crate::servers::{Servers, WIDE, runtime};
use crate::talk::Talk;
use crate::times::{Times, table};

/// Events of one stream, the time between two of them, and streams of each candidate.
const EVENTS: usize = 50;
const APART: Duration = Duration::from_millis(2);
const STREAMS: usize = 20;

/// What all times in events are counted from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A stream whose events say when they were sent.
pub(crate) fn stream() -> BoxBody<Bytes, Infallible> {
    let (sender, receiver) = channel::<Bytes>(1);
    tokio::spawn(async move {
        for _ in 0..EVENTS {
            tokio::time::sleep(APART).await;
            let at = START.elapsed().as_nanos();
            let event = format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"@{at}@ and a few words\"}}}}]}}\n\n"
            );
            if sender.send(Bytes::from(event)).await.is_err() {
                return;
            }
        }
    });
    StreamBody::new(Received(receiver)).boxed()
}

struct Received(Receiver<Bytes>);

impl Stream for Received {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let received = self.0.poll_recv(context);
        received.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

pub(crate) fn run(servers: &Servers) {
    let mut talk = Talk::new(WIDE, "streams", 80).of_bytes(64 << 10);
    let mut candidates = [
        ("no proxy", Sender::new(servers.direct), Times::default()),
        (
            "bare reverse proxy",
            Sender::new(servers.bare),
            Times::default(),
        ),
        (
            "trimtab",
            Sender::new(servers.ours.address()),
            Times::default(),
        ),
    ];
    let runtime = runtime();
    for _ in 0..STREAMS {
        let body = talk.next();
        for (_, sender, lags) in &mut candidates {
            runtime.block_on(read(sender, body.clone(), lags));
        }
    }
    let rows = candidates.map(|(name, _, lags)| (name, lags));
    table("how late an event comes, one every 2 ms", &rows);
}

async fn read(sender: &Sender, body: Bytes, lags: &mut Times) {
    let mut answer = sender.begin(body, "?stream").await.into_body();
    let mut events = 0;
    while let Some(frame) = answer.frame().await {
        let now = START.elapsed();
        let data = frame.expect("a frame").into_data().unwrap_or_default();
        let text = String::from_utf8_lossy(&data);
        for sent in text.split('@').skip(1).step_by(2) {
            let sent = Duration::from_nanos(sent.parse().expect("a time"));
            lags.push(now.saturating_sub(sent));
            events += 1;
        }
    }
    assert_eq!(events, EVENTS);
}
