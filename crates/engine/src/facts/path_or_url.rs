//! Recognises paths, file names, URLs and hosts.

use super::FactKind;
use super::class::{ByteClass, DIGIT, DOT, LETTER, SLASH, UNDER, WordList, class, only};
use super::number::is_version;

/// The maximum length of a URL in bytes.
const LONGEST_URL: usize = 512;

/// Extensions of file names.
static ENDINGS: WordList = WordList::new(
    "a bash bat bib bin bz2 c cc cfg cjs clj cmake conf cpp crt cs css csv dart db diff dll \
     docx dylib el env erl ex exe exs gif go gradle graphql gz h hcl hpp hs htm html ico ini \
     ipynb jar java jl jpeg jpg js json jsonl jsx key kt less lock log lua md mdx mjs ml mod \
     mp3 mp4 nix o parquet patch pdf pem php pl png pptx properties proto ps1 py pyi r rb rs \
     rst scala scss sh so sql sqlite sum svelte svg swift tar tex tf tgz toml ts tsv tsx txt \
     vim vue wav webp whl xlsx xml xz yaml yml zig zip zst",
);
/// Extensions that are usually something else. They need a folder before them.
const DOUBTFUL: [&str; 5] = ["a", "o", "r", "el", "pl"];

/// Objects of programming languages whose members look like file names.
const OWNERS: [&str; 7] = [
    "console", "logger", "math", "process", "self", "this", "window",
];

/// Top-level domains of host names.
const DOMAINS: [&str; 12] = [
    "com", "org", "net", "io", "dev", "ai", "edu", "gov", "co", "app", "cloud", "local",
];

/// The URL in the word from `start` to `end`; it may end after the word.
pub(super) fn url(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let word = text.get(start..end)?;
    let scheme = word.find("://")?;
    let name = word.get(..scheme)?;
    let led = name.len() - scheme_length(name);
    let from = start + led;
    if from == start + scheme {
        return None;
    }
    let bytes = text.as_bytes();
    let rest = bytes.get(start + scheme + 3..)?;
    let inside = rest.iter().take(LONGEST_URL);
    let length = inside.take_while(|byte| in_url(**byte)).count();
    let to = start + scheme + 3 + length;
    // A sentence may end directly behind a URL.
    let whole = text.get(from..to)?;
    let trimmed = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', ')']);
    (length > 0).then_some((from, from + trimmed.len()))
}

fn scheme_length(name: &str) -> usize {
    let letters = name.bytes().rev();
    letters.take_while(u8::is_ascii_alphanumeric).count()
}

fn in_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'*+,;=%".contains(&byte)
}

/// The end of a path that begins with a drive: `C:\Users\x`.
pub(super) fn drive(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let is_drive = matches!(bytes.get(start..end)?, [letter, b':'] if letter.is_ascii_alphabetic());
    if !is_drive || bytes.get(end) != Some(&b'\\') {
        return None;
    }
    let rest = bytes.get(end..)?;
    let inside = |byte: u8| byte == b'\\' || class(byte) != 0;
    let length = rest.iter().take(256);
    let length = length.take_while(|byte| inside(**byte)).count();
    (2..256).contains(&length).then_some(end + length)
}

/// The kind of a word with slashes or dots.
pub(super) fn place(
    bytes: &[u8],
    start: usize,
    word: &str,
    classes: ByteClass,
) -> Option<FactKind> {
    let (name, line) = without_line(word);
    if classes & LETTER == 0 {
        return is_address(word).then_some(FactKind::Id);
    }
    if classes & SLASH != 0 {
        // `</div>` is no path.
        let closes_tag = start.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'<');
        return (!closes_tag && is_path(name)).then_some(FactKind::Path);
    }
    if is_file_name(name) && !is_method(bytes, start, word) {
        return Some(FactKind::Path);
    }
    (line.is_empty() && is_host(word)).then_some(FactKind::Url)
}

/// Splits a word from the line number after it: `:88`, `:88:5`, `#L88`.
fn without_line(word: &str) -> (&str, &str) {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':' || c == '-');
    let name = digits.strip_suffix("#L").unwrap_or(digits);
    let line = word.get(name.len()..).unwrap_or_default();
    if line.starts_with([':', '#']) {
        (name, line)
    } else {
        (word, "")
    }
}

/// True for an IP address such as `10.0.0.1`.
fn is_address(word: &str) -> bool {
    word.split('.').count() == 4
        && word
            .split('.')
            .all(|part| part.len() < 4 && only(part, DIGIT))
}

/// True for a word with slashes that is a path, not two words with a slash in between.
fn is_path(word: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"]
        .iter()
        .find_map(|root| word.strip_prefix(root));
    let inner = rooted.unwrap_or(word);
    let has_letters = inner.bytes().any(|byte| class(byte) & LETTER != 0);
    if !has_letters || word.contains(':') || word.starts_with("//") {
        return false;
    }
    if rooted.is_some() {
        return inner.len() > 1;
    }
    // `and/or` is no path: without a root, it takes two slashes, an extension, a dot or an
    // underscore.
    let last = word
        .rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    let slashes = word.bytes().filter(|byte| *byte == b'/').count();
    slashes > 1 || has_ending(last) || word.bytes().any(|byte| class(byte) & (UNDER | DOT) != 0)
}

/// True for a method or value of a program: `.then(`, `response.json(`, `console.log`.
fn is_method(bytes: &[u8], start: usize, word: &str) -> bool {
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    let is_called = bytes.get(start + word.len()) == Some(&b'(');
    // A hidden file stands alone; a method follows its object.
    let is_behind = word.starts_with('.') && before.is_some_and(|byte| b")]}".contains(byte));
    let owner = word.split('.').next().unwrap_or_default();
    is_called || is_behind || OWNERS.contains(&owner)
}

fn is_file_name(word: &str) -> bool {
    if let Some(hidden) = word.strip_prefix('.') {
        return hidden.len() > 2 && hidden.bytes().all(|byte| class(byte) & !LETTER == 0);
    }
    has_ending(word) && !DOUBTFUL.contains(&ending(word)) && !is_version(word)
}

fn has_ending(word: &str) -> bool {
    let ending = ending(word);
    ending.len() + 1 < word.len() && ENDINGS.has(ending)
}

fn ending(word: &str) -> &str {
    word.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn is_host(word: &str) -> bool {
    let ending = ending(word);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    word.len() > ending.len() + 2 && DOMAINS.contains(&ending) && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_can_be_looked_up() {
        assert!(has_ending("A.RS") && has_ending("x.tar.gz") && !has_ending(".rs"));
    }
}
