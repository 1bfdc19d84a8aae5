//! Latency while the dashboard is open on ten screens, beside latency without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::client::Sender;
use crate::servers::{Servers, WIDE, runtime};
use crate::talk::growing;
use crate::times::Times;

/// Screens that show the same session.
const SCREENS: usize = 10;
/// Bytes of the first body.
const BYTES: usize = 500 << 10;
/// Calls without screens and calls with them take turns: so many of each, so often.
const TURNS: (usize, usize) = (40, 5);
/// Between two calls, so that they last as long as some refreshes of the screens.
const PAUSE: Duration = Duration::from_millis(50);
/// A screen asks for new data so often at most.
const REFRESH: Duration = Duration::from_millis(900);

pub(crate) fn run(servers: &Servers) {
    let (count, turns) = TURNS;
    let ours = servers.ours.address();
    let runtime = runtime();
    let mut bodies = growing(WIDE, "screens", BYTES, 2 * count * turns + 1).into_iter();
    let sender = Sender::new(ours);
    let (mut without, mut with) = (Times::default(), Times::default());
    runtime.block_on(timed(
        &sender,
        bodies.by_ref().take(1),
        &mut Times::default(),
    ));
    for _ in 0..turns {
        runtime.block_on(timed(&sender, bodies.by_ref().take(count), &mut without));
        let screens = OpenScreens::open(format!("http://{ours}/dashboard/api"));
        runtime.block_on(timed(&sender, bodies.by_ref().take(count), &mut with));
        screens.close();
    }
    println!(
        "\none call, from {} KB on, {SCREENS} screens with the dashboard",
        BYTES >> 10
    );
    for percent in [50, 90, 99] {
        let (plain, watched) = (without.percentile(percent), with.percentile(percent));
        let ratio = watched / plain.max(f64::MIN_POSITIVE);
        println!("  p{percent:<4} {plain:>9.0} µs without, {watched:>9.0} µs with: {ratio:.2}");
    }
}

/// Screens on a thread of their own, so that their work is not taken for work of the proxy.
struct OpenScreens {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl OpenScreens {
    fn open(base: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let runtime = runtime();
            let screens: Vec<_> = (0..SCREENS)
                .map(|_| runtime.spawn(screen(base.clone(), Arc::clone(&shared))))
                .collect();
            for screen in screens {
                runtime.block_on(screen).expect("a screen");
            }
        });
        Self { is_over, thread }
    }

    fn close(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the screens end");
    }
}

async fn timed(sender: &Sender, bodies: impl Iterator<Item = Bytes>, times: &mut Times) {
    for body in bodies {
        tokio::time::sleep(PAUSE).await;
        let start = Instant::now();
        sender.send(body).await;
        times.push(start.elapsed());
    }
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
