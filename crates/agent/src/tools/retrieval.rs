//! The two retrieval tools, which return the parts of outputs that a view leaves out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{SessionId, Store};

use super::{Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace};

/// One of the two retrieval tools, for one session.
#[derive(Clone)]
pub struct RetrievalTool {
    definition: ToolDefinition,
    store: Arc<dyn Store>,
    session: SessionId,
    room: AnswerRoom,
}

/// How many bytes an answer may have. It depends on the window, and clones share it.
#[derive(Clone, Debug)]
pub(crate) struct AnswerRoom(Arc<AtomicUsize>);

impl Default for AnswerRoom {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl AnswerRoom {
    /// Answers may have this many bytes from now on.
    pub(crate) fn set(&self, limits: AnswerLimits) {
        self.0.store(limits.max_bytes, Ordering::Relaxed);
    }

    fn limits(&self) -> AnswerLimits {
        AnswerLimits::of_bytes(self.0.load(Ordering::Relaxed))
    }
}

impl RetrievalTool {
    /// Both tools under these names, for the outputs that `session` may read.
    pub fn both(store: &Arc<dyn Store>, session: &SessionId, names: ToolNames) -> [Self; 2] {
        names.definitions().map(|definition| Self {
            definition,
            store: Arc::clone(store),
            session: session.clone(),
            room: AnswerRoom::default(),
        })
    }

    /// The same with answers that fit this room.
    pub(crate) fn within(mut self, room: &AnswerRoom) -> Self {
        self.room = room.clone();
        self
    }
}

impl Tool for RetrievalTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        let (this, arguments) = (self.clone(), arguments.to_string());
        let work = tokio::task::spawn_blocking(move || {
            let retrieval = Retrieval::new(&*this.store, this.session.clone());
            let retrieval = retrieval.limits(this.room.limits());
            retrieval.call(&this.definition.name, &arguments)
        });
        Box::pin(async {
            match work.await {
                Ok(answer) => ToolOutcome {
                    text: answer.text,
                    is_error: answer.is_error,
                },
                Err(error) => ToolOutcome::error(format!("the store broke down: {error}")),
            }
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}
