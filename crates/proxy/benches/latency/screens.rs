//! Latency while the dashboard is open on ten screens, beside latency without it.
//!
//! Calls without screens are measured twice: how far those two differ is noise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::client::Sender;
use crate::servers::{Servers, WIDE, runtime};
use crate::talk::growing;
use crate::times::Times;

/// Screens that show the same session.
const SCREENS: usize = 10;
/// Bytes of a body, on average.
const BYTES: usize = 500 << 10;
/// Calls of a group. A conversation has three groups: without screens, with them, and without.
const CALLS: usize = 30;
/// How many conversations are held.
const CONVERSATIONS: usize = 16;
/// Between two calls, so that a group lasts as long as some refreshes of the screens.
const PAUSE: Duration = Duration::from_millis(50);
/// A page waits so long after an event, and so long after it asked.
const PAGE_WAITS: (Duration, Duration) = (Duration::from_millis(60), Duration::from_millis(900));

pub(crate) fn run(servers: &Servers) {
    let ours = servers.ours.address();
    let runtime = runtime();
    let sender = Sender::new(ours);
    let mut times = [Times::default(), Times::default(), Times::default()];
    for conversation in 0..CONVERSATIONS {
        let topic = format!("screens {conversation}");
        let mut bodies = growing(WIDE, &topic, BYTES, 3 * CALLS + 1).into_iter();
        let first = bodies.by_ref().take(1);
        runtime.block_on(timed(&sender, first, &mut Times::default()));
        // Bodies grow, and so does their latency: the group with screens is the middle one, and
        // the outer ones change places.
        let order = if conversation % 2 == 0 {
            [0, 1, 2]
        } else {
            [2, 1, 0]
        };
        for group in order {
            let screens =
                (group == 1).then(|| OpenScreens::open(format!("http://{ours}/dashboard/api")));
            let bodies = bodies.by_ref().take(CALLS);
            if let Some(times) = times.get_mut(group) {
                runtime.block_on(timed(&sender, bodies, times));
            }
            if let Some(screens) = screens {
                screens.close();
            }
        }
    }
    println!(
        "\none call of {} KB on average, {SCREENS} screens with the dashboard",
        BYTES >> 10
    );
    let [before, with, after] = times;
    let without = Times::of_both(&before, &after);
    for percent in [50, 90, 99] {
        let [plain, watched] = [&without, &with].map(|times| times.percentile(percent));
        let [before, after] = [&before, &after].map(|times| times.percentile(percent));
        let ratio = |a: f64, b: f64| a / b.max(f64::MIN_POSITIVE);
        println!(
            "  p{percent:<3} {plain:>8.0} µs without, {watched:>8.0} µs with: {:.2}; \
             without against without: {:.2}",
            ratio(watched, plain),
            ratio(after, before).max(ratio(before, after)),
        );
    }
}

/// Screens on a thread of their own, so that their work is not taken for work of the proxy.
struct OpenScreens {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
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
            let films = screens
                .into_iter()
                .map(|screen| runtime.block_on(screen).expect("a screen"));
            films.sum()
        });
        Self { is_over, thread }
    }

    fn close(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let films = self.thread.join().expect("the screens end");
        assert!(films >= SCREENS, "only {films} films were shown");
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

/// Listens to the live feed, and asks after an event for what the pages of a session and of the
/// list of sessions show. Gives how many films it was shown.
async fn screen(base: String, is_over: Arc<AtomicBool>) -> usize {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let ask = async |name: &str| {
        let request = Request::get(format!("{base}/{name}")).body(Full::default());
        let answer = client.request(request.expect("a request")).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.into_body()
    };
    let read = async |body: Incoming| body.collect().await.expect("a whole answer").to_bytes();
    let mut feed = ask("events").await;
    let mut films = 0;
    while !is_over.load(Ordering::Relaxed) {
        // Calls may have ended, and no event comes any more.
        let event = tokio::time::timeout(PAGE_WAITS.1, feed.frame()).await;
        if event.is_err() {
            continue;
        }
        tokio::time::sleep(PAGE_WAITS.0).await;
        read(ask("overview").await).await;
        let list = read(ask("sessions").await).await;
        let id = newest_session(&list);
        read(ask(&format!("session?id={id}")).await).await;
        read(ask(&format!("messages?id={id}&from=0&count=200")).await).await;
        films += 1;
        tokio::time::sleep(PAGE_WAITS.1).await;
    }
    films
}

/// The id of the first session of a list. It is not read as JSON, because a page does that
/// elsewhere.
fn newest_session(list: &[u8]) -> String {
    let list = String::from_utf8_lossy(list);
    let sessions = list.split("\"sessions\":[").nth(1).unwrap_or_default();
    let id = sessions.split("\"id\":\"").nth(1).unwrap_or_default();
    id.split('"').next().unwrap_or_default().to_owned()
}
