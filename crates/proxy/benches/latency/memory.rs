//! How much memory conversations take that are kept ready.

use crate::client::Sender;
use crate::servers::{Servers, WIDE, proxy, runtime};
use crate::talk::Talk;

/// Conversations, and bytes of each.
const SESSIONS: usize = 5_000;
const SIZES: [usize; 2] = [16 << 10, 64 << 10];

pub(crate) fn run(servers: &Servers) {
    println!("\n{SESSIONS} conversations, one after the other");
    for bytes in SIZES {
        let (ours, _folder) = proxy(servers.direct);
        let sender = Sender::new(ours.address());
        let before = resident();
        let runtime = runtime();
        for session in 0..SESSIONS {
            let talk = Talk::new(WIDE, &format!("session {session}"), 80).of_bytes(bytes);
            runtime.block_on(sender.send(talk.body()));
        }
        let grown = resident().saturating_sub(before);
        println!(
            "  of {} KB: {} MB, {} of them ready",
            bytes >> 10,
            grown >> 20,
            ours.report().sessions
        );
    }
}

/// Bytes that this process holds in memory; 0 where the system does not say.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
