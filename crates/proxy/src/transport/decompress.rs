//! Decompresses request bodies and errors within limits. Decompression stops at the limit and
//! frees what it has, so a small body that expands enormously costs little.

use std::io::{self, Read};

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::config::ProxyLimits;
use crate::resources::memory_budget::Reservation;

/// The largest window of a zstd frame that is accepted, as a power of two: 8 MiB, what
/// decoders must support.
const ZSTD_WINDOW: u32 = 23;
/// The size of one decompression step in bytes.
const STEP: usize = 64 << 10;
/// The decompressed size that even a tiny body may have.
const FREE: usize = 64 << 10;

/// The maximum decompressed size of an error.
const LONGEST_ERROR: usize = 1 << 20;

/// Why a body was not decompressed. It then passes unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDecoded {
    /// An unknown encoding, or several encodings.
    Unknown,
    /// Its decompressed size exceeds a limit.
    TooLarge,
    /// It is damaged.
    Damaged,
    /// There is no memory for it.
    NoMemory,
}

impl NotDecoded {
    /// The reason in one word, for records.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NoMemory => "memory",
            Self::Unknown | Self::TooLarge | Self::Damaged => "encoding",
        }
    }
}

/// The supported encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// The encoding in the headers, if any.
    fn named(headers: &HeaderMap) -> Result<Option<Self>, NotDecoded> {
        let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
        let Some(encoding) = encodings.next() else {
            return Ok(None);
        };
        let encoding = encoding.to_str().map_err(|_| NotDecoded::Unknown)?;
        // Several encodings on top of each other are legal but not supported.
        if encodings.next().is_some() {
            return Err(NotDecoded::Unknown);
        }
        Ok(Some(match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => return Ok(None),
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            _ => return Err(NotDecoded::Unknown),
        }))
    }

    /// The memory of its decoder, which is mostly its window.
    fn window(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate => 128 << 10,
            Self::Brotli => 16 << 20,
            Self::Zstd => 1 << ZSTD_WINDOW,
        }
    }
}

/// The decompressed body, in memory that is reserved while it grows; none if it is not compressed.
pub(crate) fn decode(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &ProxyLimits,
    memory: Reservation,
) -> Result<Option<Bytes>, NotDecoded> {
    let Some(encoding) = Encoding::named(headers)? else {
        return Ok(None);
    };
    // Text compresses well below this ratio; what expands further is made to exhaust memory.
    let by_ratio = body.len().saturating_mul(limits.decode_ratio).max(FREE);
    let most = limits.decoded_bytes.min(by_ratio);
    unpack(encoding, body, most, Some(memory)).map(Some)
}

/// The decompressed text of an error; none if it is not compressed.
pub(crate) fn decode_error(headers: &HeaderMap, body: &Bytes) -> Option<Bytes> {
    let encoding = Encoding::named(headers).ok()??;
    unpack(encoding, body, LONGEST_ERROR, None).ok()
}

fn unpack(
    encoding: Encoding,
    body: &[u8],
    most: usize,
    memory: Option<Reservation>,
) -> Result<Bytes, NotDecoded> {
    let mut output = DecodedOutput::new(encoding, most, memory)?;
    match encoding {
        Encoding::Gzip => output.read(flate2::read::MultiGzDecoder::new(body))?,
        Encoding::Deflate => {
            // HTTP means the zlib format by this name, but some clients send raw deflate data.
            let wrapped = output.read(flate2::read::ZlibDecoder::new(body));
            if wrapped == Err(NotDecoded::Damaged) {
                output.bytes.clear();
                output.read(flate2::read::DeflateDecoder::new(body))?;
            } else {
                wrapped?;
            }
        }
        Encoding::Brotli => {
            output.read(brotli_decompressor::Decompressor::new(body, STEP))?;
        }
        Encoding::Zstd => output.read(zstd_reader(body)?)?,
    }
    Ok(output.finish())
}

fn zstd_reader(body: &[u8]) -> Result<impl Read, NotDecoded> {
    let damaged = |_: io::Error| NotDecoded::Damaged;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(damaged)?;
    decoder.window_log_max(ZSTD_WINDOW).map_err(damaged)?;
    Ok(decoder)
}

/// The output of a decompression.
struct DecodedOutput {
    bytes: Vec<u8>,
    most: usize,
    /// The memory of the decoder.
    window: usize,
    memory: Option<Reservation>,
}

impl DecodedOutput {
    fn new(
        encoding: Encoding,
        most: usize,
        memory: Option<Reservation>,
    ) -> Result<Self, NotDecoded> {
        let mut output = Self {
            // Room for everything at once: pages that are never written to cost no memory, and
            // nothing has to be copied while the output grows.
            bytes: Vec::with_capacity(most.saturating_add(STEP)),
            most,
            window: encoding.window(),
            memory,
        };
        output.reserve(0)?;
        Ok(output)
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), NotDecoded> {
        let wanted = self.window.saturating_add(bytes);
        let memory = self.memory.as_mut();
        let has_room = memory.is_none_or(|memory| memory.grow_to(wanted));
        has_room.then_some(()).ok_or(NotDecoded::NoMemory)
    }

    /// Reads to the end or to the limit. Sizes that the body declares are ignored.
    fn read(&mut self, mut reader: impl Read) -> Result<(), NotDecoded> {
        loop {
            let at = self.bytes.len();
            self.reserve(at + STEP)?;
            self.bytes.resize(at + STEP, 0);
            let read = reader.read(self.bytes.get_mut(at..).unwrap_or_default());
            self.bytes
                .truncate(at + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Ok(()),
                // Checked after each step, so at most one step is decompressed beyond the limit.
                Ok(_) if self.bytes.len() > self.most => return Err(NotDecoded::TooLarge),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(NotDecoded::Damaged),
            }
        }
    }

    fn finish(mut self) -> Bytes {
        // Shrinking may copy the bytes, so it is done only if it saves at least half.
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
        }
        match self.memory {
            Some(mut memory) => {
                memory.set(self.bytes.len());
                memory.attach(self.bytes)
            }
            None => Bytes::from(self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::memory_budget::MemoryBudget;
    use flate2::Compression;
    use http::HeaderValue;
    use std::io::Write;

    const TEXT: &[u8] = br#"{"messages": []}"#;

    fn decoded(encoding: &'static str, body: Vec<u8>) -> Result<Option<Bytes>, NotDecoded> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        let limits = ProxyLimits::default();
        let memory = MemoryBudget::new(&limits).always_reserve(None, 0);
        decode(&headers, &Bytes::from(body), &limits, memory)
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
    fn body_over_the_budget_is_not_unpacked() {
        let limits = ProxyLimits {
            tenant_memory_bytes: 4 << 20,
            ..ProxyLimits::default()
        };
        let budget = MemoryBudget::new(&limits);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let body = Bytes::from(gzip(&noise(1 << 20)));
        let unpack = || {
            let memory = budget.always_reserve(Some("one"), 0);
            decode(&headers, &body, &limits, memory)
        };
        let found = unpack().unwrap().unwrap();
        assert_eq!((found.len(), budget.used()), (1 << 20, 1 << 20));
        let taken = budget.try_reserve(Some("one"), 2 << 20).unwrap();
        assert_eq!(unpack(), Err(NotDecoded::NoMemory));
        drop((found, taken));
        assert_eq!(budget.used(), 0);
    }

    /// Bytes that compress a little.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            b'a' + u8::try_from(state >> 60).unwrap()
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn damaged_or_unknown_encoding_is_not_decoded() {
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
