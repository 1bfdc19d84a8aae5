//! Notices to the operator, such as problems of the store. The CLI prints them.

use std::sync::Arc;

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Something happened, or works again.
    Info,
    /// Something does not work as wanted, and the rest does.
    Warning,
    /// The proxy does not do its work, or what it must record is lost.
    Error,
}

/// Where notices for the operator go.
pub(crate) type NoticeSink = Box<dyn Fn(NoticeLevel, &str) + Send + Sync>;

/// Sends notices to the operator, if there is a sink.
#[derive(Clone)]
pub(crate) struct Notices(Option<Arc<NoticeSink>>);

impl Notices {
    pub(crate) fn new(sink: Option<NoticeSink>) -> Self {
        Self(sink.map(Arc::new))
    }

    /// Sends a notice. The sink must not block.
    pub(crate) fn send(&self, level: NoticeLevel, notice: &str) {
        if let Some(sink) = &self.0 {
            sink(level, notice);
        }
    }

    /// Tells that something happened.
    pub(crate) fn info(&self, notice: &str) {
        self.send(NoticeLevel::Info, notice);
    }

    /// Warns of something.
    pub(crate) fn warning(&self, notice: &str) {
        self.send(NoticeLevel::Warning, notice);
    }

    /// Reports an error.
    pub(crate) fn error(&self, notice: &str) {
        self.send(NoticeLevel::Error, notice);
    }
}
