#![doc = include_str!("../README.md")]

mod rows;

use std::sync::Arc;

use rig_core::completion::{
    CompletionError, CompletionModel, CompletionRequest, CompletionResponse, ProviderCapabilities,
};
use rig_core::streaming::StreamingCompletionResponse;
use rig_core::tool::{PortableDynamicTool, ToolOutput};
use serde_json::Value;
use trimtab_binding::{BindingError, BoundSession};

use crate::rows::HostRows;

/// One conversation of an agent.
#[derive(Clone)]
pub struct RigContext {
    session: Arc<BoundSession>,
}

impl RigContext {
    /// Opens a session with these options.
    pub fn open(options: &Value) -> Result<Self, BindingError> {
        let session = BoundSession::open(options.to_string().as_bytes())?;
        Ok(Self {
            session: Arc::new(session),
        })
    }

    /// The session, for its figures, `compact` and `undo`.
    pub fn session(&self) -> &BoundSession {
        &self.session
    }

    /// A model that is called with windows that fit.
    pub fn model<M: CompletionModel>(&self, inner: M) -> FittedModel<M> {
        FittedModel {
            session: Arc::clone(&self.session),
            inner,
        }
    }

    /// The two tools that read stored outputs: one reads lines, the other searches.
    pub fn tools(&self) -> [PortableDynamicTool; 2] {
        let defined = serde_json::from_slice(&self.session.retrieval_tools());
        let defined: Value = defined.unwrap_or_default();
        let definition = |at: usize| defined.get(at).and_then(|tool| tool.get("function"));
        [0, 1].map(|at| self.tool(definition(at).unwrap_or(&Value::Null)))
    }

    fn tool(&self, definition: &Value) -> PortableDynamicTool {
        let text = |field: &str| definition[field].as_str().unwrap_or_default().to_owned();
        let (session, name) = (Arc::clone(&self.session), text("name"));
        let answer = move |arguments: Value| {
            let answer = session.retrieve(&name, &arguments.to_string());
            // The model reads what was wrong with its call.
            let text = answer.map_or_else(|error| error.to_string(), |answer| answer.text);
            Box::pin(async { Ok(ToolOutput::text(text)) }) as _
        };
        let parameters = definition["parameters"].clone();
        PortableDynamicTool::new(text("name"), text("description"), parameters, answer)
    }
}

/// Calls another model with windows that fit.
#[derive(Clone)]
pub struct FittedModel<M> {
    session: Arc<BoundSession>,
    inner: M,
}

impl<M> FittedModel<M> {
    /// The request to send. If Trimtab itself fails, the request passes as it came.
    fn fitted(&self, request: &CompletionRequest) -> CompletionRequest {
        let mut sent = request.clone();
        let rows = HostRows::of(request);
        if let Ok(window) = self.session.window(&rows.request(request))
            && let Some(messages) = rows.messages(&window, &request.chat_history)
        {
            sent.chat_history = messages;
        }
        sent
    }

    /// True if a request was refused for its size, and a smaller window was made.
    fn recovers(&self, error: &CompletionError) -> bool {
        let status = error.provider_response_status();
        let status = status.map_or(400, |status| status.as_u16());
        let text = error.to_string();
        let body = error.provider_response_body().unwrap_or(&text);
        let recovered = self.session.recover(status, body.as_bytes());
        recovered.unwrap_or(false)
    }
}

impl<M: CompletionModel> CompletionModel for FittedModel<M> {
    async fn completion(
        &self,
        request: CompletionRequest,
    ) -> Result<CompletionResponse, CompletionError> {
        loop {
            match self.inner.completion(self.fitted(&request)).await {
                Err(error) if self.recovers(&error) => {}
                answer => return answer,
            }
        }
    }

    async fn stream(
        &self,
        request: CompletionRequest,
    ) -> Result<StreamingCompletionResponse, CompletionError> {
        loop {
            match self.inner.stream(self.fitted(&request)).await {
                Err(error) if self.recovers(&error) => {}
                answer => return answer,
            }
        }
    }

    fn capabilities(&self) -> ProviderCapabilities {
        self.inner.capabilities()
    }
}
