//! Zstandard, with one compressor and one decompressor per thread.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

/// The level of compression: higher ones save little more and take much longer than the disk.
const LEVEL: i32 = 3;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends the compressed bytes; false, with nothing appended, where that does not pay.
pub(crate) fn compress(bytes: &[u8], into: &mut Vec<u8>) -> bool {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new(LEVEL).ok();
        }
        let Some(compressor) = kept else { return false };
        let Ok(compressed) = compressor.compress(bytes) else {
            return false;
        };
        // Less than a sixteenth saved is not worth the time that reading takes.
        let pays = compressed.len() < bytes.len() - bytes.len() / 16;
        if pays {
            into.extend_from_slice(&compressed);
        }
        pays
    })
}

/// Replaces `into` by the `len` bytes that `stored` holds; false if it does not.
pub(crate) fn decompress(stored: &[u8], len: usize, into: &mut Vec<u8>) -> bool {
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
