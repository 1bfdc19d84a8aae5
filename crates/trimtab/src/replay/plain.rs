//! Sending everything, to compare with.

use std::sync::Arc;

use trimtab_engine::normalise::{Options, normalise};
use trimtab_model::Message;

use super::manager::{Failed, Manager, Sent};

/// Sends everything, with what a provider would refuse repaired.
#[derive(Debug, Default)]
pub struct SendAll {
    log: Vec<Arc<Message>>,
}

impl Manager for SendAll {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), Failed> {
        self.log.push(Arc::clone(message));
        Ok(())
    }

    fn send(&mut self) -> Result<Sent, Failed> {
        Ok(Sent {
            messages: normalise(&self.log, Options::default()).messages(),
            refs: Vec::new(),
        })
    }
}
