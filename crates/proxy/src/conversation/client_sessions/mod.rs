//! Client sessions: all conversations that come under one name.
//!
//! A client names its session, or the beginning of its conversation names it. A client session
//! contains the main conversation, its forks, sub-agents, and conversations after a compaction by
//! the client. Each is a branch with a store session of its own; a new branch may read the outputs
//! of those before it.

mod loaded_branches;
mod registry;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use trimtab::session::{SessionError, Setup, SharedBeginning};
use trimtab_model::Dialect;
use trimtab_store::{Error as StoreError, SessionId, Store};

use crate::access::{SESSIONS, Tenant};
use crate::conversation::branch::{Branch, branch_name};
use crate::prefix_cache::fingerprint::FingerprintChain;
use crate::resources::memory_budget::Reservation;

pub(crate) use loaded_branches::{BranchSearch, LoadedBranches};
pub(crate) use registry::ClientSessions;

/// The maximum number of branches to search in a client session. Older ones are not found any more.
const BRANCHES: usize = 64;
/// Approximate memory of a client session besides its branches, in bytes.
const CLIENT_SESSION_BYTES: usize = 1 << 10;

/// The conversations of one client session.
pub(crate) struct ClientSession {
    name: String,
    used: AtomicU64,
    /// The time of its last use, in seconds since the registry was created.
    used_at: AtomicU64,
    /// The memory of its branches.
    memory: Mutex<Reservation>,
    branches: Mutex<LoadedBranches>,
}

