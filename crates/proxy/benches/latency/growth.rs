//! What a call costs as its conversation grows.

use std::time::{Duration, Instant};

use crate::client::Sender;
use crate::servers::{NARROW, Servers, UNCHANGED, WIDE, runtime};
use crate::talk::Talk;
use crate::times::{Times, table};

/// The rounds at which calls are measured, and how many calls there.
const ROUNDS: [usize; 3] = [100, 1_000, 5_000];
const CALLS: usize = 100;

pub(crate) fn run(servers: &Servers) {
    let runtime = runtime();
    let models = [UNCHANGED, WIDE, NARROW].into_iter();
    for (model, rounds) in models.flat_map(|model| ROUNDS.map(|rounds| (model, rounds))) {
        let mut talk =
            Talk::new(model, &format!("growth {rounds} of {model}"), 4).of_rounds(rounds);
        let mut candidates = [
            ("no proxy", Sender::new(servers.direct), Times::default()),
            (
                "bare reverse proxy",
                Sender::new(servers.bare),
                Times::default(),
            ),
            (
                "trimtab",
                Sender::new(servers.ours.address()),
                Times::default(),
            ),
        ];
        let bytes = talk.body().len();
        // The slowest call of ours, and the first that was not sent as it came.
        let mut slowest = (Duration::ZERO, 0);
        let mut first_edited = None;
        for call in 0..=CALLS {
            let body = talk.next();
            for (_, sender, times) in &mut candidates {
                let start = Instant::now();
                let action = runtime.block_on(sender.send(body.clone()));
                if call == 0 {
                    continue;
                }
                times.push(start.elapsed());
                if !action.is_empty() {
                    slowest = slowest.max((start.elapsed(), call));
                }
                if action == "edited" {
                    first_edited.get_or_insert(call);
                }
            }
        }
        let title = format!("one call of {model} at round {rounds}, {} KB", bytes >> 10);
        table(&title, &candidates.map(|(name, _, times)| (name, times)));
        let (time, call) = slowest;
        let milliseconds = time.as_secs_f64() * 1e3;
        println!(
            "  ours: call {call} was the slowest, {milliseconds:.1} ms; the first edited one was {first_edited:?}"
        );
    }
}
