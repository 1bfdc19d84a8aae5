//! What a call costs as its conversation grows.

use std::time::Instant;

use crate::client::Sender;
use crate::servers::{NARROW, Servers, WIDE, runtime};
use crate::talk::Talk;
use crate::times::{Times, table};

/// The rounds at which calls are measured, and how many calls there.
const ROUNDS: [usize; 3] = [100, 1_000, 5_000];
const CALLS: usize = 100;

pub(crate) fn run(servers: &Servers) {
    let runtime = runtime();
    let models = [WIDE, NARROW].into_iter();
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
        for call in 0..=CALLS {
            let body = talk.next();
            for (_, sender, times) in &mut candidates {
                let start = Instant::now();
                runtime.block_on(sender.send(body.clone()));
                if call > 0 {
                    times.push(start.elapsed());
                }
            }
        }
        let title = format!("one call of {model} at round {rounds}, {} KB", bytes >> 10);
        table(&title, &candidates.map(|(name, _, times)| (name, times)));
    }
}
