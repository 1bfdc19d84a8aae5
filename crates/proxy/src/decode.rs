//! Compressed request bodies, unpacked within limits.

use std::io::{self, Read};

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::config::Limits;

/// The largest window of a zstd frame that is accepted, as a power of two: 8 MiB, what
/// decoders must support.
const ZSTD_WINDOW: u32 = 23;
/// How much is unpacked at a time.
const STEP: usize = 64 << 10;
/// What even a tiny body may unpack to.
const FREE: usize = 64 << 10;

/// Why a body was not unpacked; it then passes as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDecoded {
    /// An encoding, or several of them, that we do not know.
    Unknown,
    /// It unpacks to more than is allowed.
    TooLarge,
    /// It is damaged.
    Damaged,
}

/// The body, unpacked; none if it is not compressed.
pub(crate) fn decode(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &Limits,
) -> Result<Option<Bytes>, NotDecoded> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    let Some(encoding) = encodings.next() else {
        return Ok(None);
    };
    let encoding = encoding.to_str().map_err(|_| NotDecoded::Unknown)?;
    let encoding = encoding.trim().to_ascii_lowercase();
    if encodings.next().is_some() {
        return Err(NotDecoded::Unknown);
    }
    let most = limits
        .decoded_bytes
        .min(body.len().saturating_mul(limits.decode_ratio).max(FREE));
    let unpacked = match encoding.as_str() {
        "" | "identity" => return Ok(None),
        "gzip" | "x-gzip" => unpack(flate2::read::MultiGzDecoder::new(body.as_ref()), most),
        "deflate" => deflate(body, most),
        "br" => unpack(
            brotli_decompressor::Decompressor::new(body.as_ref(), STEP),
            most,
        ),
        "zstd" => zstd(body, most),
        _ => return Err(NotDecoded::Unknown),
    };
    unpacked.map(Some)
}

/// With the wrapper that the standard wants, or without it, as some clients send it.
fn deflate(body: &[u8], most: usize) -> Result<Bytes, NotDecoded> {
    match unpack(flate2::read::ZlibDecoder::new(body), most) {
        Err(NotDecoded::Damaged) => unpack(flate2::read::DeflateDecoder::new(body), most),
        unpacked => unpacked,
    }
}

fn zstd(body: &[u8], most: usize) -> Result<Bytes, NotDecoded> {
    let damaged = |_: io::Error| NotDecoded::Damaged;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(damaged)?;
    decoder.window_log_max(ZSTD_WINDOW).map_err(damaged)?;
    unpack(decoder, most)
}

/// Reads to the end, but never more than `most` bytes: a size that the body declares is not
/// believed.
fn unpack(reader: impl Read, most: usize) -> Result<Bytes, NotDecoded> {
    let mut unpacked = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut limited = reader.take(limit);
    let mut step = vec![0; STEP];
    loop {
        match limited.read(&mut step) {
            Ok(0) => return Ok(Bytes::from(unpacked)),
            Ok(read) => unpacked.extend_from_slice(step.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(NotDecoded::Damaged),
        }
        if unpacked.len() > most {
            return Err(NotDecoded::TooLarge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use http::HeaderValue;
    use std::io::Write;

    const TEXT: &[u8] = br#"{"messages": []}"#;

    fn decoded(encoding: &'static str, body: Vec<u8>) -> Result<Option<Bytes>, NotDecoded> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        decode(&headers, &Bytes::from(body), &Limits::default())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn known_encodings_are_unpacked() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(TEXT).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(TEXT).unwrap();
        // A stored brotli stream of the text, made by hand: one uncompressed meta-block.
        let bodies = [
            ("gzip", gzip(TEXT)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("zstd", zstd::encode_all(TEXT, 3).unwrap()),
            ("br", brotli_stored(TEXT)),
        ];
        for (encoding, body) in bodies {
            let found = decoded(encoding, body).unwrap().unwrap();
            assert_eq!(found, TEXT, "{encoding}");
        }
        assert_eq!(decoded("identity", TEXT.to_vec()), Ok(None));
    }

    /// A brotli stream with one uncompressed meta-block of at most 65,536 bytes.
    fn brotli_stored(bytes: &[u8]) -> Vec<u8> {
        // Bits, least significant first: window 16 (0), not last (0), four nibbles (00),
        // length - 1 (16 bits), uncompressed (1).
        let length = u32::try_from(bytes.len() - 1).unwrap();
        let head = (length << 4) | (1 << 20);
        let mut stream = head.to_le_bytes()[..3].to_vec();
        stream.extend_from_slice(bytes);
        // Last and empty.
        stream.push(0b11);
        stream
    }

    #[test]
    fn a_bomb_is_left_alone() {
        let zeros = vec![0; 8 << 20];
        assert_eq!(decoded("gzip", gzip(&zeros)), Err(NotDecoded::TooLarge));
        let packed = zstd::encode_all(zeros.as_slice(), 3).unwrap();
        assert_eq!(decoded("zstd", packed), Err(NotDecoded::TooLarge));
    }

    #[test]
    fn what_is_damaged_or_unknown_is_left_alone() {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(
                decoded(encoding, b"\xffnonsense".to_vec()),
                Err(NotDecoded::Damaged),
                "{encoding}"
            );
        }
        let cut = gzip(TEXT)[..12].to_vec();
        assert_eq!(decoded("gzip", cut), Err(NotDecoded::Damaged));
        assert_eq!(decoded("gzip, br", TEXT.to_vec()), Err(NotDecoded::Unknown));
    }
}
