//! Conversations in memory and what happens to their sessions in the store meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trimtab_store::{SessionId, Store};

use super::{Branches, Families, Family};

impl Branches {
    /// Forgets branches whose sessions or outputs are gone, if something was removed from the
    /// store since the last time. The next request begins them anew.
    pub(super) fn forget_removed(&mut self, store: &dyn Store, removals: u64) {
        if self.removals.replace(removals) == Some(removals) {
            return;
        }
        let before = self.loaded.len();
        self.loaded.retain_mut(|(_, branch)| {
            if !branch.is_stored(store) {
                return false;
            }
            let is_dead = branch.shows_dead_ref(store);
            if is_dead {
                // Its window cannot be made again. What is not removed is found to be so later.
                store.delete_session(branch.id()).unwrap_or(());
            }
            !is_dead
        });
        if self.loaded.len() < before {
            self.count = None;
        }
    }

    /// True if nothing was removed from the store since the branches were looked at last.
    pub(crate) fn are_current(&self, store: &dyn Store) -> bool {
        let status = store.status();
        status.is_ok_and(|status| !status.read_only && self.removals == Some(status.removals))
    }
}

impl Families {
    /// The sessions that are in memory now.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let families = self.all();
        let mut sessions = Vec::new();
        for family in families {
            // One that is at work now was just used; it is asked the next time.
            let Some(branches) = family.free_branches() else {
                continue;
            };
            sessions.extend(
                branches
                    .loaded
                    .iter()
                    .map(|(_, branch)| branch.id().clone()),
            );
        }
        sessions
    }

    /// Lets go of families that were not used for so long.
    pub(crate) fn let_go_idle(&self, idle: Duration) {
        let now = self.started.elapsed().as_secs();
        self.by_name().retain(|_, family| {
            let idle_for = now.saturating_sub(family.used_at.load(Ordering::Relaxed));
            let in_use = Arc::strong_count(family) > 1 || !family.is_idle();
            in_use || idle_for < idle.as_secs()
        });
    }

    pub(super) fn all(&self) -> Vec<Arc<Family>> {
        self.by_name().values().cloned().collect()
    }
}
