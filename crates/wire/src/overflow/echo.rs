//! Finds out what an error repeats of the request that it is about.
//!
//! Providers quote what they reject. A quoted text can say anything, for example that the window is
//! tiny, and its author may be a web page that the agent has read.

use std::cell::OnceCell;

use memchr::memmem;

/// The texts of a request, as they are compared with an error.
pub(super) struct Echo<'a> {
    request: &'a [u8],
    /// Made when the first comparison needs it, which most answers do not.
    letters: OnceCell<Vec<u8>>,
}

impl<'a> Echo<'a> {
    /// An empty request repeats nothing.
    pub(super) fn of(request: &'a [u8]) -> Self {
        Self {
            request,
            letters: OnceCell::new(),
        }
    }

    /// True if the request contains this part of an error.
    pub(super) fn has(&self, part: &[u8]) -> bool {
        if self.request.is_empty() {
            return false;
        }
        let part = letters(part);
        let request = self.letters.get_or_init(|| letters(self.request));
        !part.is_empty() && memmem::find(request, &part).is_some()
    }
}

/// The letters and digits of a text in lower case. Errors differ from what they repeat in spaces,
/// quotes, escapes and separators of thousands.
fn letters(text: &[u8]) -> Vec<u8> {
    let mut letters = Vec::with_capacity(text.len());
    let mut digits = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        let (byte, is_escape) = if byte == b'\\' {
            let (byte, end) = escaped(text, at);
            at = end;
            (byte, true)
        } else {
            (byte, false)
        };
        let is_thousand = matches!(byte, b'k' | b'K')
            && !is_escape
            && (1..=4).contains(&digits)
            && !text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        if is_thousand {
            letters.extend(b"000");
        } else if byte.is_ascii_alphanumeric() || !byte.is_ascii() {
            letters.push(byte.to_ascii_lowercase());
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
    }
    letters
}

/// The ASCII character of an escape behind its first backslash, and its end. Other characters of
/// escapes are left out; the patterns for errors are almost all in ASCII.
fn escaped(text: &[u8], mut at: usize) -> (u8, usize) {
    // Texts that were escaped several times have several backslashes before one escape.
    while text.get(at) == Some(&b'\\') {
        at += 1;
    }
    if text.get(at) != Some(&b'u') {
        // Letters behind a backslash stand for white space.
        return (b' ', at + 1);
    }
    let code = text
        .get(at + 1..at + 5)
        .and_then(|code| std::str::from_utf8(code).ok());
    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
    let byte = code
        .and_then(|code| u8::try_from(code).ok())
        .filter(u8::is_ascii);
    (
        byte.unwrap_or(b' '),
        if code.is_some() { at + 5 } else { at + 1 },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_found_in_every_spelling() {
        let part = b"maximum context length is 128000 tokens";
        for request in [
            "the maximum context length is 128,000 tokens.",
            "Maximum Context-Length is 128K tokens",
            r#"maximum\ncontext length\tis \"128_000\" tokens"#,
            r"m\u0061ximum context length is 128000 tokens",
            r"m\\u0061ximum context length is 128000 tokens",
        ] {
            assert!(Echo::of(request.as_bytes()).has(part), "{request}");
        }
        for request in [
            "",
            "maximum context length is 12800 tokens",
            "128000 tokens",
            "\\",
        ] {
            assert!(!Echo::of(request.as_bytes()).has(part), "{request}");
        }
        assert!(!Echo::of(b"anything").has(b"!"));
    }
}
