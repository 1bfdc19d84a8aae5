//! Times of candidates, beside each other.

use std::time::Duration;

/// The times of one candidate.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The times of two candidates together.
    pub(crate) fn of_both(one: &Self, other: &Self) -> Self {
        Self([one.0.as_slice(), other.0.as_slice()].concat())
    }

    /// The time that so many of a hundred are not above, in microseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        let time = sorted.get(at).copied().unwrap_or_default();
        time.as_secs_f64() * 1e6
    }
}

/// Prints what each candidate adds to the first, beside what the second adds.
pub(crate) fn table(title: &str, rows: &[(&str, Times)]) {
    println!("\n{title}");
    println!(
        "  {:<34} {:>9} {:>9} {:>10} {:>10} {:>9}",
        "", "p50 µs", "p99 µs", "added p50", "added p99", "to bare"
    );
    let at = |row: usize, percent| {
        let row = rows.get(row).map(|(_, times)| times);
        row.map_or(0.0, |times| times.percentile(percent))
    };
    let floor = (at(1, 50) - at(0, 50)).max(f64::MIN_POSITIVE);
    for (name, times) in rows {
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        let (added, added99) = (p50 - at(0, 50), p99 - at(0, 99));
        println!(
            "  {name:<34} {p50:>9.0} {p99:>9.0} {added:>10.0} {added99:>10.0} {:>8.2}x",
            added / floor
        );
    }
}
