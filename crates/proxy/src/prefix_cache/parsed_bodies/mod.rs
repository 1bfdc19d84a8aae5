//! Parsed bodies, kept so that the next body of a conversation is parsed only where it is new.
//!
//! A body begins like the one before it. A sample of its bytes suggests which one that was. A
//! keyed hash of all bytes of the beginning proves that it is the same.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trimtab_model::Dialect;
use trimtab_wire::scan::{BodyScan, ScanMemo, Unscannable};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::prefix_cache::fingerprint::{Fingerprint, FingerprintChain};
use crate::prefix_cache::prefix_hash::{PrefixHash, PrefixHashes};
use crate::resources::memory_budget::{MemoryBudget, Reservation};

/// The size of a sample in bytes.
const SAMPLE: usize = 64;
/// The shortest prefix that is remembered, in bytes.
const SHORTEST: usize = 4 << 10;
/// The distance in bytes between two resume points. The last few entries have one each, because
/// cache markers move there.
const APART: usize = 128 << 10;
const LAST: usize = 6;
/// The maximum number of remembered bodies with the same sample.
const ALIKE: usize = 16;
/// The share of the memory budget for parsed bodies, as a divisor.
const SHARE: usize = 8;

/// The cache of parsed bodies, limited in bytes.
pub(crate) struct ParsedBodies {
    table: Mutex<ParsedBodyTable>,
    budget: MemoryBudget,
}

struct ParsedBodyTable {
    by_sample: HashMap<u64, Vec<Arc<ParsedBody>>>,
    bytes: usize,
    memory: Reservation,
}

/// One parsed body.
#[derive(Clone)]
struct ParsedBody {
    memo: ScanMemo,
    fingerprints: FingerprintChain,
    /// The number of its messages before the list: 1 with a system field, else 0.
    head: usize,
    resume_points: Vec<ResumePoint>,
    sample: u64,
}

/// A position at which parsing can resume.
#[derive(Clone, Copy)]
struct ResumePoint {
    entries: usize,
    messages: usize,
    offset: usize,
    /// The keyed hash of everything before it.
    fingerprint: Fingerprint,
    /// The hash of the last bytes before it.
    tail: u64,
}

/// A known body whose prefix a new body shares.
#[derive(Clone)]
pub(crate) struct KnownPrefix {
    body: Arc<ParsedBody>,
    /// The last resume point of the prefix.
    mark: usize,
}

impl KnownPrefix {
    /// The length of the prefix in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let mark = self.body.resume_points.get(self.mark);
        mark.map_or(0, |mark| mark.offset)
    }
}

/// A parsed body with its fingerprints.
pub(crate) struct BodyReading<'a> {
    pub(crate) scan: BodyScan<'a>,
    pub(crate) fingerprints: FingerprintChain,
    tenant: &'a str,
    /// The resume points of the known prefix; empty if nothing of the body was known.
    known_points: Vec<ResumePoint>,
    hashed: &'a PrefixHash,
    key: &'a [u8; 192],
}

