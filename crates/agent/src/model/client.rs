//! The model client that the agent uses, over any backend.

use std::sync::Arc;

use trimtab_model::Dialect;

use super::{Endpoint, HttpModel, ModelReply, ModelRequest};

/// A backend that answers requests.
///
/// To write one, create its replies with [`ModelReply::spawn`].
pub trait ModelBackend: Send + Sync {
    /// The dialect whose rules the window must follow.
    fn dialect(&self) -> Dialect;

    /// Calls the model.
    fn call(&self, request: ModelRequest) -> ModelReply;
}

/// A model client. Clones share the same backend.
///
/// ```
/// use trimtab_agent::model::{ModelClient, Endpoint};
/// use trimtab_model::Dialect;
///
/// let local = Endpoint::new("http://127.0.0.1:8080/v1")?;
/// assert_eq!(ModelClient::chat(local).dialect(), Dialect::Chat);
/// # Ok::<_, trimtab_agent::model::BadBaseUrl>(())
/// ```
#[derive(Clone)]
pub struct ModelClient(Arc<dyn ModelBackend>);

impl ModelClient {
    /// A client with a custom backend.
    pub fn new(backend: impl ModelBackend + 'static) -> Self {
        Self(Arc::new(backend))
    }

    /// A client for `dialect` over HTTP.
    pub fn http(dialect: Dialect, endpoint: Endpoint) -> Self {
        Self::new(HttpModel::new(dialect, endpoint))
    }

    /// A client for Chat Completions.
    pub fn chat(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Chat, endpoint)
    }

    /// A client for Responses.
    pub fn responses(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Responses, endpoint)
    }

    /// A client for Messages.
    pub fn messages(endpoint: Endpoint) -> Self {
        Self::http(Dialect::Messages, endpoint)
    }

    /// The dialect whose rules the window must follow.
    pub fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    /// Calls the model. Requires a tokio runtime.
    pub fn call(&self, request: ModelRequest) -> ModelReply {
        self.0.call(request)
    }
}

impl std::fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.dialect()).finish()
    }
}
