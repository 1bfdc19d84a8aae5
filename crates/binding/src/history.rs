//! Compares the messages of a request with the log of its session.

use trimtab::model::{Dialect, Message, Role};
use trimtab::request::without_metadata;
use trimtab::session::Session;
use trimtab::wire::scan::{BodyScan, ScanMemo};

use crate::BindingError;

/// The last request of a host, so that only what is new in the next one is parsed.
pub(crate) struct LastRequest {
    body: Vec<u8>,
    /// The position of the first message of the list: 1 behind a system field.
    first: usize,
    memo: ScanMemo,
}

/// A request, and how many of its first messages are those of the last one, byte for byte.
pub(crate) struct RequestScan<'b> {
    pub(crate) scan: BodyScan<'b>,
    pub(crate) known: usize,
}

impl LastRequest {
    /// Remembers a request.
    pub(crate) fn new(body: &[u8], scan: BodyScan<'_>) -> Option<Self> {
        Some(Self {
            body: body.to_vec(),
            first: scan.first_in_list(),
            memo: scan.into_memo()?,
        })
    }

    /// Scans a request that begins like this one; none if too little is the same.
    fn resume<'b>(&self, body: &'b [u8]) -> Option<RequestScan<'b>> {
        let same = common_length(&self.body, body);
        let is_known = |entries: &usize| {
            let boundary = self.memo.boundary(*entries);
            boundary.is_some_and(|boundary| boundary.offset <= same)
        };
        let entries = (1..=self.memo.entries()).rev().find(is_known)?;
        let scan = BodyScan::resume(body, self.memo.clone(), entries).ok()?;
        let before = self.memo.boundary(entries)?.messages;
        // A system field that came or went moves all positions.
        let known = before + self.first;
        (scan.first_in_list() == self.first).then_some(RequestScan { scan, known })
    }
}

/// Scans a request of a host.
pub(crate) fn scan_request<'b>(
    body: &'b [u8],
    dialect: Dialect,
    last: Option<&LastRequest>,
) -> Result<RequestScan<'b>, BindingError> {
    if let Some(resumed) = last.and_then(|last| last.resume(body)) {
        return Ok(resumed);
    }
    let refuse = |why: String| BindingError::Request {
        dialect: dialect.to_string(),
        field: list_field(dialect),
        why,
    };
    let scan = BodyScan::new(body, dialect).map_err(|why| refuse(why.to_string()))?;
    if scan.is_empty() {
        return Err(refuse("it has no messages".to_owned()));
    }
    Ok(RequestScan { scan, known: 0 })
}

/// The field with the messages.
pub(crate) fn list_field(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Responses => "input",
        Dialect::Chat | Dialect::Messages => "messages",
    }
}

/// How a request relates to the log of a session.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestHistory {
    /// It has the messages of the log, and perhaps more.
    Continues(Vec<Message>),
    /// A message of the log is another one in it, or missing.
    Differs,
}

/// Compares a request with the log.
pub(crate) fn compare(
    session: &Session,
    request: &RequestScan<'_>,
) -> Result<RequestHistory, BindingError> {
    let (log, scan) = (session.projection().log(), &request.scan);
    if scan.len() < log.len() {
        return Ok(RequestHistory::Differs);
    }
    let mut new = Vec::new();
    let from = request.known.min(log.len());
    for (at, message) in (from..scan.len()).zip(scan.messages(from)) {
        let unreadable = || BindingError::Request {
            dialect: scan.dialect().to_string(),
            field: list_field(scan.dialect()),
            why: format!("message {at} cannot be read"),
        };
        let message = message.ok_or_else(unreadable)?;
        match log.get(at) {
            None => new.push(message),
            Some(logged) if is_same(logged, &message, scan.dialect()) => {}
            Some(_) => return Ok(RequestHistory::Differs),
        }
    }
    Ok(RequestHistory::Continues(new))
}

/// True if a message is the logged one. Instructions may change with every call, for example if
/// they contain the time. The request's own bytes are sent then.
fn is_same(logged: &Message, message: &Message, dialect: Dialect) -> bool {
    let is_system = |message: &Message| message.role == Role::System;
    (is_system(logged) && is_system(message))
        || without_metadata(logged, dialect) == without_metadata(message, dialect)
}

/// How many bytes at the beginning are the same.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    // Whole blocks are compared first, which is much faster than single bytes.
    const BLOCK: usize = 4096;
    let blocks = one.chunks(BLOCK).zip(other.chunks(BLOCK));
    let same = blocks.take_while(|(one, other)| one == other);
    let start = same.map(|(one, _)| one.len()).sum();
    let rest = |bytes| <[u8]>::get(bytes, start..).unwrap_or_default().iter();
    start
        + rest(one)
            .zip(rest(other))
            .take_while(|(one, other)| one == other)
            .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_length_ends_at_the_first_difference() {
        let long = vec![b'a'; 10_000];
        let mut other = long.clone();
        assert_eq!(common_length(&long, &other), 10_000);
        other[9_000] = b'b';
        assert_eq!(common_length(&long, &other), 9_000);
        other.truncate(5_000);
        assert_eq!(common_length(&long, &other), 5_000);
        assert_eq!(common_length(&long, b""), 0);
    }
}
