//! The branches of a client session that are in memory: which of them a conversation continues, and
//! which are out of date.

use std::cmp::Reverse;
use std::time::Duration;

use trimtab::session::{SessionError, SharedBeginning};
use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_store::{SessionId, Store};
use trimtab_wire::scan::BodyScan;

use crate::conversation::branch::{Branch, BranchStanding};
use crate::prefix_cache::fingerprint::{Fingerprint, FingerprintChain};

/// The conversation of a request, whose branch is wanted.
#[derive(Clone, Copy)]
pub(crate) struct BranchSearch<'a> {
    pub(crate) chain: &'a FingerprintChain,
    /// The request, to read single messages of it.
    pub(crate) scan: &'a BodyScan<'a>,
    /// The policy of the request.
    pub(crate) policy: &'a Policy,
    /// True if the request named the policy.
    pub(crate) asked_for: bool,
}

/// The branches of a client session that are in memory.
#[derive(Default)]
pub(crate) struct LoadedBranches {
    pub(super) loaded: Vec<(usize, Branch)>,
    /// The number of branches; unknown until the store was searched.
    pub(super) count: Option<usize>,
    /// The number of removals from the store at the last check.
    removals: Option<u64>,
}

/// A branch that shares messages with a conversation.
pub(super) struct SharingBranch {
    number: usize,
    pub(super) session: SessionId,
    /// True if everything that it wrote was durable before the store was asked.
    was_durable: bool,
}

impl LoadedBranches {
    /// The branch of that number.
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut Branch> {
        let mut found = self.loaded.iter_mut();
        found
            .find(|(known, _)| *known == number)
            .map(|(_, branch)| branch)
    }

    /// The branch whose session has that name.
    pub(crate) fn of_session(&mut self, session: &str) -> Option<&mut Branch> {
        let mut loaded = self.loaded.iter_mut().map(|(_, branch)| branch);
        loaded.find(|branch| branch.id().as_str() == session)
    }

