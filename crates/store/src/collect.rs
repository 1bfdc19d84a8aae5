//! Decides which sessions to remove from a store: by age and by size.
//!
//! The decision works on a snapshot of the store, so that all backends share it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::SessionId;

/// A request to remove data.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// Remove these sessions with everything in them, even if they are live.
    pub sessions: BTreeSet<SessionId>,
    /// Remove sessions that were last used longer ago than this.
    pub older_than: Option<Duration>,
    /// Other ages for the sessions whose names start with a prefix; none removes none of them. The
    /// first prefix that fits applies.
    pub older_than_by_prefix: Vec<(String, Option<Duration>)>,
    /// Count no age from before the clock jumped, as the collections with this setting see it. A
    /// store with a clock of its own ignores this.
    pub doubts_clock: bool,
    /// Remove whole sessions, oldest first, until the store has at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Sessions used within this time are live, and `max_bytes` skips them.
    pub live_within: Duration,
    /// Also rewrite the database, so that no copy of removed text remains in a file of the store.
    /// Other processes cannot write meanwhile.
    pub scrub: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
}

impl Default for CollectOptions {
    /// Removes nothing; sessions of the last hour count as live.
    fn default() -> Self {
        Self {
            sessions: BTreeSet::new(),
            older_than: None,
            older_than_by_prefix: Vec::new(),
            doubts_clock: false,
            max_bytes: None,
            live_within: Duration::from_hours(1),
            scrub: false,
            dry_run: false,
        }
    }
}

impl CollectOptions {
    /// The age after which a session is removed.
    fn age_limit(&self, session: &SessionId) -> Option<Duration> {
        let mut rules = self.older_than_by_prefix.iter();
        let rule = rules.find(|(prefix, _)| session.as_str().starts_with(prefix));
        rule.map_or(self.older_than, |(_, age)| *age)
    }
}

/// The result of a removal, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectReport {
    /// The removed sessions, oldest first.
    pub sessions: Vec<SessionId>,
    /// The number of removed outputs, including those of the sessions.
    pub outputs: u64,
    /// Stored bytes that were freed, without bytes that remaining outputs share.
    pub bytes_freed: u64,
    /// Stored bytes that remain.
    pub bytes_kept: u64,
    /// Files that no row names, left behind by a killed process.
    pub stray_files: u64,
    /// The time at which the clock jumped last, in milliseconds since 1970, if that keeps sessions.
    pub ages_since: Option<u64>,
    /// True if the database should have been rewritten but was not, because there was no room or
    /// another process was writing. Copies of removed text may remain in it.
    pub traces_left: bool,
}

/// A snapshot of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSnapshot {
    pub sessions: Vec<SnapshotSession>,
    /// Stored size of each blob.
    pub blobs: BTreeMap<u64, u64>,
    /// The time from which ages count.
    pub ages_since: u64,
    /// The creation of an earlier session, before which a session was not used, whatever the clock
    /// showed then.
    pub not_before: BTreeMap<SessionId, u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct SnapshotSession {
    pub id: SessionId,
    pub parent: Option<SessionId>,
    pub used: u64,
    /// True if a process has it in memory.
    pub leased: bool,
    /// Stored bytes of its log and journal.
    pub stream_bytes: u64,
    /// The blobs of each output: its bytes and its text projection.
    pub outputs: Vec<Vec<u64>>,
}

/// The data to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemovalPlan {
    pub sessions: Vec<SessionId>,
    pub report: CollectReport,
}

impl RemovalPlan {
    /// Drops sessions from the plan that came into use after the snapshot.
    #[cfg(any(all(unix, feature = "folder"), feature = "shared"))]
    pub(crate) fn retain_sessions(&mut self, snapshot: &StoreSnapshot, staying: &[SessionId]) {
        let stays = |id: &SessionId| staying.contains(id);
        // The report lists only what is removed in the end.
        self.sessions.retain(|id| !stays(id));
        self.report.sessions.retain(|id| !stays(id));
        for session in snapshot
            .sessions
            .iter()
            .filter(|session| stays(&session.id))
        {
            // This ignores that other sessions may share a blob. The figures are then estimates.
            let blobs = session.outputs.iter().flatten();
            let sizes = blobs.filter_map(|blob| snapshot.blobs.get(blob));
            let size = session.stream_bytes + sizes.sum::<u64>();
            let report = &mut self.report;
            report.outputs = report.outputs.saturating_sub(session.outputs.len() as u64);
            report.bytes_freed = report.bytes_freed.saturating_sub(size);
            report.bytes_kept += size;
        }
    }
}

/// Decides what `request` removes from the store in `snapshot` at time `now`.
pub(crate) fn decide(snapshot: &StoreSnapshot, request: &CollectOptions, now: u64) -> RemovalPlan {
    let mut planner = RemovalPlanner::new(snapshot);
    // The order matters: everything removed by an earlier rule counts towards the size limit.
    planner.named(&request.sessions);
    planner.old_sessions(request, now);
    if let Some(max) = request.max_bytes {
        planner.down_to(max, now.saturating_sub(millis(request.live_within)));
    }
    planner.removal
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

struct RemovalPlanner<'a> {
    snapshot: &'a StoreSnapshot,
    /// The last use of each session or of its children, which may redeem its refs.
    used: BTreeMap<&'a SessionId, u64>,
    /// Sessions that a process has in memory, and their parents.
    leased: BTreeSet<&'a SessionId>,
    /// The number of remaining outputs per blob.
    holders: BTreeMap<u64, u64>,
    removal: RemovalPlan,
}

