//! The conversations of one client session, and all of them in memory.
//!
//! A client names its session, or the beginning of its conversation names it. What comes under
//! one name is a family: the main conversation, forks of it, sub-agents, what follows a
//! compaction of the client's own. Each is a branch with a session of its own; a new branch may
//! redeem the refs of those before it.

mod lasting;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use trimtab::session::{SessionError, Setup};
use trimtab_model::Dialect;
use trimtab_store::{Error as StoreError, SessionId, Store, Stream};

use crate::access::{SESSIONS, Tenant};
use crate::conversation::branch::Branch;
use crate::conversation::branch_name::branch_name;
use crate::conversation::fork::{self, Beginning};
use crate::conversation::token_renewal::Came;
use crate::prefix_cache::fingerprint::Trail;
use crate::resources::memory_budget::{MemoryBudget, Reservation};

/// The most branches of a family that are looked through; older ones are not found again.
const BRANCHES: usize = 64;
/// How many families are let go at once when there are too many.
const LET_GO: usize = 16;
/// After how many requests it is added up how much memory families take.
const ADDED_UP: u64 = 16;
/// Bytes of memory that a family takes beside its branches, about.
const FAMILY_BYTES: usize = 1 << 10;
/// The share of the memory budget that families may take, as a divisor.
const SHARE: usize = 2;

/// The conversations of one client session.
pub(crate) struct Family {
    name: String,
    used: AtomicU64,
    /// When it was used last, in seconds since the families began.
    used_at: AtomicU64,
    /// The memory that its branches take.
    memory: Mutex<Reservation>,
    branches: Mutex<Branches>,
}

/// The branches of a family that are in memory.
#[derive(Default)]
pub(crate) struct Branches {
    loaded: Vec<(usize, Branch)>,
    /// How many there are; unknown until they were looked for in the store.
    count: Option<usize>,
    /// How often something had been removed from the store when they were looked at last.
    removals: Option<u64>,
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

    /// Counts how much memory it takes now, about; unless somebody is at work on it.
    pub(crate) fn weigh(&self) {
        if let Some(branches) = self.free_branches() {
            let bytes = branches.memory_bytes();
            drop(branches);
            self.memory().set(FAMILY_BYTES + bytes);
        }
    }

    /// Bytes of memory that it took when it was weighed last.
    fn memory_bytes(&self) -> usize {
        self.memory().bytes()
    }

