//! The limits of the proxy, with their defaults and allowed ranges. `docs/proxy.md` lists them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of the proxy.
///
/// A body above a limit is never rejected; it passes unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyLimits {
    /// The maximum size of a body that is read; a longer one streams through.
    pub body_bytes: usize,
    /// The maximum decompressed size of a body.
    pub decoded_bytes: usize,
    /// The maximum decompressed size of a body as a multiple of its compressed size.
    pub decode_ratio: usize,
    /// The minimum size of a body that is managed; a smaller one has nothing to trim.
    pub session_bytes: usize,
    /// The time limit of planning in milliseconds. After that the request passes unchanged.
    pub plan_ms: u64,
    /// The maximum number of requests that are planned concurrently; more pass unchanged.
    pub plans: usize,
    /// The maximum number of sessions in memory; others are loaded from the store when needed.
    pub sessions: usize,
    /// The maximum number of connections, including tunnels. A further one replaces the one with
    /// the lowest priority; if all are needed, it waits to be accepted.
    pub connections: usize,
    /// The maximum number of concurrent requests on an HTTP/2 connection.
    pub streams: usize,
    /// The approximate memory of requests and caches in bytes. A request without memory passes
    /// unchanged. The process needs some 100 MB more.
    pub memory_bytes: usize,
    /// The part of it that the requests of one tenant may use.
    pub tenant_memory_bytes: usize,
    /// The maximum number of rounds of retrieval calls within one answer.
    pub retrieval_rounds: usize,
    /// The time limit for a request head in milliseconds, from the connection or from the first
    /// byte of a later request.
    pub header_ms: u64,
    /// How long an idle connection is kept, in milliseconds.
    pub keep_alive_ms: u64,
    /// The interval of HTTP/2 pings and the time limit for their answers, in milliseconds.
    pub ping_ms: u64,
    /// How long a request body may stall, in milliseconds.
    pub body_idle_ms: u64,
    /// How long a client may read nothing of its answer, in milliseconds.
    pub answer_stall_ms: u64,
    /// The time limit for connecting to an upstream, in milliseconds.
    pub connect_ms: u64,
    /// How long an answer or a WebSocket may stall, in milliseconds. There is no total limit.
    pub idle_ms: u64,
    /// How long an unused connection to an upstream is kept, in milliseconds.
    pub pool_idle_ms: u64,
    /// How long the start of a stream is held back to detect an error, in milliseconds.
    pub peek_ms: u64,
    /// The time limit for a summary, in milliseconds.
    pub summary_ms: u64,
    /// The time for open streams to end at shutdown, in milliseconds.
    pub drain_ms: u64,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            decoded_bytes: 64 << 20,
            decode_ratio: 32,
            session_bytes: 8 << 10,
            plan_ms: 1_000,
            plans: 64,
            sessions: 5_000,
            connections: 1_024,
            streams: 100,
            memory_bytes: 256 << 20,
            tenant_memory_bytes: 128 << 20,
            retrieval_rounds: 8,
            header_ms: 30_000,
            keep_alive_ms: 300_000,
            ping_ms: 30_000,
            body_idle_ms: 60_000,
            answer_stall_ms: 300_000,
            connect_ms: 10_000,
            idle_ms: 600_000,
            pool_idle_ms: 20_000,
            peek_ms: 3_000,
            summary_ms: 120_000,
            drain_ms: 30_000,
        }
    }
}

impl ProxyLimits {
    /// All limits: name, value, minimum and maximum.
    pub(super) fn ranges(&self) -> [(&'static str, u64, u64, u64); 23] {
        const MIB: u64 = 1 << 20;
        const DAY: u64 = 86_400_000;
        let wide = |size: usize| size as u64;
        [
            ("body_bytes", wide(self.body_bytes), 0, 1024 * MIB),
            ("decoded_bytes", wide(self.decoded_bytes), 0, 64 * MIB),
            ("decode_ratio", wide(self.decode_ratio), 1, 10_000),
            ("session_bytes", wide(self.session_bytes), 0, 1024 * MIB),
            ("plan_ms", self.plan_ms, 1, 600_000),
            ("plans", wide(self.plans), 0, 4_096),
            ("sessions", wide(self.sessions), 1, 1_000_000),
            ("connections", wide(self.connections), 1, 1_000_000),
            ("streams", wide(self.streams), 1, 10_000),
            ("memory_bytes", wide(self.memory_bytes), MIB, MIB * MIB),
            (
                "tenant_memory_bytes",
                wide(self.tenant_memory_bytes),
                MIB,
                MIB * MIB,
            ),
            ("retrieval_rounds", wide(self.retrieval_rounds), 1, 100),
            ("header_ms", self.header_ms, 1, DAY),
            ("keep_alive_ms", self.keep_alive_ms, 1, DAY),
            ("ping_ms", self.ping_ms, 1, DAY),
            ("body_idle_ms", self.body_idle_ms, 1, DAY),
            ("answer_stall_ms", self.answer_stall_ms, 1, DAY),
            ("connect_ms", self.connect_ms, 1, DAY),
            ("idle_ms", self.idle_ms, 1, DAY),
            ("pool_idle_ms", self.pool_idle_ms, 1, DAY),
            ("peek_ms", self.peek_ms, 0, DAY),
            ("summary_ms", self.summary_ms, 1, DAY),
            ("drain_ms", self.drain_ms, 0, DAY),
        ]
    }

    /// The time limit of planning.
    pub(crate) fn plan_time(&self) -> Duration {
        Duration::from_millis(self.plan_ms)
    }

    /// How long a request body may stall.
    pub(crate) fn body_idle_time(&self) -> Duration {
        Duration::from_millis(self.body_idle_ms)
    }

    /// How long an answer may stall.
    pub(crate) fn idle_time(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    /// How long the start of a stream is held back.
    pub(crate) fn peek_time(&self) -> Duration {
        Duration::from_millis(self.peek_ms)
    }

    /// The time limit for a summary.
    pub(crate) fn summary_time(&self) -> Duration {
        Duration::from_millis(self.summary_ms)
    }

    /// The time for open streams to end.
    pub(crate) fn drain_time(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}
