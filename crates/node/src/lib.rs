//! The native module of the Node package: [`trimtab_binding`] as a class.

#![deny(missing_docs)]

use std::sync::Arc;

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use trimtab_binding::{BindingError, BoundSession, BoundWindow, ErrorCode};

/// The text of an error begins with its kind, which the package turns into a class.
fn thrown(error: BindingError) -> Error {
    let kind = match error.code() {
        ErrorCode::BadInput => "bad-input",
        ErrorCode::TooLarge => "too-large",
        ErrorCode::Store => "store",
        ErrorCode::Internal => "internal",
    };
    Error::new(Status::GenericFailure, format!("{kind}: {error}"))
}

/// The rows to send.
#[napi(object, js_name = "WindowRows")]
pub struct NodeRows {
    /// For each row, the row of the request that it is; -1 for another one.
    pub sources: Vec<i32>,
    /// Those others, as a JSON list.
    pub changed: String,
    /// Its tokens by estimate.
    pub tokens: f64,
    /// How long an answer to ask for, in tokens.
    pub max_output: Option<f64>,
    /// Why it does not fit, if it does not.
    pub misfit: Option<String>,
}

impl NodeRows {
    fn new(window: BoundWindow) -> Result<Self> {
        let row = |source: Option<usize>| source.and_then(|at| i32::try_from(at).ok());
        Ok(Self {
            sources: window
                .sources
                .into_iter()
                .map(|at| row(at).unwrap_or(-1))
                .collect(),
            changed: text(window.changed)?,
            tokens: window.tokens as f64,
            max_output: window.max_output.map(|tokens| tokens as f64),
            misfit: window.misfit,
        })
    }
}

/// What a model sees of one output.
#[napi(object)]
pub struct ShownOutput {
    /// The text.
    pub text: String,
    /// Where all of it is.
    pub id: String,
    /// True if the text is not all of it.
    pub shortened: bool,
}

/// The answer to a call of a retrieval tool.
#[napi(object)]
pub struct RetrievalAnswer {
    /// The text.
    pub text: String,
    /// True if the call failed.
    pub is_error: bool,
}

/// Makes a window on a thread of Node's pool.
pub struct WindowTask {
    session: Arc<BoundSession>,
    request: Vec<u8>,
}

impl Task for WindowTask {
    type Output = BoundWindow;
    type JsValue = String;

    fn compute(&mut self) -> Result<BoundWindow> {
        self.session.window(&self.request).map_err(thrown)
    }

    fn resolve(&mut self, _: Env, window: BoundWindow) -> Result<String> {
        text(window.body)
    }
}

/// The same for rows.
pub struct RowsTask(WindowTask);

impl Task for RowsTask {
    type Output = BoundWindow;
    type JsValue = NodeRows;

    fn compute(&mut self) -> Result<BoundWindow> {
        self.0.compute()
    }

    fn resolve(&mut self, _: Env, window: BoundWindow) -> Result<NodeRows> {
        NodeRows::new(window)
    }
}

/// A conversation: JSON bytes in, JSON bytes out.
#[napi]
pub struct NativeSession(Arc<BoundSession>);

#[napi]
impl NativeSession {
    /// Opens a session.
    #[napi(constructor)]
    pub fn new(options: Buffer) -> Result<Self> {
        let session = BoundSession::open(&options).map_err(thrown)?;
        Ok(Self(Arc::new(session)))
    }

    /// The request to send, as JSON.
    #[napi]
    pub fn window(&self, request: Buffer) -> Result<String> {
        text(self.0.window(&request).map_err(thrown)?.body)
    }

    /// The same on another thread.
    #[napi]
    pub fn window_async(&self, request: Buffer) -> AsyncTask<WindowTask> {
        AsyncTask::new(self.task(&request))
    }

    /// The rows to send, made on another thread.
    #[napi]
    pub fn rows_async(&self, request: Buffer) -> AsyncTask<RowsTask> {
        AsyncTask::new(RowsTask(self.task(&request)))
    }

    /// The request for a summary, if it is time for one.
    #[napi]
    pub fn check(&self, request: Buffer) -> Result<Option<String>> {
        optional_text(self.0.check(&request))
    }

    /// Appends rows.
    #[napi]
    pub fn admit(&self, rows: Buffer) -> Result<u32> {
        let count = self.0.admit(&rows).map_err(thrown)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Stores one output and gives what the model should see of it.
    #[napi]
    pub fn show_output(&self, tool: String, call_id: String, text: String) -> Result<ShownOutput> {
        let shown = self.0.show_output(&tool, &call_id, &text).map_err(thrown)?;
        Ok(ShownOutput {
            id: shown.stored.id().to_owned(),
            text: shown.text,
            shortened: shown.shortened,
        })
    }

    /// Makes the window smaller after the provider refused it.
    #[napi]
    pub fn recover(&self, status: u16, answer: Buffer) -> Result<bool> {
        self.0.recover(status, &answer).map_err(thrown)
    }

    /// Compacts now.
    #[napi]
    pub fn compact(&self, instructions: String) -> Result<Option<String>> {
        optional_text(self.0.compact(&instructions))
    }

    /// Takes a summary.
    #[napi]
    pub fn answer(&self, text: Option<String>) -> Result<Option<String>> {
        optional_text(self.0.answer(text.as_deref()))
    }

    /// Takes the newest plan back.
    #[napi]
    pub fn undo(&self) -> Result<bool> {
        self.0.undo().map_err(thrown)
    }

    /// Answers a call of a retrieval tool.
    #[napi]
    pub fn retrieve(&self, tool: String, arguments: String) -> Result<RetrievalAnswer> {
        let answer = self.0.retrieve(&tool, &arguments).map_err(thrown)?;
        Ok(RetrievalAnswer {
            text: answer.text,
            is_error: answer.is_error,
        })
    }

    /// The definitions of the retrieval tools.
    #[napi]
    pub fn retrieval_tools(&self) -> Result<String> {
        text(self.0.retrieval_tools())
    }

    /// Takes the usage that the provider reported.
    #[napi]
    pub fn record(&self, usage: Buffer) -> Result<()> {
        self.0.record(&usage).map_err(thrown)
    }

    /// What was done so far.
    #[napi]
    pub fn usage(&self) -> Result<String> {
        text(self.0.usage_json().map_err(thrown)?)
    }
}

impl NativeSession {
    fn task(&self, request: &[u8]) -> WindowTask {
        WindowTask {
            session: Arc::clone(&self.0),
            request: request.to_vec(),
        }
    }
}

/// JSON bytes as a text. A buffer would be freed only when the event loop is idle.
fn text(json: Vec<u8>) -> Result<String> {
    let text = String::from_utf8(json);
    text.map_err(|why| Error::new(Status::GenericFailure, format!("internal: {why}")))
}

fn optional_text(
    json: std::result::Result<Option<Vec<u8>>, BindingError>,
) -> Result<Option<String>> {
    json.map_err(thrown)?.map(text).transpose()
}