    /// Their approximate memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let bytes = self.loaded.iter().map(|(_, branch)| branch.memory_bytes());
        bytes.sum()
    }

    /// Makes the writes of all of them durable.
    pub(super) fn flush(&self) -> Result<(), SessionError> {
        self.loaded
            .iter()
            .try_for_each(|(_, branch)| branch.flush())
    }

    /// Takes the branches that no request uses out of memory. They are loaded from the store again.
    pub(super) fn take_unused(&mut self) -> Vec<(usize, Branch)> {
        let unused = self.loaded.extract_if(.., |(_, branch)| branch.is_unused());
        let unused: Vec<_> = unused.collect();
        if !unused.is_empty() {
            // The store is searched again, or a conversation would fork from one that is loaded.
            self.count = None;
        }
        unused
    }

    /// Drops a failed branch from memory. It is loaded from the store again.
    pub(crate) fn forget(&mut self, number: usize) {
        if let Some(branch) = self.get(number) {
            // Its staged writes must be in the store before it is read again. If that fails, they
            // are lost, and the client sends them again.
            branch.flush().unwrap_or(());
        }
        self.loaded.retain(|(known, _)| *known != number);
        self.count = None;
    }

    /// The same for the branch of a session.
    pub(crate) fn forget_session(&mut self, session: &str) {
        let mut loaded = self.loaded.iter();
        let found = loaded.find(|(_, branch)| branch.id().as_str() == session);
        if let Some(number) = found.map(|(number, _)| *number) {
            self.forget(number);
        }
    }

    /// Drops branches whose session or outputs were removed from the store since the last check.
    /// The next request starts them over. If the store fails, it is asked again with the next
    /// request.
    pub(super) fn forget_removed(
        &mut self,
        store: &dyn Store,
        removals: u64,
    ) -> Result<(), SessionError> {
        if self.removals == Some(removals) {
            return Ok(());
        }
        let before = self.loaded.len();
        let mut failed = None;
        self.loaded.retain_mut(|(_, branch)| {
            if !branch.is_stored(store) {
                return false;
            }
            match branch.shows_dead_ref(store) {
                Ok(false) => true,
                Ok(true) => {
                    // Its window cannot be rebuilt. If the session cannot be deleted now, the next
                    // removal check finds it again.
                    store.delete_session(branch.id()).unwrap_or(());
                    false
                }
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        if self.loaded.len() < before {
            self.count = None;
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.removals = Some(removals);
        Ok(())
    }

    /// The branches that share messages with a conversation.
    pub(super) fn sharing(&self, chain: &FingerprintChain) -> Vec<SharingBranch> {
        self.chosen(|branch| chain.common_length(branch.fingerprints()) > 0)
    }

    fn chosen(&self, is_chosen: impl Fn(&Branch) -> bool) -> Vec<SharingBranch> {
        let chosen = self.loaded.iter().filter(|(_, branch)| is_chosen(branch));
        chosen
            .map(|(number, branch)| SharingBranch {
                number: *number,
                session: branch.id().clone(),
                was_durable: branch.staged().is_idle(),
            })
            .collect()
    }

    /// Brings the branch of a session up to date with the store: another process may have removed it
    /// or added to it.
    pub(crate) fn refresh(
        &mut self,
        store: &dyn Store,
        session: &SessionId,
    ) -> Result<(), SessionError> {
        let chosen = self.chosen(|branch| branch.id() == session);
        if chosen.is_empty() {
            return Ok(());
        }
        let (status, positions) = store.positions(std::slice::from_ref(session))?;
        self.forget_removed(store, status.removals)?;
        self.catch_up(store, chosen.into_iter().zip(positions));
        Ok(())
    }

    /// Reads what other processes have added to branches, and forgets branches that contradict the
    /// store.
    pub(super) fn catch_up(
        &mut self,
        store: &dyn Store,
        found: impl Iterator<Item = (SharingBranch, (u64, u64))>,
    ) {
        for (sharing, stored) in found {
            let Some(branch) = self.get(sharing.number) else {
                continue;
            };
            let is_current = match branch.standing(stored, sharing.was_durable) {
                BranchStanding::Current => true,
                // If that fails, the store is read again from the beginning.
                BranchStanding::Behind => branch.catch_up(store).is_ok(),
                BranchStanding::Contradicted => false,
            };
            if !is_current {
                self.forget(sharing.number);
            }
        }
    }

    /// The branch that the conversation continues: the longest one that it contains completely,
    /// unless it shares more with another one, or the last call decided otherwise.
    pub(crate) fn find(&self, search: BranchSearch<'_>) -> Option<usize> {
        let whole = self.longest(self.whole(search), search);
        let shared = self.longest_shared(search);
        // If it shares more with another branch, the client went back in that one, and a fork of it
        // keeps more of what was sent.
        let whole = whole.filter(|(length, _)| shared.is_none_or(|(common, _)| common <= *length));
        let whole = whole.map(|(_, number)| number);
        let origin = whole.or(shared.map(|(_, number)| number))?;
        self.last_call_beside(origin, search).or(whole)
    }

    /// The branch of the last call, if the client sends the conversation of `origin` again, and the
    /// last call decided otherwise than `origin`. Without it, every call would decide anew and the
    /// next one would forget it.
    fn last_call_beside(&self, origin: usize, search: BranchSearch<'_>) -> Option<usize> {
        let is_last_call = |(length, _): &(usize, usize)| search.chain.answers_from(*length) == 1;
        let (_, number) = self.longest(self.whole(search).filter(is_last_call), search)?;
        let decided_like = |origin: &Branch| {
            let branch = self.branch(number);
            branch.is_none_or(|branch| branch.decided_like(origin))
        };
        let is_beside = number != origin && !self.branch(origin).is_none_or(decided_like);
        is_beside.then_some(number)
    }

    pub(super) fn branch(&self, number: usize) -> Option<&Branch> {
        let mut loaded = self.loaded.iter();
        let found = loaded.find(|(known, _)| *known == number);
        found.map(|(_, branch)| branch)
    }

    /// The branches that the request may continue.
    fn suitable(&self, search: BranchSearch<'_>) -> impl Iterator<Item = (usize, &Branch)> {
        let loaded = self.loaded.iter().map(|(number, branch)| (*number, branch));
        loaded.filter(move |(_, branch)| branch.suits(search.policy, search.asked_for))
    }

    /// The longest of these branches, by length and number.
    fn longest(
        &self,
        branches: impl Iterator<Item = (usize, usize)>,
        search: BranchSearch<'_>,
    ) -> Option<(usize, usize)> {
        let branches: Vec<(usize, usize)> = branches.collect();
        let length = branches.iter().map(|(length, _)| *length).max()?;
        let longest = branches.into_iter().filter(|(of, _)| *of == length);
        let longest: Vec<usize> = longest.map(|(_, number)| number).collect();
        // Equally long branches may differ in hidden rounds, which only the answer tells apart.
        let answer = (longest.len() > 1).then(|| search.scan.message(length));
        let answer = answer.flatten();
        let fits = |number: usize| Some(self.branch(number)?.awaits(answer.as_ref()?));
        // Otherwise the oldest number wins, so every process chooses the same one.
        let best = longest
            .into_iter()
            .max_by_key(|number| (fits(*number), Reverse(*number)))?;
        Some((length, best))
    }

    /// The lengths and numbers of the branches that the conversation contains completely.
    fn whole(&self, search: BranchSearch<'_>) -> impl Iterator<Item = (usize, usize)> {
        self.suitable(search).filter_map(move |(number, branch)| {
            let length = branch.fingerprints().len();
            let common = search.chain.common_length(branch.fingerprints());
            (length > 0 && common == length).then_some((length, number))
        })
    }

    /// The branch with which the conversation shares the most messages, and their number. They must
    /// include an answer, because there is nothing to keep before the first one.
    fn longest_shared(&self, search: BranchSearch<'_>) -> Option<(usize, usize)> {
        let chain = search.chain;
        let shared = self
            .suitable(search)
            .map(|(number, branch)| (chain.common_length(branch.fingerprints()), Reverse(number)));
        let (common, Reverse(number)) = shared.max()?;
        chain.has_answer_before(common).then_some((common, number))
    }

    /// The branch from which the conversation forked, and their common beginning.
    pub(super) fn fork(&self, search: BranchSearch<'_>) -> Option<(usize, SharedBeginning)> {
        let (common, number) = self.longest_shared(search)?;
        let branch = self.branch(number)?;
        let beginning = SharedBeginning {
            messages: branch.log_length(common),
            goes_on: search.chain.len() > common,
        };
        Some((number, beginning))
    }

    /// The branch with which the conversation shares the most messages among those that the request
    /// may not continue.
    pub(super) fn left_aside(&self, search: BranchSearch<'_>) -> Option<&Branch> {
        let chain = search.chain;
        let branches = self.loaded.iter().map(|(_, branch)| branch);
        let aside = branches.filter(|branch| !branch.suits(search.policy, search.asked_for));
        let common = |branch: &&Branch| chain.common_length(branch.fingerprints());
        let found = aside.max_by_key(common)?;
        chain.has_answer_before(common(&found)).then_some(found)
    }

    /// The part of the conversation that was sent within `lifetime`, in any branch.
    /// Nothing of it counts if it was sent with other tools, because they are the front of a prompt.
    pub(crate) fn sent_within(
        &self,
        lifetime: Duration,
        chain: &FingerprintChain,
        tools: Fingerprint,
    ) -> Measure {
        self.longest_sent(chain, |branch| {
            branch.may_have_tools(tools) && branch.was_sent_within(lifetime) == Some(true)
        })
    }

    /// The part of the conversation that was sent at an unknown time, before a restart or by
    /// another process.
    pub(crate) fn sent_sometime(&self, chain: &FingerprintChain, tools: Fingerprint) -> Measure {
        self.longest_sent(chain, |branch| {
            branch.may_have_tools(tools) && branch.was_sent_within(Duration::ZERO).is_none()
        })
    }

    fn longest_sent(&self, chain: &FingerprintChain, counts: impl Fn(&Branch) -> bool) -> Measure {
        let branches = self.loaded.iter().map(|(_, branch)| branch);
        let shared = branches
            .filter(|branch| counts(branch))
            .map(|branch| (chain.common_length(branch.fingerprints()), branch));
        let longest = shared
            .filter(|(common, _)| *common > 0)
            .max_by_key(|(common, _)| *common);
        longest.map_or_else(Measure::default, |(common, branch)| {
            branch.measure_of_beginning(common)
        })
    }

    /// Adds a new branch and returns its number.
    pub(super) fn add(&mut self, branch: Branch) -> usize {
        let number = self.count.unwrap_or(0);
        self.loaded.push((number, branch));
        self.count = Some(number + 1);
        number
    }

    /// Extends a branch that is only a copy, up to the point where the conversation leaves its
    /// origin. A client that goes back and sends the same messages again then needs only one more
    /// branch.
    pub(super) fn follow(
        &mut self,
        search: BranchSearch<'_>,
    ) -> Result<Option<usize>, SessionError> {
        let Some((from, beginning)) = self.fork(search) else {
            return Ok(None);
        };
        let Some(number) = self.copy_of(from, search) else {
            return Ok(None);
        };
        let place = |number: usize| self.loaded.iter().position(|(known, _)| *known == number);
        let places = place(number).zip(place(from));
        let both = places.map(|(copy, origin)| self.loaded.get_disjoint_mut([copy, origin]));
        let Some(Ok([(_, copy), (_, origin)])) = both else {
            return Ok(None);
        };
        if let Err(error) = copy.follow((from, &*origin), beginning) {
            self.forget(number);
            return Err(error);
        }
        Ok(Some(number))
    }

    /// A branch that is only a copy of the beginning of `from`, and that the conversation
    /// continues.
    fn copy_of(&self, from: usize, search: BranchSearch<'_>) -> Option<usize> {
        let mut copies = self.suitable(search).filter(|(_, branch)| {
            let common = search.chain.common_length(branch.fingerprints());
            common == branch.fingerprints().len() && branch.is_copy_of(from)
        });
        copies.next().map(|(number, _)| number)
    }
}
