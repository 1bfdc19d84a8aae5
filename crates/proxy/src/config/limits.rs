//! The limits of the proxy, with their defaults and allowed ranges. `docs/proxy.md` lists them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is refused, or passed on untouched, because it is too much.
///
/// A body that is over a limit is never refused: it passes as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyLimits {
    /// Bytes of a body that is looked into; a longer one streams through.
    pub body_bytes: usize,
    /// Bytes to which a compressed body is unpacked.
    pub decoded_bytes: usize,
    /// How many times its size a compressed body may unpack to.
    pub decode_ratio: usize,
    /// Bytes of a body from which on it is worth a session: less has nothing to trim.
    pub session_bytes: usize,
    /// Milliseconds that planning may take before the request goes as it came.
    pub plan_ms: u64,
    /// Requests that are planned at the same time; more pass as they came.
    pub plans: usize,
    /// Sessions kept in memory; older ones are read from the store when they come back.
    pub sessions: usize,
    /// Connections at the same time, tunnels included. Above that the one that is worth
    /// least is ended; if all are needed, others wait to be accepted.
    pub connections: usize,
    /// Requests at the same time on one HTTP/2 connection.
    pub streams: usize,
    /// Bytes of memory that requests and caches may take, about; a request that finds no more
    /// passes as it came. The process takes some 100 MB beside them.
    pub memory_bytes: usize,
    /// Bytes of that which the requests of one tenant may take.
    pub tenant_memory_bytes: usize,
    /// Rounds of retrieval calls that are served within one answer.
    pub retrieval_rounds: usize,
    /// Milliseconds for a client to send the head of its request, from when it connects or
    /// from the first byte of a further request.
    pub header_ms: u64,
    /// Milliseconds for which a connection without a request is kept.
    pub keep_alive_ms: u64,
    /// Milliseconds between two HTTP/2 pings, and for the answer to one.
    pub ping_ms: u64,
    /// Milliseconds without a byte after which the body of a request is given up.
    pub body_idle_ms: u64,
    /// Milliseconds for which a client may take no byte of its answer.
    pub answer_stall_ms: u64,
    /// Milliseconds for a connection to an upstream.
    pub connect_ms: u64,
    /// Milliseconds without a byte after which a stream or a WebSocket is given up. There is
    /// no total.
    pub idle_ms: u64,
    /// Milliseconds for which an unused connection to an upstream is kept.
    pub pool_idle_ms: u64,
    /// Milliseconds for which the beginning of a stream is held back to see whether it is an
    /// error.
    pub peek_ms: u64,
    /// Milliseconds that a model may take for a summary.
    pub summary_ms: u64,
    /// Milliseconds for open streams to end after the order to stop.
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
    /// The names of all limits with their values and what is allowed.
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

    /// How long planning may take.
    pub(crate) fn plan_time(&self) -> Duration {
        Duration::from_millis(self.plan_ms)
    }

    /// How long the body of a request may be silent.
    pub(crate) fn body_idle_time(&self) -> Duration {
        Duration::from_millis(self.body_idle_ms)
    }

    /// How long a stream may be silent.
    pub(crate) fn idle_time(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    /// How long the beginning of a stream is held back.
    pub(crate) fn peek_time(&self) -> Duration {
        Duration::from_millis(self.peek_ms)
    }

    /// How long a model may take for a summary.
    pub(crate) fn summary_time(&self) -> Duration {
        Duration::from_millis(self.summary_ms)
    }

    /// How long open streams may take to end.
    pub(crate) fn drain_time(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}
