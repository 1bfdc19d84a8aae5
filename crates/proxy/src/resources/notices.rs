//! Notices to the operator, such as problems of the store. The CLI prints them.

use std::sync::Arc;

/// Where notices for the operator go.
pub(crate) type NoticeSink = Box<dyn Fn(&str) + Send + Sync>;

/// Sends notices to the operator, if there is a sink.
#[derive(Clone)]
pub(crate) struct Notices(Option<Arc<NoticeSink>>);

impl Notices {
    pub(crate) fn new(sink: Option<NoticeSink>) -> Self {
        Self(sink.map(Arc::new))
    }

    /// Sends a notice. The sink must not block.
    pub(crate) fn send(&self, notice: &str) {
        if let Some(sink) = &self.0 {
            sink(notice);
        }
    }
}
