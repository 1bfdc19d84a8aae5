//! The conversations of one client session, and all of them in memory.
//!
//! A client names its session, or the beginning of its conversation names it. What comes under
//! one name is a family: the main conversation, forks of it, sub-agents, what follows a
//! compaction of the client's own. Each is a branch with a session of its own; a new branch may
//! redeem the refs of those before it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use trimtab::session::{SessionError, Setup};
use trimtab_model::Dialect;
use trimtab_store::{SessionId, Store, Stream};

use crate::access::{SESSIONS, Tenant};
use crate::branch::Branch;
use crate::fork;
use crate::prints::Trail;
use crate::renewed::Came;

/// The most branches of a family that are looked through; older ones are not found again.
const BRANCHES: usize = 64;
/// How many families are let go at once when there are too many.
const LET_GO: usize = 16;
/// After how many requests it is added up how much memory families take.
const ADDED_UP: u64 = 16;

/// The conversations of one client session.
pub(crate) struct Family {
    name: String,
    used: AtomicU64,
    bytes: AtomicUsize,
    branches: Mutex<Branches>,
}

/// The branches of a family that are in memory.
#[derive(Default)]
pub(crate) struct Branches {
    loaded: Vec<(usize, Branch)>,
    /// How many there are; unknown until they were looked for in the store.
    count: Option<usize>,
}

