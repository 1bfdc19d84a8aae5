//! Work that many ask for at the same time: it is done once for all of them, and not too often.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::deadline::{self, WorkFailure};

/// After work the same work rests this many times as long as it took, so that it takes a small
/// share of a processor however long it takes.
const REST: u32 = 20;
/// It rests at least this long, so that those who ask a little later share the next result.
const SHORTEST_REST: Duration = Duration::from_millis(300);
/// It rests at most this long, because somebody waits.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// Work that many ask for, by name.
pub(crate) struct SharedWork<T> {
    /// One at a time, so that processors stay free for everything else.
    turns: Arc<Semaphore>,
    named: Mutex<HashMap<String, Arc<NamedWork<T>>>>,
}

struct NamedWork<T> {
    /// How many wait for the lock.
    waiting: AtomicUsize,
    /// The last run. Who holds the lock does the next one.
    last: tokio::sync::Mutex<Option<LastRun<T>>>,
}

struct LastRun<T> {
    began: Instant,
    rests_until: Instant,
    /// None if nobody waits for it.
    result: Option<Result<T, WorkFailure>>,
}

/// Counts as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<T: Clone + Send + 'static> SharedWork<T> {
    pub(crate) fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(1)),
            named: Mutex::default(),
        }
    }

    /// Returns the result of a run of the work with this name that began after this call: its own,
    /// or that of another call. So a result is never older than the question.
    pub(crate) async fn run(
        &self,
        name: &str,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkFailure> {
        let asked = Instant::now();
        let named = self.named(name);
        let waiting = Waiting::new(&named.waiting);
        let mut last = named.last.lock().await;
        drop(waiting);
        let somebody_waits = || named.waiting.load(Ordering::SeqCst) > 0;
        if let Some(run) = last.as_mut() {
            let result = run.result.take().filter(|_| run.began >= asked);
            if let Some(result) = result {
                run.result = somebody_waits().then(|| result.clone());
                return result;
            }
            sleep_until(run.rests_until).await;
        }
        let began = Instant::now();
        let result = deadline::run_in_turn(&self.turns, limit, work).await;
        let rest = (began.elapsed() * REST).clamp(SHORTEST_REST, LONGEST_REST);
        *last = Some(LastRun {
            began,
            rests_until: Instant::now() + rest,
            result: somebody_waits().then(|| result.clone()),
        });
        result
    }

    fn named(&self, name: &str) -> Arc<NamedWork<T>> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = named.get(name) {
            return Arc::clone(known);
        }
        // Names come from requests, so those that nobody uses any more are forgotten.
        let now = Instant::now();
        named.retain(|_, work| {
            let is_used = Arc::strong_count(work) > 1;
            let rests = |run: &LastRun<T>| run.rests_until > now;
            let last = work.last.try_lock();
            is_used || last.is_ok_and(|last| last.as_ref().is_some_and(rests))
        });
        let new = Arc::new(NamedWork {
            waiting: AtomicUsize::new(0),
            last: tokio::sync::Mutex::new(None),
        });
        named.insert(name.to_owned(), Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    /// Counts how often it runs, and takes a while.
    fn counted(runs: &Arc<AtomicUsize>) -> impl FnOnce() -> usize + Send + use<> {
        let runs = Arc::clone(runs);
        move || {
            std::thread::sleep(Duration::from_millis(5));
            runs.fetch_add(1, Ordering::SeqCst) + 1
        }
    }

    #[tokio::test]
    async fn many_share_one_run() {
        let work = Arc::new(SharedWork::new());
        let runs = Arc::new(AtomicUsize::new(0));
        let askers: Vec<_> = (0..10)
            .map(|_| {
                let (work, counted) = (Arc::clone(&work), counted(&runs));
                tokio::spawn(async move { work.run("film", LIMIT, counted).await })
            })
            .collect();
        for asker in askers {
            asker.await.unwrap().unwrap();
        }
        // The first one began before some of the others asked, and all of those share the second.
        assert!(runs.load(Ordering::SeqCst) <= 2);
        // A result that nobody waits for is not kept.
        let named = work.named("film");
        assert!(named.last.lock().await.as_ref().unwrap().result.is_none());
    }

    #[tokio::test]
    async fn result_is_never_older_than_the_question() {
        let work = SharedWork::new();
        let runs = Arc::new(AtomicUsize::new(0));
        assert_eq!(work.run("film", LIMIT, counted(&runs)).await, Ok(1));
        let asked = Instant::now();
        assert_eq!(work.run("film", LIMIT, counted(&runs)).await, Ok(2));
        assert!(asked.elapsed() >= SHORTEST_REST / 2, "it did not rest");
        assert_eq!(work.run("another film", LIMIT, counted(&runs)).await, Ok(3));
    }

    #[tokio::test]
    async fn one_who_leaves_does_not_hold_up_the_others() {
        let work = Arc::new(SharedWork::new());
        let shared = Arc::clone(&work);
        let (sender, begun) = std::sync::mpsc::channel();
        let leaver = tokio::spawn(async move {
            let endless = move || {
                sender.send(()).unwrap();
                loop {
                    trimtab_model::work::step(1);
                }
            };
            shared.run("film", LIMIT, endless).await
        });
        tokio::task::spawn_blocking(move || begun.recv().unwrap())
            .await
            .unwrap();
        leaver.abort();
        assert_eq!(work.run("film", LIMIT, || 7).await, Ok(7));
    }

    #[tokio::test]
    async fn names_that_nobody_uses_are_forgotten() {
        let work = SharedWork::new();
        assert_eq!(work.run("old", LIMIT, || 1).await, Ok(1));
        tokio::time::sleep(2 * SHORTEST_REST).await;
        assert_eq!(work.run("new", LIMIT, || 2).await, Ok(2));
        let names: Vec<String> = work.named.lock().unwrap().keys().cloned().collect();
        assert_eq!(names, ["new"]);
    }
}
