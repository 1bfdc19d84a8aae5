//! Scans 64 bytes of a long string at once.
//!
//! If quotes are dense, stopping at each of them dominates the cost. Here each block becomes a few
//! words with one bit per byte, and escaped bytes are found by arithmetic: one branch per block
//! instead of one per backslash.

use super::strings::{StringEnd, escape};
use super::unscannable::{Unscannable, UnscannableReason};

const ONES: u64 = u64::MAX / 255;
const LOW: u64 = ONES * 0x7f;

/// The result of scanning whole blocks.
pub(super) enum BlockScan {
    /// The string ends here.
    End(StringEnd),
    /// The string continues at this offset, which is not inside an escape.
    Continue { at: usize, escaped: bool },
}

/// Scans whole blocks from `start`, which is inside a string and not inside an escape.
pub(super) fn read(bytes: &[u8], start: usize, escaped: bool) -> Result<BlockScan, Unscannable> {
    let (blocks, _) = bytes.get(start..).unwrap_or_default().as_chunks::<64>();
    let mut any_escaped = escaped;
    let mut carried = 0;
    for (number, block) in blocks.iter().enumerate() {
        if carried == 0 && is_plain(block) {
            continue;
        }
        let base = start + 64 * number;
        let quotes = bits(block, |word| zeros(word ^ (ONES * u64::from(b'"'))));
        let backslashes = bits(block, |word| zeros(word ^ (ONES * u64::from(b'\\'))));
        let escapees = escapees(backslashes, &mut carried);
        let ends = quotes & !escapees;
        // All bits before the first end, or all of the block if there is none.
        let inside = (ends & ends.wrapping_neg()).wrapping_sub(1);
        check_escapes(bytes, base, escapees & inside & !quotes & !backslashes)?;
        check_controls(block, base, inside)?;
        any_escaped |= backslashes & inside != 0;
        if ends != 0 {
            return Ok(BlockScan::End(StringEnd {
                quote: base + ends.trailing_zeros() as usize,
                escaped: any_escaped,
            }));
        }
    }
    // A trailing backslash is scanned again, together with what it escapes.
    let at = start + 64 * blocks.len() - usize::from(carried != 0);
    Ok(BlockScan::Continue {
        at,
        escaped: any_escaped,
    })
}

/// The bits of escaped bytes. `carried` is 1 if the first byte of the next block is escaped.
fn escapees(backslashes: u64, carried: &mut u64) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let starting = backslashes & !*carried;
    let follows = starting << 1 | *carried;
    // Adding a run of backslashes to its start moves a bit after its end; its parity tells whether
    // the run has odd length.
    let odd_starts = starting & ODD & !follows;
    let (sums, overflow) = odd_starts.overflowing_add(starting);
    *carried = u64::from(overflow);
    (!ODD ^ (sums << 1)) & follows
}

/// Checks the escapes at the bits of `escapees`, which are neither quotes nor backslashes.
fn check_escapes(bytes: &[u8], base: usize, mut escapees: u64) -> Result<(), Unscannable> {
    while escapees != 0 {
        let at = base + escapees.trailing_zeros() as usize;
        let simple = matches!(bytes.get(at), Some(b'n' | b't' | b'/' | b'r' | b'b' | b'f'));
        if !simple {
            escape(bytes, at.saturating_sub(1))?;
        }
        escapees &= escapees - 1;
    }
    Ok(())
}

fn check_controls(block: &[u8; 64], base: usize, inside: u64) -> Result<(), Unscannable> {
    let any = block
        .iter()
        .fold(0, |found, byte| found | u8::from(*byte < 0x20));
    if any == 0 {
        return Ok(());
    }
    let controls = bits(block, |word| zeros(word & (ONES * 0xe0))) & inside;
    if controls == 0 {
        return Ok(());
    }
    Err(Unscannable {
        offset: base + controls.trailing_zeros() as usize,
        why: UnscannableReason::ControlCharacter,
    })
}

/// True if no byte is special. Written so that the compiler vectorises it.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches the compiler makes vectors of it"
)]
fn is_plain(block: &[u8; 64]) -> bool {
    !block.iter().fold(false, |found, byte| {
        found | (*byte == b'"') | (*byte == b'\\') | (*byte < 0x20)
    })
}

/// One bit per byte of `block` whose high bit `marked` sets.
fn bits(block: &[u8; 64], marked: impl Fn(u64) -> u64) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    words.iter().rev().fold(0, |bits, word| {
        let marks = marked(u64::from_le_bytes(*word)) >> 7;
        // The multiplication gathers the eight marks in the highest byte.
        bits << 8 | marks.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// The high bit of each zero byte, and no other.
fn zeros(word: u64) -> u64 {
    !(((word & LOW) + LOW) | word | LOW)
}
