//! The one way to call any model.

use std::sync::Arc;

use trimtab_model::Dialect;

use super::{Endpoint, Http, Reply, Request};

/// Something that answers requests.
///
/// A backend of one's own makes its reply with [`Reply::spawn`].
pub trait Backend: Send + Sync {
    /// The dialect whose rules the window has to follow.
    fn dialect(&self) -> Dialect;

    /// Asks the model.
    fn call(&self, request: Request) -> Reply;
}

/// A model client. Cloning gives another handle to the same one.
///
/// ```
/// use trimtab_agent::model::{Client, Endpoint};
/// use trimtab_model::Dialect;
///
/// let local = Endpoint::new("http://127.0.0.1:8080/v1")?;
/// assert_eq!(Client::chat(local).dialect(), Dialect::Chat);
/// # Ok::<_, trimtab_agent::model::BadBase>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<dyn Backend>);

impl Client {
    /// A client over a backend of one's own.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Self(Arc::new(backend))
    }

    /// A client that speaks `dialect` over HTTP.
    pub fn http(dialect: Dialect, endpoint: Endpoint) -> Self {
        Self::new(Http::new(dialect, endpoint))
    }

    /// A client that speaks Chat Completions.
    pub fn chat(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Chat, endpoint)
    }

    /// A client that speaks Responses.
    pub fn responses(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Responses, endpoint)
    }

    /// A client that speaks Messages.
    pub fn messages(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Messages, endpoint)
    }

    /// The dialect whose rules the window has to follow.
    pub fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    /// Asks the model. Must be called within a tokio runtime.
    pub fn call(&self, request: Request) -> Reply {
        self.0.call(request)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.dialect()).finish()
    }
}
