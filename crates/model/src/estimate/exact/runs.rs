//! Long runs of one kind of character.
//!
//! A megabyte of dashes, of spaces or of letters without a break is one piece for the
//! vocabulary's regular expression, and merging one huge piece is tens of times slower than
//! merging text. So a long run is encoded through windows that overlap by a few hundred bytes.
//!
//! This is exact, not an estimate. A sequence of tokens is the encoding of a piece if and only
//! if each two neighbours in it are the encoding of their own bytes (true of vocabularies in
//! which every token encodes to itself, as both of these are). Where two overlapping windows
//! share one token at the same place, the left window up to that token and the right window
//! from it on have only such neighbours, so together they are the encoding of both.

use super::Vocabulary;

/// Runs shorter than this are left to the encoder. Longer than any token times eight.
const LONG: usize = 2048;
/// How much of a run one window takes in.
const WINDOW: usize = 512;
/// A window reaches back into the one before it by this part of its size: 170 bytes, where
/// the longest token has 128.
const OVERLAP_PART: usize = 3;

/// A long run: bytes `start..end` of the text are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Blank,
    Newline,
    Punctuation,
}

/// What the encoder of a vocabulary must be able to do.
pub(super) trait Encoder {
    fn vocabulary(&self) -> Vocabulary;
    fn encode(&self, text: &str) -> Vec<u32>;
    /// Bytes of a token.
    fn width(&self, token: u32) -> usize;
}

/// The number of tokens of a text, at a cost that is linear in its length.
pub(super) fn count(encoder: &impl Encoder, text: &str) -> usize {
    let runs = long_runs(encoder.vocabulary(), text);
    let mut size = WINDOW;
    loop {
        if let Some(count) = count_windows(encoder, text, &runs, size) {
            return count;
        }
        // Two windows without a common token. Larger ones overlap more; at the size of the
        // text there is only one window.
        size = size.saturating_mul(4);
    }
}

fn count_windows(
    encoder: &impl Encoder,
    text: &str,
    mut runs: &[Run],
    size: usize,
) -> Option<usize> {
    let (mut start, mut total) = (0, 0);
    let (mut window, mut tokens) = ("", Vec::new());
    let mut settled = 0;
    loop {
        let end = window_end(&mut runs, start, size).unwrap_or(text.len());
        let next = text.get(start..end)?;
        // In a run of one character every window is like the one before it.
        if next != window {
            let left = std::mem::replace(&mut tokens, encoder.encode(next));
            if start > 0 {
                let (kept, skipped) = common_token(encoder, left.get(settled..)?, &tokens)?;
                total = (total + kept).checked_sub(skipped)?;
            }
            window = next;
        } else if tokens.get(settled) != tokens.first() {
            return None;
        }
        if end == text.len() {
            return Some(total + tokens.len());
        }
        let bytes;
        (settled, bytes) = settle(encoder, &tokens, size / OVERLAP_PART)?;
        total += settled;
        start += bytes;
    }
}

/// Where the window that begins at `start` ends: inside the first run that has room for two
/// windows more. None means at the end of the text.
fn window_end(runs: &mut &[Run], start: usize, size: usize) -> Option<usize> {
    while let Some((run, behind)) = runs.split_first() {
        let end = run.start.max(start) + size;
        if end + size <= run.end {
            return Some(end);
        }
        *runs = behind;
    }
    None
}

/// How many tokens, and how many bytes, lie before the last `overlap` bytes of a window.
fn settle(encoder: &impl Encoder, tokens: &[u32], overlap: usize) -> Option<(usize, usize)> {
    let mut covered = 0;
    let open = tokens
        .iter()
        .rev()
        .take_while(|&&token| {
            let more = covered < overlap;
            covered += if more { encoder.width(token) } else { 0 };
            more
        })
        .count();
    let settled = tokens.len() - open;
    let bytes = tokens
        .get(..settled)?
        .iter()
        .map(|&t| encoder.width(t))
        .sum();
    (settled > 0).then_some((settled, bytes))
}

