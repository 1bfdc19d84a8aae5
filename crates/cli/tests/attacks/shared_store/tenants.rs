//! Reads of refs that belong to another tenant or to another session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};

use super::{serve, shared_place, upstream};
use crate::access::{get, stored_ref, text};
use crate::run::{PATIENCE, say};

/// The number of tenants, and of the sessions of each.
const TENANTS: usize = 6;
const SESSIONS: usize = 4;
/// The number of clients that read at the same time.
const READERS: u64 = 8;
/// A ref that nobody has.
const MISSING: &str = "0123456789abcdef";

/// An output, and who stored it.
struct StoredOutput {
    tenant: usize,
    session: usize,
    id: String,
}

/// What a client presents: a key, and the name of a session if it asks for one.
fn presented(tenant: usize, session: Option<usize>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("x-api-key", format!("key-{tenant}"))];
    headers.extend(session.map(|session| ("x-trimtab-session", format!("session-{session}"))));
    headers
}

fn borrowed<'h>(headers: &'h [(&'static str, String)]) -> Vec<(&'static str, &'h str)> {
    headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// Everything that a client can see of an answer, except what differs in every answer.
fn visible_part(answer: &HttpAnswer) -> String {
    let headers = answer.headers.iter();
    let mut headers: Vec<String> = headers
        .filter(|(name, _)| {
            !["date", "x-request-id", "x-trimtab-request-id"].contains(&name.as_str())
        })
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    format!("{} {headers:?} {}", answer.status, text(answer))
}

/// Reads as random strangers, and each time also a ref that nobody has.
struct StrangeReader {
    client: HttpClient,
    url: String,
    outputs: Arc<Vec<StoredOutput>>,
    random: u64,
}

/// How long the answers took.
#[derive(Default)]
struct AnswerTimes {
    foreign: Vec<Duration>,
    missing: Vec<Duration>,
}

impl StrangeReader {
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % limit as u64).unwrap()
    }

    /// An output that the returned client may not read.
    fn stranger(&mut self) -> (String, Vec<(&'static str, String)>) {
        loop {
            let chosen = self.below(self.outputs.len());
            let (tenant, session) = (self.below(TENANTS), self.below(SESSIONS + 1));
            let session = Some(session).filter(|session| *session < SESSIONS);
            let output = &self.outputs[chosen];
            let may_read =
                output.tenant == tenant && session.is_none_or(|session| session == output.session);
            if !may_read {
                return (output.id.clone(), presented(tenant, session));
            }
        }
    }

    async fn ask(&self, id: &str, query: &str, headers: &[(&str, &str)]) -> (String, Duration) {
        let url = format!("{}/v1/retrieve/{id}{query}", self.url);
        let began = Instant::now();
        let asked = self
            .client
            .send(Method::GET, &url, headers, Vec::new(), PATIENCE);
        let answer = asked.await.unwrap();
        (visible_part(&answer), began.elapsed())
    }

    async fn read(mut self, reads: u64) -> AnswerTimes {
        let mut times = AnswerTimes::default();
        for number in 0..reads {
            let (id, headers) = self.stranger();
            let headers = borrowed(&headers);
            let query = ["", "?query=log"][self.below(2)];
            let (foreign, took) = self.ask(&id, query, &headers).await;
            times.foreign.push(took);
            // The other half of the comparison of times; a quarter is enough for a median.
            if number % 4 == 0 {
                let (missing, took) = self.ask(MISSING, query, &headers).await;
                times.missing.push(took);
                assert_eq!(foreign, missing, "{id} {headers:?}");
            }
            assert!(foreign.starts_with("404 "), "{id} {headers:?}: {foreign}");
            assert!(foreign.contains("ref not found"), "{foreign}");
        }
        times
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refs_of_other_tenants_and_sessions_are_like_refs_that_do_not_exist() {
    let Some(place) = shared_place() else { return };
    let reads = if crate::is_long_run() {
        1_000_000
    } else {
        4_000
    };
    let provider = upstream().await;
    let served = serve(&provider, &place);
    let mut outputs = Vec::new();
    for (tenant, session) in (0..TENANTS).flat_map(|t| (0..SESSIONS).map(move |s| (t, s))) {
        let headers = presented(tenant, Some(session));
        let id = stored_ref(&served.url, &borrowed(&headers)).await.unwrap();
        let path = format!("/v1/retrieve/{id}");
        for session in [Some(session), None] {
            let headers = presented(tenant, session);
            let own = get(&served.url, &path, &borrowed(&headers)).await;
            assert_eq!(own.status, 200, "its own client reads it");
        }
        outputs.push(StoredOutput {
            tenant,
            session,
            id,
        });
    }
    let outputs = Arc::new(outputs);
    let readers = (1..=READERS).map(|number| {
        let reader = StrangeReader {
            client: HttpClient::default(),
            url: served.url.clone(),
            outputs: Arc::clone(&outputs),
            random: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        tokio::spawn(reader.read(reads / READERS))
    });
    let mut times = Vec::new();
    for reader in readers.collect::<Vec<_>>() {
        times.push(reader.await.unwrap());
    }
    let foreign = median(times.iter().flat_map(|times| times.foreign.iter().copied()));
    let missing = median(times.iter().flat_map(|times| times.missing.iter().copied()));
    let ratio = foreign.as_secs_f64() / missing.as_secs_f64();
    say(&format!(
        "{reads} foreign reads, none succeeded: median {foreign:?}, of refs that do not exist \
         {missing:?}, ratio {ratio:.3}"
    ));
}
