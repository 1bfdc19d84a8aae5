//! The progress of one connection: what it is doing, and since when it waits for its client.
//! `transport::connections` decides by it which connections end.

use std::time::{Duration, Instant};

use crate::config::ProxyLimits;

/// How long a client must have stopped sending or reading before its connection may be replaced.
/// The one that stopped first goes first.
const STALLED: Duration = Duration::from_millis(100);
/// How long a tunnel must have been quiet before it may be replaced.
const QUIET_TUNNEL: Duration = Duration::from_mins(1);
/// The bytes of a body that count as progress. Single bytes now and then do not keep a place.
const STEP: usize = 256;

/// An order to a connection, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionOrder {
    /// Go on.
    Serve,
    /// Take no further requests, and end when the open ones are answered.
    Finish,
    /// End at once.
    Close,
}

/// The priority of a connection; the lowest one is closed first. Within a kind, the longest wait
/// has the lowest priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionPriority {
    /// It has not sent a complete request head since this time.
    NoRequest(Instant),
    /// It has been between two requests since this time.
    Idle(Instant),
    /// Its client has sent nothing of a body, or read nothing of an answer, since this time.
    Stalled(Instant),
    /// It is a tunnel without traffic since this time.
    QuietTunnel(Instant),
}

/// The progress of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionProgress {
    /// The number of open requests.
    requests: usize,
    /// When the wait for the current request head started.
    head_since: Option<Instant>,
    /// When the last request ended.
    idle_since: Instant,
    /// True for HTTP/2, where received bytes do not imply that a request head has started.
    is_http2: bool,
    is_tunnel: bool,
    /// When the wait for body bytes started, and how many have arrived since.
    body_since: Option<Instant>,
    body_bytes: usize,
    /// When the client stopped reading.
    blocked_since: Option<Instant>,
    /// The time of the last byte in either direction.
    last_byte: Instant,
}

