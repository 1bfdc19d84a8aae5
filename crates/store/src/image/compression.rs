//! Zstandard, with one compressor and one decompressor per thread.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

/// The compression level. Level 3 takes half as long again and saves 4 % on recorded sessions.
const LEVEL: i32 = 1;
/// Shorter entries are not compressed: they would not shrink much.
const WORTH_COMPRESSING: usize = 256;
/// Zstandard does not shrink text by this factor. A larger size is damage and must not cause an
/// allocation.
const MOST_SHRINKING: usize = 32_768;

// A context takes hundreds of kilobytes, so it is made once per thread and not once per frame.
thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends the compressed bytes. Returns false and appends nothing if compression saves too little.
pub(crate) fn compress(bytes: &[u8], into: &mut Vec<u8>) -> bool {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new(LEVEL).ok();
        }
        let Some(compressor) = kept else { return false };
        let Ok(compressed) = compressor.compress(bytes) else {
            return false;
        };
        // Saving less than a sixteenth is not worth the time of decompression.
        let pays = compressed.len() < bytes.len() - bytes.len() / 16;
        if pays {
            into.extend_from_slice(&compressed);
        }
        pays
    })
}

/// Decompresses `stored` into `into`; false if it does not give `len` bytes.
pub(super) fn decompress(stored: &[u8], len: usize, into: &mut Vec<u8>) -> bool {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new().ok();
        }
        let Some(decompressor) = kept else {
            return false;
        };
        into.clear();
        into.reserve(len);
        decompressor.decompress_to_buffer(stored, into).is_ok() && into.len() == len
    })
}

/// An entry of a log or journal in its stored form, with its size if it is compressed.
pub(crate) fn compress_entry(entry: &[u8]) -> (Option<i64>, Vec<u8>) {
    let mut bytes = Vec::new();
    if entry.len() >= WORTH_COMPRESSING && compress(entry, &mut bytes) {
        return (Some(i64::try_from(entry.len()).unwrap_or(i64::MAX)), bytes);
    }
    (None, entry.to_vec())
}

/// The entry that [`compress_entry`] was given. None if the stored form is damaged.
pub(crate) fn decompress_entry(byte_size: Option<i64>, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let Some(byte_size) = byte_size else {
        return Some(bytes);
    };
    let byte_size = usize::try_from(byte_size).ok()?;
    if byte_size / MOST_SHRINKING > bytes.len() {
        return None;
    }
    let mut entry = Vec::new();
    decompress(&bytes, byte_size, &mut entry).then_some(entry)
}
