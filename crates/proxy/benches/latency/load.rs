//! Throughput: as many calls as possible, on several connections.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;

use crate::client::Sender;
use crate::servers::{Servers, WIDE, runtime};
use crate::talk::growing;

/// Connections at the same time, each with a conversation of its own.
const CONNECTIONS: usize = 8;
/// How often each candidate has its turn.
const TURNS: usize = 3;
/// Bytes of a body, and how many each connection sends in a turn.
const SIZES: [(usize, usize); 3] = [(1 << 10, 500), (500 << 10, 25), (5 << 20, 4)];

pub(crate) fn run(servers: &Servers) {
    for (bytes, count) in SIZES {
        let all: Vec<Vec<Bytes>> = (0..CONNECTIONS)
            .map(|at| {
                growing(
                    WIDE,
                    &format!("load {at} {bytes}"),
                    bytes,
                    count * TURNS + 1,
                )
            })
            .collect();
        let mut candidates = [
            ("no proxy", servers.direct, 0.0),
            ("bare reverse proxy", servers.bare, 0.0),
            ("trimtab", servers.ours.address(), 0.0),
        ];
        for (_, address, _) in &candidates {
            // The first call of a conversation is another matter.
            let first = all
                .iter()
                .map(|bodies| bodies.iter().take(1).cloned().collect());
            at_once(*address, first.collect());
        }
        for turn in 0..TURNS {
            for (_, address, seconds) in &mut candidates {
                let part = |bodies: &Vec<Bytes>| {
                    let part = bodies.iter().skip(1 + turn * count).take(count);
                    part.cloned().collect::<Vec<_>>()
                };
                let start = Instant::now();
                at_once(*address, all.iter().map(part).collect());
                *seconds += start.elapsed().as_secs_f64();
            }
        }
        report(bytes, CONNECTIONS * count * TURNS, &candidates);
    }
}

fn at_once(to: SocketAddr, all: Vec<Vec<Bytes>>) {
    runtime().block_on(async {
        let tasks: Vec<_> = all
            .into_iter()
            .map(|bodies| {
                let sender = Sender::new(to);
                tokio::spawn(async move {
                    for body in bodies {
                        sender.send(body).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("it sends");
        }
    });
}

fn report(bytes: usize, calls: usize, candidates: &[(&str, SocketAddr, f64)]) {
    println!(
        "\ncalls a second, {} KB, {CONNECTIONS} connections",
        bytes >> 10
    );
    let bare = candidates.get(1).map_or(1.0, |(_, _, seconds)| *seconds);
    for (name, _, seconds) in candidates {
        println!(
            "  {name:<34} {:>9.0} {:>8.2}x",
            calls as f64 / seconds,
            bare / seconds
        );
    }
}
