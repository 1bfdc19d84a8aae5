//! Benchmarks as ratios.
//!
//! Machines are noisy and absolute times travel badly, so the candidates of a comparison run
//! interleaved in one process and are reported beside a baseline.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// One comparison: the first candidate is the baseline.
pub struct BenchComparison {
    title: String,
    rounds: usize,
    candidates: Vec<BenchCandidate>,
    by_processor_time: bool,
}

struct BenchCandidate {
    name: String,
    run: Box<dyn FnMut()>,
    times: Vec<Duration>,
}

impl BenchComparison {
    /// A comparison whose candidates each run `rounds` times.
    pub fn new(title: impl Into<String>, rounds: usize) -> Self {
        Self {
            title: title.into(),
            rounds: rounds.max(1),
            candidates: Vec::new(),
            by_processor_time: false,
        }
    }

    /// Counts the time that this thread has a processor, not the time that it waits for one: for
    /// candidates that do all their work on this thread.
    #[must_use]
    pub fn by_processor_time(mut self) -> Self {
        self.by_processor_time = true;
        self
    }

    /// Adds a candidate; the first one is the baseline of all others.
    #[must_use]
    pub fn candidate<T>(
        mut self,
        name: impl Into<String>,
        mut run: impl FnMut() -> T + 'static,
    ) -> Self {
        let run = Box::new(move || {
            black_box(run());
        });
        self.candidates.push(BenchCandidate {
            name: name.into(),
            run,
            times: Vec::new(),
        });
        self
    }

    /// Runs everything interleaved, prints a table and gives each candidate's median. Beside
    /// each median and each mean stands its ratio to that of the baseline.
    #[expect(clippy::print_stdout, reason = "a benchmark's table is what it is for")]
    pub fn run(mut self) -> Vec<Duration> {
        let origin = Instant::now();
        let clock = || {
            if self.by_processor_time {
                processor_time()
            } else {
                origin.elapsed()
            }
        };
        for round in 0..=self.rounds {
            for candidate in &mut self.candidates {
                let start = clock();
                (candidate.run)();
                // The first round only warms up.
                if round > 0 {
                    candidate.times.push(clock().saturating_sub(start));
                }
            }
        }
        let times: Vec<(Duration, Duration)> = self
            .candidates
            .iter_mut()
            .map(|candidate| (median(&mut candidate.times), mean(&candidate.times)))
            .collect();
        println!("\n{}", self.title);
        let baseline = times.first().copied().unwrap_or_default();
        for (candidate, (median, mean)) in self.candidates.iter().zip(&times) {
            println!(
                "  {:<44} median {median:>12?} {:>8.2} x   mean {mean:>12?} {:>8.2} x",
                candidate.name,
                ratio(*median, baseline.0),
                ratio(*mean, baseline.1),
            );
        }
        times.into_iter().map(|(median, _)| median).collect()
    }
}

/// How long this thread has had a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default())
        + Duration::from_nanos(nanoseconds)
}

fn ratio(time: Duration, baseline: Duration) -> f64 {
    time.as_secs_f64() / baseline.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn mean(times: &[Duration]) -> Duration {
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX).max(1);
    times.iter().sum::<Duration>() / count
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
