//! The native module of the Python package: [`trimtab_binding`] as a class.
//!
//! Every method releases the interpreter while it works, so that other threads go on.

#![deny(missing_docs)]

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trimtab_binding::{BindingError, BoundSession, BoundWindow, ErrorCode};

create_exception!(
    trimtab,
    TrimtabError,
    PyException,
    "Trimtab could not do it."
);
create_exception!(
    trimtab,
    TooLargeError,
    TrimtabError,
    "A part alone is larger than the window."
);
create_exception!(trimtab, StoreError, TrimtabError, "The store failed.");

fn raised(error: BindingError) -> PyErr {
    let text = error.to_string();
    match error.code() {
        ErrorCode::BadInput => PyValueError::new_err(text),
        ErrorCode::TooLarge => TooLargeError::new_err(text),
        ErrorCode::Store => StoreError::new_err(text),
        ErrorCode::Internal => TrimtabError::new_err(text),
    }
}

/// The request to send.
#[pyclass(frozen, module = "trimtab", name = "Window")]
struct PythonWindow(BoundWindow);

#[pymethods]
impl PythonWindow {
    /// The request as JSON bytes, in the shape of the session.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.body)
    }

    /// For each row of its messages, the row of the request that it is; None for another one.
    #[getter]
    fn sources(&self) -> Vec<Option<usize>> {
        self.0.sources.clone()
    }

    /// The rows without one, as a JSON list.
    #[getter]
    fn changed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.changed)
    }

    /// Its tokens by estimate.
    #[getter]
    fn tokens(&self) -> u64 {
        self.0.tokens
    }

    /// How long an answer to ask for, in tokens, where that is known.
    #[getter]
    fn max_output(&self) -> Option<u64> {
        self.0.max_output
    }

    /// Why it does not fit, if it does not.
    #[getter]
    fn misfit(&self) -> Option<String> {
        self.0.misfit.clone()
    }

    fn __repr__(&self) -> String {
        let (rows, tokens) = (self.0.sources.len(), self.0.tokens);
        format!("Window(rows={rows}, tokens={tokens})")
    }
}

/// A conversation: JSON bytes in, JSON bytes out.
#[pyclass(frozen, module = "trimtab")]
struct NativeSession(BoundSession);

#[pymethods]
impl NativeSession {
    #[new]
    fn new(py: Python<'_>, options: &[u8]) -> PyResult<Self> {
        py.detach(|| BoundSession::open(options))
            .map(Self)
            .map_err(raised)
    }

    fn window(&self, py: Python<'_>, request: &[u8]) -> PyResult<PythonWindow> {
        py.detach(|| self.0.window(request))
            .map(PythonWindow)
            .map_err(raised)
    }

    fn check(&self, py: Python<'_>, request: &[u8]) -> PyResult<Option<Py<PyBytes>>> {
        let asked = py.detach(|| self.0.check(request)).map_err(raised)?;
        Ok(bytes(py, asked))
    }

    fn admit(&self, py: Python<'_>, rows: &[u8]) -> PyResult<usize> {
        py.detach(|| self.0.admit(rows)).map_err(raised)
    }

    fn show_output(
        &self,
        py: Python<'_>,
        tool: &str,
        call_id: &str,
        text: &str,
    ) -> PyResult<(String, String, bool)> {
        let shown = py.detach(|| self.0.show_output(tool, call_id, text));
        let shown = shown.map_err(raised)?;
        Ok((shown.text, shown.stored.id().to_owned(), shown.shortened))
    }

    fn recover(&self, py: Python<'_>, status: u16, answer: &[u8]) -> PyResult<bool> {
        py.detach(|| self.0.recover(status, answer)).map_err(raised)
    }

    fn compact(&self, py: Python<'_>, instructions: &str) -> PyResult<Option<Py<PyBytes>>> {
        let asked = py.detach(|| self.0.compact(instructions)).map_err(raised)?;
        Ok(bytes(py, asked))
    }

    fn answer(&self, py: Python<'_>, text: Option<&str>) -> PyResult<Option<Py<PyBytes>>> {
        let asked = py.detach(|| self.0.answer(text)).map_err(raised)?;
        Ok(bytes(py, asked))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.0.undo()).map_err(raised)
    }

    fn retrieve(&self, py: Python<'_>, tool: &str, arguments: &str) -> PyResult<(String, bool)> {
        let answer = py.detach(|| self.0.retrieve(tool, arguments));
        let answer = answer.map_err(raised)?;
        Ok((answer.text, answer.is_error))
    }

    fn retrieval_tools(&self, py: Python<'_>) -> Py<PyBytes> {
        PyBytes::new(py, &self.0.retrieval_tools()).unbind()
    }

    fn record(&self, py: Python<'_>, usage: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.record(usage)).map_err(raised)
    }

    fn usage(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let figures = py.detach(|| self.0.usage_json()).map_err(raised)?;
        Ok(PyBytes::new(py, &figures).unbind())
    }
}

fn bytes(py: Python<'_>, bytes: Option<Vec<u8>>) -> Option<Py<PyBytes>> {
    bytes.map(|bytes| PyBytes::new(py, &bytes).unbind())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<NativeSession>()?;
    module.add_class::<PythonWindow>()?;
    module.add("TrimtabError", py.get_type::<TrimtabError>())?;
    module.add("TooLargeError", py.get_type::<TooLargeError>())?;
    module.add("StoreError", py.get_type::<StoreError>())
}
