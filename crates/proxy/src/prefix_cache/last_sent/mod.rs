//! The body that was sent last for a conversation whose window is not what the client has.
//!
//! Between two plans a window only grows at its end, and so does the body that is sent: up to a
//! cut it is the same as in the request before. So only what stands behind the cut is spliced,
//! parsed and validated. A keyed hash proves that the client's bytes before the cut are the same.

use std::sync::Arc;

use bytes::Bytes;
use trimtab::request::tail_changes;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{EntryChange, MessageSource, WindowEntry};
use trimtab_model::{Dialect, Role};
use trimtab_wire::scan::{BodyScan, ScanMemo};
use trimtab_wire::splice::{BodyChange, SplicedTail, splice_tail};
use trimtab_wire::validate::validate;

use crate::prefix_cache::fingerprint::Fingerprint;
use crate::prefix_cache::prefix_hash::PrefixHashes;

/// So many of the newest entries may still become others.
const NEWEST: usize = 8;

/// What was sent last.
pub(crate) struct LastSent {
    /// The entries of the window before the cut.
    entries: Vec<WindowEntry>,
    /// The bytes of the client's body before the cut, and their fingerprint.
    received_bytes: usize,
    fingerprint: Fingerprint,
    /// The body that was sent, the bytes of it before the cut, and what is known of it.
    body: Bytes,
    sent: usize,
    memo: ScanMemo,
    /// The changes that are not about messages.
    request_changes: Vec<BodyChange>,
}

/// A cut through a window and the client's body.
struct WindowCut {
    entries: usize,
    /// Messages of the client before it.
    messages: usize,
    received_bytes: usize,
}

impl WindowCut {
    /// The last cut before the newest entries that goes through neither a message nor a batch
    /// of outputs.
    fn of(scan: &BodyScan<'_>, entries: &[WindowEntry]) -> Option<Self> {
        let last = entries.len().checked_sub(NEWEST)?;
        (1..=last).rev().find_map(|count| {
            let (before, behind) = entries.split_at_checked(count)?;
            let (last, next) = (before.last()?, behind.first()?);
            let at = client_position(last)?;
            let is_output = |entry: &WindowEntry| entry.message.role == Role::Tool;
            let parts =
                client_position(next) == Some(at + 1) && !(is_output(last) && is_output(next));
            let came = scan.end_of(at).filter(|_| parts)?;
            Some(Self {
                entries: count,
                messages: at + 1,
                received_bytes: came,
            })
        })
    }
}

/// The position of a message of the client.
fn client_position(entry: &WindowEntry) -> Option<usize> {
    match entry.source {
        MessageSource::Log(at) if entry.change != EntryChange::Made => Some(at),
        MessageSource::Log(_) | MessageSource::Inserted(_) => None,
    }
}

impl LastSent {
    /// Remembers a body that is sent, with what is known of it, if the next one may begin like it.
    /// The changes in `whole` are not about messages.
    pub(crate) fn of(
        scan: &BodyScan<'_>,
        (log, entries): (&Log, &[WindowEntry]),
        (body, memo): (&Bytes, ScanMemo),
        whole: Vec<BodyChange>,
        prefix_hashes: &mut PrefixHashes<'_>,
    ) -> Option<Self> {
        let cut = WindowCut::of(scan, entries)?;
        // Messages has a field of its own for the system's text, which may stand elsewhere next
        // time.
        let says = |entry: &WindowEntry| {
            entry.message.role == Role::System && client_position(entry).is_none()
        };
        if scan.dialect() == Dialect::Messages && entries.iter().any(says) {
            return None;
        }
        // Edits before the cut must not change bytes behind it, as a summary does that is written
        // to a field behind the messages.
        let behind = entries.get(cut.entries..)?;
        let tail = tail(scan, &cut, (log, behind), (&whole, cut.received_bytes))?;
        let sent = body.len().checked_sub(tail.bytes.len())?;
        if body.get(sent..) != Some(tail.bytes.as_slice()) {
            return None;
        }
        memo.entries_before(sent)?;
        Some(Self {
            entries: entries.get(..cut.entries)?.to_vec(),
            received_bytes: cut.received_bytes,
            fingerprint: prefix_hashes.hash_of(cut.received_bytes),
            body: body.clone(),
            sent,
            memo,
            request_changes: whole,
        })
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.body.len() + self.memo.size() + size_of_val(self.entries.as_slice())
    }

    /// The body for a window that goes on from the last one; none if it does not, or if more
    /// than outputs is shown differently behind the cut.
    pub(crate) fn extend(
        &mut self,
        scan: &BodyScan<'_>,
        (log, entries): (&Log, &[WindowEntry]),
        whole: &[BodyChange],
        prefix_hashes: &mut PrefixHashes<'_>,
    ) -> Option<Bytes> {
        let (before, behind) = entries.split_at_checked(self.entries.len())?;
        let is_same = whole == self.request_changes
            && before.iter().zip(&self.entries).all(is_same_entry)
            && self.received_bytes <= scan.body().len()
            && prefix_hashes.hash_of(self.received_bytes) == self.fingerprint;
        let messages = client_position(before.last()?)? + 1;
        if !is_same
            || behind
                .iter()
                .any(|entry| entry.source.position() < messages)
        {
            return None;
        }
        let last = WindowCut {
            entries: before.len(),
            messages,
            received_bytes: self.received_bytes,
        };
        let cut = WindowCut::of(scan, entries).filter(|cut| cut.messages >= messages)?;
        let tail = tail(scan, &last, (log, behind), (whole, cut.received_bytes))?;
        let mut body = Vec::with_capacity(self.sent + tail.bytes.len());
        body.extend_from_slice(self.body.get(..self.sent)?);
        body.extend_from_slice(&tail.bytes);
        let sent = self.sent + tail.moved?;
        let memo = self.checked(&body)?;
        memo.entries_before(sent)?;
        let new = entries.get(self.entries.len()..cut.entries);
        self.entries.extend_from_slice(new.unwrap_or_default());
        self.received_bytes = cut.received_bytes;
        self.fingerprint = prefix_hashes.hash_of(cut.received_bytes);
        self.body = Bytes::from(body);
        self.sent = sent;
        self.memo = memo;
        Some(self.body.clone())
    }

    /// What is to be remembered of a body that begins like the last one; none if a provider
    /// would refuse it.
    fn checked(&self, body: &[u8]) -> Option<ScanMemo> {
        let known = self.memo.entries_before(self.sent)?;
        let scan = BodyScan::resume(body, &self.memo, known).ok()?;
        if validate(&scan).is_empty() {
            scan.into_memo()
        } else {
            None
        }
    }
}

/// What stands behind a cut, changed, and where `client_position` goes in it; none if more than
/// outputs is shown differently there.
fn tail(
    scan: &BodyScan<'_>,
    cut: &WindowCut,
    (log, behind): (&Log, &[WindowEntry]),
    (whole, place): (&[BodyChange], usize),
) -> Option<SplicedTail> {
    let mut changes = tail_changes(cut.messages, log, behind, scan.dialect());
    let shows = |change: &BodyChange| matches!(change, BodyChange::Show { .. });
    if !changes.iter().all(shows) {
        return None;
    }
    changes.extend(whole.iter().cloned());
    splice_tail(scan, &changes, cut.received_bytes, place).ok()?
}

fn is_same_entry((one, other): (&WindowEntry, &WindowEntry)) -> bool {
    Arc::ptr_eq(&one.message, &other.message)
        && one.source == other.source
        && one.change == other.change
}

#[cfg(test)]
mod tests;
