//! Helpers for the access tests: a proxy with settings, and requests that are sent exactly as
//! written.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{PATIENCE, Served};
use crate::talk::with_output;

/// Two tokens that are long enough.
pub(crate) const TOKEN: &str = "0f8fad5bd9cb469fa16570867728950e";
pub(crate) const OTHER_TOKEN: &str = "7c9e6679f42b4c0ab2f0a1d5e8c3b614";

/// A model that says hello.
pub(crate) async fn model() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("hello")));
    Upstream::start(options).await.unwrap()
}

/// A proxy in front of `upstream` with these settings in the user's file.
pub(crate) fn serve(upstream: &Upstream, settings: &str, args: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    write_settings(folder.path(), settings);
    let url = upstream.url();
    let mut all = vec!["--upstream", &url];
    all.extend(args);
    Served::start_in(folder, &all)
}

/// Writes the user's file of settings.
pub(crate) fn write_settings(folder: &std::path::Path, settings: &str) {
    let place = folder.join("config/trimtab");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("config.toml"), settings).unwrap();
}

/// Asks for a path.
pub(crate) async fn get(url: &str, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    let url = format!("{url}{path}");
    let http = HttpClient::default();
    let sent = http.send(http::Method::GET, &url, headers, Vec::new(), PATIENCE);
    sent.await.unwrap()
}

/// Posts a body with nothing but these headers.
pub(crate) async fn post(
    url: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> HttpAnswer {
    let url = format!("{url}{path}");
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let body = body.to_string().into_bytes();
    let http = HttpClient::default();
    let sent = http.send(http::Method::POST, &url, &all, body, PATIENCE);
    sent.await.unwrap()
}

/// The text of an answer.
pub(crate) fn text(answer: &HttpAnswer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// An answer that is JSON.
pub(crate) fn value(answer: &HttpAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// Stores a long output for who presents `headers`, and gives the ref; none if it was not
/// managed.
pub(crate) async fn stored_ref(url: &str, headers: &[(&str, &str)]) -> Option<String> {
    let talk = with_output(Dialect::Chat, 4_000);
    let body = json!({"model": "gpt-4o", "messages": talk["messages"]});
    let answer = post(url, "/v1/compress", headers, &body).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    value(&answer)["ccr_hashes"][0].as_str().map(str::to_owned)
}

/// The status and the text that who presents `headers` gets for a ref.
pub(crate) async fn retrieved(url: &str, id: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let answer = get(url, &format!("/v1/retrieve/{id}"), headers).await;
    (answer.status.as_u16(), text(&answer))
}

/// Sends a request exactly as it is written, and reads until the connection is closed.
pub(crate) async fn raw(url: &str, request: &str) -> String {
    let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.unwrap().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