impl ClientSession {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Locks its branches while a request is planned.
    pub(crate) fn branches(&self) -> MutexGuard<'_, LoadedBranches> {
        self.branches.lock().unwrap_or_else(|poisoned| {
            // A thread that panicked may have left half of a change. The store has the last
            // complete state, so everything is loaded again.
            self.branches.clear_poison();
            let mut branches = poisoned.into_inner();
            *branches = LoadedBranches::default();
            branches
        })
    }

    /// The same, but returns none if another thread has the lock.
    pub(crate) fn free_branches(&self) -> Option<MutexGuard<'_, LoadedBranches>> {
        self.branches.try_lock().ok()
    }

    /// True if only the registry refers to it, no thread works on it, and all its writes are durable.
    fn is_unused(self: &Arc<Self>) -> bool {
        // A second reference means that a request works on it.
        if Arc::strong_count(self) > 1 {
            return false;
        }
        let is_idle = |(_, branch): &(usize, Branch)| branch.staged().is_idle();
        match self.branches.try_lock() {
            Ok(branches) => branches.loaded.iter().all(is_idle),
            // A thread that panicked left nothing that is worth keeping.
            Err(TryLockError::Poisoned(_)) => true,
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Updates its memory reservation, unless another thread works on it.
    pub(crate) fn update_memory_use(&self) {
        if let Some(branches) = self.free_branches() {
            let bytes = branches.memory_bytes();
            drop(branches);
            self.memory().set(CLIENT_SESSION_BYTES + bytes);
        }
    }

    /// Takes its unused branches out of memory, unless another thread works on it. Their memory is
    /// no longer counted.
    fn take_unused_branches(&self) -> Vec<(usize, Branch)> {
        let Some(mut branches) = self.free_branches() else {
            return Vec::new();
        };
        let unused = branches.take_unused();
        let bytes = branches.memory_bytes();
        drop(branches);
        self.memory().set(CLIENT_SESSION_BYTES + bytes);
        unused
    }

    /// Its memory in bytes at the last update.
    fn memory_bytes(&self) -> usize {
        self.memory().bytes()
    }

    fn memory(&self) -> MutexGuard<'_, Reservation> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the branch of a conversation, which may be new.
    pub(crate) fn find_or_open_branch(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        search: BranchSearch<'_>,
        setup: &Setup,
    ) -> Result<usize, SessionError> {
        let loaded = branches.sharing(search.chain);
        let sessions: Vec<SessionId> = loaded.iter().map(|one| one.session.clone()).collect();
        // One question for both, because a shared store is a network round trip away.
        let (status, positions) = store.positions(&sessions)?;
        if status.read_only {
            return Err(StoreError::ReadOnly.into());
        }
        branches.forget_removed(store.as_ref(), status.removals)?;
        branches.catch_up(store.as_ref(), loaded.into_iter().zip(positions));
        if let Some(number) = branches.find(search) {
            return Ok(number);
        }
        // The store is searched if it was never searched, or if nothing in memory shares a
        // beginning with the conversation.
        if branches.count.is_none() || branches.fork(search).is_none() {
            self.load(branches, store, search.chain, setup)?;
        }
        if let Some(number) = branches.find(search) {
            return Ok(number);
        }
        if let Some(number) = branches.follow(search)? {
            return Ok(number);
        }
        self.fork_branch(branches, store, search, setup)
    }

    /// Creates a new branch, starting with the messages that the conversation shares with another
    /// one.
    fn fork_branch(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        search: BranchSearch<'_>,
        setup: &Setup,
    ) -> Result<usize, SessionError> {
        let next = branches.count.unwrap_or(0);
        let to = self.id(next)?;
        let forked = branches.fork(search);
        let forked = forked.and_then(|(from, part)| Some((from, branches.branch(from)?, part)));
        let Some((from, origin, beginning)) = forked else {
            // It shares no messages with another branch, for example after the client's own
            // compaction. It may still read the outputs of those branches.
            if let Some(before) = next.checked_sub(1) {
                store.link(&to, &self.id(before)?)?;
            }
            return self.begin_unedited_branch(branches, store, search, setup);
        };
        let mut forked = origin.fork(store, to, setup, beginning)?;
        forked.mark_as_copy(from);
        Ok(branches.add(forked))
    }

    /// Begins a new branch without the plans of another one. It may have the messages of a branch
    /// that the policy does not continue.
    fn begin_unedited_branch(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        search: BranchSearch<'_>,
        setup: &Setup,
    ) -> Result<usize, SessionError> {
        let aside = branches.left_aside(search);
        let aside = aside.map(|branch| branch.chosen_policy().cloned());
        let number = self.begin_branch(branches, store, setup)?;
        if let (Some(chosen), Some(branch)) = (aside, branches.get(number)) {
            branch.start_over(chosen.as_ref())?;
        }
        Ok(number)
    }

    /// Creates a new branch from the first messages in the log of branch `from`, for an answer that
    /// goes its own way there.
    pub(crate) fn fork_at(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        from: usize,
        messages: usize,
    ) -> Result<Option<usize>, SessionError> {
        let known = branches.count;
        let next = if let Some(known) = known {
            known
        } else {
            branches.flush()?;
            self.count(store.as_ref())?
        };
        let Some(origin) = branches.branch(from) else {
            return Ok(None);
        };
        let beginning = SharedBeginning {
            messages,
            goes_on: true,
        };
        let forked = origin.fork(store, self.id(next)?, origin.setup(), beginning)?;
        branches.count = Some(next);
        let number = branches.add(forked);
        // If not all branches were loaded before, they are not now.
        branches.count = branches.count.filter(|_| known.is_some());
        Ok(Some(number))
    }

    /// Loads the branches of the store that share messages with the conversation.
    fn load(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        chain: &FingerprintChain,
        setup: &Setup,
    ) -> Result<(), SessionError> {
        let count = if let Some(count) = branches.count {
            count
        } else {
            branches.flush()?;
            self.count(store.as_ref())?
        };
        branches.count = Some(count);
        // The newest branches are the likeliest, and each one costs a read of its whole log.
        for number in (0..count).rev().take(BRANCHES) {
            if branches.get(number).is_some() {
                continue;
            }
            let opened = Branch::open(store, self.id(number)?, setup.clone())?;
            if let Some(branch) =
                opened.filter(|branch| chain.common_length(branch.fingerprints()) > 0)
            {
                branches.loaded.push((number, branch));
            }
        }
        Ok(())
    }

    fn count(&self, store: &dyn Store) -> Result<usize, SessionError> {
        let mut count = 0;
        loop {
            let id = self.id(count)?;
            let (_, positions) = store.positions(std::slice::from_ref(&id))?;
            // A branch that was interrupted while it began has a parent or a journal, and no log.
            // Its name is taken: the next branch may have another parent, and another journal.
            let is_empty = positions.iter().all(|(log, journal)| log + journal == 0);
            if is_empty && (count == 0 || store.parent(&id)?.is_none()) {
                return Ok(count);
            }
            count += 1;
        }
    }

    /// Begins a new branch.
    fn begin_branch(
        &self,
        branches: &mut LoadedBranches,
        store: &Arc<dyn Store>,
        setup: &Setup,
    ) -> Result<usize, SessionError> {
        let number = branches.count.unwrap_or(0);
        if let Some(branch) = Branch::open(store, self.id(number)?, setup.clone())? {
            branches.add(branch);
        }
        Ok(number)
    }

    fn id(&self, number: usize) -> Result<SessionId, SessionError> {
        Ok(SessionId::new(branch_name(&self.name, number))?)
    }
}

/// The store name of a tenant's client session.
pub(crate) fn name(tenant: &Tenant, dialect: Dialect, name: &str) -> String {
    let dialect = match dialect {
        Dialect::Chat => "chat",
        Dialect::Messages => "messages",
        Dialect::Responses => "responses",
    };
    format!("{SESSIONS}{}/{dialect}/{name}", tenant.as_str())
}

/// True if `session` is a branch of the client session.
pub(crate) fn is_branch(session: &str, client_session: &str) -> bool {
    let rest = session.strip_prefix(client_session);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('.');
        rest.is_empty() || number.is_some_and(|number| number.parse::<usize>().is_ok())
    })
}
