//! Preset `refs`: outputs stored behind refs, and a summary once the window is 80 % full.

mod compaction;
mod outputs;
mod summariser;

use std::sync::Arc;

use trimtab_model::{Dialect, Usage};
use trimtab_testkit::upstream::ReceivedRequest;

use crate::proxied::Proxied;
use crate::scripted::all_text;
use crate::talk::log;

const REFS: [&str; 2] = ["--preset", "refs"];

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&REFS, args].concat()).await
}

/// A usage of so many tokens in all, in its four parts.
fn used(total: u64) -> Usage {
    Usage {
        input: total - 1_000,
        cache_creation: 300,
        cache_read: 600,
        output: 100,
    }
}

/// Two turns with a round each; every answer reports the usage.
fn talk_until(talk: &mut Proxied, total: u64) {
    talk.answers.report(used(total));
    talk.round(&[&format!("FIRST-OUTPUT\n{}", log(150))]);
    talk.turn("first answer", "SECOND-QUESTION");
    talk.round(&["SECOND-OUTPUT"]);
}

/// The same; the request that has the summary.
async fn compacted(talk: &mut Proxied, total: u64) -> Arc<ReceivedRequest> {
    talk_until(talk, total);
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
    talk.round(&["THIRD-OUTPUT"]);
    talk.send_until(|seen| !all_text(seen).contains("FIRST-OUTPUT"))
        .await
}
