//! What a call costs if the client goes back in its conversation and sends the same messages again.

use std::time::Instant;

use bytes::Bytes;

use crate::client::Sender;
use crate::servers::{NARROW, Servers, WIDE, runtime};
use crate::talk::Talk;
use crate::times::{Times, table};

/// The rounds to which the client goes back.
const ROUNDS: [usize; 3] = [100, 1_000, 5_000];
/// The calls after that, and how often the client goes back.
const CALLS: usize = 20;
const TIMES_BACK: usize = 5;

pub(crate) fn run(servers: &Servers) {
    let runtime = runtime();
    let models = [WIDE, NARROW].into_iter();
    for (model, rounds) in models.flat_map(|model| ROUNDS.map(|rounds| (model, rounds))) {
        let topic = format!("again {rounds} of {model}");
        let mut talk = Talk::new(model, &topic, 4).of_rounds(rounds);
        let bodies: Vec<Bytes> = (0..=CALLS).map(|_| talk.next()).collect();
        let senders = [servers.direct, servers.bare, servers.ours.address()].map(Sender::new);
        let mut rows = [
            ("no proxy", Times::default()),
            ("bare reverse proxy", Times::default()),
            ("trimtab, sent for the first time", Times::default()),
            ("trimtab, the client goes back", Times::default()),
            ("trimtab, it sends the next again", Times::default()),
        ];
        for pass in 0..=TIMES_BACK {
            for (call, body) in bodies.iter().enumerate() {
                for (number, sender) in senders.iter().enumerate() {
                    let start = Instant::now();
                    runtime.block_on(sender.send(body.clone()));
                    let row = match (number, pass, call) {
                        // The first call of all only warms up.
                        (_, 0, 0) => continue,
                        (2, 1.., 0) => 3,
                        (2, 1.., _) => 4,
                        _ => number,
                    };
                    if let Some((_, times)) = rows.get_mut(row) {
                        times.push(start.elapsed());
                    }
                }
            }
        }
        let title = format!("sent again from round {rounds} of {model}");
        table(&title, &rows);
    }
}
