//! The rules, as data.

use std::sync::LazyLock;

use serde::Deserialize;
use thiserror::Error;

use super::echo::Echo;
use super::kind::{OverflowAction, OverflowKind};
use super::pattern::OverflowPattern;
use super::sizes::SizePattern;

/// Rules by which answers are judged, in order: the first that fits decides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverflowRules {
    #[serde(rename = "rule")]
    ordered: Vec<OverflowRule>,
    #[serde(rename = "figure")]
    pub(super) figures: Vec<SizePattern>,
}

/// One rule, as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverflowRule {
    pub(super) name: String,
    pub(super) kind: OverflowKind,
    pub(super) action: Option<OverflowAction>,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    any: Vec<OverflowPattern>,
    #[serde(default)]
    all: Vec<OverflowPattern>,
    #[serde(default)]
    none: Vec<OverflowPattern>,
}

/// `413`, or a class such as `5xx`.
#[derive(Clone, Copy, Debug)]
enum StatusPattern {
    Exact(u16),
    Class(u16),
}

/// Why rules were refused.
#[derive(Debug, Error)]
pub enum RulesError {
    /// They are not TOML of the right shape.
    #[error("the overflow rules cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A pattern is not a valid regular expression, or is too large.
    #[error("overflow rule `{rule}`: pattern `{pattern}` cannot be used: {problem}")]
    Pattern {
        /// The rule's name.
        rule: String,
        /// The pattern.
        pattern: String,
        /// The fault.
        problem: String,
    },
    /// A status is neither a number nor a class.
    #[error(
        "overflow rule `{rule}`: status `{status}` is neither a number such as 413 nor a class such as 5xx"
    )]
    Status {
        /// The rule's name.
        rule: String,
        /// The status.
        status: String,
    },
    /// A rule without any condition would match everything.
    #[error("overflow rule `{rule}` has no condition\nhint: give it `status`, `any` or `all`")]
    Unconditional {
        /// The rule's name.
        rule: String,
    },
}

impl OverflowRules {
    /// The embedded rules (`data/overflow.toml`), parsed on first use.
    pub fn embedded() -> &'static Self {
        static RULES: LazyLock<OverflowRules> = LazyLock::new(|| {
            // A test validates them. If they were ever broken, nothing would be an overflow.
            toml::from_str(include_str!("../../data/overflow.toml")).unwrap_or_default()
        });
        &RULES
    }

    /// Parses and validates rules.
    pub fn parse(toml: &str) -> Result<Self, RulesError> {
        let rules: Self = toml::from_str(toml)?;
        for rule in &rules.ordered {
            rule.check()?;
        }
        for figure in &rules.figures {
            check("(figure)", &figure.pattern)?;
        }
        Ok(rules)
    }

    /// These rules without the patterns of `any` that `drop` selects by rule and index; a rule that
    /// loses all of them is removed.
    #[must_use]
    pub fn without(&self, drop: impl Fn(&str, usize) -> bool) -> Self {
        let mut rules = self.clone();
        rules.ordered.retain_mut(|rule| {
            let before = rule.any.len();
            let mut index = 0..before;
            rule.any
                .retain(|_| index.next().is_some_and(|index| !drop(&rule.name, index)));
            before == 0 || !rule.any.is_empty()
        });
        rules
    }

    /// The first matching rule.
    pub(super) fn first(&self, status: u16, text: &str) -> Option<&OverflowRule> {
        self.ordered.iter().find(|rule| rule.fits(status, text))
    }
}

impl OverflowRule {
    fn check(&self) -> Result<(), RulesError> {
        let rule = || self.name.clone();
        if self.any.is_empty() && self.all.is_empty() && self.status.is_empty() {
            return Err(RulesError::Unconditional { rule: rule() });
        }
        if let Some(status) = self
            .status
            .iter()
            .find(|status| StatusPattern::parse(status).is_none())
        {
            return Err(RulesError::Status {
                rule: rule(),
                status: status.clone(),
            });
        }
        let mut patterns = self.any.iter().chain(&self.all).chain(&self.none);
        patterns.try_for_each(|pattern| check(&self.name, pattern))
    }

    fn fits(&self, status: u16, text: &str) -> bool {
        let fits = |wanted: &String| {
            StatusPattern::parse(wanted).is_some_and(|wanted| wanted.fits(status))
        };
        // Patterns are searched in the whole text, so the cheap conditions come before them.
        let found = |pattern: &OverflowPattern| pattern.is_in(text);
        (self.status.is_empty() || self.status.iter().any(fits))
            && (self.any.is_empty() || self.any.iter().any(found))
            && self.all.iter().all(found)
            && !self.none.iter().any(found)
    }

    /// True if a part of the text that matches is not repeated from the request. A rule without
    /// patterns goes by the status, which the provider sets.
    pub(super) fn has_own_words(&self, text: &str, echo: &Echo<'_>) -> bool {
        let mut patterns = self.any.iter().chain(&self.all).peekable();
        patterns.peek().is_none()
            || patterns.filter_map(OverflowPattern::regex).any(|regex| {
                let mut found = regex.find_iter(text.as_bytes());
                found.any(|found| !echo.has(found.as_bytes()))
            })
    }

    /// The indexes of the patterns of `any` that occur in the text.
    pub(super) fn evidence(&self, text: &str) -> Vec<usize> {
        let found = self
            .any
            .iter()
            .enumerate()
            .filter(|(_, pattern)| pattern.is_in(text));
        found.map(|(index, _)| index).collect()
    }
}

fn check(rule: &str, pattern: &OverflowPattern) -> Result<(), RulesError> {
    match pattern.problem() {
        None => Ok(()),
        Some(problem) => Err(RulesError::Pattern {
            rule: rule.to_owned(),
            pattern: pattern.as_str().to_owned(),
            problem,
        }),
    }
}

impl StatusPattern {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().map(Self::Class),
            None => text.parse().ok().map(Self::Exact),
        }
    }

    fn fits(self, status: u16) -> bool {
        match self {
            Self::Exact(wanted) => status == wanted,
            Self::Class(class) => status / 100 == class,
        }
    }
}
