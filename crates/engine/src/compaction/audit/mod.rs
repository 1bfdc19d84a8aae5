//! Finds the facts of the replaced messages that a summary leaves out.
//!
//! Not every fact matters: a listing has thousands of paths, and its ref retrieves them. Facts
//! matter if the user stated them, the model used them in a call, they occur in an error, they are
//! repeated, or they are rare ids that nobody could guess.

mod block;
mod gathered_facts;
mod outputs;
mod summary_text;

use std::borrow::Borrow;

use foldhash::{HashSet, HashSetExt as _};
use serde::{Deserialize, Serialize};
use trimtab_model::{Message, Ref};

pub(super) use block::without_block;

use crate::facts::FactKind;
use gathered_facts::GatheredFacts;
use outputs::{StoredOutput, stored_outputs};
use summary_text::SummaryText;

/// The minimum coverage of a good summary.
const GOOD_COVERAGE: f64 = 0.6;

/// How many of the important facts a summary has. Facts that one statement of the summary covers
/// together, such as the lines of one file, count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The important facts.
    pub facts: usize,
    /// Facts in the summary.
    pub covered: usize,
    /// Facts that are not in the summary.
    pub missing: usize,
    /// Missing facts that are in the fact block.
    pub added: usize,
}

impl Coverage {
    /// The share of important facts in the summary or in the block; 1 if there are none.
    pub fn ratio(&self) -> f64 {
        if self.facts == 0 {
            return 1.0;
        }
        (self.covered + self.added) as f64 / self.facts as f64
    }

    /// A warning about a summary that leaves out too much.
    ///
    /// ```
    /// use trimtab_engine::compaction::audit::Coverage;
    ///
    /// let poor = Coverage { facts: 600, covered: 150, missing: 450, added: 48 };
    /// let said = "only 33 % of 600 facts are kept; the others are only in the originals";
    /// assert_eq!(poor.warning().as_deref(), Some(said));
    /// ```
    pub fn warning(&self) -> Option<String> {
        (self.ratio() < GOOD_COVERAGE).then(|| {
            let (percent, facts) = ((self.ratio() * 100.0).round(), self.facts);
            format!(
                "only {percent} % of {facts} facts are kept; the others are only in the originals"
            )
        })
    }
}

/// A text about replaced messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextWithRefs {
    /// The text; empty if there is nothing to say, or no room for it.
    pub text: String,
    /// The refs that it names.
    pub refs: Vec<Ref>,
    /// How many of the important facts are in the window with this text.
    pub coverage: Coverage,
}

/// An important fact that is not in the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFact<'m> {
    /// Its kind.
    pub kind: FactKind,
    /// The fact, as in its message.
    pub text: &'m str,
    /// Its importance.
    pub weight: u32,
    /// The newest replaced message that contains it.
    pub message: usize,
    /// The newest stored output that contains it.
    pub stored: Option<&'m Ref>,
}

/// The result of an audit: what a summary leaves out.
pub struct SummaryAudit<'m> {
    /// The counts, before any fact block.
    pub coverage: Coverage,
    /// The missing facts, most important first.
    pub missing: Vec<MissingFact<'m>>,
    outputs: Vec<StoredOutput<'m>>,
}

/// Looks up the important facts of the `replaced` messages in `written`: the summary, the retained
/// text, and whatever else of them stays in the window.
///
/// ```
/// use trimtab_engine::compaction::audit::audit;
/// use trimtab_model::Message;
///
/// let replaced = [Message::user("Keep src/main.rs as it is. Port it to tokio 1.47.0")];
/// let audit = audit(&replaced, &["The user wants src/main.rs as it is: keep."]);
/// let missing: Vec<&str> = audit.missing.iter().map(|fact| fact.text).collect();
/// assert_eq!(missing, ["1.47.0"]);
/// assert_eq!((audit.coverage.facts, audit.coverage.covered), (3, 2));
/// ```
pub fn audit<'m, M: Borrow<Message>>(replaced: &'m [M], written: &[&str]) -> SummaryAudit<'m> {
    let outputs = stored_outputs(replaced);
    // The number of outputs decides how much of each is read.
    let count = |message: &M| message.borrow().outputs().count();
    let mut gathered = GatheredFacts::with_outputs(replaced.iter().map(count).sum());
    for (at, message) in replaced.iter().enumerate() {
        gathered.read(at, message.borrow());
    }
    let written = SummaryText::new(written);
    let mut coverage = Coverage::default();
    let mut missing = Vec::new();
    let mut covered = HashSet::new();
    for fact in gathered.that_matter() {
        if written.has(fact.kind, fact.text) {
            // Facts that one statement covers have the same key, and count once.
            covered.insert(summary_text::fact_key(fact.kind, fact.text));
        } else {
            missing.push(fact);
        }
    }
    coverage.covered = covered.len();
    coverage.missing = missing.len();
    coverage.facts = coverage.covered + coverage.missing;
    // The facts come from a hash map. A total order makes the block the same in every run.
    missing.sort_by(|a, b| {
        let newest = b.message.cmp(&a.message);
        b.weight
            .cmp(&a.weight)
            .then(newest)
            .then(a.text.cmp(b.text))
    });
    SummaryAudit {
        coverage,
        missing,
        outputs,
    }
}
