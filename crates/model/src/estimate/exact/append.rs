//! Counting a text that grows at its end.

use super::{CHUNK, ExactCounter, cut, runs};

/// A growing text, counted exactly without counting it again.
///
/// What lies before the last safe cut is settled for good; only the short rest behind it is
/// kept and counted again when the total is asked for.
///
/// ```
/// use trimtab_model::estimate::{Appending, TokenCounter, Vocabulary};
///
/// let counter = Vocabulary::O200k.counter().unwrap();
/// let mut text = Appending::new(counter);
/// text.push("first line\nsec");
/// text.push("ond line\n");
/// assert_eq!(text.count(), counter.count("first line\nsecond line\n"));
/// ```
#[derive(Clone, Debug)]
pub struct Appending {
    counter: &'static ExactCounter,
    settled: usize,
    rest: String,
}

impl Appending {
    /// An empty text.
    pub fn new(counter: &'static ExactCounter) -> Self {
        Self {
            counter,
            settled: 0,
            rest: String::new(),
        }
    }

    /// Adds `more` at the end.
    pub fn push(&mut self, more: &str) {
        self.rest.push_str(more);
        let Some(at) = cut::last_cut(&self.rest) else {
            return;
        };
        let open = self.rest.split_off(at);
        self.settled += cut::chunks(&self.rest, CHUNK)
            .map(|chunk| runs::count(self.counter, chunk))
            .sum::<usize>();
        self.rest = open;
    }

    /// The tokens of the whole text so far.
    pub fn count(&self) -> u64 {
        let tokens = self.settled + runs::count(self.counter, &self.rest);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}
