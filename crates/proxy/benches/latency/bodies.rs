//! Added latency by the size of the body.

use std::time::Instant;

use bytes::Bytes;

use crate::client::Sender;
use crate::servers::{NARROW, Servers, WIDE, runtime};
use crate::talk::growing;
use crate::times::{Times, table};

/// Bytes of a body, and how many are sent.
const SIZES: [(usize, usize); 3] = [(1 << 10, 2_000), (500 << 10, 300), (5 << 20, 100)];

pub(crate) fn run(servers: &Servers) {
    for (bytes, count) in SIZES {
        let bodies = |model| growing(model, &format!("{model} {bytes}"), bytes, count + 1);
        let (wide, narrow) = (bodies(WIDE), bodies(NARROW));
        let ours = servers.ours.address();
        let mut candidates = [
            Candidate::new("no proxy", Sender::new(servers.direct), &wide),
            Candidate::new("bare reverse proxy", Sender::new(servers.bare), &wide),
            Candidate::new("trimtab, all of it fits", Sender::new(ours), &wide),
            Candidate::new(
                "trimtab, the window is too small",
                Sender::new(ours),
                &narrow,
            ),
        ];
        let runtime = runtime();
        for _ in 0..=count {
            for candidate in &mut candidates {
                runtime.block_on(candidate.step());
            }
        }
        let title = format!("one call, {} KB, one round more each time", bytes >> 10);
        let acted: Vec<String> = candidates.iter().map(|one| one.action.clone()).collect();
        let rows = candidates.map(|candidate| (candidate.name, candidate.times));
        table(&title, &rows);
        println!(
            "  the last call was {}",
            acted.join(" / ").trim_start_matches([' ', '/'])
        );
    }
}

struct Candidate {
    name: &'static str,
    sender: Sender,
    /// What is left to be sent, the next one last.
    bodies: Vec<Bytes>,
    times: Times,
    action: String,
    /// The first call only warms up.
    warm: bool,
}

impl Candidate {
    fn new(name: &'static str, sender: Sender, bodies: &[Bytes]) -> Self {
        Self {
            name,
            sender,
            bodies: bodies.iter().rev().cloned().collect(),
            times: Times::default(),
            action: String::new(),
            warm: false,
        }
    }

    async fn step(&mut self) {
        let Some(body) = self.bodies.pop() else {
            return;
        };
        let start = Instant::now();
        self.action = self.sender.send(body).await;
        if self.warm {
            self.times.push(start.elapsed());
        }
        self.warm = true;
    }
}
