//! Notices to the operator, such as problems of the store. The CLI prints them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What keeps a request unmanaged: the reason, what happened, and the settings to raise.
const LIMITS: [(&str, &str, &str); 3] = [
    (
        "memory",
        "there was no memory to plan it",
        "limits.memory_bytes and limits.tenant_memory_bytes",
    ),
    (
        "body-too-long",
        "its body is longer than limits.body_bytes",
        "limits.body_bytes, and limits.memory_bytes and limits.tenant_memory_bytes with it",
    ),
    (
        "slow",
        "planning took longer than limits.plan_ms",
        "limits.plan_ms",
    ),
];
/// The shortest time between two warnings about the same limit.
const BETWEEN_WARNINGS: Duration = Duration::from_mins(1);

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

/// Warns that requests are not managed because of a limit, once a minute for each limit.
#[derive(Default)]
pub(crate) struct LimitWarnings {
    /// When the warning about each of [`LIMITS`] was sent last.
    last: Mutex<[Option<Instant>; LIMITS.len()]>,
}

impl LimitWarnings {
    /// Warns if `reason` is a limit.
    pub(crate) fn warn(&self, reason: &str, notices: &Notices) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let found = LIMITS.iter().zip(last.iter_mut());
        let Some(((_, cause, settings), last)) = found.into_iter().find(|(limit, last)| {
            limit.0 == reason && last.is_none_or(|last| last.elapsed() >= BETWEEN_WARNINGS)
        }) else {
            return;
        };
        *last = Some(Instant::now());
        notices.warning(&format!(
            "a request was sent unchanged because {cause}: it is not kept within the window; \
             hint: raise {settings}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_reported_once_a_minute() {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        let notices = Notices::new(Some(Box::new(move |_, text: &str| {
            kept.lock().unwrap().push(text.to_owned());
        })));
        let warnings = LimitWarnings::default();
        for reason in ["memory", "small", "memory", "body-too-long", "memory"] {
            warnings.warn(reason, &notices);
        }
        let sent = sent.lock().unwrap();
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert!(sent[0].contains("limits.memory_bytes"), "{sent:?}");
        assert!(sent[1].contains("limits.body_bytes"), "{sent:?}");
    }
}
