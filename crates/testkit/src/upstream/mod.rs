//! A strict provider on loopback that answers from a script.
//!
//! It speaks Chat Completions, Responses and Messages, streaming and not. Every request is
//! judged by the rules of its provider, counted against a window, and recorded; reasoning can
//! be signed against what came before it; answers can go wrong in all the ways of
//! [`ScriptedFault`].
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use trimtab_testkit::script::{Script, ScriptedReply};
//! use trimtab_testkit::upstream::{UpstreamOptions, ReplySource, Upstream};
//!
//! let script = Script::new([ScriptedReply::text("hello")]);
//! let upstream = Upstream::start(UpstreamOptions {
//!     window: Some(8_000),
//!     ..UpstreamOptions::new(ReplySource::script(script))
//! })
//! .await
//! .unwrap();
//! assert!(upstream.url().starts_with("http://127.0.0.1:"));
//! assert!(upstream.requests().is_empty());
//! upstream.shutdown().await;
//! # });
//! ```

mod answer;
mod answer_bytes;
mod binding;
mod cache;
mod canonical;
mod count;
mod decode;
mod exchange;
mod faults;
mod model_rules;
mod options;
mod overflow;
mod prompt;
mod received;
mod refusal;
mod route;
mod rules;
mod schedule;
mod seal;
mod server;
mod socket;
mod source;
mod state;
mod strict;
mod turn;

pub use crate::script::{ContentCoding, ScriptedFault};
pub use cache::PromptCacheRules;
pub use count::Count;
pub use options::UpstreamOptions;
pub use overflow::OverflowForm;
pub use received::{ReceivedRequest, RequestOutcome, Violation};
pub use schedule::FaultSchedule;
pub use source::ReplySource;
pub use strict::StrictProvider;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use exchange::UpstreamExchange;

/// A provider that is being served on loopback; it ends when this is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    exchange: Arc<UpstreamExchange>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Upstream {
    /// Begins to serve on a free port of 127.0.0.1, in the current tokio runtime.
    pub async fn start(options: UpstreamOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let exchange = Arc::new(UpstreamExchange::new(options));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(server::serve(listener, Arc::clone(&exchange), stopped));
        Ok(Self {
            address,
            exchange,
            stop,
            serving,
        })
    }

    /// The base address, without `/v1` and without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that was asked so far, in the order of the answers.
    pub fn requests(&self) -> Vec<Arc<ReceivedRequest>> {
        self.exchange.requests()
    }

    /// Every rule that was broken so far, as `serial: rule`; empty is what tests want to see.
    pub fn violations(&self) -> Vec<String> {
        let requests = self.requests();
        let broken = requests.iter().flat_map(|request| {
            let violations = request.violations.iter();
            violations.map(|violation| format!("{}: {}", request.serial, violation.rule))
        });
        broken.collect()
    }

    /// Forgets what was asked so far; the replies go on where they were.
    pub fn clear_requests(&self) {
        self.exchange.clear_requests();
    }

    /// Stops listening and breaks every connection off.
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
