//! Finds facts that summaries lose: paths, URLs, ids, numbers with units, commands, errors,
//! constraints.
//!
//! A summary keeps conclusions and drops the evidence for them. [`extract`] finds the evidence in
//! one forward pass over the bytes, without copying: it collects the classes of the bytes of a
//! word, and examines only words that contain something other than letters. Two kinds of facts
//! occur only in certain texts: [`commands`] reads the arguments of a call, [`constraints`] reads
//! user messages.
//!
//! ```
//! use trimtab_engine::facts::{self, FactKind};
//!
//! let mut found = Vec::new();
//! facts::extract("see src/main.rs:88, it took 1.5 GB", &mut |fact| found.push(fact));
//! assert_eq!((found[0].kind, found[0].text), (FactKind::Path, "src/main.rs:88"));
//! assert_eq!((found[1].kind, found[1].text), (FactKind::Number, "1.5 GB"));
//! ```

mod class;
mod command;
mod constraint;
mod failure;
mod name;
mod number;
mod path_or_url;
mod scan;

pub use command::{commands, unescaped};
pub use constraint::constraints;

/// Kinds of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKind {
    /// A sentence in which the user says what must or must not happen.
    Constraint,
    /// A line that looks like an error.
    Error,
    /// A path or a file name, with its line number if it has one.
    Path,
    /// A URL or a host name.
    Url,
    /// A command line.
    Command,
    /// An identifier: a name from code, a hash, a ticket number, an option.
    Id,
    /// A number with its unit, a version, a port, a line number.
    Number,
}

impl FactKind {
    /// The name of the kind in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Constraint => "constraints",
            Self::Error => "errors",
            Self::Path => "paths",
            Self::Url => "urls",
            Self::Command => "commands",
            Self::Id => "ids",
            Self::Number => "numbers",
        }
    }
}

/// A detail of a text that its summary may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fact<'t> {
    /// Its kind.
    pub kind: FactKind,
    /// The text itself.
    pub text: &'t str,
    /// The byte position of its start.
    pub at: usize,
}

/// Finds every path, URL, id, number with a unit and error line of `text`.
///
/// They come in the order of their starts, except that an error line comes when its error word is
/// reached, after the facts before that word. A fact that occurs twice comes twice.
pub fn extract<'t>(text: &'t str, sink: &mut impl FnMut(Fact<'t>)) {
    scan::FactScanner::new(text, false, sink).run();
}

/// Finds the error lines of `text`: the same as [`extract`], but faster.
pub fn errors<'t>(text: &'t str, sink: &mut impl FnMut(Fact<'t>)) {
    scan::FactScanner::new(text, true, sink).run();
}

#[cfg(test)]
mod tests;
