//! Bodies of requests, decoded.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};

/// Largest body, decoded: no test sends more, and a mistake must not take all memory.
const LARGEST: u64 = 512 << 20;

/// The body behind its `content-encoding`; none if that is unknown or wrong.
pub(super) fn decode(body: Bytes, encoding: Option<&str>) -> Option<Bytes> {
    match encoding.map(str::trim).unwrap_or_default() {
        "" | "identity" => Some(body),
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body.as_ref())),
        "deflate" => read(ZlibDecoder::new(body.as_ref())),
        _ => None,
    }
}

fn read(packed: impl Read) -> Option<Bytes> {
    let mut decoded = Vec::new();
    packed.take(LARGEST).read_to_end(&mut decoded).ok()?;
    Some(decoded.into())
}