impl<'a> RemovalPlanner<'a> {
    fn new(snapshot: &'a StoreSnapshot) -> Self {
        let mut holders = BTreeMap::new();
        let outputs = snapshot
            .sessions
            .iter()
            .flat_map(|session| &session.outputs);
        for blob in outputs.flatten() {
            *holders.entry(*blob).or_default() += 1;
        }
        let streams: u64 = snapshot
            .sessions
            .iter()
            .map(|session| session.stream_bytes)
            .sum();
        let mut used = last_uses(&snapshot.sessions);
        for (session, since) in &snapshot.not_before {
            used.entry(session)
                .and_modify(|used| *used = (*used).max(*since));
        }
        let mut removal = RemovalPlan::default();
        removal.report.bytes_kept = streams + snapshot.blobs.values().sum::<u64>();
        Self {
            snapshot,
            used,
            leased: leased(&snapshot.sessions),
            holders,
            removal,
        }
    }

    fn named(&mut self, names: &BTreeSet<SessionId>) {
        for session in &self.snapshot.sessions {
            if names.contains(&session.id) {
                self.remove_session(session);
            }
        }
    }

    /// Sessions not yet removed, the least recently used first.
    fn oldest_first(&self) -> Vec<(u64, &'a SnapshotSession)> {
        let removed: BTreeSet<&SessionId> = self.removal.sessions.iter().collect();
        let staying = self.snapshot.sessions.iter();
        let staying = staying.filter(|session| !removed.contains(&session.id));
        let mut sessions: Vec<_> = staying
            .map(|session| {
                (
                    self.used.get(&session.id).copied().unwrap_or(session.used),
                    session,
                )
            })
            .collect();
        // By name among equals, so that the same store always gives the same plan.
        sessions.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        sessions
    }

    fn old_sessions(&mut self, request: &CollectOptions, now: u64) {
        for (used, session) in self.oldest_first() {
            let limit = request.age_limit(&session.id);
            let oldest = limit.map_or(0, |age| now.saturating_sub(millis(age)));
            if used >= oldest || self.leased.contains(&session.id) {
                continue;
            }
            if self.snapshot.ages_since >= oldest {
                self.removal.report.ages_since = Some(self.snapshot.ages_since);
            } else {
                self.remove_session(session);
            }
        }
    }

    fn down_to(&mut self, max: u64, live_since: u64) {
        for (used, session) in self.oldest_first() {
            // The list is sorted by age, so all others are live too.
            if self.removal.report.bytes_kept <= max || used >= live_since {
                break;
            }
            if !self.leased.contains(&session.id) {
                self.remove_session(session);
            }
        }
    }

    fn remove_session(&mut self, session: &SnapshotSession) {
        for output in &session.outputs {
            self.remove_output(output);
        }
        self.free(session.stream_bytes);
        self.removal.sessions.push(session.id.clone());
        self.removal.report.sessions.push(session.id.clone());
    }

    fn remove_output(&mut self, blobs: &[u64]) {
        self.removal.report.outputs += 1;
        for blob in blobs {
            let holders = self.holders.entry(*blob).or_default();
            *holders = holders.saturating_sub(1);
            // Only the last holder of a blob frees its bytes.
            if *holders == 0 {
                self.free(self.snapshot.blobs.get(blob).copied().unwrap_or(0));
            }
        }
    }

    fn free(&mut self, bytes: u64) {
        let report = &mut self.removal.report;
        report.bytes_freed += bytes;
        report.bytes_kept = report.bytes_kept.saturating_sub(bytes);
    }
}

/// The last use of each session or of any of its children.
fn last_uses(sessions: &[SnapshotSession]) -> BTreeMap<&SessionId, u64> {
    let parents: BTreeMap<_, _> = sessions
        .iter()
        .map(|s| (&s.id, s.parent.as_ref()))
        .collect();
    let mut used: BTreeMap<_, _> = sessions.iter().map(|s| (&s.id, s.used)).collect();
    for session in sessions {
        let mut above = session.parent.as_ref();
        // A damaged chain of parents may be cyclic, so the number of steps is bounded.
        for _ in 0..sessions.len() {
            let Some(id) = above else { break };
            let entry = used.entry(id).or_default();
            *entry = session.used.max(*entry);
            above = parents.get(id).copied().flatten();
        }
    }
    used
}

/// Sessions that a process has in memory, and their parents, whose refs they may show.
fn leased(sessions: &[SnapshotSession]) -> BTreeSet<&SessionId> {
    let parents: BTreeMap<_, _> = sessions
        .iter()
        .map(|s| (&s.id, s.parent.as_ref()))
        .collect();
    let mut found = BTreeSet::new();
    for session in sessions.iter().filter(|session| session.leased) {
        let mut next = Some(&session.id);
        // A session that was found before ends the walk, also in a damaged cycle of parents.
        while let Some(id) = next.filter(|id| found.insert(*id)) {
            next = parents.get(id).copied().flatten();
        }
    }
    found
}

#[cfg(test)]
mod tests;
