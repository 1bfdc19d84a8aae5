//! The two retrieval tools, which return the parts of outputs that a view leaves out.

use std::sync::Arc;

use serde_json::Value;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{SessionId, Store};

use super::{Definition, Outcome, Tool, Work, Workspace};

/// One of the two retrieval tools, for one session.
#[derive(Clone)]
pub struct Redeem {
    definition: Definition,
    store: Arc<dyn Store>,
    session: SessionId,
}

impl Redeem {
    /// Both tools under these names, for the outputs that `session` may read.
    pub fn both(store: &Arc<dyn Store>, session: &SessionId, names: ToolNames) -> [Self; 2] {
        names.definitions().map(|definition| Self {
            definition,
            store: Arc::clone(store),
            session: session.clone(),
        })
    }
}

impl Tool for Redeem {
    fn definition(&self) -> Definition {
        self.definition.clone()
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> Work<'a> {
        let (this, arguments) = (self.clone(), arguments.to_string());
        let work = tokio::task::spawn_blocking(move || {
            let retrieval = Retrieval::new(&*this.store, this.session.clone());
            retrieval.call(&this.definition.name, &arguments)
        });
        Box::pin(async {
            match work.await {
                Ok(answer) => Outcome {
                    text: answer.text,
                    is_error: answer.is_error,
                },
                Err(error) => Outcome::error(format!("the store broke down: {error}")),
            }
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}