impl ParsedBodies {
    /// An empty cache, which may use a share of `budget`.
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        Self {
            table: Mutex::new(ParsedBodyTable {
                by_sample: HashMap::new(),
                bytes: 0,
                memory: budget.always_reserve(None, 0),
            }),
            budget,
        }
    }

    /// Empties the cache and returns the freed bytes.
    pub(crate) fn forget_all(&self) -> usize {
        let mut kept = self.lock_table();
        let bytes = kept.bytes;
        kept.clear();
        bytes
    }

    fn lock_table(&self) -> MutexGuard<'_, ParsedBodyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest prefix of a body that is known.
    pub(crate) fn find(
        &self,
        of: (&str, Dialect),
        (body, hashed): (&[u8], &PrefixHash),
        key: &[u8; 192],
    ) -> Option<KnownPrefix> {
        // Guessing compares a few hashes of 64 bytes; proving compares the hash of the whole
        // prefix. Only what is proven is reused, so a wrong guess costs time and nothing else.
        proven(self.guess(of, body), hashed.prefix_hashes(key, body))
    }

    /// Parses a body, from its first new byte on if its prefix is known.
    pub(crate) fn read<'a>(
        &self,
        (tenant, dialect): (&'a str, Dialect),
        (body, hashed): (&'a [u8], &'a PrefixHash),
        key: &'a [u8; 192],
        known: Option<KnownPrefix>,
    ) -> Result<BodyReading<'a>, Unscannable> {
        let (scan, chain, known_points) = if let Some(known) = known {
            self.take(known.body).resume(known.mark, body, key)?
        } else {
            let scan = BodyScan::new(body, dialect)?;
            let chain = FingerprintChain::of(&scan, key);
            (scan, chain, Vec::new())
        };
        Ok(BodyReading {
            scan,
            fingerprints: chain,
            tenant,
            known_points,
            hashed,
            key,
        })
    }

    /// Takes a body out of the cache, so that its tables are continued instead of copied. The new
    /// body has all that is still needed of it. If another request begins the same way meanwhile,
    /// that one is parsed anew.
    fn take(&self, known: Arc<ParsedBody>) -> ParsedBody {
        self.lock_table().forget(&known);
        // Another request may hold it for a moment, while it guesses.
        Arc::try_unwrap(known).unwrap_or_else(|shared| ParsedBody::clone(&shared))
    }

    /// The known bodies that may share a prefix with this one, each with its last possible resume
    /// point; the longest prefix first.
    fn guess(&self, of: (&str, Dialect), body: &[u8]) -> Vec<KnownPrefix> {
        let kept = self.lock_table();
        let alike = samples(of, body).filter_map(|sample| kept.by_sample.get(&sample));
        let alike = alike.flatten().take(ALIKE);
        let mut guessed: Vec<(usize, usize, Arc<ParsedBody>)> = alike
            .filter_map(|known| {
                let mut marks = known.resume_points.iter();
                let mark = marks.rposition(|mark| tail(body, mark.offset) == Some(mark.tail))?;
                let offset = known.resume_points.get(mark)?.offset;
                Some((offset, mark, Arc::clone(known)))
            })
            .collect();
        guessed.sort_by_key(|(offset, ..)| Reverse(*offset));
        let guessed = guessed.into_iter();
        guessed
            .map(|(_, mark, body)| KnownPrefix { body, mark })
            .collect()
    }

    /// Adds a parsed body to the cache.
    pub(crate) fn keep(&self, reading: BodyReading<'_>) {
        let BodyReading {
            scan,
            fingerprints: chain,
            tenant,
            known_points,
            hashed,
            key,
        } = reading;
        let (body, dialect) = (scan.body(), scan.dialect());
        let head = scan.first_in_list();
        let Some(memo) = scan.into_memo() else { return };
        let hashes = hashed.prefix_hashes(key, body);
        let marks = resume_points(&memo, &known_points, body, hashes);
        let Some(sample) = marks.last().and_then(|last| {
            let beginning = body.get(..last.offset)?;
            samples((tenant, dialect), beginning).next()
        }) else {
            return;
        };
        let known = Arc::new(ParsedBody {
            memo,
            fingerprints: chain,
            head,
            resume_points: marks,
            sample,
        });
        self.lock_table().add(known, self.budget.limit() / SHARE);
    }
}

impl ParsedBodyTable {
    fn clear(&mut self) {
        self.by_sample = HashMap::new();
        self.bytes = 0;
        self.memory.set(0);
    }

    fn forget(&mut self, old: &Arc<ParsedBody>) {
        let Some(alike) = self.by_sample.get_mut(&old.sample) else {
            return;
        };
        let before = alike.len();
        alike.retain(|known| !Arc::ptr_eq(known, old));
        if alike.len() < before {
            self.bytes = self.bytes.saturating_sub(old.size());
        }
        if alike.is_empty() {
            self.by_sample.remove(&old.sample);
        }
    }

    fn add(&mut self, known: Arc<ParsedBody>, most: usize) {
        // Everything goes at once. The cache is refilled by one parse per conversation, and needs
        // no order of use.
        if self.bytes + known.size() > most {
            self.clear();
        }
        self.bytes += known.size();
        let alike = self.by_sample.entry(known.sample).or_default();
        alike.push(known);
        if alike.len() > ALIKE {
            let oldest = alike.remove(0);
            self.bytes = self.bytes.saturating_sub(oldest.size());
        }
        self.memory.set(self.bytes);
    }
}

impl ParsedBody {
    fn size(&self) -> usize {
        let marks = size_of_val(self.resume_points.as_slice());
        size_of::<Self>()
            + self.memo.size()
            + marks
            + self.fingerprints.len() * size_of::<Fingerprint>()
    }