/// The first token that two encodings from the same place share, as its index in both.
fn common_token(encoder: &impl Encoder, left: &[u32], right: &[u32]) -> Option<(usize, usize)> {
    let (mut in_left, mut in_right) = (0, 0);
    let (mut left_at, mut right_at) = (0, 0);
    loop {
        let (&a, &b) = (left.get(in_left)?, right.get(in_right)?);
        if left_at == right_at && a == b {
            return Some((in_left, in_right));
        }
        if left_at <= right_at {
            left_at += encoder.width(a);
            in_left += 1;
        } else {
            right_at += encoder.width(b);
            in_right += 1;
        }
    }
}

/// The long runs of a text.
///
/// A run of [`LONG`] bytes covers a multiple of [`LONG`], so only those bytes are looked at,
/// and their neighbours as long as they are of the same kind.
fn long_runs(vocabulary: Vocabulary, text: &str) -> Vec<Run> {
    let bytes = text.as_bytes();
    let mut runs = Vec::new();
    let mut sample = 0;
    while sample < bytes.len() {
        let mut next = sample + LONG;
        if let Some((run, usable)) = run_at(vocabulary, bytes, sample) {
            next = next.max(run.end.next_multiple_of(LONG));
            if usable && run.end - run.start >= LONG {
                runs.push(run);
            }
        }
        sample = next;
    }
    runs
}

/// The run around a byte, and whether it may be cut into windows.
fn run_at(vocabulary: Vocabulary, bytes: &[u8], sample: usize) -> Option<(Run, bool)> {
    let wanted = kind(vocabulary, *bytes.get(sample)?)?;
    let same = |byte: &&u8| kind(vocabulary, **byte) == Some(wanted);
    let (left, right) = bytes.split_at_checked(sample)?;
    let start = sample - left.iter().rev().take_while(same).count();
    let end = sample + right.iter().take_while(same).count();
    let before = start.checked_sub(1).and_then(|at| bytes.get(at)).copied();
    let behind = bytes.get(end).copied();
    let first = bytes.get(start).copied();
    let usable = starts_alike(vocabulary, wanted, before, behind)
        && ends_alike(wanted, before, first, behind);
    Some((Run { start, end }, usable))
}

/// True if the piece that holds the run starts at the same place when the text is cut off
/// within the run. The few odd cases where it might not are left to the encoder.
fn starts_alike(
    vocabulary: Vocabulary,
    kind: Kind,
    before: Option<u8>,
    behind: Option<u8>,
) -> bool {
    match (kind, before) {
        (Kind::Lower | Kind::Punctuation | Kind::Newline, _) | (_, None) => true,
        // A letter without case before upper case: a lower-case letter behind the run decides.
        (Kind::Upper, Some(before)) => before.is_ascii(),
        // Newline, blanks: one piece if another newline follows, two if not.
        (Kind::Blank, Some(b'\n' | b'\r')) => {
            vocabulary == Vocabulary::O200k
                && behind.is_some_and(|byte| byte.is_ascii() && !byte.is_ascii_whitespace())
        }
        (Kind::Blank, Some(before)) => before.is_ascii() && !is_space(before),
    }
}

/// True if the piece that holds the run ends at the same place when the text begins within
/// the run. Punctuation, then newlines, then slashes are one piece; without the punctuation
/// before them the slashes are a piece of their own, and go on with other punctuation.
fn ends_alike(kind: Kind, before: Option<u8>, first: Option<u8>, behind: Option<u8>) -> bool {
    match kind {
        Kind::Newline => behind != Some(b'/'),
        Kind::Punctuation => first != Some(b'/') || !matches!(before, Some(b'\n' | b'\r')),
        Kind::Lower | Kind::Upper | Kind::Blank => true,
    }
}

/// White space as the regular expressions see it; vertical tab included.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn kind(vocabulary: Vocabulary, byte: u8) -> Option<Kind> {
    match byte {
        b'a'..=b'z' => Some(Kind::Lower),
        // Only the newer vocabulary ends a piece where lower case turns to upper.
        b'A'..=b'Z' if vocabulary == Vocabulary::Cl100k => Some(Kind::Lower),
        b'A'..=b'Z' => Some(Kind::Upper),
        b' ' | b'\t' => Some(Kind::Blank),
        b'\n' | b'\r' => Some(Kind::Newline),
        byte if byte.is_ascii_punctuation() => Some(Kind::Punctuation),
        _ => None,
    }
}
