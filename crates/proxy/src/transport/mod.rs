//! Bytes in and out: connections, bodies, headers and the client for upstreams.

pub(crate) mod body;
pub(crate) mod client_body;
pub(crate) mod connections;
pub(crate) mod decompress;
pub(crate) mod headers;
pub(crate) mod peer_socket;
pub(crate) mod upload_progress;
pub(crate) mod upstream_client;
pub(crate) mod watched_body;
pub(crate) mod watched_stream;