    fn memory(&self) -> MutexGuard<'_, Reservation> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
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
        let status = store.status()?;
        if status.read_only {
            return Err(StoreError::ReadOnly.into());
        }
        branches.forget_removed(store.as_ref(), status.removals);
        branches.forget_outdated(store, trail)?;
        if let Some(number) = branches.find(trail) {
            return Ok(number);
        }
        if branches.count.is_none() || branches.fork(trail).is_none() {
            self.load(branches, store, trail, setup)?;
        }
        if let Some(number) = branches.find(trail) {
            return Ok(number);
        }
        // What is copied and linked is read from the store.
        branches.flush()?;
        if let Some(number) = self.follow(branches, store, trail, setup)? {
            return Ok(number);
        }
        self.part(branches, store, trail, setup, came)
    }

    /// Begins a new branch with what the conversation shares with another one, if it does.
    fn part(
        &self,
        branches: &mut Branches,
        store: &Arc<dyn Store>,
        trail: &Trail,
        setup: &Setup,
        came: Option<&Came<'_>>,
    ) -> Result<usize, SessionError> {
        let next = branches.count.unwrap_or(0);
        let to = self.id(next)?;
        if let Some((from, messages)) = self.renewed(store, setup, came, next)? {
            let all = Beginning {
                messages,
                goes_on: true,
            };
            fork::copy(store.as_ref(), &from, all, &to, (0, 0))?;
            return self.begin(branches, store, setup);
        }
        let Some((from, beginning)) = branches.fork(trail) else {
            if let Some(before) = next.checked_sub(1) {
                store.link(&to, &self.id(before)?)?;
            }
            return self.begin(branches, store, setup);
        };
        fork::copy(store.as_ref(), &self.id(from)?, beginning, &to, (0, 0))?;
        let number = self.begin(branches, store, setup)?;
        if let Some(branch) = branches.get(number) {
            branch.is_copy_of(from);
        }
        Ok(number)
    }

    /// The copy of a branch that the conversation goes along, brought to where they part. So a
    /// client that goes back and comes the same way again needs one branch for all of it.
    fn follow(
        &self,
        branches: &mut Branches,
        store: &Arc<dyn Store>,
        trail: &Trail,
        setup: &Setup,
    ) -> Result<Option<usize>, SessionError> {
        let Some((from, beginning)) = branches.fork(trail) else {
            return Ok(None);
        };
        let Some((number, has)) = branches.copy_of(from, trail) else {
            return Ok(None);
        };
        let id = self.id(number)?;
        fork::copy(store.as_ref(), &self.id(from)?, beginning, &id, has)?;
        branches.loaded.retain(|(known, _)| *known != number);
        let Some(mut branch) = Branch::open(store, id, setup.clone())? else {
            return Ok(None);
        };
        branch.is_copy_of(from);
        branches.loaded.push((number, branch));
        Ok(Some(number))
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

impl Branches {
    /// The branch of that number.
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut Branch> {
        let mut found = self.loaded.iter_mut();
        found
            .find(|(known, _)| *known == number)
            .map(|(_, branch)| branch)
    }

    /// Bytes of memory that all of them take, about.
    fn memory_bytes(&self) -> usize {
        let bytes = self.loaded.iter().map(|(_, branch)| branch.memory_bytes());
        bytes.sum()
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

    /// Forgets branches to which another process has added something: the store has it.
    fn forget_outdated(
        &mut self,
        store: &Arc<dyn Store>,
        trail: &Trail,
    ) -> Result<(), SessionError> {
        let mut outdated = Vec::new();
        for (number, branch) in &self.loaded {
            let is_shared = trail.common(branch.trail()) > 0;
            if is_shared && branch.read_until(store).is_outdated()? {
                outdated.push(*number);
            }
        }
        for number in outdated {
            self.forget(number);
        }
        Ok(())
    }

    /// The branch that the conversation goes on from: the longest that it begins with whole,
    /// unless it has more in common with another one.
    pub(crate) fn find(&self, trail: &Trail) -> Option<usize> {
        let whole = self.loaded.iter().filter_map(|(number, branch)| {
            let length = branch.trail().len();
            let is_whole = length > 0 && trail.common(branch.trail()) == length;
            is_whole.then_some((length, Reverse(*number)))
        });
        let (length, Reverse(number)) = whole.max()?;
        let shared = self.longest_shared(trail).map_or(0, |(common, _)| common);
        (shared <= length).then_some(number)
    }

    /// The branch with which the conversation has most in common, and how many messages. It
    /// must have been answered at least once: before that nothing is worth keeping.
    fn longest_shared(&self, trail: &Trail) -> Option<(usize, usize)> {
        let shared = self
            .loaded
            .iter()
            .map(|(number, branch)| (trail.common(branch.trail()), Reverse(*number)));
        let (common, Reverse(number)) = shared.max()?;
        trail.has_answer_before(common).then_some((common, number))
    }

    /// The branch that the conversation parted from, and what they share.
    fn fork(&self, trail: &Trail) -> Option<(usize, Beginning)> {
        let (common, number) = self.longest_shared(trail)?;
        let mut branches = self.loaded.iter();
        let (_, branch) = branches.find(|(known, _)| *known == number)?;
        let beginning = Beginning {
            messages: branch.logged(common),
            goes_on: trail.len() > common,
        };
        Some((number, beginning))
    }

    /// A branch that is nothing but a copy of the beginning of another one, and lies on the way
    /// of the conversation; with how many entries its log and its journal have.
    fn copy_of(&self, from: usize, trail: &Trail) -> Option<(usize, (u64, u64))> {
        let mut copies = self.loaded.iter().filter_map(|(number, branch)| {
            let is_on_the_way = trail.common(branch.trail()) == branch.trail().len();
            let has = branch.copied(from).filter(|_| is_on_the_way)?;
            Some((*number, has))
        });
        copies.next()
    }
}

type ByName = HashMap<String, Arc<Family>>;

/// All families in memory. The oldest are let go; the store has them.
pub(crate) struct Families {
    by_name: Mutex<ByName>,
    clock: AtomicU64,
    started: Instant,
    budget: MemoryBudget,
}

impl Families {
    /// No family yet; all together may take a share of `budget`.
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        Self {
            by_name: Mutex::default(),
            clock: AtomicU64::new(0),
            started: Instant::now(),
            budget,
        }
    }

    fn by_name(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The family of that name.
    pub(crate) fn get(&self, name: &str, most: usize) -> Arc<Family> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut families = self.by_name();
        let family = families.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Family {
                name: name.to_owned(),
                used: AtomicU64::new(now),
                used_at: AtomicU64::new(0),
                memory: Mutex::new(self.budget.always_reserve(None, FAMILY_BYTES)),
                branches: Mutex::default(),
            })
        });
        family.used.store(now, Ordering::Relaxed);
        let seconds = self.started.elapsed().as_secs();
        family.used_at.store(seconds, Ordering::Relaxed);
        let family = Arc::clone(family);
        let old = self.too_many(&mut families, most);
        drop(families);
        // What was let go is taken apart without the lock.
        drop(old);
        family
    }

    /// Makes durable what all of them have written.
    pub(crate) fn flush(&self) {
        for family in self.all() {
            // Nobody is left to be told: what is lost the client brings again.
            family.branches().flush().unwrap_or(());
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name().len()
    }

    /// Lets go of families until so many bytes are free, if there are enough.
    pub(crate) fn make_room(&self, bytes: usize) {
        let mut families = self.by_name();
        let old = let_go(&mut families, |_, freed| freed >= bytes);
        drop(families);
        drop(old);
    }

    /// Takes out the oldest families, if there are too many or they take too much memory.
    fn too_many(&self, families: &mut ByName, most: usize) -> Vec<Arc<Family>> {
        // Adding all up costs a little, so it is not done every time.
        if families.len() <= most && !self.clock.load(Ordering::Relaxed).is_multiple_of(ADDED_UP) {
            return Vec::new();
        }
        let share = self.budget.limit() / SHARE;
        let total: usize = families.values().map(|family| family.memory_bytes()).sum();
        if families.len() <= most && total <= share {
            return Vec::new();
        }
        let count = families.len();
        let_go(families, |gone, freed| {
            gone >= LET_GO && count <= most + gone && total <= share + freed
        })
    }
}