impl Family {
    /// Its branches, for as long as a request is planned.
    pub(crate) fn branches(&self) -> MutexGuard<'_, Branches> {
        self.branches.lock().unwrap_or_else(|poisoned| {
            // Whoever died here may have left half of a change: the store has the whole.
            self.branches.clear_poison();
            let mut branches = poisoned.into_inner();
            *branches = Branches::default();
            branches
        })
    }

    /// The same, unless somebody is at work on them.
    pub(crate) fn free_branches(&self) -> Option<MutexGuard<'_, Branches>> {
        self.branches.try_lock().ok()
    }

    /// True if nobody is at work on it and all of it is written.
    fn is_idle(&self) -> bool {
        let is_idle = |(_, branch): &(usize, Branch)| branch.staged().is_idle();
        match self.branches.try_lock() {
            Ok(branches) => branches.loaded.iter().all(is_idle),
            // Whoever died here left nothing that is worth keeping.
            Err(TryLockError::Poisoned(_)) => true,
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Notes down how much memory its newest conversation takes, about.
    pub(crate) fn weighs(&self, bytes: usize) {
        self.bytes
            .fetch_max(bytes.saturating_mul(2), Ordering::Relaxed);
    }

    /// The number of the branch that a conversation belongs to, which may be a new one.
    pub(crate) fn branch(
        &self,
        branches: &mut Branches,
        store: &Arc<dyn Store>,
        trail: &Trail,
        setup: &Setup,
        came: Option<&Came<'_>>,
    ) -> Result<usize, SessionError> {
        if let Some(number) = branches.find(trail) {
            return Ok(number);
        }
        self.load(branches, store, trail, setup)?;
        if let Some(number) = branches.find(trail) {
            return Ok(number);
        }
        let next = branches.count.unwrap_or(0);
        // What is copied and linked is read from the store.
        branches.flush()?;
        if let Some((from, length)) = self.renewed(store, setup, came, next)? {
            fork::copy(store.as_ref(), &from, length, &self.id(next)?)?;
        } else if let Some((from, length)) = branches.fork(trail) {
            fork::copy(store.as_ref(), &self.id(from)?, length, &self.id(next)?)?;
        } else if let Some(before) = next.checked_sub(1) {
            store.link(&self.id(next)?, &self.id(before)?)?;
        }
        self.begin(branches, store, setup)
    }

    /// The conversation under another credential that a new branch goes on from.
    fn renewed(
        &self,
        store: &Arc<dyn Store>,
        setup: &Setup,
        came: Option<&Came<'_>>,
        next: usize,
    ) -> Result<Option<(SessionId, usize)>, SessionError> {
        let Some(came) = came else { return Ok(None) };
        let found = came.find(store, &self.name, setup)?;
        if next == 0 {
            came.list(store.as_ref(), &self.name)?;
        }
        Ok(found)
    }

    /// Reads the branches that are in the store and may be the one.
    fn load(
        &self,
        branches: &mut Branches,
        store: &Arc<dyn Store>,
        trail: &Trail,
        setup: &Setup,
    ) -> Result<(), SessionError> {
        let count = if let Some(count) = branches.count {
            count
        } else {
            branches.flush()?;
            self.count(store.as_ref())?
        };
        branches.count = Some(count);
        for number in (0..count).rev().take(BRANCHES) {
            if branches.get(number).is_some() {
                continue;
            }
            let opened = Branch::open(store, self.id(number)?, setup.clone())?;
            if let Some(branch) = opened.filter(|branch| trail.common(branch.trail()) > 0) {
                branches.loaded.push((number, branch));
            }
        }
        Ok(())
    }

    fn count(&self, store: &dyn Store) -> Result<usize, SessionError> {
        let mut count = 0;
        loop {
            let id = self.id(count)?;
            // One that was cut off while it began has a journal and no log: its name is used.
            let is_used = |stream: Stream| Ok::<_, SessionError>(store.position(&id, stream)? > 0);
            if !is_used(Stream::Log)? && !is_used(Stream::Journal)? {
                return Ok(count);
            }
            count += 1;
        }
    }

    /// Begins a new branch.
    fn begin(
        &self,
        branches: &mut Branches,
        store: &Arc<dyn Store>,
        setup: &Setup,
    ) -> Result<usize, SessionError> {
        let number = branches.count.unwrap_or(0);
        if let Some(branch) = Branch::open(store, self.id(number)?, setup.clone())? {
            branches.loaded.push((number, branch));
            branches.count = Some(number + 1);
        }
        Ok(number)
    }

    fn id(&self, number: usize) -> Result<SessionId, SessionError> {
        Ok(SessionId::new(branch_name(&self.name, number))?)
    }
}

/// The name under which a family of a tenant is kept.
pub(crate) fn name(tenant: &Tenant, dialect: Dialect, name: &str) -> String {
    let (tenant, dialect) = (tenant.as_str(), dialect_name(dialect));
    format!("{SESSIONS}{tenant}/{dialect}/{name}")
}

/// What a dialect is called in the names of sessions.
pub(crate) fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "chat",
        Dialect::Messages => "messages",
        Dialect::Responses => "responses",
    }
}

/// True if `session` is a branch of the family, the first or another.
pub(crate) fn is_branch(session: &str, family: &str) -> bool {
    let rest = session.strip_prefix(family);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('.');
        rest.is_empty() || number.is_some_and(|number| number.parse::<usize>().is_ok())
    })
}

/// The name of a family's branch.
pub(crate) fn branch_name(family: &str, number: usize) -> String {
    if number == 0 {
        family.to_owned()
    } else {
        format!("{family}.{number}")
    }
}

impl Branches {
    /// The branch of that number.
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut Branch> {
        let mut found = self.loaded.iter_mut();
        found
            .find(|(known, _)| *known == number)
            .map(|(_, branch)| branch)
    }

    /// Makes durable what all of them have written.
    fn flush(&self) -> Result<(), SessionError> {
        self.loaded
            .iter()
            .try_for_each(|(_, branch)| branch.flush())
    }

    /// Forgets a branch that failed: it is read from the store when it comes back.
    pub(crate) fn forget(&mut self, number: usize) {
        if let Some(branch) = self.get(number) {
            // What it wrote before must be there by then; what cannot be written is lost.
            branch.flush().unwrap_or(());
        }
        self.loaded.retain(|(known, _)| *known != number);
        self.count = None;
    }

