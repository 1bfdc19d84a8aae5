//! Work on the conversation of a request after it was planned: after an overflow, for a hidden
//! round, or when its answer has come.

use std::sync::{Arc, MutexGuard};

use trimtab::session::{PendingSummary, SessionError};
use trimtab_model::work;
use trimtab_wire::scan::BodyScan;

use super::ManagedRequest;
use super::managed::branch_is_gone;
use crate::conversation::branch::{Branch, BranchError};
use crate::conversation::client_sessions::LoadedBranches;
use crate::prefix_cache::prefix_hash::PrefixHash;

impl ManagedRequest {
    /// Works on the conversation again, for example after an overflow or a hidden round.
    pub(crate) fn with_body<T>(
        &self,
        work: impl FnOnce(&mut Branch, &BodyScan<'_>) -> Result<T, BranchError>,
    ) -> Result<T, BranchError> {
        self.with_scan(|scan| self.with_branch(|branch| work(branch, scan)))
    }

    /// Runs `work` on the parsed body.
    fn with_scan<T>(
        &self,
        work: impl FnOnce(&BodyScan<'_>) -> Result<T, BranchError>,
    ) -> Result<T, BranchError> {
        let (job, parsed_bodies) = (&self.job, &self.job.opened.parsed_bodies);
        let key = job.opened.keys.fingerprint_key();
        let hashed = PrefixHash::of(key, &job.body);
        let of = (job.tenant.as_str(), job.dialect);
        // Planning has kept the parsed body, so only its end is parsed again.
        let known = parsed_bodies.find(of, (&job.body, &hashed), key);
        let read = parsed_bodies.read(of, (&job.body, &hashed), key, known);
        let read = read.map_err(|why| BranchError::Mismatch(why.to_string()))?;
        let done = work(&read.scan);
        parsed_bodies.keep(read);
        done
    }

    /// The same without the body. All writes are durable when it returns.
    pub(crate) fn with_branch<T>(
        &self,
        work: impl FnOnce(&mut Branch) -> Result<T, BranchError>,
    ) -> Result<T, BranchError> {
        self.with_locked(self.lock_branches()?, work, |_| true)
    }

    /// The same after an answer. Plans are durable when it returns, and so is everything if a summary
    /// is due, because the request for it may show a ref. Other writes become durable soon.
    pub(crate) fn after_answer(
        &self,
        work: impl FnOnce(&mut Branch) -> Result<Option<PendingSummary>, BranchError>,
    ) -> Result<Option<PendingSummary>, BranchError> {
        self.with_locked(self.lock_branches()?, work, Option::is_some)
    }

    fn lock_branches(&self) -> Result<MutexGuard<'_, LoadedBranches>, BranchError> {
        let branches = self.client_session.branches();
        if work::is_cancelled() {
            return Err(BranchError::Mismatch(work::Cancelled.to_string()));
        }
        Ok(branches)
    }

    /// Continues the answer to a window of the log's first `sent` messages, and returns the request
    /// on the branch where that was done.
    ///
    /// A copy of the request may have continued the branch meanwhile, or the client itself. Then
    /// this answer gets a branch of its own: what follows it must not get into the other window.
    pub(crate) fn continue_answer<T>(
        self: &Arc<Self>,
        sent: usize,
        work: impl FnOnce(&mut Branch, &BodyScan<'_>) -> Result<T, BranchError>,
    ) -> Result<(Arc<Self>, T), BranchError> {
        self.with_scan(|scan| {
            let mut branches = self.lock_branches()?;
            let is_continued = |branch: &mut Branch| branch.logged() != sent;
            let managed = if branches.get(self.branch).is_some_and(is_continued) {
                Arc::new(self.forked(&mut branches, sent, scan)?)
            } else {
                Arc::clone(self)
            };
            let done = managed.with_locked(branches, |branch| work(branch, scan), |_| true)?;
            Ok((managed, done))
        })
    }

    /// The request on a new branch that begins with the first messages in the log of its own.
    fn forked(
        &self,
        branches: &mut LoadedBranches,
        messages: usize,
        scan: &BodyScan<'_>,
    ) -> Result<Self, BranchError> {
        let store = &self.job.opened.store;
        let forked = self
            .client_session
            .fork_at(branches, store, self.branch, messages)?;
        let found = forked.and_then(|number| Some((number, branches.get(number)?)));
        let (number, branch) = found.ok_or_else(branch_is_gone)?;
        // It continues with the limits of the branch that it leaves, which may have been lowered.
        let setup = branch.session().setup().clone();
        self.prepare(branch, scan, &setup)?;
        Ok(Self {
            branch: number,
            branch_mark: Some(branch.begin_request()),
            session: branch.id().as_str().to_owned(),
            ..self.clone()
        })
    }

    fn with_locked<T>(
        &self,
        mut branches: MutexGuard<'_, LoadedBranches>,
        work: impl FnOnce(&mut Branch) -> Result<T, BranchError>,
        must_be_durable: impl FnOnce(&T) -> bool,
    ) -> Result<T, BranchError> {
        let branch = branches.get(self.branch).ok_or_else(branch_is_gone)?;
        let decided = branch.decisions();
        let mut done = work(branch);
        // The next request would wait for a new plan, and the client may read back an output of a
        // copied session as soon as it has the answer.
        let is_urgent = branch.decisions() != decided || branch.staged().has_uncopied();
        if is_urgent || done.as_ref().is_ok_and(must_be_durable) {
            let staged = Arc::clone(branch.staged());
            // The next request does not wait for the disk.
            drop(branches);
            done = done.and_then(|done| {
                staged.flush().map_err(SessionError::from)?;
                Ok(done)
            });
        } else {
            branch.flush_soon();
            drop(branches);
        }
        // Memory may be ahead of the store after a failed write. The next request reads the store
        // again.
        if let Err(BranchError::Session(_)) = done {
            self.forget();
        }
        done
    }

    /// Drops the conversation from memory after a failure. The next request loads it from the
    /// store.
    pub(crate) fn forget(&self) {
        self.client_session.branches().forget(self.branch);
    }
}
