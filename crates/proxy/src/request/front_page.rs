//! What is said to somebody who opens the address of the proxy itself.
//!
//! Most providers have nothing at `/`. Where an upstream does answer there, its answer passes:
//! some clients look at it to see whether their server is up.

use http::header::HOST;
use http::{HeaderMap, Method, StatusCode};

/// True for a request to the address of the proxy itself.
pub(crate) fn is_asked_for(method: &Method, path: &str) -> bool {
    let is_read = *method == Method::GET || *method == Method::HEAD;
    is_read && path.split('?').next() == Some("/")
}

/// True for an answer that says that nothing is there.
pub(crate) fn is_missing(status: StatusCode) -> bool {
    status == StatusCode::NOT_FOUND
}

/// The page, with the host that the request names.
pub(crate) fn text(headers: &HeaderMap, scheme: &str) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("127.0.0.1:8787");
    format!(
        "trimtab {version}\n\
         \n\
         This is the trimtab proxy. It runs between agents and their models, keeps requests\n\
         within the model's window, and forwards everything else unchanged.\n\
         \n\
         Point a client at it:\n\
         \x20 ANTHROPIC_BASE_URL={scheme}://{host}\n\
         \x20 OPENAI_BASE_URL={scheme}://{host}/v1\n\
         \n\
         {scheme}://{host}/dashboard        what it does, live, in a browser\n\
         {scheme}://{host}/trimtab/status   what was done so far\n\
         {scheme}://{host}/healthz          whether it is up\n\
         trimtab doctor                     checks the settings and the upstream\n\
         trimtab help serve                 all options\n",
        version = env!("CARGO_PKG_VERSION"),
    )
}
