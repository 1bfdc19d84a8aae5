//! Who uses a branch: requests in progress, and the task that writes its summary.

use std::sync::Arc;

use super::Branch;

/// A branch counts as being summarised until this is dropped. So a task that panics or is cancelled
/// does not prevent later summaries.
pub(crate) struct SummaryMark;

/// A branch stays in memory while a request in progress holds this.
#[derive(Default)]
pub(crate) struct RequestMark;

impl Branch {
    pub(super) fn is_summarising(&self) -> bool {
        self.summary_mark.strong_count() > 0
    }

    /// Marks the branch as being summarised; none if it is already.
    pub(crate) fn begin_summary(&mut self) -> Option<Arc<SummaryMark>> {
        if self.is_summarising() {
            return None;
        }
        let mark = Arc::new(SummaryMark);
        self.summary_mark = Arc::downgrade(&mark);
        Some(mark)
    }

    /// Marks the branch as used by a request, until the mark is dropped.
    pub(crate) fn begin_request(&self) -> Arc<RequestMark> {
        Arc::clone(&self.request_mark)
    }

    /// True if no request uses it, and all its writes are durable.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.request_mark) == 1 && self.staged.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::session::Setup;
    use trimtab_store::{MemoryStore, SessionId, Store};

    fn branch() -> Branch {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let id = SessionId::new("s").unwrap();
        Branch::open(&store, id, Setup::default()).unwrap().unwrap()
    }

    #[test]
    fn summary_task_that_panics_does_not_prevent_later_summaries() {
        let mut branch = branch();
        let mark = branch.begin_summary();
        assert!(mark.is_some() && branch.begin_summary().is_none());
        // The task owns the mark when it panics.
        let task = std::thread::spawn(move || assert!(mark.is_none(), "a fault of ours"));
        assert!(task.join().is_err());
        assert!(branch.begin_summary().is_some());
    }

    #[test]
    fn branch_is_used_while_a_request_is_in_progress() {
        let branch = branch();
        assert!(branch.is_unused());
        let marks = [branch.begin_request(), branch.begin_request()];
        assert!(!branch.is_unused());
        drop(marks);
        assert!(branch.is_unused());
    }
}
