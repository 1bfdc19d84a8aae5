//! Latency while the dashboard is open on ten screens, beside latency without it.
//!
//! Calls without screens are measured twice: how far those two differ is noise.
//!
//! A screen asks as a page does, and drops what it gets: a browser reads and draws it elsewhere.
//! In one half of the conversations all screens show the session, in the other half the list.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
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
/// A page asks this often. Pages begin at different moments; here they are spread evenly.
const REFRESH: Duration = Duration::from_secs(2);

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
            let screens = (group == 1).then(|| {
                let page = if conversation % 4 < 2 {
                    Page::Session
                } else {
                    Page::List
                };
                OpenScreens::open(format!("http://{ours}/dashboard/api"), page)
            });
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

/// What a screen shows.
#[derive(Clone, Copy)]
enum Page {
    Session,
    List,
}

/// Screens on a thread of their own, so that their work is not taken for work of the proxy.
struct OpenScreens {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl OpenScreens {
    fn open(base: String, page: Page) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_over);
        let (ready, all_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = runtime();
            let screens: Vec<_> = (0..SCREENS)
                .map(|number| {
                    let screen = Screen::new(base.clone(), number);
                    let (is_over, ready) = (Arc::clone(&shared), ready.clone());
                    runtime.spawn(screen.show(page, is_over, ready))
                })
                .collect();
            let refreshes = screens
                .into_iter()
                .map(|screen| runtime.block_on(screen).expect("a screen"));
            refreshes.sum()
        });
        // A page is opened once and then stays: opening it is not what is measured.
        for _ in 0..SCREENS {
            all_ready.recv().expect("a page");
        }
        Self { is_over, thread }
    }

    fn close(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let refreshes = self.thread.join().expect("the screens end");
        assert!(refreshes >= SCREENS / 2, "only {refreshes} refreshes");
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

/// A page with its connection.
struct Screen {
    client: Client<HttpConnector, Full<Bytes>>,
    base: String,
    number: usize,
}

impl Screen {
    fn new(base: String, number: usize) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            client,
            base,
            number,
        }
    }

    /// Opens a page, and asks now and then whether something has changed. Gives how often it asked.
    async fn show(self, page: Page, is_over: Arc<AtomicBool>, ready: mpsc::Sender<()>) -> usize {
        let (list, _) = self.ask("sessions", None).await;
        let name = match page {
            Page::List => "sessions".to_owned(),
            Page::Session => format!("session?id={}", field(&list, "\"id\":\"")),
        };
        let (_, mut tag) = self.ask(&name, None).await;
        ready.send(()).expect("somebody waits");
        let mut refreshes = 0;
        tokio::time::sleep(REFRESH * u32::try_from(self.number).unwrap_or(0) / 10).await;
        while !is_over.load(Ordering::Relaxed) {
            (_, tag) = self.ask(&name, tag).await;
            refreshes += 1;
            tokio::time::sleep(REFRESH).await;
        }
        refreshes
    }

    /// The beginning of an answer, and its tag. The rest is read and dropped.
    async fn ask(&self, name: &str, tag: Option<HeaderValue>) -> (String, Option<HeaderValue>) {
        let mut request = Request::get(format!("{}/{name}", self.base));
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Full::default()).expect("a request");
        let answer = self.client.request(request).await.expect("an answer");
        assert!(matches!(answer.status().as_u16(), 200 | 304));
        let tag = answer.headers().get(ETAG).cloned();
        let mut body = answer.into_body();
        let mut beginning = None;
        while let Some(frame) = body.frame().await {
            let data = frame.expect("a whole answer").into_data();
            beginning = beginning.or_else(|| data.ok());
        }
        let beginning = beginning.unwrap_or_default();
        (String::from_utf8_lossy(&beginning).into_owned(), tag)
    }
}

/// What follows a name in JSON, up to the end of the value. It is not read as JSON, because a page
/// does that elsewhere.
fn field(json: &str, name: &str) -> String {
    let value = json.split(name).nth(1).expect("a field");
    let value = value.trim_start_matches('"');
    value
        .split(['"', ','])
        .next()
        .unwrap_or_default()
        .to_owned()
}
