//! Latency while the dashboard is open on ten screens, beside latency without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::client::Sender;
use crate::servers::{Servers, WIDE, runtime};
use crate::talk::growing;
use crate::times::{Times, table};

/// Screens that show the same session.
const SCREENS: usize = 10;
/// Bytes of a body, and how many are sent with and without the screens.
const BODY: (usize, usize) = (500 << 10, 200);
/// A screen asks for new data so often at most.
const REFRESH: Duration = Duration::from_millis(900);

pub(crate) fn run(servers: &Servers) {
    let (bytes, count) = BODY;
    let ours = servers.ours.address();
    let runtime = runtime();
    let mut bodies = growing(WIDE, "screens", bytes, 2 * count + 1).into_iter();
    let sender = Sender::new(ours);
    let without = runtime.block_on(timed(&sender, bodies.by_ref().take(count + 1)));
    let is_over = Arc::new(AtomicBool::new(false));
    let screens: Vec<_> = (0..SCREENS)
        .map(|_| {
            runtime.spawn(screen(
                format!("http://{ours}/dashboard/api"),
                Arc::clone(&is_over),
            ))
        })
        .collect();
    let with = runtime.block_on(timed(&sender, bodies));
    is_over.store(true, Ordering::Relaxed);
    for screen in screens {
        runtime.block_on(screen).expect("a screen");
    }
    let title = format!(
        "one call, {} KB, {SCREENS} screens with the dashboard",
        bytes >> 10
    );
    let rows = [("no screen", without), ("ten screens", with)];
    table(&title, &rows);
}

async fn timed(sender: &Sender, bodies: impl Iterator<Item = Bytes>) -> Times {
    let mut times = Times::default();
    for (number, body) in bodies.enumerate() {
        let start = Instant::now();
        sender.send(body).await;
        if number > 0 {
            times.push(start.elapsed());
        }
    }
    times
}

/// Listens to the live feed, and asks for the session again and again, as a page does.
async fn screen(base: String, is_over: Arc<AtomicBool>) {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let ask = async |name: &str| {
        let request = Request::get(format!("{base}/{name}")).body(Full::default());
        let answer = client.request(request.expect("a request")).await;
        answer.expect("an answer")
    };
    let feed = ask("events").await;
    while !is_over.load(Ordering::Relaxed) {
        let list = ask("sessions").await.into_body().collect().await;
        let list = list.expect("a list").to_bytes();
        let list: serde_json::Value = serde_json::from_slice(&list).expect("JSON");
        let newest = list
            .pointer("/sessions/0/id")
            .and_then(serde_json::Value::as_str);
        let id = newest.unwrap_or_default();
        let film = ask(&format!("session?id={id}"))
            .await
            .into_body()
            .collect()
            .await;
        drop(film.expect("a film"));
        tokio::time::sleep(REFRESH).await;
    }
    drop(feed);
}
