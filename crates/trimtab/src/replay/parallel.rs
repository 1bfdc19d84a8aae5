//! Runs work on several threads.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Applies `work` to each of `items`, and returns the results in their order.
///
/// ```
/// let squares = trimtab::replay::parallel::map(&[1, 2, 3], |n| n * n);
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    // Threads take the next item when they are free, because conversations differ much in size.
    let next = Mutex::new(items.iter().enumerate());
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                let take = || next.lock().ok()?.next();
                while let Some((at, item)) = take() {
                    let given = work(item);
                    // The lock is poisoned only if another thread panicked, and then the scope
                    // panics, too.
                    if let Ok(mut done) = done.lock() {
                        done.push((at, given));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, given)| given).collect()
}
