//! Decompresses answers that a gateway compressed although the client did not accept it.

use std::io::{self, Write};

use flate2::write::{GzDecoder, ZlibDecoder};

/// Decompresses the bytes of an answer as they arrive.
pub(super) enum AnswerUnpacker {
    /// Compressed according to the header; the first byte will show whether that is true.
    Declared(AnswerCoding),
    /// Not compressed.
    Plain,
    /// Compressed with gzip.
    Gzip(Box<GzDecoder<Vec<u8>>>),
    /// Compressed with zlib, which HTTP calls deflate.
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
}

/// The encoding that the header claims.
#[derive(Clone, Copy)]
pub(super) enum AnswerCoding {
    Gzip,
    Zlib,
}

impl AnswerUnpacker {
    /// A decompressor for this `content-encoding`.
    pub(super) fn new(coding: Option<&str>) -> Self {
        match coding.map(str::trim) {
            Some("gzip" | "x-gzip") => Self::Declared(AnswerCoding::Gzip),
            Some("deflate") => Self::Declared(AnswerCoding::Zlib),
            _ => Self::Plain,
        }
    }

    /// Decompresses the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if let (Self::Declared(coding), Some(first)) = (&self, bytes.first()) {
            // The first byte reveals a false header.
            *self = match (coding, first) {
                (AnswerCoding::Gzip, 0x1f) => Self::Gzip(Box::new(GzDecoder::new(Vec::new()))),
                (AnswerCoding::Zlib, 0x78) => Self::Zlib(Box::new(ZlibDecoder::new(Vec::new()))),
                _ => Self::Plain,
            };
        }
        match self {
            Self::Declared(_) | Self::Plain => Ok(bytes.to_vec()),
            Self::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn unpacked(coding: &str, bytes: &[u8]) -> String {
        let mut unpacker = AnswerUnpacker::new(Some(coding));
        let mut all = Vec::new();
        for piece in bytes.chunks(7) {
            all.extend(unpacker.push(piece).unwrap());
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn codings_are_decoded_and_false_headers_detected() {
        let text = "data: {\"x\": 1}\n\n".repeat(100);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        assert_eq!(unpacked("gzip", &gzip.finish().unwrap()), text);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text.as_bytes()).unwrap();
        assert_eq!(unpacked("deflate", &zlib.finish().unwrap()), text);
        assert_eq!(unpacked("gzip", text.as_bytes()), text);
        assert_eq!(unpacked("identity", text.as_bytes()), text);
    }
}
