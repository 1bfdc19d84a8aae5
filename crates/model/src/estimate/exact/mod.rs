//! Exact counts for the vocabularies that are public.
//!
//! Text that looks like a special token (`<|endoftext|>`) is counted as the ordinary text that
//! it is. A counter is loaded once per process, on first use, which takes about a tenth of a
//! second.

mod append;
mod cut;
mod runs;
mod vocabulary;

use std::fmt;
use std::sync::OnceLock;

use tiktoken_fast::CoreBPE;

pub use append::Appending;
pub use vocabulary::Vocabulary;

use super::TokenCounter;

/// A text is counted in chunks of about this many bytes, which bounds memory.
const CHUNK: usize = 64 * 1024;

/// Counts tokens exactly as the models of one vocabulary do.
pub struct ExactCounter {
    vocabulary: Vocabulary,
    core: CoreBPE,
}

/// The tables of a vocabulary could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabularyError(String);

impl Vocabulary {
    /// The counter of this vocabulary; loaded on the first call, shared afterwards.
    ///
    /// ```
    /// use trimtab_model::estimate::{TokenCounter, Vocabulary};
    ///
    /// let counter = Vocabulary::O200k.counter().unwrap();
    /// assert_eq!(counter.count("hello world"), 2);
    /// ```
    pub fn counter(self) -> Result<&'static ExactCounter, VocabularyError> {
        static O200K: OnceLock<Result<ExactCounter, VocabularyError>> = OnceLock::new();
        static CL100K: OnceLock<Result<ExactCounter, VocabularyError>> = OnceLock::new();
        let (slot, load): (_, fn() -> Result<CoreBPE, tiktoken_fast::Error>) = match self {
            Self::O200k => (&O200K, tiktoken_fast::o200k_base),
            Self::Cl100k => (&CL100K, tiktoken_fast::cl100k_base),
        };
        let loaded = slot.get_or_init(|| match load() {
            Ok(core) => Ok(ExactCounter {
                vocabulary: self,
                core,
            }),
            Err(error) => Err(VocabularyError(error.to_string())),
        });
        loaded.as_ref().map_err(Clone::clone)
    }
}

impl ExactCounter {
    /// The vocabulary that it counts in.
    pub fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }
}

impl TokenCounter for ExactCounter {
    fn count(&self, text: &str) -> u64 {
        let tokens: usize = cut::chunks(text, CHUNK)
            .map(|chunk| runs::count(self, chunk))
            .sum();
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

impl runs::Encoder for ExactCounter {
    fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        self.core.encode_ordinary(text)
    }

    fn width(&self, token: u32) -> usize {
        // An ordinary token always has bytes.
        self.core
            .decode_bytes(&[token])
            .map_or(1, |bytes| bytes.len())
    }
}

impl fmt::Debug for ExactCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactCounter")
            .field("vocabulary", &self.vocabulary)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the vocabulary could not be loaded: {}", self.0)
    }
}

impl std::error::Error for VocabularyError {}