    /// The branch that the conversation goes on from: the longest that it begins with whole.
    pub(crate) fn find(&self, trail: &Trail) -> Option<usize> {
        let whole = self.loaded.iter().filter(|(_, branch)| {
            let length = branch.trail().len();
            length > 0 && trail.common(branch.trail()) == length
        });
        let longest = whole.max_by_key(|(_, branch)| branch.trail().len());
        longest.map(|(number, _)| *number)
    }

    /// The branch that the conversation parted from, and how much of its log they share. It
    /// must have been answered at least once: before that nothing is worth keeping.
    fn fork(&self, trail: &Trail) -> Option<(usize, usize)> {
        let shared = self.loaded.iter().map(|(number, branch)| {
            let common = trail.common(branch.trail());
            (common, *number, branch.logged(common))
        });
        let (common, number, logged) = shared.max_by_key(|(common, ..)| *common)?;
        trail.has_answer_before(common).then_some((number, logged))
    }
}

/// All families in memory. The oldest are let go; the store has them.
pub(crate) struct Families {
    by_name: Mutex<HashMap<String, Arc<Family>>>,
    clock: AtomicU64,
    /// The most bytes that all of them may take, about.
    memory: usize,
}

impl Families {
    /// No family yet; all together may take about `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            by_name: Mutex::default(),
            clock: AtomicU64::new(0),
            memory,
        }
    }

    /// The family of that name.
    pub(crate) fn get(&self, name: &str, most: usize) -> Arc<Family> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut families = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Family {
                name: name.to_owned(),
                used: AtomicU64::new(now),
                bytes: AtomicUsize::new(0),
                branches: Mutex::default(),
            })
        });
        family.used.store(now, Ordering::Relaxed);
        let family = Arc::clone(family);
        self.let_go(&mut families, most);
        family
    }

    /// Makes durable what all of them have written.
    pub(crate) fn flush(&self) {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let families: Vec<Arc<Family>> = by_name.values().cloned().collect();
        drop(by_name);
        for family in families {
            // Nobody is left to be told: what is lost the client brings again.
            family.branches().flush().unwrap_or(());
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    fn let_go(&self, families: &mut HashMap<String, Arc<Family>>, most: usize) {
        // Adding all up costs a little, so it is not done every time.
        if families.len() <= most && !self.clock.load(Ordering::Relaxed).is_multiple_of(ADDED_UP) {
            return;
        }
        let weight = |family: &Arc<Family>| family.bytes.load(Ordering::Relaxed);
        let mut total: usize = families.values().map(weight).sum();
        if families.len() <= most && total <= self.memory {
            return;
        }
        let mut oldest: Vec<(u64, String, usize)> = families
            .values()
            // One that is in use stays, and one that has something to write.
            .filter(|family| Arc::strong_count(family) == 1 && family.is_idle())
            .map(|family| {
                let used = family.used.load(Ordering::Relaxed);
                (used, family.name.clone(), weight(family))
            })
            .collect();
        oldest.sort_unstable();
        for (at, (_, name, bytes)) in oldest.into_iter().enumerate() {
            if families.len() <= most && total <= self.memory && at >= LET_GO {
                break;
            }
            families.remove(&name);
            total = total.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_families_are_let_go() {
        let families = Families::new(1 << 30);
        for at in 0..100 {
            families.get(&format!("f{at}"), 50);
        }
        assert!(families.len() <= 50);
        let small = Families::new(1_000);
        for at in 0..100 {
            small.get(&format!("f{at}"), 50).weighs(400);
        }
        assert!(small.len() <= 40);
    }

    #[test]
    fn a_family_in_use_stays() {
        let families = Families::new(1 << 30);
        let held = families.get("held", 1);
        for at in 0..100 {
            families.get(&format!("f{at}"), 1);
        }
        assert!(Arc::ptr_eq(&held, &families.get("held", 1)));
    }
}