    /// Parses a body from a resume point on. Also returns the resume points up to there.
    fn resume<'a>(
        mut self,
        mark: usize,
        body: &'a [u8],
        key: &[u8; 192],
    ) -> Result<(BodyScan<'a>, FingerprintChain, Vec<ResumePoint>), Unscannable> {
        self.resume_points.truncate(mark + 1);
        let last = self.resume_points.last();
        let (entries, messages) = last.map_or((0, 0), |last| (last.entries, last.messages));
        let scan = BodyScan::resume(body, self.memo, entries)?;
        let chain = self.fingerprints.continued(&scan, key, self.head, messages);
        Ok((scan, chain, self.resume_points))
    }
}

/// The longest of the guessed prefixes that the hashes prove.
fn proven(guessed: Vec<KnownPrefix>, mut prefix_hashes: PrefixHashes<'_>) -> Option<KnownPrefix> {
    let mut is_same = |mark: &ResumePoint| prefix_hashes.hash_of(mark.offset) == mark.fingerprint;
    // Samples and tails cannot tell conversations apart that differ only in their beginning. The
    // hash can, so each guess is tried at its deepest mark.
    let proven_at = guessed.iter().position(|known| {
        let deepest = known.body.resume_points.get(known.mark);
        deepest.is_some_and(&mut is_same)
    });
    let mut known = guessed.into_iter().nth(proven_at.unwrap_or(0))?;
    if proven_at.is_none() {
        // If a prefix is the same, all shorter ones are, so a binary search finds the longest.
        let marks = known.body.resume_points.get(..known.mark)?;
        known.mark = marks.partition_point(is_same).checked_sub(1)?;
    }
    Some(known)
}

/// The resume points of a body: the proven ones, and new ones after them.
fn resume_points(
    memo: &ScanMemo,
    before: &[ResumePoint],
    body: &[u8],
    mut prefix_hashes: PrefixHashes<'_>,
) -> Vec<ResumePoint> {
    let entries = memo.entries();
    let mut marks: Vec<ResumePoint> = Vec::new();
    for mark in before {
        add_apart(&mut marks, *mark, mark.entries + LAST > entries);
    }
    // The hashes of proven marks are known, so only the new part of the body gets new ones.
    let first = before.last().map_or(1, |last| last.entries + 1);
    for entries_before in first..=entries {
        let Some(boundary) = memo.boundary(entries_before) else {
            continue;
        };
        let is_last = entries_before + LAST > entries;
        let far = marks.last().map_or(0, |last| last.offset) + APART <= boundary.offset;
        if !is_last && !far {
            continue;
        }
        let Some(tail) = tail(body, boundary.offset) else {
            continue;
        };
        let mark = ResumePoint {
            entries: entries_before,
            messages: boundary.messages,
            offset: boundary.offset,
            fingerprint: prefix_hashes.hash_of(boundary.offset),
            tail,
        };
        marks.push(mark);
    }
    marks
}

/// Adds a resume point if it is one of the last, or far from the previous one.
fn add_apart(marks: &mut Vec<ResumePoint>, mark: ResumePoint, is_last: bool) {
    let before = marks.last().map_or(0, |last| last.offset);
    if is_last || before + APART <= mark.offset {
        marks.push(mark);
    }
}

/// Hashes of samples of a body, the most specific one first.
fn samples(of: (&str, Dialect), body: &[u8]) -> impl Iterator<Item = u64> {
    // Positions grow by an eighth, so that two bodies of similar length share most of them.
    // Positions near the end come first: beginnings are the same in many conversations.
    let places = std::iter::successors(Some(SHORTEST), |place| Some(place + place / 8));
    let places: Vec<usize> = places.take_while(|place| *place <= body.len()).collect();
    // The tenant is part of the sample: nothing of another tenant's bodies is ever compared.
    let owner = xxh3_64_with_seed(of.0.as_bytes(), of.1 as u64);
    places.into_iter().rev().filter_map(move |place| {
        let sample = body.get(place - SAMPLE..place)?;
        Some(xxh3_64_with_seed(sample, owner ^ place as u64))
    })
}

fn tail(body: &[u8], end: usize) -> Option<u64> {
    let tail = body.get(end.checked_sub(SAMPLE)?..end)?;
    Some(xxh3_64(tail))
}

#[cfg(test)]
mod tests;