impl ConnectionProgress {
    /// The progress of a new connection.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            requests: 0,
            // The time for the first head runs from the connection on, or a client could connect
            // and send nothing.
            head_since: Some(now),
            idle_since: now,
            is_http2: false,
            is_tunnel: false,
            body_since: None,
            body_bytes: 0,
            blocked_since: None,
            last_byte: now,
        }
    }

    /// A complete request head has arrived.
    pub(crate) fn begin(&mut self, is_http2: bool) {
        self.requests += 1;
        self.is_http2 |= is_http2;
        self.head_since = None;
    }

    /// A request has ended.
    pub(crate) fn end(&mut self, now: Instant) {
        self.requests = self.requests.saturating_sub(1);
        self.body_since = None;
        self.idle_since = now;
    }

    /// It has become a tunnel.
    pub(crate) fn set_tunnel(&mut self) {
        self.is_tunnel = true;
    }

    /// Bytes were received.
    pub(crate) fn note_read(&mut self, now: Instant) {
        self.last_byte = now;
        // The first byte between two requests begins the next head.
        if self.requests == 0 && !self.is_http2 && !self.is_tunnel {
            self.head_since.get_or_insert(now);
        }
    }

    /// Bytes were sent.
    pub(crate) fn note_written(&mut self, now: Instant) {
        self.last_byte = now;
        self.blocked_since = None;
    }

    /// The client does not read at the moment.
    pub(crate) fn note_blocked(&mut self, now: Instant) {
        self.blocked_since.get_or_insert(now);
    }

    /// The proxy waits for more of a body.
    pub(crate) fn begin_body(&mut self, now: Instant) {
        // Called on every poll that finds nothing; the time counts from the first of them.
        if self.body_since.is_none() {
            self.body_bytes = 0;
            self.body_since = Some(now);
        }
    }

    /// Bytes of a body have arrived.
    pub(crate) fn note_body_bytes(&mut self, bytes: usize) {
        self.body_bytes = self.body_bytes.saturating_add(bytes);
        if self.body_bytes >= STEP {
            self.body_since = None;
        }
    }

    /// The proxy no longer waits for a body.
    pub(crate) fn end_body(&mut self) {
        self.body_since = None;
    }

    /// True if its only request has come whole, and its answer has not.
    pub(crate) fn is_answering(&self) -> bool {
        let is_whole = self.requests > 0 && self.body_since.is_none();
        is_whole && !self.is_http2 && !self.is_tunnel
    }

    /// Its priority; none if it must not be closed.
    pub(crate) fn priority(&self, now: Instant) -> Option<ConnectionPriority> {
        let is_long = |since: &Instant, long: Duration| now.duration_since(*since) >= long;
        let stalled = [self.blocked_since, self.body_since].into_iter().flatten();
        let stalled = stalled.filter(|since| is_long(since, STALLED)).min();
        if self.is_tunnel {
            let quiet = Some(self.last_byte).filter(|since| is_long(since, QUIET_TUNNEL));
            return quiet.map(ConnectionPriority::QuietTunnel);
        }
        if let Some(since) = stalled {
            return Some(ConnectionPriority::Stalled(since));
        }
        match self.head_since {
            // The client keeps up, so only we or the model can be slow: this connection is never
            // given up.
            _ if self.requests > 0 => None,
            Some(since) => Some(ConnectionPriority::NoRequest(since)),
            None => Some(ConnectionPriority::Idle(self.idle_since)),
        }
    }

    /// The order that follows from its deadlines.
    pub(crate) fn order(&self, now: Instant, limits: &ProxyLimits) -> ConnectionOrder {
        let is_over =
            |since: Instant, limit: u64| now.duration_since(since) >= Duration::from_millis(limit);
        let blocked = self.blocked_since;
        // Checked first, because it holds for requests and tunnels alike.
        if blocked.is_some_and(|since| is_over(since, limits.answer_stall_ms)) {
            return ConnectionOrder::Close;
        }
        if self.is_tunnel {
            let is_over = is_over(self.last_byte, limits.idle_ms);
            return if is_over {
                ConnectionOrder::Close
            } else {
                ConnectionOrder::Serve
            };
        }
        match self.head_since {
            _ if self.requests > 0 => ConnectionOrder::Serve,
            // Nothing was requested, so there is no answer to finish.
            Some(since) if is_over(since, limits.header_ms) => ConnectionOrder::Close,
            None if is_over(self.idle_since, limits.keep_alive_ms) => ConnectionOrder::Finish,
            Some(_) | None => ConnectionOrder::Serve,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn least_worth_is_the_connection_whose_client_did_least() {
        let start = Instant::now();
        let now = start + 600 * SECOND;
        let silent = ConnectionProgress::new(start);
        let mut idle = ConnectionProgress::new(start);
        idle.begin(false);
        idle.end(start);
        let mut stalled = ConnectionProgress::new(start);
        stalled.begin(false);
        stalled.begin_body(start);
        let mut unread = ConnectionProgress::new(start);
        unread.begin(false);
        unread.note_blocked(start + SECOND);
        let mut tunnel = ConnectionProgress::new(start);
        tunnel.begin(false);
        tunnel.set_tunnel();
        tunnel.end(start);
        let all = [silent, idle, stalled, unread, tunnel];
        let worths: Vec<ConnectionPriority> =
            all.iter().map(|one| one.priority(now).unwrap()).collect();
        assert!(worths.is_sorted(), "{worths:?}");
        let mut needed = ConnectionProgress::new(start);
        needed.begin(false);
        assert_eq!(needed.priority(now), None);
        // A thinking model takes its time: that is nobody's stall.
        assert_eq!(
            needed.order(now, &ProxyLimits::default()),
            ConnectionOrder::Serve
        );
    }

    #[test]
    fn trickle_keeps_no_place_but_steady_bytes_do() {
        let start = Instant::now();
        let mut progress = ConnectionProgress::new(start);
        progress.begin(false);
        for second in 0..100 {
            progress.begin_body(start + second * SECOND);
            progress.note_body_bytes(1);
        }
        let now = start + 100 * SECOND;
        assert_eq!(
            progress.priority(now),
            Some(ConnectionPriority::Stalled(start))
        );
        progress.note_body_bytes(STEP);
        progress.begin_body(now);
        assert_eq!(progress.priority(now), None);
    }

    #[test]
    fn time_for_a_head_runs_from_its_first_byte() {
        let (start, limits) = (Instant::now(), ProxyLimits::default());
        let mut progress = ConnectionProgress::new(start);
        progress.begin(false);
        progress.end(start);
        let later = start + 200 * SECOND;
        progress.note_read(later);
        assert_eq!(
            progress.order(later + 29 * SECOND, &limits),
            ConnectionOrder::Serve
        );
        progress.note_read(later + 29 * SECOND);
        assert_eq!(
            progress.order(later + 30 * SECOND, &limits),
            ConnectionOrder::Close
        );
    }

    #[test]
    fn idle_connection_is_closed_gently() {
        let (start, limits) = (Instant::now(), ProxyLimits::default());
        let mut progress = ConnectionProgress::new(start);
        progress.begin(true);
        progress.end(start);
        // A ping is no request.
        progress.note_read(start + SECOND);
        let kept = Duration::from_millis(limits.keep_alive_ms);
        let over = start + kept;
        let before = start + kept.saturating_sub(SECOND);
        assert_eq!(progress.order(before, &limits), ConnectionOrder::Serve);
        assert_eq!(progress.order(over, &limits), ConnectionOrder::Finish);
    }

    #[test]
    fn reader_that_reads_now_and_then_is_kept() {
        let (start, limits) = (Instant::now(), ProxyLimits::default());
        let mut progress = ConnectionProgress::new(start);
        progress.begin(false);
        for minute in 0..100 {
            progress.note_blocked(start + 60 * minute * SECOND);
            let now = start + 60 * (minute + 1) * SECOND;
            assert_eq!(progress.order(now, &limits), ConnectionOrder::Serve);
            progress.note_written(now);
        }
        let dead = start + 10_000 * SECOND;
        progress.note_blocked(dead);
        assert_eq!(
            progress.order(dead + 300 * SECOND, &limits),
            ConnectionOrder::Close
        );
    }
}