/// Takes out the oldest families until it is `enough`: that is told how many were taken out,
/// and their bytes.
fn let_go(families: &mut ByName, enough: impl Fn(usize, usize) -> bool) -> Vec<Arc<Family>> {
    let mut oldest: Vec<(u64, String)> = families
        .values()
        // One that is in use stays, and one that has something to write.
        .filter(|family| Arc::strong_count(family) == 1 && family.is_idle())
        .map(|family| (family.used.load(Ordering::Relaxed), family.name.clone()))
        .collect();
    oldest.sort_unstable();
    let (mut taken, mut freed) = (Vec::new(), 0);
    for (_, name) in oldest {
        if enough(taken.len(), freed) {
            break;
        }
        if let Some(family) = families.remove(&name) {
            freed += family.memory_bytes();
            taken.push(family);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    fn families(memory_bytes: usize) -> Families {
        Families::new(MemoryBudget::new(&Limits {
            memory_bytes,
            ..Limits::default()
        }))
    }

    #[test]
    fn the_oldest_families_are_let_go() {
        let many = families(1 << 30);
        for at in 0..100 {
            many.get(&format!("f{at}"), 50);
        }
        assert!(many.len() <= 50);
        let small = families(40 * FAMILY_BYTES);
        for at in 0..100 {
            small.get(&format!("f{at}"), 5_000);
        }
        assert!(small.len() <= 20 + 16, "{}", small.len());
    }

    #[test]
    fn families_make_room_for_requests() {
        let families = families(1 << 20);
        for at in 0..10 {
            families.get(&format!("f{at}"), 50);
        }
        assert_eq!(families.budget.used(), 10 * FAMILY_BYTES);
        families.make_room(3 * FAMILY_BYTES);
        assert_eq!(families.len(), 7);
        assert_eq!(families.budget.used(), 7 * FAMILY_BYTES);
        assert!(families.by_name().contains_key("f9"));
    }

    #[test]
    fn a_family_in_use_stays() {
        let families = families(1 << 30);
        let held = families.get("held", 1);
        for at in 0..100 {
            families.get(&format!("f{at}"), 1);
        }
        assert!(Arc::ptr_eq(&held, &families.get("held", 1)));
    }
}
